"""GreedyHash without labels: codes whose cosine similarity is that of the features.

Su, Zhang, Han, Tian. Greedy Hash: Towards Fast Optimization for Accurate Hash Coding in CNN. NeurIPS 2018.
Authors' code: ssppp/GreedyHash.
"""

from dataclasses import dataclass

from methods.base.deep import DeepHashing
from methods.learners.straight_through import cosine_agreement, cubic_penalty, sign_straight_through


@dataclass(kw_only=True)
class GreedyHashUnsupervised(DeepHashing):
    r"""Minimises

    $$
    \frac{2}{M} \sum_{i=1}^{M/2} \left(\cos(b_i, b_{i+M/2}) - \cos(x_i, x_{i+M/2})\right)^2
    + \frac{\alpha}{M b} \sum_{i,k} \left| \left| u_{ik} \right| - 1 \right|^3
    $$

    over pairs of the two halves of a batch: b = sgn(u), straight through, x what the hash head is given, and
    $\alpha$ the `penalty`.

    The authors train a linear layer on the fc7 features of VGG-16, with dropout active on the features, SGD
    at 1e-4, batches of 32, 60 epochs (16 bits: 300). Here features have no dropout. Of images, the network
    under the hash head keeps its weights: the features are the target.
    """

    title = "GreedyHash (unsupervised)"
    paper = "https://papers.nips.cc/paper/7360-greedy-hash-towards-fast-optimization-for-accurate-hash-coding-in-cnn"
    colour = "#F4A582"
    marker = "D"
    supervision = "none"
    family = "unsupervised"
    space = {
        "learning_rate": {"log_uniform": [1e-2, 3.0]},
        "penalty": {"log_uniform": [1e-3, 1.0]},
    }

    learning_rate: float = 0.1
    backbone_lr_multiplier: float = 0.0
    epochs: int = 60
    batch_size: int = 64
    penalty: float = 0.1

    def loss(self, outputs, batch):
        codes = sign_straight_through(outputs)
        return cosine_agreement(codes, batch.features) + self.penalty * cubic_penalty(outputs)

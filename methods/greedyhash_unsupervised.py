"""GreedyHash without labels: codes whose cosine similarity is that of the features.

Su, Zhang, Han, Tian. Greedy Hash: Towards Fast Optimization for Accurate Hash Coding in CNN. NeurIPS 2018.
Authors' code: ssppp/GreedyHash.
"""

from dataclasses import dataclass

from methods._straight_through import cosine_agreement, cubic_penalty, sign_straight_through
from methods.base.deep import DeepHashing


@dataclass(kw_only=True)
class GreedyHashUnsupervised(DeepHashing):
    """Minimises the mean of (cos(b_i, b_j) - cos(x_i, x_j))^2 over pairs of the two halves of a batch, plus
    `penalty` times the mean of ||u| - 1|^3; b = sgn(u), straight through; x what the hash head is given.

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
        "penalty": [1e-3, 1e-2, 1e-1, 1.0],
    }

    learning_rate: float = 0.1
    backbone_lr_multiplier: float = 0.0
    epochs: int = 60
    batch_size: int = 64
    penalty: float = 0.1

    def loss(self, outputs, features):
        codes = sign_straight_through(outputs)
        return cosine_agreement(codes, features) + self.penalty * cubic_penalty(outputs)

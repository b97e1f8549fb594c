"""DSH: a contrastive loss on the squared Euclidean distances of a mini-batch.

Liu, Wang, Shan, Chen. Deep Supervised Hashing for Fast Image Retrieval. CVPR 2016. Authors' code:
lhmRyan/deep-supervised-hashing-DSH (Caffe). Also read: weixu000/DSH-pytorch, which is not theirs.
"""

from dataclasses import dataclass

from methods.base.deep import DeepHashing
from methods.base.supervision import similar_share


@dataclass(kw_only=True)
class DSH(DeepHashing):
    r"""Minimises, over all ordered pairs of a batch,

    $$
    \frac{1}{2M^2} \sum_{i,j} \left[ s_{ij} \|u_i - u_j\|^2
    + (1 - s_{ij}) \max(0, m - \|u_i - u_j\|^2) \right]
    + \frac{2 \alpha}{M} \sum_i \sum_k \left| \left| u_{ik} \right| - 1 \right|
    $$

    with m = margin times bits and $\alpha$ the `regularisation`.

    The authors train a small network with m = 2 bits and regularisation 0.01; the other code uses Adam at
    1e-3, weight decay 4e-3, batches of 256, 500 epochs.
    """

    title = "DSH"
    paper = (
        "https://www.cv-foundation.org/openaccess/content_cvpr_2016/papers/"
        "Liu_Deep_Supervised_Hashing_CVPR_2016_paper.pdf"
    )
    colour = "#8C510A"
    marker = "p"
    supervision = "binary"
    family = "pointwise"
    space = {
        "learning_rate": {"log_uniform": [3e-3, 3.0]},
        "margin": {"log_uniform": [0.1, 4.0]},
        "regularisation": {"log_uniform": [1e-4, 1.0]},
    }

    learning_rate: float = 0.3
    epochs: int = 60
    margin: float = 2.0
    regularisation: float = 0.01

    def prepare(self, training_set):
        similar_share(training_set, self.seed)  # refuses a training set without two kinds of pairs

    def loss(self, outputs, batch):
        squares = outputs.square().sum(dim=1)
        distances = (squares[:, None] + squares - 2 * outputs @ outputs.T).clamp(min=0)
        others = (self.margin * self.bits - distances).clamp(min=0)
        pairs = distances.where(batch.affinity > 0, others).mean() / 2
        return pairs + 2 * self.regularisation * (outputs.abs() - 1).abs().sum(dim=1).mean()

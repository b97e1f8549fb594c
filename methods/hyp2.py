"""HyP2: one learned proxy per label, and a margin between items of several labels that share none.

Xu, Chai, Xu, Yuan, Fan, Wang. HyP2 Loss: Beyond Hypersphere Metric Space for Multi-label Image Retrieval.
ACM MM 2022. Authors' code: JerryXu0129/HyP2-Loss.
"""

from dataclasses import dataclass

from torch.nn.functional import normalize

from methods.base.labels import label_matrix
from methods.class_codes.proxies import MarginProxies


@dataclass(kw_only=True)
class HyP2(MarginProxies):
    r"""Minimises the sum of three means,

    $$
    \underset{i, \, c \in Y_i}{\mathrm{mean}} \, (1 - \cos(u_i, p_c))
    + \underset{i, \, c \notin Y_i}{\mathrm{mean}} \, \max(0, \cos(u_i, p_c) - \zeta)
    + \lambda \underset{(i, j)}{\mathrm{mean}} \, \max(0, \cos(u_i, u_j) - \zeta)
    $$

    with $Y_i$ the labels of item i and $p_c$ proxies, which are learned; the last mean, times $\lambda$ =
    `pairs`, is over pairs of items with several labels each that share none.

    zeta None: 1 - 2 d / bits, d the largest known minimum distance of a binary linear code of ceil(log2
    labels) dimensions (methods/class_codes/linear_codes.py). With single labels the third term is empty. The
    authors fine-tune with SGD at 0.01 to 0.02, the proxies at 0.02, momentum 0.9, weight decay 5e-4, half the
    rate every 10 of 100 epochs and batches of 100.
    """

    title = "HyP²"
    paper = "https://doi.org/10.1145/3503161.3548032"
    colour = "#01665E"
    marker = "*"
    supervision = "labels"
    family = "classwise"
    space = {
        "learning_rate": {"log_uniform": [3e-3, 3.0]},
        "proxy_lr_multiplier": [0.01, 0.02, 0.1, 1.0, 10.0],
        "pairs": [0.0, 0.25, 0.5, 1.0, 2.0],
    }

    learning_rate: float = 0.3
    lr_step_size: int = 10
    epochs: int = 60
    batch_size: int = 100
    proxy_lr_multiplier: float = 0.1
    pairs: float = 0.5
    zeta: float | None = None

    def prepare(self, training_set):
        label_matrix(training_set, "hyp2")

    def loss(self, outputs, batch):
        labels = batch.labels
        zeta, cosines, unit = self.margin(labels.shape[1]), self.cosines(outputs, batch), normalize(outputs)
        positive = labels > 0
        near = (1 - cosines)[positive]
        far = (cosines - zeta).clamp(min=0)[~positive]
        value = _mean(near) + _mean(far)
        if self.pairs:
            several = labels.sum(dim=1) > 1
            apart = several[:, None] & several & (labels @ labels.T == 0)
            value = value + self.pairs * _mean((unit @ unit.T - zeta).clamp(min=0)[apart])
        return value


def _mean(values):
    """Mean, 0 of nothing."""
    return values.sum() / max(len(values), 1)

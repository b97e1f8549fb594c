"""ADSH: the codes of the database are learned themselves, a network encodes only the queries.

Jiang, Li. Asymmetric Deep Supervised Hashing. AAAI 2018. Authors' code: jiangqy/ADSH-AAAI2018.
"""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import torch

from methods._supervision import similar_share
from methods.base import Refusal
from methods.base.deep import DeepHashing, shuffled_batches

_COLUMNS = 8192  # items whose affinities with a sample are held at once


@dataclass(kw_only=True)
class ADSH(DeepHashing):
    r"""Minimises, over the network and the codes $v_j \in \{-1, +1\}^b$ of the database,

    $$
    \sum_{i \in \Omega} \sum_j \left(\tanh(u_i)^\top v_j - b S_{ij}\right)^2
    + \gamma \sum_{i \in \Omega} \|v_i - \tanh(u_i)\|^2
    $$

    over a sample $\Omega$ and all items j; $S_{ij}$ is 1 for similar pairs and $-r$ for others, r the number
    of similar pairs of the sample over that of dissimilar ones.

    In rounds: draw `samples` items, train the network on them for `epochs_per_round` epochs, then set V bit
    by bit. The training set is the whole database, with its labels: tables mark that. With `asymmetric` the
    database is encoded by V, else by the network. The authors take 50 rounds of 3 epochs with 2,000 samples,
    gamma 200, batches of 64, SGD at 1e-3, a tenth of it every 10 rounds.
    """

    title = "ADSH"
    paper = "https://arxiv.org/abs/1707.08325"
    colour = "#C51B7D"
    marker = "d"
    supervision = "binary"
    family = "pointwise"
    sees = "database labels"
    space = {
        "learning_rate": {"log_uniform": [1e-2, 3.0]},
        "gamma": [2.0, 20.0, 200.0],
        "epochs": [60, 150],
        "batch_size": [64, 128],
    }

    learning_rate: float = 0.3
    batch_size: int = 64
    epochs: int = 150
    epochs_per_round: int = 3
    samples: int = 2000
    gamma: float = 200.0
    asymmetric: bool = True

    def prepare(self, training_set):
        if self.epochs_per_round < 1 or self.samples < 1:
            raise Refusal("adsh: epochs_per_round and samples must be at least 1")
        similar_share(training_set, self.seed)  # refuses a training set without two kinds of pairs
        return SimpleNamespace(ratio=None)

    def build_criterion(self, training_set):
        found = torch.nn.Module()
        found.register_buffer("codes", torch.zeros(len(training_set), self.bits))
        return found

    def sample(self, items, epoch):
        """The items of the round that an epoch belongs to, int64 (s,), ascending."""
        generator = np.random.default_rng((self.seed, epoch // self.epochs_per_round, 11))
        return np.sort(generator.choice(items, min(self.samples, items), replace=False))

    def draw_batches(self, items, epoch):
        chosen = self.sample(items, epoch)
        batches = shuffled_batches(len(chosen), self.batch_size, (self.seed, epoch))
        return [chosen[batch] for batch in batches]

    def batch_affinity(self, training_set, indices):
        """Similarity of the batch with all items: bool (M, n)."""
        return training_set.affinity(indices, np.arange(len(training_set))) > 0

    def start_epoch(self, epoch, training_set):
        super().start_epoch(epoch, training_set)
        starts_round = epoch % self.epochs_per_round == 0
        if starts_round and epoch:
            self._update_codes(training_set, epoch - 1)
        if starts_round or self.memory.ratio is None:  # None: a training that resumes inside a round
            self.memory.ratio = self._ratio(training_set, self.sample(len(training_set), epoch))

    def loss(self, outputs, affinity, indices):
        codes, relaxed = self.criterion.codes, torch.tanh(outputs)
        target = torch.where(affinity, 1.0, -self.memory.ratio) * self.bits
        squares = (relaxed @ codes.T - target).square().sum()
        own = (codes[indices] - relaxed).square().sum()
        return (squares + self.gamma * own) / (len(codes) * len(outputs))

    def end_training(self, training_set):
        if self.asymmetric:
            self._update_codes(training_set, self.epochs - 1)

    def learned_codes(self):
        return self.criterion_state["codes"] > 0 if self.asymmetric else None

    def _ratio(self, training_set, rows):
        """r: similar over dissimilar pairs of a sample with all items."""
        similar = sum(int(block.sum()) for _, block in _similar_blocks(training_set, rows))
        return similar / max(1, len(rows) * len(training_set) - similar)

    def _update_codes(self, training_set, epoch):
        rows = self.sample(len(training_set), epoch)
        scores = np.tanh(self.raw_scores(training_set.items[rows])).astype(np.float64)
        ratio, product = self._ratio(training_set, rows), np.empty((len(training_set), self.bits))
        for begin, block in _similar_blocks(training_set, rows):
            part = block.T.astype(np.float64) @ scores
            product[begin : begin + block.shape[1]] = (1 + ratio) * part - ratio * scores.sum(axis=0)
        codes = self.criterion.codes.cpu().numpy().astype(np.float64)
        improve_codes(codes, product, scores, rows, self.gamma)
        self.criterion.codes.copy_(torch.from_numpy(codes.astype(np.float32)))


def _similar_blocks(training_set, rows):
    """(first column, similarity of `rows` with some items, bool (len(rows), k)), block by block."""
    for begin in range(0, len(training_set), _COLUMNS):
        columns = np.arange(begin, min(begin + _COLUMNS, len(training_set)))
        yield begin, training_set.affinity(rows, columns) > 0


def improve_codes(codes, product, scores, rows, gamma):
    """One pass over the bits of V in place: v_k = -sgn(Q_k + 2 V_-k U_-k' u_k), Q = -2 bits S'U - 2 gamma U~.

    codes: V float64 (n, bits); product: S'U (n, bits); scores: U of the sample (s, bits), in (-1, 1); rows:
    its items, where U~ is U, and 0 elsewhere. No step raises sum_ij (u_i' v_j - bits S_ij)^2 +
    gamma sum_i |v_i - u_i|^2; where the argument is zero a bit stays, but an initial 0 becomes +1.
    """
    bits = codes.shape[1]
    linear = -2 * bits * product
    linear[rows] -= 2 * gamma * scores
    gram = scores.T @ scores
    np.fill_diagonal(gram, 0)
    for bit in range(bits):
        slope = linear[:, bit] + 2 * codes @ gram[:, bit]
        kept = np.where(codes[:, bit] == 0, 1.0, codes[:, bit])
        codes[:, bit] = np.where(slope == 0, kept, np.where(slope > 0, -1.0, 1.0))

"""ADSH: the codes of the database are learned themselves, a network encodes only the queries.

Jiang, Li. Asymmetric Deep Supervised Hashing. AAAI 2018. Authors' code: jiangqy/ADSH-AAAI2018.
"""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import torch

from methods.base.deep import DeepHashing, shuffled_batches
from methods.base.supervision import similar_share, single_classes

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
    gamma 200, batches of 64, SGD without momentum at 1e-3, a tenth of it every 10 rounds.
    """

    title = "ADSH"
    paper = "https://arxiv.org/abs/1707.08325"
    colour = "#C51B7D"
    marker = "d"
    supervision = "binary"
    family = "pointwise"
    sees = "database labels"
    not_nested = "the codes of the database are learned for all bits together"
    space = {
        "learning_rate": {"log_uniform": [1e-2, 3.0]},
        "gamma": {"log_uniform": [0.2, 200.0]},
        "batch_size": [32, 64, 128, 256],
    }
    bounds = {"epochs": "[1, inf)", "epochs_per_round": "[1, inf)", "samples": "[1, inf)"}

    learning_rate: float = 0.3
    batch_size: int = 64
    epochs: int = 150
    epochs_per_round: int = 3
    samples: int = 2000
    gamma: float = 200.0
    asymmetric: bool = True

    def prepare(self, training_set):
        similar_share(training_set, self.seed)  # refuses a training set without two kinds of pairs
        return SimpleNamespace(similar=Similar(training_set), round=None)

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

    def start_epoch(self, training):
        super().start_epoch(training)
        epoch, memory = training.epoch, training.memory
        starts_round = epoch % self.epochs_per_round == 0
        if starts_round and epoch:
            self._update_codes(training, epoch - 1)
        if starts_round or memory.round is None:  # None: a training that resumes inside a round
            rows = self.sample(len(training.training_set), epoch)
            memory.round = self.start_round(rows, memory.similar, training.criterion.codes)

    def start_round(self, rows, similar, kept):
        """What `loss` needs of V, `kept`, which stays as it is while a round lasts, as tensors on its device.

        sum_j (u'v_j - bits S_ij)^2 = u'V'V u - 2 u'p_i + c_i, with p_i = bits sum_j S_ij v_j and
        c_i = bits^2 sum_j S_ij^2: nothing of the size of V is left for a step. `rows` (s,); p (s, bits);
        c (s,); gram V'V (bits, bits).
        """
        codes = kept.cpu().numpy().astype(np.float64)
        sums, counts = similar.sums_of_rows(rows, codes)
        ratio = _ratio(counts, len(codes))
        tensors = {
            "p": self.bits * ((1 + ratio) * sums - ratio * codes.sum(axis=0)),
            "c": self.bits**2 * (counts + ratio**2 * (len(codes) - counts)),
            "gram": codes.T @ codes,
        }
        found = {name: torch.from_numpy(array).to(kept) for name, array in tensors.items()}
        return SimpleNamespace(rows=torch.from_numpy(rows).to(kept.device), **found)

    def loss(self, outputs, batch):
        codes, now = batch.training.criterion.codes, batch.training.memory.round
        relaxed = torch.tanh(outputs)
        places = torch.searchsorted(now.rows, batch.indices)
        squares = (relaxed * (relaxed @ now.gram - 2 * now.p[places])).sum() + now.c[places].sum()
        own = (codes[batch.indices] - relaxed).square().sum()
        return (squares + self.gamma * own) / (len(codes) * len(outputs))

    def end_training(self, training):
        if self.asymmetric:
            self._update_codes(training, self.epochs - 1)

    def learned_codes(self):
        return self.criterion_state["codes"] > 0 if self.asymmetric else None

    def _update_codes(self, training, epoch):
        training_set, kept = training.training_set, training.criterion.codes
        rows = self.sample(len(training_set), epoch)
        scores = np.tanh(self.raw_scores(training_set.items[rows])).astype(np.float64)
        sums, counts = training.memory.similar.sums_of_items(rows, scores)
        ratio = _ratio(counts, len(training_set))
        product = (1 + ratio) * sums - ratio * scores.sum(axis=0)
        codes = kept.cpu().numpy().astype(np.float64)
        improve_codes(codes, product, scores, rows, self.gamma)
        kept.copy_(torch.from_numpy(codes.astype(np.float32)))


class Similar:
    """Sums over similar items, with s the similarity of some rows with all n items, bool (rows, n).

    Of single classes a sum over each class says all; else s is read block by block.
    """

    def __init__(self, training_set):
        self.training_set, self.classes = training_set, single_classes(training_set)

    def sums_of_rows(self, rows, values):
        """s values, float64 (rows, k), and the similar items of each row, int64 (rows,). values: (n, k)."""
        if self.classes is not None:
            own = self.classes[rows]
            return self._class_sums(self.classes, values)[own], np.bincount(self.classes)[own]
        sums, counts = np.zeros((len(rows), values.shape[1])), np.zeros(len(rows), np.int64)
        for begin, block in self._blocks(rows):
            sums += block @ values[begin : begin + block.shape[1]]
            counts += block.sum(axis=1)
        return sums, counts

    def sums_of_items(self, rows, values):
        """s' values, float64 (n, k), and the similar items of each row, int64 (rows,). values: (rows, k)."""
        if self.classes is not None:
            own = self.classes[rows]
            return self._class_sums(own, values)[self.classes], np.bincount(self.classes)[own]
        sums, counts = np.empty((len(self.training_set), values.shape[1])), np.zeros(len(rows), np.int64)
        for begin, block in self._blocks(rows):
            sums[begin : begin + block.shape[1]] = block.T @ values
            counts += block.sum(axis=1)
        return sums, counts

    def _class_sums(self, classes, values):
        count = self.classes.max() + 1
        return np.stack([np.bincount(classes, column, count) for column in values.T], axis=1)

    def _blocks(self, rows):
        for begin in range(0, len(self.training_set), _COLUMNS):
            columns = np.arange(begin, min(begin + _COLUMNS, len(self.training_set)))
            yield begin, self.training_set.affinity(rows, columns) > 0


def _ratio(counts, items):
    """r: similar over dissimilar pairs of a sample with all items. counts: similar items of each row."""
    similar = int(counts.sum())
    return similar / max(1, len(counts) * items - similar)


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

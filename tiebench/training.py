"""Tie-aware scores inside a training loop: batches of outputs or codes in, a dictionary of metrics out.

The interface is that of torchmetrics (`update`, `compute`, `reset`), on which this does not depend.
"""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import torch

from tiebench import on_device
from tiebench.hamming import MAX_CODE_BITS
from tiebench.inputs import as_array, is_tensor
from tiebench.scoring import Scores, score

ROLES = ("query", "database")
Role = Literal["query", "database"]


class TieAwareRetrieval:
    """Scores of a validation set of queries and database items that arrive in batches.

    bits: b; at: cutoffs K; ap_at_normaliser, threads: as in `tiebench.score`. Only packed codes and labels
    are kept, b/8 bytes a code, on the device of the outputs; a GPU is not waited for before `compute`.
    `compute` equals `tiebench.score` on the same codes and labels, exactly, whatever the batches.

    >>> import torch
    >>> from tiebench.training import TieAwareRetrieval
    >>> metric = TieAwareRetrieval(bits=4, at=(1,))
    >>> outputs = torch.tensor([[0.9, -0.2, 0.3, -1.0], [-0.5, -0.1, 0.4, -0.7]])
    >>> metric.update(outputs, torch.tensor([0, 1]), "database")
    >>> metric.update(outputs[:1], torch.tensor([0]), "query")
    >>> values = metric.compute()
    >>> values["ap"], values["ap@1"], values["queries"]
    (1.0, 1.0, 1)
    >>> metric.reset()
    """

    def __init__(
        self,
        bits: int,
        at: int | Sequence[int] = (),
        ap_at_normaliser: str = "hits",
        threads: int = 1,
    ) -> None:
        if bits != int(bits) or not 1 <= bits <= MAX_CODE_BITS:
            raise ValueError(f"bits must be an integer between 1 and {MAX_CODE_BITS}, not {bits}")
        self.bits = int(bits)
        self.at = at
        self.ap_at_normaliser = ap_at_normaliser
        self.threads = threads
        self.reset()

    def reset(self) -> None:
        """Forget all batches."""
        self._codes: dict[str, list[torch.Tensor]] = {role: [] for role in ROLES}
        self._labels: dict[str, list[np.ndarray | torch.Tensor]] = {role: [] for role in ROLES}
        self._has_nan: list[torch.Tensor] = []

    @torch.no_grad()
    def update(self, codes: Any, labels: Any, role: Role) -> None:
        """Add a batch of queries or of database items.

        codes: (n, b) tensor or array of any device and type: a network's real outputs, whose signs are the
        code (bit 1 where positive), or codes in {-1, +1}, {0, 1} or bool; or packed uint8 (n, ceil(b/8)).
        labels: (n,) integers or strings, or 0/1 (n, labels), tensor or array. role: "query" or "database".
        Raises ValueError for other shapes or roles.
        """
        if role not in ROLES:
            raise ValueError(f"role must be 'query' or 'database', not {role!r}")
        codes = codes.detach() if is_tensor(codes) else torch.as_tensor(np.asarray(codes))
        if codes.ndim != 2 or codes.is_complex():
            raise ValueError(f"codes must be real (n, {self.bits}), not {codes.dtype} {tuple(codes.shape)}")
        width = codes.shape[1]
        bytes_of_code = -(-self.bits // 8)
        if width == self.bits:
            packed = on_device.pack(codes > 0)
            if codes.is_floating_point():
                self._has_nan.append(
                    codes.isnan().any()
                )  # looked at in `compute`: here a GPU would be waited for
        elif codes.dtype == torch.uint8 and width == bytes_of_code:
            packed = codes.clone()
        else:
            raise ValueError(
                f"codes of {self.bits} bits must be (n, {self.bits}), or packed uint8 (n, {bytes_of_code}), "
                f"not {codes.dtype} {tuple(codes.shape)}"
            )
        labels = labels.detach().clone() if is_tensor(labels) else np.array(labels)
        if labels.ndim not in (1, 2) or len(labels) != len(codes):
            raise ValueError(f"{len(codes)} codes have labels of shape {tuple(labels.shape)}")
        self._codes[role].append(packed)
        self._labels[role].append(labels)

    def compute(self) -> dict[str, float]:
        """The mean of every metric, by its name in docs/metrics.md, and the counts (`Scores.means`).

        Raises ValueError if there are no queries or no database items, if outputs held a NaN, or if labels
        do not fit together.
        """
        return self.scores().means

    def scores(self) -> Scores:
        """As `compute`, with the scores of each query, in the order of the updates, and the curves."""
        for role in ROLES:
            if not self._codes[role]:
                raise ValueError(f"there are no {role} codes: call update(codes, labels, {role!r}) first")
        if any(bool(found) for found in self._has_nan):
            raise ValueError("outputs held a NaN, which has no sign")
        query, database = (torch.cat(self._codes[role]) for role in ROLES)
        query_labels, database_labels = (_joined(self._labels[role]) for role in ROLES)
        return score(
            query,
            database,
            query_labels,
            database_labels,
            at=self.at,
            ap_at_normaliser=self.ap_at_normaliser,
            threads=self.threads,
            bits=self.bits,
        )


def _joined(batches):
    """Labels of all batches; on the device where they all are tensors of one."""
    if all(is_tensor(labels) for labels in batches):
        return torch.cat(batches)
    return np.concatenate([as_array(labels) for labels in batches])

"""Tie-aware scores inside a training loop: batches of outputs or codes in, a dictionary of metrics out.

The interface is that of torchmetrics (`update`, `compute`, `reset`), on which this does not depend.
"""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import torch

from tiebench.codes.packing import check_bits
from tiebench.counting import on_device
from tiebench.rankings.ties import check_normaliser
from tiebench.scoring import Scores, score
from tiebench.values import (
    as_array,
    check_form,
    cutoffs,
    form,
    hint_of_packed,
    integer,
    is_tensor,
    is_text,
)
from tiebench.values import labels as labels_of

ROLES = ("query", "database")
Role = Literal["query", "database"]
_NAN = "outputs held a NaN, which has no sign"


class TieAwareRetrieval:
    """Scores of a validation set of queries and database items that arrive in batches.

    Only packed codes and labels are kept, b/8 bytes a code, on the device of the outputs; a GPU is not waited
    for before `compute`, which equals `tiebench.score` on the same codes and labels, exactly, whatever the
    batches.

    Parameters
    ----------
    bits : int
        b.
    at : int or sequence of int
        Cutoffs K.
    ap_at_normaliser, threads
        As of `tiebench.score`.

    Raises
    ------
    ValueError
        For numbers and normalisers that `tiebench.score` refuses.

    Examples
    --------
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
        self.bits = check_bits(bits)
        self.at = cutoffs(at)
        self.ap_at_normaliser = check_normaliser(ap_at_normaliser)
        self.threads = integer(threads, "threads", 1)
        self.reset()

    def reset(self) -> None:
        """Forget all batches."""
        self._codes: dict[str, list[torch.Tensor]] = {role: [] for role in ROLES}
        self._labels: dict[str, list[np.ndarray | torch.Tensor]] = {role: [] for role in ROLES}
        self._has_nan: list[torch.Tensor] = []

    @torch.no_grad()
    def update(self, codes: Any, labels: Any, role: Role) -> None:
        """Add a batch of queries or of database items.

        Parameters
        ----------
        codes : tensor or array (n, b) of any device and type
            A network's real outputs, whose signs are the code (bit 1 where positive), or codes in {-1, +1},
            {0, 1} or bool; or packed uint8 (n, ceil(b/8)).
        labels : tensor or array
            Integers or strings (n,), or 0/1 (n, labels).
        role : str
            "query" or "database".

        Raises
        ------
        ValueError
            For other shapes or roles, for a batch without codes, for a NaN (of a GPU, `compute` does), and
            for labels that do not fit those of earlier batches.
        """
        if role not in ROLES:
            raise ValueError(f"role must be 'query' or 'database', not {role!r}")
        codes = codes.detach() if is_tensor(codes) else _tensor(codes)
        if codes.ndim != 2 or codes.is_complex():
            raise ValueError(f"codes must be real (n, {self.bits}), not {form(codes)}")
        if len(codes) == 0:
            raise ValueError(f"a batch of {role} codes is empty: leave it out")
        width = codes.shape[1]
        bytes_of_code = -(-self.bits // 8)
        if width == self.bits:
            packed = on_device.pack(on_device.comparable(codes) > 0)
            if codes.is_floating_point():
                has_nan = codes.isnan().any()
                if codes.is_cuda:  # which would be waited for: it is looked at in `compute`
                    self._has_nan.append(has_nan)
                elif bool(has_nan):
                    raise ValueError(_NAN)
        elif codes.dtype == torch.uint8 and width == bytes_of_code:
            packed = codes.clone()
        else:
            raise ValueError(
                f"codes of {self.bits} bits must be (n, {self.bits}), or packed uint8 (n, {bytes_of_code}), "
                f"not {form(codes)}{hint_of_packed(codes, self.bits)}"
            )
        labels = self._checked_labels(labels, len(codes))
        self._codes[role].append(packed)
        self._labels[role].append(labels)

    def _checked_labels(self, labels, items):
        """A copy of a batch's labels; on a GPU, where their values are read at the end."""
        name = "labels of a batch"
        if is_tensor(labels) and labels.is_cuda:
            check_form(labels, name, items)
            labels = labels.detach().clone()
        else:
            labels = labels_of(np.array(as_array(labels, name)), name, items)
        if len(labels) != items:
            raise ValueError(f"{items} codes have labels of shape {tuple(labels.shape)}")
        for earlier in (*self._labels["query"][:1], *self._labels["database"][:1]):
            if _kind(labels) != _kind(earlier):
                raise ValueError(
                    f"{name} are {_kind(labels)}, those of an earlier one {_kind(earlier)}: all must be alike"
                )
        return labels

    def compute(self) -> dict[str, float]:
        """The mean of every metric, by its name in docs/metrics.md, and the counts (`Scores.means`).

        Raises
        ------
        ValueError
            If there are no queries or no database items, if outputs held a NaN, or if labels do not fit
            together.
        """
        return self.scores().means

    def scores(self) -> Scores:
        """As `compute`, with the scores of each query, in the order of the updates, and the curves."""
        for role in ROLES:
            if not self._codes[role]:
                raise ValueError(f"there are no {role} codes: call update(codes, labels, {role!r}) first")
        if any(bool(found) for found in self._has_nan):
            raise ValueError(_NAN)
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


def _tensor(codes):
    """Codes of an array or list as a tensor."""
    array = as_array(codes, "codes")
    if array.dtype.kind not in "biuf":
        raise ValueError(f"codes must be real numbers, not {form(array)}")
    native = array.astype(np.float64 if array.dtype == np.longdouble else array.dtype.newbyteorder("="))
    return torch.from_numpy(native)


def _kind(labels):
    """What labels of all batches have in common."""
    if labels.ndim == 2:
        return f"0/1 of {labels.shape[1]} columns"
    return "classes as text" if not is_tensor(labels) and is_text(labels) else "classes as integers"


def _joined(batches):
    """Labels of all batches; on the device where they all are tensors of one."""
    if all(is_tensor(labels) for labels in batches):
        return torch.cat(batches)
    return np.concatenate([as_array(labels) for labels in batches])

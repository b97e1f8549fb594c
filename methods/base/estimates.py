"""Methods that keep two numbers beside each code, from which a query estimates its distance to the item."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from methods import base
from methods.base import HashingMethod


@dataclass(kw_only=True)
class EstimatedHashing(HashingMethod):
    r"""Codes are signs of residuals, and ranked by an estimate of the Euclidean distance besides.

    With c a centroid, r the residual x - c as it is coded, in b coordinates, and s that of a query,

    $$|q - x|^2 \approx |q - c|^2 + |x - c|^2
      - 2\,\frac{|x - c|^2}{\sum_i |r_i|} \sum_i \mathrm{sgn}(r_i)\,s_i$$

    with |x - c| the length of the whole residual, so that an item keeps its code and two numbers. The
    estimate is exact for the item itself as a query. A method defines `raw_scores`, the r of items,
    `squared_lengths` and `roundings`.

    query_bits: to how many bits the coordinates of a query are rounded, from 1 to 8, between its smallest and
    its largest; null keeps them as they are.
    """

    bounds = {"query_bits": "[1, 8]"}

    query_bits: int | None = 4

    @abstractmethod
    def raw_scores(self, items: Any) -> NDArray[np.float64]:
        """r of items: (n, bits)."""

    @abstractmethod
    def squared_lengths(self, items: np.ndarray) -> NDArray[np.float64]:
        """|x - c|^2 of items: (n,)."""

    @abstractmethod
    def roundings(self) -> np.ndarray | float:
        """What is added to coordinates, in steps, before they are cut to integers: (bits,) or one number."""

    def query_vectors(self, queries: Any) -> NDArray[np.float32]:
        """s of queries, rounded to `query_bits`: (Q, bits)."""
        coordinates = self.raw_scores(queries)
        if self.query_bits is not None:
            coordinates = rounded(coordinates, self.query_bits, self.roundings())
        return coordinates.astype(np.float32)

    def item_factors(self, items: Any) -> NDArray[np.float32]:
        """What is kept of items beside their codes: (n, 2), the factor of the inner product of signs and
        query, and what is added, -|x - c|^2; 0 of the centroid itself."""
        found = np.zeros((len(items), 2), np.float32)
        for begin in range(0, len(items), base.ENCODE_ROWS):
            block = np.asarray(items[begin : begin + base.ENCODE_ROWS])
            squares, sums = self.squared_lengths(block), np.abs(self.raw_scores(block)).sum(axis=1)
            factors = np.divide(2 * squares, sums, out=np.zeros(len(block)), where=sums > 0)
            found[begin : begin + len(block)] = np.stack([factors, -squares], axis=1)
        return found


def rounded(coordinates: NDArray[np.float64], bits: int, offset: np.ndarray | float) -> NDArray[np.float64]:
    """Rows on 2^bits evenly spaced values from their smallest to their largest.

    coordinates: (n, d); offset: in steps, (d,) or one number: 0.5 rounds to the nearest value, and one that
    is uniform on [0, 1) keeps each coordinate in expectation.
    """
    low = coordinates.min(axis=1, keepdims=True)
    step = (coordinates.max(axis=1, keepdims=True) - low) / (2**bits - 1)
    places = np.divide(coordinates - low, step, out=np.zeros_like(coordinates), where=step > 0)
    return low + step * np.clip(np.floor(places + offset), 0, 2**bits - 1)

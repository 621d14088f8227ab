"""Drawing tokens at random, with the numbers that ONNX Runtime draws."""

from __future__ import annotations

import numpy as np
from attrs import define, frozen

from onert.ir.dtype import Array
from onert.ir.value import ByIdentity, Value

_FACTOR, _MODULUS = 16807, 2**31 - 1
"""Of the generator that C++ calls minstd_rand0; libstdc++ combines two of its numbers to one between 0 and 1."""


@define(eq=False)
class Generator(ByIdentity):
    """Random numbers between 0 and 1 from a seed."""

    state: int

    @staticmethod
    def of(seed: int) -> Generator:
        return Generator((seed & 0xFFFFFFFF) % _MODULUS or 1)

    def _next(self) -> int:
        self.state = self.state * _FACTOR % _MODULUS
        return self.state - 1

    def draw(self) -> float:
        apart = float(_MODULUS - 1)
        found = (float(self._next()) + float(self._next()) * apart) / (apart * apart)
        return min(found, float(np.nextafter(1.0, 0.0)))


@frozen
class Drawing(Value):
    """Which tokens may be drawn: the most probable ones, whose probabilities add up to `top`, and at least `least`.

    The scores of others become `rest`. `among` includes the token with which the sum exceeds `top` only if all before
    it do not (ONNX Runtime's `custom`).
    """

    top: float
    least: int = 1
    rest: float = -1e20
    among: bool = False

    def draw(self, scores: Array, numbers: Generator) -> Array:
        """A token for each row of scores, which change in place."""
        return np.array([self._of_row(row, numbers) for row in scores], np.int32)

    def _of_row(self, row: Array, numbers: Generator) -> int:
        order = np.argsort(-row if self.among else row, kind="stable")
        powers = np.exp(row[order] - row.max())
        sums = (powers / powers.sum()).cumsum(dtype=np.float32)
        if self.among:
            row[order[1:][sums[:-1] > np.float32(self.top)]] = self.rest
        else:
            out = sums <= np.float32(1) - np.float32(self.top)
            out[max(len(row) - self.least, 1) :] = False
            row[order[out]] = self.rest
        shares = np.exp(row.astype(np.float64) - float(row.max())).cumsum()
        return min(int(np.searchsorted(shares, numbers.draw() * shares[-1], side="right")), len(row) - 1)

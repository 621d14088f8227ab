"""Winograd's minimal filtering: which numbers stand for outputs, windows and pictures, and how they are transformed.

A tile of `outputs` results along an axis is `A (G w * B x)`: `x` are the `points` pixels that it sees, `w` the window,
`*` the product element by element, and all three matrices belong to polynomials through the same points (Lavin and
Gray, "Fast Algorithms for Convolutional Neural Networks"). Over two axes each is applied to rows and to columns.

A window of stride 2 is two: its outer weights slide over the even pixels, its middle one over the odd ones. For two
results the first take three products and the second two, which have their weight in common.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import prod

import numpy as np
from attrs import frozen

from onert.ir.value import Value
from onert_llvm.irbuilder import Kernel, Val

Matrix = tuple[tuple[float, ...], ...]
WINDOW = 3
_POINTS = {2: (0, 1, -1), 4: (0, 0.75, -0.75, 1.5, -1.5)}
"""Where polynomials are evaluated, beside infinity, by the outputs of a tile. Fewer points lose less in sums, and so do
those around 1: results with 3/4 and 3/2 are three times as near to the true ones as those with 1 and 2.
"""


@frozen
class Form(Value):
    """F(outputs x outputs, 3 x 3), or the same for a stride of 2."""

    outputs: int
    stride: int = 1

    @property
    def points(self) -> int:
        """Pixels that a tile sees along an axis, and products that it takes."""
        return (self.outputs - 1) * self.stride + WINDOW

    @property
    def across(self) -> int:
        """Transformed weights along an axis: the last is that of the products that follow, too."""
        return self.points + 1 - self.stride

    def weight(self, k: Kernel, place: Val) -> Val:
        """Which of the transformed weights a product has."""
        if self.across == self.points:
            return place
        last = self.across - 1
        return (place // self.points).min(last) * self.across + (place % self.points).min(last)

    @property
    def places(self) -> int:
        """Products that a tile takes for each channel."""
        return self.points**2

    @property
    def picture(self) -> Matrix:
        """What pixels are multiplied by: `[points, points]`."""
        return _matrices(self.outputs, self.stride)[0]

    @property
    def weights(self) -> Matrix:
        """What a window is multiplied by: `[across, 3]`."""
        return _matrices(self.outputs, self.stride)[1]

    @property
    def results(self) -> Matrix:
        """What products are multiplied by: `[outputs, points]`."""
        return _matrices(self.outputs, self.stride)[2]

    @property
    def window(self) -> Matrix:
        """What gives a window back from its transform: `[3, across]`. A row of equal weights or zeros stays one."""
        if self.stride == 2:
            return (1.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0), (0.0, 0.0, 1.0, 0.0)
        rest = (0.0,) * (self.points - WINDOW)
        half = 0.5 / self.weights[1][1]
        return (1 / self.weights[0][0], 0.0, 0.0, *rest), (0.0, half, -half, *rest), (0.0, 0.0, *rest, 1.0)


_BY_TWOS: tuple[Matrix, Matrix, Matrix] = (
    ((1, 0, -1, 0, 0), (0, 0, 1, 0, 0), (0, 0, -1, 0, 1), (0, 1, 0, 0, 0), (0, 0, 0, 1, 0)),
    ((1, 0, 0), (1, 0, 1), (0, 0, 1), (0, 1, 0)),
    ((1, 1, 0, 1, 0), (0, 1, 1, 0, 1)),
)
"""Two outputs of a stride of 2, from five pixels."""


@cache
def _matrices(outputs: int, stride: int) -> tuple[Matrix, Matrix, Matrix]:
    if stride == 2:
        return _BY_TWOS
    points = _POINTS[outputs]
    picture, weights = [], []
    for point in points:
        others = [p for p in points if p != point]
        scale = prod(point - p for p in others)
        sign = -1.0 if scale < 0 else 1.0
        picture.append((*(sign * float(c) for c in np.poly(others)[::-1]), 0.0))
        weights.append(tuple(point**i / abs(scale) for i in range(WINDOW)))
    picture.append(tuple(float(c) for c in np.poly(points)[::-1]))
    weights.append((0.0, 0.0, 1.0))
    results = ((*(float(p**i) for p in points), float(i == outputs - 1)) for i in range(outputs))
    return tuple(picture), tuple(weights), tuple(results)


def transform(k: Kernel, matrix: Matrix, values: Sequence[Val]) -> list[Val]:
    """The products of a matrix with values, in few additions.

    Columns, and then rows, that are alike but for signs share their sums: points come in pairs of both signs.
    """
    matrix, values = _columns_paired(matrix, values)
    found: dict[int, Val] = {}
    for i, row in enumerate(matrix):
        if i in found:
            continue
        twin = next((j for j in range(i + 1, len(matrix)) if j not in found and _alike(row, matrix[j])), None)
        if twin is None:
            found[i] = _sum(k, row, values)
        else:
            same = _sum(k, [a if a == b else 0.0 for a, b in zip(row, matrix[twin], strict=True)], values)
            other = _sum(k, [a if a != b else 0.0 for a, b in zip(row, matrix[twin], strict=True)], values)
            found[i], found[twin] = same + other, same - other
    return [found[i] for i in range(len(matrix))]


def _columns_paired(matrix: Matrix, values: Sequence[Val]) -> tuple[Matrix, list[Val]]:
    """The same product with sums and differences in the place of values whose columns are alike but for signs."""
    columns, found = list(zip(*matrix, strict=True)), list(values)
    for i, j in ((i, i + 1) for i in range(len(columns) - 1)):
        if _alike(columns[i], columns[j]):
            both = [(a if a == b else 0.0, a if a != b else 0.0) for a, b in zip(columns[i], columns[j], strict=True)]
            found[i], found[j] = found[i] + found[j], found[i] - found[j]
            columns[i], columns[j] = tuple(s for s, _ in both), tuple(d for _, d in both)
    return tuple(zip(*columns, strict=True)), found


def _alike(one: Sequence[float], other: Sequence[float]) -> bool:
    """Whether two rows are alike but for some signs, both of which occur."""
    if [abs(a) for a in one] != [abs(b) for b in other]:
        return False
    signs = {a == b for a, b in zip(one, other, strict=True) if a}
    return len(signs) == 2


def _sum(k: Kernel, factors: Sequence[float], values: Sequence[Val]) -> Val:
    """The sum of values times factors."""
    terms = sorted(((f, v) for f, v in zip(factors, values, strict=True) if f), key=lambda term: term[0] != 1)
    (factor, total), *rest = terms
    total = total if factor == 1 else total * factor
    for factor, value in rest:
        if abs(factor) == 1:
            total = total + value if factor > 0 else total - value
        else:
            total = k.fma(value, total.like(factor), total)
    return total

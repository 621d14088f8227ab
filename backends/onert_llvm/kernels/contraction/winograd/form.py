"""Winograd's minimal filtering: its forms, their matrices, and how transforms are emitted.

A tile of `outputs` results along an axis is `A (G w * B x)`: `x` are the `points` input pixels, `w` is the window, `*`
the element-wise product, and all three matrices belong to polynomials through the same points (Lavin and Gray, "Fast
Algorithms for Convolutional Neural Networks"). In two dimensions each is applied to rows and to columns.

A window of stride 2 is split in two: its outer weights slide over the even pixels, its middle one over the odd ones.
For two results the former takes three products and the latter two, which share their weight.

Windows other than 3 by 3 are cut along one axis into parts of two to four weights, a stride apart. Each part sees its
own pixels and is transformed only along that axis; the products of all parts are terms of the same sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import prod
from typing import Any

import numpy as np
from attrs import frozen

from onert.ir.value import Value
from onert_llvm.irbuilder import Kernel, Val

Matrix = tuple[tuple[float, ...], ...]
WINDOW = 3
_POINTS = {4: (0, 1, -1), 6: (0, 0.75, -0.75, 1.5, -1.5)}
"""The finite evaluation points, by the number of points including infinity. Fewer points lose less accuracy in sums, as
do points near 1: results with 3/4 and 3/2 are three times as accurate as those with 1 and 2.
"""


SQUARE = (WINDOW, WINDOW)
_LINE_POINTS = 6
"""The number of points for a part of a window that is cut along one axis."""
_WHOLE: Matrix = ((1.0,),)
"""The identity, for an axis that is not transformed."""

Sizes = tuple[int, int]
"""Sizes along columns (down), then along rows (across)."""


@frozen
class Form(Value):
    """F(outputs x outputs, 3 x 3), or the same for a stride of 2, or `outputs` along the only transformed `axis` of a
    `window`: 0 is down, 1 across. If it is `dilated`, pixels and outputs of a tile are a dilation apart. `beside` is
    the stride along the other axis.
    """

    outputs: int
    stride: int = 1
    window: Sizes = SQUARE
    axis: int | None = None
    dilated: bool = False
    beside: int = 1

    def _sizes(self, size: int) -> Sizes:
        """A size along each transformed axis, and 1 along another."""
        return size if self.axis in (0, None) else 1, size if self.axis in (1, None) else 1

    @property
    def points(self) -> int:
        """The pixels that a tile sees along an axis, and its number of products."""
        return (self.outputs - 1) * self.stride + WINDOW if self.axis is None else _LINE_POINTS

    @property
    def across(self) -> int:
        """Transformed weights along an axis; with a stride of 2 the last one serves two products."""
        return self.points + 1 - self.stride if self.axis is None else self.points

    @property
    def strides(self) -> Sizes:
        """The distances between windows."""
        return self.stride if self.axis in (0, None) else self.beside, self.stride if self.axis != 0 else self.beside

    @property
    def apart(self) -> Sizes:
        """The distances between the weights of a part."""
        return self.stride if self.axis == 0 else 1, self.stride if self.axis == 1 else 1

    @property
    def tile(self) -> Sizes:
        """The outputs of a tile."""
        return self._sizes(self.outputs)

    @property
    def input_tile(self) -> Sizes:
        """The pixels that a part of a window sees in a tile."""
        return self._sizes(self.points)

    @property
    def weight_tile(self) -> Sizes:
        """The number of transformed weights."""
        return self._sizes(self.across)

    @property
    def part(self) -> Sizes:
        """The weights of a part of a window."""
        return self._sizes(self.points + 1 - self.outputs if self.axis is not None else WINDOW)

    @property
    def parts(self) -> Sizes:
        """The number of parts of a window."""
        down, across = (
            -(-size // (weights * apart)) * apart
            for size, weights, apart in zip(self.window, self.part, self.apart, strict=True)
        )
        return down, across

    def first(self, part: Any) -> tuple[Any, Any]:
        """The first weight of a part of the window, by the part's number."""
        across = self.parts[1]
        down, right = (
            number if weights * apart == 1 else number // apart * (weights * apart) + number % apart
            for number, weights, apart in zip((part // across, part % across), self.part, self.apart, strict=True)
        )
        return down, right

    def weight(self, k: Kernel, place: Val) -> Val:
        """The index of the transformed weight for a product."""
        if self.across == self.points:
            return place
        last = self.across - 1
        return (place // self.points).min(last) * self.across + (place % self.points).min(last)

    @property
    def places(self) -> int:
        """The products of a tile for each channel."""
        return prod(self.input_tile)

    @property
    def input_transforms(self) -> tuple[Matrix, Matrix]:
        """The input transforms along each axis: `[points, points]`."""
        return self._along(self._matrices[0])

    @property
    def weight_transform(self) -> Matrix:
        """The weight transform of a part of a window: `[across, weights]`."""
        return self._matrices[1]

    @property
    def output_transforms(self) -> tuple[Matrix, Matrix]:
        """The output transforms along each axis: `[outputs, points]`."""
        return self._along(self._matrices[2])

    @property
    def inverse_weight_transforms(self) -> tuple[Matrix, Matrix]:
        """The inverses of the weight transform along each axis: `[weights, across]`. A row of equal weights or zeros
        stays one.
        """
        if self.axis is None and self.stride == 2:
            return self._along(((1.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0), (0.0, 0.0, 1.0, 0.0)))
        (first, *_), (even, odd, *more), *_ = self.weight_transform
        rest, half = (0.0,) * (self.points - 3), 0.5 / odd
        found = [(1 / first, 0.0, 0.0, *rest), (0.0, half, -half, *rest), (0.0, 0.0, *rest, 1.0)]
        if not more:
            del found[1]
        elif len(more) > 1:
            square, cube = more
            found[1] = (0.0, half, -half, *rest[1:], -cube / odd)
            found.insert(2, (-even / square / first, 0.5 / square, 0.5 / square, *rest))
        return self._along(tuple(found))

    @property
    def keeps_zeros(self) -> bool:
        """Whether `inverse_weight_transforms` reproduces zeros exactly: in F(2x2, 3x3) it adds numbers that cancel;
        packing ensures this for the middle of a window.
        """
        return self.axis is None and self.outputs == 2 and self.stride == 1

    @property
    def _matrices(self) -> tuple[Matrix, Matrix, Matrix]:
        return _BY_TWOS if self.axis is None and self.stride == 2 else _matrices(self.outputs, self.points)

    def _along(self, matrix: Matrix) -> tuple[Matrix, Matrix]:
        """The matrix for transformed axes, the identity for others."""
        return matrix if self.axis in (0, None) else _WHOLE, matrix if self.axis in (1, None) else _WHOLE


def line_form(window: Sizes, strides: Sizes = (1, 1), dilated: bool = False) -> Form:
    """The form with the fewest products for windows along one axis, or for each row of windows."""
    axis = 1 if window[1] > 1 else 0
    forms = (Form(outputs, strides[axis], window, axis, dilated, strides[1 - axis]) for outputs in (4, 3, 5))
    return min(forms, key=lambda form: prod(form.parts) / form.outputs)


_BY_TWOS: tuple[Matrix, Matrix, Matrix] = (
    ((1, 0, -1, 0, 0), (0, 0, 1, 0, 0), (0, 0, -1, 0, 1), (0, 1, 0, 0, 0), (0, 0, 0, 1, 0)),
    ((1, 0, 0), (1, 0, 1), (0, 0, 1), (0, 1, 0)),
    ((1, 1, 0, 1, 0), (0, 1, 1, 0, 1)),
)
"""Two outputs with a stride of 2, from five pixels."""


@cache
def _matrices(outputs: int, size: int) -> tuple[Matrix, Matrix, Matrix]:
    points, taps = _POINTS[size], size + 1 - outputs
    picture, weights = [], []
    for point in points:
        others = [p for p in points if p != point]
        scale = prod(point - p for p in others)
        sign = -1.0 if scale < 0 else 1.0
        picture.append((*(sign * float(c) for c in np.poly(others)[::-1]), 0.0))
        weights.append(tuple(point**i / abs(scale) for i in range(taps)))
    picture.append(tuple(float(c) for c in np.poly(points)[::-1]))
    weights.append((*(0.0,) * (taps - 1), 1.0))
    results = ((*(float(p**i) for p in points), float(i == outputs - 1)) for i in range(outputs))
    return tuple(picture), tuple(weights), tuple(results)


def transform(k: Kernel, matrix: Matrix, values: Sequence[Val]) -> list[Val]:
    """The product of a matrix with values, with few additions.

    Columns, then rows, that are equal up to signs share their sums: points come in pairs of both signs.
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
    """The same product, with sums and differences in place of values whose columns are equal up to signs."""
    columns, found = list(zip(*matrix, strict=True)), list(values)
    for i, j in ((i, i + 1) for i in range(len(columns) - 1)):
        if _alike(columns[i], columns[j]):
            both = [(a if a == b else 0.0, a if a != b else 0.0) for a, b in zip(columns[i], columns[j], strict=True)]
            found[i], found[j] = found[i] + found[j], found[i] - found[j]
            columns[i], columns[j] = tuple(s for s, _ in both), tuple(d for _, d in both)
    return tuple(zip(*columns, strict=True)), found


def _alike(one: Sequence[float], other: Sequence[float]) -> bool:
    """Whether two rows have equal magnitudes, and both equal and opposite signs occur."""
    if [abs(a) for a in one] != [abs(b) for b in other]:
        return False
    signs = {a == b for a, b in zip(one, other, strict=True) if a}
    return len(signs) == 2


def _sum(k: Kernel, factors: Sequence[float], values: Sequence[Val]) -> Val:
    """The weighted sum of values."""
    terms = sorted(((f, v) for f, v in zip(factors, values, strict=True) if f), key=lambda term: term[0] != 1)
    (factor, total), *rest = terms
    total = total if factor == 1 else total * factor
    for factor, value in rest:
        if abs(factor) == 1:
            total = total + value if factor > 0 else total - value
        else:
            total = k.fma(value, total.like(factor), total)
    return total

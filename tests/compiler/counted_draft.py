"""Graphs under construction whose tensor lengths are known only at run time."""

from __future__ import annotations

import numpy as np
from attrs import field, frozen

from onert.ir import Subgraph
from onert.ir.builder import Builder
from onert.ir.ops.data_movement.fill import Where
from onert.ir.ops.data_movement.gather import Gather
from onert.ir.ops.data_movement.reshape import Reshape, ShapeOf
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind

COLUMNS = 4


@frozen(eq=False)
class Draft:
    """A graph under construction: tensors f32[n, 4] whose n is known only at run time (`rows`), and int32 scalars that
    hold such lengths (`numbers`)."""

    b: Builder
    rng: np.random.Generator
    inner: list[Subgraph]
    rows: list[int] = field(factory=list)
    numbers: list[int] = field(factory=list)

    def row(self, *values: int) -> int:
        return self.b.constant(np.int32(values))

    def one(self, value: int) -> int:
        return self.b.constant(np.int32(value))

    def real(self, value: float) -> int:
        return self.b.constant(np.float32(value))

    def whole(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high))

    def any(self) -> int:
        """A tensor, preferring recent ones so that graphs grow deep."""
        return self.rows[int(len(self.rows) * self.rng.random() ** 0.5)]

    def number(self) -> int:
        """A number of rows that is computed at run time."""
        if self.numbers and self.rng.random() < 0.5:
            return self.numbers[self.whole(0, len(self.numbers))]
        self.numbers.append(self.b.add(Gather(0), self.b.add(ShapeOf(), self.any()), self.one(0)))
        return self.numbers[-1]

    def places(self, x: int) -> int:
        """The indices of the rows whose element in some column exceeds a threshold."""
        column = self.b.add(Gather(1), x, self.one(self.whole(0, COLUMNS)))
        above = self.b.add(Comparison(ComparisonKind.GREATER), column, self.real(self.rng.uniform(-0.6, 0.6)))
        return self.b.add(Reshape(), self.b.add(Where(), above), self.row(-1))

    def least(self, number: int, most: int) -> int:
        return self.b.add(Binary(BinaryKind.MINIMUM), number, self.one(most))

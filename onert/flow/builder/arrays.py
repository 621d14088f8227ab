"""Matrix products, shapes, and data movement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from onert.flow.graph import DT_INT32, Variable
from onert.ir import ModelError

from .core import Core


class Arrays(Core):
    """Operations on shapes, and matrix products."""

    def matmul(self, x: Any, y: Any, name: str | None = None) -> Variable:
        """The product of matrices, batched if the rank is greater than 2."""
        x, y = self.value(x), self.value(y)
        if x.rank() < 2 or y.rank() < 2:
            raise ModelError(f"matmul is given shapes {x.shape} and {y.shape}, expected at least 2 dimensions")
        if x.shape[-1] != y.shape[-2]:
            raise ModelError(f"matmul is given shapes {x.shape} and {y.shape}, expected equal depths")
        return self.made("MatMul", [x, y], name, [*x.shape[:-2], x.shape[-2], y.shape[-1]])

    def t(self, x: Any, perm: Sequence[int] | None = None, name: str | None = None) -> Variable:
        """The transpose: axes in the order `perm`, or in reverse."""
        x = self.value(x)
        rank = x.rank()
        order = list(reversed(range(rank))) if perm is None else [int(axis) for axis in perm]
        if sorted(order) != list(range(rank)):
            raise ModelError(f"'{x.name}' has rank {rank} and cannot be transposed by {order}")
        if order == list(range(rank)):
            return self.op("Identity", [x], name)
        result = self.made("Transpose", [x], name, [x.shape[axis] for axis in order])
        if perm is not None and (rank != 2 or order != [1, 0]):
            assert result.producer is not None
            result.producer.add_attr("perm", order)
        return result

    def transpose(self, x: Any, perm: Sequence[int] | None = None, name: str | None = None) -> Variable:
        """The transpose: axes in the order `perm`, or in reverse."""
        return self.t(x, perm, name)

    def reshape(self, x: Any, shape: Any, name: str | None = None) -> Variable:
        """The same elements in another shape; one size may be -1."""
        x = self.value(x)
        wanted = shape if isinstance(shape, Variable) else self.const(list(shape), DT_INT32)
        if wanted.data is None:
            raise ModelError(f"the shape '{wanted.name}' for '{x.name}' is computed, expected a constant")
        raw = wanted.data
        elements = np.frombuffer(raw, np.int32) if isinstance(raw, bytes | memoryview) else np.asarray(raw)
        sizes = [int(size) for size in elements.reshape(-1)]
        if sizes.count(-1) == 1 and x.shape_defined():
            rest = -int(np.prod(sizes))
            sizes = [x.elements() // rest if size == -1 and rest else size for size in sizes]
        return self.made("Reshape", [x, wanted], name, sizes)

    def squeeze(self, x: Any, axis: int | None = None, name: str | None = None) -> Variable:
        """Without dimensions of size 1: the one at `axis`, or all."""
        x = self.value(x)
        at = None if axis is None else axis % max(x.rank(), 1)
        if at is not None and (at >= x.rank() or x.shape[at] != 1):
            raise ModelError(f"dimension {axis} of '{x.name}' {x.shape} cannot be squeezed, expected size 1")
        kept = [size for i, size in enumerate(x.shape) if (i != at if at is not None else size != 1)]
        return self.made("Squeeze", [x], name, kept)

    def expand_dims(self, x: Any, axis: int, name: str | None = None) -> Variable:
        """With a dimension of size 1 inserted at `axis`."""
        x = self.value(x)
        at = axis + x.rank() + 1 if axis < 0 else axis
        if not 0 <= at <= x.rank():
            raise ModelError(f"a dimension cannot be inserted at {axis} of '{x.name}' of rank {x.rank()}")
        return self.made("ExpandDims", [x], name, [*x.shape[:at], 1, *x.shape[at:]])

    def broadcast(self, x: Any, shape: Sequence[int], name: str | None = None) -> Variable:
        """Repeated along dimensions of size 1, and along new leading ones, up to a shape."""
        result = self.made("Broadcast", [x], name, list(shape))
        assert result.producer is not None
        result.producer.add_attr("shape", list(shape))
        return result

    def resize(self, x: Any, shape: Sequence[int], name: str | None = None) -> Variable:
        """Another shape of the same rank: truncated at the end, or padded with zeros."""
        x = self.value(x)
        if len(shape) != x.rank():
            raise ModelError(f"'{x.name}' {x.shape} cannot be resized to {list(shape)}, expected {x.rank()} sizes")
        result = self.made("Resize", [x], name, list(shape))
        assert result.producer is not None
        result.producer.add_attr("shape", list(shape))
        return result

    def slice(self, x: Any, begin: Sequence[int], size: Sequence[int], name: str | None = None) -> Variable:
        """The part that starts at `begin` and has these sizes; -1 selects all remaining elements."""
        x = self.value(x)
        if not len(begin) == len(size) == x.rank():
            raise ModelError(f"'{x.name}' {x.shape} cannot be sliced by {list(begin)} and {list(size)}")
        shape = [d - b if s == -1 else s for d, b, s in zip(x.shape, begin, size, strict=True)]
        starts, sizes = self.const(list(begin), DT_INT32), self.const(list(size), DT_INT32)
        return self.made("Slice", [x, starts, sizes], name, shape)

    def concat(self, args: Sequence[Any], name: str | None = None, axis: int = 1) -> Variable:
        """The tensors concatenated along an axis."""
        parts = [self.value(arg) for arg in args]
        rank = parts[0].rank() if parts else 0
        if not -rank <= axis < rank or any(p.rank() != rank for p in parts):
            raise ModelError(f"shapes {[p.shape for p in parts]} cannot be concatenated along axis {axis}")
        at = axis % rank
        sizes = [p.shape[at] for p in parts]
        shape = [*parts[0].shape[:at], -1 if -1 in sizes else sum(sizes), *parts[0].shape[at + 1 :]]
        result = self.made("Concat", [*parts, self.const(at, DT_INT32)], name, shape)
        assert result.producer is not None
        result.producer.add_attr("N", len(parts))
        return result

    def split(self, x: Any, splits: int, axis: int = 0, name: str | None = None) -> tuple[Variable, ...]:
        """Equal parts along an axis."""
        x = self.value(x)
        if not -x.rank() <= axis < x.rank() or splits < 1 or x.shape[axis] % splits:
            raise ModelError(f"'{x.name}' {x.shape} cannot be split into {splits} parts along axis {axis}")
        at = axis % x.rank()
        shape = [*x.shape[:at], x.shape[at] // splits, *x.shape[at + 1 :]]
        operation = self.rawop("Split", name)
        for operand in (x, self.const(splits, DT_INT32), self.const(at, DT_INT32)):
            operation.add_input(operand)
        return tuple(self.result(operation, x.type, shape, number) for number in range(splits))

    def shape(self, x: Any, name: str | None = None) -> Variable:
        """The sizes of the dimensions, as int32."""
        x = self.value(x)
        return self.made("Shape", [x], name, [x.rank()], DT_INT32)

    def size(self, x: Any, name: str | None = None) -> Variable:
        """The number of elements, as int32."""
        return self.made("Size", [x], name, [], DT_INT32)

    def rank(self, x: Any, name: str | None = None) -> Variable:
        """The number of dimensions, as int32."""
        return self.made("Rank", [x], name, [], DT_INT32)

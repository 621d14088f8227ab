"""Parts of tensors by bounds, steps and masks, as in the IR and in TensorFlow; and padding."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onert.flow.graph import Variable
from onert.frontend.flow.elements import DTYPES
from onert.ir import shape as shapes
from onert.ir.ops.data_movement.slicing import StridedSlice

from .arrays import Arrays


def strided_slice(
    f: Arrays, op: StridedSlice, x: Variable, begin: Sequence[int], end: Sequence[int], steps: Sequence[int]
) -> tuple[Variable, list[int]] | None:
    """The selected part with all axes of `x`, and the shape of the result; None if a step is not 1, or if only part of
    an open axis is selected."""
    starts, sizes, shape = [], [], []
    for axis, part in op.parts(x.rank(), tuple(begin), tuple(end), tuple(steps)):
        if axis is None:
            shape.append(1)
            continue
        length, whole, one = x.shape[axis], part == slice(None, None, 1), isinstance(part, int)
        if length < 0 and not whole:
            return None
        if isinstance(part, int):
            start, size, step = part + length * (part < 0), 1, 1
        else:
            start, size, step = (0, -1, 1) if whole else shapes.span(part, length)
        if step != 1:
            return None
        starts.append(start)
        sizes.append(size)
        shape += [] if one else [length if size < 0 else size]
    return f.slice(x, starts, sizes), shape


def padded(
    f: Arrays, x: Variable, axis: int, before: int, after: int, element: float = 0, name: str | None = None
) -> Variable:
    """`x` with constants concatenated along an axis."""

    def margin(size: int) -> list[Variable]:
        shape = [*x.shape[:axis], size, *x.shape[axis + 1 :]]
        return [f.const(np.full(shape, element, DTYPES[x.type].numpy))] if size else []

    parts = [*margin(before), x, *margin(after)]
    return f.concat(parts, name, axis) if len(parts) > 1 else x

"""Parts of tensors in the form of the IR and of TensorFlow: bounds, steps and masks."""

from __future__ import annotations

from collections.abc import Sequence

from onert.flow.graph import Variable
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

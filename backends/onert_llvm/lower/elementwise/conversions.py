"""Conversions that few models ask for: integers with scales of their own for each channel, halves, complex numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from onert.ir import CallTypes, DType, Op
from onert.ir.ops.elementwise.convert import Cast, Dequantize
from onert_llvm.command.command import Slot
from onert_llvm.kernels.arithmetic.expression import Apply, Fn, Kind, Leaf
from onert_llvm.kernels.elementwise.complex_parts import ComplexParts, Part
from onert_llvm.kernels.elementwise.elementwise import Elementwise
from onert_llvm.kernels.elementwise.quantize_dequantize import NarrowFloats, WidenHalves
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.strided_copy import move, operand, side

from .float_elementwise import matrix

_HALVES = (DType.FLOAT16, DType.BFLOAT16)
_STORED = {
    DType.INT4: Kind.I8,
    DType.INT8: Kind.I8,
    DType.UINT8: Kind.U8,
    DType.INT16: Kind.I16,
}
"""Integers that can be less a zero point in 32 bits."""


def why_not_halves(op: Op, types: CallTypes) -> str | None:
    """Why halves are not widened, or made of float32; None if they are."""
    ends = (types.input(0).dtype, types.output.dtype)
    if DType.FLOAT32 not in ends or not any(dtype in _HALVES for dtype in ends):
        return "this conversion has no native form"
    return "a tensor has no elements" if 0 in types.output.shape else None


def lower_halves(lowering: Lowering, operations: Sequence[int]) -> None:
    """Element by element."""
    (at,) = operations
    operation = lowering.operation(at)
    source, target = operation.used[0], operation.outputs[0]
    rows, width = matrix(lowering.shape(target), flat=True)
    slots: dict[str, Slot] = {"x": lowering.operand(source), "out": lowering.operand(target), "width": width}
    ends = (lowering.type(source).dtype, lowering.type(target).dtype)
    brain = DType.BFLOAT16 in ends
    algorithm = WidenHalves(brain) if ends[0] in _HALVES else NarrowFloats(brain)
    lowering.emit(at, algorithm, slots, rows, (source,), (target,), rows * width)


def why_not_channels(op: Dequantize, types: CallTypes) -> str | None:
    """Why integers are not brought to the scales of their channels; None if they are."""
    x = types.input(0)
    if x.dtype not in _STORED or types.output.dtype is not DType.FLOAT32 or 0 in x.shape:
        return "this conversion has no native form"
    scaled = x.quantization
    if scaled is None or not (scaled.per_tensor or scaled.axis is not None) or scaled.block_size:
        return "its quantisation has no native form"
    return None


def lower_channels(lowering: Lowering, operations: Sequence[int]) -> None:
    """Each channel less its zero point, times its scale."""
    (at,) = operations
    operation = lowering.operation(at)
    source, target = operation.used[0], operation.outputs[0]
    type_, shape = lowering.type(source), lowering.shape(source)
    scaled = type_.quantization
    assert scaled is not None
    axis = 0 if scaled.per_tensor or scaled.axis is None else scaled.axis
    count = 1 if scaled.per_tensor else shape[axis]
    outer, inner = (math.prod(part) for part in (shape[:axis], shape[axis + 1 :]))
    if scaled.per_tensor:
        outer, inner = 1, math.prod(shape)
    x, zero, scale = Leaf("i0", _STORED[type_.dtype]), Leaf("i1", Kind.I32), Leaf("i2")
    centred = Apply(Fn.SUB, (Apply(Fn.CAST, (x,), Kind.I32), zero), Kind.I32)
    tree = Apply(Fn.MUL, (Apply(Fn.CAST, (centred,), Kind.F32), scale))
    along = inner == 1
    width = count if along else inner
    slots: dict[str, Slot] = {
        "out": lowering.operand(target),
        "width": width,
        "i0": lowering.operand(source),
        "i1": lowering.constant(np.resize(np.array(scaled.zero_points, np.int32), count)),
        "i2": lowering.constant(np.resize(np.array(scaled.scales, np.float32), count)),
        "i0_step0": count * inner,
        "i1_step0": 0,
        "i2_step0": 0,
    }
    if not along:
        slots |= {"size1": count, "i0_step1": inner, "i1_step1": 1, "i2_step1": 1}
    algorithm = Elementwise(tree, (True, along, along), 1 if along else 2)
    rows = outer if along else outer * count
    lowering.emit(at, algorithm, slots, rows, (source,), (target,), rows * width)


def why_not_complex(op: Cast, types: CallTypes) -> str | None:
    """Why numbers do not become complex ones, or the other way round; None if they do."""
    ends = (types.input(0).dtype, types.output.dtype)
    known = (DType.COMPLEX64, DType.FLOAT32)
    if any(dtype not in known for dtype in ends):
        return "only between complex64 and float32 there is a native form"
    return "a tensor has no elements" if 0 in types.output.shape else None


def lower_complex(lowering: Lowering, operations: Sequence[int]) -> None:
    """The real part; or a number beside 0."""
    (at,) = operations
    operation = lowering.operation(at)
    source, target = operation.used[0], operation.outputs[0]
    if lowering.type(source).dtype is lowering.type(target).dtype:
        move(lowering, at, operand(lowering, source), operand(lowering, target), (source,))
        return
    shape = lowering.shape(target)
    if lowering.type(source).dtype is DType.COMPLEX64:
        rows, width = matrix(shape, flat=True)
        slots: dict[str, Slot] = {"x": lowering.operand(source), "out": lowering.operand(target), "width": width}
        lowering.emit(at, ComplexParts(Part.REAL), slots, rows, (source,), (target,), rows * width)
        return
    parts = side(lowering.operand(target), (*shape, 2), 4)
    zero = side(lowering.constant(np.zeros(16, np.float32)), (1,), 4)
    move(lowering, at, operand(lowering, source), parts.at(parts.view[..., 0]), (source,))
    move(lowering, at, zero.at(zero.view.broadcast_to(shape)), parts.at(parts.view[..., 1]))

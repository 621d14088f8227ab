"""Conversions between element types and scales: quantisation and dequantisation of floats, integers requantised or
looked up in a table, integers with per-channel scales, half-precision floats, complex numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from attrs import evolve

from onert.ir import Array, CallTypes, DType, Op, RuleError, TensorType, evaluate
from onert.ir.ops.arithmetic.fixed_point import activation_range
from onert.ir.ops.elementwise.convert import Cast, Dequantize, Quantize
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert_llvm.command.command import Slot
from onert_llvm.kernels.arithmetic.expression import Apply, Fn, Kind, Leaf
from onert_llvm.kernels.arithmetic.requantize_int8 import Scaling
from onert_llvm.kernels.elementwise.conversions import (
    ComplexParts,
    DequantizeIntegers,
    NarrowFloats,
    Part,
    QuantizeF32,
    Rescale,
    WidenHalves,
)
from onert_llvm.kernels.elementwise.elementwise import Elementwise
from onert_llvm.kernels.elementwise.tables import MapShorts
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.dtype_sets import KINDS, QUANTIZED
from onert_llvm.lower.strided_copy import move, operand, side

from .float_elementwise import map_elements
from .integer_binary import register

_HALVES = (DType.FLOAT16, DType.BFLOAT16)
_STORED = {
    DType.INT4: Kind.I8,
    DType.INT8: Kind.I8,
    DType.UINT8: Kind.U8,
    DType.INT16: Kind.I16,
}
"""Integers whose difference to a zero point fits in 32 bits."""

_CLAMPS = {
    UnaryKind.RELU: (0, None),
    UnaryKind.RELU6: (0, 6),
    UnaryKind.RELU_N1_TO_1: (-1, 1),
    UnaryKind.RELU_0_TO_1: (0, 1),
}


def why_not_scaled(op: Quantize | Dequantize | Cast, types: CallTypes) -> str | None:
    """Why this backend does not convert the elements; None if it does."""
    x, out = types.input(0), types.output
    stored = out if isinstance(op, Quantize) else x
    scaled = stored.quantization is not None and stored.quantization.per_tensor
    ends = (x.dtype, out.dtype) if isinstance(op, Quantize) else (out.dtype, x.dtype)
    if ends[0] is DType.FLOAT32 and ends[1] in QUANTIZED and (scaled or isinstance(op, Cast)):
        return None
    return "this conversion has no native form"


def lower_scaled(lowering: Lowering, operations: Sequence[int]) -> None:
    """Convert element by element; a cast is a quantisation with scale 1."""
    at, operation, _ = lowering.single(operations, Op)
    quantizes, plain = isinstance(operation.op, Quantize), isinstance(operation.op, Cast)
    stored = lowering.type(operation.outputs[0] if quantizes else operation.used[0])
    zero = 0 if plain else stored.zero_point
    slots: dict[str, Slot] = {"scale": 1.0 if plain else float(np.float32(stored.scale)), "zero_point": zero}
    kind = KINDS[stored.dtype]
    if quantizes:
        low, high = stored.dtype.limits
        slots |= {"low": float(low - zero), "high": float(high - zero)}
    map_elements(lowering, at, QuantizeF32(kind) if quantizes else DequantizeIntegers(kind), slots)


def why_not_rescaled(op: Op, types: CallTypes) -> str | None:
    """Why an operation is not a requantisation of 8-bit or 16-bit integers; None if it is."""
    rectified = isinstance(op, Unary) and op.kind in _CLAMPS
    if not (rectified or isinstance(op, Quantize)):
        return "it does more than requantise"
    x, out = types.input(0), types.output
    if x.dtype not in QUANTIZED or out.dtype not in QUANTIZED:
        return "only 8-bit and 16-bit integers are native"
    if any(t.quantization is None or not t.quantization.per_tensor for t in (x, out)):
        return "its quantisation has no native form"
    return None


def lower_rescaled(lowering: Lowering, operations: Sequence[int]) -> None:
    """Requantise element by element."""
    at, operation, op = lowering.single(operations, Op)
    types = lowering.subgraph.types(operation)
    x, out = types.input(0), types.output
    low, high = out.dtype.limits
    real = x.scale / out.scale
    if isinstance(op, Unary):
        low, high = _bounds(op, out)
        real = float(np.float32(x.scale) / np.float32(out.scale))
    how, columns = register(lowering, real, 1 << 17, out.zero_point)
    slots: dict[str, Slot] = {"x_zero": x.zero_point, "low": low, "high": high, "columns": columns}
    if how is not Scaling.NARROW:
        slots["zero_point"] = out.zero_point
    map_elements(lowering, at, Rescale(KINDS[x.dtype], KINDS[out.dtype], how), slots)


def why_not_mapped(op: Op, types: CallTypes) -> str | None:
    """Why an operation is not a function of one 8-bit or 16-bit integer; None if it is."""
    x, out = types.input(0), types.output
    if len(types.inputs) != 1 or len(types.outputs) != 1 or x.shape != out.shape:
        return "it is not a function of the elements of one tensor"
    if not (x.dtype in QUANTIZED and out.dtype.is_integer and out.dtype in KINDS):
        return "only 8-bit and 16-bit integers are native"
    if any(t.quantization is not None and not t.quantization.per_tensor for t in (x, out)):
        return "its quantisation has no native form"
    try:
        _table(op, types)
    except RuleError as error:
        return str(error)
    return None


def _table(op: Op, types: CallTypes) -> Array:
    """The results for every stored integer, in unsigned order."""
    count = (1 << types.input(0).dtype.bits,)
    return _results(op, *(evolve(t, shape=count, data=None) for t in (types.input(0), types.output)))


@lru_cache(64)
def _results(op: Op, x: TensorType, out: TensorType) -> Array:
    """The same, cached because the support check and lowering both need it."""
    wide = np.dtype(f"u{x.dtype.itemsize}")
    values = np.arange(1 << x.dtype.bits).astype(wide).view(x.dtype.numpy)
    (found,) = evaluate(op, [values], CallTypes((x,), (out,)))
    return found


def lower_mapped(lowering: Lowering, operations: Sequence[int]) -> None:
    """A function of one stored integer, as a table of all its results."""
    at, operation, _ = lowering.single(operations, Op)
    types = lowering.subgraph.types(operation)
    algorithm = MapShorts(KINDS[types.input(0).dtype], KINDS[types.output.dtype])
    map_elements(lowering, at, algorithm, {"table": lowering.constant(_table(operation.op, types))})


def _bounds(op: Unary, out: TensorType) -> tuple[int, int]:
    low, high = _CLAMPS[op.kind]
    return activation_range(low, high, out.scale, out.zero_point, out.dtype.limits)


def why_not_halves(op: Op, types: CallTypes) -> str | None:
    """Why this is not a conversion between float32 and a half-precision type; None if it is."""
    ends = (types.input(0).dtype, types.output.dtype)
    if DType.FLOAT32 not in ends or not any(dtype in _HALVES for dtype in ends):
        return "this conversion has no native form"
    return None


def lower_halves(lowering: Lowering, operations: Sequence[int]) -> None:
    """Convert element by element."""
    (at,) = operations
    operation = lowering.operation(at)
    ends = [lowering.type(tensor).dtype for tensor in (operation.used[0], operation.outputs[0])]
    brain = DType.BFLOAT16 in ends
    map_elements(lowering, at, WidenHalves(brain) if ends[0] in _HALVES else NarrowFloats(brain))


def why_not_channels(op: Dequantize, types: CallTypes) -> str | None:
    """Why integers are not dequantised by per-channel scales; None if they are."""
    x = types.input(0)
    if x.dtype not in _STORED or types.output.dtype is not DType.FLOAT32:
        return "this conversion has no native form"
    scaled = x.quantization
    if scaled is None or not (scaled.per_tensor or scaled.axis is not None) or scaled.block_size:
        return "its quantisation has no native form"
    return None


def lower_channels(lowering: Lowering, operations: Sequence[int]) -> None:
    """Subtract each channel's zero point and multiply by its scale."""
    at, operation, _ = lowering.single(operations, Op)
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
        "width": width,
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
    lowering.run(at, algorithm, rows, {"i0": source}, {"out": target}, slots, rows * width)


def why_not_complex(op: Cast, types: CallTypes) -> str | None:
    """Why this is not a conversion between complex64 and float32; None if it is."""
    ends = (types.input(0).dtype, types.output.dtype)
    known = (DType.COMPLEX64, DType.FLOAT32)
    if any(dtype not in known for dtype in ends):
        return "only conversions between complex64 and float32 are native"
    return None


def lower_complex(lowering: Lowering, operations: Sequence[int]) -> None:
    """Take the real part, or add an imaginary part of 0."""
    at, operation, _ = lowering.single(operations, Op)
    source, target = operation.used[0], operation.outputs[0]
    if lowering.type(source).dtype is lowering.type(target).dtype:
        move(lowering, at, operand(lowering, source), operand(lowering, target), (source,))
        return
    if lowering.type(source).dtype is DType.COMPLEX64:
        map_elements(lowering, at, ComplexParts(Part.REAL))
        return
    shape = lowering.shape(target)
    parts = side(lowering.operand(target), (*shape, 2), 4)
    zero = side(lowering.constant(np.zeros(16, np.float32)), (1,), 4)
    move(lowering, at, operand(lowering, source), parts.at(parts.view[..., 0]), (source,))
    move(lowering, at, zero.at(zero.view.broadcast_to(shape)), parts.at(parts.view[..., 1]))

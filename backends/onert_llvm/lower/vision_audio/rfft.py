"""Fourier transforms of real numbers, and parts of complex ones."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from onert.ir import Array, CallTypes, DType, TensorType
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.ops.reduction.scan import RFFT2D
from onert.ir.ops.vision_audio.fourier import Fourier
from onert.ir.shape import normalize_axis
from onert_llvm.command.command import Slot
from onert_llvm.kernels.contraction.contraction import Contraction
from onert_llvm.kernels.contraction.epilogue import PLAIN
from onert_llvm.kernels.contraction.float_terms import FloatTerms
from onert_llvm.kernels.elementwise.conversions import ComplexParts, Part
from onert_llvm.kernels.vision_audio.rfft import RealFourier, lanes_of, table
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.contraction.conv_geometry import rows_of
from onert_llvm.lower.contraction.float_conv_fc import product
from onert_llvm.lower.elementwise.float_elementwise import map_elements

PARTS = {UnaryKind.REAL: Part.REAL, UnaryKind.IMAG: Part.IMAGINARY, UnaryKind.COMPLEX_ABS: Part.SIZE}

_LONGEST = 1 << 13
"""The longest row whose transform fits on a thread's stack."""

_MOST_FACTORS = 1 << 20
"""The most elements of the matrix by which other transforms of a row are computed."""

_MOST_PLANE_FACTORS = 1 << 15
"""The most for transforms of several rows: one axis after the other is less work, but more commands."""

_REGISTERS = 8
"""The fewest registers in a row for which the power-of-two transform is used."""


def why_not(op: RFFT2D, types: CallTypes) -> str | None:
    """Why this backend does not run the transform; None if it does."""
    if types.input(1).value is None or 0 in types.input(0).shape:
        return "only a non-empty transform of constant size is native"
    rows, columns = _lengths(types)
    if rows == 1 and columns <= _LONGEST and _fast(columns, _REGISTERS * 16):
        return None
    if rows > 1 and columns < (types.input(0).shape[-1] or 0):
        return "a transform of several rows that crops columns has no native form"
    most = _MOST_FACTORS if rows == 1 else _MOST_PLANE_FACTORS
    if _terms(types) * rows * (columns // 2 + 1) * 2 > most:
        return f"a transform to {rows} x {columns} has no native form, a single power-of-two row up to {_LONGEST} has"
    return None


def _lengths(types: CallTypes) -> tuple[int, int]:
    rows, columns = (int(n) for n in _known(types.input(1)).reshape(-1))
    return rows, columns


def _known(type_: TensorType) -> Array:
    """The elements of a constant."""
    assert type_.value is not None
    return type_.value


def _fast(columns: int, least: int) -> bool:
    return columns >= least and columns & (columns - 1) == 0


def _terms(types: CallTypes) -> int:
    """The number of leading elements of each image that the transform covers, gaps included."""
    height, width = (d or 0 for d in types.input(0).shape[-2:])
    rows, columns = _lengths(types)
    return (min(rows, height) - 1) * width + min(columns, width)


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """Power-of-two rows by stages of butterflies; any other image is multiplied by a matrix."""
    at, operation, _ = lowering.single(operations, RFFT2D)
    types = lowering.subgraph.types(operation)
    source, target = operation.used[0], operation.outputs[0]
    *outer, height, width = lowering.shape(source)
    count = math.prod(outer)
    rows, columns = _lengths(types)
    if rows > 1 or columns > _LONGEST or not _fast(columns, _REGISTERS * lowering.isa.f32):
        depth, step = _terms(types), height * width
        found = product(lowering, count, _matrix((rows, columns), width, depth)[None])
        own, slots = rows_of(lowering.operand(source), depth, step)
        algorithm, flops = Contraction(found.tile, own, FloatTerms(), PLAIN), 2 * count * depth * found.n
        slots |= found.slots
        lowering.run(at, algorithm, found.work.tiles, {"a": source}, {"c": target}, slots, flops, isa=found.isa)
        return
    _transform_rows(lowering, at, count, height * width, width, columns)


def _transform_rows(lowering: Lowering, at: int, count: int, step: int, width: int, columns: int) -> None:
    """Transform `count` rows of `width` numbers, `step` apart, each padded or cropped to `columns` numbers."""
    operation = lowering.subgraph.operations[at]
    source, target = operation.used[0], operation.outputs[0]
    dtype = lowering.type(source).dtype
    factors = table(columns, lanes_of(lowering.isa, dtype), dtype)
    slots: dict[str, Slot] = {"step": step, "factors": lowering.constant(factors)}
    if width < columns:
        slots["width"] = width
    flops = int(2.5 * columns * np.log2(columns)) * count
    kernel = RealFourier(columns, width < columns, dtype)
    lowering.run(at, kernel, count, {"x": source}, {"out": target}, slots, flops)


def why_not_rows(op: Fourier, types: CallTypes) -> str | None:
    """Why this backend does not run the transform as it is; None if it does."""
    x, axis = types.input(0), types.input(1).value
    length = types.inputs[2] if len(types.inputs) > 2 else None
    if op.inverse or not op.half or x.shape[-1] != 1 or x.dtype not in (DType.FLOAT32, DType.FLOAT64) or 0 in x.shape:
        return "only a one-sided transform of real float32 or float64 numbers is native"
    if axis is None or normalize_axis(int(axis.reshape(-1)[0]), x.rank) != x.rank - 2:
        return "only a transform along the last axis is native"
    if length is not None and length.value is None:
        return "only a transform of constant length is native"
    columns = _columns(types)
    longest = _LONGEST // (x.dtype.itemsize // 4)
    if columns > longest or not _fast(columns, _REGISTERS * 16):
        return f"a length of {columns} has no native form, a power of two from {_REGISTERS * 16} to {longest} has"
    return None


def _columns(types: CallTypes) -> int:
    """The length of the transform."""
    length = types.inputs[2] if len(types.inputs) > 2 else None
    found: int | None = types.input(0).shape[-2] if length is None else _known(length).reshape(-1).tolist()[0]
    return found or 0


def lower_rows(lowering: Lowering, operations: Sequence[int]) -> None:
    """A power-of-two transform along the last axis, whose complex numbers are already stored as pairs."""
    at, operation, _ = lowering.single(operations, Fourier)
    *outer, width, _ = lowering.shape(operation.used[0])
    columns = _columns(lowering.subgraph.types(operation))
    _transform_rows(lowering, at, math.prod(outer), width, width, columns)


def _matrix(lengths: tuple[int, int], width: int, depth: int) -> Array:
    """The transform as a matrix from an image's first `depth` elements to interleaved real and imaginary parts."""
    rows, columns = lengths
    at = np.arange(depth)
    down, across = at // width, at % width
    turns = np.arange(rows)[:, None] * down[:, None, None] / rows
    turns = turns + np.arange(columns // 2 + 1) * across[:, None, None] / columns
    factors = np.exp(-2j * np.pi * turns)
    out: Array = np.ascontiguousarray(factors.reshape(depth, -1)).view(np.float64).astype(np.float32)
    return out


def why_no_part(op: Unary, types: CallTypes) -> str | None:
    """Why this backend does not extract the part of complex numbers; None if it does."""
    if op.kind not in PARTS or types.input(0).dtype is not DType.COMPLEX64:
        return "only real part, imaginary part and magnitude of complex64 are native"
    return None


def lower_part(lowering: Lowering, operations: Sequence[int]) -> None:
    """Extract a part of each number."""
    at, _, op = lowering.single(operations, Unary)
    map_elements(lowering, at, ComplexParts(PARTS[op.kind]))

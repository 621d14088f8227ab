"""Normalisation with given statistics, or with those of the tensor itself."""

from __future__ import annotations

from onert.frontend.onnx.building import (
    binary,
    cast,
    ints,
    like,
    require_rank,
    reshape,
    to_channels_first,
    to_channels_last,
    transpose,
)
from onert.frontend.onnx.draft import Draft
from onert.frontend.onnx.expression import Expression, operand
from onert.frontend.onnx.node import Importer, Node
from onert.frontend.onnx.table.elements.movement import padded
from onert.ir import DType, ModelError
from onert.ir.ops.elementwise.binary import BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.ops.reduction.norm import InstanceNorm
from onert.ir.ops.reduction.reduce import Reduce, Reduction
from onert.ir.ops.reduction.reduce_window import ReduceWindow, WindowReduction
from onert.ir.shape import normalize_axis

from .pooling import powers, root

ADD, SUB, MUL, DIV = BinaryKind.ADD, BinaryKind.SUB, BinaryKind.MUL, BinaryKind.DIV


def _batch(node: Node) -> int | tuple[int, ...]:
    """`scale * (x - mean) / sqrt(var + epsilon) + offset` per channel, as one product and one sum."""
    d, x = node.draft, node.input(0)
    if node.flag("training_mode"):
        return _batch_in_training(node)
    if node.version < 7 and not node.flag("is_test"):
        raise ModelError("is in training mode, expected inference mode")
    rank = require_rank(d, x, 2)
    dtype = d.type(x).dtype
    wide = DType.FLOAT64 if dtype is DType.FLOAT64 else DType.FLOAT32
    scale, offset, mean, variance = (cast(d, node.input(i), wide) for i in range(1, 5))
    factor = binary(d, DIV, scale, _deviation(d, variance, node.number("epsilon", 1e-5)))
    shift = binary(d, SUB, offset, binary(d, MUL, mean, factor))
    if rank > 2:
        factor, shift = (reshape(d, i, (*d.type(i).shape, *(1,) * (rank - 2))) for i in (factor, shift))
    return cast(d, binary(d, ADD, binary(d, MUL, cast(d, x, wide), factor), shift), dtype)


def _batch_in_training(node: Node) -> tuple[int, ...]:
    """Normalise with the mean and variance of the batch, and update the running statistics."""
    d, x = node.draft, operand(node, 0)
    axes = (0, *range(2, x.rank))
    found, _, _ = standardized(d, x.operand, axes, node.number("epsilon", 1e-5))
    mean = x.of(mean_of(d, x.operand, axes))
    variance = x.of(mean_of(d, ((x - mean) * (x - mean)).operand, axes)).reshape(None)
    each = (None, *(1,) * (x.rank - 2))
    scale, offset = (operand(node, at).reshape(*each).cast(x.dtype) for at in (1, 2))
    share, moved = node.number("momentum", 0.9), []
    for at, new in ((3, mean.reshape(None)), (4, variance)):
        old = operand(node, at)
        moved.append((old * share + new.cast(old.dtype) * (1 - share)).operand)
    return (x.of(found) * scale + offset).operand, *moved


def _deviation(d: Draft, variance: int, epsilon: float) -> int:
    return d.add(Unary(UnaryKind.SQRT), binary(d, ADD, variance, like(d, variance, epsilon)))


def mean_of(d: Draft, x: int, axes: range | tuple[int, ...]) -> int:
    """The mean over axes, which are kept with size 1."""
    return d.add(Reduce(Reduction.MEAN, keep_dims=True), x, ints(d, tuple(axes), DType.INT32))


def standardized(d: Draft, x: int, axes: range | tuple[int, ...], epsilon: float) -> tuple[int, int, int]:
    """(x - mean) / deviation, the mean, and the reciprocal of the deviation."""
    mean = mean_of(d, x, axes)
    centred = binary(d, SUB, x, mean)
    variance = mean_of(d, d.add(Unary(UnaryKind.SQUARE), centred), axes)
    inverse = d.add(Unary(UnaryKind.RSQRT), binary(d, ADD, variance, like(d, variance, epsilon)))
    return binary(d, MUL, centred, inverse), mean, inverse


def _stash(node: Node) -> DType:
    return node.element_type("stash_type", DType.FLOAT32)


def _rows(node: Node) -> tuple[int, range, DType]:
    """The first input in the type of its statistics, the axes to normalise, and its own type."""
    d, x = node.draft, node.input(0)
    rank, dtype = require_rank(d, x, 1), d.type(x).dtype
    axes = range(normalize_axis(node.integer("axis", -1), rank), rank)
    wide = cast(d, x, _stash(node)) if dtype is not DType.FLOAT64 else x
    return wide, axes, dtype


def _layer(node: Node) -> tuple[int, ...]:
    d, (wide, axes, dtype) = node.draft, _rows(node)
    found, mean, inverse = standardized(d, wide, axes, node.number("epsilon", 1e-5))
    out = binary(d, MUL, cast(d, found, dtype), node.input(1))
    out = binary(d, ADD, out, node.input(2)) if node.has(2) else out
    return out, mean, inverse


def _rms(node: Node) -> int:
    d, (wide, axes, dtype) = node.draft, _rows(node)
    squares = mean_of(d, d.add(Unary(UnaryKind.SQUARE), wide), axes)
    inverse = d.add(Unary(UnaryKind.RSQRT), binary(d, ADD, squares, like(d, squares, node.number("epsilon", 1e-5))))
    return binary(d, MUL, cast(d, binary(d, MUL, wide, inverse), dtype), node.input(1))


def _instance(node: Node) -> int:
    d, x = node.draft, node.input(0)
    rank = require_rank(d, x, 3)
    op = InstanceNorm(node.number("epsilon", 1e-5))
    if rank == 4:
        return transpose(
            d, d.add(op, transpose(d, x, to_channels_last(4)), node.input(1), node.input(2)), to_channels_first(4)
        )
    if rank == 3:
        return d.add(op, x, node.input(1), node.input(2))
    dims = _dims(d, x)
    flat = Expression(d, x).reshape_by(*dims[:2], -1).operand
    return Expression(d, d.add(op, flat, node.input(1), node.input(2))).reshape_by(*dims).operand


def _dims(d: Draft, x: int) -> list[int | Expression]:
    """The dimensions; unknown ones are operands."""
    return [Expression(d, x).size(axis) if n is None else n for axis, n in enumerate(d.type(x).shape)]


def _group(node: Node) -> int:
    """Normalise groups of channels together with their spatial dimensions.

    Scale and bias have one element per channel, or before opset 21 per group.
    """
    d, x, groups = node.draft, node.input(0), node.integer("num_groups")
    rank, dtype = require_rank(d, x, 3), d.type(x).dtype
    channels, dims = d.type(x).shape[1], _dims(d, x)
    if groups < 1 or (channels is not None and channels % groups):
        raise ModelError(f"{groups} groups do not fit {d.type(x)}")
    wide = x if dtype is DType.FLOAT64 else cast(d, x, _stash(node))
    parted = (
        Expression(d, wide)
        .reshape_by(dims[0], groups, -1 if channels is None else channels // groups, *dims[2:])
        .operand
    )
    found, _, _ = standardized(d, parted, range(2, rank + 1), node.number("epsilon", 1e-5))
    scale, bias = node.input(1), node.input(2)
    if node.version < 21:
        scale, bias = (reshape(d, i, (groups, *(1,) * (rank - 1))) for i in (scale, bias))
        out = binary(d, ADD, binary(d, MUL, cast(d, found, dtype), scale), bias)
        return Expression(d, out).reshape_by(*dims).operand
    out = Expression(d, cast(d, found, dtype)).reshape_by(*dims).operand
    scale, bias = (reshape(d, i, (channels, *(1,) * (rank - 2))) for i in (scale, bias))
    return binary(d, ADD, binary(d, MUL, out, scale), bias)


def _mean_variance(node: Node) -> int:
    d, x = node.draft, node.input(0)
    axes = node.integers("axes") or (0, 2, 3)
    mean = mean_of(d, x, axes)
    centred = binary(d, SUB, x, mean)
    squares = mean_of(d, d.add(Unary(UnaryKind.SQUARE), x), axes)
    variance = binary(d, SUB, squares, d.add(Unary(UnaryKind.SQUARE), mean))
    deviation = d.add(Unary(UnaryKind.SQRT), variance)
    return binary(d, DIV, centred, binary(d, ADD, deviation, like(d, x, 1e-9)))


def _norm(node: Node) -> int:
    """x divided by its p-norm along an axis; 0 if that is 0."""
    d, x, p = node.draft, node.input(0), node.integer("p", 2)
    axis = normalize_axis(node.integer("axis", -1), require_rank(d, x, 1))
    sums = d.add(Reduce(Reduction.SUM, keep_dims=True), powers(d, x, p), ints(d, [axis], DType.INT32))
    length = root(d, sums, p)
    is_zero = d.add(Comparison(ComparisonKind.EQUAL), length, like(d, length, 0))
    return binary(d, DIV, x, binary(d, ADD, length, cast(d, is_zero, d.type(x).dtype)))


def _local_response(node: Node) -> int:
    """`x / (bias + alpha / size * s)**beta`, where s is the sum of squares over the `size` neighbouring channels."""
    d, x, size = node.draft, node.input(0), node.integer("size")
    rank = require_rank(d, x, 2)
    if not 1 <= size < 1 << 31:
        raise ModelError(f"size is {size}, expected at least 1")
    before = (size - 1) // 2
    around = [(0, 0), (before, size - 1 - before), *[(0, 0)] * (rank - 2)]
    squares = padded(d, d.add(Unary(UnaryKind.SQUARE), x), around)
    shape = ints(d, (1, size, *(1,) * (rank - 2)))
    ones = ints(d, (1,) * rank)
    sums = d.add(ReduceWindow(WindowReduction.ADD), squares, like(d, x, 0), shape, ones, ones)
    scaled = binary(d, MUL, sums, like(d, x, node.number("alpha", 1e-4) / size))
    base = binary(d, ADD, scaled, like(d, x, node.number("bias", 1.0)))
    return binary(d, DIV, x, binary(d, BinaryKind.POW, base, like(d, x, node.number("beta", 0.75))))


TABLE: dict[str, Importer] = {
    "BatchNormalization": _batch,
    "GroupNormalization": _group,
    "InstanceNormalization": _instance,
    "LRN": _local_response,
    "LayerNormalization": _layer,
    "LpNormalization": _norm,
    "MeanVarianceNormalization": _mean_variance,
    "RMSNormalization": _rms,
}

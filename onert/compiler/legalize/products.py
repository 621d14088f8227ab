"""General tensor contractions as batched matrix products."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from onert.ir import CallTypes, DType
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.contraction.einsum import Einsum
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.reduction.reduce import Reduction
from onert.ir.ops.stablehlo.products import HloDotGeneral
from onert.ir.shape import static
from onert.ir.symbolic.sizes import are_same

from .decomposition import Decomposition, only_float32, only_floats
from .draft import Draft, layer_operands
from .quantized_products import COMPUTED_WEIGHTS, REAL_SUMS

EXACT_TERMS = (1 << 24) // (1 << 14)
"""How many products of two signed bytes (each at most 2**14) float32 sums exactly in any order."""


def _free_axes(rank: int, *used: Sequence[int]) -> list[int]:
    used_axes = {axis for axes in used for axis in axes}
    return [axis for axis in range(rank) if axis not in used_axes]


def contracted(
    d: Draft, x: int, y: int, batch: tuple[Sequence[int], Sequence[int]], summed: tuple[Sequence[int], Sequence[int]]
) -> int:
    """Products of elements summed over the pairs of dimensions in `summed`, for every index of the pairs in `batch`.

    The result has the batch dimensions, then the remaining ones of x, then those of y. If the batch has size 1, a
    constant `y` becomes the weights of a layer. Dimensions that are already in order are not moved.
    """
    (x_batch, y_batch), (x_sum, y_sum) = batch, summed
    shapes = d.shape(x), d.shape(y)
    x_free, y_free = _free_axes(len(shapes[0]), x_batch, x_sum), _free_axes(len(shapes[1]), y_batch, y_sum)
    sizes = [shapes[0][axis] for axis in x_batch]
    rows, columns = (math.prod(s[a] for a in free) for s, free in ((shapes[0], x_free), (shapes[1], y_free)))
    depth = math.prod(shapes[0][axis] for axis in x_sum)
    result = (*sizes, *(shapes[0][a] for a in x_free), *(shapes[1][a] for a in y_free))
    if 0 in (*shapes[0], *shapes[1]):
        return d.constant(np.zeros(result, np.float32)) if 0 in result else d.broadcast(d.like(x, 0), result)
    matrices = math.prod(sizes)
    is_one = are_same(matrices, 1)
    if is_one and d.type(y).value is not None:
        left = d.reshaped(d.transposed(x, (*x_batch, *x_free, *x_sum)), rows, depth)
        weights = d.reshaped(d.transposed(y, (*y_batch, *y_free, *y_sum)), columns, depth)
        return d.reshaped(d.rows_times(left, weights, None), *result)
    left, adjoint_x = _matrices(d, x, x_batch, x_free, x_sum)
    right, adjoint_y = _matrices(d, y, y_batch, y_sum, y_free)
    several = () if is_one else (matrices,)
    left = d.reshaped(left, *several, *((depth, rows) if adjoint_x else (rows, depth)))
    right = d.reshaped(right, *several, *((columns, depth) if adjoint_y else (depth, columns)))
    return d.reshaped(d.add(BatchMatMul(adjoint_x, adjoint_y), left, right), *result)


def _matrices(d: Draft, x: int, batch: Sequence[int], rows: Sequence[int], columns: Sequence[int]) -> tuple[int, bool]:
    """`x` as matrices of these rows and columns, and whether they are transposed because `x` already has that order."""
    transposed = [*batch, *columns, *rows]
    ones = {axis for axis, size in enumerate(d.shape(x)) if are_same(size, 1)}
    transposed_axes = [axis for axis in transposed if axis not in ones]
    if transposed_axes == sorted(transposed_axes):
        plain_axes = [axis for axis in (*batch, *rows, *columns) if axis not in ones]
        if plain_axes != transposed_axes:
            return d.transposed(x, transposed), True
    return d.transposed(x, (*batch, *rows, *columns)), False


def _dot(d: Draft, op: HloDotGeneral, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Reshape(BatchMatMul(Reshape(Transpose(x)), Reshape(Transpose(y))))"""
    x, y = operands
    return [contracted(d, x, y, (op.x_batch, op.y_batch), (op.x_contract, op.y_contract))]


def _why_not_exact(op: HloDotGeneral, types: CallTypes) -> str | None:
    depth = math.prod(types.input(0).shape[axis] or 0 for axis in op.x_contract)
    return inexact(types, depth)


def inexact(types: CallTypes, terms: int, *others: DType) -> str | None:
    """Why float32 does not hold int32 sums of this many products of bytes exactly. Operands are int8; the first may be
    one of the `others` instead."""
    x, y = types.input(0).dtype, types.input(1).dtype
    if types.output.dtype is not DType.INT32 or x not in (DType.INT8, *others) or y is not DType.INT8:
        return "only products of bytes with int32 results are computed in floats"
    return None if terms < EXACT_TERMS else f"float32 does not hold sums of {terms} products of bytes exactly"


def _exact_dot(d: Draft, op: HloDotGeneral, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Cast(BatchMatMul(Cast(x), Cast(y))), whose sums float32 holds exactly"""
    found = _dot(d, op, types, [d.cast(operand, DType.FLOAT32) for operand in operands])
    return [d.cast(found[0], DType.INT32)]


def _why_not_bytes(op: BatchMatMul, types: CallTypes) -> str | None:
    x, y = types.input(0), types.input(1)
    if 0 in (*x.shape, *y.shape):
        return "a tensor has no elements"
    depth = x.shape[-2 if op.adjoint_x else -1] or 0
    return inexact(types, depth * (2 if x.dtype is DType.UINT8 else 1), DType.UINT8)


def _bytes(d: Draft, op: BatchMatMul, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Cast(BatchMatMul(Cast(x), Cast(y))), whose sums float32 holds exactly"""
    x, y = (d.cast(operand, DType.FLOAT32) for operand in operands)
    return [d.cast(d.add(BatchMatMul(op.adjoint_x, op.adjoint_y), x, y), DType.INT32)]


def _why_not_empty(op: BatchMatMul, types: CallTypes) -> str | None:
    if types.input(0).shape[-2 if op.adjoint_x else -1] != 0:
        return "its sums have terms"
    return "its result is quantised" if types.output.quantization is not None else None


def _empty_product(d: Draft, op: BatchMatMul, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """BroadcastTo(0)"""
    zero = d.constant(np.zeros((1,) * types.output.rank, types.output.dtype.numpy), dtype=types.output.dtype)
    return [d.broadcast(zero, static(types.output.shape))]


def _why_not_adjoint(op: BatchMatMul, types: CallTypes) -> str | None:
    return only_float32(op, types) if op.adjoint_x or op.adjoint_y else "no operand is transposed"


def _without_adjoint(d: Draft, op: BatchMatMul, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """BatchMatMul(Transpose(x), Transpose(y)) for adjoint operands"""
    factors = []
    for x, adjoint in zip(operands, (op.adjoint_x, op.adjoint_y), strict=True):
        *before, last, first = range(len(d.shape(x)))
        factors.append(d.transposed(x, (*before, first, last)) if adjoint else x)
    return [d.add(BatchMatMul(), *factors)]


def _why_no_product(op: FullyConnected, types: CallTypes) -> str | None:
    if any(t is not None and 0 in t.shape for t in types.inputs):
        return "a tensor has no elements"
    return "its activation is SIGN_BIT" if op.activation is Activation.SIGN_BIT else only_floats(op, types)


def _rows_product(d: Draft, op: FullyConnected, types: CallTypes, operands: Sequence[int | None]) -> Sequence[int]:
    """Add(BatchMatMul(Reshape(x), Transpose(weight)), bias), followed by the activation"""
    x, weight, bias = layer_operands(operands)
    outputs, features = d.shape(weight)
    rows = d.reshaped(x, math.prod(d.shape(x)) // features, features)
    out = d.add(BatchMatMul(), rows, d.transposed(weight, (1, 0)))
    out = out if bias is None else d.sum(out, d.reshaped(bias, outputs))
    return [d.reshaped(d.bounded(out, op.activation), *static(types.output.shape))]


# ---- Einstein's convention


def _terms(op: Einsum) -> tuple[list[str], str]:
    left, result = op.equation.replace(" ", "").split("->")
    return left.split(","), result


def _einsum(d: Draft, op: Einsum, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Transpose(BatchMatMul(..)), operand by operand; labels that only one operand has are summed first"""
    terms, result = _terms(op)
    labels, found = "", -1
    for at, (whole, all_labels) in enumerate(zip(operands, terms, strict=True)):
        x, term = _diagonal(d, whole, all_labels)
        used_later = set("".join((*terms[at + 1 :], result)))
        x, term = _summed(d, x, term, used_later | set(labels))
        if at == 0:
            labels, found = term, x
            continue
        found, labels = _summed(d, found, labels, used_later | set(term))
        shared = [label for label in labels if label in term]
        batch_labels, summed_labels = [c for c in shared if c in used_later], [c for c in shared if c not in used_later]
        pairs = [
            tuple([side.index(c) for c in group] for side in (labels, term)) for group in (batch_labels, summed_labels)
        ]
        found = contracted(d, found, x, (pairs[0][0], pairs[0][1]), (pairs[1][0], pairs[1][1]))
        labels = "".join(
            (*batch_labels, *(c for c in labels if c not in shared), *(c for c in term if c not in shared))
        )
    found, labels = _summed(d, found, labels, set(result))
    return [d.transposed(found, [labels.index(label) for label in result])]


def _diagonal(d: Draft, x: int, labels: str) -> tuple[int, str]:
    """The elements of `x` whose indices along equal labels are equal, and the different labels."""
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            others = [axis for axis in range(len(labels)) if axis not in (first, second)]
            shape = d.shape(x)
            count = shape[first]
            square = d.reshaped(d.transposed(x, (first, second, *others)), count * count, *(shape[a] for a in others))
            numbers = d.numbers(count, d.constant(np.array(0, np.int64)), (count,))
            x = d.gathered(square, d.product(numbers, d.like(numbers, count + 1)), 0)
            labels = "".join((label, *(labels[axis] for axis in others)))
    return x, labels


def _summed(d: Draft, x: int, labels: str, kept: set[str]) -> tuple[int, str]:
    """`x` summed over the labels that are not in `kept`, and its remaining labels."""
    summed = [axis for axis, label in enumerate(labels) if label not in kept]
    if not summed:
        return x, labels
    remaining = "".join(label for label in labels if label in kept)
    shape = [size for axis, size in enumerate(d.shape(x)) if axis not in summed]
    if 0 in d.shape(x):
        empty = d.constant(np.zeros(shape, np.float32)) if 0 in shape else d.broadcast(d.like(x, 0), shape)
        return empty, remaining
    return d.reduced(Reduction.SUM, x, summed), remaining


DECOMPOSITIONS = {
    HloDotGeneral: (Decomposition(only_float32, _dot), Decomposition(_why_not_exact, _exact_dot)),
    BatchMatMul: (
        Decomposition(_why_not_bytes, _bytes),
        Decomposition(_why_not_empty, _empty_product),
        Decomposition(_why_not_adjoint, _without_adjoint),
        REAL_SUMS,
    ),
    FullyConnected: (Decomposition(_why_no_product, _rows_product), REAL_SUMS, *COMPUTED_WEIGHTS),
    Einsum: (Decomposition(only_float32, _einsum),),
}

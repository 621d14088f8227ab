"""Turn float layers on dequantised bytes into products of the bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import numpy as np
from attrs import evolve

from onert.compiler.rewrite.contract import TYPED, rewriting
from onert.compiler.rewrite.edit import Edit, definer
from onert.ir import Array, DType, Operand, Operation, Quantization, Subgraph, TensorType
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.depthwise import DepthwiseConv2D
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.data_movement.joining import Concat, Split
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.convert import Cast

from .scales import BYTES, Stored, dequantized, on_grid

_MOST_TERMS = (1 << 31) // (255 * 128)
"""How many products of two bytes can be summed in 32 bits."""
_MOST_IN_FLOATS = (1 << 24) // (255 * 128)
"""How many products of two bytes can be summed exactly in float32."""

_WIDE = 16
"""Groups are combined until each convolution has at least this many input channels."""

_FEW = 4
"""With fewer channels per group, no kernel transforms operands in registers, so sums of whole numbers stay whole."""


@rewriting(requires=(TYPED,), ensures=(TYPED,))
def multiply_bytes(subgraph: Subgraph) -> Subgraph:
    """Multiply bytes in a layer whose input is dequantised bytes and whose constant weights are bytes times a scale per
    output, and in a matrix product of two dequantised byte tensors.

    Sums are then integer and exact. Before the bias, the result is the sum times both scales with three roundings (the
    sum to float32, the product of the scales, the product of both): at most 3 * 2**-24 of its magnitude off. In floats
    every element and every step of the sum was rounded. Weights count as bytes only if they match bit for bit.

    Grouped convolutions with few channels sum few products: these stay floats, but of whole numbers, and so are equally
    exact. Wider groups become separate convolutions.

        a = Binary.MUL(Cast(Binary.SUB(Cast(q), zero)), scale); y = FullyConnected(a, w, bias)
            -->   s = FullyConnected(q, w / scales) as f32; y = Binary.ADD(s, bias)
    """
    edit = Edit(subgraph)
    quantized: dict[Stored, int] = {}

    def scaled(at: int, source: Stored) -> int:
        key = evolve(source, steps=())
        if key not in quantized:
            quantized[key] = _with_scale(edit, at, source)
        return quantized[key]

    for at, operation in enumerate(subgraph.operations):
        matrices = _matrix_operands(subgraph, operation)
        if matrices is not None:
            inputs = tuple(scaled(at, source) for source in matrices)
            edit.replace(at, evolve(operation, op=BatchMatMul(output=DType.FLOAT32), inputs=inputs))
            continue
        found = _bytes(subgraph, operation)
        if found is not None and _few_terms(subgraph, operation):
            edit.replace(at, *_whole_sums(edit, operation, *found))
        elif found is not None:
            source, (weights, scales) = found
            operand = scaled(at, source)
            if _groups(subgraph, operation) > 1:
                type_ = evolve(subgraph.type(source.operand), quantization=source.quantization, data=None)
                edit.replace(at, *_in_groups(edit, operation, operand, type_, weights, scales))
            else:
                edit.replace(at, *_layer(edit, operation, operand, weights, scales))
    return edit.done()


def _matrix_operands(subgraph: Subgraph, operation: Operation) -> tuple[Stored, Stored] | None:
    """The bytes on both sides of a float matrix product; None if there are none."""
    if operation.op != BatchMatMul():
        return None
    depth = subgraph.type(operation.used[0]).shape[-1]
    if depth is not None and not 0 < depth <= _MOST_TERMS:
        return None
    x, y = (dequantized(subgraph, i) for i in operation.used)
    return None if x is None or y is None else (x, y)


def _bytes(subgraph: Subgraph, operation: Operation) -> tuple[Stored, tuple[Array, Array]] | None:
    """The bytes that a float layer multiplies, and its weights as bytes and scales; None if there are none."""
    op = operation.op
    if not isinstance(op, Conv2D | DepthwiseConv2D | FullyConnected):
        return None
    types = subgraph.types(operation)
    x, weight = types.input(0), types.input(1)
    if weight.value is None or any(t.dtype is not DType.FLOAT32 for t in (x, weight, types.output)):
        return None
    if weight.value.size == 0:
        return None
    axis = 3 if isinstance(op, DepthwiseConv2D) else 0
    rows = np.moveaxis(weight.value, axis, 0)
    few = _few_terms(subgraph, operation)
    if rows[0].size > (_MOST_IN_FLOATS if few else _MOST_TERMS):
        return None
    source = dequantized(subgraph, operation.inputs[0])
    if source is None:
        return None
    grid = on_grid(np.ascontiguousarray(rows).reshape(len(rows), -1))
    return None if grid is None else (source, (np.moveaxis(grid[0].reshape(rows.shape), 0, axis), grid[1]))


def _few_terms(subgraph: Subgraph, operation: Operation) -> bool:
    """Whether a grouped convolution has so few channels per group that no kernel gains from bytes."""
    if not isinstance(operation.op, Conv2D):
        return False
    types = subgraph.types(operation)
    inner = types.input(1).shape[3]
    return inner is not None and inner < _FEW and inner != types.input(0).shape[3]


def _whole_sums(edit: Edit, operation: Operation, source: Stored, grid: tuple[Array, Array]) -> Iterator[Operation]:
    """The layer on bytes minus zero point, as floats; then the product with the scales, the bias and the activation."""
    op: Any = operation.op
    weights, scales = grid
    subgraph = edit.subgraph
    shape, location = subgraph.type(source.operand).shape, operation.location
    whole = edit.operand(Operand(TensorType(DType.FLOAT32, shape)))
    yield Operation(Cast(DType.FLOAT32), (source.operand,), (whole,), location)
    if source.zero:
        centred = edit.operand(Operand(TensorType(DType.FLOAT32, shape)))
        zero = edit.constant(np.array(source.zero, np.float32))
        yield Operation(Binary(BinaryKind.SUB), (whole, zero), (centred,), location)
        whole = centred
    bias = operation.inputs[2] if len(operation.inputs) > 2 else None
    (result,) = operation.outputs
    type_ = subgraph.type(result)
    sums, scaled = (edit.operand(Operand(TensorType(type_.dtype, type_.shape))) for _ in range(2))
    filters = edit.constant(np.ascontiguousarray(weights, np.float32))
    plain = bias is None and op.activation is Activation.NONE
    yield evolve(operation, op=evolve(op, activation=Activation.NONE), inputs=(whole, filters), outputs=(sums,))
    factors = edit.constant(np.float32(source.scale) * scales.astype(np.float32))
    yield evolve(operation, op=Binary(BinaryKind.MUL), inputs=(sums, factors), outputs=(result if plain else scaled,))
    if not plain:
        offset = edit.constant(np.zeros(1, np.float32)) if bias is None else bias
        yield evolve(operation, op=Binary(BinaryKind.ADD, op.activation), inputs=(scaled, offset), outputs=(result,))


def _with_scale(edit: Edit, at: int, source: Stored) -> int:
    """An operand with the bytes whose type has their scale: the same operand if only casts and moves read it."""
    subgraph = edit.subgraph
    type_ = subgraph.type(source.operand)
    scaled = evolve(type_, quantization=source.quantization, data=None)
    if type_ == scaled:
        return source.operand
    moved = [source.operand, *_moved(subgraph, source.operand)]
    producer = definer(subgraph, moved[-1])
    if producer is not None and isinstance(producer.op, Cast) and all(_only_cast(subgraph, i) for i in moved):
        for operand in moved:
            old = subgraph.operands[operand]
            edit.redefine(operand, evolve(old, type=evolve(old.type, quantization=scaled.quantization)))
        return source.operand
    copy = edit.operand(Operand(scaled))
    edit.insert(at, Operation(Cast(type_.dtype), (source.operand,), (copy,), subgraph.operations[at].location))
    return copy


def _moved(subgraph: Subgraph, operand: int) -> Iterator[int]:
    """The earlier operands that the bytes were moved from, step by step."""
    before = definer(subgraph, operand)
    while before is not None and before.op.stored and len(before.inputs) < 3:
        if isinstance(before.op, Cast | Concat):
            return
        operand = before.used[0]
        if subgraph.type(operand).dtype not in BYTES:
            return
        yield operand
        before = definer(subgraph, operand)


def _only_cast(subgraph: Subgraph, operand: int) -> bool:
    """Whether the scale of bytes is not observed: they are not kept, and are only moved or cast."""
    if operand in subgraph.kept or subgraph.type(operand).quantization is not None:
        return False
    return all(
        isinstance(user.op, Cast) or (user.op.stored and len(user.outputs) == 1 and len(subgraph.uses[operand]) == 1)
        for user in (subgraph.operations[at] for at in subgraph.uses.get(operand, ()))
    )


def _groups(subgraph: Subgraph, operation: Operation) -> int:
    """The number of groups of a layer."""
    if not isinstance(operation.op, Conv2D):
        return 1
    x, weights = (subgraph.type(i).shape[3] for i in operation.used[:2])
    return 1 if not x or not weights else x // weights


def _in_groups(
    edit: Edit, operation: Operation, source: int, x: TensorType, weights: Array, scales: Array
) -> Iterator[Operation]:
    """A grouped convolution as parallel convolutions, each of as many groups as fill registers; its filters have zeros
    for the channels of other groups."""
    subgraph = edit.subgraph
    inner, groups, each = weights.shape[3], _groups(subgraph, operation), len(weights)
    combined = next(n for n in range(1, groups + 1) if groups % n == 0 and (n * inner >= _WIDE or n == groups))
    parts, each = groups // combined, each // groups
    result = subgraph.type(operation.outputs[0])
    location, op = operation.location, cast(Any, operation.op)
    layer = evolve(op, activation=Activation.NONE, output=DType.FLOAT32)
    cut = tuple(edit.operand(Operand(evolve(x, shape=(*x.shape[:3], combined * inner)))) for _ in range(parts))
    axis = edit.constant(np.array(3, np.int32))
    yield Operation(Split(parts), (axis, source), cut, location)
    sums = []
    for part, part_input in enumerate(cut):
        rows = slice(part * combined * each, (part + 1) * combined * each)
        filters = np.zeros((combined * each, *weights.shape[1:3], combined * inner), np.int8)
        for group in range(combined):
            group_rows = slice(group * each, (group + 1) * each)
            filters[group_rows, :, :, group * inner : (group + 1) * inner] = weights[rows][group_rows]
        sums.append(edit.operand(Operand(evolve(result, shape=(*result.shape[:3], combined * each)))))
        inputs = part_input, _filters(edit, filters, scales[rows])
        yield evolve(operation, op=layer, inputs=inputs, outputs=(sums[-1],))
    bias = operation.inputs[2] if len(operation.inputs) > 2 else None
    if bias is None and op.activation is Activation.NONE:
        yield Operation(Concat(3), tuple(sums), operation.outputs, location)
        return
    whole = edit.operand(Operand(evolve(result, data=None)))
    yield Operation(Concat(3), tuple(sums), (whole,), location)
    offset = edit.constant(np.zeros(1, np.float32)) if bias is None else bias
    yield Operation(Binary(BinaryKind.ADD, op.activation), (whole, offset), operation.outputs, location)


def _filters(edit: Edit, weights: Array, scales: Array, axis: int = 0) -> int:
    """A constant of bytes, with a scale per output along the axis, or a single scale if all are equal."""
    if (scales == scales[0]).all():
        quantization = Quantization((float(scales[0]),), (0,))
    else:
        quantization = Quantization(tuple(map(float, scales)), (0,) * len(scales), axis)
    return edit.constant(np.ascontiguousarray(weights), DType.INT8, quantization)


def _layer(edit: Edit, operation: Operation, source: int, weights: Array, scales: Array) -> Iterator[Operation]:
    """The layer on bytes, followed by its bias and activation."""
    op: Any = operation.op
    bias = operation.inputs[2] if len(operation.inputs) > 2 else None
    plain = bias is None and op.activation is Activation.NONE
    filters = _filters(edit, weights, scales, 3 if isinstance(op, DepthwiseConv2D) else 0)
    (result,) = operation.outputs
    type_ = edit.subgraph.type(result)
    sums = result if plain else edit.operand(Operand(TensorType(type_.dtype, type_.shape)))
    layer = evolve(op, activation=Activation.NONE, output=DType.FLOAT32)
    yield evolve(operation, op=layer, inputs=(source, filters), outputs=(sums,))
    if not plain:
        offset = edit.constant(np.zeros(1, np.float32)) if bias is None else bias
        added = Binary(BinaryKind.ADD, op.activation)
        yield evolve(operation, op=added, inputs=(sums, offset), outputs=(result,))

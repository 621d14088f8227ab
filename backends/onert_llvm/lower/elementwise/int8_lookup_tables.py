"""Functions of one or two bytes as tables of all their results, as evaluated by the reference."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from attrs import evolve

from onert.ir import Array, CallTypes, DType, Op, RuleError, TensorType, evaluate
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.data_movement.joining import Concat
from onert.ir.ops.elementwise.binary import STORED, Binary, BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison
from onert.ir.shape import normalize_axis
from onert_llvm.codegen.kernel_abi import Algorithm
from onert_llvm.command.command import Pointer, Slot
from onert_llvm.kernels.arithmetic.byte_table import stored_table
from onert_llvm.kernels.data_movement.row_copy import CopyRows
from onert_llvm.kernels.elementwise.pairwise import OPERANDS, PairTable
from onert_llvm.kernels.elementwise.tables import MapBytes, ShiftBytes
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.dtype_sets import BYTES

from .broadcast import grid, why_no_grid
from .float_elementwise import matrix
from .op_to_expression import supported

WHOLE_BYTES = (DType.INT8, DType.UINT8, DType.BOOL)
"""The element types that a byte table may hold."""


def all_bytes(type_: TensorType) -> Array:
    """Every stored value, in unsigned order."""
    return np.arange(256, dtype=np.uint8).view(type_.dtype.numpy)


def why_no_map(op: Op, types: CallTypes) -> str | None:
    """Why an operation is not a function of one byte; None if it is."""
    if len(types.outputs) != 1 or types.output.dtype not in WHOLE_BYTES or 0 in types.output.shape:
        return "its results are not bytes"
    at = _variable(types)
    if at is None:
        return "it is not a function of one tensor of bytes"
    try:
        table(op, types, at)
    except RuleError as error:
        return str(error)
    return None


def _variable(types: CallTypes) -> int | None:
    """The index of the only operand that is not a single constant, if it is bytes in the result's shape; else None."""
    open_ = [i for i, t in enumerate(types.inputs) if t is not None and (t.value is None or t.value.size != 1)]
    if len(open_) != 1:
        return None
    found = types.input(open_[0])
    fits = found.dtype in BYTES and found.shape == types.output.shape and one_scale(found) and one_scale(types.output)
    return open_[0] if fits else None


def one_scale(type_: TensorType) -> bool:
    """Whether a stored value means the same for every element of a tensor."""
    return type_.quantization is None or type_.quantization.per_tensor


def table(op: Op, types: CallTypes, at: int) -> Array:
    """The results of an operation for every byte as operand `at`; the others are single constants."""
    inputs: list[Array | None] = []
    for i, t in enumerate(types.inputs):
        value = None if t is None else t.value
        inputs.append(all_bytes(types.input(at)) if i == at else None if value is None else value.reshape(1))
    return results(op, types, inputs)


def results(op: Op, types: CallTypes, inputs: Sequence[Array | None]) -> Array:
    """The results of an operation on vectors, such as every byte; each operand is a vector, one constant, or absent."""
    given = tuple(
        None if t is None or a is None else evolve(t, shape=a.shape, data=None)
        for t, a in zip(types.inputs, inputs, strict=True)
    )
    shape = np.broadcast_shapes(*(a.shape for a in inputs if a is not None))
    (out,) = evaluate(op, inputs, CallTypes(given, (evolve(types.output, shape=shape, data=None),)))
    return out


def lower_map(lowering: Lowering, operations: Sequence[int]) -> None:
    """A function of one byte, element by element."""
    at, operation, _ = lowering.single(operations, Op)
    types = lowering.subgraph.types(operation)
    position = _variable(types)
    assert position is not None
    source, target = operation.inputs[position], operation.outputs[0]
    assert source is not None
    rows, width = matrix(lowering.shape(target), flat=True)
    map_rows(
        lowering,
        at,
        table(operation.op, types, position),
        (source, lowering.operand(source), width),
        (target, lowering.operand(target), width),
        (rows, width),
    )


Rows = tuple[int, Pointer, int]
"""An operand, the address of its first row, and the distance between rows in bytes."""


def map_rows(lowering: Lowering, at: int, results: Array, source: Rows, target: Rows, size: tuple[int, int]) -> None:
    """Apply a table to rows of bytes; emits a copy or an addition if the table is the identity or a shift."""
    rows, width = size
    unsigned = results.view(np.uint8)
    by = int(unsigned[0])
    if np.array_equal(unsigned, all_bytes_from(0)):
        slots: dict[str, Slot] = {"source": source[1], "source_step": source[2], "target": target[1]}
        algorithm: Algorithm = CopyRows()
        slots |= {"target_step": target[2], "width": width}
    else:
        slots = {"x": source[1], "x_step": source[2], "out": target[1], "out_step": target[2], "width": width}
        shifts = np.array_equal(unsigned, all_bytes_from(by))
        algorithm = ShiftBytes() if shifts else MapBytes()
        slots |= {"by": by} if shifts else {"table": lowering.constant(stored_table(lowering.isa, results))}
    lowering.emit(at, algorithm, slots, rows, (source[0],), (target[0],), rows * width)


def all_bytes_from(first: int) -> Array:
    """All bytes in ascending order from `first`, wrapping around."""
    return (np.arange(256) + first).astype(np.uint8)


_LOOPS = (
    BinaryKind.ADD,
    BinaryKind.SUB,
    BinaryKind.MUL,
    BinaryKind.MAXIMUM,
    BinaryKind.MINIMUM,
    BinaryKind.BITWISE_AND,
    BinaryKind.BITWISE_OR,
    BinaryKind.BITWISE_XOR,
)
"""What one instruction computes for a register of stored bytes."""


def why_no_pairs(op: Op, types: CallTypes) -> str | None:
    """Why an operation is not a function of two bytes, or better a loop; None if it is one."""
    plain = isinstance(op, Comparison) or (isinstance(op, Binary) and op.kind in _LOOPS)
    if plain and supported(op, types):
        return "one instruction computes it for many bytes"
    if len(types.outputs) != 1 or types.output.dtype not in WHOLE_BYTES or 0 in types.output.shape:
        return "its results are not bytes"
    if len(types.inputs) != 2 or any(t is None or t.dtype not in BYTES or not one_scale(t) for t in types.inputs):
        return "it is not a function of two tensors of bytes"
    reason = why_no_grid(types)
    if reason is not None:
        return reason
    on_stored = isinstance(op, Binary) and op.kind in STORED
    if not on_stored and all(types.input(i).quantization is not None for i in (0, 1)):
        return None  # arithmetic on dequantised values, defined for all
    try:
        pair_table(op, types)
    except RuleError as error:
        return str(error)
    return None


def pair_table(op: Op, types: CallTypes, rows: slice = slice(None)) -> Array:
    """The results of an operation for all pairs of bytes, one row for each of the first, or only for some of these."""
    values = [all_bytes(types.input(0))[rows], all_bytes(types.input(1))]
    if isinstance(op, Binary):  # each side is then scaled only once per byte
        inputs = [values[0][:, None], values[1][None, :]]
    else:
        inputs = [np.repeat(values[0], 256), np.tile(values[1], len(values[0]))]
    shape = np.broadcast_shapes(*(i.shape for i in inputs))
    plain = tuple(evolve(types.input(i), shape=inputs[i].shape, data=None) for i in (0, 1))
    (out,) = evaluate(op, inputs, CallTypes(plain, (evolve(types.output, shape=shape, data=None),)))
    return out.reshape(-1, 256)


def lower_pairs(lowering: Lowering, operations: Sequence[int]) -> None:
    """A function of two bytes, element by element."""
    at, operation, _ = lowering.single(operations, Op)
    types = lowering.subgraph.types(operation)
    x, y = operation.used[0], operation.used[-1]
    result = operation.outputs[0]
    found = grid(lowering.shape(result), [lowering.shape(x), lowering.shape(y)])
    assert found is not None
    slots = found.slots(OPERANDS) | {"table": lowering.constant(pair_table(operation.op, types))}
    algorithm = PairTable((found.single[0], found.single[1]))
    lowering.run(at, algorithm, found.rows, {"x": x, "y": y}, {"out": result}, slots, found.rows * found.width)


def why_no_concat(op: Concat, types: CallTypes) -> str | None:
    """Why this backend does not concatenate the tensors; None if it does."""
    present = [t for t in types.inputs if t is not None]
    if any(t.dtype not in BYTES or 0 in t.shape for t in present):
        return "only bytes are native"
    quantized = all(t.quantization is not None and t.quantization.per_tensor for t in (*present, types.output))
    return None if quantized and op.activation.value.function is None else "its quantisation has no native form"


def lower_concat(lowering: Lowering, operations: Sequence[int]) -> None:
    """Copy each operand into its place, through a table if its elements change."""
    (at,) = operations
    operation = lowering.operation(at)
    op, target = operation.op, operation.outputs[0]
    assert isinstance(op, Concat)
    out = lowering.type(target)
    axis = normalize_axis(op.axis, out.rank)
    shape = lowering.shape(target)
    rows = math.prod(shape[:axis])
    step = math.prod(shape[axis:])
    offset = 0
    for source in operation.used:
        width = math.prod(lowering.shape(source)[axis:])
        map_rows(
            lowering,
            at,
            _of_part(op, lowering.type(source), out),
            (source, lowering.operand(source), width),
            (target, lowering.operand(target, offset), step),
            (rows, width),
        )
        offset += width


def _of_part(op: Concat, source: TensorType, result: TensorType) -> Array:
    """The result of every byte of an operand."""
    plain = Concat(0, op.activation) if op.activation is not Activation.NONE else Concat(0)
    types = CallTypes((evolve(source, shape=(256,), data=None),), (evolve(result, shape=(256,), data=None),))
    (found,) = evaluate(plain, [all_bytes(source)], types)
    return found

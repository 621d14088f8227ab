"""Reads the tensors of a flatbuffer model as operands."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from attrs import field, frozen

from onert.frontend.flatbuffer import Data, Table
from onert.ir import Constant, DType, ModelError, Operand, Quantization, RuleError, Shape, TensorType
from onert.ir import shape as shapes
from onert.ir.analysis.inference import shapes_ok
from onert.ir.process import imports
from onert.ir.process.budget import Budget
from onert.ir.value import ByIdentity, Value

from .blockwise_weights import BLOCKS, LENGTH, Block, decode
from .element_types import DTYPES, packed_bytes, strings, unpack
from .schema import slot

_QUANTIZED = frozenset(
    {DType.INT2, DType.INT4, DType.INT8, DType.INT16, DType.UINT4, DType.UINT8, DType.UINT16, DType.INT32, DType.INT64}
)
_TENSOR = 10
"""Units of work charged for a tensor in addition to the tables and numbers that it refers to."""
_STRING = 64
"""Bytes charged for a string in addition to its characters."""
_UNPACKING = "unpacking its constants"


@frozen(eq=False)
class Buffers(ByIdentity):
    """The buffers of a model, stored in the flatbuffer, or after it if `offset` is set."""

    data: Data
    tables: tuple[Table, ...]
    expansion: Budget
    constants: dict[tuple[object, ...], Constant] = field(factory=dict)
    """Constants created so far: tensors with the same buffer, element type, shape and sparsity share one."""

    def __getitem__(self, index: int) -> Data:
        """The bytes of a buffer, which may be empty. Raises ModelError if it does not exist or is outside the file."""
        if not 0 <= index < len(self.tables):
            raise ModelError(f"buffer index is {index}, expected 0 to {len(self.tables) - 1}")
        table = self.tables[index]
        offset = int(table.scalar(slot("Buffer", "offset"), "Q", 0))
        size = int(table.scalar(slot("Buffer", "size"), "Q", 0))
        if offset > 1:
            if offset + size > len(self.data):
                raise ModelError(
                    f"buffer {index} lies at {offset}, {size} bytes, outside of the file's {len(self.data)}"
                )
            return self.data[offset : offset + size]
        found = table.bytes(slot("Buffer", "data"))
        return self.data[:0] if found is None else found


@frozen
class Details(Value):
    """What differs between the formats of the schema.

    `blockwise` is the type number of blockwise quantisation details. With `rows_from_buffer`, a constant whose first
    dimension is 1 has as many rows as its buffer holds, because circle's tools write an unknown dimension as 1.
    """

    blockwise: int
    rows_from_buffer: bool = False


def read_tensors(tables: Sequence[Table], buffers: Buffers, details: Details) -> tuple[Operand, ...]:
    """The tensors of a subgraph as operands. Raises ModelError that names the tensor."""
    found = []
    for index, table in enumerate(tables):
        table.budget.spend(_TENSOR, "reading its tensors")
        name = table.text(slot("Tensor", "name"))
        try:
            found.append(_operand(table, name, tables, buffers, details))
        except (ModelError, RuleError) as error:
            raise ModelError(f"tensor {index} '{name}': {error}") from error
    return tuple(found)


def _operand(table: Table, name: str, tables: Sequence[Table], buffers: Buffers, details: Details) -> Operand:
    number = int(table.scalar(slot("Tensor", "type"), "b", 0))
    block = BLOCKS.get(number)
    if block is None and number not in DTYPES:
        raise ModelError(f"element type is {number}, which is not a type of the schema")
    dtype = DType.FLOAT32 if block is not None else DTYPES[number]
    shape: tuple[int, ...] = tuple(table.array(slot("Tensor", "shape"), "i").tolist())
    if any(d < 0 for d in shape):
        raise ModelError(f"shape {shapes.text(shape)} has a negative dimension")
    buffer = int(table.scalar(slot("Tensor", "buffer"), "I", 0))
    raw = buffers[buffer]
    if details.rows_from_buffer and block is None:
        shape = _with_rows(shape, dtype, len(raw))
    type_ = TensorType(dtype, shape)
    shapes_ok(type_)
    quantization = _quantization(table, type_, raw, tables, buffers, details)
    type_ = TensorType(dtype, shape, quantization)
    variable = bool(table.scalar(slot("Tensor", "is_variable"), "?", False))
    data = None
    if len(raw) and not variable:
        sparsity = table.table(slot("Tensor", "sparsity"))
        key = (buffer, number, shape, None if sparsity is None else sparsity.position)
        data = buffers.constants.get(key)
        if data is None:
            data = buffers.constants[key] = _constant(sparsity, raw, type_, block, buffers.expansion)
    return Operand(type_, name, data, variable, _signature(table, shape))


def _with_rows(shape: tuple[int, ...], dtype: DType, size: int) -> tuple[int, ...]:
    """The shape with its first dimension taken from the buffer's size in bytes if the file says 1."""
    row = math.prod(shape[1:]) * dtype.itemsize
    whole = len(shape) > 1 and shape[0] == 1 and dtype.bits >= 8 and row > 0 and size % row == 0
    return (max(1, size // row), *shape[1:]) if whole else shape


def _signature(table: Table, shape: tuple[int, ...]) -> Shape | None:
    """The shape with the dimensions that the file leaves open unknown; None if it leaves none open."""
    signature = tuple(None if d < 0 else d for d in table.array(slot("Tensor", "shape_signature"), "i").tolist())
    if None not in signature:
        return None
    if not shapes.compatible(signature, shape):
        raise ModelError(f"shape signature {shapes.text(signature)} does not fit shape {shapes.text(shape)}")
    return signature


def _constant(sparsity: Table | None, raw: Data, type_: TensorType, block: Block | None, expansion: Budget) -> Constant:
    """A constant whose elements are decoded on first use; their number is checked now."""
    shape = shapes.static(type_.shape)
    count = int(np.prod(shape, dtype=np.int64))
    if type_.dtype is DType.STRING:
        expansion.spend(len(raw) + _STRING * count, _UNPACKING)
        elements = strings(raw, shape)
        return Constant(elements)
    if type_.dtype.is_handle:
        raise ModelError(f"a tensor of {type_.dtype.text} has {len(raw)} bytes of elements, expected none")
    if sparsity is not None or block is not None or type_.dtype.bits < 8:
        expansion.spend(type_.nbytes, _UNPACKING)
    if sparsity is not None:
        layout = imports.module("onert.frontend.tflite_schema.sparse_tensors").read(sparsity, shape)
        _require_bytes(raw, packed_bytes(type_.dtype, layout.count), type_)
        return Constant(lambda: layout.densify(unpack(raw, type_.dtype, (layout.count,)), shape), raw)
    if block is not None:
        if not shape or shape[-1] % LENGTH:
            raise ModelError(
                f"{block.name} requires a last dimension divisible by {LENGTH}, the shape is {shapes.text(shape)}"
            )
        _require_bytes(raw, count // LENGTH * block.size, type_)
        return Constant(lambda: decode(block, raw, shape), raw)
    _require_bytes(raw, packed_bytes(type_.dtype, count), type_)
    return Constant(lambda: unpack(raw, type_.dtype, shape), raw)


def _require_bytes(raw: Data, wanted: int, type_: TensorType) -> None:
    if len(raw) != wanted:
        raise ModelError(f"has {len(raw)} bytes of elements, expected {wanted} for {type_}")


_LEAST_SCALE = np.finfo(np.float32).tiny
"""Stands for the scale 0 that converters give constant zeros, such as the first state of an unrolled layer."""


def _quantization(
    table: Table, type_: TensorType, raw: Data, tables: Sequence[Table], buffers: Buffers, details: Details
) -> Quantization | None:
    """The quantisation of an integer tensor; None if it has none."""
    found = table.table(slot("Tensor", "quantization"))
    if found is None or type_.dtype not in _QUANTIZED:
        return None
    kind = int(found.scalar(slot("QuantizationParameters", "details_type"), "B", 0))
    blocks = found.table(slot("QuantizationParameters", "details"))
    axis = int(found.scalar(slot("QuantizationParameters", "quantized_dimension"), "i", 0))
    if details.blockwise and kind == details.blockwise and blocks is not None:
        return _blockwise(blocks, type_, axis, tables, buffers)
    scales = found.array(slot("QuantizationParameters", "scale"), "f")
    zeros = found.array(slot("QuantizationParameters", "zero_point"), "q")
    if not len(scales):
        return None
    if type_.dtype in (DType.INT32, DType.INT64) and not np.all(np.isfinite(scales) & (scales > 0)):
        return None  # converters leave such scales on shapes and indices, where they are unused
    if len(raw) and not scales.all() and not np.frombuffer(raw, np.uint8).any():
        scales = np.where(scales == 0, _LEAST_SCALE, scales)
    if not len(zeros):
        zeros = np.zeros(len(scales), np.int64)
    if len(scales) == 1:
        axis_or_none = None
    else:
        if not 0 <= axis < type_.rank:
            raise ModelError(f"is quantised along dimension {axis}, expected 0 to {type_.rank - 1}")
        if len(scales) != type_.shape[axis]:
            raise ModelError(f"has {len(scales)} scales along dimension {axis} of {type_.shape[axis]}")
        axis_or_none = axis
    return Quantization(scales, zeros, axis_or_none)


def _blockwise(blocks: Table, type_: TensorType, axis: int, tables: Sequence[Table], buffers: Buffers) -> Quantization:
    """Scales and zero points stored in separate tensors, one for each run of `block_size` elements of the last axis."""
    size = int(blocks.scalar(slot("BlockwiseQuantization", "block_size"), "i", 0))
    shape = shapes.static(type_.shape)
    if not shape or size <= 0 or shape[-1] % size:
        raise ModelError(f"is quantised in blocks of {size}, which do not divide shape {shapes.text(shape)}")
    count = int(np.prod(shape, dtype=np.int64)) // size
    scales = _numbers(int(blocks.scalar(slot("BlockwiseQuantization", "scales"), "i", 0)), count, tables, buffers)
    zero_index = int(blocks.scalar(slot("BlockwiseQuantization", "zero_points"), "i", 0))
    zeros = np.zeros(1) if zero_index <= 0 else _numbers(zero_index, count, tables, buffers)
    if not np.isfinite(zeros).all():
        raise ModelError("has a zero point of a block that is not finite")
    return Quantization(scales, np.broadcast_to(zeros.astype(np.int64), count), len(shape) - 1, size)


def _numbers(
    index: int, count: int, tables: Sequence[Table], buffers: Buffers
) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    if not 0 <= index < len(tables):
        raise ModelError(f"quantisation names tensor {index}, expected 0 to {len(tables) - 1}")
    table = tables[index]
    dtype = DTYPES.get(int(table.scalar(slot("Tensor", "type"), "b", 0)), DType.STRING)
    raw = buffers[int(table.scalar(slot("Tensor", "buffer"), "I", 0))]
    if dtype.is_handle or len(raw) != packed_bytes(dtype, count):
        raise ModelError(
            f"quantisation parameters in tensor {index} are {len(raw)} bytes of {dtype.text} for {count} blocks"
        )
    return unpack(raw, dtype, (count,)).astype(np.float32)

"""A backend that computes dense layers and convolutions of floats by bytes: dynamic range, on top of the LLVM backend.

Weights are rounded to bytes when a model is compiled, one scale for each output; inputs are rounded when it runs. Where
weights are large that reads a quarter of the memory and multiplies four times as many numbers at once; where they are
small, rounding the inputs takes longer than it saves. So neither this backend nor the one below it is the best for all
layers of a model, and the heterogeneous scheduler, which goes by measured times, gives each layer to the better one.

The answers differ from those of floats by the rounding, some thousandths of the range.
"""

from __future__ import annotations

import numpy as np
from attrs import evolve

from onert.backend import Backend, Group, Kernel, Sequence, Settings
from onert.backend.registry import load_backend
from onert.ir import Array, CallTypes, Constant, DType, Operand, Operation, Quantization, Subgraph, TensorType
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.fully_connected import FullyConnected

_WEIGHT = 1
_MOST = 127


class DynamicRange(Backend):
    """All that the LLVM backend runs; dense layers and convolutions with constant float weights by bytes."""

    api_version = 2
    name = "dynamic_range"
    side_by_side = True

    def __init__(self) -> None:
        self._native = load_backend("llvm")

    def begin(self, settings: Settings) -> None:
        self._native.begin(settings)

    def supports(self, operation: Operation, types: CallTypes) -> str | None:
        if _has_float_weights(operation, types):
            weight = _rounded(types.input(_WEIGHT)).known
            inputs = tuple(weight if i == _WEIGHT else given for i, given in enumerate(types.inputs))
            types = evolve(types, inputs=inputs)
        return self._native.supports(operation, types)

    def most_threads(self, operation: Operation, types: CallTypes) -> int | None:
        return self._native.most_threads(operation, types)

    def fuse(self, sequence: Sequence, settings: Settings) -> tuple[Group, ...]:
        return self._native.fuse(_with_bytes(sequence), settings)

    def generate(self, sequence: Sequence, settings: Settings) -> Kernel:
        return self._native.generate(_with_bytes(sequence), settings)


def _has_float_weights(operation: Operation, types: CallTypes) -> bool:
    """Whether this is a layer whose weights can be rounded beforehand."""
    if not isinstance(operation.op, FullyConnected | Conv2D) or types.input(0).dtype is not DType.FLOAT32:
        return False
    weight = types.input(_WEIGHT)
    return weight.dtype is DType.FLOAT32 and weight.data is not None and 0 not in weight.shape


def _with_bytes(sequence: Sequence) -> Sequence:
    """The sequence with the layers' weights as bytes: more operands behind those that the subgraph has."""
    subgraph = sequence.subgraph
    operands, operations = list(subgraph.operands), list(subgraph.operations)
    for at in sequence.operations:
        operation = operations[at]
        weight = operation.inputs[_WEIGHT] if len(operation.inputs) > _WEIGHT else None
        if weight is None or not _has_float_weights(operation, subgraph.types(operation)):
            continue
        operands.append(_rounded(subgraph.operands[weight].known))
        inputs = tuple(len(operands) - 1 if i == _WEIGHT else given for i, given in enumerate(operation.inputs))
        operations[at] = evolve(operation, inputs=inputs)
    changed: Subgraph = evolve(subgraph, operands=tuple(operands), operations=tuple(operations))
    return evolve(sequence, subgraph=changed)


def _rounded(weight: TensorType) -> Operand:
    """A constant `[outputs, ...]` as bytes, the largest of each output 127."""
    assert weight.data is not None
    floats = weight.data.array
    largest = np.abs(floats).reshape(len(floats), -1).max(axis=1)
    scales = np.where(largest > 0, largest / np.float32(_MOST), np.float32(1)).astype(np.float32)

    def stored() -> Array:
        each = scales.reshape(-1, *(1,) * (floats.ndim - 1))
        return np.clip(np.rint(floats / each), -_MOST, _MOST).astype(np.int8)

    quantization = Quantization(tuple(map(float, scales)), (0,) * len(scales), 0)
    return Operand(TensorType(DType.INT8, weight.shape, quantization), "", Constant(stored))

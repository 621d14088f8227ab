"""A backend with dynamic-range quantisation: float dense layers and convolutions in int8, on the LLVM backend.

Weights are quantised when a model is compiled, with one scale per output; inputs are quantised at run time. Large
weights then need a quarter of the memory and are multiplied four times as many at once; with small ones, quantising the
inputs takes longer than it saves. So neither this backend nor LLVM's is the best for all layers of a model, and the
heterogeneous scheduler assigns each layer to the faster one by measured times.

Results differ from those of floats by the rounding, some thousandths of the range.
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
    """Runs what the LLVM backend runs, and dense layers and convolutions with constant float weights in int8."""

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
    """Whether this is a layer whose weights can be quantised in advance."""
    if not isinstance(operation.op, FullyConnected | Conv2D) or types.input(0).dtype is not DType.FLOAT32:
        return False
    weight = types.input(_WEIGHT)
    return weight.dtype is DType.FLOAT32 and weight.data is not None and 0 not in weight.shape


def _with_bytes(sequence: Sequence) -> Sequence:
    """The sequence with the layers' weights in int8, as operands added to the subgraph."""
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
    """A constant `[outputs, ...]` in int8, scaled so that the largest magnitude of each output is 127."""
    assert weight.data is not None
    floats = weight.data.array
    largest = np.abs(floats).reshape(len(floats), -1).max(axis=1)
    scales = np.where(largest > 0, largest / np.float32(_MOST), np.float32(1)).astype(np.float32)

    def stored() -> Array:
        each = scales.reshape(-1, *(1,) * (floats.ndim - 1))
        return np.clip(np.rint(floats / each), -_MOST, _MOST).astype(np.int8)

    quantization = Quantization(tuple(map(float, scales)), (0,) * len(scales), 0)
    return Operand(TensorType(DType.INT8, weight.shape, quantization), "", Constant(stored))

"""Weight-only quantisation of a TFLite or circle file, written in the same format.

ONE's quantiser calls it `int8_wo` and `int16_wo`: weights become symmetric integers, everything else is unchanged. Int8
weights have a scale per output channel, and their layer quantises its input at run time (LiteRT's dynamic range). No
runtime has layers with float inputs and int16 weights, so these have one scale and are dequantised before the layer,
which LiteRT supports for int16.

The file is read and written with the package circle-schema, which silently drops the options of newer operators.
Therefore the result is read again, and must be the same model except for these weights.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np
from attrs import frozen

from onert.frontend.tflite_schema.model import read_package
from onert.ir import Array, ModelError, Operation, Subgraph, Subgraphs

from .writing import UNREADABLE, add_buffer, add_code, code_of, drop_unused_buffers, elements, parse, schema, serialize

CHANNELS: Mapping[str, int] = {"FULLY_CONNECTED": 0, "CONV_2D": 0, "DEPTHWISE_CONV_2D": 3, "TRANSPOSE_CONV": 0}
"""Layers whose second operand is their weights, and the output channel dimension of these."""


def quantized(content: bytes, bits: int) -> bytes:
    """The file with float32 weights of the layers in `CHANNELS` replaced by int8 or int16 ones (`bits`).

    Weights that are not constant, sparse, not finite or in a special layout are unchanged. Raises ModelError if no
    weights can be quantised, the file is malformed, or it contains something that circle-schema cannot write.
    """
    before, _ = read_package(memoryview(content), None)
    try:
        model = parse(content)
        changes = [change for at in range(len(model.subgraphs)) for change in _Graph(model, at, bits).quantize()]
        if not changes:
            raise ModelError(f"no layer of type {', '.join(CHANNELS)} has constant float weights")
        drop_unused_buffers(model)
        written = serialize(model, content[4:8])
    except UNREADABLE as error:
        raise ModelError(f"the model cannot be rewritten: {error}") from error
    after, _ = read_package(memoryview(written), None)
    _require_same(before, after, changes)
    return written


def rounded(weights: Array, axis: int | None, bits: int) -> tuple[Array, Array]:
    """Quantise symmetrically, with a float32 scale for each index along the axis, or one for all if it is None. The
    largest magnitude becomes the largest integer, ties round away from zero, and the scale of all zeros is 1."""
    largest = (1 << bits - 1) - 1
    others = tuple(i for i in range(weights.ndim) if i != axis)
    scales = (np.abs(weights).max(axis=others, initial=0).astype(np.float64) / largest).astype(np.float32).reshape(-1)
    scales[scales == 0] = 1
    shape = [-1 if i == axis else 1 for i in range(weights.ndim)]
    real = weights.astype(np.float64) / scales.reshape(shape)
    found = np.clip(np.copysign(np.floor(np.abs(real) + 0.5), real), -largest, largest)
    return found.astype(f"int{bits}"), scales


@frozen
class Change:
    """A layer's weights in a subgraph before and after, and how many tensors the subgraph had before."""

    subgraph: int
    before: int
    after: int
    tensors: int


class _Graph:
    """A subgraph whose weights are quantised; dequantise operators are put first."""

    def __init__(self, model: Any, at: int, bits: int) -> None:
        self._model = model
        self._at = at
        self._bits = bits
        self._graph = model.subgraphs[at]
        self._made: dict[tuple[int, int], int] = {}
        self._first: list[Any] = []

    def quantize(self) -> list[Change]:
        """Quantise the weights in place, and return the changes."""
        layers = list(self._layers())
        uses = Counter(i for operator in self._graph.operators for i in operator.inputs)
        uses.update(self._graph.outputs)
        uses.subtract(operator.inputs[1] for operator, _ in layers)
        found, tensors = [], len(self._graph.tensors)
        for operator, axis in layers:
            before = int(operator.inputs[1])
            if (before, axis) not in self._made:
                last = uses[before] == 0 and all(tensor != before for tensor, _ in self._made)
                self._made[before, axis] = self._weights(before, axis, keep=not last)
            operator.inputs = np.array(operator.inputs)
            operator.inputs[1] = self._made[before, axis]
            found.append(Change(self._at, before, self._made[before, axis], tensors))
        self._graph.operators = [*self._first, *self._graph.operators]
        return found

    def _layers(self) -> Iterator[tuple[Any, int]]:
        builtin = schema("BuiltinOperator").BuiltinOperator
        axes = {getattr(builtin, name): axis for name, axis in CHANNELS.items()}
        for operator in self._graph.operators:
            axis = axes.get(code_of(self._model, operator))
            if axis is None or len(operator.inputs) < 2 or _has_own_layout(operator):
                continue
            if self._is_float(int(operator.inputs[1]), axis):
                yield operator, axis

    def _is_float(self, index: int, axis: int) -> bool:
        tensor = self._graph.tensors[index]
        return tensor.shape is not None and len(tensor.shape) > axis and elements(self._model, tensor) is not None

    def _weights(self, index: int, axis: int, *, keep: bool) -> int:
        """The tensor index of a layer's quantised weights. Without `keep`, the old tensor is changed in place."""
        tensor = self._graph.tensors[index]
        raw = np.asarray(self._model.buffers[tensor.buffer].data, np.uint8).tobytes()
        own = axis if self._bits == 8 else None
        integers, scales = rounded(np.frombuffer(raw, np.float32).reshape(tensor.shape), own, self._bits)
        quantization = schema("QuantizationParameters").QuantizationParametersT()
        quantization.scale, quantization.zeroPoint = scales, np.zeros(len(scales), np.int64)
        quantization.quantizedDimension = axis
        name = tensor.name
        if keep:
            tensor, shape = schema("Tensor").TensorT(), tensor.shape
            tensor.shape, tensor.name = shape, name + b":quantised"
            index = self._add(tensor)
        tensor.type = getattr(schema("TensorType").TensorType, f"INT{self._bits}")
        tensor.quantization, tensor.buffer = quantization, add_buffer(self._model, integers)
        return index if self._bits == 8 else self._dequantized(index, tensor, name)

    def _dequantized(self, index: int, stored: Any, name: bytes) -> int:
        tensor, operator = schema("Tensor").TensorT(), schema("Operator").OperatorT()
        tensor.shape, tensor.name, tensor.buffer = stored.shape, name + b":dequantised", 0
        found = self._add(tensor)
        operator.inputs, operator.outputs = [index], [found]
        operator.opcodeIndex = add_code(self._model, "DEQUANTIZE", 5)
        self._first.append(operator)
        return found

    def _add(self, tensor: Any) -> int:
        self._graph.tensors.append(tensor)
        return len(self._graph.tensors) - 1


def _has_own_layout(operator: Any) -> bool:
    """Whether the weights are shuffled."""
    return bool(getattr(operator.builtinOptions, "weightsFormat", 0))


def _require_same(before: Subgraphs, after: Subgraphs, changes: Sequence[Change]) -> None:
    """Raise ModelError unless the models differ only in the weights of these layers."""
    same = len(before.subgraphs) == len(after.subgraphs) and before.signatures == after.signatures
    for at, (old, new) in enumerate(zip(before.subgraphs, after.subgraphs, strict=False)):
        same = same and _is_same(old, new, [c for c in changes if c.subgraph == at])
    if not same:
        raise ModelError("the model cannot be rewritten: it has fields that circle-schema does not know")


def _is_same(old: Subgraph, new: Subgraph, changes: Sequence[Change]) -> bool:
    """Whether subgraphs are equal except for these weights. Operands beyond the file's tensors are renumbered."""
    tensors = min((c.tensors for c in changes), default=len(old.operands))
    more = len(new.operands) - len(old.operands)

    def now(index: int | None) -> int | None:
        return index if index is None or index < tensors else index + more

    def is_same(a: Operation, b: Operation) -> bool:
        ends = list(zip_longest(map(now, a.inputs), b.inputs))
        layers = all(x == y or (x, y) in exchanged for x, y in ends)
        return a.op == b.op and layers and list(map(now, a.outputs)) == list(b.outputs)

    exchanged = {(c.before, c.after) for c in changes}
    made, gone = ({c.after for c in changes}, {c.before for c in changes})
    kept = [operation for operation in new.operations if made.isdisjoint(operation.outputs)]
    return (
        len(kept) == len(old.operations)
        and all(map(is_same, old.operations, kept))
        and all(o == new.operands[now(i) or 0] for i, o in enumerate(old.operands) if i not in gone)
        and (list(map(now, old.inputs)), list(map(now, old.outputs))) == (list(new.inputs), list(new.outputs))
        and [(now(s.variable), now(s.source)) for s in old.state] == [(s.variable, s.source) for s in new.state]
    )

"""Full integer quantisation of a float TFLite or circle model, written in the same format.

Every operator that has an integer form (`schemes`) reads and produces integers, with scales from observed tensor
ranges. The others are unchanged, with quantise and dequantise operators inserted in between. The model's inputs and
outputs remain floats. Only the first subgraph is quantised.

There are two 8-bit forms. If one scale per weight tensor is precise enough for every layer, everything is uint8.
If the output channels of some layer differ too much, weights are quantised per channel and all 8-bit tensors are int8,
the same numbers shifted by 128: LiteRT's kernels support per-channel weights only with int8.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from attrs import evolve

from onert.frontend.tflite_schema.model import read_package
from onert.ir import Array, ModelError

from .schemes import (
    BINARY,
    CLAMPED,
    DATA_OPERAND,
    JOINS,
    LAYERS,
    MOVES,
    OWN_RANGE,
    SCHEMES,
    Layer,
    QuantizationParameters,
    Scheme,
    is_uneven,
)
from .weights_only import rounded
from .writing import (
    UNREADABLE,
    add_buffer,
    add_code,
    code_of,
    drop_unused_buffers,
    drop_unused_tensors,
    elements,
    parse,
    schema,
    serialize,
)

Ranges = Mapping[int, tuple[float, float]]
"""The minimum and maximum of tensors of the first subgraph, by index."""

_LARGEST_BIAS = 1 << 30
"""Leaves headroom to add products to a bias, in 32 bits and in LiteRT's 48 bits."""
_LEAST = 1e-30
"""The minimum scale of an accumulator."""


def quantized(content: bytes, kind: str, ranges: Ranges) -> bytes:
    """The file quantised to "uint8" or "int16", given the ranges of its tensors.

    Raises ModelError if no operator has an integer form and known ranges, the file is malformed, or it contains
    something that circle-schema cannot write.
    """
    before, _ = read_package(memoryview(content), None)
    try:
        again, _ = read_package(memoryview(serialize(parse(content), content[4:8])), None)
        if before != again:
            raise ModelError("the model cannot be rewritten: it has fields that circle-schema does not know")
        model = parse(content)
        graph = _Graph(model, SCHEMES[kind], ranges)
        if kind == "uint8" and graph.is_uneven():
            graph = _Graph(model, SCHEMES["int8"], ranges)
        graph.quantize()
        drop_unused_tensors(model)
        drop_unused_buffers(model)
        written = serialize(model, content[4:8])
    except UNREADABLE as error:
        raise ModelError(f"the model cannot be rewritten: {error}") from error
    read_package(memoryview(written), None)
    return written


class _Graph:
    """The first subgraph, whose operators are rewritten one by one."""

    def __init__(self, model: Any, scheme: Scheme, ranges: Ranges) -> None:
        self._model = model
        self._scheme = scheme
        self._ranges = ranges
        self._graph = model.subgraphs[0]
        self._names = {v: n for n, v in vars(schema("BuiltinOperator").BuiltinOperator).items() if n.isupper()}
        self._computed: dict[int, QuantizationParameters] = {}
        """The quantisation of tensors that are computed as integers."""
        self._real: set[int] = {int(i) for i in self._graph.inputs}
        self._quantized: dict[tuple[int, QuantizationParameters], int] = {}
        """The quantised tensor for each tensor and quantisation."""
        self._codes: dict[str, int] = {}
        self._operators: list[Any] = []
        self._constants: dict[int, Array | None] = {}
        self._producers = {int(t): operator for operator in self._graph.operators for t in operator.outputs}
        self._joined = self._joins()

    def quantize(self) -> None:
        for operator in self._graph.operators:
            name = self._name(operator)
            if self._is_supported(name, operator):
                self._quantize_operator(name, operator)
            else:
                for tensor in operator.inputs:
                    self._need_real(int(tensor))
                self._operators.append(operator)
        self._drop_constants()
        if not self._computed:
            raise ModelError(f"no operator can be computed in {self._scheme.element}")
        for tensor in self._graph.outputs:
            self._need_real(int(tensor))
        self._graph.operators = self._operators

    def _name(self, operator: Any) -> str:
        return str(self._names.get(code_of(self._model, operator), ""))

    def is_uneven(self) -> bool:
        """Whether a layer has weights for which one scale is too coarse."""
        for operator in self._graph.operators:
            layer = LAYERS.get(self._name(operator))
            if layer is not None and self._is_supported(self._name(operator), operator):
                weights = self._constant(int(operator.inputs[layer.weights]))
                if weights is not None and is_uneven(weights, layer.axis):
                    return True
        return False

    def _drop_constants(self) -> None:
        """Remove operators that dequantise float16 constants if their results are no longer used."""
        used = {int(i) for operator in self._operators for i in operator.inputs} | {int(i) for i in self._graph.outputs}
        self._operators = [o for o in self._operators if int(o.outputs[0]) in used or not self._gives_constant(o)]

    def _gives_constant(self, operator: Any) -> bool:
        return self._name(operator) == "DEQUANTIZE" and self._half(int(operator.inputs[0])) is not None

    # ---- which operators can be quantised

    def _is_supported(self, name: str, operator: Any) -> bool:
        known = name in LAYERS or name in OWN_RANGE or name in JOINS or name in MOVES or name in self._scheme.fixed
        if not known or name in self._scheme.unsupported or not self._is_clamped(operator):
            return False
        given = self._activations(name, operator)
        if not all(map(self._is_known, (*given, *map(int, operator.outputs)))):
            return False
        layer = LAYERS.get(name)
        if layer is None:
            return any(self._constant(t) is None for t in given)
        return self._constant(given[0]) is None and self._has_weights(layer, operator)

    def _is_clamped(self, operator: Any) -> bool:
        kinds = schema("ActivationFunctionType").ActivationFunctionType
        options = operator.builtinOptions
        return getattr(options, "fusedActivationFunction", 0) in [getattr(kinds, n) for n in CLAMPED] and not getattr(
            options, "weightsFormat", 0
        )

    def _has_weights(self, layer: Layer, operator: Any) -> bool:
        weights = self._constant(int(operator.inputs[layer.weights]))
        bias = self._bias(layer, operator)
        return weights is not None and weights.ndim > layer.axis and (bias < 0 or self._constant(bias) is not None)

    def _bias(self, layer: Layer, operator: Any) -> int:
        return int(operator.inputs[layer.bias]) if len(operator.inputs) > layer.bias else -1

    def _activations(self, name: str, operator: Any) -> list[int]:
        """The operands to quantise, other than weights and biases."""
        given = [int(i) for i in operator.inputs]
        if name in LAYERS:
            return [given[LAYERS[name].x]]
        if name in JOINS:
            return given
        return given[:2] if name in BINARY else [given[DATA_OPERAND.get(name, 0)]]

    def _is_known(self, tensor: int) -> bool:
        """Whether a tensor holds real numbers in a known range."""
        if tensor < 0 or self._graph.tensors[tensor].type != schema("TensorType").TensorType.FLOAT32:
            return False
        if self._graph.tensors[tensor].isVariable:
            return False
        known = tensor in self._computed or self._constant(tensor) is not None
        return known or (tensor in self._ranges and bool(np.isfinite(self._ranges[tensor]).all()))

    def _constant(self, tensor: int) -> Array | None:
        """The elements of a constant, including one stored as float16."""
        if tensor not in self._constants:
            found, producer = elements(self._model, self._graph.tensors[tensor]), self._producers.get(tensor)
            if producer is not None and self._name(producer) == "DEQUANTIZE":
                found = self._half(int(producer.inputs[0]))
            self._constants[tensor] = found
        return self._constants[tensor]

    def _half(self, tensor: int) -> Array | None:
        found = elements(self._model, self._graph.tensors[tensor], "FLOAT16")
        return None if found is None else found.astype(np.float32)

    # ---- the choice of quantisation

    def _joins(self) -> dict[int, int]:
        """Tensors that only a join reads and that have their own range, mapped to the join's result, whose quantisation
        they take."""
        uses = Counter(int(i) for operator in self._graph.operators for i in operator.inputs)
        uses.update(int(i) for i in self._graph.outputs)
        made = {int(t): self._name(operator) for operator in self._graph.operators for t in operator.outputs}
        found = {}
        for operator in self._graph.operators:
            if self._name(operator) in JOINS and self._is_supported(self._name(operator), operator):
                for tensor in map(int, operator.inputs):
                    if uses[tensor] == 1 and (made.get(tensor) in LAYERS or made.get(tensor) in OWN_RANGE):
                        found[tensor] = int(operator.outputs[0])
        return found

    def _parameters(self, tensor: int) -> QuantizationParameters:
        """The quantisation of a tensor: as it was computed, otherwise from its range."""
        if tensor in self._computed:
            return self._computed[tensor]
        constant = self._constant(tensor)
        if constant is not None:
            return self._scheme.parameters(float(constant.min()), float(constant.max()))
        tensor = self._joined.get(tensor, tensor)
        return self._scheme.parameters(*self._ranges[tensor])

    def _quantize_operator(self, name: str, operator: Any) -> None:
        given, outputs = self._activations(name, operator), [int(t) for t in operator.outputs]
        if name in MOVES:
            results = [self._parameters(given[0])] * len(outputs)
        else:
            results = [self._scheme.fixed.get(name) or self._parameters(t) for t in outputs]
        stored = {t: self._quantized_tensor(t, results[0] if name in JOINS else self._parameters(t)) for t in given}
        inputs = [stored.get(int(i), int(i)) for i in operator.inputs]
        if name in LAYERS:
            inputs = self._quantize_layer(LAYERS[name], operator, inputs, self._parameters(given[0]))
        for tensor, parameters in zip(outputs, results, strict=True):
            self._computed[tensor] = parameters
            self._quantized[tensor, parameters] = self._tensor(tensor, self._scheme.element, [parameters])
        operator.inputs = inputs
        operator.outputs = [self._quantized[t, p] for t, p in zip(outputs, results, strict=True)]
        if hasattr(operator.builtinOptions, "potScaleInt16"):
            operator.builtinOptions.potScaleInt16 = False
        self._operators.append(operator)

    def _quantize_layer(self, layer: Layer, operator: Any, inputs: list[int], x: QuantizationParameters) -> list[int]:
        """The operands of a layer, with its weights and bias quantised."""
        at, bias_at = int(operator.inputs[layer.weights]), self._bias(layer, operator)
        real, bias = self._constant(at), None if bias_at < 0 else self._constant(bias_at)
        assert real is not None
        if self._scheme.by_channel:
            _, scales = rounded(real, layer.axis, 8)
            shape = [-1 if i == layer.axis else 1 for i in range(real.ndim)]
            scales = _wide_enough(scales, bias, x, _LARGEST_BIAS)
            weights = np.clip(np.rint(real / scales.reshape(shape).astype(np.float64)), -127, 127).astype(np.int8)
            parameters = [QuantizationParameters(float(scale)) for scale in scales]
        else:
            own = self._scheme.parameters(float(real.min()), float(real.max()))
            (scale,) = _wide_enough(np.array([own.scale], np.float32), bias, x, _LARGEST_BIAS)
            own = evolve(own, scale=float(scale))
            weights, parameters = self._scheme.quantize(real, own), [own]
        inputs[layer.weights] = self._tensor(at, str(weights.dtype), parameters, layer.axis, weights)
        if bias is not None:
            units = [QuantizationParameters(float(np.float32(x.scale) * np.float32(p.scale))) for p in parameters]
            steps = np.array([u.scale for u in units])
            stored = np.rint(bias.astype(np.float64) / steps).astype(self._scheme.bias)
            inputs[layer.bias] = self._tensor(bias_at, self._scheme.bias, units, 0, stored)
        return inputs

    # ---- writing

    def _quantized_tensor(self, tensor: int, parameters: QuantizationParameters) -> int:
        """The tensor that holds another with the given quantisation; created if necessary."""
        found = self._quantized.get((tensor, parameters))
        if found is not None:
            return found
        constant = self._constant(tensor)
        if constant is not None:
            stored = self._scheme.quantize(constant, parameters)
            found = self._tensor(tensor, self._scheme.element, [parameters], 0, stored)
        else:
            source = self._quantized[tensor, self._computed[tensor]] if tensor in self._computed else tensor
            found = self._tensor(tensor, self._scheme.element, [parameters])
            self._convert("QUANTIZE", source, found)
        self._quantized[tensor, parameters] = found
        return found

    def _need_real(self, tensor: int) -> None:
        if tensor in self._computed and tensor not in self._real:
            self._convert("DEQUANTIZE", self._quantized[tensor, self._computed[tensor]], tensor)
            self._real.add(tensor)

    def _convert(self, name: str, source: int, target: int) -> None:
        if name not in self._codes:
            self._codes[name] = add_code(self._model, name, 2)
        operator = schema("Operator").OperatorT()
        operator.opcodeIndex, operator.inputs, operator.outputs = self._codes[name], [source], [target]
        self._operators.append(operator)

    def _tensor(
        self,
        like: int,
        element: str,
        parameters: Iterable[QuantizationParameters],
        axis: int = 0,
        stored: Array | None = None,
    ) -> int:
        """Add a tensor with the shape and name of another."""
        old, tensor = self._graph.tensors[like], schema("Tensor").TensorT()
        table = schema("QuantizationParameters").QuantizationParametersT()
        every = list(parameters)
        table.scale = np.array([p.scale for p in every], np.float32)
        table.zeroPoint = np.array([p.zero_point for p in every], np.int64)
        table.quantizedDimension = axis if len(every) > 1 else 0
        tensor.shape, tensor.shapeSignature, tensor.hasRank = old.shape, old.shapeSignature, old.hasRank
        tensor.name = (old.name or b"") + f":{element}".encode()
        tensor.type = getattr(schema("TensorType").TensorType, element.upper())
        tensor.quantization = table
        tensor.buffer = 0 if stored is None else add_buffer(self._model, stored)
        self._graph.tensors.append(tensor)
        return len(self._graph.tensors) - 1


def _wide_enough(scales: Array, bias: Array | None, x: QuantizationParameters, most: int) -> Array:
    """Weight scales increased so that no bias exceeds `most` steps and their product with the scale of `x` is not 0."""
    scales = np.maximum(scales, np.float32(_LEAST / x.scale))
    if bias is None or not bias.size:
        return scales
    largest = np.abs(bias.astype(np.float64))
    least = (largest if len(scales) == bias.size else largest.max()) / (most * x.scale)
    return np.maximum(scales, least.astype(np.float32) if isinstance(least, np.ndarray) else np.float32(least))

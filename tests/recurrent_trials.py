"""Random recurrent layers other than LSTMs: each kind with all options, with a seed for each."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from attrs import evolve, field, frozen

from onert.ir import Array, CallTypes, DType, Quantization, TensorType

KINDS = ("float", "hybrid", "hybrid asymmetric", "hybrid u8")
_ACTIVATIONS = {"NONE": 0, "RELU": 1, "RELU_N1_TO_1": 2, "RELU6": 3, "TANH": 4}


@frozen(eq=False)
class Trial:
    """A model of one operator, the inputs of its runs, and the tolerance for floats relative to 1."""

    name: str
    code: str
    options: tuple[str, Mapping[str, Any]]
    types: CallTypes
    constants: Mapping[int, Array]
    variables: tuple[int, ...]
    rounds: tuple[tuple[Array, ...], ...]
    intermediates: tuple[TensorType, ...] = ()
    tolerance: float = field(default=2e-6)


class Draw:
    """Operands drawn at random, determined by the name; they are added in the operator's order."""

    def __init__(self, name: str, kind: str) -> None:
        self.name = name
        self.kind = kind
        self.rng = np.random.default_rng(zlib.crc32(name.encode()))
        self.types: list[TensorType | None] = []
        self.constants: dict[int, Array] = {}
        self.variables: list[int] = []
        self.given: list[int] = []

    def none(self, count: int = 1) -> None:
        self.types += [None] * count

    def real(self, shape: Sequence[int], spread: float = 1.0) -> None:
        self.constants[len(self.types)] = self.rng.normal(0, spread, shape).astype(np.float32)
        self.types.append(TensorType(DType.FLOAT32, tuple(shape)))

    def weights(self, shape: Sequence[int], spread: float = 0.5) -> None:
        if self.kind == "float":
            return self.real(shape, spread)
        signed = self.rng.integers(-127, 127, shape, np.int8, endpoint=True)
        unsigned = self.kind.endswith("u8")
        scale = spread / 60 * float(self.rng.uniform(0.7, 1.3))
        self.constants[len(self.types)] = signed.view(np.uint8) if unsigned else signed
        dtype = DType.UINT8 if unsigned else DType.INT8
        self.types.append(TensorType(dtype, tuple(shape), per_tensor(scale)))
        return None

    def stored(self, dtype: DType, shape: Sequence[int], scale: float, zero: int = 0, reach: int | None = None) -> None:
        low, high = dtype.limits if reach is None else (-reach, reach)
        self.constants[len(self.types)] = self.rng.integers(low, high, shape, dtype.numpy, endpoint=True)
        self.types.append(TensorType(dtype, tuple(shape), per_tensor(scale, zero)))

    def input(self, shape: Sequence[int], quantization: Quantization | None = None) -> None:
        self.given.append(len(self.types))
        dtype = DType.FLOAT32 if quantization is None else DType.INT8
        self.types.append(TensorType(dtype, tuple(shape), quantization))

    def state(
        self, shape: Sequence[int], dtype: DType = DType.FLOAT32, quantization: Quantization | None = None
    ) -> None:
        self.variables.append(len(self.types))
        self.types.append(TensorType(dtype, tuple(shape), quantization))

    def elements(self, type_: TensorType) -> Array:
        shape = tuple(d or 0 for d in type_.shape)
        if type_.dtype.is_integer:
            return self.rng.integers(*type_.dtype.limits, shape, type_.dtype.numpy, endpoint=True)
        return self.rng.normal(size=shape).astype(np.float32)

    def trial(
        self,
        code: str,
        table: str,
        fields: Mapping[str, Any],
        results: Sequence[TensorType],
        *,
        runs: int = 3,
        intermediates: Sequence[TensorType] = (),
    ) -> Trial:
        given = [t for at in self.given if (t := self.types[at]) is not None]
        rounds = [tuple(self.elements(t) for t in given) for _ in range(runs)]
        rounds[-1] = tuple(np.zeros_like(a) for a in rounds[-1])  # kernels skip rows of zeros
        asymmetric = self.kind == "hybrid asymmetric"
        options = {**fields, "asymmetricQuantizeInputs": True} if asymmetric else fields
        return Trial(
            self.name,
            code,
            (table, options),
            CallTypes(tuple(self.types), tuple(results)),
            self.constants,
            tuple(self.variables),
            tuple(rounds),
            tuple(intermediates),
        )


def per_tensor(scale: float, zero: int = 0) -> Quantization:
    return Quantization((float(np.float32(scale)),), (zero,))


def floats(*shape: int) -> TensorType:
    return TensorType(DType.FLOAT32, shape)


def svdf() -> Iterator[Trial]:
    for kind, rank, act, bias in product((*KINDS, "integer"), (1, 2), ("NONE", "RELU"), (False, True)):
        if kind == "integer" and act != "RELU":
            continue  # LiteRT's integer kernel refuses it
        name = f"{kind} rank {rank} {act} bias {bias}"
        draw = Draw(name, kind)
        batch, features, units, memory = (int(n) for n in draw.rng.integers(1, 9, 4))
        filters = units * rank
        fields = {"rank": rank, "fusedActivationFunction": _ACTIVATIONS[act]}
        if kind == "integer":
            draw.input((batch, features), per_tensor(0.05, 7))
            draw.stored(DType.INT8, (filters, features), 0.01)
            draw.stored(DType.INT16, (filters, memory), 0.0001)
            draw.stored(DType.INT32, (units,), 1e-6, reach=100000) if bias else draw.none()
            draw.state((batch, memory * filters), DType.INT16, per_tensor(0.0004))
            result = TensorType(DType.INT8, (batch, units), per_tensor(0.05, -128))
        else:
            draw.input((batch, features))
            draw.weights((filters, features))
            draw.weights((filters, memory))
            draw.real((units,)) if bias else draw.none()
            draw.state((batch, memory * filters))
            result = floats(batch, units)
        yield draw.trial("SVDF", "SVDFOptions", fields, [result], runs=5)


def rnn() -> Iterator[Trial]:
    for kind, act in product(KINDS, _ACTIVATIONS):
        draw = Draw(f"{kind} {act}", kind)
        batch, features, units = (int(n) for n in draw.rng.integers(1, 12, 3))
        draw.input((batch, features))
        _rnn_layer(draw, features, units)
        draw.state((batch, units))
        yield draw.trial("RNN", "RNNOptions", {"fusedActivationFunction": _ACTIVATIONS[act]}, [floats(batch, units)])
    for kind, act, major in product(KINDS, ("TANH", "RELU6"), (False, True)):
        draw = Draw(f"{kind} {act} time-major {major}", kind)
        batch, time, features, units = (int(n) for n in draw.rng.integers(1, 9, 4))
        ends = (time, batch) if major else (batch, time)
        draw.input((*ends, features))
        _rnn_layer(draw, features, units)
        draw.state((batch, units))
        fields = {"fusedActivationFunction": _ACTIVATIONS[act], "timeMajor": major}
        yield draw.trial("UNIDIRECTIONAL_SEQUENCE_RNN", "SequenceRNNOptions", fields, [floats(*ends, units)])


def _rnn_layer(draw: Draw, features: int, units: int) -> None:
    draw.weights((units, features))
    draw.weights((units, units), 0.2)
    draw.real((units,), 0.3)


def long_rnn() -> Iterator[Trial]:
    """Sequences so long that a single different rounding would show."""
    for kind in KINDS[1:]:
        draw = Draw(f"{kind} long", kind)
        draw.input((1, 40, 24))
        _rnn_layer(draw, 24, 48)
        draw.state((1, 48))
        trial = draw.trial(
            "UNIDIRECTIONAL_SEQUENCE_RNN", "SequenceRNNOptions", {"fusedActivationFunction": 4}, [floats(1, 40, 48)]
        )
        yield evolve(trial, tolerance=0.0)


def bidirectional_rnn() -> Iterator[Trial]:
    for kind, major, merge, aux in product(KINDS, (False, True), (False, True), ("none", "linked", "stacked")):
        if aux == "stacked" and not major:
            continue  # LiteRT's kernel then ignores the second sequence
        name = f"{kind} time-major {major} merged {merge} aux {aux}"
        draw = Draw(name, kind)
        batch, time, features, first, second = (int(n) for n in draw.rng.integers(1, 8, 5))
        if major and kind != "float":
            time = 1  # LiteRT's kernel runs a longer sequence once per step
            if merge:
                batch = 1  # and reads invalid offsets for all items but the first
        ends = (time, batch) if major else (batch, time)
        draw.input((*ends, features))
        for units in (first, second):
            _rnn_layer(draw, features, units)
            draw.state((batch, units))
        if aux == "none":
            draw.none(3)
        else:
            draw.input((*ends, features))
            draw.weights((first, features)) if aux == "linked" else draw.none()
            draw.weights((second, features)) if aux == "linked" else draw.none()
        fields = {"fusedActivationFunction": 4, "timeMajor": major, "mergeOutputs": merge}
        results = [floats(*ends, first + second)] if merge else [floats(*ends, first), floats(*ends, second)]
        yield draw.trial("BIDIRECTIONAL_SEQUENCE_RNN", "BidirectionalSequenceRNNOptions", fields, results)

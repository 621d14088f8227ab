"""Recurrent layers whose state is their last output."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from attrs import frozen

from onert.ir.dtype import Array, DType
from onert.ir.op import require, with_absent
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.types import CallTypes, TensorType

from .recurrent import (
    EIGHT_BITS,
    Layout,
    Quantizer,
    Recurrent,
    Rows,
    Weights,
    require_auxiliary,
    require_dtype,
    require_kind,
    require_shape,
    require_weights,
    scan,
    weights,
)


@frozen(eq=False)
class _Cell:
    """`activation(bias + x · weightsᵀ + aux · aux_weightsᵀ + h · recurrentᵀ)`."""

    weights: Weights
    recurrent: Weights
    bias: Array
    aux: Weights | None
    activation: Activation
    quantizer: Quantizer

    def run(self, x: Array, aux: Array | None, h: Array, *, backward: bool = False) -> tuple[Array, Array]:
        """Outputs [time, batch, units] and the last output, for `x` [time, batch, features]."""
        given = self.bias + self.weights.times(self.quantizer.rows(x))
        if aux is not None and self.aux is not None:
            given = given + self.aux.times(self.quantizer.rows(aux))
        given = given.reshape(*x.shape[:2], len(self.bias))

        def step(at: int, state: tuple[Array, ...]) -> tuple[Array, ...]:
            before: Rows = self.quantizer.rows(state[0])
            return (self.quantizer.functions.activate(self.activation, given[at] + self.recurrent.times(before)),)

        outputs, (last,) = scan(step, len(x), (h,), backward=backward)
        return outputs, last


def _check(
    x: TensorType,
    weight: TensorType,
    recurrent: TensorType,
    bias: TensorType,
    h: TensorType,
    batch: int | None,
    name: str,
) -> int | None:
    """The number of units of a layer. Raises RuleError if its operands break a rule."""
    require_kind(weight)
    require(weight.rank == 2, f"{name}weights are {weight}, expected 2 dimensions")
    units = weight.shape[0]
    require_shape(weight, (units, x.shape[-1]), f"{name}weights")
    require_shape(recurrent, (units, units), f"{name}recurrent weights")
    require_shape(bias, (units,), f"{name}bias")
    require_shape(h, (batch, units), f"{name}state")
    require_weights(weight, weight, f"{name}weights")
    require_weights(recurrent, weight, f"{name}recurrent weights")
    require_dtype(bias, DType.FLOAT32, f"{name}bias")
    require_dtype(h, DType.FLOAT32, f"{name}state")
    return units


@frozen
class RNN(Recurrent):
    """A fully connected recurrent layer: `y = activation(bias + x · weightsᵀ + h · recurrentᵀ)`, and y is the next h.

    Operands: `x` [batch, features] for one step, or a sequence [batch, time, features], with `time_major` [time, batch,
    features]; `weights` [units, features]; `recurrent` [units, units]; `bias` [units]; `h` [batch, units]: state, the
    last output. Results: the outputs of all steps in the layout of `x`, and the next state.

    Element types: float32; or float32 `x` with int8 or uint8 weights, for which each vector is quantised at run time,
    symmetrically or with `asymmetric_inputs`.

    Source: TFLite RNN and UNIDIRECTIONAL_SEQUENCE_RNN, kernels/internal/kernel_utils.cc (RnnBatchStep).
    """

    activation: Activation = Activation.NONE
    time_major: bool = False
    asymmetric_inputs: bool = False

    carries: ClassVar[tuple[str, ...]] = ("h",)

    def infer(
        self, x: TensorType, weights: TensorType, recurrent: TensorType, bias: TensorType, h: TensorType
    ) -> tuple[TensorType, TensorType]:
        require_dtype(x, DType.FLOAT32, "x")
        layout = Layout(self.time_major)
        _, batch = layout.ends(x)
        units = _check(x, weights, recurrent, bias, h, batch, "")
        return x.result(layout.result(x, units)), h.result(h.shape)

    def evaluate(self, x: Array, weight: Array, recurrent: Array, bias: Array, h: Array) -> tuple[Array, Array]:
        return self._run(x, Weights(weight), Weights(recurrent), bias, h, Quantizer())

    def evaluate_quantized(
        self, types: CallTypes, x: Array, weight: Array, recurrent: Array, bias: Array, h: Array
    ) -> tuple[Array, Array]:
        first, second = types.input(1), types.input(2)
        quantizer = Quantizer(first.dtype in EIGHT_BITS, self.asymmetric_inputs)
        return self._run(x, weights(weight, first), weights(recurrent, second), bias, h, quantizer)

    def _run(
        self, x: Array, weight: Weights, recurrent: Weights, bias: Array, h: Array, quantizer: Quantizer
    ) -> tuple[Array, Array]:
        layout = Layout(self.time_major)
        cell = _Cell(weight, recurrent, bias, None, self.activation, quantizer)
        outputs, last = cell.run(layout.steps(x), None, h)
        return layout.back(outputs, x), last


@frozen
class BidirectionalRNN(Recurrent):
    """Two recurrent layers over one sequence, the second one from its end to its start.

    Operands: `x` [batch, time, features], with `time_major` [time, batch, features]; for the forward and the backward
    layer weights, recurrent weights, bias and state as in `RNN`; `aux`: a second sequence. With `forward_aux` and
    `backward_aux` [units, aux features] both layers add its products with these weights; without them the backward
    layer reads `aux` instead of `x`, for stacked layers without cross links. Results: the outputs forward and backward,
    or with `merge_outputs` both concatenated along the last dimension; then the next states.

    Element types as in `RNN`. LiteRT's kernel ignores an `aux` that replaces `x` unless `time_major` is set, and with
    integer weights runs a time-major sequence once for each of its steps; here both cases work as described.

    Source: TFLite BIDIRECTIONAL_SEQUENCE_RNN.
    """

    activation: Activation = Activation.NONE
    time_major: bool = False
    merge_outputs: bool = False
    asymmetric_inputs: bool = False

    carries: ClassVar[tuple[str, ...]] = ("forward_h", "backward_h")

    def infer(
        self,
        x: TensorType,
        forward_weights: TensorType,
        forward_recurrent: TensorType,
        forward_bias: TensorType,
        forward_h: TensorType,
        backward_weights: TensorType,
        backward_recurrent: TensorType,
        backward_bias: TensorType,
        backward_h: TensorType,
        aux: TensorType | None = None,
        forward_aux: TensorType | None = None,
        backward_aux: TensorType | None = None,
    ) -> tuple[TensorType, ...]:
        require_dtype(x, DType.FLOAT32, "x")
        require(x.rank == 3, f"x has rank {x.rank}, expected 3")
        require((forward_aux is None) == (backward_aux is None), "only one of the auxiliary weights is present")
        require_auxiliary(aux, x, linked=forward_aux is not None)
        _, batch = Layout(self.time_major).ends(x)
        read = aux if aux is not None and backward_aux is None else x
        forward = _check(x, forward_weights, forward_recurrent, forward_bias, forward_h, batch, "forward ")
        backward = _check(read, backward_weights, backward_recurrent, backward_bias, backward_h, batch, "backward ")
        require_dtype(backward_weights, forward_weights.dtype, "backward weights")
        for weight, units, name in ((forward_aux, forward, "forward"), (backward_aux, backward, "backward")):
            require_shape(weight, (units, aux.shape[2] if aux is not None else None), f"{name} auxiliary weights")
            require_weights(weight, forward_weights, f"{name} auxiliary weights")
        states = (forward_h.result(forward_h.shape), backward_h.result(backward_h.shape))
        if self.merge_outputs:
            both = None if forward is None or backward is None else forward + backward
            return (x.result((*x.shape[:2], both)), *states)
        return (x.result((*x.shape[:2], forward)), x.result((*x.shape[:2], backward)), *states)

    def evaluate(self, x: Array, *rest: Array | None) -> tuple[Array, ...]:
        return self._run((x, *rest), (), Quantizer())

    def evaluate_quantized(self, types: CallTypes, *xs: Array | None) -> tuple[Array, ...]:
        integers = types.input(1).dtype in EIGHT_BITS
        return self._run(xs, types.inputs, Quantizer(integers, self.asymmetric_inputs))

    def _run(
        self, xs: tuple[Array | None, ...], types: tuple[TensorType | None, ...], quantizer: Quantizer
    ) -> tuple[Array, ...]:
        xs, types = with_absent(xs, 12), with_absent(types, 12)
        x, aux = xs[0], xs[9]
        assert x is not None
        layout = Layout(self.time_major)
        linked = xs[10] is not None
        outputs, states = [], []
        for first, aux_at, backward in ((1, 10, False), (5, 11, True)):
            weight, recurrent, bias, h, across = xs[first], xs[first + 1], xs[first + 2], xs[first + 3], xs[aux_at]
            assert weight is not None
            assert recurrent is not None
            assert bias is not None
            assert h is not None
            cell = _Cell(
                weights(weight, types[first]),
                weights(recurrent, types[first + 1]),
                bias,
                None if across is None else weights(across, types[aux_at]),
                self.activation,
                quantizer,
            )
            read = aux if backward and aux is not None and not linked else x
            extra = layout.steps(aux) if aux is not None and linked else None
            y, last = cell.run(layout.steps(read), extra, h, backward=backward)
            outputs.append(layout.back(y, x))
            states.append(last)
        if self.merge_outputs:
            outputs = [np.concatenate(outputs, axis=-1)]
        return (*outputs, *states)

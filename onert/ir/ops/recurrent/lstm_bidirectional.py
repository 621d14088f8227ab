"""Two long short-term memory layers over one sequence, one in each direction."""

from __future__ import annotations

from typing import ClassVar, TypeVar

import numpy as np
from attrs import frozen

from onert.ir.dtype import Array
from onert.ir.op import operands, require, with_absent
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.types import CallTypes, TensorType

from .lstm import require_clips
from .lstm_cell import cell
from .lstm_parts import LAYER, Parts, check, needed, parts, require_float_types
from .recurrent import EIGHT_BITS, Layout, Quantizer, Recurrent, require_auxiliary, require_dtype

_OPERANDS, _STATES, _AUX = 48, 35, 39
_WEIGHTS = " ".join(f"{way}_{name}" for way in ("forward", "backward") for name in LAYER.split())
T = TypeVar("T")


@frozen
class BidirectionalLSTM(Recurrent):
    """Two long short-term memory layers over one sequence, the second one from its end to its start.

    - `x`: [batch, time, inputs], with `time_major` [time, batch, inputs]
    - for the forward layer, then for the backward one: weights, recurrent weights, peepholes, biases and projection as
      in `LSTM`; then the states of both, [batch, outputs] and [batch, cells]
    - `aux`: a second sequence, and for each layer its four weights [cells, auxiliary inputs]; with these weights both
      layers add the products to their gates. Without them the backward layer reads `aux` instead of `x`, for stacked
      layers without cross links.

    Results: the outputs of all steps forward and backward, or with `merge_outputs` both concatenated along the last
    dimension; then the next states. Element types: float32, with weights of float32, int8 or uint8 as in `LSTM`.

    Source: TFLite BIDIRECTIONAL_SEQUENCE_LSTM, kernels/lstm_eval.cc.
    """

    activation: Activation = Activation.TANH
    time_major: bool = False
    merge_outputs: bool = False
    cell_clip: float = 0.0
    projection_clip: float = 0.0
    asymmetric_inputs: bool = False

    carries: ClassVar[tuple[str, ...]] = ("forward_h", "forward_c", "backward_h", "backward_c")
    params = operands(
        f"x {_WEIGHTS} {' '.join(carries)} aux? "
        "forward_ai? forward_af? forward_ac? forward_ao? backward_ai? backward_af? backward_ac? backward_ao?"
    )

    def infer(self, *given: TensorType | None) -> tuple[TensorType, ...]:
        every = with_absent(given, _OPERANDS)
        x, aux = needed(every[0]), every[_AUX]
        states = tuple(needed(state) for state in every[_STATES:_AUX])
        first, second = (_layer(every, at) for at in (0, 1))
        sizes = self._check(x, aux, (first, second), states)
        carried = tuple(s.result(s.shape) for s in states)
        if self.merge_outputs:
            both = None if None in sizes else sum(s for s in sizes if s is not None)
            return (x.result((*x.shape[:2], both)), *carried)
        return (*(x.result((*x.shape[:2], size)) for size in sizes), *carried)

    def _check(
        self,
        x: TensorType,
        aux: TensorType | None,
        layers: tuple[Parts[TensorType], Parts[TensorType]],
        states: tuple[TensorType, ...],
    ) -> tuple[int | None, ...]:
        """The number of outputs of both layers. Raises RuleError if an operand breaks a rule."""
        require_clips(self.cell_clip, self.projection_clip)
        require(x.rank == 3, f"x has rank {x.rank}, expected 3")
        linked = layers[0].aux[3] is not None
        require((layers[1].aux[3] is not None) is linked, "only one of the layers has auxiliary weights")
        require_auxiliary(aux, x, linked=linked)
        _, batch = Layout(self.time_major).ends(x)
        kind = needed(layers[0].weights[3]).dtype
        sizes = []
        for layer, h, c, read in zip(layers, states[0::2], states[1::2], (x, x if linked else aux or x), strict=True):
            sizes.append(check(layer, read, h, c, batch, aux.shape[2] if aux is not None else None))
            require_float_types(layer, x, h, c)
            require_dtype(layer.weights[3], kind, "input weights")
        return tuple(sizes)

    def evaluate(self, *xs: Array | None) -> tuple[Array, ...]:
        return self._run(xs, None, Quantizer())

    def evaluate_quantized(self, types: CallTypes, *xs: Array | None) -> tuple[Array, ...]:
        integers = types.input(4).dtype in EIGHT_BITS
        return self._run(xs, types.inputs, Quantizer(integers, self.asymmetric_inputs))

    def _run(
        self, xs: tuple[Array | None, ...], types: tuple[TensorType | None, ...] | None, quantizer: Quantizer
    ) -> tuple[Array, ...]:
        xs, kinds = with_absent(xs, _OPERANDS), None if types is None else with_absent(types, _OPERANDS)
        layout, x, aux = Layout(self.time_major), needed(xs[0]), xs[_AUX]
        linked = xs[_AUX + 2] is not None
        outputs, states = [], []
        for at, backward in ((0, False), (1, True)):
            elements = _layer(xs, at)
            layer = cell(
                elements,
                None if kinds is None else _layer(kinds, at),
                quantizer,
                self.activation,
                (self.cell_clip, self.projection_clip),
            )
            steps = layout.steps(aux if backward and aux is not None and not linked else x)
            extra = layout.steps(aux) if aux is not None and linked else None
            h, c = needed(xs[_STATES + 2 * at]), needed(xs[_STATES + 1 + 2 * at])
            cells, size = len(needed(elements.weights[3])), needed(elements.recurrent[3]).shape[-1]
            batch = steps.shape[1]
            y, last, state = layer.run(steps, extra, h.reshape(batch, size), c.reshape(batch, cells), backward=backward)
            outputs.append(layout.back(y, x))
            states += [last.reshape(h.shape), state.reshape(c.shape)]
        if self.merge_outputs:
            outputs = [np.concatenate(outputs, axis=-1)]
        return (*outputs, *states)


def _layer(every: tuple[T | None, ...], at: int) -> Parts[T]:
    """The parts of the forward layer (0) or the backward one (1) among all operands."""
    return parts(every[1 + 17 * at : 18 + 17 * at], aux=every[40 + 4 * at : 44 + 4 * at])

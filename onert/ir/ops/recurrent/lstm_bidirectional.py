"""Two long short-term memory layers over one sequence, in both directions."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from attrs import frozen

from onert.ir.dtype import Array, DType
from onert.ir.flops import gates, stepped
from onert.ir.op import Op, require
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.types import CallTypes, TensorType

from .lstm import require_clips
from .lstm_cell import cell
from .lstm_parts import Parts, check, needed, parts, require_float_types
from .recurrent import EIGHT_BITS, Layout, Quantizer, require_dtype, require_shape

_OPERANDS, _AUX = 48, 39


@frozen
class BidirectionalLSTM(Op):
    """Two long short-term memory layers over one sequence, the second from its end to its beginning.

    - `x`: `[batch, time, inputs]`, with `time_major` `[time, batch, inputs]`
    - for the forward layer, then for the backward one: weights, recurrent weights, peepholes, biases and projection as
      of `LSTM`; then the states of both, `[batch, outputs]` and `[batch, cells]`
    - `aux`: a second sequence, and for each layer four weights for it, `[cells, auxiliary inputs]`: with them both
      layers add it to their inputs. Without them the backward layer reads `aux` instead of `x`, as layers stacked
      without cross links do.

    Gives the outputs of all steps forward and backward, or with `merge_outputs` one result whose last dimension holds
    both; then the next states. Element types: float32, with weights of float32, int8 or uint8 as of `LSTM`.

    Source: TFLite BIDIRECTIONAL_SEQUENCE_LSTM, kernels/lstm_eval.cc.
    """

    activation: Activation = Activation.TANH
    time_major: bool = False
    merge_outputs: bool = False
    cell_clip: float = 0.0
    projection_clip: float = 0.0
    asymmetric_inputs: bool = False

    carries: ClassVar[tuple[str, ...]] = ("forward_h", "forward_c", "backward_h", "backward_c")

    def infer(
        self,
        x: TensorType,
        forward_wi: TensorType | None,
        forward_wf: TensorType,
        forward_wc: TensorType,
        forward_wo: TensorType,
        forward_ri: TensorType | None,
        forward_rf: TensorType,
        forward_rc: TensorType,
        forward_ro: TensorType,
        forward_pi: TensorType | None,
        forward_pf: TensorType | None,
        forward_po: TensorType | None,
        forward_bi: TensorType | None,
        forward_bf: TensorType,
        forward_bc: TensorType,
        forward_bo: TensorType,
        forward_projection: TensorType | None,
        forward_projection_bias: TensorType | None,
        backward_wi: TensorType | None,
        backward_wf: TensorType,
        backward_wc: TensorType,
        backward_wo: TensorType,
        backward_ri: TensorType | None,
        backward_rf: TensorType,
        backward_rc: TensorType,
        backward_ro: TensorType,
        backward_pi: TensorType | None,
        backward_pf: TensorType | None,
        backward_po: TensorType | None,
        backward_bi: TensorType | None,
        backward_bf: TensorType,
        backward_bc: TensorType,
        backward_bo: TensorType,
        backward_projection: TensorType | None,
        backward_projection_bias: TensorType | None,
        forward_h: TensorType,
        forward_c: TensorType,
        backward_h: TensorType,
        backward_c: TensorType,
        aux: TensorType | None = None,
        forward_ai: TensorType | None = None,
        forward_af: TensorType | None = None,
        forward_ac: TensorType | None = None,
        forward_ao: TensorType | None = None,
        backward_ai: TensorType | None = None,
        backward_af: TensorType | None = None,
        backward_ac: TensorType | None = None,
        backward_ao: TensorType | None = None,
    ) -> tuple[TensorType, ...]:
        forward = (
            *(forward_wi, forward_wf, forward_wc, forward_wo, forward_ri, forward_rf, forward_rc, forward_ro),
            *(forward_pi, forward_pf, forward_po, forward_bi, forward_bf, forward_bc, forward_bo),
            *(forward_projection, forward_projection_bias),
        )
        backward = (
            *(backward_wi, backward_wf, backward_wc, backward_wo, backward_ri, backward_rf, backward_rc, backward_ro),
            *(backward_pi, backward_pf, backward_po, backward_bi, backward_bf, backward_bc, backward_bo),
            *(backward_projection, backward_projection_bias),
        )
        first = parts(forward, aux=(forward_ai, forward_af, forward_ac, forward_ao))
        second = parts(backward, aux=(backward_ai, backward_af, backward_ac, backward_ao))
        states = (forward_h, forward_c, backward_h, backward_c)
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
        """The outputs of both layers; RuleError if an operand breaks a rule."""
        require_clips(self.cell_clip, self.projection_clip)
        require(x.rank == 3, f"x has rank {x.rank}, expected 3")
        linked = layers[0].aux[3] is not None
        require((layers[1].aux[3] is not None) is linked, "only one of the layers has auxiliary weights")
        require(aux is not None or not linked, "auxiliary weights are there, but no auxiliary input")
        if aux is not None:
            require_dtype(aux, DType.FLOAT32, "auxiliary input")
            require(aux.rank == 3, f"auxiliary input has rank {aux.rank}, expected 3")
            require_shape(aux, (*x.shape[:2], aux.shape[2]), "auxiliary input")
        _, batch = Layout(self.time_major).ends(x)
        kind = needed(layers[0].weights[3]).dtype
        sizes = []
        for layer, h, c, read in zip(layers, states[0::2], states[1::2], (x, x if linked else aux or x), strict=True):
            sizes.append(check(layer, read, h, c, batch, aux.shape[2] if aux is not None else None))
            require_float_types(layer, x, h, c)
            require_dtype(layer.weights[3], kind, "input weights")
        return tuple(sizes)

    def flops(self, types: CallTypes) -> int:
        return gates(types)

    def rounds(self, types: CallTypes) -> int:
        return stepped(types)

    def evaluate(self, *xs: Array | None) -> tuple[Array, ...]:
        return self._run(xs, None, Quantizer())

    def evaluate_quantized(self, types: CallTypes, *xs: Array | None) -> tuple[Array, ...]:
        integers = types.input(4).dtype in EIGHT_BITS
        return self._run(xs, types.inputs, Quantizer(integers, self.asymmetric_inputs))

    def _run(
        self, xs: tuple[Array | None, ...], types: tuple[TensorType | None, ...] | None, quantizer: Quantizer
    ) -> tuple[Array, ...]:
        xs = xs + (None,) * (_OPERANDS - len(xs))
        kinds = None if types is None else types + (None,) * (_OPERANDS - len(types))
        layout, x, aux = Layout(self.time_major), needed(xs[0]), xs[_AUX]
        linked = xs[_AUX + 2] is not None
        outputs, states = [], []
        for at, backward in ((0, False), (1, True)):
            elements = parts(xs[1 + 17 * at : 18 + 17 * at], aux=xs[40 + 4 * at : 44 + 4 * at])
            layer = cell(
                elements,
                None
                if kinds is None
                else parts(kinds[1 + 17 * at : 18 + 17 * at], aux=kinds[40 + 4 * at : 44 + 4 * at]),
                quantizer,
                self.activation,
                (self.cell_clip, self.projection_clip),
            )
            steps = layout.steps(aux if backward and aux is not None and not linked else x)
            extra = layout.steps(aux) if aux is not None and linked else None
            h, c = needed(xs[35 + 2 * at]), needed(xs[36 + 2 * at])
            cells, size = len(needed(elements.weights[3])), needed(elements.recurrent[3]).shape[-1]
            batch = steps.shape[1]
            y, last, state = layer.run(steps, extra, h.reshape(batch, size), c.reshape(batch, cells), backward=backward)
            outputs.append(layout.back(y, x))
            states += [last.reshape(h.shape), state.reshape(c.shape)]
        if self.merge_outputs:
            outputs = [np.concatenate(outputs, axis=-1)]
        return (*outputs, *states)

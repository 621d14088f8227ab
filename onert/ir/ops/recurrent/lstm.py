"""The long short-term memory layer."""

from __future__ import annotations

from typing import ClassVar

from attrs import frozen

from onert.ir.dtype import Array, DType
from onert.ir.op import operands, require, with_absent
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.types import CallTypes, TensorType

from .lstm_cell import cell
from .lstm_integer import WideGates
from .lstm_integer_narrow import NarrowGates
from .lstm_parts import LAYER, Parts, check, needed, parts, require_float_types, require_integer_types
from .recurrent import EIGHT_BITS, Layout, Quantizer, Recurrent

_OPERANDS = 24


def require_clips(cell_clip: float, projection_clip: float) -> None:
    """Raises RuleError for negative clipping bounds."""
    for name, bound in (("cell_clip", cell_clip), ("projection_clip", projection_clip)):
        require(bound >= 0, f"{name} is {bound}, expected at least 0")


@frozen
class LSTM(Recurrent):
    """A long short-term memory layer, over a sequence or for one step.

    - `x`: [batch, time, inputs], with `time_major` [time, batch, inputs]; or [batch, inputs] for one step
    - `wi wf wc wo`: input weights [cells, inputs]; `ri rf rc ro`: recurrent weights [cells, outputs], or [cells] for
      the diagonal of such a matrix; without `wi`, `ri` and `bi` the input gate is one minus the forget gate
    - `pi pf po`: peephole weights from the cell state, [cells]
    - `bi bf bc bo`: biases, [cells]
    - `projection`: [outputs, cells], and `projection_bias`: [outputs]
    - `h`, `c`: state: the last output [batch, outputs] and the cell state [batch, cells], or both flat
    - `ni nf nc no`: scales of the layer normalisation of each gate, [cells]

    Results: the outputs of all steps in the layout of `x`, and the next `h` and `c`. `cell_clip` and `projection_clip`
    bound the magnitude of the cell state and of the projection if they are positive.

    Element types:

    - float32, with float weights, or with int8 or uint8 weights, for which each vector is quantised at run time,
      symmetrically or with `asymmetric_inputs`
    - int8 `x`, weights and `h`; int16 `c` (its scale a power of two from 2**-30 to 2**-9), peepholes and normalisation;
      int32 biases. The activation is then always tanh. `intermediates` are the types of intermediate results, with
      their quantisation. Five: the int16 sums of the four gates (used only with normalisation, otherwise their scale is
      2**-12), and the int8 output before the projection. Twelve, for a coupled gate with normalisation and projection:
      for each gate its sum, then the int8 products of its two weights.

    LiteRT's integer kernel omits or misplaces the peepholes of cells if there are fewer outputs than cells, and with
    twelve intermediates reads the wrong ones for the output gate's recurrent product; here each gate has its own.

    Source: TFLite LSTM (its full kernel) and UNIDIRECTIONAL_SEQUENCE_LSTM, kernels/lstm_eval.cc.
    """

    activation: Activation = Activation.TANH
    time_major: bool = False
    cell_clip: float = 0.0
    projection_clip: float = 0.0
    asymmetric_inputs: bool = False
    intermediates: tuple[TensorType, ...] = ()

    carries: ClassVar[tuple[str, ...]] = ("h", "c")

    params = operands(f"x {LAYER} h c ni? nf? nc? no?")

    def infer(self, *given: TensorType | None) -> tuple[TensorType, TensorType, TensorType]:
        found, (x, h, c) = _parts(given), (needed(given[at]) for at in (0, 18, 19))
        require_clips(self.cell_clip, self.projection_clip)
        layout = Layout(self.time_major)
        _, batch = layout.ends(x)
        outputs = check(found, x, h, c, batch)
        if x.dtype is DType.INT8:
            require_integer_types(found, x, h, c)
            self._integer_form().check(found, c, self.intermediates)
        else:
            require_float_types(found, x, h, c)
        return x.result(layout.result(x, outputs)), h.result(h.shape), c.result(c.shape)

    def _integer_form(self) -> type[WideGates] | type[NarrowGates]:
        count = len(self.intermediates)
        require(count in (5, 12), f"there are {count} intermediates, expected 5 or 12 for integers")
        return WideGates if count == 5 else NarrowGates

    def evaluate(self, x: Array, *rest: Array | None) -> tuple[Array, Array, Array]:
        return self._floats((x, *rest), None, Quantizer())

    def evaluate_quantized(self, types: CallTypes, *xs: Array | None) -> tuple[Array, Array, Array]:
        kinds = _parts(types.inputs)
        if types.input(0).dtype is DType.INT8:
            return self._integers(types, xs, kinds)
        integers = types.input(4).dtype in EIGHT_BITS
        return self._floats(xs, kinds, Quantizer(integers, self.asymmetric_inputs))

    def _floats(
        self, xs: tuple[Array | None, ...], kinds: Parts[TensorType] | None, quantizer: Quantizer
    ) -> tuple[Array, Array, Array]:
        layout, elements = Layout(self.time_major), _parts(xs)
        x, h, c = needed(xs[0]), needed(xs[18]), needed(xs[19])
        steps = layout.steps(x)
        layer = cell(elements, kinds, quantizer, self.activation, (self.cell_clip, self.projection_clip))
        y, last, state = layer.run(steps, None, *_states(steps, h, c, elements))
        return layout.back(y, x), last.reshape(h.shape), state.reshape(c.shape)

    def _integers(
        self, types: CallTypes, xs: tuple[Array | None, ...], kinds: Parts[TensorType]
    ) -> tuple[Array, Array, Array]:
        layout, elements = Layout(self.time_major), _parts(xs)
        x, h, c = needed(xs[0]), needed(xs[18]), needed(xs[19])
        steps = layout.steps(x)
        form = self._integer_form()(
            elements,
            kinds,
            (types.input(0), types.input(18), types.input(19), types.output),
            self.intermediates,
            (self.cell_clip, self.projection_clip),
        )
        y, last, state = form.run(steps, *_states(steps, h, c, elements))
        return layout.back(y, x), last.reshape(h.shape), state.reshape(c.shape)


def _parts(given: tuple[TensorType | None, ...] | tuple[Array | None, ...]) -> Parts:  # type: ignore[type-arg]
    """The parts of the layer among its operands, given as types or as arrays."""
    some = with_absent(given, _OPERANDS)
    return parts(some[1:18], some[20:24])


def _states(steps: Array, h: Array, c: Array, elements: Parts[Array]) -> tuple[Array, Array]:
    """Both states as matrices: [batch, outputs] and [batch, cells]."""
    batch = steps.shape[1]
    cells, outputs = len(needed(elements.weights[3])), needed(elements.recurrent[3]).shape[-1]
    return h.reshape(batch, outputs), c.reshape(batch, cells)

"""Recurrent layers over whole sequences, with the cell's state carried from run to run."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from attrs import field, frozen

from onert.ir import shape as shapes
from onert.ir.dtype import Array, DType
from onert.ir.op import Op, require
from onert.ir.quant import dequantize
from onert.ir.types import CallTypes, TensorType

from .activation import Activation

_EPSILON = np.float32(1e-8)


def _logistic(x: Array) -> Array:
    out: Array = 1 / (1 + np.exp(-x))
    return out


@frozen(eq=False)
class _Cell:
    """The float weights of an LSTM cell; every sequence holds one entry for each gate: input, forget, cell, output."""

    weights: tuple[Array | None, ...]
    recurrent: tuple[Array | None, ...]
    peephole: tuple[Array | None, ...]
    bias: tuple[Array | None, ...]
    norm: tuple[Array | None, ...]
    projection: tuple[Array | None, Array | None]
    activation: Activation = Activation.TANH
    cell_clip: float = 0.0
    projection_clip: float = 0.0

    def _gate(self, at: int, x: Array, h: Array, c: Array) -> Array:
        """A gate before its activation."""
        w, r = self.weights[at], self.recurrent[at]
        assert w is not None
        assert r is not None
        z = x @ w.T + h @ r.T
        peephole, norm, bias = self.peephole[at], self.norm[at], self.bias[at]
        if peephole is not None:
            z = z + peephole * c
        if norm is not None:
            centred = z - z.mean(-1, keepdims=True)
            z = centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + _EPSILON) * norm
        out: Array = z if bias is None else z + bias
        return out

    def step(self, x: Array, h: Array, c: Array) -> tuple[Array, Array]:
        """The next output and cell state for `x` `[batch, inputs]`."""
        forget = _logistic(self._gate(1, x, h, c))
        # Without an input gate of its own (a coupled cell), what is forgotten is what is let in.
        entry = 1 - forget if self.weights[0] is None else _logistic(self._gate(0, x, h, c))
        c = forget * c + entry * self.activation.apply(self._gate(2, x, h, c))
        if self.cell_clip > 0:
            c = np.clip(c, -np.float32(self.cell_clip), np.float32(self.cell_clip))
        h = _logistic(self._gate(3, x, h, c)) * self.activation.apply(c)
        weight, bias = self.projection
        if weight is not None:
            h = h @ weight.T if bias is None else h @ weight.T + bias
            if self.projection_clip > 0:
                h = np.clip(h, -np.float32(self.projection_clip), np.float32(self.projection_clip))
        return h, c


@frozen
class SequenceLSTM(Op):
    """A long short-term memory layer over a sequence.

    - `x`: `[batch, time, inputs]`, or `[time, batch, inputs]` with `time_major`
    - `wi wf wc wo`: weights from the input, `[cells, inputs]`; `ri rf rc ro`: from the last output, `[cells, outputs]`;
      without `wi` and `ri` the input gate is one minus the forget gate
    - `pi pf po`: peephole weights from the cell state, `[cells]`
    - `bi bf bc bo`: biases, `[cells]`
    - `projection`: `[outputs, cells]`, and `projection_bias`: `[outputs]`
    - `h`, `c`: state: the last output `[batch, outputs]` and the cell state `[batch, cells]`
    - `ni nf nc no`: scales of layer normalisation of each gate, `[cells]`

    Gives the outputs of all steps, and the next state. Weights quantised to 8 bits stand for the reals they are
    dequantised to. `cell_clip` and `projection_clip` bound what they name where they are above 0. Sources: Hochreiter
    and Schmidhuber 1997; TFLite's kernels/lstm_eval.cc for the order of peepholes, normalisation and bias.
    """

    activation: Activation = Activation.TANH
    time_major: bool = False
    cell_clip: float = field(default=0.0)
    projection_clip: float = field(default=0.0)

    carries: ClassVar[tuple[str, ...]] = ("h", "c")

    def infer(
        self,
        x: TensorType,
        wi: TensorType | None,
        wf: TensorType,
        wc: TensorType,
        wo: TensorType,
        ri: TensorType | None,
        rf: TensorType,
        rc: TensorType,
        ro: TensorType,
        pi: TensorType | None,
        pf: TensorType | None,
        po: TensorType | None,
        bi: TensorType | None,
        bf: TensorType,
        bc: TensorType,
        bo: TensorType,
        projection: TensorType | None,
        projection_bias: TensorType | None,
        h: TensorType,
        c: TensorType,
        ni: TensorType | None = None,
        nf: TensorType | None = None,
        nc: TensorType | None = None,
        no: TensorType | None = None,
    ) -> tuple[TensorType, TensorType, TensorType]:
        require(x.dtype is DType.FLOAT32, f"x holds {x.dtype.text}, expected f32")
        require(x.rank == 3, f"x has rank {x.rank}, expected 3")
        require(wo.rank == 2 and ro.rank == 2, f"weights have ranks {wo.rank} and {ro.rank}, expected 2")
        require((wi is None) == (ri is None), "only one of the input gate's two weights is there")
        cells, outputs = wo.shape[0], ro.shape[1]
        time, batch = (x.shape[0], x.shape[1]) if self.time_major else (x.shape[1], x.shape[0])
        wanted: list[tuple[TensorType | None, tuple[int | None, ...], str]] = [
            *((w, (cells, x.shape[2]), "input weights") for w in (wi, wf, wc, wo)),
            *((r, (cells, outputs), "recurrent weights") for r in (ri, rf, rc, ro)),
            *((p, (cells,), "peephole weights") for p in (pi, pf, po)),
            *((b, (cells,), "bias") for b in (bi, bf, bc, bo)),
            *((n, (cells,), "normalisation") for n in (ni, nf, nc, no)),
            (projection, (outputs, cells), "projection"),
            (projection_bias, (outputs,), "projection bias"),
            (h, (batch, outputs), "output state"),
            (c, (batch, cells), "cell state"),
        ]
        for operand, shape, name in wanted:
            require(
                operand is None or shapes.compatible(operand.shape, shape),
                f"{name} has shape {shapes.text(operand.shape if operand else ())}, expected {shapes.text(shape)}",
            )
        require(
            projection is not None or cells == outputs, f"{cells} cells give {outputs} outputs without a projection"
        )
        y = (time, batch, outputs) if self.time_major else (batch, time, outputs)
        return x.result(y), h.result(h.shape), c.result(c.shape)

    def evaluate(self, x: Array, *rest: Array | None) -> tuple[Array, Array, Array]:
        some = list(rest) + [None] * (23 - len(rest))
        cell = _Cell(
            weights=tuple(some[0:4]),
            recurrent=tuple(some[4:8]),
            peephole=(some[8], some[9], None, some[10]),
            bias=tuple(some[11:15]),
            projection=(some[15], some[16]),
            norm=tuple(some[19:23]),
            activation=self.activation,
            cell_clip=self.cell_clip,
            projection_clip=self.projection_clip,
        )
        h, c = some[17], some[18]
        assert h is not None
        assert c is not None
        steps = x if self.time_major else x.transpose(1, 0, 2)
        outputs = []
        for step in steps:
            h, c = cell.step(step, h, c)
            outputs.append(h.astype(x.dtype))
        y = np.stack(outputs) if outputs else np.zeros((0, *h.shape), x.dtype)
        y = y if self.time_major else np.ascontiguousarray(y.transpose(1, 0, 2))
        return y, h.astype(x.dtype), c.astype(x.dtype)

    def evaluate_quantized(self, types: CallTypes, *xs: Array | None) -> tuple[Array, Array, Array]:
        real = [
            dequantize(a, t.quantization) if a is not None and t is not None and t.quantization is not None else a
            for a, t in zip(xs, types.inputs, strict=True)
        ]
        first = real[0]
        assert first is not None
        return self.evaluate(first, *real[1:])

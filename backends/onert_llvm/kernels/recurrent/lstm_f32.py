"""The steps of a long short-term memory layer in float32."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, I8, Kernel, Val, View
from onert_llvm.irbuilder.math import logistic
from onert_llvm.kernels.arithmetic.expression import Apply, Expr, Fn, evaluate
from onert_llvm.kernels.contraction.epilogue import ACC
from onert_llvm.kernels.reduction.softmax_norm import sum_of

from . import tflite_activations as approximate
from .lstm import CELL, FORGET, INPUT, OUTPUT, Lstm, LstmItem, Store
from .matvec import REGISTERS, Bytes, Matrix, Panels, rows_times_f32, times_dynamic, times_f32
from .recurrence import Place

TANH = Apply(Fn.TANH, (ACC,))
"""The usual activation of layers."""

_EPSILON = 1e-8


@frozen
class LstmF32(Lstm):
    """A layer of floats; with `normalized` gates, slots `norm_GATE` and `bias_GATE` point to `padded` floats.

    With `quantized` the weights are bytes, and all functions and sums are computed as TFLite computes them then. With
    `inputs`, `input_bias` points to the initial sums, unless they are normalised.
    """

    activation: Expr = TANH
    normalized: bool = False
    projection_bias: bool = False
    quantized: Bytes | None = None

    number = element = state = F32

    @property
    def own(self) -> tuple[str, ...]:
        bias = ("input_bias",) if self.inputs is not None and not self.normalized else ()
        extra = (f"{kind}_{g}" for g in self.gates for kind in ("norm", "bias") if self.normalized)
        return (*bias, *extra, *(("projection_bias",) if self.projection_bias else ()))

    def of_matrix(self, matrix: Matrix) -> tuple[str, ...]:
        return matrix.slots if self.quantized is None else self.quantized.slots(matrix)

    def item(self, k: Kernel, task: Task, number: Val, place: Place) -> LstmItem:
        return _Item(k, task, self, number, place)


class _Item(LstmItem):
    layer: LstmF32

    def add_inputs(self, matrix: Matrix, x: View) -> None:
        k, task, lanes = self.k, self.task, self.k.isa.f32

        def start(column: Val) -> Val:
            return k.zeros(F32, lanes) if self.layer.normalized else task.view("input_bias", F32, 1)[column].load(lanes)

        times_f32(Panels(k, task, matrix), x, task.i64("depth"), start, lambda column, v: self.sums[column].store(v))

    def add_state(self, given: View, h: View) -> None:
        self._times(
            self.panels(self.layer.recurrent, self.width),
            h,
            (self.outputs, self.layer.rests[1]),
            lambda column: given[column].load(self.k.isa.f32),
            lambda column, total: self.sums[column].store(total),
        )

    def add_sums_of_items(self, step: Val, h: View, apart: Val, count: Val) -> None:
        task, lanes, given = self.task, self.k.isa.f32, self.given(step)
        given_item, room = task.i64("given_item"), task.i64("room")

        def start(i: Val, column: Val) -> Val:
            place = given.after(given_item * i)[column]
            self.k.prefetch(place.after(REGISTERS * lanes))  # for the next panel: no processor predicts so many streams
            return place.load(lanes)

        rows_times_f32(
            self.panels(self.layer.recurrent, self.width),
            count,
            lambda i: h.after(apart * i),
            self.outputs,
            start,
            lambda i, column, total: self.sums.after(room * i)[column].store(total),
        )

    def _times(
        self,
        panels: Panels,
        x: View,
        depth: tuple[Val, int],
        start: Callable[[Val], Val | None],
        store: Callable[[Val, Val], None],
    ) -> None:
        """`store(column, start(column) + x · panels[column])`."""
        k, lanes = self.k, self.k.isa.f32
        if self.layer.quantized is not None:
            room = k.view(self.hidden.after(self.task.i64("padded")).address, I8, 1)
            times_dynamic(k, self.task, panels.matrix, self.layer.quantized, x, depth, room, start, store)
            return

        def first(column: Val) -> Val:
            found = start(column)
            return k.zeros(F32, lanes) if found is None else found

        times_f32(panels, x, depth[0], first, store)

    def next_cells(self, store: Store) -> None:
        k, layer = self.k, self.layer
        if layer.normalized:
            for gate in layer.gates[:-1]:
                self._normalize(gate)
        for at, _ in k.registers(self.cells):
            self._next(at, self.c[at].load(k.isa.f32))
        if layer.normalized:
            self._normalize(OUTPUT)
        for at, mask in k.registers(self.cells):  # a loop of its own: in one, every register waits for its new cells
            store(at, self._output(at, self.next_c[at].load(k.isa.f32)), mask)

    def _sum(self, gate: str, at: Val, c: Val) -> Val:
        """A gate's sum; if it was normalised, it already includes the peephole's part."""
        z = self.z[gate][at].load(self.k.isa.f32)
        return z if self.layer.normalized else self._peeped(gate, at, z, c)

    def _peeped(self, gate: str, at: Val, z: Val, c: Val) -> Val:
        if not self.layer.peephole or gate == CELL:
            return z
        weights = self.gates(f"peephole_{gate}", F32, self.task.i64("padded"))
        return self._fma(weights[at].load(self.k.isa.f32), c, z)

    def _fma(self, a: Val, b: Val, c: Val) -> Val:
        """`a * b + c`, rounded twice if results must match TFLite's."""
        return self.k.fma(a, b, c) if self.layer.quantized is None else c + a * b

    def _logistic(self, x: Val) -> Val:
        return (logistic if self.layer.quantized is None else approximate.logistic)(self.k, x)

    def _next(self, at: Val, c: Val) -> None:
        """Compute and store the next state of a register of cells."""
        forget = self._logistic(self._sum(FORGET, at, c))
        let_in = forget.like(1.0) - forget if self.layer.coupled else self._logistic(self._sum(INPUT, at, c))
        c = self._fma(let_in, self._activated(self._sum(CELL, at, c)), forget * c)
        c = self._clipped(c, "cell_clip", self.layer.cell_clip)
        self.next_c[at].store(c)

    def _output(self, at: Val, c: Val) -> Val:
        return self._logistic(self._sum(OUTPUT, at, c)) * self._activated(c)

    def _activated(self, x: Val) -> Val:
        if self.layer.quantized is not None and self.layer.activation == TANH:
            return approximate.tanh(self.k, x)
        return evaluate(self.k, self.layer.activation, lambda _: x, x)

    def _clipped(self, x: Val, slot: str, there: bool) -> Val:
        if not there:
            return x
        bound = self.task.f32(slot).splat(x.lanes)
        return bound.min((-bound).max(x))  # NaN stays NaN

    def _normalize(self, gate: str) -> None:
        """Normalise a gate's sums to mean 0 and variance 1, then apply the gate's weight and bias."""
        k, lanes, z = self.k, self.k.isa.f32, self.z[gate]
        if self.layer.peephole and gate != CELL:
            for at, _ in k.registers(self.cells):
                z[at].store(self._peeped(gate, at, z[at].load(lanes), self.c[at].load(lanes)))
        share = k.f32(1.0) / self.cells.cast(F32)
        mean = (sum_of(k, self.cells, lambda at, mask: z[at].load(lanes, mask)) * share).splat(lanes)

        def square(at: Val, mask: Val | None) -> Val:
            centred = z[at].load(lanes, mask) - mean
            return centred * centred

        root = (sum_of(k, self.cells, square) * share + _EPSILON).call("sqrt")
        factor = (k.f32(1.0) / root).splat(lanes)
        norm, bias = (self.task.view(f"{kind}_{gate}", F32, 1) for kind in ("norm", "bias"))

        for at, _ in k.registers(self.cells):
            normal = (z[at].load(lanes) - mean) * factor
            z[at].store(normal * norm[at].load(lanes) + bias[at].load(lanes))

    def project(self, matrix: Matrix, out: View) -> None:
        k, task, layer, lanes = self.k, self.task, self.layer, self.k.isa.f32

        def start(column: Val) -> Val | None:
            return task.view("projection_bias", F32, 1)[column].load(lanes) if layer.projection_bias else None

        def store(column: Val, total: Val) -> None:
            value = self._clipped(total, "output_clip", layer.output_clip)
            out[column].store(value, k.mask(lanes, self.outputs - column))

        self._times(Panels(k, task, matrix), self.hidden, (self.cells, layer.rests[2]), start, store)

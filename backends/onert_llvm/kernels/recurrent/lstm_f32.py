"""The steps of a long short-term memory layer in float32."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, I8, Kernel, Val, View
from onert_llvm.irbuilder.math import logistic
from onert_llvm.kernels.arithmetic.expression import Apply, Expr, Fn, evaluate
from onert_llvm.kernels.contraction.epilogue import ACC
from onert_llvm.kernels.reduction.softmax_norm import each_register, sum_of

from . import tflite_activations as approximate
from .matvec import Bytes, Matrix, after, times_dynamic, times_f32

INPUT, FORGET, CELL, OUTPUT = "input", "forget", "cell", "output"
"""The gates by name."""

TANH = Apply(Fn.TANH, (ACC,))
"""The activation that layers mostly have."""

_EPSILON = 1e-8


@frozen
class LstmF32(Value):
    """A layer that runs over `steps`; work tiles are the items of the batch.

    `given` has for each item and step the gates' sums but for what depends on the state: for each gate `padded` floats,
    those beyond the `cells` 0. The gates are in the order input (not where `coupled`: it is one minus forget), forget,
    cell, output; `recurrent` are their weights side by side. Steps and items are `*_step` and `*_item` floats apart, so
    that a sequence may run backward.

    Slots `peephole_GATE` and, with `normalized`, `norm_GATE` and `bias_GATE` point to `padded` floats. With a
    `projection` outputs are the product of its weights with the cells, else there are as many. `y` and the states hold
    `outputs` and `cells` floats; each item has `room` floats of memory of its own at `scratch`.

    With `quantized` the weights are bytes, and all functions and sums are computed as TFLite does then; `rests` are the
    number of outputs and of cells modulo the target's group.

    With `inputs` there is no `given`: the inputs `x`, rows of `depth` floats, are multiplied step by step, and
    `input_bias` points to what their sums begin with, where there is such.
    """

    recurrent: Matrix
    activation: Expr
    coupled: bool = False
    peephole: bool = False
    normalized: bool = False
    projection: Matrix | None = None
    projection_bias: bool = False
    cell_clip: bool = False
    output_clip: bool = False
    quantized: Bytes | None = None
    rests: tuple[int, int] = (0, 0)
    inputs: Matrix | None = None

    @property
    def gates(self) -> tuple[str, ...]:
        return (FORGET, CELL, OUTPUT) if self.coupled else (INPUT, FORGET, CELL, OUTPUT)

    @property
    def slots(self) -> tuple[str, ...]:
        ends = ("y", "y_item", "y_step", "h", "h_out", "c", "c_out")
        given: tuple[str, ...] = ("given", "given_item", "given_step")
        if self.inputs is not None:
            bias = () if self.normalized else ("input_bias",)
            given = ("x", "x_item", "x_step", "depth", *bias, *self.inputs.slots)
        sizes = ("steps", "cells", "padded", "outputs", "scratch", "room")
        extra = [f"peephole_{g}" for g in self.gates if self.peephole and g != CELL]
        extra += [f"{kind}_{g}" for g in self.gates for kind in ("norm", "bias") if self.normalized]
        matrices = [m for m in (self.recurrent, self.projection) if m is not None]
        extra += [slot for m in matrices for slot in (m.slots if self.quantized is None else self.quantized.slots(m))]
        flags = {
            "projection_bias": self.projection_bias,
            "cell_clip": self.cell_clip,
            "output_clip": self.output_clip,
        }
        return (*given, *ends, *sizes, *extra, *(n for n, there in flags.items() if there))

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        with k.loop(end, begin) as item:
            _Item(k, task, self, item).run()


Store = Callable[[Val, Val, Val | None], None]
"""Writes the output of some cells: where, what, and which of the lanes are cells."""


class _Item:
    """The code for one item of the batch."""

    def __init__(self, k: Kernel, task: Task, layer: LstmF32, item: Val) -> None:
        self.k, self.task, self.layer, self.item = k, task, layer, item
        self.cells, self.outputs = task.i64("cells"), task.i64("outputs")
        padded, count = task.i64("padded"), len(layer.gates)
        self.sums = task.view("scratch", F32, task.i64("room"), 1)[item]
        self.z = {gate: after(self.sums, padded * i) for i, gate in enumerate(layer.gates)}
        self.c, self.hidden = after(self.sums, padded * count), after(self.sums, padded * (count + 1))
        self.bytes = k.view(after(self.sums, padded * (count + 2)).address, I8, 1)

    def run(self) -> None:
        k, task, layer = self.k, self.task, self.layer
        state = task.view("c", F32, self.cells, 1)[self.item]
        each_register(k, self.cells, lambda at, mask: self.c[at].store(state[at].load(k.isa.f32, mask)))
        last = k.var(task.view("h", F32, self.outputs, 1)[self.item].address)
        name = "given" if layer.inputs is None else "x"
        given, y = (task.view(n, F32, task.i64(f"{n}_item"), 1)[self.item] for n in (name, "y"))
        with k.loop(task.i64("steps"), nonempty=True) as step:
            row, out = after(given, step * task.i64(f"{name}_step")), after(y, step * task.i64("y_step"))
            self._products(row, k.view(last.get(), F32, 1))
            if layer.projection is None:
                self._cells(lambda at, value, mask: out[at].store(value, mask))
            else:
                self._cells(lambda at, value, _: self.hidden[at].store(value))
                self._project(layer.projection, out)
            last.set(out.address)
        h = k.view(last.get(), F32, 1)
        for name, width, source in (("h_out", self.outputs, h), ("c_out", self.cells, self.c)):
            self._copy(source, task.view(name, F32, width, 1)[self.item], width)

    def _copy(self, source: View, target: View, width: Val) -> None:
        lanes = self.k.isa.f32
        each_register(self.k, width, lambda at, mask: target[at].store(source[at].load(lanes, mask), mask))

    def _products(self, given: View, h: View) -> None:
        """All gates' sums; `given` is the inputs' part of them, or the inputs."""
        if self.layer.inputs is not None:
            self._add_inputs(self.layer.inputs, given)
            given = self.sums
        self._times(
            self.layer.recurrent,
            h,
            (self.outputs, self.layer.rests[0]),
            lambda column: given[column].load(self.k.isa.f32),
            lambda column, total: self.sums[column].store(total),
        )

    def _add_inputs(self, matrix: Matrix, x: View) -> None:
        """The inputs' part of the sums."""
        k, task, lanes = self.k, self.task, self.k.isa.f32

        def start(column: Val) -> Val:
            return k.zeros(F32, lanes) if self.layer.normalized else task.view("input_bias", F32, 1)[column].load(lanes)

        times_f32(k, task, matrix, x, task.i64("depth"), start, lambda column, v: self.sums[column].store(v))

    def _times(
        self,
        matrix: Matrix,
        x: View,
        depth: tuple[Val, int],
        start: Callable[[Val], Val | None],
        store: Callable[[Val, Val], None],
    ) -> None:
        """`store(column, start(column) + x · matrix[column])`."""
        k, lanes = self.k, self.k.isa.f32
        if self.layer.quantized is not None:
            times_dynamic(k, self.task, matrix, self.layer.quantized, x, depth, self.bytes, start, store)
            return

        def first(column: Val) -> Val:
            found = start(column)
            return k.zeros(F32, lanes) if found is None else found

        times_f32(k, self.task, matrix, x, depth[0], first, store)

    def _cells(self, store: Store) -> None:
        """The next state of every cell, and its outputs."""
        k, layer = self.k, self.layer
        if not layer.normalized:

            def whole(at: Val, mask: Val | None) -> None:
                c = self._next(at, self.c[at].load(k.isa.f32))
                store(at, self._output(at, c), mask)

            each_register(k, self.cells, whole)
            return
        for gate in layer.gates[:-1]:
            self._normalize(gate)
        each_register(k, self.cells, lambda at, _: self._discard(self._next(at, self.c[at].load(k.isa.f32))))
        self._normalize(OUTPUT)
        each_register(k, self.cells, lambda at, m: store(at, self._output(at, self.c[at].load(k.isa.f32)), m))

    @staticmethod
    def _discard(value: Val) -> None:
        del value

    def _sum(self, gate: str, at: Val, c: Val) -> Val:
        """A gate's sum; the part of the cell state is in it already where it was normalised."""
        z = self.z[gate][at].load(self.k.isa.f32)
        return z if self.layer.normalized else self._peeped(gate, at, z, c)

    def _peeped(self, gate: str, at: Val, z: Val, c: Val) -> Val:
        if not self.layer.peephole or gate == CELL:
            return z
        return self._fma(self.task.view(f"peephole_{gate}", F32, 1)[at].load(self.k.isa.f32), c, z)

    def _fma(self, a: Val, b: Val, c: Val) -> Val:
        """`a * b + c`, rounded twice where TFLite's rounding counts."""
        return self.k.fma(a, b, c) if self.layer.quantized is None else c + a * b

    def _logistic(self, x: Val) -> Val:
        return (logistic if self.layer.quantized is None else approximate.logistic)(self.k, x)

    def _next(self, at: Val, c: Val) -> Val:
        """The next state of a register of cells, stored."""
        forget = self._logistic(self._sum(FORGET, at, c))
        let_in = forget.like(1.0) - forget if self.layer.coupled else self._logistic(self._sum(INPUT, at, c))
        c = self._fma(let_in, self._activated(self._sum(CELL, at, c)), forget * c)
        c = self._clipped(c, "cell_clip", self.layer.cell_clip)
        self.c[at].store(c)
        return c

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
        """A gate's sums brought to mean 0 and variance 1, then times and plus the gate's own."""
        k, lanes, z = self.k, self.k.isa.f32, self.z[gate]
        if self.layer.peephole and gate != CELL:
            each_register(
                k,
                self.cells,
                lambda at, _: z[at].store(self._peeped(gate, at, z[at].load(lanes), self.c[at].load(lanes))),
            )
        share = k.f32(1.0) / self.cells.cast(F32)
        mean = (sum_of(k, self.cells, lambda at, mask: z[at].load(lanes, mask)) * share).splat(lanes)

        def square(at: Val, mask: Val | None) -> Val:
            centred = z[at].load(lanes, mask) - mean
            return centred * centred

        root = (sum_of(k, self.cells, square) * share + _EPSILON).call("sqrt")
        factor = (k.f32(1.0) / root).splat(lanes)
        norm, bias = (self.task.view(f"{kind}_{gate}", F32, 1) for kind in ("norm", "bias"))

        def register(at: Val, _: Val | None) -> None:
            normal = (z[at].load(lanes) - mean) * factor
            z[at].store(normal * norm[at].load(lanes) + bias[at].load(lanes))

        each_register(k, self.cells, register)

    def _project(self, matrix: Matrix, out: View) -> None:
        """The outputs from the cells' values."""
        k, task, layer, lanes = self.k, self.task, self.layer, self.k.isa.f32

        def start(column: Val) -> Val | None:
            return task.view("projection_bias", F32, 1)[column].load(lanes) if layer.projection_bias else None

        def store(column: Val, total: Val) -> None:
            value = self._clipped(total, "output_clip", layer.output_clip)
            out[column].store(value, k.mask(lanes, self.outputs - column))

        self._times(matrix, self.hidden, (self.cells, layer.rests[1]), start, store)

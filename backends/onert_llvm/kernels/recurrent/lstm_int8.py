"""The steps of a long short-term memory layer of bytes whose gates are 16-bit integers, bit for bit as TFLite's.

The arithmetic is that of `onert.ir.ops.recurrent.lstm_integer`; 16-bit numbers are held in lanes of 32 bits.
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import I8, I16, I32, Kernel, Val, View
from onert_llvm.kernels.arithmetic.fixed_point_functions import divided, logistic, saturated, tanh
from onert_llvm.kernels.arithmetic.requantize_int8 import Requantize, Scaling, as_byte, bias, fixed, load_lanes
from onert_llvm.kernels.contraction.contraction import Ending, Finished
from onert_llvm.kernels.contraction.register_tile import Block
from onert_llvm.kernels.reduction.softmax_norm import each_register

from .matvec import Matrix, after, times_int8

INPUT, FORGET, CELL, OUTPUT = "input", "forget", "cell", "output"
"""The gates by name."""

WIDE = Requantize(Scaling.WIDE)


@frozen
class ScaledSums(Ending):
    """Sums times each column's multiplier within 16 bits, stored as 32 bits; `columns` are those of `Scaling.WIDE`."""

    element, slots = I32, ("columns",)

    def begin(self, k: Kernel, task: Task, block: Block, vector: int) -> Val:
        return bias(k, task, WIDE, block.at(vector))

    def finished(self, k: Kernel, task: Task, block: Block) -> Callable[[int], Finished]:
        def column(j: int) -> Finished:
            own = load_lanes(k, task, WIDE, block.at(j))
            return lambda _, total: saturated(fixed(total, own))

        return column


@frozen
class LstmInt8(Value):
    """A layer that runs over `steps`; work tiles are the items of the batch. Slots are those of `LstmF32`, and these:

    `given` and the memory at `scratch` hold 32-bit numbers. `columns` and `projection_columns` are those of
    `Scaling.WIDE` for the recurrent sums and for the outputs. A multiplier's slots are `NAME_mantissa`, `NAME_left` and
    `NAME_right`: `hidden` of the output's product before `hidden_zero`, `peephole_GATE_by` of a peephole's. The scale
    of the cell state is `2**exponent`. `rests` are the number of outputs and of cells modulo the target's group.

    With `inputs` there is no `given`: the inputs `x`, rows of `depth` bytes, are multiplied step by step; `input_rest`
    is that number modulo the target's group, and `input_columns` are those of `Scaling.WIDE`.
    """

    recurrent: Matrix
    exponent: int
    rests: tuple[int, int]
    coupled: bool = False
    peephole: bool = False
    projection: Matrix | None = None
    cell_clip: bool = False
    output_clip: bool = False
    inputs: Matrix | None = None
    input_rest: int = 0

    @property
    def gates(self) -> tuple[str, ...]:
        return (FORGET, CELL, OUTPUT) if self.coupled else (INPUT, FORGET, CELL, OUTPUT)

    @property
    def slots(self) -> tuple[str, ...]:
        ends = ("y", "y_item", "y_step", "h", "h_out", "c", "c_out")
        sizes = ("steps", "cells", "padded", "outputs", "scratch", "room", "hidden_zero", "columns")
        given: tuple[str, ...] = ("given", "given_item", "given_step")
        if self.inputs is not None:
            given = ("x", "x_item", "x_step", "depth", "input_columns", *self.inputs.slots)
        peeping = [f"peephole_{gate}" for gate in self.gates if self.peephole and gate != CELL]
        multipliers = ["hidden", *(f"{name}_by" for name in peeping)]
        extra = [f"{name}_{part}" for name in multipliers for part in ("mantissa", "left", "right")] + peeping
        if self.projection is not None:
            extra += [*self.projection.slots, "projection_columns", "output_zero"]
        flags = {"cell_clip": self.cell_clip, "output_clip": self.output_clip}
        return (*given, *ends, *sizes, *self.recurrent.slots, *extra, *(n for n, there in flags.items() if there))

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        with k.loop(end, begin) as item:
            _Item(k, task, self, item).run()


Store = Callable[[Val, Val, Val | None], None]
"""Writes the bytes of some cells: where, what, and which of the lanes are cells."""


class _Item:
    """The code for one item of the batch."""

    def __init__(self, k: Kernel, task: Task, layer: LstmInt8, item: Val) -> None:
        self.k, self.task, self.layer, self.item = k, task, layer, item
        self.cells, self.outputs = task.i64("cells"), task.i64("outputs")
        padded, count = task.i64("padded"), len(layer.gates)
        self.sums = task.view("scratch", I32, task.i64("room"), 1)[item]
        self.z = {gate: after(self.sums, padded * i) for i, gate in enumerate(layer.gates)}
        self.c = after(self.sums, padded * count)
        self.hidden = k.view(after(self.sums, padded * (count + 1)).address, I8, 1)

    def run(self) -> None:
        k, task, layer, lanes = self.k, self.task, self.layer, self.k.isa.f32
        state = task.view("c", I16, self.cells, 1)[self.item]
        each_register(k, self.cells, lambda at, m: self.c[at].store(state[at].load(lanes, m).cast(I32)))
        last = k.var(task.view("h", I8, self.outputs, 1)[self.item].address)
        name, element = ("given", I32) if layer.inputs is None else ("x", I8)
        given = task.view(name, element, task.i64(f"{name}_item"), 1)[self.item]
        y = task.view("y", I8, task.i64("y_item"), 1)[self.item]
        with k.loop(task.i64("steps"), nonempty=True) as step:
            row, out = after(given, step * task.i64(f"{name}_step")), after(y, step * task.i64("y_step"))
            self._products(row, k.view(last.get(), I8, 1))
            if layer.projection is None:
                self._cells(lambda at, value, mask: out[at].store(value, mask))
            else:
                self._cells(lambda at, value, mask: self.hidden[at].store(value, mask))
                self._project(layer.projection, out)
            last.set(out.address)
        self._leave(k.view(last.get(), I8, 1))

    def _leave(self, h: View) -> None:
        """Write down the last states."""
        k, lanes = self.k, self.k.isa.f32
        h_out = self.task.view("h_out", I8, self.outputs, 1)[self.item]
        c_out = self.task.view("c_out", I16, self.cells, 1)[self.item]
        each_register(k, self.outputs, lambda at, m: h_out[at].store(h[at].load(lanes, m), m))
        each_register(k, self.cells, lambda at, m: c_out[at].store(self.c[at].load(lanes).cast(I16), m))

    def _products(self, given: View, h: View) -> None:
        """All gates' sums, in Q3 but for their peepholes; `given` is the inputs' part of them, or the inputs."""
        k, task, lanes = self.k, self.task, self.k.isa.f32
        if self.layer.inputs is not None:
            self._add_inputs(self.layer.inputs, given)
            given = self.sums

        def store(column: Val, total: Val) -> None:
            own = fixed(total, load_lanes(k, task, WIDE, column))
            self.sums[column].store(saturated(own + given[column].load(lanes)))

        depth = (self.outputs, self.layer.rests[0])
        times_int8(k, task, self.layer.recurrent, h, depth, lambda column: bias(k, task, WIDE, column), store)

    def _add_inputs(self, matrix: Matrix, x: View) -> None:
        """The inputs' part of the sums."""
        k, task, slot = self.k, self.task, "input_columns"

        def start(column: Val) -> Val:
            return load_lanes(k, task, WIDE, column, slot)["bias"]

        def store(column: Val, total: Val) -> None:
            self.sums[column].store(saturated(fixed(total, load_lanes(k, task, WIDE, column, slot))))

        times_int8(k, task, matrix, x, (task.i64("depth"), self.layer.input_rest), start, store)

    def _cells(self, store: Store) -> None:
        """The next state of every cell, and its bytes."""
        k, layer, lanes = self.k, self.layer, self.k.isa.f32

        def register(at: Val, mask: Val | None) -> None:
            c = self._next(at, self.c[at].load(lanes))
            self.c[at].store(c)
            hidden = logistic(self._gate(OUTPUT, at, c)) * tanh(c, 15 + layer.exponent)
            store(at, as_byte((self._scaled("hidden", hidden) + self._number("hidden_zero")).clamp(-128, 127)), mask)

        each_register(k, self.cells, register)

    def _next(self, at: Val, c: Val) -> Val:
        """The next state of a register of cells."""
        forget = logistic(self._gate(FORGET, at, c))
        let_in = -forget + 32767 if self.layer.coupled else logistic(self._gate(INPUT, at, c))
        update = tanh(self._gate(CELL, at, c), 3)
        kept = divided(forget * c, 15)
        c = saturated(kept + divided(let_in * update, 30 + self.layer.exponent))
        return self._clipped(c, "cell_clip", self.layer.cell_clip)

    def _gate(self, gate: str, at: Val, c: Val) -> Val:
        z = self.z[gate][at].load(self.k.isa.f32)
        if not self.layer.peephole or gate == CELL:
            return z
        weight = self.task.view(f"peephole_{gate}", I32, 1)[at].load(self.k.isa.f32)
        return saturated(self._scaled(f"peephole_{gate}_by", weight * c) + z)

    def _number(self, slot: str) -> Val:
        return self.task.i64(slot).cast(I32).splat(self.k.isa.f32)

    def _scaled(self, name: str, x: Val) -> Val:
        return fixed(x, {part: self._number(f"{name}_{part}") for part in ("mantissa", "left", "right")})

    def _clipped(self, x: Val, slot: str, there: bool) -> Val:
        return x.clamp(-self._number(slot), self._number(slot)) if there else x

    def _project(self, matrix: Matrix, out: View) -> None:
        """The outputs from the cells' bytes."""
        k, task, slot = self.k, self.task, "projection_columns"

        def start(column: Val) -> Val:
            return load_lanes(k, task, WIDE, column, slot)["bias"]

        def store(column: Val, total: Val) -> None:
            value = fixed(total, load_lanes(k, task, WIDE, column, slot)) + self._number("output_zero")
            value = self._clipped(value.clamp(-128, 127), "output_clip", self.layer.output_clip)
            out[column].store(as_byte(value), k.mask(k.isa.f32, self.outputs - column))

        times_int8(k, task, matrix, self.hidden, (self.cells, self.layer.rests[1]), start, store)

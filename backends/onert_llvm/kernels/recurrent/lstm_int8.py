"""The steps of an int8 long short-term memory layer with 16-bit gates, bit for bit as in TFLite.

The arithmetic is that of `onert.ir.ops.recurrent.lstm_integer`; 16-bit numbers are in 32-bit lanes.
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import I8, I16, I32, Kernel, Val, View
from onert_llvm.kernels.arithmetic.fixed_point_functions import divided, logistic, saturated, tanh
from onert_llvm.kernels.arithmetic.requantize_int8 import Requantize, Scaling, as_byte, fixed
from onert_llvm.kernels.contraction.contraction import Ending, Finish
from onert_llvm.kernels.contraction.register_tile import Block

from .lstm import CELL, FORGET, INPUT, OUTPUT, Lstm, LstmItem, Store
from .matvec import Matrix, times_int8
from .recurrence import Place

WIDE = Requantize(Scaling.WIDE)


@frozen
class ScaledSums(Ending):
    """Sums times each column's multiplier, saturated to 16 bits, stored as 32; `columns` are as in `Scaling.WIDE`."""

    element, slots = I32, ("columns",)

    def begin(self, k: Kernel, task: Task, block: Block, vector: int) -> Val:
        return WIDE.bias(k, task, block.at(vector))

    def finisher(self, k: Kernel, task: Task, block: Block) -> Callable[[int], Finish]:
        def column(j: int) -> Finish:
            own = WIDE.lanes(k, task, block.at(j))
            return lambda _, total: saturated(fixed(total, own))

        return column


@frozen
class LstmInt8(Lstm):
    """A layer of bytes; `given` and the memory at `scratch` hold 32-bit numbers.

    `columns` and `projection_columns` are the fields of `Scaling.WIDE` for the recurrent sums and the outputs; with
    `inputs` there are also `input_columns`. A multiplier's slots are `NAME_mantissa`, `NAME_left` and `NAME_right`:
    `hidden` for the output's product before `hidden_zero`, `peephole_GATE_by` for a peephole's. The scale of the cell
    state is `2**exponent`.
    """

    exponent: int = 0

    number, element, state = I32, I8, I16

    @property
    def own(self) -> tuple[str, ...]:
        multipliers = ("hidden", *(f"{name}_by" for name in self.peepholes))
        parts = (f"{name}_{part}" for name in multipliers for part in ("mantissa", "left", "right"))
        inputs = () if self.inputs is None else ("input_columns",)
        outputs = () if self.projection is None else ("projection_columns", "output_zero")
        return ("hidden_zero", "columns", *inputs, *parts, *outputs)

    def item(self, k: Kernel, task: Task, number: Val, place: Place) -> LstmItem:
        return _Item(k, task, self, number, place)


class _Item(LstmItem):
    """Code generation for one item; sums of gates are in Q3."""

    layer: LstmInt8

    def _times(
        self, matrix: Matrix, x: View, depth: tuple[Val, int], slot: str, store: Callable[[Val, Val], None]
    ) -> None:
        """`store(column, scaled(x · matrix[column] + bias))`; the columns' parameters are in a slot."""
        k, task = self.k, self.task

        def start(column: Val) -> Val:
            return WIDE.lanes(k, task, column, slot)["bias"]

        def finish(column: Val, total: Val) -> None:
            store(column, fixed(total, WIDE.lanes(k, task, column, slot)))

        times_int8(k, task, matrix, x, depth, start, finish)

    def add_inputs(self, matrix: Matrix, x: View) -> None:
        depth = (self.task.i64("depth"), self.layer.rests[0])
        self._times(matrix, x, depth, "input_columns", lambda at, total: self.sums[at].store(saturated(total)))

    def add_state(self, given: View, h: View) -> None:
        def store(column: Val, total: Val) -> None:
            self.sums[column].store(saturated(total + given[column].load(self.k.isa.f32)))

        self._times(self.layer.recurrent, h, (self.outputs, self.layer.rests[1]), "columns", store)

    def next_cells(self, store: Store) -> None:
        k, layer, lanes = self.k, self.layer, self.k.isa.f32

        for at, mask in k.registers(self.cells):
            c = self._next(at, self.c[at].load(lanes))
            self.next_c[at].store(c)
            hidden = logistic(self._gate(OUTPUT, at, c)) * tanh(c, 15 + layer.exponent)
            store(at, as_byte((self._scaled("hidden", hidden) + self._number("hidden_zero")).clamp(-128, 127)), mask)

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

    def project(self, matrix: Matrix, out: View) -> None:
        def store(column: Val, total: Val) -> None:
            value = (total + self._number("output_zero")).clamp(-128, 127)
            value = self._clipped(value, "output_clip", self.layer.output_clip)
            out[column].store(as_byte(value), self.k.mask(self.k.isa.f32, self.outputs - column))

        self._times(matrix, self.hidden, (self.cells, self.layer.rests[2]), "projection_columns", store)

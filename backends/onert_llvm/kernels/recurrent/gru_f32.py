"""The steps of a gated recurrent unit in float32."""

from __future__ import annotations

from attrs import frozen

from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, Kernel, Val, View
from onert_llvm.irbuilder.math import logistic, tanh

from .matvec import Matrix, rows_times_f32, times_f32
from .recurrence import Item, Place, Recurrence


@frozen
class GruF32(Recurrence):
    """A layer whose reset gate is applied after the product.

    `given` has, for each item and step, the inputs' part of the sums of the update gate, the reset gate and the
    candidate: `padded` numbers each, `*_item` and `*_step` numbers apart. `recurrent` are their weights side by side,
    and slot `bias` points to as many numbers that the state's part starts with. Each item has `room` numbers of its own
    memory at `scratch`. If only the last outputs are wanted, `y_step` is 0.
    """

    recurrent: Matrix
    together: bool = False
    from_zero: bool = False
    divided: bool = False

    element = F32

    @property
    def slots(self) -> tuple[str, ...]:
        given, ends = ("given", "given_item", "given_step"), ("y", "y_item", "y_step", "h")
        sizes = ("steps", "outputs", "padded", "scratch", "room")
        return (*given, *ends, *sizes, "bias", *self.recurrent.slots, *self.division_slots)

    def item(self, k: Kernel, task: Task, number: Val, place: Place) -> Item:
        return _Item(k, task, self, number, place)


class _Item(Item):
    layer: GruF32

    def __init__(self, k: Kernel, task: Task, layer: GruF32, item: Val, place: Place) -> None:
        super().__init__(k, task, layer, item, place)
        self.sums = self.room(F32)

    def skip_product(self, step: Val) -> None:
        with self.k.loop(self.task.i64("room"), step=self.k.isa.f32) as at:
            self.sums[at].store(self._bias(at))

    def _bias(self, column: Val) -> Val:
        return self.gates("bias", F32, self.task.i64("room"))[column].load(self.k.isa.f32)

    def add_sums(self, step: Val, h: View) -> None:
        def store(column: Val, total: Val) -> None:
            self.sums[column].store(total)

        times_f32(self.panels(self.layer.recurrent, self.task.i64("room")), h, self.outputs, self._bias, store)

    def add_sums_of_items(self, step: Val, h: View, apart: Val, count: Val) -> None:
        room = self.task.i64("room")
        rows_times_f32(
            self.panels(self.layer.recurrent, room),
            count,
            lambda i: h.after(apart * i),
            self.outputs,
            lambda _, column: self._bias(column),
            lambda i, column, total: self.sums.after(room * i)[column].store(total),
        )

    def advance(self, step: Val, h: View) -> None:
        k, task, lanes, out = self.k, self.task, self.k.isa.f32, self.output(step)
        given = self.gates("given", F32, task.i64("room")).after(self.item * task.i64("given_item"))
        given, h = given.after(step * task.i64("given_step")), h.after(self.first)
        for at, mask in k.registers(self.units):
            places = [at + task.i64("padded") * gate for gate in range(3)]
            x_z, x_r, x_c = (given[place].load(lanes) for place in places)
            h_z, h_r, h_c = (self.sums[place].load(lanes) for place in places)
            update, reset = logistic(k, x_z + h_z), logistic(k, x_r + h_r)
            new = tanh(k, k.fma(reset, h_c, x_c))
            out[at].store(k.fma(update, h[at].load(lanes, mask) - new, new), mask)

"""The steps of a long short-term memory layer: the part common to floats and integers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar

from attrs import frozen

from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import Kernel, Type, Val, View

from .matvec import Matrix
from .recurrence import Item, Place, Recurrence

INPUT, FORGET, CELL, OUTPUT = "input", "forget", "cell", "output"
"""The names of the gates."""


@frozen
class Lstm(Recurrence):
    """A layer over sequences.

    `given` has, for each item and step, the gates' sums without the contribution of the state: `padded` numbers per
    gate, those beyond the `cells` being 0. The gates are input (unless `coupled`: it is one minus forget), forget,
    cell, output; `recurrent` are their weights side by side. Steps and items are `*_step` and `*_item` numbers apart,
    so a sequence may run backward. With `inputs` there is no `given`: the inputs `x`, rows of `depth` elements, are
    multiplied step by step.

    Slots `peephole_GATE` point to `padded` numbers. With a `projection`, outputs are the product of its weights with
    the cells, else there are as many outputs as cells. `y` and the states hold `outputs` and `cells` elements; each
    item has `room` numbers of its own memory at `scratch`. `rests` are the numbers of inputs, outputs and cells modulo
    the target's group, for byte weights. If `divided`, without a projection, the states before the first step and after
    each are at `kept`, in whole registers, items and steps `kept_*` numbers apart.
    """

    recurrent: Matrix
    coupled: bool = False
    peephole: bool = False
    projection: Matrix | None = None
    cell_clip: bool = False
    output_clip: bool = False
    inputs: Matrix | None = None
    rests: tuple[int, int, int] = (0, 0, 0)
    together: bool = False
    from_zero: bool = False
    divided: bool = False

    number: ClassVar[Type]
    """The type in which sums and cells are computed."""
    state: ClassVar[Type]
    """The type of cells in memory."""

    @property
    def gates(self) -> tuple[str, ...]:
        return (FORGET, CELL, OUTPUT) if self.coupled else (INPUT, FORGET, CELL, OUTPUT)

    @property
    def peepholes(self) -> tuple[str, ...]:
        """The slots of the peephole weights."""
        return tuple(f"peephole_{gate}" for gate in self.gates if self.peephole and gate != CELL)

    @property
    def own(self) -> tuple[str, ...]:
        """The slots that only this kind of layer has."""
        raise NotImplementedError

    def of_matrix(self, matrix: Matrix) -> tuple[str, ...]:
        """The slots of a weight matrix that multiplies a state."""
        return matrix.slots

    @property
    def slots(self) -> tuple[str, ...]:
        ends = ("y", "y_item", "y_step", "h", "c", *(() if self.divided else ("h_out", "c_out")))
        given: tuple[str, ...] = ("given", "given_item", "given_step")
        if self.inputs is not None:
            given = ("x", "x_item", "x_step", "depth", *self.inputs.slots)
        sizes = ("steps", "cells", "padded", "outputs", "scratch", "room")
        matrices = [m for m in (self.recurrent, self.projection) if m is not None]
        weights = (slot for m in matrices for slot in self.of_matrix(m))
        flags = {"cell_clip": self.cell_clip, "output_clip": self.output_clip}
        return (
            *given,
            *ends,
            *sizes,
            *self.peepholes,
            *weights,
            *self.own,
            *(n for n, there in flags.items() if there),
            *self.division_slots,
            *(("kept", "kept_item", "kept_step") if self.divided else ()),
        )


Store = Callable[[Val, Val, Val | None], None]
"""Stores the output of some cells: position, value, and the mask of lanes that are cells."""


class LstmItem(Item):
    """Code generation for one item of the batch, step by step."""

    layer: Lstm

    def __init__(self, k: Kernel, task: Task, layer: Lstm, item: Val, place: Place) -> None:
        super().__init__(k, task, layer, item, place)
        self.cells = self.units if layer.divided else task.i64("cells")
        padded, count = task.i64("padded"), len(layer.gates)
        self.width = padded * count
        self.sums = self.room(layer.number)
        self.z = {gate: self.sums.after(padded * i) for i, gate in enumerate(layer.gates)}
        self.c = self.next_c = self.sums.after(self.width)
        if layer.divided:
            kept = task.view("kept", layer.number, task.i64("kept_item"), 1)[item].after(self.first)
            self.c, self.next_c = (kept.after(task.i64("kept_step") * at) for at in (place.step, place.step + 1))
        self.hidden = k.view(self.sums.after(padded * (count + 1)).address, layer.element, 1)

    def begin(self) -> None:
        k, layer = self.k, self.layer
        state = self.task.view("c", layer.state, self.task.i64("cells"), 1)[self.item].after(self.first)
        for at, mask in k.registers(self.cells):
            self.c[at].store(state[at].load(k.isa.f32, mask).cast(layer.number))

    def end(self, h: View) -> None:
        k, task, layer, lanes = self.k, self.task, self.layer, self.k.isa.f32
        h_out = task.view("h_out", layer.element, self.outputs, 1)[self.item]
        for at, mask in k.registers(self.outputs):
            h_out[at].store(h[at].load(lanes, mask), mask)
        c_out = task.view("c_out", layer.state, self.cells, 1)[self.item]
        for at, mask in k.registers(self.cells):
            c_out[at].store(self.c[at].load(lanes, mask).cast(layer.state), mask)

    def given(self, step: Val) -> View:
        """What a step reads: the inputs' part of its sums, or its inputs."""
        task, layer = self.task, self.layer
        if layer.inputs is None:
            name, given = "given", self.gates("given", layer.number, self.width)
        else:
            name, given = "x", task.view("x", layer.element, 1)
        return given.after(self.item * task.i64(f"{name}_item")).after(step * task.i64(f"{name}_step"))

    def skip_product(self, step: Val) -> None:
        row, lanes = self.given(step), self.k.isa.f32
        with self.k.loop(self.width, step=lanes) as at:
            self.sums[at].store(row[at].load(lanes))

    def add_sums(self, step: Val, h: View) -> None:
        row = self.given(step)
        if self.layer.inputs is not None:
            self.add_inputs(self.layer.inputs, row)
            row = self.sums
        self.add_state(row, h)

    def advance(self, step: Val, h: View) -> None:
        out = self.output(step)
        if self.layer.projection is None:
            self.next_cells(lambda at, value, mask: out[at].store(value, mask))
        else:
            self.next_cells(lambda at, value, _: self.hidden[at].store(value))
            self.project(self.layer.projection, out)

    @abstractmethod
    def add_inputs(self, matrix: Matrix, x: View) -> None:
        """Compute the inputs' part of all gates' sums."""

    @abstractmethod
    def add_state(self, given: View, h: View) -> None:
        """Compute all gates' sums; `given` is the inputs' part."""

    @abstractmethod
    def next_cells(self, store: Store) -> None:
        """Compute the next state and the output of every cell."""

    @abstractmethod
    def project(self, matrix: Matrix, out: View) -> None:
        """Compute the outputs from the cells' values."""

"""The steps of a long short-term memory layer: what floats and integers share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import Kernel, Type, Val, View

from .matvec import Matrix

INPUT, FORGET, CELL, OUTPUT = "input", "forget", "cell", "output"
"""The gates by name."""


@frozen
class Lstm(Value):
    """A layer that runs over `steps`; work tiles are the items of the batch.

    `given` has for each item and step the gates' sums but for what depends on the state: for each gate `padded`
    numbers, those beyond the `cells` 0. The gates are in the order input (not where `coupled`: it is one minus forget),
    forget, cell, output; `recurrent` are their weights side by side. Steps and items are `*_step` and `*_item` numbers
    apart, so that a sequence may run backward. With `inputs` there is no `given`: the inputs `x`, rows of `depth`
    elements, are multiplied step by step.

    Slots `peephole_GATE` point to `padded` numbers. With a `projection` outputs are the product of its weights with the
    cells, else there are as many. `y` and the states hold `outputs` and `cells` elements; each item has `room` numbers
    of memory of its own at `scratch`. `rests` are the number of inputs, outputs and cells modulo the target's group,
    where weights are bytes.
    """

    recurrent: Matrix
    coupled: bool = False
    peephole: bool = False
    projection: Matrix | None = None
    cell_clip: bool = False
    output_clip: bool = False
    inputs: Matrix | None = None
    rests: tuple[int, int, int] = (0, 0, 0)

    number: ClassVar[Type]
    """What sums and cells are while they are computed."""
    element: ClassVar[Type]
    """What inputs and outputs are."""
    state: ClassVar[Type]
    """What cells are in memory."""

    @property
    def gates(self) -> tuple[str, ...]:
        return (FORGET, CELL, OUTPUT) if self.coupled else (INPUT, FORGET, CELL, OUTPUT)

    @property
    def peepholes(self) -> tuple[str, ...]:
        """The slots of the peepholes' weights."""
        return tuple(f"peephole_{gate}" for gate in self.gates if self.peephole and gate != CELL)

    @property
    def own(self) -> tuple[str, ...]:
        """The slots beside those of every layer."""
        raise NotImplementedError

    def of_matrix(self, matrix: Matrix) -> tuple[str, ...]:
        """The slots of the weights of a state."""
        return matrix.slots

    @property
    def slots(self) -> tuple[str, ...]:
        ends = ("y", "y_item", "y_step", "h", "h_out", "c", "c_out")
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
        )

    def item(self, k: Kernel, task: Task, number: Val) -> Item:
        """The code for one item of the batch."""
        raise NotImplementedError

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        with k.loop(end, begin) as number:
            self.item(k, task, number).run()


Store = Callable[[Val, Val, Val | None], None]
"""Writes the output of some cells: where, what, and which of the lanes are cells."""


class Item(ABC):
    """The code for one item of the batch: the steps one after the other."""

    def __init__(self, k: Kernel, task: Task, layer: Lstm, item: Val) -> None:
        self.k, self.task, self.layer, self.item = k, task, layer, item
        self.cells, self.outputs = task.i64("cells"), task.i64("outputs")
        padded, count = task.i64("padded"), len(layer.gates)
        self.sums = task.view("scratch", layer.number, task.i64("room"), 1)[item]
        self.z = {gate: self.sums.after(padded * i) for i, gate in enumerate(layer.gates)}
        self.c = self.sums.after(padded * count)
        self.hidden = k.view(self.sums.after(padded * (count + 1)).address, layer.element, 1)

    def run(self) -> None:
        k, task, layer, lanes = self.k, self.task, self.layer, self.k.isa.f32
        state, c_out = (task.view(name, layer.state, self.cells, 1)[self.item] for name in ("c", "c_out"))
        for at, mask in k.registers(self.cells):
            self.c[at].store(state[at].load(lanes, mask).cast(layer.number))
        before, h_out = (task.view(name, layer.element, self.outputs, 1)[self.item] for name in ("h", "h_out"))
        last = k.var(before.address)
        name, element = ("given", layer.number) if layer.inputs is None else ("x", layer.element)
        given = task.view(name, element, task.i64(f"{name}_item"), 1)[self.item]
        y = task.view("y", layer.element, task.i64("y_item"), 1)[self.item]
        with k.loop(task.i64("steps"), nonempty=True) as step:
            row, out = given.after(step * task.i64(f"{name}_step")), y.after(step * task.i64("y_step"))
            if layer.inputs is not None:
                self.add_inputs(layer.inputs, row)
                row = self.sums
            self.add_state(row, k.view(last.get(), layer.element, 1))
            if layer.projection is None:
                self.next_cells(lambda at, value, mask: out[at].store(value, mask))
            else:
                self.next_cells(lambda at, value, _: self.hidden[at].store(value))
                self.project(layer.projection, out)
            last.set(out.address)
        h = k.view(last.get(), layer.element, 1)
        for at, mask in k.registers(self.outputs):
            h_out[at].store(h[at].load(lanes, mask), mask)
        for at, mask in k.registers(self.cells):
            c_out[at].store(self.c[at].load(lanes, mask).cast(layer.state), mask)

    @abstractmethod
    def add_inputs(self, matrix: Matrix, x: View) -> None:
        """The inputs' part of all gates' sums."""

    @abstractmethod
    def add_state(self, given: View, h: View) -> None:
        """All gates' sums; `given` is the inputs' part of them."""

    @abstractmethod
    def next_cells(self, store: Store) -> None:
        """The next state of every cell, and its output."""

    @abstractmethod
    def project(self, matrix: Matrix, out: View) -> None:
        """The outputs from the cells' values."""

"""The steps of a long short-term memory layer: the part common to floats and integers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ClassVar

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import Kernel, Type, Val, View

from .matvec import Matrix

INPUT, FORGET, CELL, OUTPUT = "input", "forget", "cell", "output"
"""The names of the gates."""


@frozen
class Lstm(Value):
    """A layer that runs over `steps`; work tiles are the items of the batch. If `together`, those of a range of tiles
    advance together, step by step, so that they share what they read of the recurrent weights. `from_zero`, the initial
    outputs are zeros, and the first step has no product.

    `given` has, for each item and step, the gates' sums without the contribution of the state: `padded` numbers per
    gate, those beyond the `cells` being 0. The gates are input (unless `coupled`: it is one minus forget), forget,
    cell, output; `recurrent` are their weights side by side. Steps and items are `*_step` and `*_item` numbers apart,
    so a sequence may run backward. With `inputs` there is no `given`: the inputs `x`, rows of `depth` elements, are
    multiplied step by step.

    Slots `peephole_GATE` point to `padded` numbers. With a `projection`, outputs are the product of its weights with
    the cells, else there are as many outputs as cells. `y` and the states hold `outputs` and `cells` elements; each
    item has `room` numbers of its own memory at `scratch`. `rests` are the numbers of inputs, outputs and cells modulo
    the target's group, for byte weights.
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

    number: ClassVar[Type]
    """The type in which sums and cells are computed."""
    element: ClassVar[Type]
    """The type of inputs and outputs."""
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
        """Code generation for one item of the batch."""
        raise NotImplementedError

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        if self.together:
            self._run(k, task, begin, end - begin)
        else:
            with k.loop(end, begin) as number:
                self._run(k, task, number, None)

    def _run(self, k: Kernel, task: Task, first: Val, count: Val | None) -> None:
        """Emit all steps of `count` items, or of one."""

        @contextmanager
        def each() -> Iterator[tuple[Val, Item]]:
            if count is None:
                yield k.index(0), self.item(k, task, first)
                return
            with k.loop(count) as number:
                yield number, self.item(k, task, first + number)

        with each() as (_, item):
            item.begin()
        own = self.item(k, task, first)
        last = k.var(task.view("h", self.element, task.i64("outputs"), 1)[first].address)
        apart = k.var(task.i64("outputs"))
        with k.loop(task.i64("steps"), nonempty=True) as step:
            h = k.view(last.get(), self.element, 1)
            if self.from_zero:
                with k.either(step < 1) as (initial, later):
                    with initial, each() as (_, item):
                        item.take_given(step)
                    with later:
                        self._add_sums(k, own, step, h, apart.get(), count)
            else:
                self._add_sums(k, own, step, h, apart.get(), count)
            with each() as (_, item):
                item.advance(step)
            last.set(own.output(step).address)
            apart.set(task.i64("y_item"))
        with each() as (number, item):
            item.end(k.view(last.get(), self.element, 1).after(number * apart.get()))

    @staticmethod
    def _add_sums(k: Kernel, own: Item, step: Val, h: View, apart: Val, count: Val | None) -> None:
        """Emit the sums of a step of `count` items from `own` on, or of one."""
        if count is None:
            own.add_sums(step, h)
            return
        with k.either(count < 2) as (one, several):
            with one:
                own.add_sums(step, h)
            with several:
                own.add_sums_of_items(step, h, apart, count)


Store = Callable[[Val, Val, Val | None], None]
"""Stores the output of some cells: position, value, and the mask of lanes that are cells."""


class Item(ABC):
    """Code generation for one item of the batch, step by step."""

    def __init__(self, k: Kernel, task: Task, layer: Lstm, item: Val) -> None:
        self.k, self.task, self.layer, self.item = k, task, layer, item
        self.cells, self.outputs = task.i64("cells"), task.i64("outputs")
        padded, count = task.i64("padded"), len(layer.gates)
        self.sums = task.view("scratch", layer.number, task.i64("room"), 1)[item]
        self.z = {gate: self.sums.after(padded * i) for i, gate in enumerate(layer.gates)}
        self.c = self.sums.after(padded * count)
        self.hidden = k.view(self.sums.after(padded * (count + 1)).address, layer.element, 1)

    def begin(self) -> None:
        """Load the cells before the first step."""
        k, layer = self.k, self.layer
        state = self.task.view("c", layer.state, self.cells, 1)[self.item]
        for at, mask in k.registers(self.cells):
            self.c[at].store(state[at].load(k.isa.f32, mask).cast(layer.number))

    def end(self, h: View) -> None:
        """Store the states after the last step."""
        k, task, layer, lanes = self.k, self.task, self.layer, self.k.isa.f32
        h_out = task.view("h_out", layer.element, self.outputs, 1)[self.item]
        for at, mask in k.registers(self.outputs):
            h_out[at].store(h[at].load(lanes, mask), mask)
        c_out = task.view("c_out", layer.state, self.cells, 1)[self.item]
        for at, mask in k.registers(self.cells):
            c_out[at].store(self.c[at].load(lanes, mask).cast(layer.state), mask)

    def output(self, step: Val) -> View:
        """A view of the outputs of a step."""
        y = self.task.view("y", self.layer.element, self.task.i64("y_item"), 1)[self.item]
        return y.after(step * self.task.i64("y_step"))

    def given(self, step: Val) -> View:
        """What a step reads: the inputs' part of its sums, or its inputs."""
        task, layer = self.task, self.layer
        name, element = ("given", layer.number) if layer.inputs is None else ("x", layer.element)
        return task.view(name, element, task.i64(f"{name}_item"), 1)[self.item].after(step * task.i64(f"{name}_step"))

    def take_given(self, step: Val) -> None:
        """Make what is given the sums of the step."""
        row, lanes = self.given(step), self.k.isa.f32
        with self.k.loop(self.task.i64("padded") * len(self.layer.gates), step=lanes) as at:
            self.sums[at].store(row[at].load(lanes))

    def add_sums(self, step: Val, h: View) -> None:
        """Compute the sums of the step after outputs `h`."""
        row = self.given(step)
        if self.layer.inputs is not None:
            self.add_inputs(self.layer.inputs, row)
            row = self.sums
        self.add_state(row, h)

    def add_sums_of_items(self, step: Val, h: View, apart: Val, count: Val) -> None:
        """The same for `count` items starting with this one, whose last outputs are `apart` elements apart."""
        raise NotImplementedError

    def advance(self, step: Val) -> None:
        """Compute the cells and outputs of a step from its sums."""
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

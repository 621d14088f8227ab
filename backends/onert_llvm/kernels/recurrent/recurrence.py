"""Recurrent layers over sequences: the part common to all kinds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import Kernel, Type, Val, View


class Recurrence(Value):
    """A layer that runs over `steps`; work tiles are the items of the batch.

    Slot `h` points to the initial outputs, rows of `outputs` elements, and `y` to those of all steps; steps and items
    are `y_step` and `y_item` elements apart.
    """

    together: bool
    """Whether the items of a range of tiles advance together, step by step, so that they share what they read of the
    recurrent weights."""
    from_zero: bool
    """Whether the initial outputs are zeros, so that the first step has no product."""

    element: ClassVar[Type]
    """The type of inputs and outputs."""

    @property
    def slots(self) -> tuple[str, ...]:
        """The names of its task's slots, in order."""
        raise NotImplementedError

    def item(self, k: Kernel, task: Task, number: Val) -> Item:
        """Code generation for one item of the batch."""
        raise NotImplementedError

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        if self.together:
            with k.when(begin < end):  # a command that the lengths do not choose has no tiles
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
                        item.skip_product(step)
                    with later:
                        self._add_sums(k, own, step, h, apart.get(), count)
            else:
                self._add_sums(k, own, step, h, apart.get(), count)
            with each() as (number, item):
                item.advance(step, h.after(number * apart.get()))
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


class Item(ABC):
    """Code generation for one item of the batch, step by step."""

    def __init__(self, k: Kernel, task: Task, layer: Recurrence, item: Val) -> None:
        self.k, self.task, self.layer, self.item = k, task, layer, item
        self.outputs = task.i64("outputs")

    def output(self, step: Val) -> View:
        """A view of the outputs of a step."""
        y = self.task.view("y", self.layer.element, self.task.i64("y_item"), 1)[self.item]
        return y.after(step * self.task.i64("y_step"))

    def begin(self) -> None:
        """Prepare for the first step."""
        return

    @abstractmethod
    def skip_product(self, step: Val) -> None:
        """Compute the sums of the step after outputs of zeros."""

    @abstractmethod
    def add_sums(self, step: Val, h: View) -> None:
        """Compute the sums of the step after outputs `h`."""

    def add_sums_of_items(self, step: Val, h: View, apart: Val, count: Val) -> None:
        """The same for `count` items starting with this one, whose last outputs are `apart` elements apart."""
        raise NotImplementedError

    @abstractmethod
    def advance(self, step: Val, h: View) -> None:
        """Compute the outputs of a step from its sums, and from the outputs `h` before it."""

    def end(self, h: View) -> None:
        """Store the states after the last step, whose outputs are `h`."""
        return

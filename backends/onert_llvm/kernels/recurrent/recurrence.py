"""Recurrent layers over sequences: the part common to all kinds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import ClassVar

from attrs import frozen

from onert.ir.value import ByIdentity, Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import Kernel, Type, Val, View

from . import division
from .matvec import Matrix, Panels


class Recurrence(Value):
    """A layer that runs over `steps`; work tiles are the items of the batch, or parts of the units.

    Slot `h` points to the initial outputs, rows of `outputs` elements, and `y` to those of all steps; steps and items
    are `y_step` and `y_item` elements apart.

    A part has `padded` units, the last may have fewer. What belongs to the gates, weights too, is stored part by part.
    """

    together: bool
    """Whether items advance together, step by step, so that they share what they read of the recurrent weights: those
    of a range of tiles, or all `items` if tiles are parts."""
    divided: bool
    """Whether tiles are parts of the units (`division`). Outputs of all steps are needed then, even if only the last
    are wanted. They and the states are stored nowhere else: `h_out` and `c_out` are not written."""
    from_zero: bool
    """Whether the initial outputs are zeros, so that the first step has no product."""

    element: ClassVar[Type]
    """The type of inputs and outputs."""

    @property
    def slots(self) -> tuple[str, ...]:
        """The names of its task's slots, in order."""
        raise NotImplementedError

    @property
    def division_slots(self) -> tuple[str, ...]:
        """The slots of a layer whose units are divided."""
        return (*division.SLOTS, "items") if self.divided else ()

    def item(self, k: Kernel, task: Task, number: Val, place: Place) -> Item:
        """Code generation for one item of the batch."""
        raise NotImplementedError

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        if self.divided:
            with k.when(begin < end):
                division.each_step(k, task, begin, end, lambda part, step: self._part(k, task, Place(part, step)))
        elif self.together:
            with k.when(begin < end):  # a command that the lengths do not choose has no tiles
                self._run(k, task, begin, end - begin)
        else:
            with k.loop(end, begin) as number:
                self._run(k, task, number, None)

    def _part(self, k: Kernel, task: Task, place: Place) -> None:
        """Emit a step of a part of the units, of all items."""
        step, count = place.step, task.i64("items") if self.together else None
        each = self._each(k, task, k.index(0), count, place)
        own = self.item(k, task, k.index(0), place)
        starts = step < 1
        with k.when(starts), each() as (_, item):
            item.begin()
        initial = task.view("h", self.element, 1)
        h = k.view(starts.select(initial.address, own.outputs_of(step - 1).address), self.element, 1)
        apart = starts.select(task.i64("outputs"), task.i64("y_item"))
        self._sums(k, own, step, h, apart, count, each)
        with each() as (number, item):
            item.advance(step, h.after(number * apart))

    def _each(self, k: Kernel, task: Task, first: Val, count: Val | None, place: Place) -> Each:
        """A loop over `count` items from the first on, or that one."""

        @contextmanager
        def each() -> Iterator[tuple[Val, Item]]:
            if count is None:
                yield k.index(0), self.item(k, task, first, place)
                return
            with k.loop(count) as number:
                yield number, self.item(k, task, first + number, place)

        return each

    def _run(self, k: Kernel, task: Task, first: Val, count: Val | None) -> None:
        """Emit all steps of `count` items, or of one."""
        place = Place(k.index(0), k.index(0))
        each = self._each(k, task, first, count, place)
        with each() as (_, item):
            item.begin()
        own = self.item(k, task, first, place)
        last = k.var(task.view("h", self.element, task.i64("outputs"), 1)[first].address)
        apart = k.var(task.i64("outputs"))
        with k.loop(task.i64("steps"), nonempty=True) as step:
            h = k.view(last.get(), self.element, 1)
            self._sums(k, own, step, h, apart.get(), count, each)
            with each() as (number, item):
                item.advance(step, h.after(number * apart.get()))
            last.set(own.outputs_of(step).address)
            apart.set(task.i64("y_item"))
        with each() as (number, item):
            item.end(k.view(last.get(), self.element, 1).after(number * apart.get()))

    def _sums(self, k: Kernel, own: Item, step: Val, h: View, apart: Val, count: Val | None, each: Each) -> None:
        """Emit the sums of a step of all these items; `own` is the first."""
        if not self.from_zero:
            self._add_sums(k, own, step, h, apart, count)
            return
        with k.either(step < 1) as (initial, later):
            with initial, each() as (_, item):
                item.skip_product(step)
            with later:
                self._add_sums(k, own, step, h, apart, count)

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


@frozen(eq=False)
class Place(ByIdentity):
    """What is computed of a layer: the number of a part of the units and of a step; 0 and unused if undivided."""

    part: Val
    step: Val


class Item(ABC):
    """Code generation for one item of the batch, step by step.

    `outputs` are those of the layer, `units` those that are computed, from number `first` on.
    """

    def __init__(self, k: Kernel, task: Task, layer: Recurrence, item: Val, place: Place) -> None:
        self.k, self.task, self.layer, self.item, self.place = k, task, layer, item, place
        self.outputs = task.i64("outputs")
        padded = task.i64("padded")
        self.first = place.part * padded
        self.units = (self.outputs - self.first).min(padded) if layer.divided else self.outputs

    def gates(self, name: str, element: Type, width: Val) -> View:
        """What slot `name` has for the units of all gates, `width` elements."""
        return self.task.view(name, element, 1).after(self.place.part * width)

    def panels(self, matrix: Matrix, width: Val) -> Panels:
        """The weights of the units of all gates, `width` columns."""
        return Panels(self.k, self.task, matrix, self.place.part * width if self.layer.divided else None)

    def room(self, element: Type) -> View:
        """The memory for intermediate results: that of the item, or of the thread and the item."""
        number = self.item
        if self.layer.divided:
            number = number + self.k.arg("thread") * self.task.i64("items")
        return self.task.view("scratch", element, self.task.i64("room"), 1)[number]

    def outputs_of(self, step: Val) -> View:
        """A view of the outputs of a step."""
        y = self.task.view("y", self.layer.element, self.task.i64("y_item"), 1)[self.item]
        return y.after(step * self.task.i64("y_step"))

    def output(self, step: Val) -> View:
        """A view of the outputs of a step that are computed."""
        return self.outputs_of(step).after(self.first)

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


Each = Callable[[], AbstractContextManager[tuple[Val, Item]]]
"""Emits a loop over items of the batch; the number is counted from the first of them."""

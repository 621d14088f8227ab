"""Slices stored or accumulated at indices; every index is read once and checked before it is used."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import I32, I64, Kernel, Val, View
from onert_llvm.kernels.arithmetic.expression import Kind

from .gather import place_of


class Join(Enum):
    """How an element is combined with the stored one. `MAX` and `MIN` skip NaN; `MAXIMUM` and `MINIMUM` keep it."""

    PUT = "put"
    ADD = "add"
    MUL = "mul"
    MAX = "max"
    MIN = "min"
    MAXIMUM = "maximum"
    MINIMUM = "minimum"


_JOINED: dict[Join, Callable[[Val, Val, bool], Val]] = {
    Join.PUT: lambda old, new, unsigned: new,
    Join.ADD: lambda old, new, unsigned: old + new,
    Join.MUL: lambda old, new, unsigned: old * new,
    Join.MAX: lambda old, new, unsigned: old.umax(new) if unsigned else new.max(old),
    Join.MIN: lambda old, new, unsigned: old.umin(new) if unsigned else new.min(old),
    Join.MAXIMUM: lambda old, new, unsigned: old.umax(new) if unsigned else new.maximum(old),
    Join.MINIMUM: lambda old, new, unsigned: old.umin(new) if unsigned else new.minimum(old),
}


@frozen
class Scatter(Value):
    """`out[index[i]]` combined with `rows[i]`, slices of `width` elements, in the order of i below `count`.

    An index has `depth` parts, each along an axis of `limit{i}` entries that are `step{i}` elements apart; `wide`: they
    are 64-bit integers. A part out of range is written to `report` (after a 1), and its slice is skipped; with `skip`
    negative ones are skipped without a report. Rows are `row_step` elements apart. Work tiles are pieces of `piece`
    elements of all slices, so that each has one writer.
    """

    join: Join
    kind: Kind
    depth: int
    wide: bool
    skip: bool = False

    @property
    def slots(self) -> tuple[str, ...]:
        axes = (f"{what}{i}" for i in range(self.depth) for what in ("limit", "step"))
        return ("rows", "index", "out", "report", "count", "row_step", "width", "piece", *axes)

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        memory = self.kind.memory
        index = task.view("index", I64 if self.wide else I32, self.depth, 1)
        with k.loop(end, begin) as tile:
            first = tile * task.i64("piece")
            last = (first + task.i64("piece")).min(task.i64("width"))
            with k.loop(task.i64("count")) as i:
                place, inside = place_of(k, task, index[i], self.depth, self.skip, k.index(0))
                with k.when(inside):
                    source = task.view("rows", memory, task.i64("row_step"), 1)[i]
                    self._slice(k, source, task.view("out", memory, 1)[place], first, last)

    def _slice(self, k: Kernel, source: View, target: View, first: Val, last: Val) -> None:
        lanes = k.isa.f32
        target = k.view(target.address, self.kind.memory, 1)

        for e, count in k.pieces(last, lanes, first):
            old, new = target[e].load(count), source[e].load(count)
            target[e].store(_JOINED[self.join](old, new, self.kind.unsigned))

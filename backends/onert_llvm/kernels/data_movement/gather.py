"""Slices selected by indices; every index is read once and checked before it is used."""

from __future__ import annotations

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import I8, I32, I64, Kernel, Val, View

from .strided_copy import ELEMENTS, copy_run


def place_of(k: Kernel, task: Task, index: View, depth: int, skip: bool, start: Val) -> tuple[Val, Val]:
    """The offset of an index of `depth` parts from `start`, by slots `step{i}`, and whether all are within `limit{i}`.

    A part out of range is reported; with `skip`, negative ones are not.
    """
    place, inside = start, k.const(k.index(0).eq(0).type, 1)
    for axis in range(depth):
        at, limit = index[axis].load_once().cast(I64), task.i64(f"limit{axis}")
        fits = at.ult(limit)
        with k.when(at >= limit if skip else fits.eq(0)):
            task.report(at)
        inside = inside & fits
        place = place + at * task.i64(f"step{axis}")
    return place, inside


@frozen
class Gather(Value):
    """`out[outer, i] = x[outer, index[i]]`, slices of `width` elements of `unit` bytes.

    An index has `depth` parts, each along an axis of `limit{i}` entries that are `step{i}` bytes apart; `wide`: they
    are 64-bit integers; `single`: slices have one element. `group` adjacent outer positions share their `count`
    indices. A part out of range is written to `report` (after a 1), and its slice is left as it is; with `skip`,
    negative ones are not reported. `known` indices were checked before the run. Work tile t: outer position t //
    pieces, and `piece` of its indices.
    """

    unit: int
    depth: int
    wide: bool
    skip: bool = False
    single: bool = False
    known: bool = False

    @property
    def slots(self) -> tuple[str, ...]:
        axes = (f"{what}{i}" for i in range(self.depth) for what in ("limit", "step"))
        names = ("x", "index", "out", "report", "width", "count", "piece", "pieces", "group")
        return (*names, "x_outer", "out_outer", "out_step", *axes)

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        element = I64 if self.wide else I32
        with k.loop(end, begin) as tile:
            outer, first = tile // task.i64("pieces"), (tile % task.i64("pieces")) * task.i64("piece")
            last = (first + task.i64("piece")).min(task.i64("count"))
            shared = outer // task.i64("group")
            rows = task.view("index", element, task.i64("count") * self.depth, self.depth, 1)[shared]
            out = k.view(task.view("out", I8, 1)[outer * task.i64("out_outer")].address, I8, task.i64("out_step"))
            if self.known:
                x = k.view(task.view("x", I8, 1)[outer * task.i64("x_outer")].address, I8, 1)
                steps = [task.i64(f"step{axis}") for axis in range(self.depth)]
                with k.loop(last, first) as i:
                    parts = [rows[i, axis].load().cast(I64) * step for axis, step in enumerate(steps)]
                    self._slice(k, task, x[sum(parts[1:], parts[0])].address, out[i].address)
                return
            with k.loop(last, first) as i:
                place, inside = place_of(k, task, rows[i], self.depth, self.skip, outer * task.i64("x_outer"))
                with k.when(inside):
                    self._slice(k, task, task.view("x", I8, 1)[place].address, out[i].address)

    def _slice(self, k: Kernel, task: Task, source: Val, target: Val) -> None:
        element, lanes = ELEMENTS[self.unit]
        if self.single:
            k.view(target, element, lanes)[0].store(k.view(source, element, lanes)[0].load(lanes))
        elif lanes > 1:
            with k.loop(task.i64("width")) as e:
                k.view(target, element, lanes)[e].store(k.view(source, element, lanes)[e].load(lanes))
        else:
            copy_run(k, k.view(source, element, 1), k.view(target, element, 1), task.i64("width"))


@frozen
class GatherElements(Value):
    """`out[outer, r, j] = x[outer, index[outer, r, j], j]`, elements of `unit` bytes; work tiles are rows of `width`
    elements, `rows` of them for each outer position.

    Along the axis, x has `limit` entries, `step` bytes apart, and `x_outer` bytes for each outer position. An index out
    of range is written to `report` (after a 1). `wide`: they are 64-bit integers.
    """

    unit: int
    wide: bool

    slots = ("x", "index", "out", "report", "width", "rows", "x_outer", "limit0", "step0")

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        element, lanes = ELEMENTS[self.unit]
        index, width = I64 if self.wide else I32, task.i64("width")
        with k.loop(end, begin) as row:
            start = row // task.i64("rows") * task.i64("x_outer")
            out = task.view("out", I8, width * self.unit, self.unit)[row]
            with k.loop(width, nonempty=True) as j:
                here = task.view("index", index, width, 1)[row, j]
                place, inside = place_of(k, task, k.view(here.address, index, 1), 1, False, start + j * self.unit)
                with k.when(inside):
                    source = k.view(task.view("x", I8, 1)[place].address, element, lanes)
                    k.view(out[j].address, element, lanes)[0].store(source[0].load(lanes))


@frozen
class PutSlice(Value):
    """`row`, `width` bytes, stored at entry `index` of `out`, whose entries are `step` bytes apart; an index that is
    not below `limit` is reported instead. One work tile."""

    wide: bool

    slots = ("row", "index", "out", "report", "limit", "step", "width")

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        width, lanes = task.i64("width"), k.isa.vector_bytes
        at = task.view("index", I64 if self.wide else I32, 1)[0].load_once().cast(I64)
        with k.either(at.ult(task.i64("limit"))) as (inside, outside):
            with inside:
                row, place = task.view("row", I8, 1), task.view("out", I8, task.i64("step"), 1)[at]
                for i, count in k.pieces(width, lanes):
                    place[i].store(row[i].load(count))
            with outside:
                task.report(at)

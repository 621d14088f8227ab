"""Non-maximum suppression: boxes chosen by score; those that overlap a better one are dropped or scored lower."""

from __future__ import annotations

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, F64, I32, I64, Kernel, Val, View
from onert_llvm.irbuilder.math import exp

from .detection import SIDES, first_greatest, greatest, intersection, overlap

_FIELDS = (*SIDES, "area")


@frozen
class Suppress(Value):
    """The boxes that score more than `threshold`, the best first, at most `most`: their `indices` and `count`.

    One whose overlap with a chosen one exceeds `iou` is dropped; with `soft` and a `sigma` above 0 its score becomes 0,
    scores of others are reduced, and `chosen` are the scores. Unused results are 0. `work` points to memory for five
    float32 per box for `room` boxes (whole registers), `left` to as many float64, the remaining scores. There is one
    work tile.
    """

    soft: bool

    @property
    def slots(self) -> tuple[str, ...]:
        results = ("indices", "count", *(("chosen", "sigma") if self.soft else ()))
        return ("boxes", "scores", "iou", "threshold", "work", "left", "room", "boxes_count", "most", *results)

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        fields = task.view("work", F32, task.i64("room"), 1)
        boxes = {name: k.view(fields[i].address, F32, 1) for i, name in enumerate(_FIELDS)}
        left = task.view("left", F64, 1)
        with k.loop(end, begin):
            self._read(k, task, boxes, left)
            count = k.var(k.index(0))
            with k.loop(task.i64("most"), nonempty=True) as slot:
                self._clear(k, task, slot)
                best, at = self._greatest(k, left, task.i64("boxes_count"))
                with k.when(best > float("-inf")):
                    task.view("indices", I32, 1)[count.get()].store(at.cast(I32))
                    if self.soft:
                        task.view("chosen", F32, 1)[count.get()].store(best.cast(F32))
                    count.set(count.get() + 1)
                    self._lessen(k, task, boxes, left, at)
            task.view("count", I32, 1)[0].store(count.get().cast(I32))

    def _clear(self, k: Kernel, task: Task, slot: Val) -> None:
        task.view("indices", I32, 1)[slot].store(k.const(I32, 0))
        if self.soft:
            task.view("chosen", F32, 1)[slot].store(k.f32(0.0))

    def _read(self, k: Kernel, task: Task, boxes: dict[str, View], left: View) -> None:
        """Load corners in order, areas, and the scores above the threshold."""
        given, floor = task.view("boxes", F32, 4, 1), task.view("threshold", F32, 1)[0].load()
        with k.loop(task.i64("boxes_count"), nonempty=True) as i:
            sides = [given[i, side].load() for side in range(4)]
            low, high = ([f(sides[j], sides[j + 2]) for j in range(2)] for f in (Val.minimum, Val.maximum))
            values = (*low, *high, (high[0] - low[0]) * (high[1] - low[1]))
            for name, value in zip(_FIELDS, values, strict=True):
                boxes[name][i].store(value)
            score = task.view("scores", F32, 1)[i].load()
            left[i].store((score > floor).select(score.cast(F64), k.const(F64, float("-inf"))))

    def _greatest(self, k: Kernel, left: View, count: Val) -> tuple[Val, Val]:
        """The best remaining score, minus infinity if there is none, and its position."""
        least = k.const(F64, float("-inf"))
        value, index = greatest(k, count, least, lambda at, *lanes: left[at].load(*lanes))
        return value, index.cast(k.index(0).type)

    def _lessen(self, k: Kernel, task: Task, boxes: dict[str, View], left: View, at: Val) -> None:
        """Remove the box itself, and reduce the scores of overlapping boxes, dropping those that become too low."""
        lanes, count = k.isa.f32, task.i64("boxes_count")
        left[at].store(k.const(F64, float("-inf")))
        own = {name: boxes[name][at].load().splat(lanes) for name in _FIELDS}
        floor = task.view("threshold", F32, 1)[0].load().cast(F64).splat(lanes)
        gone = k.const(F64, float("-inf")).splat(lanes)
        iou = task.view("iou", F32, 1)[0].load().splat(lanes)
        with k.loop(count, step=lanes, nonempty=True) as first:
            mask = k.mask(lanes, count - first)
            other = {name: boxes[name][first].load(lanes, mask) for name in _FIELDS}
            score = left[first].load(lanes, mask)
            ratio = overlap(own, other)
            kept = ratio <= iou
            score_after = kept.select(score, gone)
            if self.soft:
                sigma = task.view("sigma", F32, 1)[0].load().splat(lanes)
                weight = kept.select(exp(k, -(ratio * ratio) / (sigma * 2.0)), 0.0)
                lessened = score * weight.cast(F64)
                lessened = (lessened > floor).select(lessened, gone)
                score_after = (sigma > 0.0).select(lessened, score_after)
            score_after = (score > float("-inf")).select(score_after, gone)
            left[first].store(score_after, mask)


_LOWEST, _UNORDERED = -1.5e308, -1.7e308
"""Stand-ins for scores of minus infinity and NaN, less than any float32."""


@frozen
class ClassBoxes(Value):
    """Rows of (picture, class, box) in `found`: for each class the boxes that are kept, the best first; zeros up to
    `bound` rows, and their `count`.

    `boxes` are four float32 each: two opposite corners, or with `centred` x, y, width and height. At most `most`
    (64-bit if `wide`) are kept per class; with `limited` only those that score more than `least`. A box is dropped if
    its overlap with a better kept one exceeds `iou` of their union. There is one work tile. All is computed in float64.

    Boxes that score enough are compacted into `places`, int64, with their scores in `left`; `tops` has the best of each
    register of these. The best of all is removed repeatedly and compared with the kept boxes, which are usually few.
    `work` points to memory for five float64 for each of them, `room` in total (whole registers).
    """

    centred: bool
    wide: bool
    limited: bool

    @property
    def slots(self) -> tuple[str, ...]:
        names = ("boxes", "scores", "most", "iou", "work", "left", "tops", "places", "room", "pictures", "classes")
        return (*names, "own", "found", "count", "bound", *(("least",) if self.limited else ()))

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        found, rows = task.view("found", I64, 3, 1), task.view("found", I64, 1)
        with k.loop(end, begin):
            count = k.var(k.index(0))
            asked = task.view("most", I64 if self.wide else I32, 1)[0].load_once().cast(I64)
            most = asked.clamp(0, task.i64("own"))
            with k.loop(task.i64("pictures")) as picture, k.loop(task.i64("classes")) as number:
                held = self._candidates(k, task, picture * task.i64("classes") + number)
                first = count.get()
                with k.loop(held), k.when(count.get() - first < most):
                    place = self._best(k, task, held)
                    box = self._box(task, picture, place)
                    with k.when(self._overlaps(k, task, box, count.get() - first).eq(0)):
                        for name, view in self._stay(k, task).items():
                            view[count.get() - first].store(box[name])
                        for column, value in enumerate((picture, number, place)):
                            found[count.get(), column].store(value)
                        count.set(count.get() + 1)
            with k.loop(task.i64("bound") * 3, count.get() * 3) as rest:
                rows[rest].store(k.index(0))
            task.view("count", I64, 1)[0].store(count.get())

    def _candidates(self, k: Kernel, task: Task, row: Val) -> Val:
        """Compact the boxes of a class that score enough; returns their number."""
        lanes, own, gone = k.isa.f32, task.i64("own"), k.const(F64, float("-inf"))
        scores = k.view(task.view("scores", F32, own, 1)[row].address, F32, 1)
        left, tops, places = task.view("left", F64, 1), task.view("tops", F64, 1), task.view("places", I64, 1)
        held = k.var(k.index(0))
        floor = task.view("least", F32, 1)[0].load() if self.limited else None
        with k.loop(own, step=lanes, nonempty=True) as first:
            mask = k.mask(lanes, own - first)
            if floor is not None:
                mask &= scores[first].load(lanes, mask) > floor.splat(lanes)
            with k.when(mask.any()), k.loop((first + lanes).min(own), first, nonempty=True) as at:
                score = scores[at].load()
                wide = score.cast(F64)
                if floor is None:
                    lowest = (wide > gone).select(wide, k.const(F64, _LOWEST))
                    wide = wide.ne(wide).select(k.const(F64, _UNORDERED), lowest)
                left[held.get()].store(wide)
                places[held.get()].store(at)
                held.set(held.get() + (1 if floor is None else (score > floor).select(k.index(1), k.index(0))))
        left[held.get()].store(gone.splat(lanes))
        with k.loop(held.get(), step=lanes) as first:
            tops[first // lanes].store(self._top(k, left[first].load(lanes))[0])
        return held.get()

    @staticmethod
    def _top(k: Kernel, scores: Val) -> tuple[Val, Val]:
        return first_greatest(scores, k.iota(I32, scores.lanes))

    def _best(self, k: Kernel, task: Task, held: Val) -> Val:
        """Remove the best remaining score; returns its box."""
        lanes, gone = k.isa.f32, k.const(F64, float("-inf"))
        left, tops = task.view("left", F64, 1), task.view("tops", F64, 1)
        registers = (held + lanes - 1) // lanes
        _, number = greatest(k, registers, gone, lambda at, *some: tops[at].load(*some))
        register = number.cast(I64)
        scores = left[register * lanes].load(lanes)
        _, lane = self._top(k, scores)
        others = k.iota(I32, lanes).eq(lane.splat(lanes)).select(gone.splat(lanes), scores)
        left[register * lanes].store(others)
        tops[register].store(self._top(k, others)[0])
        return task.view("places", I64, 1)[register * lanes + lane.cast(I64)].load()

    def _box(self, task: Task, picture: Val, at: Val) -> dict[str, Val]:
        """The box's corners in order, and its area."""
        given = task.view("boxes", F32, 4, 1)
        a, b, c, d = (given[picture * task.i64("own") + at, side].load().cast(F64) for side in range(4))
        if self.centred:
            low, high = (b - d / 2.0, a - c / 2.0), (b + d / 2.0, a + c / 2.0)
        else:
            low, high = ((f(a, c), f(b, d)) for f in (Val.minimum, Val.maximum))
        return dict(zip(_FIELDS, (*low, *high, (high[0] - low[0]) * (high[1] - low[1])), strict=True))

    def _stay(self, k: Kernel, task: Task) -> dict[str, View]:
        """The fields of the kept boxes."""
        work = task.view("work", F64, task.i64("room"), 1)
        return {name: k.view(work[i].address, F64, 1) for i, name in enumerate(_FIELDS)}

    def _overlaps(self, k: Kernel, task: Task, box: dict[str, Val], count: Val) -> Val:
        """Whether a box overlaps a kept one too much."""
        lanes, stay = k.isa.f32, self._stay(k, task)
        bound = task.view("iou", F32, 1)[0].load().cast(F64).splat(lanes)
        other = {name: value.splat(lanes) for name, value in box.items()}
        found = k.var(k.mask(lanes, k.index(0)))
        with k.loop(count, step=lanes) as first:
            mask = k.mask(lanes, count - first)
            own = {name: view[first].load(lanes, mask) for name, view in stay.items()}
            shared = intersection(other, own)
            whole = own["area"] + other["area"] - shared
            found.set(found.get() | (mask & (shared > bound * whole)))
        return found.get().any()

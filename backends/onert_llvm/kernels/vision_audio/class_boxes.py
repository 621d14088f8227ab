"""Boxes chosen by score for each picture and class, those left out that overlap a better one."""

from __future__ import annotations

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, F64, I32, I64, Kernel, Val, Var, View

from .detection import greatest

_FIELDS = ("low_y", "low_x", "high_y", "high_x", "area")
_LOWEST, _UNORDERED = -1.5e308, -1.7e308
"""What stands for a score of minus infinity, and for one that is no number: less than any float32."""


@frozen
class ClassBoxes(Value):
    """Rows of picture, class and box in `found`, for each class the boxes that stay, the best first; zeros up to
    `bound` rows, and their `count`.

    `boxes` are four float32 each, two opposite corners or with `centred` x, y, width and height. At most `most` of a
    class stay, an integer of 64 bits if `wide`; with `limited` those that score more than `least`. A box goes if it
    shares more than `iou` of the area of both with a better one that stays. `work` points to memory for five float64 of
    `room` boxes (whole registers), `left` for the scores that are left. There is one work tile. All is in float64.
    """

    centred: bool
    wide: bool
    limited: bool

    @property
    def slots(self) -> tuple[str, ...]:
        names = ("boxes", "scores", "most", "iou", "work", "left", "room", "pictures", "classes", "own")
        return (*names, "found", "count", "bound", *(("least",) if self.limited else ()))

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        work = task.view("work", F64, task.i64("room"), 1)
        boxes = {name: k.view(work[i].address, F64, 1) for i, name in enumerate(_FIELDS)}
        left, found = task.view("left", F64, 1), task.view("found", I64, 3, 1)
        with k.loop(end, begin):
            count = k.var(k.index(0))
            asked = task.view("most", I64 if self.wide else I32, 1)[0].load_once().cast(I64)
            most = asked.clamp(0, task.i64("own"))
            with k.loop(task.i64("pictures")) as picture:
                self._corners(k, task, picture, boxes)
                with k.loop(task.i64("classes")) as number:
                    self._scores(k, task, picture * task.i64("classes") + number, left)
                    with k.loop(most):
                        self._next(k, task, boxes, left, found, count, picture, number)
            with k.loop(task.i64("bound") * 3, count.get() * 3) as rest:
                task.view("found", I64, 1)[rest].store(k.index(0))
            task.view("count", I64, 1)[0].store(count.get())

    def _next(
        self,
        k: Kernel,
        task: Task,
        boxes: dict[str, View],
        left: View,
        found: View,
        count: Var,
        picture: Val,
        number: Val,
    ) -> None:
        """The best box that is left, if there is one."""
        gone = k.const(F64, float("-inf"))
        best, index = greatest(k, task.i64("own"), gone, lambda at, *lanes: left[at].load(*lanes))
        with k.when(best > float("-inf")):
            at = index.cast(I64)
            for column, value in enumerate((picture, number, at)):
                found[count.get(), column].store(value)
            count.set(count.get() + 1)
            self._lessen(k, task, boxes, left, at)

    def _corners(self, k: Kernel, task: Task, picture: Val, boxes: dict[str, View]) -> None:
        given = task.view("boxes", F32, task.i64("own") * 4, 4, 1)[picture]
        with k.loop(task.i64("own"), nonempty=True) as i:
            a, b, c, d = (given[i, side].load().cast(F64) for side in range(4))
            if self.centred:
                low, high = (b - d / 2.0, a - c / 2.0), (b + d / 2.0, a + c / 2.0)
            else:
                low, high = ((f(a, c), f(b, d)) for f in (Val.minimum, Val.maximum))
            values = (*low, *high, (high[0] - low[0]) * (high[1] - low[1]))
            for name, value in zip(_FIELDS, values, strict=True):
                boxes[name][i].store(value)

    def _scores(self, k: Kernel, task: Task, row: Val, left: View) -> None:
        """The scores of a class; those that are too little are gone from the start."""
        given = task.view("scores", F32, task.i64("own"), 1)[row]
        with k.loop(task.i64("own"), nonempty=True) as i:
            score = given[i].load()
            wide = score.cast(F64)
            if self.limited:
                floor = task.view("least", F32, 1)[0].load()
                left[i].store((score > floor).select(wide, k.const(F64, float("-inf"))))
            else:
                lowest = (wide > float("-inf")).select(wide, k.const(F64, _LOWEST))
                left[i].store(wide.ne(wide).select(k.const(F64, _UNORDERED), lowest))

    def _lessen(self, k: Kernel, task: Task, boxes: dict[str, View], left: View, at: Val) -> None:
        """Take out the box itself and what it overlaps."""
        lanes, count = k.isa.f32, task.i64("own")
        gone = k.const(F64, float("-inf"))
        left[at].store(gone)
        own = {name: boxes[name][at].load().splat(lanes) for name in _FIELDS}
        bound = task.view("iou", F32, 1)[0].load().cast(F64).splat(lanes)
        with k.loop(count, step=lanes, nonempty=True) as first:
            mask = k.mask(lanes, count - first)
            other = {name: boxes[name][first].load(lanes, mask) for name in _FIELDS}
            sides = []
            for axis in "yx":
                side = own[f"high_{axis}"].minimum(other[f"high_{axis}"]) - own[f"low_{axis}"].maximum(
                    other[f"low_{axis}"]
                )
                sides.append(side.maximum(side.like(0.0)))
            shared = sides[0] * sides[1]
            whole = own["area"] + other["area"] - shared
            score = left[first].load(lanes, mask)
            left[first].store((shared > bound * whole).select(gone.splat(lanes), score), mask)

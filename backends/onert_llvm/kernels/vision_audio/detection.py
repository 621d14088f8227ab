"""Detections from anchors: the best class of each anchor, box decoding, and non-maximum suppression.

Computes `DetectionPostProcess` without `regular_nms` and with one class per detection.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, I8, I32, I64, Kernel, Val, Var, View
from onert_llvm.irbuilder.math import exp


@frozen
class Elements(Value):
    """The storage of a tensor's real numbers: float32, or bytes with a scale and a zero point."""

    bytes_: bool
    signed: bool = False

    def load(self, row: View, at: Val | int, lanes: int = 1, mask: Val | None = None) -> Val:
        """Stored elements: 32-bit integers for bytes."""
        found = row[at].load(lanes, mask)
        return found.cast(I32, self.signed) if self.bytes_ else found

    def real(self, task: Task, name: str, x: Val) -> Val:
        """Stored elements as float32, with the slots `NAME_scale` and `NAME_zero`."""
        if not self.bytes_:
            return x
        return (x - task.i64(f"{name}_zero").cast(I32)).cast(F32) * task.f32(f"{name}_scale")

    def view(self, task: Task, name: str, stride: Val) -> View:
        return task.view(name, I8 if self.bytes_ else F32, stride, 1)

    def slots(self, name: str) -> tuple[str, ...]:
        return (name, *((f"{name}_scale", f"{name}_zero") if self.bytes_ else ()))


@frozen
class BestClass(Value):
    """For each anchor the greatest of the `count` scores from `first` on, as float32, and its index (first of equals).

    Work tiles are anchors; a row has `width` scores.
    """

    scores: Elements

    @property
    def slots(self) -> tuple[str, ...]:
        return (*self.scores.slots("scores"), "width", "first", "count", "best", "label")

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        count = task.i64("count")
        scores = self.scores.view(task, "scores", task.i64("width"))
        with k.loop(end, begin) as anchor:
            row = scores[anchor, task.i64("first")]
            row = k.view(row.address, row.element, 1)
            value, index = greatest(k, count, self.scores.load(row, 0), partial(self.scores.load, row))
            task.view("best", F32, 1)[anchor].store(self.scores.real(task, "scores", value))
            task.view("label", I32, 1)[anchor].store(index)


def greatest(k: Kernel, count: Val, least: Val, load: Callable[[Val, int, Val], Val]) -> tuple[Val, Val]:
    """The greatest of `count` elements and its index (i32, the least among equals); `least` and 0 if none is greater.
    `load` returns the elements at a position, in lanes under a mask."""
    lanes = k.isa.f32
    best: Var = k.var(least.splat(lanes))
    where: Var = k.var(k.zeros(I32, lanes))
    with k.loop(count, step=lanes, nonempty=True) as at:
        mask = k.mask(lanes, count - at)
        seen = load(at, lanes, mask)
        better = mask & (seen > best.get())
        best.set(better.select(seen, best.get()))
        where.set(better.select(k.iota(I32, lanes) + at.cast(I32).splat(lanes), where.get()))
    return first_greatest(best.get(), where.get())


def first_greatest(values: Val, indices: Val) -> tuple[Val, Val]:
    """The greatest of the lanes and its index; among equals, the least index."""
    while values.lanes > 1:
        half = values.lanes // 2
        low, high = list(range(half)), list(range(half, values.lanes))
        if half == 1:
            a, b, i, j = values.lane(0), values.lane(1), indices.lane(0), indices.lane(1)
        else:
            a, b = values.shuffle(low), values.shuffle(high)
            i, j = indices.shuffle(low), indices.shuffle(high)
        second = (b > a) | (b.eq(a) & (j < i))
        values, indices = second.select(b, a), second.select(j, i)
    return values, indices


SIDES = ("low_y", "low_x", "high_y", "high_x")
_FIELDS = (*SIDES, "area", "score")


@frozen
class Detect(Value):
    """Boxes of the anchors that score at least `threshold`, the best first, without those whose overlap with a better
    one exceeds `iou`: at most `most`, in `slots` result slots. There is one work tile.

    `work` points to memory for six float32 and one 32-bit integer per anchor, for `room` anchors (whole registers).
    """

    encodings: Elements

    @property
    def slots(self) -> tuple[str, ...]:
        outs = ("out_boxes", "out_labels", "out_scores", "out_count", "slots", "most")
        numbers = ("anchor_count", "room", "width", "threshold", "iou", "y_scale", "x_scale", "h_scale", "w_scale")
        return (*self.encodings.slots("encodings"), "anchors", "best", "label", "work", *numbers, *outs)

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        room = task.i64("room")
        fields = task.view("work", F32, room, 1)
        boxes = {name: k.view(fields[i].address, F32, 1) for i, name in enumerate(_FIELDS)}
        sources = k.view(fields[len(_FIELDS)].address, I32, 1)
        with k.loop(end, begin):
            self._clear(k, task)
            found = self._candidates(k, task, boxes, sources)
            count = k.var(k.index(0))
            with k.loop(found.min(task.i64("most"))):
                best, at = self._greatest(k, boxes["score"], found)
                with k.when(best > float("-inf")):
                    self._keep(k, task, boxes, sources[at].load(), at, count)
                    self._suppress(k, task, boxes, at, found)
            task.view("out_count", F32, 1)[0].store(count.get().cast(F32))

    def _clear(self, k: Kernel, task: Task) -> None:
        boxes = task.view("out_boxes", F32, 4, 1)
        with k.loop(task.i64("slots"), nonempty=True) as i:
            for name in ("out_labels", "out_scores"):
                task.view(name, F32, 1)[i].store(k.f32(0.0))
            for side in range(4):
                boxes[i, side].store(k.f32(0.0))

    def _candidates(self, k: Kernel, task: Task, boxes: dict[str, View], sources: View) -> Val:
        """Store the anchors that score enough, in order; returns their number."""
        count = k.var(k.index(0))
        with k.loop(task.i64("anchor_count"), nonempty=True) as anchor:
            score = task.view("best", F32, 1)[anchor].load()
            with k.when(score >= task.f32("threshold")):
                at = count.get()
                sides = self._decoded(k, task, anchor)
                area = (sides[2] - sides[0]) * (sides[3] - sides[1])
                for name, value in zip(_FIELDS, (*sides, area, score), strict=True):
                    boxes[name][at].store(value)
                sources[at].store(anchor.cast(I32))
                count.set(at + 1)
        return count.get()

    def _decoded(self, k: Kernel, task: Task, anchor: Val) -> list[Val]:
        """The corners of a box; the order of operations is that of the reference."""
        row = self.encodings.view(task, "encodings", task.i64("width"))[anchor]
        code = [self.encodings.real(task, "encodings", self.encodings.load(row, i)) for i in range(4)]
        centre_y, centre_x, height, width = (task.view("anchors", F32, 4, 1)[anchor, i].load() for i in range(4))
        y = code[0] / task.f32("y_scale") * height + centre_y
        x = code[1] / task.f32("x_scale") * width + centre_x
        h = exp(k, code[2] / task.f32("h_scale")) * height * 0.5
        w = exp(k, code[3] / task.f32("w_scale")) * width * 0.5
        return [y - h, x - w, y + h, x + w]

    def _greatest(self, k: Kernel, score: View, count: Val) -> tuple[Val, Val]:
        """The best remaining score, minus infinity if there is none, and its position."""
        value, index = greatest(k, count, k.f32(float("-inf")), lambda at, *lanes: score[at].load(*lanes))
        return value, index.cast(I64)

    def _keep(self, k: Kernel, task: Task, boxes: dict[str, View], source: Val, at: Val, count: Var) -> None:
        """Add a detection."""
        place = count.get()
        for side, name in enumerate(SIDES):
            task.view("out_boxes", F32, 4, 1)[place, side].store(boxes[name][at].load())
        label = task.view("label", I32, 1)[source.cast(I64)].load()
        task.view("out_labels", F32, 1)[place].store(label.cast(F32))
        task.view("out_scores", F32, 1)[place].store(boxes["score"][at].load())
        count.set(place + 1)

    def _suppress(self, k: Kernel, task: Task, boxes: dict[str, View], at: Val, count: Val) -> None:
        """Remove the box itself and all that overlap it too much, also if the overlap is NaN."""
        lanes = k.isa.f32
        own = {name: boxes[name][at].load().splat(lanes) for name in _FIELDS}
        low = k.f32(float("-inf")).splat(lanes)
        with k.loop(count, step=lanes, nonempty=True) as first:
            mask = k.mask(lanes, count - first)
            other = {name: boxes[name][first].load(lanes, mask) for name in _FIELDS}
            ratio = overlap(own, other)
            boxes["score"][first].store((ratio <= task.f32("iou")).select(other["score"], low), mask)
        boxes["score"][at].store(k.f32(float("-inf")))


def overlap(own: Mapping[str, Val], other: Mapping[str, Val]) -> Val:
    """Intersection over union; 0 if an area is not positive."""
    shared = intersection(own, other)
    union = own["area"] + other["area"] - shared
    real = (own["area"] > 0.0) & (other["area"] > 0.0)
    return real.select(shared / union.eq(0.0).select(1.0, union), 0.0)


def intersection(own: Mapping[str, Val], other: Mapping[str, Val]) -> Val:
    """The area that boxes share. Corners that are NaN are ignored, since they make a box's own area NaN."""
    sides = (
        other[f"high_{axis}"].min(own[f"high_{axis}"]) - other[f"low_{axis}"].max(own[f"low_{axis}"]) for axis in "yx"
    )
    tall, broad = (side.max(0.0) for side in sides)
    return tall * broad

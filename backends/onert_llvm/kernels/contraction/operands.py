"""Left operands of a product: rows of a matrix, or windows over pictures."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import Kernel, Type, Val, View

from .contraction import Reading, Run, Terms
from .im2col import Patch, gather, padding_of, room
from .implicit_im2col import SLOTS as WINDOW
from .implicit_im2col import Origin, each_tap, origin, origins
from .register_tile import Block, Rows


@frozen
class Matrix(Value):
    """Rows `lda` elements apart."""

    name = "gemm"
    slots = ("a", "k", "lda")

    def read(self, k: Kernel, task: Task, block: Rows, terms: Terms) -> Reading:
        return straight(block.rows(task.view("a", terms.element, task.i64("lda"), 1)), task.i64("k"))


def straight(rows: list[View], depth: Val) -> Reading:
    """Rows whose terms are all contiguous."""

    @contextmanager
    def each() -> Iterator[Run]:
        yield Run(rows, depth)

    return Reading(None, each, at=lambda tap: rows)


@frozen
class Windows(Value):
    """The windows of the output's pixels, through all images, read tap by tap: `k` channels, or the pixel at `zero`.

    With `skips`, taps outside of the picture in all windows of a tile are left out: only for sums of floats, because
    padding bytes hold the zero point.
    """

    skips: bool = False

    name = "conv"
    slots = ("k", *WINDOW)

    def read(self, k: Kernel, task: Task, block: Rows, terms: Terms) -> Reading:
        return self._reading(k, task, block, origins(k, task, block.first, block.count), terms.element)

    def _reading(self, k: Kernel, task: Task, block: Rows, windows: list[Origin], element: Type) -> Reading:
        depth = task.i64("k")

        @contextmanager
        def each() -> Iterator[Run]:
            with each_tap(k, task, windows, element, self.skips) as (tap, pixels):
                yield Run(pixels, depth, tap)

        def single(row: Val) -> Reading:
            return self._reading(k, task, block, [origin(k, task, block.row(row))], element)

        return Reading(depth, each, single)


@frozen
class Copies(Value):
    """Windows with few channels, always copied to contiguous memory; no dilation across."""

    patch: Patch

    name = "patch_conv"
    slots = WINDOW

    def read(self, k: Kernel, task: Task, block: Rows, terms: Terms) -> Reading:
        pitch = self.patch.segment
        copies = gather(k, task, block, self.patch, padding_of(k, task, terms.element), pitch)
        rows = [copies.after(i * room(k, self.patch, pitch)) for i in range(block.count)]
        return straight(rows, k.index(self.patch.depth))


@frozen
class Patches(Value):
    """Windows with few channels, so that a window row is one segment in memory; no dilation across.

    The input's pixels are contiguous. Each window row is a tap. Tiles whose windows are consecutive and inside the
    picture are multiplied in place; others are copied first.
    """

    patch: Patch

    name = "patch_conv"
    slots = WINDOW

    def read(self, k: Kernel, task: Task, block: Rows, terms: Terms) -> Reading:
        group, segment = terms.group(k), self.patch.segment
        pitch = -(-segment // group) * group
        first, step, down = self._places(k, task, block, terms.element, pitch)

        def at(ky: Val) -> list[View]:
            row = k.view(first, terms.element, 1).after(ky * down)
            return [row.after(step * i) for i in range(block.count)]

        @contextmanager
        def each() -> Iterator[Run]:
            with k.loop(self.patch.height, nonempty=True) as ky:
                yield Run(at(ky), k.index(segment), ky, k.index(pitch))

        return Reading(k.index(pitch), each, at=at)

    def _places(self, k: Kernel, task: Task, block: Rows, element: Type, pitch: int) -> tuple[Val, Val, Val]:
        """The first window and the distances between windows and between their rows: in the picture if nothing outside
        it is read, else in the copy.
        """
        at, pixel = origin(k, task, block.first), task.i64("pixel")
        step, down = task.i64("stride_w") * pixel, task.i64("dilation_h") * task.i64("row")
        left = at.x * pixel
        across = (at.x >= 0) & (left + step * (block.count - 1) + pitch <= task.i64("in_w") * pixel)
        across = across & (block.first % task.i64("out_w") + block.count <= task.i64("out_w"))
        lowest = at.y + task.i64("dilation_h") * (self.patch.height - 1)
        found = [k.var(x) for x in (task.ptr("input"), step, down)]
        with k.either(across & (at.y >= 0) & (lowest < task.i64("in_h"))) as (inside, outside):
            with inside:
                found[0].set(task.view("input", element, 1)[at.image + at.y * task.i64("row") + left].address)
            with outside:
                copies = gather(k, task, block, self.patch, padding_of(k, task, element), pitch)
                apart = k.index(room(k, self.patch, pitch))
                for variable, value in zip(found, (copies.address, apart, k.index(pitch)), strict=True):
                    variable.set(value)
        first, step, down = (x.get() for x in found)
        return first, step, down


@frozen
class GroupWindows(Value):
    """The windows of a group's own picture, which contains its margins, so that each window row is one segment in it.

    Slots: `segment`, the even number of elements of a window row; `line`, `down` and `across`, the elements from one
    window row, line of outputs and output to the next; `group`, those of a group's picture; `group_panels`, the panels
    of columns of a group.
    """

    name = "group_conv"
    slots = ("input", "kernel_h", "out_w", "segment", "line", "down", "across", "group", "group_panels")

    def read(self, k: Kernel, task: Task, block: Rows, terms: Terms) -> Reading:
        assert isinstance(block, Block)
        picture = task.view("input", terms.element, task.i64("group"), 1)[
            block.columns.number // task.i64("group_panels")
        ]
        down, across, width = task.i64("down"), task.i64("across"), task.i64("out_w")
        x, wrap = block.first % width, down - across * (width - 1)
        rows = [picture.after(block.first // width * down + x * across)]
        for _ in range(block.count - 1):
            x = x + 1
            ends = x.eq(width)
            rows.append(rows[-1].after(ends.select(wrap, across)))
            x = ends.select(0, x)
        depth = task.i64("segment")

        def at(ky: Val) -> list[View]:
            return [row.after(ky * task.i64("line")) for row in rows]

        @contextmanager
        def each() -> Iterator[Run]:
            with k.loop(task.i64("kernel_h"), nonempty=True) as ky:
                yield Run(at(ky), depth, ky)

        return Reading(depth, each, at=at)

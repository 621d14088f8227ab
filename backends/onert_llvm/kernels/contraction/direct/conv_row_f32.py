"""Convolution of few channels in float32: a tile is adjacent outputs of a row, whose windows are evenly spaced.

The first layer of a network reads three channels, too few for the loop over channels of the general convolution. A
window row is contiguous, and the window of the next output begins a fixed number of elements later: one address serves
all outputs of a tile.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, I16, I32, PTR, Kernel, Type, Val, View
from onert_llvm.kernels.contraction.bfloat.terms import Terms
from onert_llvm.kernels.contraction.contraction import Reading, Run, multiply
from onert_llvm.kernels.contraction.epilogue import PLAIN, Epilogue
from onert_llvm.kernels.contraction.float_terms import FloatTerms
from onert_llvm.kernels.contraction.implicit_im2col import SLOTS as WINDOW
from onert_llvm.kernels.contraction.register_tile import SLOTS, Block, Panel, Tile, each_panel

from .line_pairs import PairsOfLines


@frozen
class Lines(Value):
    """A window of `height` rows of `segment` elements (width times channels); `step` elements from one to the next.

    `together`: that many adjacent outputs are one row of the product, their channels side by side, because one output
    has too few to fill registers; the window is then their joint window.
    """

    height: int
    segment: int
    step: int
    together: int = 1

    @property
    def depth(self) -> int:
        """Elements of a window."""
        return self.height * self.segment


@frozen
class LineConvF32(Value):
    """A convolution whose input pixels are contiguous; no dilation across.

    Weights are packed as `[window, n]`: one tap of `lines.depth` elements; with `holes`, `ABSENT` ones are not taps. An
    output row has at least as many pixels as a tile; rows are `pitch` pixels apart. Work tile t is row t // panels of
    the output, through all images, by panel t % panels.

    If `terms` are pairs of bfloat16, the picture is bfloat16 and weights are pairs, by window row.
    """

    tile: Tile
    lines: Lines
    epilogue: Epilogue = PLAIN
    holes: bool = False
    terms: Terms = Terms.FLOAT

    @property
    def slots(self) -> tuple[str, ...]:
        return ("b", "c", *SLOTS, "ldc", "pitch", *WINDOW, *self.epilogue.slots)

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        reach = self._reach
        room = reach + k.isa.f32
        copies = k.view(k.scratch(self._element, self.lines.height * room), self._element, room, 1)
        rows = k.view(k.scratch(PTR, self.lines.height), PTR, 1)
        width, panels = task.i64("out_w"), task.i64("panels")
        with k.loop(end, begin) as t:
            line, panel = t // panels, t % panels
            image, y = line // task.i64("out_h"), line % task.i64("out_h")
            pixels = self.tile.mr * self.lines.together
            with k.loop(width, step=pixels, nonempty=True) as group:
                x = group.min(width - pixels)
                self._find(k, task, (image, y, x), copies, rows)
                each_panel(k, task, self.tile, panel, partial(self._block, k, task, rows, line * task.i64("pitch") + x))

    @property
    def _element(self) -> Type:
        """The element type of the picture."""
        return F32 if self.terms is Terms.FLOAT else I16

    @property
    def _reach(self) -> int:
        """Elements from the start of a tile's first window row to the end of its last."""
        return (self.tile.mr - 1) * self.lines.step + self.lines.segment

    def _find(self, k: Kernel, task: Task, at: tuple[Val, Val, Val], copies: View, rows: View) -> None:
        """Store where the tile's windows begin in each row: in the picture, or in a copy padded with zeros."""
        image, y, x = at
        pixel, width = task.i64("pixel"), task.i64("in_w") * task.i64("pixel")
        top = y * task.i64("stride_h") - task.i64("pad_h")
        left = (x * task.i64("stride_w") - task.i64("pad_w")) * pixel
        source = task.view("input", self._element, task.i64("row"), 1)[0, image * task.i64("image") + left].address
        within = (left >= 0) & (left + self._reach <= width)
        with k.loop(self.lines.height) as ky:
            row = top + task.i64("dilation_h") * ky
            place, seen = k.view(source, self._element, task.i64("row"), 1)[row], row.ult(task.i64("in_h"))
            found = k.var(place.address)
            with k.when((within & seen).eq(0)):
                limit = seen.select(width, k.index(0))
                self._copy(k, k.view(place.address, self._element, 1), left, limit, copies[ky])
                found.set(copies[ky].address)
            rows[ky].store(found.get(), align=4)

    def _copy(self, k: Kernel, line: View, left: Val, limit: Val, target: View) -> None:
        """Copy the elements of a line that a tile reads, from position `left` on; zeros outside 0 to `limit`."""
        lanes = k.isa.f32
        for piece in range(0, self._reach, lanes):
            x = k.iota(I32, lanes) + (left + piece).cast(I32).splat(lanes)
            seen = x.ult(limit.cast(I32).splat(lanes))
            target[piece].store(line[piece].load(lanes, seen))

    def _block(self, k: Kernel, task: Task, rows: View, first: Val, panel: Panel) -> None:
        block = Block(k, first, self.tile.mr, self.lines.together, panel)
        reading = self._reading(k, rows, [k.index(i) for i in range(self.tile.mr)])
        terms = FloatTerms(exact=self.holes) if self.terms is Terms.FLOAT else PairsOfLines()
        multiply(k, task, self.tile, block, terms, self.epilogue, reading)

    def _reading(self, k: Kernel, rows: View, windows: list[Val]) -> Reading:
        """Reads some of a tile's windows: each window row is a tap."""
        segment = k.index(self.lines.segment)

        @contextmanager
        def each() -> Iterator[Run]:
            with k.loop(self.lines.height) as ky:
                row = k.view(rows[ky].load(align=4), self._element, self.lines.step, 1)
                yield Run([row[i] for i in windows], segment, ky)

        return Reading(segment, each, lambda i: self._reading(k, rows, [i]))

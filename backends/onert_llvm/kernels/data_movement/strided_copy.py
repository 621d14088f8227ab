"""Strided copies: boxes with any strides, and margins filled with one element."""

from __future__ import annotations

from enum import Enum

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import I8, I16, I32, I64, Kernel, Type, Val, View, deinterleave, interleave, transposed

ELEMENTS = {1: (I8, 1), 2: (I16, 1), 4: (I32, 1), 8: (I64, 1), 16: (I64, 2)}
"""The representation of an element by its bytes: an integer, or several adjacent ones."""

_SHORT = 16
"""The bytes of the pieces in which runs shorter than a register are copied."""


_AHEAD = 4
"""The squares by which lines of targets are fetched before they are written: processors predict few such streams."""


class Core(Enum):
    """What the two innermost loops of a box do.

    `RUN`: the width is contiguous on both sides. `SPREAD`: one element fills a row of the target. `ACROSS`: the source
    is contiguous along the rows, the target along the width (a transpose). `WEAVE`: both sides are contiguous along the
    rows, but the target interleaves a few of them; `UNWEAVE` is the inverse; in both, the width is the number of
    interleaved rows. `EACH`: any other strides, one element at a time.
    """

    RUN = "run"
    SPREAD = "spread"
    ACROSS = "across"
    WEAVE = "weave"
    UNWEAVE = "unweave"
    EACH = "each"


@frozen
class Move(Value):
    """A box of `rank` outer axes, rows and a width, copied with separate strides on both sides.

    All strides are in bytes, sizes in elements of `unit` bytes. Work tiles are positions along the outer axes (`size0`,
    ...; their strides are `source0`, `target0`, ...). `ACROSS` needs elements of at most 8 bytes; it transposes squares
    of `square` elements a side, a power of two and at most a register, and both rows and width are at least as many.
    With `by_width` one follows another along the width, so that targets are written in sequence; without, along the
    rows, so that sources are read in sequence. `WEAVE` and `UNWEAVE` have the same element limit: `square` is how many
    elements of a register they move, at most the number of rows, and `ways` is the width.
    """

    core: Core
    unit: int
    rank: int
    square: int = 0
    ways: int = 0
    by_width: bool = False

    @property
    def name(self) -> str:
        return f"move_{self.core.value}"

    @property
    def slots(self) -> tuple[str, ...]:
        inner = (f"{axis}{what}" for axis in ("rows", "width") for what in ("", "_source", "_target"))
        outer = (f"{what}{i}" for i in range(self.rank) for what in ("size", "source", "target"))
        return ("source", "target", *inner, *outer)

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        with k.loop(end, begin) as tile:
            offsets = {"source": k.index(0), "target": k.index(0)}
            rest = tile
            for i in reversed(range(self.rank)):
                at = rest % task.i64(f"size{i}") if i else rest
                rest = rest // task.i64(f"size{i}") if i else rest
                offsets = {side: offset + at * task.i64(f"{side}{i}") for side, offset in offsets.items()}
            sides = [
                k.view(
                    task.view(side, I8, 1)[offset].address,
                    I8,
                    task.i64(f"rows_{side}"),
                    task.i64(f"width_{side}"),
                )
                for side, offset in offsets.items()
            ]
            if self.core is Core.ACROSS:
                _across(k, sides[0], sides[1], task.i64("rows"), task.i64("width"), self)
                return
            if self.core in (Core.WEAVE, Core.UNWEAVE):
                _in_turn(k, sides[0], sides[1], task.i64("rows"), self)
                return
            with k.loop(task.i64("rows")) as row:
                self._row(k, sides[0][row], sides[1][row], task.i64("width"))

    def _row(self, k: Kernel, source: View, target: View, width: Val) -> None:
        element, lanes = ELEMENTS[self.unit]
        if self.core is Core.RUN:
            here, there = (k.view(side.address, element, 1) for side in (source, target))
            copy_run(k, here, there, width * lanes)
        elif self.core is Core.SPREAD:
            fill_run(k, k.view(source.address, element, 1)[0].load(), k.view(target.address, element, 1), width)
        else:
            with k.loop(width) as i:
                value = k.view(source[i].address, element, 1)[0].load(lanes)
                k.view(target[i].address, element, 1)[0].store(value)


def copy_run(k: Kernel, source: View, target: View, width: Val) -> None:
    """Copy `width` contiguous elements: whole registers, then the tail."""
    lanes = k.isa.vector_bytes // _bytes(source.element)
    whole = width - width % lanes
    with k.loop(whole, step=lanes) as i:
        target[i].store(source[i].load(lanes))
    with k.when(whole < width):
        if k.isa.masks and _bytes(source.element) == 4:
            mask = k.mask(lanes, width - whole)
            target[whole].store(source[whole].load(lanes, mask), mask)
        else:
            _rest(k, source, target, width, lanes)


def _rest(k: Kernel, source: View, target: View, width: Val, lanes: int) -> None:
    """The tail of a run: a register that overlaps what was copied, or pieces if the run is shorter than a register."""
    with k.either(width >= lanes) as (long, short):
        with long:
            target[width - lanes].store(source[width - lanes].load(lanes))
        with short:
            piece = _SHORT // _bytes(source.element)
            with k.either(width >= piece) as (some, few):
                with some:
                    with k.loop(width - width % piece, step=piece) as i:
                        target[i].store(source[i].load(piece))
                    target[width - piece].store(source[width - piece].load(piece))
                with few, k.loop(width) as i:
                    target[i].store(source[i].load())


def fill_run(k: Kernel, value: Val, target: View, width: Val) -> None:
    """Store one value to `width` contiguous elements."""
    lanes = k.isa.vector_bytes // _bytes(target.element)
    for i, count in k.pieces(width, lanes):
        target[i].store(value.splat(count))


def _bytes(element: Type) -> int:
    return int(element.width) // 8


def _across(k: Kernel, source: View, target: View, rows: Val, width: Val, how: Move) -> None:
    """Transpose squares in registers; the last ones overlap the previous ones."""
    lanes = how.square
    outer, inner = (rows, width) if how.by_width else (width, rows)
    with k.loop(outer, step=lanes, nonempty=True) as slow, k.loop(inner, step=lanes, nonempty=True) as fast:
        down, wide = (slow, fast) if how.by_width else (fast, slow)
        _square(k, source, target, (down.min(rows - lanes), wide.min(width - lanes)), how)


def _square(k: Kernel, source: View, target: View, at: tuple[Val, Val], how: Move) -> None:
    """Transpose the square at a row and a position in it."""
    lanes, (element, _), (row, wide) = how.square, ELEMENTS[how.unit], at
    taken = [k.view(source[row, wide + i].address, element, 1)[0].load(lanes) for i in range(lanes)]
    for i, column in enumerate(transposed(taken)):
        if how.by_width:
            k.prefetch(target[row + i, wide + _AHEAD * lanes])
        k.view(target[row + i, wide].address, element, 1)[0].store(column)


def _in_turn(k: Kernel, source: View, target: View, rows: Val, how: Move) -> None:
    """Interleave or deinterleave registers of several rows; the last ones overlap the previous ones."""
    lanes, ways, (element, _) = how.square, how.ways, ELEMENTS[how.unit]
    with k.loop(rows, step=lanes, nonempty=True) as at:
        row = at.min(rows - lanes)
        apart, turns = (source, target) if how.core is Core.WEAVE else (target, source)
        side_by_side = [k.view(apart[row, way].address, element, 1)[0] for way in range(ways)]
        first = k.view(turns[row, 0].address, element, 1)
        one_run = [first[way * lanes] for way in range(ways)]
        if how.core is Core.WEAVE:
            found, places = interleave([place.load(lanes) for place in side_by_side]), one_run
        else:
            found, places = deinterleave([place.load(lanes) for place in one_run]), side_by_side
        for value, place in zip(found, places, strict=True):
            place.store(value)

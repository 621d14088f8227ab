"""Broadcasting operands, as rows with at most three outer dimensions (`kernels.grid`)."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from onert.ir import CallTypes
from onert.ir.symbolic.sizes import are_same
from onert.ir.symbolic.trace import hint
from onert.ir.value import Value
from onert_llvm.command.command import Slot
from onert_llvm.kernels.elementwise.broadcast_rows import DIMENSIONS

from .float_elementwise import WIDE

Shape = tuple[int, ...]


@frozen
class Grid(Value):
    """The result's outer dimensions, the length of its rows, and the strides of each operand's rows.

    `single` says which operands have only one element per row.
    """

    outer: tuple[int, int, int]
    width: int
    strides: tuple[tuple[int, int, int], ...]
    single: tuple[bool, ...]

    @property
    def rows(self) -> int:
        return self.outer[0] * self.outer[1] * self.outer[2]

    def slots(self, names: Sequence[str]) -> dict[str, Slot]:
        """The slots that `grid.slots` lists, except the operands' addresses."""
        found: dict[str, Slot] = {"middle": self.outer[1], "inner": self.outer[2], "width": self.width}
        for name, strides in zip(names, self.strides, strict=True):
            found |= {f"{name}_{i}": stride for i, stride in enumerate(strides)}
        return found


def grid(result: Shape, operands: Sequence[Shape]) -> Grid | None:
    """The layout of operands of these shapes under a result; None if they broadcast along too many dimensions."""
    padded = [(1,) * (len(result) - len(shape)) + shape for shape in operands]
    merged = _merged(result, padded)
    (*outer, (width, repeats)) = merged
    if not outer and not any(repeats):
        outer, width = _cut(result, repeats, width)
    if len(outer) > DIMENSIONS:
        return None
    outer = [(1, repeats)] * (DIMENSIONS - len(outer)) + outer
    strides = []
    for i, repeated in enumerate(repeats):
        steps, step = [], 1 if repeated else width
        for size, repeat in reversed(outer):
            steps.append(0 if repeat[i] or size == 1 else step)
            step *= 1 if repeat[i] else size
        strides.append((steps[2], steps[1], steps[0]))
    sizes = [size for size, _ in outer]
    return Grid((sizes[0], sizes[1], sizes[2]), width, tuple(strides), repeats)


def why_no_grid(types: CallTypes) -> str | None:
    """Why two operands have no such layout under a result; None if they have."""
    result, *operands = (tuple(d or 0 for d in t.shape) for t in (types.output, types.input(0), types.input(1)))
    if 0 in result or grid(result, operands) is None:
        return "its operands broadcast in a way that has no native form"
    return None


def longer(found: Grid, which: int) -> tuple[Grid, int]:
    """The grid with longer rows if operand `which`, the same for all rows, is tiled; and the number of its copies.

    That is 1 if it does not help, or if another operand repeats too.
    """
    same = not found.single[which] and not any(found.strides[which]) and found.outer[:2] == (1, 1)
    plain = all(
        i == which or (not found.single[i] and steps[2] == found.width) for i, steps in enumerate(found.strides)
    )
    rows = found.outer[2]
    times = next((t for t in range(WIDE // hint(found.width), 0, -1) if are_same(rows % t, 0)), 1)
    if not (same and plain and times > 1):
        return found, 1
    width = found.width * times
    strides = tuple((0, 0, 0) if i == which else (0, 0, width) for i in range(len(found.strides)))
    return Grid((1, 1, rows // times), width, strides, found.single), times


_Axis = tuple[int, tuple[bool, ...]]
"""A dimension's size, and which operands repeat along it."""


def _merged(result: Shape, operands: Sequence[Shape]) -> list[_Axis]:
    """The dimensions, with adjacent ones merged if the same operands repeat along them; at least one."""
    found: list[_Axis] = []
    for at, size in enumerate(result):
        repeats = tuple(shape[at] != size for shape in operands)
        if size == 1:
            continue
        if found and found[-1][1] == repeats:
            size *= found.pop()[0]
        found.append((size, repeats))
    return found or [(1, (False,) * len(operands))]


def _cut(result: Shape, repeats: tuple[bool, ...], total: int) -> tuple[list[_Axis], int]:
    """Split all elements into rows of sufficient length, so that several threads may share them."""
    width = 1
    for size in reversed(result):
        width *= size
        if width >= WIDE:
            break
    return [(total // width, repeats)], width

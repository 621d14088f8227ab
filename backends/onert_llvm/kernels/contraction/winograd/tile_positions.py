"""The positions of the output tiles that Winograd's minimal filtering computes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from attrs import frozen

from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import Kernel, Val, View

from .form import Sizes

SLOTS = (
    "b", "c", "n", "k", "ldc", "panels", "panel_bytes", "input", "zero", "in_h", "in_w", "out_h", "out_w",
    "pad_h", "pad_w", "pixel", "row", "image", "down", "across", "total", "block", "group", "groups",
    "blocks", "next_block", "next_group", "rooms", "room",
)  # fmt: skip
"""`total` output tiles, `down` by `across` per picture; `block` of them and `group` panels make a work tile, of which
there are `blocks` by `groups`. The next block comes after `next_block` work tiles, the next group after `next_group`.
`rooms` is memory of `room` bytes for each thread.
"""

RATES = ("dilation_h", "dilation_w")
"""The additional slots of kernels with dilated windows."""


@frozen(eq=False)
class TilePosition:
    """An output tile: its number in the block, its picture, and its first row and column."""

    number: Val
    image: Val
    y: Val
    x: Val


def rates(task: Task, dilated: bool) -> tuple[Val | int, Val | int]:
    """The distances between pixels of a window, and between outputs of a tile: along columns, and along rows."""
    return (task.i64(RATES[0]), task.i64(RATES[1])) if dilated else (1, 1)


def block_of(task: Task, t: Val) -> tuple[Val, Val]:
    """The first output tile of a work tile, and its first panel."""
    block = t // task.i64("next_block") % task.i64("blocks")
    group = t // task.i64("next_group") % task.i64("groups")
    return block * task.i64("block"), group * task.i64("group")


@contextmanager
def each_tile(k: Kernel, task: Task, first: Val, count: Val, tile: Sizes, dilated: bool) -> Iterator[TilePosition]:
    """Loop over the tiles of a block, `down` by `across` of them per picture."""
    (high, wide), across, down = tile, task.i64("across"), task.i64("down")
    rows, columns = rates(task, dilated)
    line = first // across
    column, row, image = k.var(first % across), k.var(line % down), k.var(line // down)

    def start(number: Val, size: int, rate: Val | int) -> Val:
        return number * size if isinstance(rate, int) else number // rate * rate * size + number % rate

    with k.loop(count, nonempty=True) as i:
        yield TilePosition(i, image.get(), start(row.get(), high, rows), start(column.get(), wide, columns))
        right = column.get() + 1
        wraps = right >= across
        below = wraps.select(row.get() + 1, row.get())
        ends = below >= down
        column.set(wraps.select(k.index(0), right))
        row.set(ends.select(k.index(0), below))
        image.set(ends.select(image.get() + 1, image.get()))


def rows_from(matrix: View, first: Val, count: int) -> list[View]:
    """`count` rows of a matrix starting at `first`."""
    rows = [matrix[first]]
    for _ in range(count - 1):
        rows.append(rows[-1].after(matrix.strides[0]))
    return rows

"""Register tiles: how a matrix of results is cut into work tiles, row blocks and panels of columns."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from onert_llvm.abi import Task
from onert_llvm.build import I8, Kernel, Val, View
from onert_llvm.target import Isa


@frozen
class Columns:
    """Panels of `vectors` registers, then a last panel of `tail` registers (0: there is none).

    `masked` says that the columns end inside the last register of the tail. `vectors` is 0 where the tail is all there
    is.
    """

    vectors: int
    tail: int = 0
    masked: bool = False

    @property
    def widest(self) -> int:
        """Registers of a panel as it is packed; the tail is packed to its own width."""
        return self.vectors or self.tail


@frozen
class Tile:
    """`mr` rows by a panel of columns.

    With few rows, `split` sums over k are kept apart to hide the latency of adding.
    """

    mr: int
    columns: Columns
    split: int = 1


def columns(n: int, widest: int, isa: Isa) -> Columns:
    """The cut of `n` columns into panels of at most `widest` registers."""
    lanes = isa.f32
    full, rest = divmod(n, widest * lanes)
    return Columns(widest if full else 0, -(-rest // lanes), rest % lanes != 0)


SLOTS = ("m", "n", "mc", "panels", "panel_bytes")
"""What the cut needs of a task:

rows, columns, rows in a work tile, panels, and bytes from one packed panel to the next.
"""


@frozen(eq=False)
class Block:
    """One tile whose code is being written: its rows, the first of its columns, and its part of the packed operand.

    Rows beyond the last are the last row again; what they give is stored to spare memory. `width` is the panel's number
    of columns, which for a tail need not fill its registers.
    """

    k: Kernel
    rows: tuple[Val, ...]
    inside: tuple[Val, ...]
    column: Val
    vectors: int
    mask: Val | None
    panel: Val
    spare: View
    width: Val | int

    def own(self, vector: int) -> Val | None:
        """The mask of one of the tile's registers, None where all of its lanes are columns."""
        return self.mask if vector == self.vectors - 1 else None

    def at(self, vector: int) -> Val:
        """The first column of one of the tile's registers."""
        return self.column + vector * self.k.isa.f32

    def place(self, matrix: View, row: int) -> View:
        """Where row number `row` of the tile begins in a matrix of results: at the tile's first column."""
        here = matrix[self.rows[row], self.column]
        chosen = self.inside[row].select(here.address, self.spare.address) if row else here.address
        return View(self.k.b, chosen.v, matrix.element, (1,))


def each_block(k: Kernel, task: Task, begin: Val, end: Val, tile: Tile, body: Callable[[Block], None]) -> None:
    """Write the loops around `body`: work tile t is the group of `mc` rows t // panels by the panel t % panels."""
    panels = task.i64("panels")
    spare = k.view(k.scratch(I8, tile.columns.widest * k.isa.vector_bytes), I8, 1)
    with k.loop(end, begin) as t:
        panel = t % panels
        first = (t // panels) * task.i64("mc")
        last = (first + task.i64("mc")).min(task.i64("m"))
        main, tail = tile.columns.vectors, tile.columns.tail
        if main and tail:
            with k.either((panel + 1).eq(panels)) as (then, otherwise):
                with then:
                    _row_blocks(k, task, tile, (first, last), panel, tail, tile.columns.masked, spare, body)
                with otherwise:
                    _row_blocks(k, task, tile, (first, last), panel, main, False, spare, body)
        else:
            _row_blocks(
                k, task, tile, (first, last), panel, main or tail, tile.columns.masked and not main, spare, body
            )


def _row_blocks(
    k: Kernel,
    task: Task,
    tile: Tile,
    span: tuple[Val, Val],
    panel: Val,
    vectors: int,
    masked: bool,
    spare: View,
    body: Callable[[Block], None],
) -> None:
    first, last = span
    lanes = k.isa.f32
    column = panel * (tile.columns.widest * lanes)
    address = task.view("b", I8, task.i64("panel_bytes"))[panel].address
    width = task.i64("n") - column if masked else vectors * lanes
    mask = k.mask(lanes, width - (vectors - 1) * lanes) if isinstance(width, Val) else None
    with k.loop(last, first, step=tile.mr, nonempty=True) as m:
        rows, inside = [m], [m < last]
        for i in range(1, tile.mr):
            inside.append(m + i < last)
            rows.append(inside[-1].select(m + i, rows[-1]))
        body(Block(k, tuple(rows), tuple(inside), column, vectors, mask, address, spare, width))

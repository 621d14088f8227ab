"""How kernels for Winograd's minimal filtering go through the output tiles of their pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from attrs import frozen

from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import I8, Kernel, Type, Val, View
from onert_llvm.kernels.contraction.float_microkernel import Accumulators, accumulators
from onert_llvm.kernels.contraction.register_tile import LINE, Panel, Tile, each_panel, spill_loop

from .form import Form

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


@frozen(eq=False)
class Tiles:
    """The output tiles of a task by a form, which are multiplied by panels in register tiles."""

    k: Kernel
    task: Task
    form: Form
    tile: Tile

    @property
    def rates(self) -> tuple[Val | int, Val | int]:
        """The distances between pixels of a window, and between outputs of a tile: along columns, and along rows."""
        return (self.task.i64(RATES[0]), self.task.i64(RATES[1])) if self.form.dilated else (1, 1)

    def each_block(
        self,
        begin: Val,
        end: Val,
        transform: Callable[[TilePosition], None],
        multiply: Callable[[Panel, Val], None],
        back: Callable[[Panel, TilePosition], None],
    ) -> None:
        """`transform` the input of a block's tiles; for each panel, `multiply` so many tiles and transform them `back`.

        Work tiles are blocks of tiles by groups of panels. A last block with fewer tiles than the register tile has
        rows overlaps the previous one.
        """
        k, task = self.k, self.task
        with k.loop(end, begin) as t:
            rest, block = task.i64("total"), t // task.i64("next_block") % task.i64("blocks")
            group = t // task.i64("next_group") % task.i64("groups")
            start, group = block * task.i64("block"), group * task.i64("group")
            first = start.min(rest - self.tile.mr)
            count = (rest - first).min(task.i64("block"))
            with self._each(first, count) as at:
                transform(at)
            with k.loop((group + task.i64("group")).min(task.i64("panels")), group, nonempty=True) as number:

                def columns(panel: Panel) -> None:
                    multiply(panel, count)
                    with self._each(first, count) as at:
                        back(panel, at)

                each_panel(k, task, self.tile, number, columns)

    @contextmanager
    def _each(self, first: Val, count: Val) -> Iterator[TilePosition]:
        """Loop over the tiles of a block, `down` by `across` of them per picture."""
        k, across, down = self.k, self.task.i64("across"), self.task.i64("down")
        (high, wide), (rows, columns) = self.form.tile, self.rates
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

    def pixels(self, at: TilePosition, element: Type, part: int = 0) -> list[list[View]]:
        """The pixels that a part of the window sees in a tile, row by row; outside of the picture, the pixel `zero`."""
        k, task, form = self.k, self.task, self.form
        source, zero = task.view("input", element, 1), task.ptr("zero")
        start = at.image * task.i64("image")
        found = []
        rows, columns = self.rates
        (high, wide), (down, right), (under, beside) = form.input_tile, form.first(part), form.apart
        left = at.x * form.strides[1] - task.i64("pad_w") + columns * right
        across = [(left + columns * (j * beside)).ult(task.i64("in_w")) for j in range(wide)]
        for i in range(high):
            y = at.y * form.strides[0] - task.i64("pad_h") + rows * (down + i * under)
            seen = y.ult(task.i64("in_h"))
            pixel = source[start + y * task.i64("row") + left * task.i64("pixel")]
            row = []
            for inside in across:
                row.append(k.view((seen & inside).select(pixel.address, zero), element, 1))
                pixel = pixel.after(task.i64("pixel") * columns * beside)
            found.append(row)
        return found

    def products(
        self,
        panel: Panel,
        count: Val,
        terms: View,
        sums: View,
        width: Val,
        depth: Val,
        multiply: Callable[[Accumulators, Sequence[View], View, Callable[[Val], None]], None],
        ahead: int = 1,
    ) -> None:
        """Multiply `count` tiles with a panel, place by place: `sums[tiles, places, columns]`.

        `terms` are `[tiles, places, width]`; a place has `depth` steps. `multiply(accumulators, rows, weights, fetch)`
        calls `fetch` at each step, which prefetches a line of the weights of the next place, or of more places `ahead`,
        these into the second-level cache first.
        """
        k, form, lanes, mr = self.k, self.form, self.k.isa.f32, self.tile.mr
        weights = k.view(panel.address, sums.element, depth * panel.width, panel.width, 1)
        with k.loop(form.places) as place:
            own = weights[form.weight(k, place)]
            following = [k.view(weights[form.weight(k, place + i)].address, I8, LINE) for i in range(1, 1 + ahead)]
            left = k.view(terms[0, place * width].address, terms.element, *terms.strides)
            right = k.view(sums[0, place * (self.tile.columns.widest * lanes)].address, sums.element, *sums.strides)
            with k.loop(count, step=mr, nonempty=True) as step:
                first = step.min(count - mr)
                rows, out = _rows_from(left, first, mr), _rows_from(right, first, mr)
                done = step // mr * depth

                def fetch(p: Val, done: Val = done) -> None:
                    for i, lines in enumerate(following):
                        k.prefetch(lines[done + p], soon=i == 0)

                acc = accumulators(k, [k.zeros(sums.element, lanes)] * panel.vectors, mr)
                multiply(acc, rows, own, fetch)
                for row, values in zip(out, acc, strict=True):
                    for j, value in enumerate(values):
                        row[j * lanes].store(value.get())

    def outputs(
        self, at: TilePosition, values: Sequence[Val], unrolled: bool, write: Callable[[Val, Val], None]
    ) -> None:
        """`write(pixel, value)` for each output of a tile inside of the picture, `unrolled` or in a loop."""
        k, task, wide, (rows, columns) = self.k, self.task, self.form.tile[1], self.rates

        def one(number: Val | int, value: Val) -> None:
            y, x = at.y + rows * (number // wide), at.x + columns * (number % wide)
            with k.when((y < task.i64("out_h")) & (x < task.i64("out_w"))):
                write((at.image * task.i64("out_h") + y) * task.i64("out_w") + x, value)

        if unrolled:
            for number, value in enumerate(values):
                one(number, value)
            return
        with spill_loop(k, [[value] for value in values]) as (which, (found,)):
            one(which, found)


def _rows_from(matrix: View, first: Val, count: int) -> list[View]:
    """`count` rows of a matrix starting at `first`."""
    rows = [matrix[first]]
    for _ in range(count - 1):
        rows.append(rows[-1].after(matrix.strides[0]))
    return rows

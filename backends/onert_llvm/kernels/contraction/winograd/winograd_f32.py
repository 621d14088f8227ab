"""Convolutions in float32 by Winograd's minimal filtering.

Tiles of the picture are transformed, multiplied by the transformed weights place by place, and the results transformed
back: a block of tiles at a time, which stays in the second-level cache.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from math import prod

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, I8, I16, Kernel, Val, Var, View
from onert_llvm.kernels.arithmetic.expression import is_cheap
from onert_llvm.kernels.contraction.bfloat.terms import Terms, one_of, rounded
from onert_llvm.kernels.contraction.epilogue import PLAIN, RESIDUAL, Epilogue, row_windows
from onert_llvm.kernels.contraction.float_microkernel import accumulators, multiply_add
from onert_llvm.kernels.contraction.register_tile import LINE, Panel, Tile, each_panel, each_register, spill_loop

from .form import Form, transform
from .tile_positions import RATES, SLOTS, TilePosition, block_of, each_tile, rates, rows_from

_APART = LINE // 4
"""Padding in elements between the transforms of consecutive tiles, so that they do not map to the same cache set."""


def room(form: Form, tile: Tile, block: int, steps: int, lanes: int) -> int:
    """Bytes for a block of tiles, whose sums have `steps` terms or pairs of terms."""
    width = tile.columns.widest * lanes
    return 4 * block * (form.places * (steps + width) + 2 * _APART)


@frozen
class WinogradF32(Value):
    """A convolution with the form's stride, with at least a register of channels and of columns.

    Weights are packed by `PackWinograd`. Work tiles are blocks of tiles by groups of panels (`block_of`); a last block
    with fewer tiles than the register tile has rows overlaps the previous one. Non-finite values affect only results
    whose window contains them: others that they have spoilt are recomputed. If `terms` are pairs of bfloat16,
    transforms are rounded and their sums are not.
    """

    form: Form
    tile: Tile
    epilogue: Epilogue = PLAIN
    terms: Terms = Terms.FLOAT

    @property
    def slots(self) -> tuple[str, ...]:
        return (*SLOTS, *(RATES if self.form.dilated else ()), *self.epilogue.slots)

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        place = task.own("rooms", "room")
        width = self.tile.columns.widest * k.isa.f32
        terms = k.view(place, F32, self._steps(task) * self.form.places + _APART, 1)
        sums = k.view(terms[task.i64("block")].address, F32, width * self.form.places + _APART, 1)
        with k.loop(end, begin) as t:
            rest, (start, group) = task.i64("total"), block_of(task, t)
            first = start.min(rest - self.tile.mr)
            count = (rest - first).min(task.i64("block"))
            with self._each(k, task, first, count) as at:
                self._transform_input(k, task, at, terms[at.number])
            with k.loop((group + task.i64("group")).min(task.i64("panels")), group, nonempty=True) as number:

                def columns(panel: Panel) -> None:
                    self._products(k, task, panel, count, terms, sums)
                    with self._each(k, task, first, count) as at:
                        self._transform_output(k, task, panel, at, sums[at.number])

                each_panel(k, task, self.tile, number, columns)

    def _steps(self, task: Task) -> Val:
        """Terms of a sum: channels of all parts of a window, or pairs of them."""
        steps = task.i64("k") * prod(self.form.parts)
        return steps if self.terms is Terms.FLOAT else steps // 2

    def _each(self, k: Kernel, task: Task, first: Val, count: Val) -> AbstractContextManager[TilePosition]:
        """Loop over the tiles of a block."""
        return each_tile(k, task, first, count, self.form.tile, self.form.dilated)

    def _pixels(self, k: Kernel, task: Task, at: TilePosition, part: int) -> list[list[View]]:
        """The pixels that a part of the window sees in a tile, row by row; outside of the picture, the row of zeros."""
        source, zero = task.view("input", F32, 1), task.ptr("zero")
        start = at.image * task.i64("image")
        found = []
        form, (rows, columns) = self.form, rates(task, self.form.dilated)
        (high, wide), (down, right), (under, beside) = form.input_tile, form.first(part), form.apart
        left = at.x * form.strides[1] - task.i64("pad_w") + columns * right
        across = [(left + columns * (j * beside)).ult(task.i64("in_w")) for j in range(wide)]
        for i in range(high):
            y = at.y * form.strides[0] - task.i64("pad_h") + rows * (down + i * under)
            seen = y.ult(task.i64("in_h"))
            pixel = source[start + y * task.i64("row") + left * task.i64("pixel")]
            row = []
            for inside in across:
                row.append(k.view((seen & inside).select(pixel.address, zero), F32, 1))
                pixel = pixel.after(task.i64("pixel") * columns * beside)
            found.append(row)
        return found

    def _transform_input(self, k: Kernel, task: Task, at: TilePosition, terms: View) -> None:
        """Transform a tile's input to `[places, parts, channels]`. The last register of channels may overlap."""
        lanes, (high, wide), (down, across) = k.isa.f32, self.form.input_tile, self.form.input_transforms
        channels, paired = task.i64("k"), self.terms is Terms.PAIRED
        target = k.view(terms.address, I16 if paired else F32, channels * prod(self.form.parts), channels, 1)
        for number in range(prod(self.form.parts)):
            pixels = self._pixels(k, task, at, number)
            with k.loop(channels, step=lanes, nonempty=True) as channel:
                here = channel.min(channels - lanes)
                loaded = ([pixels[i][j][here].load(lanes) for i in range(high)] for j in range(wide))
                found = [transform(k, down, column) for column in loaded]
                own = target[0, number, here]
                for i in range(high):
                    for value in transform(k, across, [column[i] for column in found]):
                        own.store(rounded(k, value) if paired else value)
                        own = own.after(target.strides[0])

    def _products(self, k: Kernel, task: Task, panel: Panel, count: Val, terms: View, sums: View) -> None:
        """Multiply with a panel, place by place: `[tiles, places, width]`.

        Every step along k prefetches a line of the next place's weights.
        """
        lanes, mr, depth = k.isa.f32, self.tile.mr, self._steps(task)
        width = self.tile.columns.widest * lanes
        weights = k.view(panel.address, F32, depth * panel.width, panel.width, 1)
        with k.loop(self.form.places) as place:
            own = weights[self.form.weight(k, place)]
            following = k.view(weights[self.form.weight(k, place + 1)].address, I8, LINE)
            left = k.view(terms[0, place * depth].address, F32, *terms.strides)
            right = k.view(sums[0, place * width].address, F32, *sums.strides)
            with k.loop(count, step=mr, nonempty=True) as step:
                first = step.min(count - mr)
                rows, out = rows_from(left, first, mr), rows_from(right, first, mr)
                done = step // mr * depth
                acc = accumulators(k, [k.zeros(F32, lanes)] * panel.vectors, mr)
                multiply_add(
                    k, acc, rows, own, depth, at_step=lambda p: k.prefetch(following[done + p]), terms=self.terms
                )
                for row, values in zip(out, acc, strict=True):
                    for j, value in enumerate(values):
                        row[j * lanes].store(value.get())

    def _transform_output(self, k: Kernel, task: Task, panel: Panel, at: TilePosition, sums: View) -> None:
        """Compute the outputs of a tile in the columns of a panel."""
        lanes = k.isa.f32

        def register(j: Val, mask: Val | None) -> None:
            values = self._outputs(k, k.view(sums[j * lanes].address, F32, 1))
            self._recompute_nonfinite(k, task, panel, at, j, values)
            column = panel.column + j * lanes
            start = self.epilogue.start(k, task, column, lanes, mask)
            self._store(k, task, at, column, mask, [value.get() + start for value in values])

        each_register(k, self.tile.columns, panel, register)

    def _outputs(self, k: Kernel, sums: View) -> list[Var]:
        """The sums of a tile in one register of columns, transformed back."""
        lanes, (high, wide), (down, across) = k.isa.f32, self.form.input_tile, self.form.output_transforms
        width = self.tile.columns.widest * lanes
        columns = []
        for j in range(wide):
            own = [sums[(i * wide + j) * width].load(lanes) for i in range(high)]
            columns.append(transform(k, down, own))
        rows = ([c[i] for c in columns] for i in range(self.form.tile[0]))
        return [k.var(value) for row in rows for value in transform(k, across, row)]

    def _recompute_nonfinite(
        self, k: Kernel, task: Task, panel: Panel, at: TilePosition, j: Val, values: list[Var]
    ) -> None:
        """Recompute non-finite sums term by term, with windows recovered from their transforms."""
        lanes, form, (high, wide), (tall, broad) = k.isa.f32, self.form, self.form.tile, self.form.part
        rows, columns = rates(task, self.form.dilated)
        total = values[0].get()
        for value in values[1:]:
            total = total + value.get()
        with k.when((total - total).unordered(total).any()):
            windows = k.view(k.scratch(F32, tall * broad * lanes), F32, broad * lanes, lanes, 1)
            found = k.view(k.scratch(F32, high * wide * lanes), F32, wide * lanes, lanes, 1)
            for i in range(high * wide):
                found[0, i].store(k.zeros(F32, lanes))
            weights = k.view(panel.address, F32, panel.width, 1)
            source = task.view("input", F32, task.i64("image"), task.i64("row"), task.i64("pixel"), 1)
            with k.loop(prod(form.parts)) as part, k.loop(task.i64("k")) as channel:
                term = part * task.i64("k") + channel
                own = weights[term if self.terms is Terms.FLOAT else term // 2]
                apart = self._steps(task) * panel.width
                self._window(k, k.view(own.address, F32, 1)[j * lanes], apart, channel, windows)
                with k.loop(high) as oy, k.loop(wide) as ox, k.loop(tall) as down, k.loop(broad) as right:
                    ky, kx = (
                        n + i * apart for n, i, apart in zip(form.first(part), (down, right), form.apart, strict=True)
                    )
                    y = (at.y + oy * rows) * form.strides[0] - task.i64("pad_h") + ky * rows
                    x = (at.x + ox * columns) * form.strides[1] - task.i64("pad_w") + kx * columns
                    weighed = (ky < form.window[0]) & (kx < form.window[1])
                    with k.when(weighed & y.ult(task.i64("in_h")) & x.ult(task.i64("in_w"))):
                        pixel = source[at.image, y, x, channel].load().splat(lanes)
                        weight = windows[down, right].load(lanes)
                        found[oy, ox].store(k.fma(pixel, weight, found[oy, ox].load(lanes)))
            for i, value in enumerate(values):
                value.set(found[0, i].load(lanes))

    def _window(self, k: Kernel, weights: View, apart: Val, channel: Val, windows: View) -> None:
        """Recover the windows of a register of columns from their transforms."""
        lanes, (high, wide), (down, across) = k.isa.f32, self.form.weight_tile, self.form.inverse_weight_transforms
        place, loaded = weights, []
        for _ in range(high * wide):
            found = place.load(lanes)
            loaded.append(found if self.terms is Terms.FLOAT else one_of(found, channel))
            place = place.after(apart)
        columns = [transform(k, down, [loaded[i * wide + j] for i in range(high)]) for j in range(wide)]
        for i in range(self.form.part[0]):
            for j, value in enumerate(transform(k, across, [c[i] for c in columns])):
                windows[i, j].store(value)

    def _store(self, k: Kernel, task: Task, at: TilePosition, column: Val, mask: Val | None, values: list[Val]) -> None:
        """Apply the epilogue to the outputs and store those inside of the picture."""
        wide, lanes, epilogue = self.form.tile[1], k.isa.f32, self.epilogue
        given, (rows, columns) = epilogue.given(task, lanes), rates(task, self.form.dilated)
        c = task.view("c", F32, task.i64("ldc"), 1)
        matrices = row_windows(k, task, epilogue.matrices)

        def write(i: Val | int, j: Val | int, value: Val) -> None:
            y, x = at.y + rows * i, at.x + columns * j
            with k.when((y < task.i64("out_h")) & (x < task.i64("out_w"))):
                pixel = (at.image * task.i64("out_h") + y) * task.i64("out_w") + x
                total = k.var(value)
                if epilogue.residual:
                    with k.when(task.i64(RESIDUAL).ne(0)):
                        (matrix,) = row_windows(k, task, (RESIDUAL,)).values()
                        total.set(matrix[pixel, column].load(lanes, mask) + total.get())
                others = {n: k.view(m[pixel, column].address, F32) for n, m in matrices.items()}
                out = epilogue.apply(k, task, total.get(), column, others, mask, given)
                c[pixel, column].store(out, mask)

        if is_cheap(epilogue.tree):
            for i, value in enumerate(values):
                write(*divmod(i, wide), value)
            return
        with spill_loop(k, [[value] for value in values]) as (number, (found,)):
            write(number // wide, number % wide, found)

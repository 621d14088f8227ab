"""Convolutions in float32 by Winograd's minimal filtering.

Tiles of the picture are transformed, multiplied by the transformed weights place by place, and the results transformed
back: a block of tiles at a time, which stays in the second-level cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, I16, Kernel, Val, Var, View
from onert_llvm.kernels.contraction.bfloat.terms import Terms, one_of, rounded
from onert_llvm.kernels.contraction.epilogue import PLAIN, RESIDUAL, Epilogue, row_windows
from onert_llvm.kernels.contraction.float_microkernel import Accumulators, multiply_add
from onert_llvm.kernels.contraction.register_tile import LINE, Panel, Tile, each_register

from .form import Form, transform
from .tiles import RATES, SLOTS, TilePosition, Tiles

_APART = LINE // 4
"""Padding in elements between the transforms of consecutive tiles, so that they do not map to the same cache set."""


def room(form: Form, tile: Tile, block: int, steps: int, lanes: int) -> int:
    """Bytes for a block of tiles, whose sums have `steps` terms or pairs of terms."""
    width = tile.columns.widest * lanes
    return 4 * block * (form.places * (steps + width) + 2 * _APART)


@frozen
class WinogradF32(Value):
    """A convolution with the form's stride, with at least a register of channels and of columns.

    Weights are packed by `PackWinograd`. Non-finite values affect only results whose window contains them: others that
    they have spoilt are recomputed. If `terms` are pairs of bfloat16, transforms are rounded and their sums are not.
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
        tiles = Tiles(k, task, self.form, self.tile)
        tiles.each_block(
            begin,
            end,
            lambda at: self._transform_input(tiles, at, terms[at.number]),
            lambda panel, count: self._products(tiles, panel, count, terms, sums),
            lambda panel, at: self._transform_output(tiles, panel, at, sums[at.number]),
        )

    def _steps(self, task: Task) -> Val:
        """Terms of a sum: channels of all parts of a window, or pairs of them."""
        steps = task.i64("k") * prod(self.form.parts)
        return steps if self.terms is Terms.FLOAT else steps // 2

    def _transform_input(self, tiles: Tiles, at: TilePosition, terms: View) -> None:
        """Transform a tile's input to `[places, parts, channels]`. The last register of channels may overlap."""
        k, task = tiles.k, tiles.task
        lanes, (high, wide), (down, across) = k.isa.f32, self.form.input_tile, self.form.input_transforms
        channels, paired = task.i64("k"), self.terms is Terms.PAIRED
        target = k.view(terms.address, I16 if paired else F32, channels * prod(self.form.parts), channels, 1)
        for number in range(prod(self.form.parts)):
            pixels = tiles.pixels(at, F32, number)
            with k.loop(channels, step=lanes, nonempty=True) as channel:
                here = channel.min(channels - lanes)
                loaded = ([pixels[i][j][here].load(lanes) for i in range(high)] for j in range(wide))
                found = [transform(k, down, column) for column in loaded]
                own = target[0, number, here]
                for i in range(high):
                    for value in transform(k, across, [column[i] for column in found]):
                        own.store(rounded(k, value) if paired else value)
                        own = own.after(target.strides[0])

    def _products(self, tiles: Tiles, panel: Panel, count: Val, terms: View, sums: View) -> None:
        k, depth = tiles.k, self._steps(tiles.task)

        def multiply(acc: Accumulators, rows: Sequence[View], weights: View, fetch: Callable[[Val], None]) -> None:
            multiply_add(k, acc, rows, weights, depth, at_step=fetch, terms=self.terms)

        tiles.products(panel, count, terms, sums, depth, depth, multiply)

    def _transform_output(self, tiles: Tiles, panel: Panel, at: TilePosition, sums: View) -> None:
        """Compute the outputs of a tile in the columns of a panel."""
        k, task, lanes = tiles.k, tiles.task, tiles.k.isa.f32

        def register(j: Val, mask: Val | None) -> None:
            values = self._outputs(k, k.view(sums[j * lanes].address, F32, 1))
            self._recompute_nonfinite(tiles, panel, at, j, values)
            column = panel.column + j * lanes
            start = self.epilogue.start(k, task, column, lanes, mask)
            self._store(tiles, at, column, mask, [value.get() + start for value in values])

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

    def _recompute_nonfinite(self, tiles: Tiles, panel: Panel, at: TilePosition, j: Val, values: list[Var]) -> None:
        """Recompute non-finite sums term by term, with windows recovered from their transforms."""
        k, task = tiles.k, tiles.task
        lanes, form, (high, wide), (tall, broad) = k.isa.f32, self.form, self.form.tile, self.form.part
        rows, columns = tiles.rates
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

    def _store(self, tiles: Tiles, at: TilePosition, column: Val, mask: Val | None, values: list[Val]) -> None:
        """Apply the epilogue to the outputs and store those inside of the picture."""
        k, task, lanes, epilogue = tiles.k, tiles.task, tiles.k.isa.f32, self.epilogue
        given, c = epilogue.given(task, lanes), task.view("c", F32, task.i64("ldc"), 1)
        matrices = row_windows(k, task, epilogue.matrices)

        def write(pixel: Val, value: Val) -> None:
            total = k.var(value)
            if epilogue.residual:
                with k.when(task.i64(RESIDUAL).ne(0)):
                    (matrix,) = row_windows(k, task, (RESIDUAL,)).values()
                    total.set(matrix[pixel, column].load(lanes, mask) + total.get())
            others = {n: k.view(m[pixel, column].address, F32) for n, m in matrices.items()}
            out = epilogue.apply(k, task, total.get(), column, others, mask, given)
            c[pixel, column].store(out, mask)

        tiles.outputs(at, values, epilogue.is_cheap, write)

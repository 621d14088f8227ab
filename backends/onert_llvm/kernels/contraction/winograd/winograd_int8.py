"""Exact convolutions of bytes with 3 by 3 windows by Winograd's minimal filtering.

F(4x4, 3x3) through the points 0, 1, -1, 2, -2 and infinity takes 36 products per channel instead of 144. The picture's
transform is integer and fits 16 bits. So does the weights' when each row of its matrix is multiplied by the common
denominator of its fractions; sums are then scaled by a power of two times three along each axis. All sums are modulo
2**32, where dividing by nine is a multiplication. After a right shift by at most 6 bits the result is right as long as
the true sum has 26 bits (`schedule.winograd_int8.fits`).

An instruction multiplies half as many 16-bit pairs as bytes, so the cost of products is halved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, I8, I16, I32, Kernel, Val, View
from onert_llvm.kernels.arithmetic import bytes_of_four
from onert_llvm.kernels.arithmetic.requantize_int8 import Requantize, as_byte, bounded
from onert_llvm.kernels.contraction.dynamic_quantization import Dynamic
from onert_llvm.kernels.contraction.epilogue import row_windows
from onert_llvm.kernels.contraction.extremes import Extremes
from onert_llvm.kernels.contraction.float_microkernel import Accumulators
from onert_llvm.kernels.contraction.int8_microkernel import dot_pairs, offset
from onert_llvm.kernels.contraction.register_tile import LINE, Panel, Tile, each_register

from .form import Form
from .tiles import RATES, SLOTS, TilePosition, Tiles

OUTPUTS, POINTS = 4, 6
"""Along an axis of a tile: outputs, and pixels that it sees."""
PLACES = POINTS**2
WEIGHTS = ((6, 0, 0), (-1, -1, -1), (-1, 1, -1), (1, 2, 4), (1, -2, 4), (0, 0, 6))
"""The weight transform: the rows of the form's matrix times 24, 6, 6, 24, 24 and 6."""
MOST_BITS = 26
"""The most bits of sums without their bias, including the sign."""
_SHIFTS = (3, 2, 1, 1)
"""The outputs along an axis are scaled by three times 2 to this power."""
_NINTH = pow(9, -1, 1 << 32) - (1 << 32)


def room(tile: Tile, block: int, channels: int, n: int, lanes: int) -> int:
    """Bytes for a block of tiles: transformed inputs, sums, and a row for results outside of the picture."""
    width = tile.columns.widest * lanes
    aside = -(-n // LINE) * LINE
    return block * (PLACES * (2 * channels + 4 * width) + 2 * LINE) + aside


_Write = Callable[[Val, Val | None, Sequence[Val]], None]
"""Emits the stores of a tile's outputs in the register of columns at a column, under a mask."""


@frozen
class WinogradInt8(Value):
    """A convolution of stride 1 with an even number of channels, at least half a register.

    `wide`: channels fill a whole register of 16 bits. Results are bytes, or floats if the operands were quantised
    dynamically (`Dynamic`). If windows are `dilated`, pixels and outputs of a tile are a dilation apart. Weights are
    packed by `pack_winograd_int8`; `zero` is a pixel outside of the picture. Weights from `far` are prefetched two
    places ahead.
    """

    tile: Tile
    how: Requantize | Dynamic
    signed: bool
    wide: bool
    dilated: bool = False
    far: bool = False

    name = "winograd_int8"

    @property
    def slots(self) -> tuple[str, ...]:
        return (*SLOTS, *(RATES if self.dilated else ()), *self.how.slots)

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        own = task.own("rooms", "room")
        width, block = self.tile.columns.widest * k.isa.f32, task.i64("block")
        terms = k.view(own, I16, task.i64("k") * PLACES + LINE // 2, 1)
        sums = k.view(terms[block].address, I32, width * PLACES + LINE // 4, 1)
        aside, seen = sums[block].address, self.how.observer(k) if isinstance(self.how, Dynamic) else None
        tiles = Tiles(k, task, Form(OUTPUTS, dilated=self.dilated), self.tile)
        tiles.each_block(
            begin,
            end,
            lambda at: self._transform_input(tiles, at, terms[at.number]),
            lambda panel, count: self._products(tiles, panel, count, terms, sums),
            lambda panel, at: self._transform_output(tiles, panel, at, sums[at.number], aside, seen),
        )
        if seen is not None:
            seen.write(k, task, begin, end)

    def _transform_input(self, tiles: Tiles, at: TilePosition, terms: View) -> None:
        """Transform a tile's input to `[places, channels]`. The last register of channels may overlap others."""
        k, task = tiles.k, tiles.task
        lanes, size = k.isa.f32 * (2 if self.wide else 1), range(POINTS)
        pixels = tiles.pixels(at, I8)
        with k.loop(task.i64("k"), step=lanes, nonempty=True) as channel:
            here = channel.min(task.i64("k") - lanes)
            columns = []
            for j in size:
                bytes_ = [pixels[i][j][here].load(lanes) for i in size]
                columns.append(_input_transform([x.cast(I16, signed=self.signed) for x in bytes_]))
            target = k.view(terms.address, I16, 1)[here]
            for i in size:
                for j, value in enumerate(_input_transform([columns[j][i] for j in size])):
                    # An offset of all pixels affects one place only.
                    moved = 36 * offset(k.isa, self.signed) if i == j == 1 else 0
                    target.store(value + moved if moved else value)
                    target = target.after(task.i64("k"))

    def _products(self, tiles: Tiles, panel: Panel, count: Val, terms: View, sums: View) -> None:
        k, channels, lanes = tiles.k, tiles.task.i64("k"), tiles.k.isa.f32
        pairs = channels // 2

        def multiply(acc: Accumulators, rows: Sequence[View], weights: View, fetch: Callable[[Val], None]) -> None:
            with k.loop(pairs, nonempty=True) as p:
                fetch(p)
                b = [weights[p, j * lanes].load(lanes) for j in range(panel.vectors)]
                for row, values in zip(rows, acc, strict=True):
                    a = k.view(row[p * 2].address, I32, 1).load(align=4).splat(lanes)
                    for x, total in zip(b, values, strict=True):
                        total.set(dot_pairs(k, total.get(), a, x))

        tiles.products(panel, count, terms, sums, channels, pairs, multiply, ahead=2 if self.far else 1)

    def _transform_output(
        self, tiles: Tiles, panel: Panel, at: TilePosition, sums: View, aside: Val, seen: Extremes | None
    ) -> None:
        """Compute the outputs of a tile in the columns of a panel."""
        k, lanes, how = tiles.k, tiles.k.isa.f32, self.how
        write = self._floats(tiles, at, how, seen) if isinstance(how, Dynamic) else self._bytes(tiles, at, how, aside)

        def register(j: Val, mask: Val | None) -> None:
            write(panel.column + j * lanes, mask, self._outputs(k, k.view(sums[j * lanes].address, I32, 1)))

        each_register(k, self.tile.columns, panel, register)

    def _bytes(self, tiles: Tiles, at: TilePosition, how: Requantize, aside: Val) -> _Write:
        """Store results as bytes; those outside of the picture go `aside`."""
        k, task, (rows, columns) = tiles.k, tiles.task, tiles.rates
        c = task.view("c", I8, task.i64("ldc"), 1)
        inside = [(at.x + columns * j) < task.i64("out_w") for j in range(OUTPUTS)]
        targets = []
        for i in range(OUTPUTS):
            y = at.y + rows * i
            seen = y < task.i64("out_h")
            pixel = c[(at.image * task.i64("out_h") + y) * task.i64("out_w") + at.x]
            for own in inside:
                targets.append(k.view((seen & own).select(pixel.address, aside), I8, 1))
                pixel = pixel.after(task.i64("ldc") * columns)
        final = how.table(k, task)

        def write(column: Val, mask: Val | None, values: Sequence[Val]) -> None:
            fields, start = how.lanes(k, task, column), how.bias(k, task, column)
            for first in range(0, len(targets), OUTPUTS):
                line = [how.with_zero_point(task, v + start, fields) for v in values[first : first + OUTPUTS]]
                if bytes_of_four.is_available(k):
                    bytes_ = bytes_of_four.unpacked(final(bytes_of_four.packed(k, task, how, self.signed, line)))
                else:
                    bytes_ = [final(as_byte(bounded(task, how.clamped, self.signed, value))) for value in line]
                for target, value in zip(targets[first:], bytes_, strict=False):
                    target[column].store(value, mask)

        return write

    def _floats(self, tiles: Tiles, at: TilePosition, how: Dynamic, seen: Extremes | None) -> _Write:
        """Store results as floats, except those outside of the picture."""
        k, task, epilogue = tiles.k, tiles.task, how.epilogue
        given, matrices = epilogue.given(task, k.isa.f32), row_windows(k, task, epilogue.matrices)
        c = task.view("c", F32, task.i64("ldc"), 1)

        def write(column: Val, mask: Val | None, values: Sequence[Val]) -> None:
            real, start = how.real(k, task, column, mask), how.start(k, task, column)

            def one(pixel: Val, value: Val) -> None:
                others = {n: k.view(m[pixel, column].address, F32) for n, m in matrices.items()}
                total = real(value + start, pixel)
                result = epilogue.apply(k, task, total, column, others, mask, given)
                c[pixel, column].store(result, mask)
                if seen is not None:
                    seen.see(result, mask)

            tiles.outputs(at, values, epilogue.is_cheap, one)

        return write

    def _outputs(self, k: Kernel, sums: View) -> list[Val]:
        """The sums of a tile in one register of columns, transformed back."""
        lanes, size = k.isa.f32, range(POINTS)
        width = self.tile.columns.widest * lanes
        columns = [_output_transform([sums[(i * POINTS + j) * width].load(lanes) for i in size]) for j in size]
        found = []
        for i, down in enumerate(_SHIFTS):
            for value, right in zip(_output_transform([c[i] for c in columns]), _SHIFTS, strict=True):
                found.append((value * _NINTH) >> (down + right))
        return found


def _input_transform(x: Sequence[Val]) -> list[Val]:
    """The input transform of six pixels along an axis."""
    even, odd = x[4] - (x[2] << 2), x[3] - (x[1] << 2)
    near, far = x[4] - x[2], x[3] - x[1]
    far = far + far
    return [
        even + ((x[0] << 2) - x[2]),
        even + odd,
        even - odd,
        near + far,
        near - far,
        (x[5] - (x[3] << 2)) - odd,
    ]


def _output_transform(x: Sequence[Val]) -> list[Val]:
    """The output transform of six products along an axis: four outputs, scaled by 24, 12, 6 and 6."""
    near, less = x[1] + x[2], x[1] - x[2]
    far, apart = x[3] + x[4], x[3] - x[4]
    return [
        (x[0] + (near << 2)) + far,
        (less + less) + apart,
        near + far,
        (less + (apart + apart)) + x[5],
    ]

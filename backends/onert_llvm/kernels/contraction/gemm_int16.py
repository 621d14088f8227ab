"""Matrix products of 16-bit activations with 8-bit weights, exact: fully connected layers and convolutions.

Pairs of neighbours along k are multiplied and added into 32 bits. Where all terms together could leave 32 bits the sums
move to float64 every `step` terms, which holds them exactly as long as they stay below 2**37 (`lower.short_products`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.command.task_layout import TaskLayout
from onert_llvm.irbuilder import F64, I8, I16, I32, Kernel, Val, Var, View, intrinsic, vec
from onert_llvm.kernels.arithmetic.requantize_int16 import ShortScaling
from onert_llvm.target.isa import Dot

from .float_microkernel import Accumulators, accumulators
from .im2col import Patch, gather, padding_of, room
from .implicit_im2col import SLOTS as WINDOW
from .implicit_im2col import each_tap, origins
from .int8_microkernel import MADD
from .register_tile import SLOTS, Block, Row, Tile, each_block

GROUP = 2
"""Neighbours along k that lie together for each column of a packed panel."""


@frozen
class Depth(Value):
    """Terms of a row of the product: `odd` says that their number is, `split` that sums move every `step` terms."""

    odd: bool
    split: bool

    @property
    def slots(self) -> tuple[str, ...]:
        return ("step",) if self.split else ()


@frozen
class GemmInt16(Value):
    """A product with the rows of A `lda` elements apart, those of C `ldc`; weights packed as bytes in pairs."""

    tile: Tile
    depth: Depth
    scaling: ShortScaling

    name = "gemm_int16"

    @property
    def layout(self) -> TaskLayout:
        return TaskLayout(("a", "b", "c", *SLOTS, "k", "lda", "ldc", *self.depth.slots, *self.scaling.slots))

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        def body(block: Block) -> None:
            a, depth = task.view("a", I16, task.i64("lda"), 1), task.i64("k")
            rows = block.rows(a)
            panel = _panel(k, block, block.panel)
            _finish(k, task, block, self, lambda sums: sums.add(rows, panel, depth))

        each_block(k, task, begin, end, self.tile, body)


@frozen
class ConvInt16(Value):
    """A convolution through the windows of the output's pixels; `zero` holds zeros."""

    tile: Tile
    depth: Depth
    scaling: ShortScaling

    name = "conv_int16"

    @property
    def layout(self) -> TaskLayout:
        return TaskLayout(("b", "c", *SLOTS, "k", "ldc", *WINDOW, *self.depth.slots, *self.scaling.slots))

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        def body(block: Block) -> None:
            depth = task.i64("k")
            panels = k.view(block.panel, I8, ((depth + 1) // GROUP) * (block.vectors * k.isa.f32 * GROUP))
            windows = origins(k, task, block.first, block.count)

            def add(sums: _Sums) -> None:
                with each_tap(k, task, windows, I16) as (tap, pixels):
                    sums.add(pixels, _panel(k, block, panels[tap].address), depth)

            _finish(k, task, block, self, add)

        each_block(k, task, begin, end, self.tile, body)


@frozen
class PatchConvInt16(Value):
    """A convolution of few channels, whose windows are copied together first; no dilation across."""

    tile: Tile
    patch: Patch
    depth: Depth
    scaling: ShortScaling

    name = "patch_conv_int16"

    @property
    def layout(self) -> TaskLayout:
        return TaskLayout(("b", "c", *SLOTS, "ldc", *WINDOW, *self.depth.slots, *self.scaling.slots))

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        def body(block: Block) -> None:
            pitch = self.patch.segment
            copies = gather(k, task, block, self.patch, padding_of(k, task, I16), pitch)
            rows = [copies.after(i * room(k, self.patch, pitch)) for i in range(block.count)]
            panel = _panel(k, block, block.panel)
            _finish(k, task, block, self, lambda sums: sums.add(rows, panel, k.index(self.patch.depth)))

        each_block(k, task, begin, end, self.tile, body)


def _panel(k: Kernel, block: Block, address: Val) -> View:
    """A panel's bytes by pair along k and column."""
    return k.view(address, I8, block.vectors * k.isa.f32 * GROUP, GROUP)


@frozen(eq=False)
class _Sums:
    """The sums of a tile: in 32 bits, and where they are `split` as float64 besides."""

    k: Kernel
    task: Task
    depth: Depth
    acc: Accumulators
    totals: Sequence[Sequence[Var]]

    def add(self, rows: Sequence[View], panel: View, depth: Val) -> None:
        """The products of `depth` neighbours of each row with a panel."""
        pairs = depth // GROUP
        if self.depth.split:
            step = self.task.i64("step") // GROUP
            with self.k.loop(pairs, step=step) as first:
                self._pairs(rows, panel, first, (first + step).min(pairs))
                self.move()
        else:
            self._pairs(rows, panel, self.k.index(0), pairs)
        if self.depth.odd:
            last = [row[pairs * GROUP].load().cast(I32, signed=False) for row in rows]
            self._step(last, panel, pairs)
            if self.depth.split:
                self.move()

    def _pairs(self, rows: Sequence[View], panel: View, first: Val, last: Val) -> None:
        with self.k.loop(last, first) as p:
            both = [self.k.view(row[p * GROUP].address, I32, 1).load(align=2) for row in rows]
            self._step(both, panel, p)

    def _step(self, rows: Sequence[Val], panel: View, pair: Val) -> None:
        lanes = self.k.isa.f32
        columns = [panel[pair, j * lanes].load(lanes * GROUP).cast(I16) for j in range(len(self.acc[0]))]
        for row, sums in zip(rows, self.acc, strict=True):
            spread = row.splat(lanes).bits(vec(I16, lanes * GROUP))
            for column, total in zip(columns, sums, strict=True):
                total.set(dot_pairs(self.k, total.get(), spread, column))

    def move(self) -> None:
        """What the 32 bits hold goes to the float64 sums."""
        for sums, totals in zip(self.acc, self.totals, strict=True):
            for x, total in zip(sums, totals, strict=True):
                total.set(total.get() + x.get().cast(F64))
                x.set(self.k.zeros(I32, self.k.isa.f32))


def dot_pairs(k: Kernel, acc: Val, a: Val, b: Val) -> Val:
    """Lane by lane: `acc` plus the products of two 16-bit numbers each, modulo 2**32."""
    lanes = acc.lanes
    if k.isa.dot in (Dot.VNNI, Dot.AVX_VNNI):
        return intrinsic(
            k.b, f"llvm.x86.avx512.vpdpwssd.{lanes * 32}", acc.type, acc, a.bits(acc.type), b.bits(acc.type)
        )
    if k.isa.triple.startswith("x86_64"):
        return acc + intrinsic(k.b, MADD[lanes], acc.type, a, b)
    products = a.cast(I32) * b.cast(I32)
    even, odd = range(0, 2 * lanes, 2), range(1, 2 * lanes, 2)
    return acc + products.shuffle(even) + products.shuffle(odd)


def _finish(
    k: Kernel, task: Task, block: Block, kernel: GemmInt16 | ConvInt16 | PatchConvInt16, add: Callable[[_Sums], None]
) -> None:
    """The sums of a tile, begun with the bias, scaled and stored."""
    how, columns = kernel.scaling, range(block.vectors)
    split, zero = kernel.depth.split, k.zeros(I32, k.isa.f32)
    starts = [how.bias(k, task, block.at(j)) for j in columns]
    acc = accumulators(k, [zero] * len(starts) if split else starts, block.count)
    totals = [[k.var(s.cast(F64)) for s in starts] for _ in range(block.count)] if split else []
    add(_Sums(k, task, kernel.depth, acc, totals))
    c = task.view("c", I16, task.i64("ldc"), 1)

    def column(j: int) -> Callable[[Row, Val], None]:
        lanes = how.lanes(k, task, block.at(j))
        return lambda row, total: row.place(c, j).store(how.stored(k, task, total, lanes), block.own(j))

    block.finish([[x.get() for x in row] for row in (totals if split else acc)], column, False)

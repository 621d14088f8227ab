"""Matrix products in float32: fully connected layers, 1x1 convolutions, and convolutions of any window.

`C[m, n] = epilogue(Σ A[m, k] · B[k, n])`. A is read as it lies, B is packed by `pack_f32`; where it is not `packed` its
rows lie one after the other, and a register's bytes may be read behind the last.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.command.task_layout import TaskLayout
from onert_llvm.irbuilder import F32, Kernel, Val, View

from .bfloat.terms import Terms
from .epilogue import PLAIN, Epilogue
from .exact_terms import without_absent_terms
from .float_microkernel import Accumulators, add_odd, multiply_add
from .implicit_im2col import SLOTS as WINDOW
from .implicit_im2col import each_tap, origin, origins
from .register_tile import SLOTS, Block, Tile, each_block
from .store_tile_f32 import finish


@frozen
class GemmF32(Value):
    """A product with the rows of A `lda` elements apart, those of C `ldc`.

    Where both sides are pairs of bfloat16 `k` counts these, where B alone is it counts terms.
    """

    tile: Tile
    epilogue: Epilogue = PLAIN
    packed: bool = True
    terms: Terms = Terms.FLOAT

    name = "gemm_f32"

    @property
    def layout(self) -> TaskLayout:
        return TaskLayout(("a", "b", "c", *SLOTS, *self.tile.slots, "k", "lda", "ldc", *self.epilogue.slots))

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        def product(block: Block, acc: Accumulators) -> None:
            a = task.view("a", F32, task.i64("lda"), 1)
            panel = k.view(block.panel, F32, block.width if self.packed else task.i64("n"), 1)
            rows, depth, wide = block.rows(a), task.i64("k"), self.terms is Terms.WIDENED
            steps = depth // 2 if wide else depth
            multiply_add(k, acc, rows, panel, steps, self.tile.split, at_step=block.fetch, terms=self.terms)
            if wide:
                add_odd(k, acc, rows, panel, depth)

        each_block(k, task, begin, end, self.tile, lambda block: finish(k, task, block, self.epilogue, product))


@frozen
class ConvF32(Value):
    """A convolution: the rows of A are the windows of the output's pixels, gathered tap by tap from the input.

    Rows are the output's pixels through all images, `k` is the input's channels; the weights are packed tap by tap.
    With `exact`, what is not finite reaches only sums that it is a term of: none through pixels outside of the picture,
    or through packed weights that are `ABSENT`. Of pairs of bfloat16 `k` counts these.
    """

    tile: Tile
    epilogue: Epilogue = PLAIN
    packed: bool = True
    exact: bool = False
    terms: Terms = Terms.FLOAT

    name = "conv_f32"

    @property
    def layout(self) -> TaskLayout:
        return TaskLayout(("b", "c", *SLOTS, *self.tile.slots, "k", "ldc", *WINDOW, *self.epilogue.slots))

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        def product(block: Block, acc: Accumulators) -> None:
            depth = task.i64("k")
            width = block.width if self.packed else task.i64("n")
            panels = k.view(block.panel, F32, depth * width, width, 1)
            windows = origins(k, task, block.first, self.tile.mr)
            with each_tap(k, task, windows, F32) as (tap, pixels):
                done = tap * depth
                multiply_add(
                    k,
                    acc,
                    pixels,
                    panels[tap],
                    depth,
                    self.tile.split,
                    None,
                    lambda p: block.fetch(done + p),
                    self.terms,
                )
            if self.exact:
                here = partial(terms, block, panels)
                without_absent_terms(k, task, block, acc, self.epilogue, self.packed, here)

        def terms(block: Block, panels: View, i: Val, add: Callable[[Val, Val], None]) -> None:
            with (
                each_tap(k, task, [origin(k, task, block.row(i))], F32) as (tap, (pixel,)),
                k.when(pixel.address.ne(task.ptr("zero"))),
                k.loop(task.i64("k")) as at,
            ):
                add(pixel[at].load(), panels[tap, at].address)

        each_block(k, task, begin, end, self.tile, lambda block: finish(k, task, block, self.epilogue, product))

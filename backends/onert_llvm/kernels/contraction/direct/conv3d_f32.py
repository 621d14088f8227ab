"""Convolution over three axes in float32, tap by tap."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.command.task_layout import TaskLayout
from onert_llvm.irbuilder import F32, Kernel, Val, View
from onert_llvm.kernels.contraction.epilogue import PLAIN, Epilogue
from onert_llvm.kernels.contraction.exact_terms import without_absent_terms
from onert_llvm.kernels.contraction.float_microkernel import Accumulators, multiply_add
from onert_llvm.kernels.contraction.register_tile import SLOTS, Block, Tile, each_block
from onert_llvm.kernels.contraction.store_tile_f32 import finish

AXES = "dhw"
_NAMES = ("in", "out", "kernel", "stride", "dilation", "pad")
SPACE = ("input", "zero", *(f"{name}_{axis}" for name in _NAMES for axis in AXES))
"""The input and a pixel of padding, and for depth, height and width sizes, steps and the padding before."""


@frozen
class Conv3dF32(Value):
    """A product whose rows are the windows of the output's pixels, through all images; `k` is the input's channels.

    Weights are packed tap by tap. `exact` is that of `ConvF32`.
    """

    tile: Tile
    epilogue: Epilogue = PLAIN
    exact: bool = False

    name = "conv3d_f32"

    @property
    def layout(self) -> TaskLayout:
        return TaskLayout(("b", "c", *SLOTS, *self.tile.slots, "k", "ldc", *SPACE, *self.epilogue.slots))

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        def product(block: Block, acc: Accumulators) -> None:
            depth = task.i64("k")
            panels = k.view(block.panel, F32, depth * block.width, block.width, 1)
            with _each_tap(k, task, [_origin(task, block.row(i)) for i in range(block.count)]) as (tap, pixels):
                done = tap * depth
                multiply_add(
                    k, acc, pixels, panels[tap], depth, self.tile.split, at_step=lambda p: block.fetch(done + p)
                )
            if self.exact:
                without_absent_terms(k, task, block, acc, self.epilogue, True, partial(terms, block, panels))

        def terms(block: Block, panels: View, i: Val, add: Callable[[Val, Val], None]) -> None:
            with (
                _each_tap(k, task, [_origin(task, block.row(i))]) as (tap, (pixel,)),
                k.when(pixel.address.ne(task.ptr("zero"))),
                k.loop(task.i64("k")) as at,
            ):
                add(pixel[at].load(), panels[tap, at].address)

        each_block(k, task, begin, end, self.tile, lambda block: finish(k, task, block, self.epilogue, product))


def _origin(task: Task, pixel: Val) -> tuple[Val, ...]:
    """The image of an output pixel, and where its window begins along the three axes; that may be negative."""
    at, rest = [], pixel
    for axis in reversed(AXES):
        place, rest = rest % task.i64(f"out_{axis}"), rest // task.i64(f"out_{axis}")
        at.append(place * task.i64(f"stride_{axis}") - task.i64(f"pad_{axis}"))
    return rest, *reversed(at)


@contextmanager
def _each_tap(k: Kernel, task: Task, origins: list[tuple[Val, ...]]) -> Iterator[tuple[Val, list[View]]]:
    """Loop over the taps: the tap's number, and where the channels of each window's pixel begin."""
    source, zero = task.view("input", F32, 1), task.view("zero", F32, 1)
    sizes = [task.i64(f"in_{axis}") for axis in AXES]
    taps = [task.i64(f"kernel_{axis}") for axis in AXES]
    steps = [task.i64(f"dilation_{axis}") for axis in AXES]
    with (
        k.loop(taps[0], nonempty=True) as kz,
        k.loop(taps[1], nonempty=True) as ky,
        k.loop(taps[2], nonempty=True) as kx,
    ):
        pixels = []
        for image, *first in origins:
            at = [f + t * s for f, t, s in zip(first, (kz, ky, kx), steps, strict=True)]
            seen = at[0].ult(sizes[0]) & at[1].ult(sizes[1]) & at[2].ult(sizes[2])
            place = ((image * sizes[0] + at[0]) * sizes[1] + at[1]) * sizes[2] + at[2]
            address = source[place * task.i64("k")].address
            pixels.append(k.view(seen.select(address, zero.address), F32, 1))
        yield (kz * taps[1] + ky) * taps[2] + kx, pixels

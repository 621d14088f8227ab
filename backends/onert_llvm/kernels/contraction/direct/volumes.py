"""Windows over three axes, tap by tap."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import Kernel, Type, Val, View
from onert_llvm.kernels.contraction.contraction import Reading, Run, Terms
from onert_llvm.kernels.contraction.register_tile import Block

AXES = "dhw"
_NAMES = ("in", "out", "kernel", "stride", "dilation", "pad")
SPACE = ("input", "zero", *(f"{name}_{axis}" for name in _NAMES for axis in AXES))
"""The input and a pixel of padding, and for depth, height and width sizes, steps and the padding before."""


@frozen
class Volumes(Value):
    """Windows over three axes, those of the output's points, through all images; `k` is the input's channels."""

    name = "conv3d"
    slots = ("k", *SPACE)

    def read(self, k: Kernel, task: Task, block: Block, terms: Terms) -> Reading:
        return self._reading(k, task, block, range(block.count), terms.element)

    def _reading(self, k: Kernel, task: Task, block: Block, rows: Iterable[Val | int], element: Type) -> Reading:
        depth, origins = task.i64("k"), [_origin(task, block.row(i)) for i in rows]

        @contextmanager
        def each() -> Iterator[Run]:
            with _each_tap(k, task, origins, element) as (tap, pixels):
                yield Run(pixels, depth, tap)

        return Reading(depth, each, lambda row: self._reading(k, task, block, [row], element))


def _origin(task: Task, pixel: Val) -> tuple[Val, ...]:
    """The image of an output pixel, and where its window begins along the three axes; that may be negative."""
    at, rest = [], pixel
    for axis in reversed(AXES):
        place, rest = rest % task.i64(f"out_{axis}"), rest // task.i64(f"out_{axis}")
        at.append(place * task.i64(f"stride_{axis}") - task.i64(f"pad_{axis}"))
    return rest, *reversed(at)


@contextmanager
def _each_tap(k: Kernel, task: Task, origins: list[tuple[Val, ...]], element: Type) -> Iterator[tuple[Val, list[View]]]:
    """Loop over the taps: the tap's number, and where the channels of each window's pixel begin."""
    source, zero = task.view("input", element, 1), task.view("zero", element, 1)
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
            pixels.append(k.view(seen.select(address, zero.address), element, 1))
        yield (kz * taps[1] + ky) * taps[2] + kx, pixels

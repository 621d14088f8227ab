"""Sliding windows: the input pixel of each tap of a convolution or pooling, computed without an indirection buffer.

A tap outside of the picture reads the task's `zero` row instead: one pixel that holds the padding value.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import reduce
from operator import or_

from attrs import frozen

from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import Kernel, Type, Val, View

SLOTS = (
    "input", "zero", "in_h", "in_w", "out_h", "out_w", "kernel_h", "kernel_w", "stride_h", "stride_w",
    "dilation_h", "dilation_w", "pad_h", "pad_w", "pixel", "row", "image",
)  # fmt: skip
"""`pixel`, `row` and `image` are the input's strides in elements; `pad_h` and `pad_w` the padding above and left.
"""


@frozen(eq=False)
class Origin:
    """The first tap of an output pixel: its input coordinates, which may be negative, and the offset of its image."""

    y: Val
    x: Val
    image: Val


def origin(k: Kernel, task: Task, pixel: Val) -> Origin:
    """The window origin of an output pixel; pixels are numbered across all rows and images."""
    across, x = pixel // task.i64("out_w"), pixel % task.i64("out_w")
    image, y = across // task.i64("out_h"), across % task.i64("out_h")
    return Origin(
        y * task.i64("stride_h") - task.i64("pad_h"),
        x * task.i64("stride_w") - task.i64("pad_w"),
        image * task.i64("image"),
    )


def following(k: Kernel, task: Task, at: Origin) -> Origin:
    """The window origin of the next output pixel."""
    x = at.x + task.i64("stride_w")
    wraps = x >= task.i64("out_w") * task.i64("stride_w") - task.i64("pad_w")
    y = wraps.select(at.y + task.i64("stride_h"), at.y)
    ends = y >= task.i64("out_h") * task.i64("stride_h") - task.i64("pad_h")
    return Origin(
        ends.select(-task.i64("pad_h"), y),
        wraps.select(-task.i64("pad_w"), x),
        ends.select(at.image + task.i64("image"), at.image),
    )


def origins(k: Kernel, task: Task, first: Val, count: int) -> list[Origin]:
    """The window origins of adjacent output pixels."""
    found = [origin(k, task, first)]
    for _ in range(count - 1):
        found.append(following(k, task, found[-1]))
    return found


@contextmanager
def each_origin(k: Kernel, task: Task, first: Val, count: int) -> Iterator[tuple[Val, Origin]]:
    """Loop over the windows of adjacent output pixels: yields the number and the origin."""
    begin = origin(k, task, first)
    y, x, image = (k.var(v) for v in (begin.y, begin.x, begin.image))
    with k.loop(count) as i:
        here = Origin(y.get(), x.get(), image.get())
        yield i, here
        after = following(k, task, here)
        for variable, value in ((y, after.y), (x, after.x), (image, after.image)):
            variable.set(value)


@contextmanager
def each_tap(
    k: Kernel, task: Task, at: list[Origin], element: Type, skips: bool = False
) -> Iterator[tuple[Val, list[View]]]:
    """Loop over the taps: yields the tap's number, and where the channels of each window's pixel begin.

    With `skips`, taps outside of the picture in all of these windows are left out.
    """

    def where_any(seen: list[Val]) -> AbstractContextManager[None]:
        return k.when(reduce(or_, seen)) if skips else nullcontext()

    taps_w = task.i64("kernel_w")
    source, zero = task.view("input", element, 1), task.view("zero", element, 1)
    with k.loop(task.i64("kernel_h"), nonempty=True) as ky:
        down = ky * task.i64("dilation_h")
        lines = [(o.y + down) * task.i64("row") + o.image for o in at]
        visible = [(o.y + down).ult(task.i64("in_h")) for o in at]
        with where_any(visible), k.loop(taps_w, nonempty=True) as kx:
            across = [o.x + kx * task.i64("dilation_w") for o in at]
            there = [seen & x.ult(task.i64("in_w")) for seen, x in zip(visible, across, strict=True)]
            with where_any(there):
                pixels = []
                for line, x, inside in zip(lines, across, there, strict=True):
                    place = source[line + x * task.i64("pixel")]
                    pixels.append(k.view(inside.select(place.address, zero.address), element, 1))
                yield ky * taps_w + kx, pixels

"""Gathers the windows of a picture into contiguous bytes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import I8, I32, Kernel, Type, Val, Var


def number(task: Task, name: str) -> Val:
    """The value of a slot in 32 bits."""
    return task.i64(name).cast(I32)


def copy(k: Kernel, source: Val, target: Var, nbytes: Val, words: bool) -> None:
    """Copy bytes to `target`, which advances; by `words` if both addresses and the number are multiples of four."""
    element: Type = I32 if words else I8
    at = k.var(source)
    with k.times(nbytes.lshr(2) if words else nbytes):
        k.view(target.get(), element, 1).store(k.view(at.get(), element, 1).load())
        at.set(k.view(at.get(), element, 1)[1].address)
        target.set(k.view(target.get(), element, 1)[1].address)


def origin(k: Kernel, task: Task, pixel: Val) -> tuple[Val, Val, Val]:
    """The row and column where an output pixel's window begins, which may be negative, and its image's offset."""
    across = pixel // number(task, "out_w")
    x = pixel - across * number(task, "out_w")
    image = across // number(task, "out_h")
    y = across - image * number(task, "out_h")
    return (
        y * number(task, "stride_h") - number(task, "pad_h"),
        x * number(task, "stride_w") - number(task, "pad_w"),
        image * number(task, "image"),
    )


@contextmanager
def each_tap(k: Kernel, task: Task, pixel: Val) -> Iterator[Val]:
    """Loop over the window of an output pixel: the address of each tap's bytes, or `zero` outside of the picture."""
    y, x, image = origin(k, task, pixel)
    source = k.view(k.view(task.ptr("input"), I8, 1)[image].address, I8, 1)
    zero = task.ptr("zero")
    down, right = k.var(y), k.var(x)
    with k.times(number(task, "kernel_h")):
        right.set(x)
        line = k.view(source[down.get() * number(task, "row")].address, I8, 1)
        inside = down.get().ult(number(task, "in_h"))
        with k.times(number(task, "kernel_w")):
            there = inside & right.get().ult(number(task, "in_w"))
            yield there.select(line[right.get() * number(task, "pixel")].address, zero)
            right.set(right.get() + number(task, "dilation_w"))
        down.set(down.get() + number(task, "dilation_h"))


def gather(k: Kernel, task: Task, pixel: Val, target: Val, words: bool) -> None:
    """Copy the window of an output pixel, `channels` bytes per tap."""
    to, channels = k.var(target), number(task, "channels")
    with each_tap(k, task, pixel) as source:
        copy(k, source, to, channels, words)

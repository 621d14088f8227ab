"""The stretches of programs as data for the cache, and whether one serves given input shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from onert.backend import Backend, FollowingKernel, Kernel, Program, Stretch
from onert.ir.symbolic.instructions import Instructions

Kept = tuple[Any, ...]


def kept(program: Program, backends: Mapping[str, Backend]) -> Kept | None:
    """The stretch of a program as data; None if it cannot be cached: if a condition is a function that only Python can
    call, or a backend declines."""
    stretch = program.stretch
    if stretch is None or stretch.numbers.python_checks:
        return None
    pairs = zip(program.main.steps, stretch.kernels, strict=True)
    kernels = tuple(backends[step.backend].keep_stretched(kernel) for step, kernel in pairs)
    if any(kernel is None for kernel in kernels):
        return None
    n = stretch.numbers
    numbers = n.code, n.first, n.tables, n.registers, n.floats
    following = next(at for at, kernel in enumerate(stretch.kernels) if kernel is stretch.following)
    return stretch.lengths, numbers, kernels, following, dict(stretch.shapes), dict(stretch.capacities)


def revived(data: Kept, steps: Sequence[tuple[str, Kernel]], backends: Mapping[str, Backend]) -> Stretch:
    """The stretch of a program whose `steps` have these backends and kernels.

    Raises TypeError or ValueError if the data is not what `kept` returns.
    """
    lengths, (code, first, tables, registers, floats), kept_kernels, following, shapes, capacities = data
    numbers = Instructions(code, first, tables, (), registers, floats)
    pairs = zip(steps, kept_kernels, strict=True)
    kernels = tuple(backends[name].revive_stretched(each, kernel) for (name, kernel), each in pairs)
    leader = kernels[following]
    if not isinstance(leader, FollowingKernel):
        raise TypeError(f"a {type(leader).__qualname__} cannot execute the instructions of a stretch")
    return Stretch(lengths, numbers, kernels, leader, shapes, capacities, _unobserved)


def serves(program: Program, shapes: Sequence[tuple[int, ...]]) -> bool:
    """Whether the program's stretch serves inputs of these shapes."""
    stretch = program.stretch
    assert stretch is not None
    opened = {(at, axis): number for number, (at, axis) in enumerate(stretch.lengths)}
    registers = stretch.numbers.first.copy()
    for at, (info, shape) in enumerate(zip(program.inputs, shapes, strict=True)):
        if len(info.shape) != len(shape):
            return False
        for axis, (expected, size) in enumerate(zip(info.shape, shape, strict=True)):
            number = opened.get((at, axis))
            if number is not None:
                registers[number] = size
            elif expected != size:
                return False
    return stretch.following.followed(stretch.numbers, np.ascontiguousarray(registers))()


def _unobserved() -> None:
    """Called when the stretch is used: nothing decides by it whether more are made."""

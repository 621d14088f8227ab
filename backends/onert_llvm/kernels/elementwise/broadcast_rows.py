"""Broadcast operands: rows of a result, numbered through up to three outer dimensions, and the matching operand rows.

Slots `middle` and `inner` are the second and third outer dimension; `NAME_0` to `NAME_2` are the strides of an
operand's rows along the three, in elements, 0 where it repeats.
"""

from __future__ import annotations

from collections.abc import Sequence

from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import Kernel, Type, Val, View

DIMENSIONS = 3


def slots(names: Sequence[str]) -> tuple[str, ...]:
    """The task slots for operands with these names."""
    return ("middle", "inner", *names, *(f"{name}_{i}" for name in names for i in range(DIMENSIONS)))


def rows_at(k: Kernel, task: Task, names: Sequence[str], element: Type, row: Val) -> list[View]:
    """Each operand's row that belongs to row number `row` of the result."""
    middle, inner = task.i64("middle"), task.i64("inner")
    across, third = row // inner, row % inner
    first, second = across // middle, across % middle
    found = []
    for name in names:
        strides = [task.i64(f"{name}_{i}") for i in range(DIMENSIONS)]
        at = first * strides[0] + second * strides[1] + third * strides[2]
        found.append(k.view(task.view(name, element, 1)[at].address, element, 1))
    return found

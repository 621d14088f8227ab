"""Models with a number of rows known only at run time, and which of their operations are not native."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import onert
from onert.ir import DType, Package, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.data_movement.copy import Copy
from onert.ir.ops.data_movement.fill import FirstEntries, Where
from onert.ir.ops.data_movement.gather import Gather
from onert.ir.ops.data_movement.reshape import Reshape, ShapeOf
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind

Array = np.ndarray[Any, Any]
Write = Callable[[Builder, int, int, int], list[int]]
"""Writes the part under test, given `x` f32[6, 4], the number of its rows that start with a positive element, and
those rows."""


def row_of(b: Builder, *values: int) -> int:
    return b.constant(np.int32(values))


def number(b: Builder, value: int) -> int:
    return b.constant(np.int32(value))


def column_of(b: Builder, rows: int, at: int = 0) -> int:
    return b.add(Gather(1), rows, number(b, at))


def package_of(write: Write) -> Package:
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (6, 4)), "x")
    places = b.add(Where(), b.add(Comparison(ComparisonKind.GREATER), column_of(b, x), b.constant(np.float32(0))))
    rows = b.add(Gather(0), x, b.add(Reshape(), places, row_of(b, -1)))
    n = b.add(Gather(0), b.add(ShapeOf(), rows), number(b, 0))
    return Package((b.model(write(b, x, n, rows)),), "counted rows")


def rows_given(count: int) -> Array:
    """An input in which `count` rows start with a positive element."""
    x = np.random.default_rng(11).uniform(-1, 1, (6, 4)).astype(np.float32)
    x[0, 1] = 0.5  # would be selected if rows beyond the count were read
    x[:, 0] = np.linspace(0.2, 0.9, 6) * np.where(np.arange(6) * 5 % 6 < count, 1, -1)
    return x


def evaluated(program: onert.Program) -> set[type]:
    """The kinds of operations that do not run natively."""
    steps = [step for step in program.main.steps if step.backend != "llvm"]
    return {type(step.sequence.subgraph.operations[at].op) for step in steps for at in step.sequence.operations}


def check_native(write: Write, counts: Iterable[int]) -> None:
    """Check that a model runs natively, with the reference's results for each number of rows."""
    package = package_of(write)
    program = onert.compile(package, num_threads=1)
    assert evaluated(program) <= {FirstEntries, Copy}
    execution, expected = onert.Execution(program), onert.Execution(onert.compile(package, backends=("reference",)))
    for count in counts:
        found, theirs = (list(each.run([rows_given(count)]).values()) for each in (execution, expected))
        for one, other in zip(found, theirs, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6, strict=True)

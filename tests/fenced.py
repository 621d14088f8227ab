"""Runs of whole models whose arena, inputs and outputs are surrounded by inaccessible pages, and their comparison."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from llvm.harness import guarded

import onert
from onert.ir import Array


def _fenced(array: Array) -> Array:
    """A copy that ends right before an inaccessible page if the alignment allows it, else one that starts right after
    one.
    """
    return guarded(array, at_end=array.nbytes % 64 == 0)


def run_fenced(program: onert.Program, steps: Sequence[Sequence[Array]]) -> list[list[Array]]:
    """The outputs of each step; the arena, inputs and outputs are surrounded by inaccessible pages."""
    found = []
    arena = guarded(np.zeros(program.arena_bytes, np.uint8)) if program.arena_bytes else None
    with onert.Execution(program, arena=arena) as execution:
        for inputs in steps:
            for position, array in enumerate(inputs):
                execution.set_input(position, _fenced(array))
            for position, info in enumerate(program.outputs):
                if info.type.is_static and info.type.nbytes:
                    shape = tuple(d or 0 for d in info.shape)
                    execution.set_output(position, _fenced(np.zeros(shape, info.dtype.numpy)))
            execution.execute()
            found.append([execution.get_output(i).copy() for i in range(len(program.outputs))])
    return found


def agree(found: Array, expected: Array, tolerance: float, average: float | None = None) -> None:
    """Require that floats differ by at most `tolerance` times the range of the expected ones, and others not at all."""
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    if found.dtype.kind == "f" and found.size:
        finite = expected[np.isfinite(expected)]
        span = max(float(np.ptp(finite)), float(np.abs(finite).max())) if finite.size else 0.0
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * span)
        if average is not None:
            assert float(np.abs(found - expected).mean()) <= average * span
    else:
        np.testing.assert_array_equal(found, expected)

"""A warning for programs in which NumPy evaluates operations, because generated code would be many times faster."""

from __future__ import annotations

from collections.abc import Sequence

from onert.backend import Program
from onert.backend.registry import ALWAYS, PREFERRED
from onert.compiler import Options
from onert.exec.observers import ProfileRow

SLOW = ALWAYS[-1]
"""The backend that evaluates every operation in NumPy."""


def runs_slowly(program: Program, options: Options) -> bool:
    """Whether operations run on the slow backend although no option requests it."""
    asked = (
        *options.backends,
        options.op_backend_allops,
        *options.op_backend.values(),
        *options.op_backend_map.values(),
    )
    return SLOW not in asked and any(step.backend == SLOW for routine in program.routines for step in routine.steps)


def slowness(program: Program, rows: Sequence[ProfileRow], options: Options) -> str:
    """How many operations the slow backend runs, their share of the time, and the option that avoids it."""
    named = options.backends
    counts: dict[str, int] = {}
    for routine in program.routines:
        for step in routine.steps:
            counts[step.backend] = counts.get(step.backend, 0) + len(step.sequence.body)
    share = sum(row.share for row in rows if row.backend == SLOW)
    said = (
        f"{counts[SLOW]} of {sum(counts.values())} operations run in NumPy on {SLOW!r}, "
        f"{min(share, 1.0):.0%} of the time"
    )
    missing = [name for name in PREFERRED if name not in named]
    if not named or not missing:
        return f"{said}: no other backend supports them"
    others = [name for name in named if name not in ALWAYS]
    return f'{said}; --backends "{";".join((*others, *missing))}" runs them on {missing[0]!r}'

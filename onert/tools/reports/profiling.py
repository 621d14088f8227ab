"""Tables of times: of a run's operations, and of every operation on all backends for the scheduler."""

from __future__ import annotations

from collections.abc import Iterator

from onert.backend import Backend
from onert.backend.registry import available, load_backend, load_backends
from onert.compiler import Options
from onert.compiler.report.tables import Table
from onert.compiler.scheduler.exec_time import FAILED
from onert.exec.observers import Profile
from onert.ir import BackendError, Package
from onert.runtime.measuring import record


def profile_table(profile: Profile) -> Table:
    """The time of each operation, longest first."""
    rows = [
        (
            row.label,
            row.backend,
            str(row.runs),
            f"{row.microseconds:.1f}",
            f"{row.share:.1%}",
            str(row.flops),
            f"{row.gflops:.2f}",
            str(row.nbytes),
            f"{row.gbytes:.2f}",
        )
        for row in profile.rows
    ]
    return Table(("operation", "backend", "runs", "us", "share", "flop", "GFLOP/s", "bytes", "GB/s"), tuple(rows))


def profile_backends(package: Package, options: Options) -> Iterator[str]:
    """Measure a package on the backends in the options, or on all installed ones, and yield lines with the results.

    Results are added to `exec_time.json` in the workspace, which keeps those of other models.
    """
    backends, broken = _loaded(options.backends)
    yield from broken
    outcome, path = record(package, backends, options)
    best: dict[str, dict[str, float]] = {}
    for backend, name, _, _, microseconds in outcome.measurements:
        if "->" in name and microseconds < FAILED:
            best.setdefault(name, {})[backend] = microseconds
    names = [backend.name for backend in backends if any(backend.name in times for times in best.values())]
    rows = tuple(
        (name, *(f"{times[backend]:.1f}" if backend in times else "-" for backend in names))
        for name, times in best.items()
    )
    yield str(Table(("operation", *(f"{name} us" for name in names)), rows))
    yield from outcome.notes
    yield f"{len(outcome.measurements)} times are written to {path}"


def _loaded(names: tuple[str, ...]) -> tuple[tuple[Backend, ...], list[str]]:
    """The backends with these names. Without names: all installed ones that load, and the errors of the others."""
    broken: list[str] = []
    if not names:
        for name in available():
            try:
                load_backend(name)
                names = (*names, name)
            except BackendError as error:
                broken.append(str(error))
    return load_backends(names), broken

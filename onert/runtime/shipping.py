"""Code that is generated before this package is installed, so that first runs find it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from onert.backend import Backend, Settings, ShipsCode
from onert.backend import Sequence as Operations
from onert.backend.registry import load_backends
from onert.compiler import Options
from onert.ir import BackendError

from .api import Source, compile, load

_THREADS = (1, 2)
"""Layers are cut for so many threads: two stand for more."""


def ship(sources: Iterable[Source], targets: Sequence[str] = ("native",)) -> list[Path]:
    """Generate the kernels of models for targets and write them beside the backends. Returns the files, one per target.

    Every process that compiles a model uses the kernels for its machine from there. ModelError and CompileError for a
    model that cannot be read or compiled; BackendError for an unknown target, or if no backend ships code.
    """
    found = [backend for backend in load_backends() if isinstance(backend, ShipsCode) and isinstance(backend, Backend)]
    if not found:
        raise BackendError("no backend that is installed ships code")
    sequences: dict[str, list[tuple[Operations, Settings]]] = {backend.name: [] for backend in found}
    for name, sequence, settings in _sequences(sources):
        if name in sequences:
            sequences[name].append((sequence, settings))
    return [backend.ship(sequences[backend.name], target) for backend in found for target in targets]


def _sequences(sources: Iterable[Source]) -> Iterator[tuple[str, Operations, Settings]]:
    """What backends run of models, with the names of the backends."""
    for source in sources:
        package = load(source)
        for threads in _THREADS:
            options = Options(num_threads=threads)
            for routine in compile(package, options).routines:
                for step in routine.steps:
                    yield step.backend, step.sequence, options.settings

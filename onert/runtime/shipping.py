"""Kernels that are generated before this package is installed, so that first runs need not generate them."""

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
"""The thread counts that layers are divided for; two stands for more."""


def ship(sources: Iterable[Source], targets: Sequence[str] = ("native",)) -> list[Path]:
    """Generate the kernels of models for targets and write them beside the backends. Returns the files, one per target.

    Every process that compiles a model loads the kernels for its machine from there. Raises ModelError or CompileError
    if a model cannot be read or compiled, and BackendError if a target is unknown or no backend ships code.
    """
    found = [backend for backend in load_backends() if isinstance(backend, ShipsCode) and isinstance(backend, Backend)]
    if not found:
        raise BackendError("no installed backend ships code")
    sequences: dict[str, list[tuple[Operations, Settings]]] = {backend.name: [] for backend in found}
    for name, sequence, settings in _sequences(sources):
        if name in sequences:
            sequences[name].append((sequence, settings))
    return [backend.ship(sequences[backend.name], target) for backend in found for target in targets]


def _sequences(sources: Iterable[Source]) -> Iterator[tuple[str, Operations, Settings]]:
    """The sequences that backends run for these models, with the names of the backends."""
    for source in sources:
        package = load(source)
        for threads in _THREADS:
            options = Options(num_threads=threads)
            for routine in compile(package, options).routines:
                for step in routine.steps:
                    yield step.backend, step.sequence, options.settings

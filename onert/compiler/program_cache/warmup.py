"""Warm-up: import the compiler and prepare backends for a model that was read and is probably compiled next."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from time import perf_counter

from onert.backend.planner import PLANNERS
from onert.backend.registry import find_backends
from onert.compiler.options import Options
from onert.compiler.settings.config_keys import PREFIX, parse
from onert.ir import CallTypes, OnertError, Operation, Package
from onert.ir.content import Content
from onert.ir.process import imports


def read(package: Package, content: Content) -> None:
    """Import the compiler, and let backends import what the package's operations need.

    This takes a tenth of a second, once per process. Done while the model is read, it overlaps with the start of a code
    generator.
    """
    start = perf_counter()
    _read(package)
    content.preparation = perf_counter() - start


def _read(package: Package) -> None:
    try:
        # Notes about these choices are discarded here, because compile reports them.
        options = Options(**parse(os.environ, PREFIX), fixed=frozenset()).with_config(package.config)
        backends, _ = find_backends(options.backends)
    except OnertError:  # other options may be chosen for compiling; otherwise the error is reported then
        return
    operations = tuple(_kinds(package).values())
    pending: list[Callable[[], object] | None] = []
    for backend in backends:
        with suppress(Exception):  # a faulty backend is reported only when something is compiled for it
            pending.append(backend.expect(operations, options.settings))
    imports.module("onert.compiler.compiler")
    _ = PLANNERS[options.planner]
    for wait in pending:
        if wait is not None:
            wait()


def _kinds(package: Package) -> dict[object, tuple[Operation, CallTypes]]:
    """One operation for each combination of kind and element types."""
    found: dict[object, tuple[Operation, CallTypes]] = {}
    for model in package.models:
        for subgraph in model.subgraphs:
            for operation in subgraph.operations:
                types = subgraph.types(operation)
                dtypes = tuple(t.dtype for t in (*types.inputs, *types.outputs) if t is not None)
                found.setdefault((type(operation.op), dtypes), (operation, types))
    return found

"""What is done for a model that was read and is probably compiled next."""

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
    """Read the compiler, and have backends read what the package's operations ask of them.

    All this takes a tenth of a second, once in a process; here it is part of reading, where a code generator can start
    beside.
    """
    start = perf_counter()
    _read(package)
    content.preparation = perf_counter() - start


def _read(package: Package) -> None:
    try:
        # What there is to note about these choices is said by compile, not twice.
        options = Options(**parse(os.environ, PREFIX), fixed=frozenset()).with_config(package.config)
        backends, _ = find_backends(options.backends)
    except OnertError:  # whoever compiles may choose others; whoever does not is told then
        return
    operations = tuple(_kinds(package).values())
    waiting: list[Callable[[], object] | None] = []
    for backend in backends:
        with suppress(Exception):  # what is wrong with it is told to whoever compiles for it, and to nobody else
            waiting.append(backend.expect(operations, options.settings))
    imports.module("onert.compiler.compiler")
    _ = PLANNERS[options.planner]
    for wait in waiting:
        if wait is not None:
            wait()


def _kinds(package: Package) -> dict[object, tuple[Operation, CallTypes]]:
    """An operation of each kind, by that and the types of its elements."""
    found: dict[object, tuple[Operation, CallTypes]] = {}
    for model in package.models:
        for subgraph in model.subgraphs:
            for operation in subgraph.operations:
                types = subgraph.types(operation)
                dtypes = tuple(t.dtype for t in (*types.inputs, *types.outputs) if t is not None)
                found.setdefault((type(operation.op), dtypes), (operation, types))
    return found

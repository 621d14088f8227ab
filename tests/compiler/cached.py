"""Packages whose programs are cached, and a cache that counts compilations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onert
import onert_llvm.codegen.fingerprint
import onert_llvm.target.isa
from onert.backend.writers import WRITERS
from onert.compiler.program_cache import key
from onert.compiler.program_cache import other_shapes as programs
from onert.ir import Array, DType, Package, Signature, SignatureTensor, Subgraph, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.elementwise.binary import Binary, BinaryKind

ADD, MUL = Binary(BinaryKind.ADD), Binary(BinaryKind.MUL)
ROWS = TensorType(DType.FLOAT32, (None, 4))
WEIGHTS = np.float32([1, 2, 3, 4])


class Compiled:
    """Counts the programs compiled, rather than found in the cache, since it was created."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        found = programs._compiler()

        def compiler() -> Any:
            self.count += 1
            return found

        monkeypatch.setattr(programs, "_compiler", compiler)


class Cached(Compiled):
    """A test's cache."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(monkeypatch)
        self._folder = folder
        self._patch = monkeypatch
        monkeypatch.setattr(programs, "WORTH_CACHING", 0.0)
        self.empty("first")

    def empty(self, name: str) -> None:
        """Switch to an empty cache."""
        self._patch.setenv("ONERT_CACHE_DIR", str(self._folder / name))

    def facts(self, package: Package, **options: Any) -> list[Any]:
        """Everything that a program reports about itself, and what it computes."""
        program = onert.compile(package, **{"num_threads": 1, **options})
        WRITERS.finish()
        rng = np.random.default_rng(0)
        arrays = [rng.integers(-9, 9, [d or 1 for d in i.shape]).astype(i.dtype.numpy) for i in program.inputs]
        with onert.Execution(program) as execution:
            results = execution.run(arrays)
        own = (program.name, program.executor, program.num_threads, program.max_iterations, dict(program.recordings))
        values = [(name, value.shape, value.tolist()) for name, value in results.items()]
        return [program.describe(), program.inputs, program.outputs, *own, values]


@contextmanager
def caching(folder: Path) -> Iterator[Cached]:
    """A cache in an empty folder that stores every program."""
    forget()
    with pytest.MonkeyPatch.context() as patch:
        yield Cached(folder, patch)
    forget()


def forget() -> None:
    """Drop what the process has memoised about its environment and its own sources."""
    key.process.cache_clear()
    onert_llvm.codegen.fingerprint.version.cache_clear()
    onert_llvm.codegen.fingerprint.own_sources.cache_clear()
    onert_llvm.target.isa._native.cache_clear()


def graph(op: Binary, weights: Array = WEIGHTS) -> Subgraph:
    b = Builder(op.kind.name)
    return b.subgraph([b.add(op, b.input(ROWS, "x"), b.constant(weights))])


def packaged(*graphs: Subgraph, **more: Any) -> Package:
    def signature(at: int) -> Signature:
        sides = ((SignatureTensor(side, operands[0]),) for side, operands in _ends(graphs[at]))
        return Signature(graphs[at].name, at, *sides)

    return Package((Subgraphs(graphs, tuple(map(signature, range(len(graphs))))),), "made", **more)


def _ends(graph: Subgraph) -> list[tuple[str, tuple[int, ...]]]:
    return [("x", graph.inputs), ("y", graph.outputs)]


PLAIN = packaged(graph(ADD), graph(MUL))
SHAPES = {"x": (1, 4)}


def check_apart(cached: Cached, first: Callable[[], list[Any]], second: Callable[[], list[Any]]) -> None:
    """The second is not served what was cached for the first, and afterwards both are cache hits."""
    before = first()
    assert cached.count == 1
    found = second()
    assert cached.count == 2
    assert [first(), second()] == [before, found]
    assert cached.count == 2
    cached.empty("second")
    assert second() == found
    assert cached.count == 3

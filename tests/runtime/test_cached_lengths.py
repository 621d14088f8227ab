"""Programs that serve many lengths are cached: another process runs new lengths without compiling anything."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiler.cached import Cached, caching
from length_models import LENGTHS, MODELS, opened, weights

import onert
from onert.backend.cache import Cache, default_directory
from onert.backend.writers import WRITERS
from onert.compiler.program_cache import encoding
from onert.compiler.program_cache.shared_arrays import SharedArrays
from onert.ir import Package, Subgraphs
from onert.ir.symbolic import functions

FIRST, NEXT = (5, 6, 7, 8), (8, 6, 7)

COMPILED_AGAIN = {"averaged bytes": "its tables depend on the processor"}
"""Models that each process compiles again for new lengths, with the reason."""


@pytest.fixture(scope="module")
def cached(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cached]:
    with caching(tmp_path_factory.mktemp("cache")) as found:
        yield found


def _given(shapes: Sequence[tuple[int, ...]]) -> dict[str, Any]:
    return {name: weights(*shape) for name, shape in zip("xy", shapes, strict=False)}


def _run(package: Package, threads: int) -> onert.Execution:
    return onert.Execution(onert.compile(package, num_threads=threads))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("name", "model", "shapes"), [pytest.param(*row, id=row[0]) for row in MODELS])
def test_a_cached_program_serves_other_lengths_with_the_same_results(
    name: str,
    model: Callable[[], Subgraphs],
    shapes: Callable[[int], list[tuple[int, ...]]],
    threads: int,
    cached: Cached,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if threads > 1:
        monkeypatch.setattr(encoding, "APART_BYTES", 64)
    package = opened(model())
    first = _run(package, threads)
    for n in FIRST:
        first.run(_given(shapes(n)))
    WRITERS.finish()
    cached.count = 0
    other = _run(package, threads)
    compiled = []
    for n in (*NEXT, *LENGTHS):
        given = _given(shapes(n))
        for expected, found in zip(first.run(given).values(), other.run(given).values(), strict=True):
            np.testing.assert_array_equal(found, expected, err_msg=f"length {n}")
        compiled.append(cached.count)
    assert (compiled[len(NEXT) - 1] > 0) == (name in COMPILED_AGAIN)


def test_a_program_shows_the_shapes_it_runs_for_after_another_process_compiled_it(cached: Cached) -> None:
    model, shapes = next(row[1:] for row in MODELS if row[0] == "attention")
    package = opened(model())
    first = _run(package, 1)
    for n in FIRST:
        first.run(_given(shapes(n)))
    WRITERS.finish()
    other = _run(package, 1)
    for n in (9, 13):
        other.run(_given(shapes(n)))
        assert other.inputs[0].shape == other.program.inputs[0].shape == (1, n, 8)
        assert [i.shape for i in other.outputs] == [i.shape for i in other.program.outputs]


def _shortened(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


def _changed(path: Path) -> None:
    raw = path.read_bytes()
    path.write_bytes(raw[:200] + b"?" + raw[201:])


@pytest.mark.parametrize("only", ["program", "array", ""], ids=["programs", "arrays", "all"])
@pytest.mark.parametrize("damage", [_shortened, _changed, Path.unlink])
def test_a_damaged_program_is_compiled_again(
    damage: Callable[[Path], None],
    only: str,
    cached: Cached,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(encoding, "APART_BYTES", 64)
    cached.empty(request.node.name)
    model, shapes = next(row[1:] for row in MODELS if row[0] == "attention")
    package = opened(model())
    first, given = _run(package, 1), [_given(shapes(n)) for n in FIRST]
    expected = list(map(first.run, given))
    WRITERS.finish()
    kinds = {entry.key: entry.kind for entry in onert.cache.entries()}
    assert {"program", "array"} <= set(kinds.values())
    for path in default_directory(os.environ).iterdir():
        if kinds.get(path.stem, "").startswith(only):
            damage(path)
    cached.count = 0
    other = _run(package, 1)
    for arrays, results in zip(given, expected, strict=True):
        for name, found in other.run(arrays).items():
            np.testing.assert_array_equal(found, results[name])
    assert cached.count == 1


def test_programs_share_large_arrays_on_disk_and_in_memory(
    cached: Cached, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoding, "APART_BYTES", 64)
    cached.empty(request.node.name)
    model, shapes = next(row[1:] for row in MODELS if row[0] == "pooled")
    package = opened(model())
    first = _run(package, 1)
    for n in (*FIRST, 100):
        first.run(_given(shapes(n)))
    WRITERS.finish()
    kinds = [entry.kind for entry in onert.cache.entries()]
    assert kinds.count("program") == 3  # the first, and two for many lengths
    other = _run(package, 1)
    given = [_given(shapes(n)) for n in (6, 101)]
    programs = [other._base.reuse(tuple(x.shape for x in each.values())) for each in given]
    small, large = ({a.ctypes.data for a in _constants(program)} for program in programs)
    assert small & large


def _constants(program: onert.Program) -> list[Any]:
    kernels: list[Any] = [step.kernel for step in program.main.steps]
    return [array for kernel in kernels for array in kernel.lowered.constants]


@pytest.mark.parametrize("name", ["", "../secret", "0" * 64, "g" * 64, "0" * 63])
def test_only_arrays_in_the_cache_are_read_by_name(name: str, tmp_path: Path) -> None:
    Cache(tmp_path).store("secret", b"x" * 100)
    cache = Cache(tmp_path / "cache")
    cache.store("0" * 63, b"y" * 100)
    with pytest.raises(LookupError):
        SharedArrays(cache).fetch(name)


def test_each_program_that_serves_many_lengths_is_found(cached: Cached) -> None:
    model, shapes = next(row[1:] for row in MODELS if row[0] == "attention")
    package = opened(model())
    first = _run(package, 1)
    for n in (*FIRST, 100):  # each serves up to four times the lengths it was made for
        first.run(_given(shapes(n)))
    WRITERS.finish()
    cached.count = 0
    other = _run(package, 1)
    for n in (101, 7, 99, 20):
        given = _given(shapes(n))
        for expected, found in zip(first.run(given).values(), other.run(given).values(), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6, err_msg=f"length {n}")
    assert cached.count == 0


def test_only_declared_functions_are_called_by_name() -> None:
    for name in ("os:system", "onert.ir.symbolic.functions:of_lengths", "onert_llvm.lower.reduction.pool:_bounds"):
        with pytest.raises(LookupError):
            functions.named(name)
    assert functions.named("onert_llvm.lower.reduction.pool:_divisors").__name__ == "_divisors"

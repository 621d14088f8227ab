"""Programs that serve many lengths are cached: another process runs new lengths without compiling anything."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from compiler.cached import Cached, caching
from length_models import LENGTHS, MODELS, opened, weights

import onert
from onert.backend.cache import default_directory
from onert.backend.writers import WRITERS
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
) -> None:
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


@pytest.mark.parametrize("damage", [lambda raw: raw[:-9], lambda raw: raw[:200] + b"?" + raw[201:], lambda raw: b""])
def test_a_damaged_program_is_compiled_again(
    damage: Callable[[bytes], bytes], cached: Cached, request: pytest.FixtureRequest
) -> None:
    cached.empty(request.node.name)
    model, shapes = next(row[1:] for row in MODELS if row[0] == "attention")
    package = opened(model())
    first, given = _run(package, 1), [_given(shapes(n)) for n in FIRST]
    expected = list(map(first.run, given))
    WRITERS.finish()
    for path in default_directory(os.environ).iterdir():
        path.write_bytes(damage(path.read_bytes()))
    cached.count = 0
    other = _run(package, 1)
    for arrays, results in zip(given, expected, strict=True):
        for name, found in other.run(arrays).items():
            np.testing.assert_array_equal(found, results[name])
    assert cached.count == 1


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

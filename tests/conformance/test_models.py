"""Every available model loads, compiles and runs on every backend, and its results match LiteRT's.

Floats are within 1e-4 of the output's range from one of LiteRT's kernels, or no farther from them than those are from
each other (in pose_landmark_full's mask, sums with a range of 1,600 cancel). Integers equal the reference kernels'.
Models with state run ten steps. Native code runs between guard pages; its results are also compared with those of the
reference backend within the bounds of `tolerances`, which is all there is for a model that LiteRT cannot run. Without
state it must repeat them after a run with other inputs.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fenced import agree, run_fenced
from shared_material import SHARED, needs_shared
from tolerances import CLOSE, ON_AVERAGE, ROUGH

import onert
from onert.ir import Array

litert = pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert is not installed")

FOLDER = SHARED / "models"
MODELS = sorted(str(p.relative_to(FOLDER).with_suffix("")) for p in FOLDER.glob("*/*.tflite"))
CIRCLES = (
    sorted(str(p.relative_to(FOLDER).with_suffix("")) for p in FOLDER.glob("*/*.circle")) if SHARED.is_dir() else []
)
STEPS = 10
NATIVE = {"default, 1 thread": 1, "default, 2 threads": 2}
"""The number of threads, by the name of the subtest."""


def _stateful(package: onert.Package) -> bool:
    return any(
        operand.variable or operand.type.dtype.is_handle
        for graph in package.model.subgraphs
        for operand in graph.operands
    )


def _random(detail: dict[str, Any], rng: np.random.Generator) -> Array:
    """Elements for an input. Integers wider than 16 bits are mostly indices, so they are small."""
    shape, dtype = tuple(detail["shape"]), np.dtype(detail["dtype"])
    if dtype.kind == "f":
        return rng.uniform(-1, 1, shape).astype(dtype)
    if dtype.itemsize > 2 or dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, shape, endpoint=True).astype(dtype)


class NotRunError(Exception):
    """LiteRT lacks an operator of the model."""


@cache
def _steps(name: str, kernels: str) -> list[tuple[list[Array], list[Array]]]:
    """Inputs and LiteRT's outputs, step by step."""
    interpreter = litert.Interpreter(
        str(FOLDER / f"{name}.tflite"),
        experimental_op_resolver_type=getattr(litert.OpResolverType, kernels),
        num_threads=1,
    )
    try:
        interpreter.allocate_tensors()
    except RuntimeError as error:
        raise NotRunError(str(error)) from error
    rng, found = np.random.default_rng(1), []
    for _ in range(STEPS if _stateful(onert.load(FOLDER / f"{name}.tflite")) else 1):
        inputs = [_random(detail, rng) for detail in interpreter.get_input_details()]
        for detail, array in zip(interpreter.get_input_details(), inputs, strict=True):
            interpreter.set_tensor(detail["index"], array)
        interpreter.invoke()
        found.append((inputs, [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]))
    return found


def _run(path: Path, steps: list[list[Array]]) -> list[list[Array]]:
    """The reference backend's outputs of each step."""
    execution = onert.Execution(onert.compile(onert.load(path), backends=("reference",), num_threads=1))
    return [list(execution.run(inputs).values()) for inputs in steps]


def _run_natively(path: Path, steps: list[list[Array]], threads: int) -> list[list[Array]]:
    """The native outputs of each step. Those of a single step are checked to be the same after other inputs."""
    program = onert.compile(onert.load(path), num_threads=threads)
    if len(steps) > 1:
        return run_fenced(program, steps)
    (inputs,) = steps
    found, _, again = run_fenced(program, [inputs, [np.flip(a) for a in inputs], inputs])
    assert [a.tobytes() for a in again] == [a.tobytes() for a in found]
    return [found]


def _distance(mine: list[list[Array]], theirs: list[list[Array]]) -> float:
    """The largest difference between floats, relative to the output's range at that step; integers must be equal."""
    worst = 0.0
    for a, b in ((a, b) for m, t in zip(mine, theirs, strict=True) for a, b in zip(m, t, strict=True)):
        assert a.shape == b.shape
        assert a.dtype == b.dtype
        if a.dtype.kind == "f":
            span = max(float(np.ptp(b)), float(np.abs(b).max(initial=0)), 1e-30) if b.size else 1.0
            worst = max(worst, float(np.abs(a.astype(np.float64) - b).max(initial=0)) / span)
        else:
            np.testing.assert_array_equal(a, b)
    return worst


@needs_shared
@pytest.mark.parametrize("name", MODELS)
def test_a_model_matches_litert(name: str, subtests: pytest.Subtests) -> None:
    path = FOLDER / f"{name}.tflite"
    try:
        steps = _steps(name, "BUILTIN_REF")
    except NotRunError:
        _check_against_reference(path)
        return
    reference = _run(path, [inputs for inputs, _ in steps])
    with subtests.test("reference"):
        _check(name, steps, reference)
    for way, threads in NATIVE.items():
        with subtests.test(way):
            found = _run_natively(path, [inputs for inputs, _ in steps], threads)
            _check(name, steps, found)
            _agree(path, found, reference)


def _check(name: str, steps: list[tuple[list[Array], list[Array]]], mine: list[list[Array]]) -> None:
    theirs = [outputs for _, outputs in steps]
    distance = _distance(mine, theirs)
    if distance > 1e-4:
        optimized = [outputs for _, outputs in _steps(name, "AUTO")]
        between, other = _distance(theirs, optimized), _distance(mine, optimized)
        assert min(distance, other) <= max(1e-4, between), f"{distance:.2e} and {other:.2e} from LiteRT's kernels"


def _agree(path: Path, found: list[list[Array]], expected: list[list[Array]]) -> None:
    for mine, theirs in zip(found, expected, strict=True):
        for a, b in zip(mine, theirs, strict=True):
            agree(a, b, ROUGH.get(path.stem, CLOSE), ON_AVERAGE.get(path.stem))


def _check_against_reference(path: Path) -> None:
    rng = np.random.default_rng(1)
    infos = onert.compile(onert.load(path), backends=("reference",)).inputs
    inputs = [rng.uniform(-1, 1, tuple(d or 1 for d in info.shape)).astype(info.dtype.numpy) for info in infos]
    expected = _run(path, [inputs])
    assert all(np.isfinite(a).all() for a in expected[0])
    for threads in NATIVE.values():
        _agree(path, _run_natively(path, [inputs], threads), expected)


@needs_shared
@pytest.mark.parametrize("name", CIRCLES)
def test_a_circle_model_matches_the_reference_backend(name: str) -> None:
    _check_against_reference(FOLDER / f"{name}.circle")

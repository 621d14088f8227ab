"""Native code for every target, on one thread or two, gives the reference backend's results within its own memory.

Integers are equal. `tolerances` lists how far floats may differ, with the differences seen. All of this is in the long
suite; by default `test_models` checks code for this machine in the same way.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fenced import agree, run_fenced
from shared_material import SHARED, needs_shared
from tolerances import CLOSE, ON_AVERAGE, ONE_OPERATION, ROUGH

import onert
from onert.ir import Array
from onert_llvm.target.isa import runnable

MODELS = sorted(p for p in (SHARED / "models").glob("*/*") if p.suffix in (".tflite", ".circle"))
TARGETS = [isa.name for isa in runnable()]
SEEDS = (0, 1, 0)
"""Seeds of the inputs, step by step. Without state the third step must repeat the first one's results, whatever the
second left behind. The reference backend, where most of the time goes, then runs only the first."""
THREADS = pytest.mark.parametrize("threads", [1, 2])


def _drawn(program: onert.Program, seed: int) -> list[Array]:
    """Random inputs. Integers wider than 16 bits are mostly indices, so they are small."""
    rng, found = np.random.default_rng(seed), []
    for info in program.inputs:
        shape, dtype = [d or 1 for d in info.shape], info.dtype.numpy
        if dtype.kind == "f":
            found.append(rng.uniform(-1, 1, shape).astype(dtype))
        elif dtype.itemsize > 2 or dtype.kind == "b":
            found.append(rng.integers(0, 2, shape).astype(dtype))
        else:
            limits = np.iinfo(dtype)
            found.append(rng.integers(limits.min, limits.max, shape, endpoint=True).astype(dtype))
    return found


@cache
def _expected(path: Path) -> Mapping[int, list[Array]]:
    """The reference backend's results, by step."""
    package = onert.load(path)
    execution = onert.Execution(onert.compile(package, backends=("reference",)))
    operands = [operand for graph in package.model.subgraphs for operand in graph.operands]
    has_state = any(operand.variable or operand.type.dtype.is_handle for operand in operands)
    steps = range(len(SEEDS)) if has_state else range(1)
    found = {step: list(execution.run(_drawn(execution.program, SEEDS[step])).values()) for step in steps}
    return found if has_state else {step: found[0] for step, seed in enumerate(SEEDS) if seed == SEEDS[0]}


@needs_shared
@pytest.mark.long
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("path", MODELS, ids=lambda p: p.stem)
def test_a_model_gives_the_reference_results(path: Path, target: str) -> None:
    for threads in 1, 2:
        program = onert.compile(onert.load(path), target=target, num_threads=threads)
        outputs = run_fenced(program, [_drawn(program, seed) for seed in SEEDS])
        for step, expected in _expected(path).items():
            for mine, theirs in zip(outputs[step], expected, strict=True):
                agree(mine, theirs, ROUGH.get(path.stem, CLOSE), ON_AVERAGE.get(path.stem))


@needs_shared
@pytest.mark.long
@THREADS
@pytest.mark.parametrize("target", TARGETS)
def test_the_nnapi_cases_give_the_reference_results(target: str, threads: int) -> None:
    folder = SHARED / "conformance" / "nnapi"
    for case in (entry["case"] for entry in json.loads((folder / "index.json").read_text())):
        arrays = np.load(folder / f"{case}.npz")
        _compare(folder / f"{case}.tflite", lambda i, info, arrays=arrays: arrays[f"in{i}"], target, threads)


@needs_shared
@pytest.mark.long
@THREADS
@pytest.mark.parametrize("target", TARGETS)
def test_models_of_one_operation_give_the_reference_results(target: str, threads: int) -> None:
    for path in sorted((SHARED / "conformance" / "glow_tflite").glob("*.tflite")):
        if path.with_suffix(".out0").exists():
            _compare(path, lambda i, info, path=path: _raw(path.with_suffix(f".inp{i}"), info), target, threads)


def _raw(path: Path, info: onert.TensorInfo) -> Array:
    """One header byte, then raw little-endian elements."""
    elements: Array = np.frombuffer(path.read_bytes()[1:], info.dtype.numpy)
    return elements.reshape([d or 0 for d in info.shape])


def _compare(path: Path, given: Any, target: str, threads: int) -> None:
    results = []
    for options in ({"target": target, "num_threads": threads}, {"backends": ("reference",)}):
        execution = onert.Execution(onert.compile(onert.load(path), **options))
        inputs = [given(i, info) for i, info in enumerate(execution.program.inputs)]
        for position, array in enumerate(inputs):
            execution.set_input_shape(position, array.shape)
        results.append(list(execution.run(inputs).values()))
    for mine, theirs in zip(*results, strict=True):
        agree(mine, theirs, ONE_OPERATION)

"""A backend with twelve operations: legalization decomposes whole models into them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from shared_material import SHARED, needs_shared

import onert
from onert.backend import Program
from onert.backend.registry import load_backend
from onert.backend.testing import CLAIMS, TRIALS, Skipped, align, hold
from onert.compiler import Options, compile
from onert.exec import Execution
from onert.ir import Array, CompileError, Package
from onert.ir.ops.data_movement.permute import Permute

from .twelve import RUN, Twelve


def _tokens(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return rng.integers(0, 2, shape, np.int32)


def _reals(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return rng.standard_normal(shape).astype(np.float32)


WHOLE: dict[str, tuple[str, Callable[..., Array]]] = {
    "MobileNet V2": ("generated-keras/mobilenet_v2_1.0_224_fp32.tflite", _reals),
    "BERT": ("generated-keras/bert_small_4l_256h_s128_fp32.tflite", _tokens),
    "LSTM": ("tflite-micro/trained_lstm.tflite", _reals),
}


def _alone(package: Package) -> Program:
    """A program of the twelve operations; the builtin backend copies between memory spaces."""
    return compile(package, Options(), (Twelve(), load_backend("builtin")))


@needs_shared
@pytest.mark.parametrize("name", WHOLE)
def test_a_backend_of_twelve_operations_runs_a_whole_model(name: str) -> None:
    file, draw = WHOLE[name]
    package = onert.load(SHARED / "models" / file)
    program = _alone(package)
    operations = program.main.subgraph.operations
    assert {type(o.op) for o in operations} <= {*RUN, Permute}
    assert sum(step.backend == "twelve" for step in program.main.steps) == 1
    copies = sum(isinstance(o.op, Permute) for o in operations)
    assert copies == len(program.inputs) + len(program.outputs)  # neither state nor weights
    rng = np.random.default_rng(0)
    inputs = [draw(rng, info.shape) for info in program.inputs]
    execution, ours = Execution(program), Execution(onert.compile(package))
    for _ in range(2 if program.main.subgraph.state else 1):  # the state continues identically
        for found, expected in zip(execution.run(inputs).values(), ours.run(inputs).values(), strict=True):
            assert np.abs(found - expected).max() <= 1e-4 * np.abs(expected).max()


@needs_shared
@pytest.mark.parametrize("name", WHOLE)
def test_without_legalization_none_of_the_models_compiles(name: str) -> None:
    options = Options(disabled_passes=frozenset({"legalize"}))
    with pytest.raises(CompileError, match="have no backend that runs"):
        compile(onert.load(SHARED / "models" / WHOLE[name][0]), options, (Twelve(), load_backend("builtin")))


@needs_shared
def test_memory_of_the_backend_is_planned_as_well_as_host_memory() -> None:
    program = _alone(onert.load(SHARED / "models" / WHOLE["MobileNet V2"][0]))
    plan = program.memory_plan["twelve"]
    assert plan.size == plan.lower_bound
    assert plan.size < sum(placement.nbytes for placement in plan.placements.values()) / 4


def test_there_are_twelve_operations_and_they_pass_the_conformance_kit() -> None:
    assert len(RUN) == 12
    for claim in CLAIMS:
        hold(Twelve(), claim)
    held = 0
    for trial in TRIALS:
        try:
            align(Twelve(), trial)
        except Skipped:
            continue
        held += 1
    assert held >= 10

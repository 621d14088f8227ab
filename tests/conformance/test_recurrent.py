"""Models with state match LiteRT's reference kernels over ten steps, and start afresh after a reset."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shared_material import SHARED, needs_shared

import onert

pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert is not installed")

from litert_peer import run_again

STEPS = 10
MODELS = [
    "tflite-micro/trained_lstm",
    "tflite-micro/micro_speech_lstm",
    "dtln/model_quant_1",
    "lyra/lyragan",
    "esphome-mww/okay_nabu",
]
Arrays = list[np.ndarray[Any, Any]]


def _path(name: str) -> Path:
    return SHARED / "models" / f"{name}.tflite"


def _inputs(program: onert.Program, name: str) -> list[Arrays]:
    """Ten steps of random inputs."""
    rng = np.random.default_rng(len(name))
    found = []
    for _ in range(STEPS):
        step: Arrays = []
        for info in program.inputs:
            shape = tuple(d or 1 for d in info.shape)
            if info.dtype.is_integer:
                step.append(rng.integers(*info.dtype.limits, shape, info.dtype.numpy, endpoint=True))
            else:
                step.append(rng.uniform(-1, 1, shape).astype(info.dtype.numpy))
        found.append(step)
    return found


@needs_shared
@pytest.mark.parametrize("name", MODELS)
def test_ten_steps_with_state_match_litert(name: str) -> None:
    program = onert.compile(onert.load(_path(name)), backends=("reference",))
    steps = _inputs(program, name)
    execution = onert.Execution(program)
    for step, theirs in zip(steps, run_again(_path(name).read_bytes(), steps), strict=True):
        for mine, other in zip(execution.run(step).values(), theirs, strict=True):
            if mine.dtype.kind == "f":
                span = float(other.max() - other.min())
                np.testing.assert_allclose(mine, other, rtol=0, atol=1e-4 * span)
            else:
                np.testing.assert_array_equal(mine, other)


@needs_shared
@pytest.mark.parametrize("name", ["lyra/lyragan", "esphome-mww/okay_nabu"])
def test_state_persists_until_it_is_reset(name: str) -> None:
    program = onert.compile(onert.load(_path(name)), backends=("reference",))
    step = _inputs(program, name)[0]
    execution = onert.Execution(program)
    first, second = (next(iter(execution.run(step).values())).copy() for _ in range(2))
    execution.reset_variables()
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(next(iter(execution.run(step).values())), first)

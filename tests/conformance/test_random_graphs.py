"""Random models match LiteRT on every backend, with any passes, threads and sizes: bytes exactly, floats nearly."""

from __future__ import annotations

from typing import Any

import litert_peer as litert
import numpy as np
import pytest
from random_graphs import random_model

import onert
from onert.ir import Array

SEEDS = [*range(24), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(24, 120))]
"""Each seed determines its model: `random_model(seed, stored=...)` builds it again."""
WAYS: dict[str, dict[str, Any]] = {
    "reference": {"backends": ("reference",)},
    "reference, no passes": {"backends": ("reference",), "optimize": False},
    "default, 1 thread": {"num_threads": 1},
    "default, 2 threads": {"num_threads": 2},
    "default, Parallel": {"num_threads": 2, "executor": "Parallel"},
}


def _inputs(program: onert.Program, seed: int) -> list[Array]:
    rng = np.random.default_rng(seed)
    return [
        rng.integers(-128, 128, info.type.shape).astype(np.int8)
        if info.dtype.is_integer
        else rng.normal(size=info.type.shape).astype(np.float32)
        for info in program.inputs
    ]


@pytest.mark.parametrize("stored", [False, True], ids=["floats", "bytes"])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_model_matches_litert(seed: int, stored: bool) -> None:
    model = random_model(seed, stored=stored)
    package = onert.load(model)
    inputs = _inputs(onert.compile(package, backends=("reference",)), seed)
    theirs = litert.run(model, inputs)
    for way, options in WAYS.items():
        mine = list(onert.Execution(onert.compile(package, **options)).run(inputs).values())
        assert len(mine) == len(theirs)
        for number, (a, b) in enumerate(zip(mine, theirs, strict=True)):
            place = f"seed {seed}, {way}, output {number}"
            if stored:
                np.testing.assert_array_equal(a, b, err_msg=place)
            else:
                np.testing.assert_allclose(a, b, rtol=0, atol=1e-4 * max(float(np.abs(b).max()), 1e-3), err_msg=place)


def _answers(interpreter: Any, inputs: list[Array]) -> list[Array] | None:
    """The outputs of an interpreter that is resized for inputs; None if it refuses their shapes."""
    try:
        for details, array in zip(interpreter.get_input_details(), inputs, strict=True):
            interpreter.resize_tensor_input(details["index"], array.shape)
        interpreter.allocate_tensors()
    except (RuntimeError, ValueError):
        return None
    for details, array in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(details["index"], array)
    interpreter.invoke()
    return [interpreter.get_tensor(details["index"]) for details in interpreter.get_output_details()]


def _resized(shapes: list[tuple[int, ...]], rng: np.random.Generator, only_batch: bool) -> list[tuple[int, ...]]:
    """Other batches of inputs `[batch, height, width, channels]`, mostly the same one, and perhaps other sizes."""
    found = []
    for _, *size, channels in shapes:
        drawn = size if only_batch else rng.integers(3, 17, 2).tolist()
        found.append((int(rng.integers(1, 5)), *drawn, channels))
    return found if rng.random() < 0.3 else [(found[0][0], *shape[1:]) for shape in found]


@pytest.mark.parametrize("stored", [False, True], ids=["floats", "bytes"])
@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(8, 100))])
def test_a_random_model_matches_litert_at_other_sizes(seed: int, stored: bool) -> None:
    model, rng = random_model(seed, stored=stored), np.random.default_rng(seed)
    mine = onert.Interpreter(model_content=model, num_threads=1 + seed % 2)
    given = [tuple(int(d) for d in details["shape"]) for details in mine.get_input_details()]
    reference = litert.interpreter.OpResolverType.BUILTIN_REF
    for turn in range(7):
        shapes = _resized(given, rng, only_batch=turn < 3) if turn else given
        inputs = [
            rng.integers(-128, 128, shape).astype(np.int8) if stored else rng.normal(size=shape).astype(np.float32)
            for shape in shapes
        ]
        peer = litert.interpreter.Interpreter(model_content=model, experimental_op_resolver_type=reference)
        found = _answers(mine, inputs)
        expected = None if found is None else _answers(peer, inputs)  # LiteRT may crash where onert refuses
        if found is None or expected is None:
            assert turn, f"seed {seed}: its own sizes are refused"
            continue
        for a, b in zip(found, expected, strict=True):
            bound = 0 if stored else 1e-4 * max(float(np.abs(b).max(initial=0)), 1e-3)
            np.testing.assert_allclose(a, b, rtol=0, atol=bound, err_msg=f"seed {seed}, {shapes}")

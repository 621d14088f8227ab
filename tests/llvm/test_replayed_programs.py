"""Commands of whole programs touch only what they declare: side by side on different threads, and for any length."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import branchy_models
import numpy as np
import pytest
from control.loops import ONE, floats, loop, one_more
from length_models import MODELS, opened, weights
from random_graphs import random_model

import onert
from onert.ir import Package, Quantization, Subgraphs
from onert.ir.builder import Builder
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.control_flow.control import While
from onert_llvm.command.barriers import has_teams
from onert_llvm.runtime import native_kernel, stretched_kernel

from . import replay

LENGTHS = (9, 8, 7, 6, 5, 2, 9, 3)
"""The longest first, because that is what memory is allocated for."""
RUNS = 3
"""The number of runs after which commands have been run both in turn and side by side."""


@pytest.fixture
def replayed(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Replays all commands; returns for each list of commands whether some belong to certain threads."""
    found: list[bool] = []

    def runner(kernel: Any, commands: Any, program: Any, place: Any, *, adapts: bool = True) -> Any:
        found.append(has_teams(commands))
        return replay.runner(kernel, commands, program, place)

    for module in (native_kernel, stretched_kernel):
        monkeypatch.setattr(module, "runner", runner)
    return found


def _inputs(program: onert.Program) -> list[Any]:
    rng = np.random.default_rng(0)
    return [rng.uniform(-1, 1, info.shape).astype(info.dtype.numpy) for info in program.inputs]


def _loops() -> Package:
    """Branches that quantise rows; some end in a loop. Other layers before and after these have the same input."""
    rng = np.random.default_rng(0)

    def layer(b: Builder, x: int) -> int:
        scales = Quantization(tuple(rng.uniform(0.001, 0.002, 64).astype(np.float32).tolist()), (0,) * 64, 0)
        return b.add(FullyConnected(), x, b.constant(rng.integers(-127, 128, (64, 64)).astype(np.int8), scales))

    types = [ONE, floats(32, 64)]
    _, condition, body = loop(types, lambda b, given: [one_more(b, given[0]), layer(b, layer(b, given[1]))], limit=2)
    top = Builder()
    x, zero = top.input(types[1]), top.constant(np.int32(0))
    ends = [layer(top, x)]
    for _ in range(2):
        branch = x
        for _ in range(4):
            branch = layer(top, branch)
        ends += [branch, top.add_many(While(1, 2, tuple(types)), zero, branch)[1]]
    return Package((Subgraphs((top.subgraph([*ends, layer(top, x)]), condition, body)),))


def _branchy() -> Iterator[tuple[str, Package, bool]]:
    for name in ("detector_heads", "inception", "recurrent_pair"):
        yield name, getattr(branchy_models, name)(), True
    yield "loops", _loops(), True
    for seed in range(3):
        yield f"bytes {seed}", onert.load(random_model(seed, stored=True)), False


@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize(("package", "branches"), [pytest.param(*row[1:], id=row[0]) for row in _branchy()])
def test_commands_that_run_side_by_side_touch_what_they_declare(
    package: Package, branches: bool, threads: int, replayed: list[bool]
) -> None:
    program = onert.compile(package, num_threads=threads, executor="Parallel")
    execution = onert.Execution(program)
    alone = onert.Execution(onert.compile(package, num_threads=1)).run(_inputs(program))
    for _ in range(RUNS):
        for name, result in execution.run(_inputs(program)).items():
            np.testing.assert_array_equal(result, alone[name])
    assert any(replayed) or not branches


@pytest.mark.parametrize(("model", "shapes"), [pytest.param(*row[1:], id=row[0]) for row in MODELS])
def test_commands_for_all_lengths_touch_what_they_declare(
    model: Callable[[], Subgraphs], shapes: Callable[[int], Sequence[tuple[int, ...]]], replayed: list[bool]
) -> None:
    execution = onert.Execution(onert.compile(opened(model()), num_threads=2))
    for n in LENGTHS:
        execution.run({name: weights(*shape) for name, shape in zip("xy", shapes(n), strict=False)})
    assert replayed

"""The heterogeneous scheduler with two real backends: LLVM, and one that rounds to bytes."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from branchy_models import two_natures
from shared_material import REPOSITORY

import onert
from onert.backend import Backend
from onert.backend.registry import load_backend
from onert.compiler import Options
from onert.compiler import compile as compiled
from onert.compiler.scheduler.exec_time import ExecTimes, detail, merged, save, total_bytes
from onert.ir import Array, Op, Package
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.depthwise import DepthwiseConv2D
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.data_movement.reshape import Reshape

GIVEN = np.random.default_rng(0).normal(size=(1, 64, 64, 8)).astype(np.float32)


@pytest.fixture(scope="module")
def backends() -> list[Backend]:
    sys.path.insert(0, str(REPOSITORY / "docs" / "examples" / "dynamic_range"))
    try:
        other = load_backend("onert_dynamic_range:DynamicRange")
    finally:
        sys.path.pop(0)
    return [load_backend("llvm"), other, load_backend("builtin")]


@pytest.fixture(scope="module")
def package() -> Package:
    return two_natures()


Prices = dict[type[Op], tuple[float, float]]
"""Microseconds of a kind on LLVM and on the other backend."""

MEASURED: Prices = {Conv2D: (14.0, 22.0), DepthwiseConv2D: (5.0, 5.0), FullyConnected: (110.0, 13.0), Reshape: (1, 1)}
FLOATS_BEST: Prices = {Conv2D: (14.0, 22.0), DepthwiseConv2D: (5.0, 5.0), FullyConnected: (9.0, 13.0), Reshape: (1, 1)}
BYTES_BEST: Prices = {Conv2D: (14.0, 9.0), DepthwiseConv2D: (5.0, 5.0), FullyConnected: (110.0, 13.0), Reshape: (1, 1)}


def priced(package: Package, backends: list[Backend], prices: Prices) -> ExecTimes:
    graph = package.model.subgraphs[0]
    found = []
    for operation in graph.operations:
        types = graph.types(operation)
        for backend, time in zip(backends, prices[type(operation.op)], strict=False):
            found.append((backend.name, detail(operation.op, types), False, total_bytes(types), time))
    return merged(ExecTimes(), found)


def scheduled(package: Package, backends: list[Backend], prices: Prices, folder: Path, executor: str) -> onert.Program:
    save(priced(package, backends, prices), folder / "exec_time.json")
    options = Options(use_scheduler=True, workspace_dir=str(folder), num_threads=1, executor=executor)
    return compiled(package, options, backends)


def chosen(program: onert.Program) -> dict[str, set[str]]:
    """The backends that run each kind of operation."""
    found: dict[str, set[str]] = {}
    for step in program.main.steps:
        for operation in step.sequence.body:
            found.setdefault(operation.op.name(), set()).add(step.backend)
    return found


def answer(program: onert.Program) -> Array:
    (found,) = onert.Execution(program).run([GIVEN]).values()
    return found


def sums(program: onert.Program, prices: Prices) -> tuple[float, float, float]:
    """The time of all operations on each backend alone, and of each on its faster one."""
    each = [prices[type(o.op)] for o in program.main.subgraph.operations]
    return sum(a for a, _ in each), sum(b for _, b in each), sum(map(min, each))


@pytest.mark.parametrize("executor", ["Linear", "Parallel"])
@pytest.mark.parametrize(
    ("prices", "kinds"),
    [
        (MEASURED, {"Conv2D": {"llvm"}, "FullyConnected": {"dynamic_range"}}),
        (FLOATS_BEST, {"Conv2D": {"llvm"}, "FullyConnected": {"llvm"}}),
        (BYTES_BEST, {"Conv2D": {"dynamic_range"}, "FullyConnected": {"dynamic_range"}}),
    ],
    ids=["each its own", "floats", "bytes"],
)
def test_each_layer_runs_on_the_backend_that_was_measured_to_be_faster(
    package: Package,
    backends: list[Backend],
    prices: Prices,
    kinds: dict[str, set[str]],
    executor: str,
    tmp_path: Path,
) -> None:
    program = scheduled(package, backends, prices, tmp_path, executor)
    assert {kind: names for kind, names in chosen(program).items() if kind in kinds} == kinds
    llvm, other, best = sums(program, prices)
    (note,) = (note for note in program.notes if "by measured times" in note)
    assert f"a run takes {best:.0f} us; llvm alone {llvm:.0f} us, dynamic_range alone {other:.0f} us" in note


def test_the_mix_is_estimated_a_quarter_faster_than_either_backend(
    package: Package, backends: list[Backend], tmp_path: Path
) -> None:
    llvm, other, best = sums(scheduled(package, backends, MEASURED, tmp_path, "Linear"), MEASURED)
    assert min(llvm, other) >= 1.25 * best


def test_the_scheduled_mix_equals_the_same_assignment_by_hand(
    package: Package, backends: list[Backend], tmp_path: Path
) -> None:
    mixed = scheduled(package, backends, MEASURED, tmp_path, "Linear")
    by_hand = compiled(package, Options(num_threads=1, op_backend={"FullyConnected": "dynamic_range"}), backends)
    assert answer(mixed).tobytes() == answer(by_hand).tobytes()


def test_the_byte_backend_matches_floats_up_to_rounding(package: Package, backends: list[Backend]) -> None:
    floats = answer(compiled(package, Options(num_threads=1), backends[:1] + backends[2:]))
    stored = answer(compiled(package, Options(num_threads=1), backends[1:]))
    assert floats.tobytes() != stored.tobytes()
    assert np.abs(stored - floats).max() < 0.03 * np.ptp(floats)

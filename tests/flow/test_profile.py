"""Compiler options of flows: processor features, profiles and tasks."""

from __future__ import annotations

import re

import numpy as np
import pytest

import onert.flow as myelin
from onert.flow.cpu import allowed, host_features, target_of
from onert.ir import CompileError, ExecutionError
from onert.ir.process.cpus import available_cpus

ALL = ("sse", "sse2", "sse3", "sse4.1", "sse4.2", "avx", "avx2", "fma3", "avx512")
LEFT = {"-avx512": 8, "-avx512-fma3": 7, "-avx": 5, "avx2+fma3": 8, "sse4.2": 5, "-avx512+avx512-fma3+fma3": 8}
"""How many of these features are left, in this order."""


@pytest.mark.parametrize(("text", "count"), LEFT.items(), ids=LEFT.keys())
def test_removing_a_feature_removes_its_dependents_and_adding_one_adds_what_it_needs(
    text: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert allowed(text, frozenset(ALL)) == set(ALL[:count])
    monkeypatch.setattr("onert.flow.cpu.host_features", lambda: frozenset(ALL))
    assert target_of(text) == ("x86-64-v3" if "fma3" in ALL[:count] else "x86-64")
    assert target_of("+sse") == "native"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("-avx5", "'avx5' is not a processor feature, expected one of sse, sse2"),
        ("avx,sse", "given as 'avx,sse', expected e.g."),
        ("", "given as ''"),
        ("-sse2", "leave no target to generate code for, expected at least sse2"),
    ],
)
def test_invalid_feature_lists_are_rejected(text: str, sentence: str) -> None:
    with pytest.raises(CompileError, match=sentence):
        target_of(text)


def layer(task: int = 0) -> myelin.Flow:
    """Two parallel layers with a softmax; if `task` is given, the right one is in that task."""
    flow = myelin.Flow()
    f = flow.define("f")
    x = f.var("x", shape=[1, 32])
    sides = []
    for name in ("left", "right"):
        weight = f.array(f"W{name}", np.full((32, 32), 0.1, "f4"))
        product = f.matmul(x, weight)
        sides.append(f.tanh(product, name=name))
        if task and name == "right":
            for variable in (product, sides[-1]):
                assert variable.producer is not None
                variable.producer.add_attr("task", task)
    f.softmax(f.add(*sides), name="y")
    return flow


@pytest.mark.skipif("avx2" not in host_features(), reason="this processor has no AVX2")
def test_a_cell_uses_only_the_allowed_processor_features() -> None:
    wide, narrow = (myelin.Compiler(cpu=cpu, num_threads=1).compile(layer()).cell("f") for cpu in ("avx2+fma3", "sse2"))
    assert "%ymm" in wide.assembly()
    assert "%zmm" not in wide.assembly()
    assert "%ymm" not in narrow.assembly()
    results = []
    for cell in (wide, narrow):
        data = cell.instance()
        data["f/x"] = np.ones((1, 32), "f4")
        data.compute()
        results.append(np.array(data["f/y"]))
    np.testing.assert_allclose(*results, rtol=1e-5)


def test_a_profile_lists_the_steps_with_their_shares_of_the_time() -> None:
    net = myelin.Compiler(profiling=True, num_threads=1).compile(layer())
    assert "Profile of f, 0 runs with 1 threads" in net.profile()
    for _ in range(2):
        data = net.cell("f").instance()
        data["f/x"] = np.ones((1, 32), "f4")
        data.compute()
        data.compute()
    np.testing.assert_allclose(data["f/y"], np.full((1, 32), 1 / 32), rtol=1e-5)
    lines = net.cell("f").profile().splitlines()
    assert lines[0] == "Profile of f, 4 runs with 1 threads"
    assert lines[1].split() == ["percent", "accum", "%", "time", "us", "gflops", "kernel", "t", "step"]
    assert "MatMul[Flt llvm]" in lines[2]
    names = ["f/MatMul", "f/Reciprocal", "f/y"]
    assert [name for name in names if any(name in line for line in lines)] == names
    assert ("Entry & Exit" in lines[-2], "TOTAL" in lines[-1]) == (True, True)
    parts = [float(re.findall(r"[\d.]+(?=%)", line)[0]) for line in lines[2:-1]]
    assert sum(parts) == pytest.approx(100, abs=0.1)
    assert lines[-1].startswith("100.00%")


def test_asking_for_a_profile_without_profiling_is_an_error() -> None:
    net = myelin.Compiler().compile(layer())
    with pytest.raises(ExecutionError, match="cell 'f' has no profile: it was compiled without `profiling`"):
        net.profile()


def test_a_cell_with_tasks_uses_the_parallel_executor() -> None:
    plain, tasked = (myelin.Compiler(profiling=True).compile(layer(task)).cell("f") for task in (0, 3))
    assert (plain.program.executor, tasked.program.executor) == ("Linear", "Parallel")
    assert tasked.program.num_threads == min(2, available_cpus())
    assert {step.task for step in tasked.compiled.steps} == {0, 3}
    assert [step.outputs for step in tasked.compiled.steps if step.operation == "f/right"] == [("f/right:0",)]
    data = tasked.instance()
    data["f/x"] = np.ones((1, 32), "f4")
    data.compute()
    np.testing.assert_allclose(data["f/y"], np.full((1, 32), 1 / 32), rtol=1e-5)
    assert any(re.search(r"\] +3 +f/", line) for line in tasked.profile().splitlines())

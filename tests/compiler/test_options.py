"""Claims about options: who wins, and what is refused with which sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from onert.compiler import Options
from onert.compiler.cpus import available_cpus
from onert.ir import CompileError


def test_every_variable_is_read() -> None:
    options = Options.from_environment(
        {
            "BACKENDS": "llvm; reference",
            "EXECUTOR": "Dataflow",
            "CPU_MEMORY_PLANNER": "FirstFit",
            "OP_BACKEND_ALLOPS": "reference",
            "OP_BACKEND_Conv2D": "llvm",
            "OP_BACKEND_MAP": "0=reference;3=llvm",
            "NUM_THREADS": "3",
            "WORKSPACE_DIR": "/tmp/out",
            "TRACING_MODE": "1",
            "PROFILING_MODE": "true",
            "GRAPH_DOT_DUMP": "2",
            "HOME": "/root",
        }
    )
    assert options.backends == ("llvm", "reference")
    assert (options.executor, options.planner, options.num_threads) == ("Dataflow", "FirstFit", 3)
    assert options.op_backend_allops == "reference"
    assert options.op_backend == {"Conv2D": "llvm"}
    assert options.op_backend_map == {0: "reference", 3: "llvm"}
    assert (options.workspace_dir, options.tracing, options.profiling) == ("/tmp/out", True, True)
    assert options.graph_dot_dump == 2


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("EXECUTOR", "linear", "EXECUTOR is 'linear', expected one of Linear, Dataflow, Parallel"),
        (
            "CPU_MEMORY_PLANNER",
            "Worst",
            "CPU_MEMORY_PLANNER is 'Worst', expected one of Best, Bump, FirstFit, WIC, GreedyBySize, "
            "GreedyByBreadth, Recycle",
        ),
        ("NUM_THREADS", "0", "NUM_THREADS is 0, expected -1 or at least 1"),
        ("NUM_THREADS", "many", "NUM_THREADS is 'many', expected -1 or at least 1"),
        ("TRACING_MODE", "2", "TRACING_MODE is '2', expected one of 1, true, on, yes, 0, false, off, no"),
        ("OP_BACKEND_MAP", "a=cpu", "OP_BACKEND_MAP has 'a=cpu', expected INDEX=BACKEND pairs separated by ';'"),
        ("OP_BACKEND_MAP", "3", "OP_BACKEND_MAP has '3', expected INDEX=BACKEND pairs separated by ';'"),
        ("GRAPH_DOT_DUMP", "3", "GRAPH_DOT_DUMP is 3, expected 0, 1 or 2"),
    ],
)
def test_a_value_that_is_not_allowed_is_refused_by_name(name: str, value: str, sentence: str) -> None:
    with pytest.raises(CompileError) as caught:
        Options.from_environment({name: value})
    assert str(caught.value) == sentence


def test_options_made_directly_are_checked_too() -> None:
    with pytest.raises(CompileError, match="executor is 'Turbo', expected one of Linear, Dataflow, Parallel"):
        Options(executor="Turbo")
    with pytest.raises(CompileError, match="num_threads is 0, expected at least 1"):
        Options(num_threads=0)


def test_an_empty_variable_and_minus_one_thread_leave_the_default() -> None:
    assert Options.from_environment({"EXECUTOR": "", "NUM_THREADS": "-1"}) == Options.from_environment({})


def test_the_package_wins_over_the_environment_and_loses_to_explicit_choices() -> None:
    environ = {"EXECUTOR": "Dataflow", "CPU_MEMORY_PLANNER": "Bump", "NUM_THREADS": "2"}
    options = Options.from_environment(environ, planner="WIC")
    config = {"EXECUTOR": "Parallel", "CPU_MEMORY_PLANNER": "FirstFit"}
    merged = options.with_config(config)
    assert (merged.executor, merged.planner, merged.num_threads) == ("Parallel", "WIC", 2)
    assert merged.with_config(config) == merged


def test_a_direct_choice_wins_over_the_package_where_it_differs_from_the_default() -> None:
    merged = Options(planner="Bump").with_config({"EXECUTOR": "Parallel", "CPU_MEMORY_PLANNER": "FirstFit"})
    assert (merged.executor, merged.planner) == ("Parallel", "Bump")


def test_a_later_choice_wins_over_the_package_too() -> None:
    options = Options.from_environment({"EXECUTOR": "Dataflow"}).choose(executor="Linear")
    assert options.with_config({"EXECUTOR": "Parallel"}).executor == "Linear"


def quota_tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.mark.parametrize(
    ("membership", "files"),
    [
        ("0::/job\n", {"job/cpu.max": "100000 100000\n"}),
        ("0::/job/inner\n", {"job/cpu.max": "50000 100000\n", "job/inner/cpu.max": "max 100000\n"}),
        ("3:cpu,cpuacct:/job\n", {"cpu/job/cpu.cfs_quota_us": "60000\n", "cpu/job/cpu.cfs_period_us": "100000\n"}),
        ("1:cpu:/gone\n", {"cpu/cpu.cfs_quota_us": "100000\n", "cpu/cpu.cfs_period_us": "100000\n"}),
    ],
)
def test_a_cgroup_quota_limits_the_cpus(tmp_path: Path, membership: str, files: dict[str, str]) -> None:
    (tmp_path / "self").write_text(membership)
    assert available_cpus(quota_tree(tmp_path / "cgroup", files), tmp_path / "self") == 1


def test_without_a_quota_every_cpu_counts(tmp_path: Path) -> None:
    (tmp_path / "self").write_text("4:cpu:/\n0::/\n")
    files = {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}
    unlimited = available_cpus(tmp_path, tmp_path / "nothing")
    assert available_cpus(quota_tree(tmp_path / "cgroup", files), tmp_path / "self") == unlimited >= 1

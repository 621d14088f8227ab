"""Options: precedence, and error messages for invalid values."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from shared_material import REPOSITORY

from onert.compiler import Options
from onert.compiler.options import recordings
from onert.compiler.settings import config_keys as variables
from onert.ir import CompileError, OnertWarning
from onert.ir.process.cpus import available_cpus


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
            "ENABLE_LOG": "1",
            "TRACE_FILEPATH": "out/trace.json",
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
    assert (options.log, options.trace_filepath) == (True, "out/trace.json")
    assert Options.from_environment({"ONERT_LOG_ENABLE": "1"}).log


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
        ("NUM_THREADS", "0", "NUM_THREADS is 0, expected -1 or 1 to 1024"),
        ("NUM_THREADS", "many", "NUM_THREADS is 'many', expected -1 or 1 to 1024"),
        ("TRACING_MODE", "2", "TRACING_MODE is '2', expected one of 1, true, on, yes, 0, false, off, no"),
        ("OP_BACKEND_MAP", "a=cpu", "OP_BACKEND_MAP has 'a=cpu', expected INDEX=BACKEND pairs separated by ';'"),
        ("OP_BACKEND_MAP", "3", "OP_BACKEND_MAP has '3', expected INDEX=BACKEND pairs separated by ';'"),
        ("GRAPH_DOT_DUMP", "3", "GRAPH_DOT_DUMP is 3, expected 0, 1 or 2"),
        ("ENABLE_LOG", "2", "ENABLE_LOG is '2', expected one of 1, true, on, yes, 0, false, off, no"),
        ("FP16_ENABLE", "half", "FP16_ENABLE is 'half', expected one of 1, true, on, yes, 0, false, off, no"),
        ("OP_SEQ_MAX_NODE", "few", "OP_SEQ_MAX_NODE is 'few', expected an integer"),
    ],
)
def test_an_invalid_value_is_rejected_with_the_name_of_its_variable(name: str, value: str, sentence: str) -> None:
    with pytest.raises(CompileError) as caught:
        Options.from_environment({name: value})
    assert str(caught.value) == sentence


NO_EFFECT = {
    "INTERNAL_OUTPUT_ALLOC": ("1", "0", "always allocated internally"),
    "USE_MMAPED_DATA": ("true", "false", "never mapped"),
    "FP16_ENABLE": ("1", "0", "no backend computes float32 models in float16"),
    "DELETE_CACHED_DATA": ("1", "0", "no other copy"),
    "DISABLE_COMPILE": ("1", "0", "OP_BACKEND_ALLOPS=reference"),
    "OP_SEQ_MAX_NODE": ("4", "0", "Dataflow and Parallel"),
    "RUY_THREADS": ("2", "-1", "NUM_THREADS"),
    "XNNPACK_THREADS": ("2", "-1", "NUM_THREADS"),
    "ACL_LAYOUT": ("NCHW", "", "layout"),
    "NCNN_LAYOUT": ("NCHW", "", "layout"),
}


@pytest.mark.parametrize(("name", "row"), NO_EFFECT.items(), ids=NO_EFFECT.keys())
def test_a_variable_of_one_without_effect_is_accepted_with_a_warning_that_says_why(
    name: str, row: tuple[str, str, str]
) -> None:
    requested, default, why = row
    with pytest.warns(OnertWarning) as caught:
        assert Options.from_environment({name: requested}) == Options.from_environment({})
    assert [type(warning.message) for warning in caught] == [OnertWarning]
    assert str(caught[0].message).startswith(f"{name}={requested} has no effect: ")
    assert why in str(caught[0].message)
    assert caught[0].filename == __file__
    Options.from_environment({name: default})  # any warning would fail the test


def test_every_variable_of_one_is_known() -> None:
    """Config.lst of ONE, except OP_BACKEND_<Op>."""
    one = (
        "GRAPH_DOT_DUMP BACKENDS OP_BACKEND_ALLOPS OP_BACKEND_MAP ENABLE_LOG CPU_MEMORY_PLANNER EXECUTOR "
        "PROFILING_MODE USE_SCHEDULER TRACING_MODE MINMAX_DUMP INTERNAL_OUTPUT_ALLOC FP16_ENABLE NUM_THREADS "
        "USE_MMAPED_DATA WORKSPACE_DIR"
    )
    assert set(one.split()) <= variables._VARIABLES.keys() | variables._WITHOUT_EFFECT.keys()


def test_the_environment_sets_the_file_of_the_trace() -> None:
    assert recordings(Options.from_environment({"TRACE_FILEPATH": "trace.json"}))["trace"] == "trace.json"


def test_the_page_on_options_lists_every_variable() -> None:
    page = (REPOSITORY / "docs" / "options.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`[A-Z0-9`_, ]+`) \|", page, re.MULTILINE)
    names = {name for row in rows for name in re.findall(r"\w+", row)}
    assert names == variables._VARIABLES.keys() | variables._WITHOUT_EFFECT.keys()


def test_options_constructed_directly_are_checked() -> None:
    with pytest.raises(CompileError, match="executor is 'Turbo', expected one of Linear, Dataflow, Parallel"):
        Options(executor="Turbo")
    with pytest.raises(CompileError, match="num_threads is 0, expected 1 to 1024"):
        Options(num_threads=0)


def test_an_empty_variable_and_minus_one_threads_mean_the_default() -> None:
    assert Options.from_environment({"EXECUTOR": "", "NUM_THREADS": "-1"}) == Options.from_environment({})


def test_the_package_wins_over_the_environment_and_loses_to_explicit_choices() -> None:
    environ = {"EXECUTOR": "Dataflow", "CPU_MEMORY_PLANNER": "Bump", "NUM_THREADS": "2"}
    options = Options.from_environment(environ, planner="WIC")
    config = {"EXECUTOR": "Parallel", "CPU_MEMORY_PLANNER": "FirstFit"}
    merged = options.with_config(config)
    assert (merged.executor, merged.planner, merged.num_threads) == ("Parallel", "WIC", 2)
    assert merged.with_config(config) == merged


def test_a_direct_choice_other_than_the_default_wins_over_the_package() -> None:
    merged = Options(planner="Bump").with_config({"EXECUTOR": "Parallel", "CPU_MEMORY_PLANNER": "FirstFit"})
    assert (merged.executor, merged.planner) == ("Parallel", "Bump")


def test_a_choice_made_later_wins_over_the_package() -> None:
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
        (
            "3:cpu,cpuacct:/job\n",
            {"cpu,cpuacct/job/cpu.cfs_quota_us": "60000\n", "cpu,cpuacct/job/cpu.cfs_period_us": "100000\n"},
        ),
        ("1:cpu:/gone\n", {"cpu/cpu.cfs_quota_us": "100000\n", "cpu/cpu.cfs_period_us": "100000\n"}),
    ],
)
def test_a_cgroup_quota_limits_the_cpus(tmp_path: Path, membership: str, files: dict[str, str]) -> None:
    (tmp_path / "self").write_text(membership)
    assert available_cpus(quota_tree(tmp_path / "cgroup", files), tmp_path / "self") == 1


def test_without_a_quota_every_cpu_is_available(tmp_path: Path) -> None:
    (tmp_path / "self").write_text("4:cpu:/\n0::/\n")
    files = {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}
    unlimited = available_cpus(tmp_path, tmp_path / "nothing")
    assert available_cpus(quota_tree(tmp_path / "cgroup", files), tmp_path / "self") == unlimited >= 1


PREFIXES = {
    "ours": ({"ONERT_EXECUTOR": "Dataflow"}, "Dataflow", "Dataflow"),
    "ONE's": ({"EXECUTOR": "Dataflow"}, "Linear", "Dataflow"),
    "both": ({"EXECUTOR": "Dataflow", "ONERT_EXECUTOR": "Parallel"}, "Parallel", "Parallel"),
    "neither": ({"ONERT_ONERT_EXECUTOR": "Parallel"}, "Linear", "Linear"),
}


@pytest.mark.parametrize(("environ", "own", "one"), PREFIXES.values(), ids=PREFIXES.keys())
def test_only_variables_with_the_library_prefix_are_read_from_the_process(
    monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], own: str, one: str
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert Options.from_environment().executor == own
    assert Options.from_environment(environ).executor == one


def test_errors_name_a_prefixed_variable_as_it_was_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONERT_NUM_THREADS", "many")
    monkeypatch.setenv("ONERT_OP_BACKEND_ADD", "reference")
    with pytest.raises(CompileError, match=r"^ONERT_NUM_THREADS is 'many'"):
        Options.from_environment()
    monkeypatch.setenv("ONERT_NUM_THREADS", "2")
    monkeypatch.setenv("ONERT_LOG_ENABLE", "1")
    assert Options.from_environment() == Options(
        num_threads=2, op_backend={"ADD": "reference"}, log=True, fixed=frozenset()
    )

"""What a package's own configuration may choose: installed backends and harmless options, nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from attrs import fields

from onert.compiler import Options, package_options
from onert.compiler.settings.config_keys import NAMES
from onert.compiler.settings.package_config import PERMITTED
from onert.ir import ModelError
from onert.ir.process.cpus import MAX_THREADS, available_cpus

ALLOWED: dict[str, tuple[str, str, Any]] = {
    "BACKENDS": ("reference;llvm", "backends", ("reference", "llvm")),
    "OP_BACKEND_ALLOPS": ("reference", "op_backend_allops", "reference"),
    "OP_BACKEND_MAP": ("0=reference", "op_backend_map", {0: "reference"}),
    "OP_BACKEND_Conv2D": ("reference", "op_backend", {"Conv2D": "reference"}),
    "EXECUTOR": ("Dataflow", "executor", "Dataflow"),
    "CPU_MEMORY_PLANNER": ("Bump", "planner", "Bump"),
    "NUM_THREADS": ("1", "num_threads", 1),
}
"""A value for every variable that a package may set, and the option it sets."""

BACKEND_VARIABLES = {
    "BACKENDS": "{}",
    "OP_BACKEND_ALLOPS": "{}",
    "OP_BACKEND_MAP": "0={}",
    "OP_BACKEND_Conv2D": "{}",
}
NO_BACKENDS = [
    "os:abort",
    "http.server:test",
    "onert_reference:Reference",
    "onert_reference",
    "pkg.evil:B",
    ":",
    "llvm:",
    "/tmp/evil.py",
    "../evil",
    "Reference",
    "nobody",
]


def test_every_variable_is_either_permitted_or_rejected() -> None:
    """A variable added later is rejected until it is listed."""
    assert PERMITTED.keys() | {"OP_BACKEND_Conv2D"} == ALLOWED.keys()
    assert PERMITTED.keys() <= NAMES
    for variable in NAMES - PERMITTED.keys():
        for value in ("", "0", "1", "/tmp/victim"):
            with pytest.raises(ModelError, match=f"sets {variable}, which only the user may set"):
                package_options({variable: value})


@pytest.mark.parametrize(
    "variable",
    [
        "WORKSPACE_DIR",
        "TRACING_MODE",
        "PROFILING_MODE",
        "MINMAX_DUMP",
        "GRAPH_DOT_DUMP",
        "TRACE_FILEPATH",
        "ENABLE_LOG",
    ],
)
def test_no_variable_that_writes_files_is_permitted(variable: str) -> None:
    assert variable in NAMES - PERMITTED.keys()


@pytest.mark.parametrize(("variable", "case"), ALLOWED.items(), ids=ALLOWED.keys())
def test_a_permitted_variable_becomes_its_option(variable: str, case: tuple[str, str, Any]) -> None:
    value, option, expected = case
    assert package_options({variable: value}) == {option: expected}
    assert getattr(Options().with_config({variable: value}), option) == expected


def test_no_other_option_can_be_set() -> None:
    """An option's own name has no meaning in a configuration."""
    assert Options().with_config({each.name: "1" for each in fields(Options)}) == Options()
    assert {option for _, option, _ in ALLOWED.values()} < {each.name for each in fields(Options)}


@pytest.mark.parametrize("name", NO_BACKENDS)
@pytest.mark.parametrize(("variable", "form"), BACKEND_VARIABLES.items(), ids=BACKEND_VARIABLES.keys())
def test_a_backend_that_is_not_installed_is_rejected(variable: str, form: str, name: str) -> None:
    with pytest.raises(ModelError, match="expected an installed backend") as caught:
        Options().with_config({variable: form.format(name)})
    assert variable in str(caught.value)
    assert repr(name) in str(caught.value)


def test_one_invalid_backend_of_several_is_rejected() -> None:
    with pytest.raises(ModelError, match="'os:abort', expected an installed backend"):
        package_options({"BACKENDS": "llvm; os:abort"})


@pytest.mark.parametrize("variable", BACKEND_VARIABLES)
def test_the_user_may_name_import_paths(variable: str) -> None:
    options = Options.from_environment({variable: BACKEND_VARIABLES[variable].format("pkg.mine:Backend")})
    assert "pkg.mine:Backend" in str(options)


def test_an_installed_plugin_may_be_named_but_not_by_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "acme-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[onert.backends]\nacme = onert_acme:Acme\na:b = x:y\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert package_options({"BACKENDS": "acme"}) == {"backends": ("acme",)}
    for name in ("onert_acme:Acme", "a:b"):
        with pytest.raises(ModelError, match="expected an installed backend"):
            package_options({"BACKENDS": name})


def test_a_package_is_rejected_even_if_the_user_chose_a_backend() -> None:
    with pytest.raises(ModelError, match="expected an installed backend"):
        Options(backends=("reference",)).with_config({"BACKENDS": "os:abort"})


@pytest.mark.parametrize(
    ("value", "threads"),
    [("-1", None), ("1", 1), (str(MAX_THREADS), available_cpus()), (str(available_cpus() + 1), available_cpus())],
)
def test_the_number_of_threads_is_limited_to_the_available_cpus(value: str, threads: int | None) -> None:
    assert package_options({"NUM_THREADS": value}).get("num_threads") == threads


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"NUM_THREADS": str(MAX_THREADS + 1)}, f"NUM_THREADS is {MAX_THREADS + 1}, expected -1 or 1 to {MAX_THREADS}"),
        ({"NUM_THREADS": "9" * 4000}, "NUM_THREADS is 9999"),
        ({"NUM_THREADS": "9" * 5000}, "NUM_THREADS is '999"),
        ({"NUM_THREADS": "0"}, "NUM_THREADS is 0, expected -1 or 1 to 1024"),
        ({"NUM_THREADS": "1e9"}, "NUM_THREADS is '1e9'"),
        ({"NUM_THREADS": "inf"}, "NUM_THREADS is 'inf'"),
        ({"OP_BACKEND_MAP": f"{'9' * 5000}=llvm"}, "OP_BACKEND_MAP has '999"),
        ({"EXECUTOR": "os:abort"}, "EXECUTOR is 'os:abort', expected one of"),
        ({"CPU_MEMORY_PLANNER": "../evil"}, "CPU_MEMORY_PLANNER is '../evil', expected one of"),
    ],
)
def test_invalid_numbers_and_names_are_rejected_in_one_line(config: dict[str, str], message: str) -> None:
    with pytest.raises(ModelError, match=message) as caught:
        Options().with_config(config)
    assert "\n" not in str(caught.value)


def test_unknown_keys_are_ignored() -> None:
    config = {"PYTHONPATH": "/tmp/evil", "LD_PRELOAD": "/tmp/evil.so", "backends": "os:abort", "EXCUTOR": "Linear"}
    assert package_options(config) == {}

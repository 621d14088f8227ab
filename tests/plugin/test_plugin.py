"""Backend plugins: an installed one is found by its name, and a broken one breaks nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from plugin.installing import pip_install, shell
from shared_material import REPOSITORY

import onert
from onert.backend.registry import available, load_backend, load_backends
from onert.ir import BackendError, DType, Package, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.tools import run

SOURCE = Path(__file__).parent / "onert_acme"
DIGITS = REPOSITORY / "nnpackage" / "examples" / "digits_float"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory into which pip has installed the example."""
    target = tmp_path_factory.mktemp("site")
    pip_install(SOURCE, target)
    return target


def test_an_installed_plugin_is_found_by_its_entry_point_and_runs(site: Path) -> None:
    code = """
import numpy as np, onert
from onert.ir import DType, Package, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
b = Builder()
x, y = (b.input(TensorType(DType.FLOAT32, (4,)), name) for name in "xy")
total = b.add(Binary(BinaryKind.ADD), x, y)
package = Package((b.model([b.add(Binary(BinaryKind.MUL), total, b.add(Binary(BinaryKind.MAXIMUM), x, y))]),))
program = onert.compile(package, backends=("acme",))
(out,) = onert.Execution(program).run([np.arange(4, dtype=np.float32), np.ones(4, np.float32)]).values()
print([step.backend for step in program.main.steps], out.tolist())
"""
    done = shell(site, "-c", code)
    assert done.stderr == ""
    assert done.stdout.strip() == "['acme', 'reference'] [1.0, 2.0, 6.0, 12.0]"


def test_the_command_line_accepts_a_plugin_by_name(site: Path) -> None:
    done = shell(site, "-m", "onert.tools.run", str(DIGITS), "--backends", "acme;llvm", "--topk", "1")
    assert done.returncode == 0, done.stderr


def test_a_plugin_is_not_used_unless_requested(site: Path) -> None:
    code = "from onert.backend.registry import load_backends; print([b.name for b in load_backends()])"
    assert shell(site, "-c", code).stdout.strip() == "['llvm', 'builtin', 'reference']"


def test_a_plugin_passes_the_conformance_kit_from_the_shell(site: Path) -> None:
    done = shell(site, "-m", "onert.backend.testing", "acme")
    assert done.returncode == 0, done.stdout
    assert re.search(r"^held +MAXIMUM f32 \(2, 3, 4\)$", done.stdout, re.MULTILINE)
    assert done.stdout.splitlines()[-1].endswith(" 0 FAILED")


def test_no_backend_is_imported_before_it_is_chosen(site: Path) -> None:
    code = """
import sys, onert
from onert.backend.registry import available
print("acme" in available(), "onert_acme" in sys.modules, "onert_llvm" in sys.modules)
"""
    assert shell(site, "-c", code).stdout.strip() == "True False False"


# ---- broken plugins


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Installs a distribution of one module that registers backends by entry point."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def make(distribution: str, code: str, **entries: str) -> None:
        (tmp_path / f"{distribution}.py").write_text(code)
        folder = tmp_path / f"{distribution}-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
        lines = [f"{name} = {distribution}:{attribute}" for name, attribute in entries.items()]
        (folder / "entry_points.txt").write_text("\n".join(["[onert.backends]", *lines, ""]))

    return make


def test_backends_are_found_when_their_packages_are_installed_later(install: Callable[..., None]) -> None:
    for number in range(3):
        install(f"later_{number}", good(f"later_{number}"), **{f"later_{number}": "Made"})
        assert f"later_{number}" in available()
        assert f"later_{number + 1}" not in available()


def good(name: str, more: str = "") -> str:
    """The code of a backend that supports nothing."""
    return f"""
from onert.backend import Backend
class Made(Backend):
    name = {name!r}
    api_version = 2
    {more}
    def supports(self, operation, types):
        return "nothing is run"
"""


def the_rest_works() -> None:
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (2,)), "x")
    package = Package((b.model([b.add(Binary(BinaryKind.ADD), x, x)]),))
    (out,) = onert.Execution(onert.compile(package)).run([np.ones(2, np.float32)]).values()
    assert out.tolist() == [2.0, 2.0]


@pytest.mark.parametrize(
    ("module", "code", "attribute", "sentence"),
    [
        ("p_syntax", "def", "Made", "backend 'p_syntax' at p_syntax:Made cannot be loaded: SyntaxError"),
        ("p_import", "import nowhere_at_all", "Made", "ModuleNotFoundError: No module named 'nowhere_at_all'"),
        ("p_raises", "1 / 0", "Made", "ZeroDivisionError: division by zero"),
        ("p_leaves", "raise SystemExit(3)", "Made", "backend 'p_leaves' at p_leaves:Made cannot be loaded: SystemExit"),
        ("p_lacks", "", "Made", "AttributeError: module 'p_lacks' has no attribute 'Made'"),
        (
            "p_init",
            good("p_init", "def __init__(self): raise ValueError('no licence')"),
            "Made",
            "ValueError: no licence",
        ),
        ("p_int", "Made = int", "Made", "is a int, expected an onert.backend.Backend"),
        ("p_old", good("p_old", "api_version = 0"), "Made", "made for version 0 of the contract, this is 2"),
        (
            "p_silent",
            good("p_silent").replace("api_version = 2", ""),
            "Made",
            "does not say which version of the contract it is made for; this is 2: write api_version = 2",
        ),
        ("p_new", good("p_new", "api_version = 99"), "Made", "made for version 99 of the contract, this is 2"),
        (
            "p_alias",
            good("other"),
            "Made",
            "backend 'p_alias' at p_alias:Made calls itself 'other', expected 'p_alias'",
        ),
        ("p_unnamed", good("x", "name = None"), "Made", "backend 'p_unnamed' at p_unnamed:Made has no name"),
    ],
)
def test_a_broken_plugin_is_reported_in_one_sentence_and_the_rest_works(
    install: Callable[..., None], module: str, code: str, attribute: str, sentence: str
) -> None:
    install(module, code, **{module: attribute})
    with pytest.raises(BackendError) as caught:
        load_backends([module])
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)
    the_rest_works()
    assert load_backend("reference").name == "reference"


def test_two_plugins_of_one_name_are_a_clash_that_names_both(install: Callable[..., None]) -> None:
    install("p_one", good("twice"), twice="Made")
    install("p_two", good("twice"), twice="Made")
    with pytest.raises(
        BackendError, match=r"several backends are called 'twice': .* and .*; name one by its import path"
    ):
        load_backends(["twice"])
    assert load_backend("p_two:Made").name == "twice"
    with pytest.raises(BackendError, match="two backends call themselves 'twice'; choose one of them"):
        load_backends(["p_one:Made", "p_two:Made"])
    the_rest_works()


@pytest.mark.parametrize("name", ["llvm", "reference", "builtin"])
def test_a_plugin_does_not_replace_a_built_in_backend_of_the_same_name(install: Callable[..., None], name: str) -> None:
    install("p_thief", "raise RuntimeError('stolen')", **{name: "Made"})
    assert len(available()[name]) == 2
    the_rest_works()
    with pytest.raises(BackendError, match=f"several backends are called '{name}'"):
        load_backends([name])


def test_a_plugin_s_runtime_failure_names_the_plugin(install: Callable[..., None]) -> None:
    code = (
        good("p_fails").replace('return "nothing is run"', "return None")
        + "    def generate(self, s, t): return 1 / 0\n"
    )
    install("p_fails", code, p_fails="Made")
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (2,)), "x")
    package = Package((b.model([b.add(Binary(BinaryKind.ADD), x, x)]),))
    with pytest.raises(BackendError, match=r"backend p_fails failed on .*: ZeroDivisionError: division by zero"):
        onert.compile(package, backends=("p_fails",))
    the_rest_works()


def test_profiling_all_backends_skips_those_that_cannot_be_loaded(
    install: Callable[..., None], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    install("p_broken", "1 / 0", p_broken="Made")
    monkeypatch.setenv("WORKSPACE_DIR", str(tmp_path / "measured"))
    assert run.main([str(DIGITS), "--profile-backends"]) == 0
    out = capsys.readouterr().out
    assert "backend 'p_broken' at p_broken:Made cannot be loaded: ZeroDivisionError" in out
    assert (tmp_path / "measured" / "exec_time.json").exists()


# ---- the documentation


def test_the_documented_backend_is_complete_in_under_80_lines() -> None:
    page = (REPOSITORY / "docs" / "writing_a_backend.md").read_text(encoding="utf-8")
    first = re.search(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert first is not None
    assert "def supports" in first[1]
    assert "def generate" in first[1]
    assert "def bind" in first[1]
    assert len(first[1].splitlines()) < 80

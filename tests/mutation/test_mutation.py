"""The table of planted faults matches the code, and its runner distinguishes noticed faults from others."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from attrs import evolve
from shared_material import REPOSITORY

from mutation.run import attempt, copy_tree, failed
from mutation.sample import drawn, places
from mutation.table import Fault, faults, noticed, record, summary

FAULTS = faults()
PACKAGES = {
    "onert/ir", "onert/compiler", "onert/compiler/passes", "onert/backend/planner", "onert/compiler/scheduler",
    "onert/exec", "onert/exec/executors", "onert/exec/observers", "onert/bundle", "onert/runtime", "onert/tools",
    "onert/frontend", "onert/frontend/nnpackage", "onert/frontend/tflite_schema", "onert/backend",
    "backends/onert_llvm/codegen", "backends/onert_llvm/codegen/native", "backends/onert_llvm/irbuilder",
    "backends/onert_llvm/kernels/contraction", "backends/onert_llvm/kernels/arithmetic",
    "backends/onert_llvm/lower/contraction", "backends/onert_llvm/lower/data_movement",
    "backends/onert_llvm/lower/elementwise", "backends/onert_llvm/runtime", "backends/onert_llvm/schedule",
    "backends/onert_reference", "backends/onert_builtin",
}  # fmt: skip


@pytest.mark.parametrize("file", sorted({fault.file for fault in FAULTS}))
def test_faults_fit_their_file_once_and_name_existing_tests(file: str) -> None:
    original = (REPOSITORY / file).read_text(encoding="utf-8")
    for fault in (fault for fault in FAULTS if fault.file == file):
        changed = fault.text(REPOSITORY)
        assert changed != original, fault.name
        assert fault.breaks, fault.name
        if file.endswith(".py"):
            ast.parse(changed, fault.name)
        assert fault.tests, fault.name
        for test in fault.tests:
            path, _, function = test.partition("::")
            assert (REPOSITORY / path).exists(), fault.name
            text = (REPOSITORY / path).read_text(encoding="utf-8") if function else ""
            assert f"def {function.partition('[')[0]}(" in text or not function, fault.name


def test_there_are_many_faults_and_some_in_every_package() -> None:
    assert len(FAULTS) >= 150
    assert len({(f.file, f.old, f.new) for f in FAULTS}) == len(FAULTS)
    assert {str(folder) for f in FAULTS for folder in Path(f.file).parents} >= PACKAGES
    assert sum(bool(f.survives) for f in FAULTS) <= 0.05 * len(FAULTS)


def test_a_text_that_does_not_occur_exactly_once_is_refused() -> None:
    for old in ("no such text", "def "):
        with pytest.raises(ValueError, match=r"times in onert/ir/quant\.py, expected once"):
            evolve(FAULTS[0], file="onert/ir/quant.py", old=old).text(REPOSITORY)


def _write_small_tree(tree: Path) -> None:
    """Write a tree of one file, a test that checks it, and one that does not."""
    (tree / "tests").mkdir()
    (tree / "half.py").write_text("def away(x: float) -> int:\n    return int(x + 0.5)\n")
    (tree / "tests" / "test_half.py").write_text(
        "from half import away\n\ndef test_a_half():\n    assert away(0.5) == 1\n"
    )
    (tree / "tests" / "test_other.py").write_text("def test_another():\n    assert True\n")
    profile = "from hypothesis import settings\n\nsettings.register_profile('unshrunk')\n"
    (tree / "tests" / "conftest.py").write_text(profile)


HALF, OTHER = "tests/test_half.py::test_a_half", "tests/test_other.py::test_another"


def test_the_runner_distinguishes_noticed_faults_from_others(tmp_path: Path) -> None:
    _write_small_tree(tmp_path)
    found = Fault("", 1, "half.py", "", "x + 0.5", "x + 0.4", (HALF,))
    equal = Fault("", 2, "half.py", "", "x + 0.5", "0.5 + x", (HALF,))
    before = (tmp_path / "half.py").read_bytes()
    assert attempt(tmp_path, found).noticed
    assert (tmp_path / "half.py").read_bytes() == before
    assert not attempt(tmp_path, equal, first=HALF).noticed
    after = attempt(tmp_path, found, first=OTHER)
    assert after.noticed
    assert after.by.startswith(HALF)
    again = attempt(tmp_path, evolve(found, tests=("tests/nowhere.py",)), first=HALF)
    assert again.noticed
    assert again.by.startswith(HALF)
    broken = evolve(found, new="x + '0.5', away(", tests=("tests/test_half.py::test_a_half",))
    assert attempt(tmp_path, broken, first=HALF).by.startswith("tests/test_half.py")
    with pytest.raises(RuntimeError, match="pytest ended with status"):
        attempt(tmp_path, evolve(found, tests=("tests/nowhere.py",)), first="tests/nowhere.py::test_gone")


def test_a_fault_in_a_copy_of_the_repository_is_noticed_there(tmp_path: Path) -> None:
    copy_tree(tmp_path)
    test = "tests/ir/test_numbers.py::test_only_halves_are_rounded_away_from_zero"
    fault = Fault("", 1, "onert/ir/quant.py", "", ">= 0.5, np.sign(x), 0)", "> 0.5, np.sign(x), 0)", (test,))
    assert attempt(tmp_path, fault).by.startswith(test)


REPORTS = {
    "failed": (
        "tests/a.py::test_b PASSED\nFAILED tests/a.py::test_c[1 x] - assert 1 == 2\n",
        "tests/a.py::test_c[1 x]",
    ),
    "not imported": ("ERROR tests/a.py\n", "tests/a.py"),
    "killed": ("tests/a.py::test_b PASSED\ntests/a.py::test_c[x] Fatal Python error", "tests/a.py::test_c[x]"),
    "killed with spaces": (
        "tests/a.py::test_b PASSED\ntests/a.py::test_c[1 x-y] Fatal Python error",
        "tests/a.py::test_c[1 x-y]",
    ),
    "silent": ("out of memory\n", ""),
}


@pytest.mark.parametrize(("report", "test"), REPORTS.values(), ids=REPORTS)
def test_the_failing_test_is_found_in_the_report(report: str, test: str) -> None:
    assert failed(report) == test


def test_recorded_tests_are_read_back_in_the_order_of_the_table(tmp_path: Path) -> None:
    path = tmp_path / "noticed.txt"
    record({FAULTS[1].key: "tests/a.py::test_b[c d]", FAULTS[0].key: "tests/a.py", "gone": "tests/b.py"}, path)
    assert list(noticed(path).items()) == [(FAULTS[0].key, "tests/a.py"), (FAULTS[1].key, "tests/a.py::test_b[c d]")]


def test_recorded_tests_and_faults_still_exist() -> None:
    keys = {fault.key for fault in FAULTS}
    assert len(keys) == len(FAULTS)
    for key, test in noticed().items():
        path, _, function = test.partition("::")
        assert key in keys
        assert f"def {function.partition('[')[0]}(" in (REPOSITORY / path).read_text(encoding="utf-8")


def test_random_changes_are_single_and_valid_and_spare_annotations() -> None:
    source = "def f(a: int | None, b: int) -> bool | None:\n    if a < b and a != 0:\n        return a + 1\n"
    source += "    return not b\n"
    found = places(source)
    made = {place: [change.made(source) for change in changes] for place, changes in found.items()}
    lines = source.splitlines()
    for (line, _), texts in made.items():
        assert line > 1
        for text in texts:
            ast.parse(text)
            assert [i for i, (old, new) in enumerate(zip(lines, text.splitlines(), strict=True), 1) if old != new] == [
                line
            ]
    written = {" ".join(text.splitlines()[line - 1].split()) for (line, _), every in made.items() for text in every}
    assert {"if a <= b and a != 0:", "if a < b or a != 0:", "return a - 1", "return b"} <= written


def test_drawing_is_deterministic_and_ends_when_no_changes_are_left() -> None:
    source = "onert/ir/quant.py"
    found = drawn((source,), 5, seed=1)
    assert found == drawn((source,), 5, seed=1) != drawn((source,), 5, seed=2)
    assert len({fault.new for fault in found}) == 5
    assert all("tests/ir/test_numbers.py" in fault.tests[:-2] for fault in found)
    every = drawn(("onert/ir/process/later.py",), 10_000, seed=0)
    assert 0 < len(every) < 1000


def test_the_conformance_page_has_the_table_s_summary() -> None:
    page = (REPOSITORY / "docs" / "conformance.md").read_text(encoding="utf-8")
    assert "\n".join(summary(FAULTS)) in page, "run `python tests/mutation/run.py --table`"

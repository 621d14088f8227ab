"""The choice of tests for a change: those that execute it, within a time limit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from attrs import evolve

from mutation.reach import REPOSITORY, START, Reached, chosen
from mutation.sample import reaching
from mutation.table import faults

CODE = "def half(x):\n    return x / 2\n\n\ndef twice(x):\n    return 2 * x\n"
TESTS = "import code_of as c\n\ndef test_a():\n    assert c.half(2) == 1\n\ndef test_b():\n    assert c.twice(2) == 4\n"


def test_lines_are_attributed_to_the_tests_that_execute_them(tmp_path: Path) -> None:
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "code_of.py").write_text(CODE)
    (tmp_path / "test_code.py").write_text(TESTS)
    written = tmp_path / "reach.json"
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), str(folder)]),
        "ONERT_REACH": str(written),
        "ONERT_REACHED": str(folder),
    }
    command = [sys.executable, "-m", "pytest", "-p", "reach_plugin", "-p", "no:cacheprovider", "-c", os.devnull]
    subprocess.run([*command, "--rootdir", ".", "test_code.py"], cwd=tmp_path, env=environment, check=True)
    reached = Reached.read(written)
    assert reached is not None
    for line, tests in ((2, ["test_code.py::test_a"]), (6, ["test_code.py::test_b"]), (1, [])):
        assert [name for name, _ in reached.of("code/code_of.py", [line])] == tests
    assert len(reached.of("code/code_of.py", None)) == 2
    written.write_text("{")
    assert Reached.read(written) is None


A = Reached((("a::slow", 9.0), ("a::fast", 1.0)), {"x.py": {3: (0, 1)}})
B = Reached((("b::one", 1.0), ("b::two", 2.0)), {"x.py": {3: (0, 1), 5: (1,)}})


@pytest.mark.parametrize(
    ("lines", "first", "seconds", "expected"),
    [
        ([3], (), 100.0, ["a::fast", "b::one", "a::slow", "b::two"]),
        ([3], ("b",), 100.0, ["b::one", "b::two", "a::fast", "a::slow"]),
        ([3], (), 2 * (2 * START + 2.0), ["a::fast", "b::one"]),
        ([5], (), 100.0, ["b::two"]),
        ([4], (), 100.0, ["a::fast", "b::one", "a::slow", "b::two"]),
    ],
    ids=["in turn", "named first", "while there is time", "one line", "nothing but imports"],
)
def test_the_fastest_tests_of_all_files_come_first(
    lines: list[int], first: tuple[str, ...], seconds: float, expected: list[str]
) -> None:
    assert chosen({"a": A, "b": B}, "x.py", lines, first, seconds) == expected
    assert chosen({"a": A, "b": B}, "y.py", lines, first, seconds) == []


def test_a_change_is_tried_with_the_tests_that_execute_its_statement() -> None:
    file = "onert/ir/quant.py"
    source = (REPOSITORY / file).read_text(encoding="utf-8")
    at = next(n for n, line in enumerate(source.splitlines(), 1) if ">= 0.5, np.sign(x), 0)" in line)
    fault = evolve(faults()[0], file=file, old=source, new=source.replace(">= 0.5, np", "> 0.5, np"), tests=("t.py",))
    known = {"a": Reached((("a::one", 1.0),), {file: {at: (0,)}})}
    assert reaching(fault, known, 60.0).tests == ("a::one",)
    assert reaching(fault, {}, 60.0).tests == ("t.py",)

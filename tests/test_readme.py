"""What the README promises newcomers: the installation, the make targets, the commands and their output."""

from __future__ import annotations

import io
import re
import shlex
import subprocess
import sys
import tomllib

import pytest
from rich.console import Console
from shared_material import REPOSITORY

from onert.tools import bench, run

README = (REPOSITORY / "README.md").read_text()
MAKEFILE = (REPOSITORY / "Makefile").read_text()
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
_TIME = re.compile(r"\d+\.\d+ ms")


def _targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))


def test_make_run_prints_what_the_readme_shows(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(REPOSITORY)
    (command,) = re.findall(r"^\t\$\(BIN\)/onert_run (.*)$", MAKEFILE, re.MULTILINE)
    assert run.main(shlex.split(command)) == 0
    printed = [_TIME.sub("T ms", line) for line in capsys.readouterr().out.splitlines()]
    shown = README.partition("`make run` ends with\n\n```\n")[2].partition("\n```")[0].splitlines()[1:]
    wanted = [_TIME.sub("T ms", line) for line in shown if line != "..."]
    assert len(wanted) >= 8
    assert [line for line in wanted if line not in printed] == []


def test_every_documented_make_target_exists() -> None:
    named = re.findall(r"\.PHONY: (.*)", MAKEFILE)[0].split()
    pages = [README, *(page.read_text() for page in (REPOSITORY / "docs").glob("*.md"))]
    used = {target for page in pages for target in re.findall(r"`make ([a-z-]+)`|^make ([a-z-]+)", page, re.MULTILINE)}
    assert {*named, *(a or b for a, b in used)} <= _targets()
    assert {"run", "test"} <= _targets()


def test_the_readme_names_every_extra_and_command() -> None:
    for extra in PROJECT["optional-dependencies"]:
        assert f"`{extra}`" in README
    for command in PROJECT["scripts"]:
        assert f"`{command} " in README
    assert f"pip install {PROJECT['name']}" in README


@pytest.mark.parametrize("version", [(3, 10, 14), (3, 8, 0)])
def test_an_older_python_is_refused_with_a_sentence(version: tuple[int, ...]) -> None:
    script = f"import sys; sys.version_info = {version}; import onert"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=REPOSITORY)
    said = f"ImportError: onert needs Python 3.11 or newer, this is {version[0]}.{version[1]}"
    assert done.stderr.splitlines()[-1] == said
    assert done.stderr.count("File") <= 2


def test_the_hint_for_a_missing_extra_keeps_its_brackets() -> None:
    out = io.StringIO()
    note = "openvino is not installed; pip install 'onert-toolkit[bench]'"
    bench.show([bench.Row("[m]", 1, "openvino", None, None, None, note)], Console(file=out, width=200))
    assert note in out.getvalue()
    assert "[m]" in out.getvalue()


def test_hints_name_existing_extras() -> None:
    named: set[str] = set()
    for file in (REPOSITORY / "onert").rglob("*.py"):
        named |= set(re.findall(r"onert-toolkit\[(\w+)\]", file.read_text()))
    assert named
    assert named <= PROJECT["optional-dependencies"].keys()

"""`python -m onert`, `--version`, shell completion, and the documentation page of each command."""

from __future__ import annotations

import shutil
import subprocess
import sys

import command_pages
import pytest
from shared_material import REPOSITORY

import onert
from onert.tools import commands
from onert.tools.commands import COMMANDS, SHELLS, completion, main, parser_of

DIGITS = str(REPOSITORY / "nnpackage" / "examples" / "digits_float")


@pytest.mark.parametrize("arguments", [[], *([name] for name in COMMANDS)], ids=["onert", *COMMANDS])
def test_every_command_prints_its_version(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main([*arguments, "--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"onert {onert.__version__}\n"


def test_the_module_runs_every_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "onert", "inspect", DIGITS], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert "FullyConnected" in done.stdout
    assert parser_of("run").prog == "onert_run"


@pytest.mark.parametrize("arguments", [[], ["fly"], ["completion"], ["completion", "csh"], ["run"]])
def test_bad_command_lines_are_usage_errors(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    try:
        status = main(arguments)
    except SystemExit as stop:
        status = int(stop.code or 0)
    assert status == 2
    assert capsys.readouterr().err


@pytest.mark.parametrize("shell", SHELLS)
def test_completion_scripts_have_every_option_and_are_valid(shell: str) -> None:
    script = completion(shell)
    for command in COMMANDS:
        assert f"onert_{command}" in script
        for action in parser_of(command)._actions:
            for name in action.option_strings:
                assert name.lstrip("-") in script
    assert "SUPPRESS" not in script
    if shutil.which(shell):
        done = subprocess.run([shell, "-n"], input=script, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")


COMPLETIONS = {
    "onert_run --image": "--image-mode",
    "onert_run --image-mode neg1": "neg1to1",
    "onert_cache l": "ls",
    "onert_bundle --api st": "static",
}


@pytest.mark.parametrize(("typed", "completed"), COMPLETIONS.items(), ids=COMPLETIONS.keys())
def test_bash_completes_a_typed_prefix(typed: str, completed: str) -> None:
    words = typed.split()
    setup = f"COMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}; _{words[0]}_completion"
    script = f"{completion('bash')}{setup}; echo ${{COMPREPLY[@]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, cwd="/")
    assert completed in done.stdout.split()


@pytest.mark.parametrize("command", COMMANDS)
def test_the_page_of_a_command_is_generated_from_its_parser(command: str) -> None:
    page = (command_pages.FOLDER / f"onert_{command}.md").read_text(encoding="utf-8")
    assert page == command_pages.page(command), "python tests/command_pages.py regenerates it"


def test_every_command_page_belongs_to_a_command() -> None:
    assert commands.COMMANDS.keys() == {path.stem.removeprefix("onert_") for path in command_pages.FOLDER.glob("*.md")}


@pytest.mark.parametrize("command", ["run", "inspect", "bench", "bundle"])
def test_threads_is_accepted_as_an_undocumented_alias_of_num_threads(command: str) -> None:
    parser = parser_of(command)
    setup = [DIGITS] + (["-o", "out"] if command == "bundle" else [])
    one, other = (parser.parse_args([*setup, name, "3"]) for name in ("--num_threads", "--threads"))
    assert str(one.num_threads) == str(other.num_threads) == "3"
    assert "--num_threads" in parser.format_help()
    assert "--threads" not in parser.format_help()

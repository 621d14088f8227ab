"""How commands end: with a status and one message, whatever happens and wherever the output goes."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from patience import PATIENCE
from shared_material import REPOSITORY

from onert.ir import BackendError, CompileError, ExecutionError, ModelError, OptionError
from onert.tools.exits import UsageError, ended

DIGITS = REPOSITORY / "nnpackage" / "examples" / "digits_float"


def _raises(error: BaseException) -> Callable[[], None]:
    def command() -> None:
        raise error

    return command


ENDS: dict[str, tuple[BaseException, int, str]] = {
    "usage": (UsageError("--n is 0"), 2, "onert_x: --n is 0\n"),
    "an option": (OptionError("threads", "is 0"), 2, "onert_x: --threads is 0\n"),
    "an option that has no name here": (OptionError("planner", "is 0"), 1, "onert_x: planner is 0\n"),
    "a model": (ModelError("m.tflite: cut"), 1, "onert_x: m.tflite: cut\n"),
    "compiling": (CompileError("no"), 1, "onert_x: no\n"),
    "an option in a sentence": (ExecutionError("threads changes it"), 1, "onert_x: --threads changes it\n"),
    "a word like an option": (ExecutionError("tensor 'threads'"), 1, "onert_x: tensor 'threads'\n"),
    "a backend": (BackendError("no"), 1, "onert_x: no\n"),
    "a full disk": (OSError(28, "No space left on device", "o"), 1, "onert_x: o cannot be read or written: No space"),
    "a full output": (OSError(28, "No space left on device"), 1, "onert_x: the output cannot be read or written: No"),
    "memory": (MemoryError(), 1, "onert_x: there is not enough memory\n"),
    "a mistake of ours": (
        KeyError("k"),
        1,
        "onert_x: a bug in onert (-v 2 prints the traceback): KeyError: 'k'",
    ),
    "control characters": (ValueError("\x1b[2J"), 1, "ValueError: \\x1b[2J\n"),
    "an interrupt": (KeyboardInterrupt(), 130, ""),
    "a reader that left": (BrokenPipeError(), 1, ""),
}


@pytest.mark.parametrize(("error", "status", "says"), ENDS.values(), ids=ENDS.keys())
def test_every_exception_becomes_a_status_and_one_message(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, error: BaseException, status: int, says: str
) -> None:
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert ended("onert_x", _raises(error), called={"threads": "--threads"}) == status
    said = capsys.readouterr().err
    assert says in said
    assert bool(says) == bool(said)
    assert "Traceback" not in said


def test_a_traceback_is_printed_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended("onert_x", _raises(CompileError("no")), tracebacks=True) == 1
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_unencodable_characters_are_written_as_escapes(monkeypatch: pytest.MonkeyPatch, encoding: str) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding=encoding))
    assert ended("onert_x", lambda: print("猫 café")) == 0
    text = raw.getvalue().decode(encoding)
    assert text == "猫 café\n".encode(encoding, "backslashreplace").decode(encoding)


def test_a_process_without_standard_output_ends_normally(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    assert ended("onert_x", lambda: print("nowhere")) == 0
    assert ended("onert_x", _raises(BrokenPipeError())) == 1


HEARS_INTERRUPTS = """
import signal
import sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell that starts tests in the background ignores it
from onert.tools.run import main
sys.exit(main())
"""


def _started(*arguments: object, **given: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", HEARS_INTERRUPTS, str(DIGITS), *map(str, arguments)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, **given)  # type: ignore[call-overload, no-any-return]


def test_a_full_output_device_is_reported() -> None:
    with Path("/dev/full").open("wb") as full:
        process = _started(stdout=full)
        _, err = process.communicate()
    assert err == b"onert_run: the output cannot be read or written: No space left on device\n"
    assert process.returncode == 1


def test_a_closed_pipe_ends_the_process_silently() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    process = _started(stdout=writing)
    os.close(writing)
    _, err = process.communicate()
    assert (process.returncode, err) == (1, b"")


def test_an_interrupt_ends_a_run_with_status_130(tmp_path: Path) -> None:
    process = _started("-r", 10**9, "--dump_input:raw", "x", "-v", 1, cwd=tmp_path, stdout=subprocess.DEVNULL)
    assert process.stderr is not None
    assert process.stderr.readline()  # the line on what runs where: the runs are about to start
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    try:
        _, err = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert process.returncode == 130
    assert b"Traceback" not in err


AT_THE_END = """
import sys
from onert.tools.exits import ended

class Pair:
    def __del__(self):
        print("deleted")

cycle = Pair()
cycle.itself = cycle
sys.exit(ended("tool", lambda: print("done")) if sys.argv[1] == "command" else print("done"))
"""


@pytest.mark.parametrize(("how", "said"), [("command", ["done"]), ("library", ["done", "deleted"])])
def test_a_command_s_process_ends_without_collecting_cycles(how: str, said: list[str]) -> None:
    """Other processes end as usual, because their finalizers may matter."""
    command = [sys.executable, "-c", AT_THE_END, how]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout.split() == said


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["serve", "--help"], 0, ""),
        (["completion", "bash"], 0, ""),
        (["serve", str(DIGITS)], 1, "onert_serve: serving needs grpc; pip install 'onert-toolkit[serve]'\n"),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, list) else "",
)
def test_without_the_serving_packages_only_serving_is_refused(arguments: list[str], status: int, said: str) -> None:
    code = (
        "import sys\n"
        "sys.modules.update(dict.fromkeys(('grpc', 'starlette', 'uvicorn', 'uvloop')))\n"
        "from onert.tools.commands import main\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code, *arguments], check=False, capture_output=True, text=True, timeout=PATIENCE
    )
    assert (ended.returncode, ended.stderr) == (status, said)

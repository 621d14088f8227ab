"""Fixtures shared by the tests of the command-line tools."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import litert_peer as litert
import pytest

from onert.ir import CallTypes, DType, TensorType
from onert.tools import run

Shell = Callable[..., tuple[int, str, str]]
_ROW = TensorType(DType.FLOAT32, (1, 3))


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """Run `onert_run` in an empty directory; a call returns the exit status, standard output and standard error."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: object) -> tuple[int, str, str]:
        try:
            status = run.main([str(a) for a in arguments])
        except SystemExit as stop:
            status = int(stop.code or 0)
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


@pytest.fixture
def adder(tmp_path: Path) -> Path:
    """A model file that computes z = x + y on f32[1, 3]."""
    file = tmp_path / "adder.tflite"
    file.write_bytes(litert.one_operator("ADD", ("AddOptions", {}), CallTypes((_ROW, _ROW), (_ROW,)), {}))
    return file

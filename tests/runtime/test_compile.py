"""`onert.compile`: backends that cannot be loaded, profiling before compiling, and the log."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from shared_material import REPOSITORY

import onert
from onert.backend.registry import find_backends, load_backends

DIGITS = REPOSITORY / "nnpackage" / "examples" / "digits_float"

BROKEN = "onert.backend:NoSuchClass"
CHOICES: dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    # requested names; backends found; names mentioned in the notes
    "the first is missing": (("gpu", "reference"), ("reference", "builtin"), ("'gpu'",)),
    "the second is missing": (("reference", "gpu"), ("reference", "builtin"), ("'gpu'",)),
    "two are missing": (("acl_cl", "acl_neon", "llvm"), ("llvm", "builtin", "reference"), ("'acl_cl'", "'acl_neon'")),
    "an import fails": ((BROKEN, "reference"), ("reference", "builtin"), (f"{BROKEN} cannot be loaded",)),
    "all are there": (("reference",), ("reference", "builtin"), ()),
    "none is named": ((), ("llvm", "builtin", "reference"), ()),
}


@pytest.mark.parametrize(("names", "found", "notes"), CHOICES.values(), ids=CHOICES.keys())
def test_backends_that_cannot_be_loaded_are_skipped_with_a_note(
    names: tuple[str, ...], found: tuple[str, ...], notes: tuple[str, ...]
) -> None:
    backends, said = find_backends(names)
    assert tuple(backend.name for backend in backends) == found
    assert len(said) == len(notes)
    for sentence, name in zip(said, notes, strict=True):
        assert name in sentence
        assert sentence.endswith(f"; continuing without it, {found[0]!r} comes first")


def test_if_no_requested_backend_can_be_loaded_the_error_names_them_all() -> None:
    with pytest.raises(onert.BackendError) as caught:
        load_backends(["gpu", BROKEN])
    assert "no backend is called 'gpu'" in str(caught.value)
    assert f"{BROKEN} cannot be loaded" in str(caught.value)


@pytest.mark.parametrize("way", ["option", "environment"])
def test_compile_warns_about_a_skipped_backend(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    package = onert.load(DIGITS)
    if way == "environment":
        monkeypatch.setenv("ONERT_BACKENDS", "gpu;reference")
        assert onert.load(DIGITS) == package  # loading does not warn
    with pytest.warns(onert.OnertWarning, match="no backend is called 'gpu'") as caught:
        program = onert.compile(package, **({"backends": ("gpu", "reference")} if way == "option" else {}))
    assert [warning.filename for warning in caught] == [__file__]
    assert {step.backend for step in program.main.steps} == {"reference"}


def test_profiling_measures_every_operation_before_compiling(tmp_path: Path) -> None:
    package = onert.load(DIGITS)
    options = onert.Options(profiling=True, use_scheduler=True, workspace_dir=str(tmp_path), num_threads=1)
    program = onert.compile(package, options)
    found = json.loads((tmp_path / "exec_time.json").read_text())
    assert {"llvm", "reference"} <= found.keys()
    assert "Conv2D" in found["reference"]
    assert any("by measured times a run takes" in note for note in program.notes)


def test_the_log_describes_the_program(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    package = onert.load(DIGITS)
    monkeypatch.setenv("ONERT_ENABLE_LOG", "1")
    program = onert.compile(package, backends=("reference",))
    said = capsys.readouterr()
    assert said.err == f"{program.describe()}\n"
    assert not said.out
    monkeypatch.setenv("ONERT_ENABLE_LOG", "0")
    onert.compile(package, backends=("reference",))
    assert not capsys.readouterr().err


def test_a_trace_is_written_to_the_configured_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONERT_TRACE_FILEPATH", str(tmp_path / "deep" / "trace.json"))
    program = onert.compile(onert.load(DIGITS), backends=("reference",))
    with onert.Execution(program) as execution:
        execution.run([np.zeros((1, 8, 8, 1), np.float32)])
    assert json.loads((tmp_path / "deep" / "trace.json").read_text())
    assert [path.name for path in tmp_path.iterdir()] == ["deep"]

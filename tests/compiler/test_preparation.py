"""What backends prepare while a model is loaded, because it is probably compiled next."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from threading import Thread
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import pytest
from shared_material import REPOSITORY

import onert
from onert.backend import Backend, Settings
from onert.backend.writers import WRITERS
from onert.compiler.program_cache import other_shapes
from onert.ir import CallTypes, Operation, Package

FILE = REPOSITORY / "nnpackage" / "examples" / "digits_int8" / "digits_int8.tflite"


class Recorder(Backend):
    """Runs nothing, and records the operations that it is told to expect."""

    api_version = 2
    name = "recorder"
    kinds: ClassVar[list[list[str]]] = []
    waited = 0
    fails = False

    def supports(self, operation: object, types: CallTypes) -> str | None:
        return "it runs nothing"

    def expect(
        self, operations: Iterable[tuple[Operation, CallTypes]], settings: Settings
    ) -> Callable[[], object] | None:
        if Recorder.fails:
            raise ValueError("a plugin's mistake")
        Recorder.kinds.append([type(operation.op).__name__ for operation, _ in operations])
        return self.wait

    def wait(self) -> None:
        Recorder.waited += 1


@pytest.fixture(autouse=True)
def _named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Select this backend through the environment, with an empty cache."""
    module = ModuleType("recorder_backend")
    module.__dict__["Recorder"] = Recorder
    monkeypatch.setitem(sys.modules, "recorder_backend", module)
    monkeypatch.setenv("ONERT_BACKENDS", "recorder_backend:Recorder")
    monkeypatch.setenv("ONERT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(other_shapes, "WORTH_CACHING", 0.0)
    monkeypatch.setattr(Recorder, "kinds", [])
    monkeypatch.setattr(Recorder, "waited", 0)
    monkeypatch.setattr(Recorder, "fails", False)


def ran(package: Package) -> dict[str, list[Any]]:
    """The results of compiling the package and running it on zeros."""
    program = onert.compile(package, backends=("llvm",), num_threads=1)
    (given,) = program.inputs
    outputs = onert.Execution(program).run([np.zeros(given.shape, given.dtype.numpy)])
    WRITERS.finish()
    return {name: array.tolist() for name, array in outputs.items()}


def test_a_backend_is_told_to_expect_each_kind_of_operation_and_awaited() -> None:
    package = onert.load(FILE)
    (kinds,) = Recorder.kinds
    assert set(kinds) == {type(o.op).__name__ for o in package.model.subgraphs[0].operations}
    assert len(kinds) <= len(package.model.subgraphs[0].operations)
    assert Recorder.waited == 1


def test_no_backend_prepares_for_a_model_whose_program_is_cached() -> None:
    ran(onert.load(FILE))
    ran(onert.load(FILE))
    assert Recorder.waited == 1


@pytest.mark.parametrize(("seconds", "loads"), [(0.0, 2), (1e6, 1)])
def test_preparation_counts_as_time_that_caching_a_program_saves(
    seconds: float, loads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(other_shapes, "WORTH_CACHING", 1e5)
    for _ in range(2):
        package = onert.load(FILE)
        assert package.content is not None
        package.content.preparation = seconds
        ran(package)
    assert Recorder.waited == loads


def test_a_backend_that_fails_to_prepare_does_not_prevent_loading(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = ran(onert.load(FILE))
    monkeypatch.setattr(Recorder, "fails", True)
    assert ran(onert.load(FILE)) == expected


def test_invalid_settings_are_reported_when_compiling_and_not_when_loading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONERT_BACKENDS", "nobody")
    package = onert.load(FILE)
    ran(package)
    with pytest.raises(onert.BackendError, match="nobody"):
        onert.compile(package)


def test_a_model_loads_if_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(self: Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setenv("ONERT_BACKENDS", "llvm")
    monkeypatch.setattr(Thread, "start", start)
    assert onert.load(FILE).model.subgraphs

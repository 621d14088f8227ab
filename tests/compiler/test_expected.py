"""Claims about what is read with a model that is probably compiled next."""

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
from onert.compiler.program_cache import lookup
from onert.ir import CallTypes, Operation, Package

FILE = REPOSITORY / "nnpackage" / "examples" / "digits_int8" / "digits_int8.tflite"


class Told(Backend):
    """Runs nothing, and notes what it is told."""

    api_version = 2
    name = "told"
    kinds: ClassVar[list[list[str]]] = []
    waited = 0
    fails = False

    def supports(self, operation: object, types: CallTypes) -> str | None:
        return "it runs nothing"

    def expect(
        self, operations: Iterable[tuple[Operation, CallTypes]], settings: Settings
    ) -> Callable[[], object] | None:
        if Told.fails:
            raise ValueError("a plugin's mistake")
        Told.kinds.append([type(operation.op).__name__ for operation, _ in operations])
        return self.wait

    def wait(self) -> None:
        Told.waited += 1


@pytest.fixture(autouse=True)
def _named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The backend is what the environment names, and nothing was kept."""
    module = ModuleType("told_backend")
    module.__dict__["Told"] = Told
    monkeypatch.setitem(sys.modules, "told_backend", module)
    monkeypatch.setenv("ONERT_BACKENDS", "told_backend:Told")
    monkeypatch.setenv("ONERT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(lookup, "WORTH_KEEPING", 0.0)
    monkeypatch.setattr(Told, "kinds", [])
    monkeypatch.setattr(Told, "waited", 0)
    monkeypatch.setattr(Told, "fails", False)


def ran(package: Package) -> dict[str, list[Any]]:
    """The results when it is compiled by default and run."""
    program = onert.compile(package, backends=("llvm",), num_threads=1)
    (given,) = program.inputs
    outputs = onert.Execution(program).run([np.zeros(given.shape, given.dtype.numpy)])
    WRITERS.finish()
    return {name: array.tolist() for name, array in outputs.items()}


def test_a_backend_is_told_each_kind_of_operation_once_and_waited_for() -> None:
    package = onert.load(FILE)
    (kinds,) = Told.kinds
    assert set(kinds) == {type(o.op).__name__ for o in package.model.subgraphs[0].operations}
    assert len(kinds) <= len(package.model.subgraphs[0].operations)
    assert Told.waited == 1


def test_nobody_is_told_of_a_model_whose_program_was_kept() -> None:
    ran(onert.load(FILE))
    ran(onert.load(FILE))
    assert Told.waited == 1


@pytest.mark.parametrize(("seconds", "loads"), [(0.0, 2), (1e6, 1)])
def test_getting_ready_is_part_of_what_keeping_a_program_saves(
    seconds: float, loads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookup, "WORTH_KEEPING", 1e5)
    for _ in range(2):
        package = onert.load(FILE)
        assert package.content is not None
        package.content.preparation = seconds
        ran(package)
    assert Told.waited == loads


def test_a_backend_that_fails_when_it_is_told_is_no_reason_not_to_load(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = ran(onert.load(FILE))
    monkeypatch.setattr(Told, "fails", True)
    assert ran(onert.load(FILE)) == expected


def test_settings_that_are_wrong_are_told_to_whoever_compiles_with_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONERT_BACKENDS", "nobody")
    package = onert.load(FILE)
    ran(package)
    with pytest.raises(onert.BackendError, match="nobody"):
        onert.compile(package)


def test_a_model_loads_where_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(self: Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setenv("ONERT_BACKENDS", "llvm")
    monkeypatch.setattr(Thread, "start", start)
    assert onert.load(FILE).model.subgraphs

"""Passes and decompositions from other packages (extensions)."""

from __future__ import annotations

import importlib.metadata
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from attrs import evolve, frozen

import onert
from onert.backend.registry import load_backends
from onert.compiler import Options
from onert.compiler.extension import API_VERSION, GROUP, Extension, load_extensions
from onert.compiler.legalize.decomposition import Decomposition
from onert.compiler.legalize.draft import Draft
from onert.compiler.program_cache.serialize import program_entry
from onert.compiler.rewrite.contract import TYPED, rewriting
from onert.compiler.rewrite.edit import Edit
from onert.ir import Array, CallTypes, CompileError, DType, Op, Package, Subgraph, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.elementwise.unary import Unary, UnaryKind

ROW = TensorType(DType.FLOAT32, (1, 4))
X = np.float32([[1, -2, 3, -4]])


@frozen
class Plus(Op):
    """`x + amount`, as defined by another package."""

    amount: float = 1.0

    def infer(self, x: TensorType) -> TensorType:
        return x.result(x.shape)

    def evaluate(self, x: Array) -> Array:
        return (x + np.float32(self.amount)).astype(x.dtype)


@rewriting(requires=(TYPED,), ensures=(TYPED,))
def plus_plus(subgraph: Subgraph) -> Subgraph:
    """Plus(Plus(x, a), b)  -->  Plus(x, a + b)"""
    edit = Edit(subgraph)
    for at, operation in enumerate(subgraph.operations):
        before = subgraph.definitions.get(operation.used[0])
        inner = None if before is None else subgraph.operations[before]
        if isinstance(operation.op, Plus) and inner is not None and isinstance(inner.op, Plus):
            together = Plus(operation.op.amount + inner.op.amount)
            edit.replace(at, evolve(operation, op=together, inputs=inner.inputs))
    return edit.done()


def _sum(draft: Draft, op: Plus, types: CallTypes, operands: list[int]) -> list[int]:
    return [draft.sum(operands[0], draft.constant(np.float32([op.amount])))]


def _always(op: Op, types: CallTypes) -> None:
    return None


MADE = Extension((plus_plus,), {Plus: (Decomposition(_always, _sum),)})
PASSES = Extension((plus_plus,))
LATER = evolve(MADE, api_version=API_VERSION + 1)
WRONG = (plus_plus,)


def _package() -> Package:
    b = Builder()
    x = b.input(ROW, "x")
    y = b.add(Plus(3.0), b.add(Plus(2.0), b.add(Unary(UnaryKind.ABS), x)))
    return Package((Subgraphs((b.subgraph([y]),)),), "plus")


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("an_extension")
    module.__dict__.update({name: globals()[name] for name in ("MADE", "PASSES", "LATER", "WRONG")})
    monkeypatch.setitem(sys.modules, "an_extension", module)


@pytest.mark.parametrize(
    ("options", "kinds", "backends"),
    [
        ({}, ["Unary", "Plus", "Plus"], {"llvm", "reference"}),
        ({"extensions": ("an_extension:PASSES",)}, ["Unary", "Plus"], {"llvm", "reference"}),
        ({"extensions": ("an_extension:MADE",)}, ["Unary", "Binary"], {"llvm"}),
        ({"extensions": (MADE,)}, ["Unary", "Binary"], {"llvm"}),
        ({"extensions": ("an_extension:MADE",), "optimize": False}, ["Unary", "Binary", "Binary"], {"llvm"}),
        (
            {"extensions": ("an_extension:MADE",), "disabled_passes": frozenset({"plus_plus"})},
            ["Unary", "Binary", "Binary"],
            {"llvm"},
        ),
    ],
    ids=["none", "a pass", "a pass and a decomposition", "as a value", "not optimised", "its pass disabled"],
)
def test_an_extension_is_used_if_the_options_name_it(
    options: dict[str, object], kinds: list[str], backends: set[str]
) -> None:
    program = onert.compile(_package(), num_threads=1, **options)
    (routine,) = program.routines
    assert [type(o.op).__name__ for o in routine.subgraph.operations] == kinds
    assert {step.backend for step in routine.steps} == backends
    np.testing.assert_array_equal(next(iter(onert.Execution(program).run([X]).values())), np.abs(X) + 5)


def test_a_program_with_an_extension_is_not_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONERT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("onert.compiler.program_cache.other_shapes.WORTH_CACHING", 0.0)
    stored: list[object] = []
    monkeypatch.setattr(
        "onert.compiler.program_cache.serialize.ProgramEntry.store", lambda *given: stored.append(given)
    )
    package = onert.load("nnpackage/examples/digits_float")
    onert.compile(package, extensions=("an_extension:MADE",))
    assert not stored
    onert.compile(package)
    assert stored
    backends = load_backends(("reference",))
    assert program_entry(package, Options(), backends) is not None
    assert program_entry(package, Options(extensions=("an_extension:MADE",)), backends) is None


def _lacking(*given: Any) -> Any:
    return {}["k"]


def _nothing(*given: Any) -> Any:
    return None


@pytest.mark.parametrize(
    ("extension", "message"),
    [
        (Extension((rewriting()(_lacking),)), "pass _lacking of an extension failed: KeyError: 'k'"),
        (Extension((rewriting()(_nothing),)), "pass _nothing of an extension returned a NoneType, expected Subgraph"),
        (
            Extension((), {Plus: (Decomposition(_always, _lacking),)}),
            "decomposition of Plus of an extension failed: KeyError: 'k'",
        ),
        (
            Extension((), {Plus: (Decomposition(lambda *given: False, _sum),)}),
            "decomposition of Plus of an extension returned a bool, expected str or NoneType",
        ),
        (
            Extension((), {Plus: (Decomposition(_always, _nothing),)}),
            "decomposition of Plus of an extension returned a NoneType, expected Sequence",
        ),
    ],
)
def test_a_failure_in_an_extension_names_its_pass_or_decomposition(extension: Extension, message: str) -> None:
    with pytest.raises(CompileError) as caught:
        onert.compile(_package(), extensions=(extension,))
    assert str(caught.value) == message


class _Entry:
    def __init__(self, name: str, value: str) -> None:
        self.name = name
        self.value = value


INSTALLED = [_Entry("one", "an_extension:MADE"), _Entry("two", "an_extension:MADE"), _Entry("two", "other:MADE")]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nobody", "no extension is called 'nobody' (one, two); expected an installed one, or 'module:NAME'"),
        ("two", "several extensions are called 'two': an_extension:MADE and other:MADE"),
        ("nowhere:MADE", "extension 'nowhere:MADE' at nowhere:MADE cannot be loaded: ModuleNotFoundError"),
        ("an_extension:OTHER", "cannot be loaded: AttributeError"),
        ("an_extension:WRONG", "is a tuple, expected an Extension"),
        ("an_extension:LATER", f"is for version {API_VERSION + 1} of the contract, this is {API_VERSION}"),
    ],
)
def test_an_invalid_extension_is_rejected(name: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: INSTALLED if group == GROUP else [])
    assert load_extensions(("one",)) == (MADE,)
    with pytest.raises(CompileError) as caught:
        onert.compile(_package(), extensions=(name,))
    assert message in str(caught.value)

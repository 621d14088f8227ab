"""The key of the program cache: a change in anything that a program depends on compiles it again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import evolve, fields
from shared_material import REPOSITORY

import onert
import onert_llvm
from onert.backend.writers import WRITERS
from onert.compiler.options import Options
from onert.compiler.program_cache import key
from onert.compiler.program_cache import other_shapes as programs
from onert.ir import Array, Constant, Package
from onert.ir.content import Content, InMemory
from onert.ir.package import Connection, Port
from onert_llvm.target import isa

from .cached import ADD, MUL, PLAIN, SHAPES, WEIGHTS, Cached, caching, check_apart, graph, packaged

FILE = REPOSITORY / "nnpackage" / "examples" / "digits_int8" / "digits_int8.tflite"
MAIN, SECOND = Port(0, 0, 0), Port(1, 0, 0)


@pytest.fixture
def cached(tmp_path: Path) -> Iterator[Cached]:
    with caching(tmp_path) as found:
        yield found


# ---- options

OPTIONS: Mapping[str, tuple[object, Mapping[str, Any]]] = {
    "executor": ("Dataflow", {}),
    "num_threads": (2, {}),
    "planner": ("Bump", {}),
    "op_backend_allops": ("reference", {}),
    "op_backend": ({"ADD": "reference"}, {}),
    "op_backend_map": ({0: "reference"}, {}),
    "signature": ("MUL", {}),
    "input_shapes": ({"x": (3, 4)}, {}),
    "max_iterations": (5, {}),
    "max_memory": (1 << 20, {}),
    "max_work": (1 << 20, {}),
    "optimize": (False, {}),
    "precision": ("fast", {}),
    "tune": (0.0, {}),
    "disabled_passes": (frozenset({"fold_constants"}), {}),
    "target": (isa.runnable()[0].name, {}),
    "extra": ({"a setting": "of a backend"}, {}),
    "workspace_dir": ("elsewhere", {"tracing": True}),
    "tracing": (True, {}),
    "profiling": (True, {}),
    "minmax_dump": (True, {}),
    "trace_filepath": ("trace.json", {}),
    "log": (True, {}),
}
"""A value other than the default for each option, and the other options it is tried with."""
NEVER_CACHED = {"use_scheduler", "graph_dot_dump"}
CLEARED = {"profiling"}
"""Options that `onert.compile` acts on and resets before it makes a key; other callers have them in their keys."""


def test_every_option_is_tested_or_excluded_for_a_stated_reason() -> None:
    names = {f.name for f in fields(Options)}
    assert names == OPTIONS.keys() | NEVER_CACHED | key.NOT_IN_KEY.keys()
    assert all(key.NOT_IN_KEY.values())


@pytest.mark.parametrize("name", [name for name in OPTIONS if name not in CLEARED])
def test_each_option_is_part_of_the_key(
    name: str, cached: Cached, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(onert_llvm.Llvm, "extra", frozenset({"a setting"}))
    (tmp_path / "elsewhere").mkdir()
    value, more = OPTIONS[name]
    base: dict[str, Any] = {"input_shapes": SHAPES, "num_threads": 1, **more}
    check_apart(cached, lambda: cached.facts(PLAIN, **base), lambda: cached.facts(PLAIN, **{**base, name: value}))


def test_the_key_does_not_depend_on_which_options_were_explicit(cached: Cached) -> None:
    base = Options(num_threads=1, input_shapes=SHAPES)
    for fixed in (None, frozenset({"num_threads"}), frozenset({"executor", "planner"})):
        onert.compile(PLAIN, evolve(base, fixed=fixed))
        WRITERS.finish()
    assert cached.count == 1


# ---- the package

LONG = np.arange(40000, dtype=np.float32).reshape(-1, 4)
CONNECTED = Package(
    (PLAIN.model, packaged(graph(MUL)).model), "both", (MAIN,), (SECOND,), (Connection(MAIN, (SECOND,)),)
)


def with_element(weights: Array, value: float) -> Array:
    """A copy with another element in the middle."""
    changed = weights.copy()
    changed.flat[weights.size // 2] = value
    return changed


PACKAGES: Mapping[str, tuple[Package, Package]] = {
    "name": (PLAIN, evolve(PLAIN, name="other")),
    "all elements": (PLAIN, packaged(graph(ADD, WEIGHTS * 2), graph(MUL))),
    "an element": (packaged(graph(ADD, LONG)), packaged(graph(ADD, with_element(LONG, 0.5)))),
    "the sign of a zero": (packaged(graph(MUL, WEIGHTS * 0)), packaged(graph(MUL, WEIGHTS * -0.0))),
    "shape of a constant": (PLAIN, packaged(graph(ADD, WEIGHTS.reshape(1, 1, 4)), graph(MUL))),
    "operation": (PLAIN, packaged(graph(MUL), graph(MUL))),
    "another subgraph": (PLAIN, packaged(graph(ADD), graph(ADD))),
    "second model": (CONNECTED, evolve(CONNECTED, models=(PLAIN.model, packaged(graph(ADD)).model))),
    "connections": (CONNECTED, evolve(CONNECTED, connections=(), outputs=(MAIN,))),
    "config": (PLAIN, evolve(PLAIN, config={"EXECUTOR": "Dataflow"})),
}
"""Pairs of packages that differ in one respect."""


@pytest.mark.parametrize("name", PACKAGES)
def test_every_part_of_a_package_is_part_of_the_key(name: str, cached: Cached) -> None:
    first, second = PACKAGES[name]
    check_apart(
        cached,
        lambda: cached.facts(first, input_shapes={0: (1, 4)}),
        lambda: cached.facts(second, input_shapes={0: (1, 4)}),
    )


FIELDS: Mapping[str, Any] = {
    "models": (PLAIN.model,),
    "name": "other",
    "inputs": (SECOND,),
    "outputs": (MAIN,),
    "connections": (),
    "config": {"EXECUTOR": "Dataflow"},
    "model_names": ("a", "b"),
}


def test_every_field_of_a_package_changes_its_structure() -> None:
    assert {f.alias for f in fields(Package)} == FIELDS.keys()
    constants = key.constants_of(CONNECTED.models)
    found = [key.structure(evolve(CONNECTED, **{name: value}), constants) for name, value in FIELDS.items()]
    assert len({key.structure(CONNECTED, constants), *found}) == 1 + len(FIELDS)


# ---- files


def changed_in_the_middle(content: bytes, package: Package) -> bytes:
    """A file with the same size, beginning and end, but some different weights."""
    arrays = (o.data.array for o in package.model[0].operands if o.data is not None)
    weights = max(arrays, key=lambda array: array.nbytes).tobytes()
    at = content.index(weights) + len(weights) // 2
    assert 4096 < at < len(content) - 4096 - 64
    return content[:at] + bytes(byte ^ 0x55 for byte in content[at : at + 64]) + content[at + 64 :]


@pytest.mark.parametrize("name", ["bytes", "file"])
def test_the_whole_content_of_a_file_is_part_of_the_key(name: str, cached: Cached, tmp_path: Path) -> None:
    content = FILE.read_bytes()
    changed = changed_in_the_middle(content, onert.load(content))

    def loaded(of: bytes) -> Package:
        (tmp_path / "model.tflite").write_bytes(of)
        return onert.load(of) if name == "bytes" else onert.load(tmp_path / "model.tflite")

    check_apart(cached, lambda: cached.facts(loaded(content)), lambda: cached.facts(loaded(changed)))
    cached.empty("third")
    assert cached.facts(loaded(content))[-1] != cached.facts(loaded(changed))[-1]


def test_a_file_whose_outline_is_not_cached_is_not_digested(cached: Cached, monkeypatch: pytest.MonkeyPatch) -> None:
    digested: list[str] = []
    found = InMemory.digest._compute
    monkeypatch.setattr(InMemory, "digest", property(lambda held: digested.append("") or found(held)))
    cached.facts(onert.load(FILE.read_bytes()))
    assert digested  # to store its program
    digested.clear()
    monkeypatch.setattr(programs, "WORTH_CACHING", 1e9)
    cached.facts(onert.load(FILE.read_bytes() + bytes(64)))
    assert not digested
    other = Content(InMemory(bytes(10)), lambda _: ())
    assert other.outline != Content(InMemory(bytes(11)), lambda _: ()).outline


@pytest.mark.parametrize("name", ["first.tflite", "second.tflite"])
def test_cached_programs_are_named_after_their_own_file(name: str, cached: Cached, tmp_path: Path) -> None:
    for each in ("first.tflite", "second.tflite", name):
        (tmp_path / each).write_bytes(FILE.read_bytes())
        assert cached.facts(onert.load(tmp_path / each))[3] == each.removesuffix(".tflite")
    assert cached.count == 2


def test_string_constants_with_equal_concatenations_have_different_keys() -> None:
    def structure(*texts: bytes) -> str:
        array = np.empty(len(texts), object)
        array[:] = texts
        return key.structure((), [Constant(array)])

    assert structure(b"a", b"bc") == structure(b"a", b"bc")
    assert structure(b"a", b"bc") != structure(b"ab", b"c")


def test_constants_of_equal_bytes_and_other_types_have_different_keys() -> None:
    arrays = [np.zeros(4, np.float32), np.zeros((2, 2), np.float32), np.zeros(4, np.int32), np.zeros(16, np.int8)]
    assert len({key.structure((), [Constant(array)]) for array in arrays}) == len(arrays)
    assert len({key.elements([Constant(array)]) for array in arrays}) == 1


def test_each_option_is_a_separate_component_of_the_key() -> None:
    """A backend's fingerprint may cover an option as well, but need not."""
    base = Options(num_threads=1)
    plain = key.components(PLAIN, base, (), ())
    assert plain is not None
    for name, (value, _) in OPTIONS.items():
        found = key.components(PLAIN, evolve(base, **{name: value}), (), ())
        assert found is not None
        assert [each for each in plain if plain[each] != found[each]] == [f"option {name}"]

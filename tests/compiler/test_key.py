"""Claims about what programs are found by: each thing that decides one, changed alone, is compiled anew."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from attrs import evolve, fields
from shared_material import REPOSITORY

import onert
import onert_builtin.backend
import onert_llvm.version
import onert_reference.backend
from onert.backend import Backend, Settings
from onert.backend.writers import WRITERS
from onert.compiler import key, programs
from onert.compiler.options import Options
from onert.ir import Array, Constant, DType, Package, Signature, SignatureTensor, Subgraph, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.content import Content, Held
from onert.ir.ops.binary import Binary, BinaryKind
from onert.ir.package import Connection, Port
from onert_llvm import target

FILE = REPOSITORY / "nnpackage" / "examples" / "digits_int8" / "digits_int8.tflite"
ADD, MUL = Binary(BinaryKind.ADD), Binary(BinaryKind.MUL)
ROWS = TensorType(DType.FLOAT32, (None, 4))
WEIGHTS = np.float32([1, 2, 3, 4])
MAIN, SECOND = Port(0, 0, 0), Port(1, 0, 0)


class Cached:
    """The cache of a test: how many programs were compiled rather than found since this was made."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self._folder = folder
        self._patch = monkeypatch
        found = programs._compiler()

        def compiler() -> Any:
            self.count += 1
            return found

        monkeypatch.setattr(programs, "WORTH_KEEPING", 0.0)
        monkeypatch.setattr(programs, "_compiler", compiler)
        self.empty("first")

    def empty(self, name: str) -> None:
        """Go on with a cache that is empty."""
        self._patch.setenv("ONERT_CACHE_DIR", str(self._folder / name))

    def facts(self, package: Package, **options: Any) -> list[Any]:
        """All that a program shows of itself, and what it computes."""
        program = onert.compile(package, **{"num_threads": 1, **options})
        WRITERS.finish()
        rng = np.random.default_rng(0)
        given = [rng.integers(-9, 9, [d or 1 for d in i.shape]).astype(i.dtype.numpy) for i in program.inputs]
        with onert.Execution(program) as execution:
            made = execution.run(given)
        own = (program.name, program.executor, program.num_threads, program.max_iterations, dict(program.recordings))
        values = [(name, value.shape, value.tolist()) for name, value in made.items()]
        return [program.describe(), program.inputs, program.outputs, *own, values]


@pytest.fixture
def cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cached]:
    key.process.cache_clear()
    onert_llvm.version.version.cache_clear()
    yield Cached(tmp_path, monkeypatch)
    key.process.cache_clear()
    onert_llvm.version.version.cache_clear()


def graph(op: Binary, weights: Array = WEIGHTS) -> Subgraph:
    b = Builder(op.kind.name)
    return b.subgraph([b.add(op, b.input(ROWS, "x"), b.constant(weights))])


def packaged(*graphs: Subgraph, **more: Any) -> Package:
    def signature(at: int) -> Signature:
        sides = ((SignatureTensor(side, operands[0]),) for side, operands in _ends(graphs[at]))
        return Signature(graphs[at].name, at, *sides)

    return Package((Subgraphs(graphs, tuple(map(signature, range(len(graphs))))),), "made", **more)


def _ends(graph: Subgraph) -> list[tuple[str, tuple[int, ...]]]:
    return [("x", graph.inputs), ("y", graph.outputs)]


PLAIN = packaged(graph(ADD), graph(MUL))
SHAPES = {"x": (1, 4)}


def check_apart(cached: Cached, first: Callable[[], list[Any]], second: Callable[[], list[Any]]) -> None:
    """The second is not given what was cached for the first, and each is found when it is asked for again."""
    before = first()
    assert cached.count == 1
    found = second()
    assert cached.count == 2
    assert [first(), second()] == [before, found]
    assert cached.count == 2
    cached.empty("second")
    assert second() == found
    assert cached.count == 3


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
    "optimize": (False, {}),
    "disabled_passes": (frozenset({"FoldConstants"}), {}),
    "target": (target.runnable()[0].name, {}),
    "extra": ({"a setting": "of a backend"}, {}),
    "workspace_dir": ("elsewhere", {"tracing": True}),
    "tracing": (True, {}),
    "profiling": (True, {}),
    "minmax_dump": (True, {}),
}
"""For each option another value than the default, and with which others it is tried."""
NEVER_CACHED = {"use_scheduler", "graph_dot_dump"}


def test_every_option_is_tried_or_excluded_for_a_reason() -> None:
    names = {f.name for f in fields(Options)}
    assert names == OPTIONS.keys() | NEVER_CACHED | key.NOT_IN_KEY.keys()
    assert all(key.NOT_IN_KEY.values())


@pytest.mark.parametrize("name", OPTIONS)
def test_each_option_is_part_of_the_key(
    name: str, cached: Cached, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    value, more = OPTIONS[name]
    base: dict[str, Any] = {"input_shapes": SHAPES, "num_threads": 1, **more}
    check_apart(cached, lambda: cached.facts(PLAIN, **base), lambda: cached.facts(PLAIN, **{**base, name: value}))


def test_which_options_were_explicit_is_no_part_of_the_key(cached: Cached) -> None:
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
    """An element in the middle is another."""
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
"""Two packages that differ in one thing, by what that is."""


@pytest.mark.parametrize("name", PACKAGES)
def test_all_of_a_package_is_part_of_the_key(name: str, cached: Cached) -> None:
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


def test_every_field_of_a_package_is_part_of_its_structure() -> None:
    assert {f.alias for f in fields(Package)} == FIELDS.keys()
    constants = key.constants_of(CONNECTED.models)
    found = [key.structure(evolve(CONNECTED, **{name: value}), constants) for name, value in FIELDS.items()]
    assert len({key.structure(CONNECTED, constants), *found}) == 1 + len(FIELDS)


# ---- files


def changed_in_the_middle(content: bytes, package: Package) -> bytes:
    """A file of the same size with the same beginning and end, some of its weights others."""
    arrays = (o.data.array for o in package.model[0].operands if o.data is not None)
    weights = max(arrays, key=lambda array: array.nbytes).tobytes()
    at = content.index(weights) + len(weights) // 2
    assert 4096 < at < len(content) - 4096 - 64
    return content[:at] + bytes(byte ^ 0x55 for byte in content[at : at + 64]) + content[at + 64 :]


@pytest.mark.parametrize("name", ["bytes", "file"])
def test_all_of_a_file_is_part_of_the_key(name: str, cached: Cached, tmp_path: Path) -> None:
    content = FILE.read_bytes()
    changed = changed_in_the_middle(content, onert.load(content))

    def loaded(of: bytes) -> Package:
        (tmp_path / "model.tflite").write_bytes(of)
        return onert.load(of) if name == "bytes" else onert.load(tmp_path / "model.tflite")

    check_apart(cached, lambda: cached.facts(loaded(content)), lambda: cached.facts(loaded(changed)))
    cached.empty("third")
    assert cached.facts(loaded(content))[-1] != cached.facts(loaded(changed))[-1]


def test_a_file_unlike_all_that_are_known_is_not_digested(cached: Cached, monkeypatch: pytest.MonkeyPatch) -> None:
    digested: list[str] = []
    found = Held.digest.func
    monkeypatch.setattr(Held, "digest", property(lambda held: digested.append("") or found(held)))
    cached.facts(onert.load(FILE.read_bytes()))
    assert digested  # to store its program
    digested.clear()
    monkeypatch.setattr(programs, "WORTH_KEEPING", 1e9)
    cached.facts(onert.load(FILE.read_bytes() + bytes(64)))
    assert not digested
    other = Content(Held(bytes(10)), lambda _: ())
    assert other.outline != Content(Held(bytes(11)), lambda _: ()).outline


@pytest.mark.parametrize("name", ["first.tflite", "second.tflite"])
def test_programs_of_one_content_have_the_names_of_their_files(name: str, cached: Cached, tmp_path: Path) -> None:
    for each in ("first.tflite", "second.tflite", name):
        (tmp_path / each).write_bytes(FILE.read_bytes())
        assert cached.facts(onert.load(tmp_path / each))[3] == each.removesuffix(".tflite")
    assert cached.count == 2


# ---- code and machines


def least(*_: object) -> dict[str, bool]:
    """A processor that can do nothing that not all of its kind can."""
    return {}


PROCESS: Mapping[str, tuple[object, str, Any]] = {
    "sources": (key, "sources", lambda folder: "other"),
    "python": (sys, "hexversion", 1),
    **{
        name: (key, "installed", lambda folder, asked, name=name: "other" if asked == name else asked)
        for name in key.LIBRARIES
    },
    "machine": (os, "uname", lambda: SimpleNamespace(machine="other")),
    "processor": (key, "_features", least),
}
"""What decides each component that is of the process: where it is asked for, and another answer."""

FINGERPRINTS: Mapping[str, tuple[object, str, Any]] = {
    "sources of llvm": (onert_llvm.version, "sources", lambda folder: "other"),
    "llvmlite": (onert_llvm.version, "installed", lambda folder, name: "other"),
    "library of llvmlite": (onert_llvm.version, "_sizes", lambda folder: "other"),
    "processor for llvm": (target, "_host_features", least),
    "sources of reference": (onert_reference.backend, "sources", lambda folder: "other"),
    "sources of builtin": (onert_builtin.backend, "sources", lambda folder: "other"),
}
"""The same of what backends name in their fingerprints."""


def test_every_component_of_the_process_is_tried(cached: Cached) -> None:
    assert key.process().keys() == PROCESS.keys()
    assert {"sources", "python", "attrs", "ml_dtypes", "numpy", "machine", "processor"} <= PROCESS.keys()
    assert all(key.process().values())


@pytest.mark.parametrize("name", [*PROCESS, *FINGERPRINTS])
def test_code_libraries_and_machine_are_part_of_the_key(
    name: str, cached: Cached, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "processor for llvm" and target.runnable()[-1] == target.runnable()[0]:
        pytest.skip("this processor is the least of its kind")
    where, attribute, answer = {**PROCESS, **FINGERPRINTS}[name]
    if name in key.LIBRARIES:  # the libraries share a function
        monkeypatch.setattr(key, "installed", lambda folder, asked: asked)
    before = cached.facts(PLAIN, input_shapes=SHAPES)
    assert cached.count == 1
    with monkeypatch.context() as patch:
        patch.setattr(where, attribute, answer)
        key.process.cache_clear()
        onert_llvm.version.version.cache_clear()
        assert cached.facts(PLAIN, input_shapes=SHAPES)[-1] == before[-1]
        assert cached.count == 2
    key.process.cache_clear()
    onert_llvm.version.version.cache_clear()
    assert cached.facts(PLAIN, input_shapes=SHAPES) == before
    assert cached.count == 2


BACKENDS = {"others": ("reference",), "in another order": ("reference", "builtin", "llvm")}


@pytest.mark.parametrize("names", BACKENDS.values(), ids=BACKENDS)
def test_the_backends_that_are_used_are_part_of_the_key(names: tuple[str, ...], cached: Cached) -> None:
    base: dict[str, Any] = {"input_shapes": SHAPES}
    check_apart(cached, lambda: cached.facts(PLAIN, **base), lambda: cached.facts(PLAIN, **base, backends=names))


def test_backends_of_other_names_are_told_apart() -> None:
    class Named(Backend):
        def __init__(self, name: str) -> None:
            self.name = name  # type: ignore[misc]

        def fingerprint(self, settings: Settings) -> str:
            return "the same"

    found = [key.components(PLAIN, Options(), [Named(name)], ()) for name in ("one", "two", "one")]
    assert found[0] == found[2] != found[1]


@pytest.mark.parametrize("name", ["reference", "llvm", "builtin"])
def test_a_backend_that_names_nothing_keeps_programs_out_of_the_cache(
    name: str, cached: Cached, monkeypatch: pytest.MonkeyPatch
) -> None:
    backends = {b.name: type(b) for b in onert.backend.registry.load_backends()}
    monkeypatch.setattr(backends[name], "fingerprint", lambda backend, settings: None)
    for count in (1, 2):
        cached.facts(PLAIN, input_shapes=SHAPES)
        assert cached.count == count


# ---- another process

SCRIPT = """
import sys
import numpy as np
import onert
from onert.compiler import programs
from onert.backend import Backend, Settings
from onert.backend.writers import WRITERS
from compiler.test_key import graph, packaged, ADD, MUL, SHAPES
programs.WORTH_KEEPING = 0.0
compiled = []
compiler = programs._compiler
programs._compiler = lambda: compiled.append(1) or compiler()
package = packaged(graph(ADD, np.float32([float(sys.argv[1])] * 4)), graph(MUL))
passes = frozenset({"FoldConstants", "RemoveIdentities", "no such pass", "nor this"})
options = dict(input_shapes=SHAPES, num_threads=1, op_backend={"MUL": "reference"}, disabled_passes=passes)
program = onert.compile(package, **options)
WRITERS.finish()
(y,) = onert.Execution(program).run([np.zeros((1, 4), np.float32)]).values()
print(len(compiled), *y.reshape(-1))
"""


def test_another_process_finds_the_same_and_nothing_else(tmp_path: Path) -> None:
    said = []
    for seed, weight in (("1", "2"), ("2", "2"), ("3", "5"), ("4", "5")):
        environment = {
            **os.environ,
            "PYTHONHASHSEED": seed,
            "ONERT_CACHE_DIR": str(tmp_path),
            "PYTHONPATH": str(REPOSITORY / "tests"),
        }
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, weight], check=True, capture_output=True, text=True, env=environment
        )
        said.append(done.stdout.strip())
    two, five = " ".join(["2.0"] * 4), " ".join(["5.0"] * 4)
    assert said == [f"1 {two}", f"0 {two}", f"1 {five}", f"0 {five}"]


def test_constants_of_texts_are_told_apart() -> None:
    def structure(*texts: bytes) -> str:
        array = np.empty(len(texts), object)
        array[:] = texts
        return key.structure((), [Constant(array)])

    assert structure(b"a", b"bc") == structure(b"a", b"bc")
    assert structure(b"a", b"bc") != structure(b"ab", b"c")


def test_constants_of_the_same_bytes_are_told_apart_by_their_types() -> None:
    arrays = [np.zeros(4, np.float32), np.zeros((2, 2), np.float32), np.zeros(4, np.int32), np.zeros(16, np.int8)]
    assert len({key.structure((), [Constant(array)]) for array in arrays}) == len(arrays)
    assert len({key.elements([Constant(array)]) for array in arrays}) == 1

"""Names of bundles, entry points, tensors and files are valid in C and recognisable to the user."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from attrs import evolve

import onert
from onert.bundle.names import identifier, symbol, why_taken
from onert.ir import DType, Package, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.lookup.hash_tables import HashTable, HashTableFind
from onert.tools.bundle import main

from . import toys
from .machines import needs_compiler

TAKEN = {
    "memcpy": "the C library defines",
    "sinf": "the C library defines",
    "printf": "the C library defines",
    "main": "the C library defines",
    "pthread_create": "the C library defines",
    "size_t": "the header defines",
    "uint8_t": "the header defines",
    "INT32_MAX": "the header defines",
    "NULL": "the header defines",
    "GLOW_SUCCESS": "the header defines",
    "BundleConfig": "the header defines",
    "bundle_find_symbol": "the header defines",
    "activations": "entry point's parameter",
    "_net": "reserved for the compiler",
    "__net": "reserved for the compiler",
}
FREE = ("net", "lenet_mnist", "memcpy_", "Memcpy", "logits", "model_int8", "sinus", "glow", "size", "config", "A1")


@pytest.mark.parametrize("name", TAKEN)
@pytest.mark.parametrize("option", ["name", "entry"])
def test_a_name_reserved_in_c_is_rejected_with_a_suggestion(tmp_path: Path, option: str, name: str) -> None:
    with pytest.raises(
        onert.CompileError, match=f"{option} is '{name}', .*{TAKEN[name]}.*; another name is '"
    ) as raised:
        onert.bundle(toys.network(), tmp_path / "out", **{option: name})  # type: ignore[arg-type]
    assert str(raised.value).endswith(f"{symbol(name)!r}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", [*TAKEN, *FREE, "int", "9lives", "a-b", "", "é"])
def test_a_model_s_name_becomes_an_unreserved_identifier(name: str) -> None:
    found = symbol(name)
    assert why_taken(found) is None
    assert identifier(found) == found
    assert found == name or name not in FREE


@pytest.mark.parametrize("entry", ["net_config", "net_reset", "net_stop", "NET_MEM_ALIGN", "NET_CONSTANT_MEM_SIZE"])
def test_an_entry_point_must_not_clash_with_other_names_of_the_bundle(tmp_path: Path, entry: str) -> None:
    with pytest.raises(onert.CompileError, match=f"entry is '{entry}', which is the name of "):
        onert.bundle(toys.network(), tmp_path, name="net", entry=entry)
    assert list(tmp_path.iterdir()) == []


def test_duplicate_entry_points_are_rejected_or_renamed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], two_models: Path
) -> None:
    models = [str(two_models), str(two_models)]
    assert main([*models, "-o", str(tmp_path / "out"), "--entry", "a", "--entry", "a"]) == 2
    assert capsys.readouterr().err == "onert_bundle: --entry names 'a' twice, expected distinct names\n"
    assert main([*models, "-o", str(tmp_path / "out"), "--cpu", "native", "--json"]) == 0
    text = Path(json.loads(capsys.readouterr().out)["files"]["h"]).read_text()
    assert "int two(const uint8_t" in text
    assert "int two__1(const uint8_t" in text


@pytest.fixture
def two_models(tmp_path: Path) -> Path:
    """A zip package of two models whose tensors have no names."""
    folder = tmp_path / "packages"
    folder.mkdir()
    path = folder / "two.zip"
    model = Path(__file__).parents[2] / "docs" / "examples" / "lenet" / "lenet_mnist.tflite"
    manifest = {
        "major-version": "1",
        "minor-version": "2",
        "patch-version": "0",
        "models": ["a.tflite", "b.tflite"],
        "model-types": ["tflite", "tflite"],
        "pkg-inputs": ["0:0:0", "1:0:0"],
        "pkg-outputs": ["0:0:0", "1:0:0"],
    }
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("metadata/MANIFEST", json.dumps(manifest))
        for name in ("a.tflite", "b.tflite"):
            archive.writestr(name, model.read_bytes())
    return path


@needs_compiler
def test_tensors_of_a_package_have_the_same_names_as_in_process(tmp_path: Path, two_models: Path) -> None:
    package = onert.load(two_models)
    program = onert.compile(package)
    onert.bundle(package, tmp_path / "out", name="two", cpu="native")
    loaded = onert.load_bundle(tmp_path / "out")
    assert [i.name for i in loaded.inputs()] == [i.name for i in program.inputs]
    assert [i.name for i in loaded.outputs()] == [i.name for i in program.outputs]
    assert {i.name.partition("/")[0] for i in program.inputs} == {"a.tflite", "b.tflite"}


def _located(location: str) -> Package:
    """The lookup model, with another location for its operation."""
    package = toys.lookup()
    (graph,) = package.model.subgraphs
    operations = tuple(evolve(operation, location=location) for operation in graph.operations)
    return Package((Subgraphs((evolve(graph, operations=operations),)),), "lookup")


@needs_compiler
@pytest.mark.parametrize("location", ["a {0.__class__} b", "{:>99999999999}", "{", "{}", "{nothing}", "100 %s */ //"])
def test_a_location_with_format_characters_is_reported_verbatim(tmp_path: Path, location: str) -> None:
    package = _located(location)
    execution = onert.Execution(onert.compile(package, backends=("llvm",), num_threads=1))
    outside = [np.array([0, 7, 0, 0], np.int32)]
    with pytest.raises(onert.ExecutionError, match="index 7 is outside") as raised:
        execution.run(outside)
    assert str(raised.value).startswith(f"{location}: ")
    onert.bundle(package, tmp_path)
    with pytest.raises(onert.ExecutionError, match="index N is outside") as raised:
        onert.load_bundle(tmp_path).run(outside)
    assert f": {location}: " in str(raised.value)


def test_a_rejection_lists_every_cause(tmp_path: Path) -> None:
    b = Builder()
    words = b.input(TensorType(DType.STRING, (2,)), "words")
    b.input(TensorType(DType.FLOAT32, (None, 3)), "rows")
    table = b.add(HashTable(3, DType.STRING, DType.INT64))
    found = b.add(HashTableFind(), table, words, b.constant(np.zeros(1, np.int64)))
    with pytest.raises(onert.CompileError) as raised:
        onert.bundle(Package((b.model([found]),), "words"), tmp_path / "out")
    for cause in (
        "'words' has elements of type str, for which C has no type",
        r"'rows' has type f32[?, 3], expected a shape that is known before the run: give it one",
        "HashTableFind",
    ):
        assert cause in str(raised.value)

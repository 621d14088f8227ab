"""Files whose program is cached are read no further than the lookup needs."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from shared_material import REPOSITORY

import onert
from onert.backend.cache import Cache, default_directory
from onert.backend.writers import WRITERS
from onert.compiler.program_cache import key, other_shapes, serialize
from onert.frontend.onnx import model as onnx_model
from onert.frontend.tflite_schema import model as reader
from onert.frontend.tflite_schema.custom_ops import CUSTOM_OPS
from onert.ir import Array, ModelError, Package, content

FILE = REPOSITORY / "nnpackage" / "examples" / "digits_int8" / "digits_int8.tflite"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    WRITERS.finish()  # a program of an earlier test may still be being written, under keys of this process
    monkeypatch.setenv("ONERT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(other_shapes, "WORTH_CACHING", 0.0)


class Reads:
    """Counts how often a model is parsed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        read = reader.read_model

        def counted(*given: object) -> object:
            self.count += 1
            return read(*given)

        monkeypatch.setattr(reader, "read_model", counted)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    return Reads(monkeypatch)


def compiled(package: Package) -> onert.Program:
    program = onert.compile(package, num_threads=1)
    WRITERS.finish()
    return program


def outputs(program: onert.Program) -> list[Array]:
    rng = np.random.default_rng(0)
    given = [rng.integers(-9, 9, i.shape).astype(i.dtype.numpy) for i in program.inputs]
    return list(onert.Execution(program).run(given).values())


@pytest.mark.parametrize("source", [FILE, FILE.read_bytes()], ids=["a file", "bytes"])
def test_a_file_with_a_cached_program_is_parsed_only_when_used(source: Path | bytes, reads: Reads) -> None:
    first = onert.load(source)
    expected = outputs(compiled(first))
    assert reads.count == 1
    second = onert.load(source)
    found = compiled(second)
    assert all(np.array_equal(a, b) for a, b in zip(outputs(found), expected, strict=True))
    assert reads.count == 1
    assert second.models == first.models
    assert second == first
    assert second.signatures == first.signatures
    assert reads.count == 2


@pytest.mark.parametrize("apart", [False, True], ids=["in the file", "in another file"])
def test_an_onnx_file_is_parsed_again_only_if_its_weights_are_in_another_file(
    apart: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    onnx = pytest.importorskip("onnx", reason="the package onnx writes the models")
    reads, read = [], onnx_model.read_package
    monkeypatch.setattr(onnx_model, "read_package", lambda *given: reads.append(1) or read(*given))
    for number in (1, 2):
        weights = np.full((300, 300), number, np.float32)
        text = '<ir_version: 8, opset_import: ["" : 17]> g (float[n, 300] x) => (float[n, 300] y) { y = MatMul (x, w) }'
        model = onnx.parser.parse_model(text)
        model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
        # With the weights apart, both models are the same bytes.
        onnx.save(model, tmp_path / "m.onnx", save_as_external_data=apart, location="weights", size_threshold=0)
        for _ in range(2):
            program = compiled(onert.load(tmp_path / "m.onnx"))
            (y,) = onert.Execution(program).run([np.ones((2, 300), np.float32)]).values()
            WRITERS.finish()
            assert (y == 300 * number).all()
        (tmp_path / "weights").unlink(missing_ok=True)
    assert len(reads) == (4 if apart else 2)


@pytest.mark.parametrize("rows", [1000, 20000], ids=["read when opened", "read when used"])
@pytest.mark.parametrize("stored", ["as bytes", "as numbers"])
def test_a_table_is_read_from_its_place_in_an_onnx_file(
    rows: int, stored: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    onnx = pytest.importorskip("onnx", reason="the package onnx writes the models")
    reads, read = [], onnx_model.read_package
    monkeypatch.setattr(onnx_model, "read_package", lambda *given: reads.append(1) or read(*given))
    table = np.random.default_rng(rows).normal(size=(rows, 20)).astype(np.float32)
    text = '<ir_version: 8, opset_import: ["" : 17]> g (int64[3] i) => (float[3, 20] y) { y = Gather (t, i) }'
    model = onnx.parser.parse_model(text)
    tensor = onnx.numpy_helper.from_array(table, "t")
    if stored == "as numbers":
        tensor = onnx.helper.make_tensor("t", onnx.TensorProto.FLOAT, table.shape, table.reshape(-1).tolist())
    model.graph.initializer.append(tensor)
    onnx.save(model, tmp_path / "m.onnx")
    for _ in range(2):
        execution = onert.Execution(compiled(onert.load(tmp_path / "m.onnx")))
        (y,) = execution.run([np.array([5, 0, rows - 1])]).values()
        np.testing.assert_array_equal(y, table[[5, 0, -1]])
    assert len(reads) == 1  # both forms are the elements themselves


def test_a_table_that_was_overwritten_after_its_file_was_loaded_is_not_read(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx", reason="the package onnx writes the models")
    table = np.random.default_rng(1).normal(size=(20000, 20)).astype(np.float32)
    text = '<ir_version: 8, opset_import: ["" : 17]> g (int64[3] i) => (float[3, 20] y) { y = Gather (t, i) }'
    model, path = onnx.parser.parse_model(text), tmp_path / "m.onnx"
    model.graph.initializer.append(onnx.numpy_helper.from_array(table, "t"))
    onnx.save(model, path)
    compiled(onert.load(path))
    program = compiled(onert.load(path))
    content = bytearray(path.read_bytes())
    at = content.index(table[7].tobytes())
    content[at : at + 80] = bytes(80)
    path.write_bytes(content)
    with pytest.raises(ModelError, match="written to after it was loaded"):
        onert.Execution(program).run([np.array([5, 0, 7])])


def test_a_file_with_a_cached_program_can_be_compiled_with_other_options(reads: Reads) -> None:
    expected = outputs(compiled(onert.load(FILE)))
    assert reads.count == 1
    other = onert.compile(onert.load(FILE), num_threads=1, backends=("reference",))
    assert reads.count == 2
    assert all(np.array_equal(a, b) for a, b in zip(outputs(other), expected, strict=True))


def test_a_file_that_differs_in_one_byte_is_parsed(reads: Reads) -> None:
    compiled(onert.load(FILE))
    changed_content = bytearray(FILE.read_bytes())
    weights = max(
        (o.data.array for o in onert.load(FILE).model[0].operands if o.data is not None), key=lambda a: a.nbytes
    )
    changed_content[changed_content.index(weights.tobytes()[:64]) + 7] ^= 1
    reads.count = 0
    changed = onert.load(bytes(changed_content))
    assert reads.count == 1
    assert changed.models != onert.load(FILE).models


def test_a_malformed_file_is_rejected_although_the_sound_one_is_cached() -> None:
    compiled(onert.load(FILE))
    sound = FILE.read_bytes()
    for at in range(5000, len(sound) - 5000, len(sound) // 50):
        corrupt = sound[:at] + b"\xff" * 64 + sound[at + 64 :]
        try:
            whole = onert.load(corrupt)
        except ModelError:
            continue
        assert whole.models != onert.load(sound).models
    with pytest.raises(ModelError):
        onert.load(sound[:-5000])


def test_cached_programs_are_named_after_the_file_that_was_loaded(tmp_path: Path) -> None:
    other = tmp_path / "other.tflite"
    other.write_bytes(FILE.read_bytes())
    for path in (FILE, other, FILE, other):
        assert compiled(onert.load(path)).name == path.stem


def test_a_model_is_parsed_again_if_there_are_custom_operators(monkeypatch: pytest.MonkeyPatch, reads: Reads) -> None:
    compiled(onert.load(FILE))
    monkeypatch.setitem(CUSTOM_OPS, "Mine", lambda x, options: x)
    package = onert.load(FILE)
    assert reads.count == 2
    assert package.content is None
    compiled(package)


def overwritten(path: Path, content: bytes) -> None:
    """Write into the existing file rather than replacing it."""
    with path.open("r+b") as file:
        file.write(content)
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1_000_000))


def test_writing_to_a_small_file_does_not_change_the_loaded_package(tmp_path: Path) -> None:
    path = tmp_path / "digits.tflite"
    path.write_bytes(FILE.read_bytes())
    for _ in range(2):  # the program is not cached, then it is
        package = onert.load(path)
        overwritten(path, FILE.read_bytes()[:2000] + bytes(100))
        assert package.models == onert.load(FILE).models
        overwritten(path, FILE.read_bytes())
        compiled(onert.load(path))


def test_a_large_file_written_to_after_loading_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content, "READ_AT_ONCE", 1000)
    path = tmp_path / "digits.tflite"
    path.write_bytes(FILE.read_bytes())
    compiled(onert.load(path))
    touched, corrupt = onert.load(path), onert.load(path)
    overwritten(path, FILE.read_bytes())
    assert touched.models == onert.load(FILE).models
    overwritten(path, FILE.read_bytes()[:2000] + bytes(100))
    with pytest.raises(ModelError, match="written to after it was loaded"):
        onert.compile(corrupt, num_threads=1, planner="Bump")


def test_a_program_is_cached_under_the_content_it_was_compiled_from(tmp_path: Path, reads: Reads) -> None:
    path = tmp_path / "digits.tflite"
    path.write_bytes(FILE.read_bytes())
    package = onert.load(path)
    other = bytearray(FILE.read_bytes())
    overwritten(path, bytes(other[:2000]) + bytes(100) + bytes(other[2100:]))
    expected = outputs(compiled(package))
    assert reads.count == 1
    overwritten(path, FILE.read_bytes())
    found = compiled(onert.load(path))
    assert reads.count == 1
    assert all(np.array_equal(a, b) for a, b in zip(outputs(found), expected, strict=True))


def test_replacing_or_removing_a_file_does_not_change_the_loaded_package(tmp_path: Path) -> None:
    path = tmp_path / "digits.tflite"
    path.write_bytes(FILE.read_bytes())
    expected = compiled(onert.load(path)) and onert.load(FILE).models
    package = onert.load(path)
    (tmp_path / "other").write_bytes(b"no model")
    (tmp_path / "other").replace(path)
    assert package.models == expected
    path.unlink()
    assert outputs(onert.compile(package, num_threads=1, planner="Bump"))


def test_no_key_is_computed_before_the_first_program_if_the_cache_is_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key, "process", cache(key.process.__wrapped__))
    package = onert.load(FILE)
    assert not key.is_process_known()
    compiled(package)
    assert key.is_process_known()
    again = onert.load(FILE).content
    assert again is not None
    assert again.known


def test_an_unchanged_file_is_not_read_for_its_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content, "READ_AT_ONCE", 16)
    path = tmp_path / "model.tflite"
    path.write_bytes(FILE.read_bytes())
    digested: list[int] = []
    fill = content.File._fill

    def counted(file: content.File, target: memoryview, start: int) -> int:
        digested.append(len(target))
        return fill(file, target, start)

    monkeypatch.setattr(content.File, "_fill", counted)

    def load() -> tuple[str, int]:
        digested.clear()
        found = onert.load(path).content
        assert found is not None
        return key.content_digest(found), sum(digested)

    compiled(onert.load(path))  # marks the content as well-formed
    whole = path.stat().st_size
    monkeypatch.setattr(key, "is_settled", lambda changed: False)
    first, read = load()
    assert load() == (first, read)  # as for a file changed a moment ago, whose digest is not cached
    monkeypatch.setattr(key, "is_settled", lambda changed: True)
    load()
    again, count = load()
    assert again == first
    assert count == read - whole
    before = path.stat()
    data = bytearray(path.read_bytes())
    data[whole // 2] ^= 1  # the ends, which are compared first, stay the same
    path.write_bytes(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert load()[0] != first


def test_the_program_last_used_for_the_same_content_is_prefetched() -> None:
    cache_ = Cache(default_directory(os.environ))
    assert serialize.prefetch(onert.load(FILE)) is None  # there is none for new content
    first = compiled(onert.load(FILE))
    prefetched = serialize.prefetch(onert.load(FILE))
    assert prefetched is not None
    name, task = prefetched
    assert task.result() == cache_.load(name)
    onert.compile(onert.load(FILE), num_threads=2)  # not the one that is being prefetched
    WRITERS.finish()
    assert (onert.compile(onert.load(FILE), num_threads=1).num_threads, first.num_threads) == (1, 1)
    again = serialize.prefetch(onert.load(FILE))
    assert again is not None
    assert again[0] != name


def test_a_program_whose_entry_is_gone_after_prefetching_is_compiled(reads: Reads) -> None:
    compiled(onert.load(FILE))
    package = onert.load(FILE)
    prefetched = serialize.prefetch(package)
    assert prefetched is not None
    Cache(default_directory(os.environ)).remove([prefetched[0]])
    prefetched[1].result()
    before = reads.count
    compiled(package)
    assert reads.count > before


@pytest.mark.parametrize(
    "note",
    [
        b"",
        b"x",
        b"0" * 64,
        b"0" * 63 + b" 1",
        b"../" + b"0" * 61 + b" 1",
        b"0" * 64 + b" x",
        b"0" * 64 + b" 99999999999",
    ],
)
def test_an_invalid_note_of_the_last_program_prefetches_nothing(note: bytes) -> None:
    package = onert.load(FILE)
    assert package.content is not None
    package.content.last_program = note
    assert serialize.prefetch(package) is None

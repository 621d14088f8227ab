"""Models in `.litertlm` and `.task` files are found, and no declared offset reads outside the file."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

import flatbuffers
import numpy as np
import pytest
from attrs import evolve, frozen
from model_writer import Model
from zips import Entry, write_zip

import onert
from onert.frontend.containers.litertlm import MAGIC
from onert.frontend.containers.reading import models
from onert.ir import DType, ModelError

BLOCK = 16 * 1024


def model(factor: float) -> bytes:
    """A model that multiplies by a number."""
    writer = Model()
    graph = writer.graph()
    x, y = graph.input(DType.FLOAT32, (2,)), graph.tensor(DType.FLOAT32, (2,))
    graph.operator("MUL", [x, graph.constant(np.float32(factor))], [y], ("MulOptions", {}))
    graph.outputs(y)
    return writer.done()


def result(source: Path | bytes) -> float:
    program = onert.compile(onert.load(source))
    return float(next(iter(onert.Execution(program).run([np.float32([1, 1])]).values()))[0])


@frozen
class Section:
    """A section; fields that are None get their correct value."""

    content: bytes
    kind: int = 3
    name: str = ""
    begin: int | None = None
    end: int | None = None


def litertlm(
    sections: Sequence[Section], version: int = 1, end: int | None = None, magic: bytes = MAGIC, listed: bool = True
) -> bytes:
    """A file as LiteRT-LM lays it out; `end` overrides the declared end of the header."""
    places, body, at = [], b"", BLOCK
    for section in sections:
        places.append((at, at + len(section.content)))
        padded = -(-(len(section.content) + 1) // BLOCK) * BLOCK
        body += section.content.ljust(padded, b"\0")
        at += padded
    header = _header(sections, places, listed)
    last = 32 + len(header) if end is None else end
    return (struct.pack("<8s3I4xQ", magic, version, 2, 3, last) + header).ljust(BLOCK, b"\0") + body


def _header(sections: Sequence[Section], places: Sequence[tuple[int, int]], listed: bool) -> bytes:
    b = flatbuffers.Builder(256)
    objects = []
    for section, (begin, end) in zip(sections, places, strict=True):
        items = None
        if section.name:
            key, text = b.CreateString("model_type"), b.CreateString(section.name)
            b.StartObject(1)
            b.PrependUOffsetTRelativeSlot(0, text, 0)
            value = b.EndObject()
            b.StartObject(3)
            b.PrependUOffsetTRelativeSlot(0, key, 0)
            b.PrependUint8Slot(1, 9, 0)
            b.PrependUOffsetTRelativeSlot(2, value, 0)
            items = _vector(b, [b.EndObject()])
        b.StartObject(4)
        if items is not None:
            b.PrependUOffsetTRelativeSlot(0, items, 0)
        b.PrependUint64Slot(1, begin if section.begin is None else section.begin, 0)
        b.PrependUint64Slot(2, end if section.end is None else section.end, 0)
        b.PrependUint8Slot(3, section.kind, 0)
        objects.append(b.EndObject())
    vector = _vector(b, objects)
    b.StartObject(1)
    b.PrependUOffsetTRelativeSlot(0, vector, 0)
    metadata = b.EndObject()
    b.StartObject(2)
    if listed:
        b.PrependUOffsetTRelativeSlot(1, metadata, 0)
    b.Finish(b.EndObject())
    return bytes(b.Output())


def _vector(b: flatbuffers.Builder, offsets: Sequence[int]) -> int:
    b.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        b.PrependUOffsetTRelative(offset)
    found: int = b.EndVector()
    return found


TOKENIZER = Section(b"words", 4)


def test_loads_the_model_of_a_litertlm_file(tmp_path: Path) -> None:
    content = litertlm([TOKENIZER, Section(model(3)), Section(b"\x08\x01", 5)])
    (tmp_path / "decoder.litertlm").write_bytes(content)
    assert result(content) == 3
    assert result(tmp_path / "decoder.litertlm") == 3
    assert onert.load(tmp_path / "decoder.litertlm").name == "decoder"


def test_prefers_the_prefill_decode_model_of_several_and_can_load_the_others(tmp_path: Path) -> None:
    sections = [Section(model(2), name="tf_lite_embedder"), Section(model(5), name="TF_LITE_PREFILL_DECODE")]
    path = tmp_path / "several.litertlm"
    path.write_bytes(litertlm(sections))
    assert result(path) == 5
    found = models(path)
    assert list(found) == ["tf_lite_embedder", "tf_lite_prefill_decode"]
    assert result(found["tf_lite_embedder"]) == 2
    path.write_bytes(litertlm([sections[0], Section(model(4), name="tf_lite_vision_encoder")]))
    with pytest.raises(ModelError, match="it holds the models 'tf_lite_embedder', 'tf_lite_vision_encoder', expected"):
        onert.load(path)


@pytest.mark.parametrize("method", [0, 8])
def test_loads_the_model_of_a_task_file(tmp_path: Path, method: int) -> None:
    path = tmp_path / "hand.task"
    path.write_bytes(write_zip(Entry("notes.txt", b"none"), Entry("hand.tflite", model(7), method)))
    assert result(path) == 7
    entries = Entry("TF_LITE_EMBEDDER", model(2)), Entry("TF_LITE_PREFILL_DECODE", model(9), method)
    path.write_bytes(write_zip(*entries, Entry("TOKENIZER_MODEL", b"words")))
    assert result(path) == 9
    assert result(models(path)["tf_lite_embedder"]) == 2


ONE = Section(model(1))
WRONG = {
    "another version": (litertlm([ONE], version=2), "its version is 2.2.3, expected 1"),
    "a header behind the end": (litertlm([ONE], end=1 << 40), "its header ends at byte 1099511627776"),
    "a header before its beginning": (litertlm([ONE], end=8), "its header ends at byte 8, expected 32 to"),
    "a header cut off": (litertlm([ONE], end=40), "outside of the file's 8 bytes"),
    "nothing but its name": (MAGIC, "it has 8 bytes, fewer than the header has"),
    "no list of sections": (litertlm([ONE], listed=False), "it has 0 sections, expected 1 to 256"),
    "too many sections": (litertlm([TOKENIZER] * 257), "it has 257 sections, expected 1 to 256"),
    "no model": (litertlm([TOKENIZER]), "it holds the models none, expected a single"),
    "one name twice": (litertlm([evolve(ONE, name="x")] * 2), "it holds two models named 'x'"),
    "weights elsewhere": (litertlm([ONE, Section(b"w", 7)]), "section 1 holds external weights"),
    "a section behind the end": (litertlm([evolve(ONE, end=1 << 63)]), "section 0 spans bytes 16384 to 92233"),
    "a section in the header": (litertlm([evolve(ONE, begin=16)]), "section 0 spans bytes 16 to"),
    "a section turned round": (litertlm([evolve(ONE, begin=20000, end=19000)]), "section 0 spans bytes 20000 to 19000"),
    "no model in a model's section": (litertlm([Section(b"hello, world")]), "begins with b'hello, w', expected a TFL"),
    "a broken model": (litertlm([Section(model(1)[:40])]), "model 'section 0': "),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_malformed_container_is_refused_with_a_reason(tmp_path: Path, name: str) -> None:
    content, reason = WRONG[name]
    path = tmp_path / "wrong.litertlm"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=r"wrong\.litertlm: ") as caught:
        onert.load(path)
    assert reason in str(caught.value)


def test_corrupting_any_header_byte_loads_or_raises_a_model_error() -> None:
    content = litertlm([evolve(ONE, name="tf_lite_prefill_decode"), TOKENIZER])
    end = struct.unpack_from("<Q", content, 24)[0]
    rng = np.random.default_rng(0)
    refused = 0
    for at in range(8, end):
        changed = bytearray(content)
        changed[at] ^= int(rng.integers(1, 256))
        try:
            onert.load(bytes(changed))
        except ModelError:
            refused += 1
    assert refused > 50


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ([Entry("notes.txt", b"")], "it holds the models none"),
        ([Entry("a.tflite", b"nothing at all")], "the model 'a.tflite' begins with b'nothing '"),
        ([Entry("a.tflite", model(1), size=1 << 31)], "a.tflite unpacks to 2147483648 bytes"),
        ([Entry("a.tflite", model(1)), Entry("b.tflite", model(1))], "it holds the models 'a.tflite', 'b.tflite'"),
    ],
    ids=["none", "no model", "a bomb", "two"],
)
def test_a_task_file_without_one_valid_model_is_refused(tmp_path: Path, entries: list[Entry], reason: str) -> None:
    path = tmp_path / "wrong.task"
    path.write_bytes(write_zip(*entries))
    with pytest.raises(ModelError, match=r"wrong\.task: ") as caught:
        onert.load(path)
    assert reason in str(caught.value)

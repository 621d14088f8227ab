"""Deliberate mistakes: each gives one error message and a status, and never a traceback.

`mistakes/` lists them by subject: a shell `command` or a `python` expression, part of the message, and the exit status
or the class of the error.
"""

from __future__ import annotations

import os
import shlex
import struct
import tomllib
import wave
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import litert_peer as litert
import numpy as np
import pytest
from PIL import Image
from shared_material import REPOSITORY

import onert
from onert.ir import CallTypes, DType, TensorType
from onert.tools import bench, bundle, cache, inspect, run

HERE = Path(__file__).parent / "mistakes"
COMMANDS: dict[str, Callable[[list[str]], int]] = {
    "onert_run": run.main,
    "onert_inspect": inspect.main,
    "onert_bench": bench.main,
    "onert_bundle": bundle.main,
    "onert_cache": cache.main,
}
MODELS = {
    "vector": TensorType(DType.FLOAT32, (1, 10)),
    "numbers": TensorType(DType.INT32, (1, 10)),
    "boxes": TensorType(DType.FLOAT32, (1, 4, 4)),
    "one": TensorType(DType.FLOAT32, (1, 1)),
    "deep": TensorType(DType.FLOAT32, (1, 5, 5, 7)),
}
"""Models that compute absolute values, by name, with the type of their input."""


def _mistakes(kind: str) -> dict[str, dict[str, Any]]:
    rows = [row for file in sorted(HERE.glob("*.toml")) for row in tomllib.loads(file.read_text())["mistake"]]
    return {f"{row[kind]} {row.get('name', '')}".rstrip(): row for row in rows if kind in row}


SHELL, PYTHON = _mistakes("command"), _mistakes("python")


def _sound(path: Path, width: int, rate: int, samples: int) -> None:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(width)
        file.setframerate(max(rate, 1))
        file.writeframes(bytes(width * samples))
    content = bytearray(path.read_bytes())
    content[24:28] = rate.to_bytes(4, "little")
    path.write_bytes(content)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The values of the placeholders in commands; the folder `here` also contains the files that commands name."""
    here = tmp_path_factory.mktemp("mistakes")
    examples = REPOSITORY / "nnpackage" / "examples"
    found = {
        "here": str(here),
        "digits": str(examples / "digits_float"),
        "digits_file": str(examples / "digits_float" / "digits_float.tflite"),
        "labels": str(examples / "digits_float" / "labels.txt"),
        "digit": str(examples / "digits_float" / "samples" / "3.png"),
    }
    for name, type_ in MODELS.items():
        found[name] = str(here / f"{name}.tflite")
        Path(found[name]).write_bytes(litert.one_operator("ABS", ("AbsOptions", {}), CallTypes((type_,), (type_,)), {}))
    row = TensorType(DType.FLOAT32, (1, 3))
    found["adder"] = str(here / "adder.tflite")
    Path(found["adder"]).write_bytes(litert.one_operator("ADD", ("AddOptions", {}), CallTypes((row, row), (row,)), {}))
    Image.fromarray(np.arange(64, dtype=np.uint8).reshape(8, 8) * 3).save(here / "picture.png")
    for count, name in ((3, "three"), (11, "eleven")):
        (here / f"{name}.txt").write_text("\n".join(map(str, range(count))))
    for name in ("empty", "empty.wav", "empty.npz", "empty.npy", "empty.tflite"):
        (here / name).write_bytes(b"")
    for name in ("text.wav", "text.npz", "text.npy", "text.png", "text.h5", "text.tflite", "text.raw"):
        (here / name).write_text("words, and no more than words")
    _sound(here / "sound.wav", 2, 8000, 80)
    _sound(here / "silent.wav", 2, 8000, 0)
    _sound(here / "deep.wav", 4, 8000, 80)
    content = bytearray((here / "deep.wav").read_bytes())
    content[32:36] = (5).to_bytes(2, "little") + (40).to_bytes(2, "little")  # block size and bits per sample
    (here / "deep.wav").write_bytes(content)
    for name in ("text.mp4", "text.flac"):
        (here / name).write_text("words, and no more than words")
    bomb = bytearray((here / "picture.png").read_bytes())
    bomb[16:24] = struct.pack(">2I", 50_000, 50_000)
    bomb[29:33] = struct.pack(">I", zlib.crc32(bomb[12:29]))
    (here / "bomb.png").write_bytes(bomb)
    np.save(here / "zeros10.npy", np.zeros((1, 10), np.float32))
    (here / "hollow").mkdir()
    os.mkfifo(here / "pipe.png")
    _sound(here / "timeless.wav", 2, 0, 80)
    np.save(here / "zeros.npy", np.zeros((1, 8, 8, 1), np.float32))
    np.save(here / "ints.npy", np.zeros((1, 8, 8, 1), np.int32))
    np.save(here / "short.npy", np.zeros((1, 3), np.float32))
    np.savez(here / "other.npz", other=np.zeros(1))
    np.savez(here / "cut.npz", image=np.zeros((1, 8, 8, 1), np.float32))
    (here / "cut.npz").write_bytes((here / "cut.npz").read_bytes()[:200])
    np.save(here / "pickled.npy", np.array([None]), allow_pickle=True)
    header = np.lib.format.header_data_from_array_1_0(np.zeros(1)) | {"shape": (1 << 50,)}
    with (here / "huge.npy").open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
    for name in ("full.0", "full.npz", "full.svg", "full.html"):
        (here / name).symlink_to("/dev/full")
    (here / "raw.0").write_text("words, and no more than words")
    return found


def _filled(text: str, places: dict[str, str]) -> str:
    """The text with `{name}` replaced by the place of that name; other braces stay."""
    for name, place in places.items():
        text = text.replace(f"{{{name}}}", place)
    return text


@pytest.mark.parametrize("row", SHELL.values(), ids=SHELL.keys())
def test_a_mistake_at_the_shell_gives_one_message_and_a_status(
    row: dict[str, Any],
    places: dict[str, str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(places["here"])
    for name, value in row.get("environment", {}).items():
        monkeypatch.setenv(name, _filled(value, places))
    words = [_filled(word, places) for word in shlex.split(row["command"])]
    try:
        status = COMMANDS[words[0]](words[1:])
    except SystemExit as stop:
        status = int(stop.code or 0)
    captured = capsys.readouterr()
    assert _filled(row["says"], places) in captured.err, captured
    assert status == row["status"]
    assert "Traceback" not in captured.err
    assert not captured.out
    if status == 1:
        assert captured.err.startswith(f"{words[0]}: ")
        assert [line for line in captured.err.splitlines() if " note: " not in line] == [captured.err.splitlines()[-1]]


@pytest.mark.parametrize("row", PYTHON.values(), ids=PYTHON.keys())
def test_a_mistake_in_python_raises_an_error_with_a_helpful_message(
    row: dict[str, Any], places: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(places["here"])
    package = onert.load(places[row.get("model", "digits")])
    names = {"onert": onert, "np": np, "Path": Path, "package": package, **places}
    if "execution" in row["python"] or "program" in row["python"]:
        names["program"] = program = onert.compile(package)
        names["execution"] = onert.Execution(program)
    with pytest.raises(onert.OnertError) as caught:
        exec(row["python"], names)
    assert type(caught.value).__name__ == row["raises"]
    assert _filled(row["says"], places) in str(caught.value)


def test_no_mistake_is_listed_twice() -> None:
    rows = [row for file in HERE.glob("*.toml") for row in tomllib.loads(file.read_text())["mistake"]]
    assert len(rows) == len(SHELL) + len(PYTHON)

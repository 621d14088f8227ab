"""Whatever is passed as a model, every entry point raises an `OnertError`, and every tool prints one line."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import hostile_packages as hostile
import pytest
from patience import in_time
from shared_material import REPOSITORY

import onert
from onert.ir import ModelError, OnertError
from onert.tools import bench, bundle, inspect, run

MODEL = REPOSITORY / "nnpackage/examples/digits_float/digits_float.tflite"


def _link_to_a_pipe(path: Path) -> None:
    os.mkfifo(path.parent / "pipe")
    path.symlink_to("pipe")


def _folder_behind_a_loop(path: Path) -> None:
    (path.parent / "loop").symlink_to("loop")
    path.symlink_to("loop/model")


PLACES: dict[str, Callable[[Path], object]] = {
    **{name: make for name, make in hostile.IN_PLACE_OF_FILES.items() if name != "a link that leads out"},
    "a link to a pipe": _link_to_a_pipe,
    "a link through a loop": _folder_behind_a_loop,
    "text": lambda path: path.write_bytes(b"not a model"),
    "half a package": lambda path: path.write_bytes(b"PK\3\4"),
    "a package that runs code": lambda path: path.write_bytes(
        hostile.zipped(hostile.files(hostile.manifest(configs=["x.cfg"]), b"BACKENDS=os:abort", MODEL.read_bytes()))
    ),
}
NAMES = {
    "nothing there": "absent.tflite",
    "a name that is too long": "m" * 300,
    "a path that is too long": "m/" * 3000,
    "a path below a file": str(MODEL / "m.tflite"),
    "a null byte": "m\0.tflite",
    "half of a character": "m\ud800.tflite",
    "a line break": "m\n.tflite",
    "an escape sequence": "m\x1b[2J.tflite",
    "an empty path": "",
    "the root": "/",
    "a device": "/dev/zero",
}


class Path8:
    """An object of the os.PathLike protocol whose path is bytes."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __fspath__(self) -> bytes:
        return os.fsencode(self._path)


def _tool(main: Callable[[Sequence[str]], int], *more: str) -> Callable[[str, Path], object]:
    """A tool as a function that checks for exit status 1."""

    def call(path: str, folder: Path) -> None:
        status = main([path, *(str(folder / "out") if word == "OUT" else word for word in more)])
        assert status == 1

    return call


WAYS: dict[str, Callable[[str, Path], object]] = {
    "load": lambda path, _: onert.load(path),
    "load of a Path": lambda path, _: onert.load(Path(path)),
    "load of a path in bytes": lambda path, _: onert.load(Path8(Path(path))),
    "Interpreter": lambda path, _: onert.Interpreter(path),
    "Interpreter of a Path": lambda path, _: onert.Interpreter(model_path=Path(path)),
}
TOOLS: dict[str, Callable[[str, Path], object]] = {
    "onert_run": _tool(run.main),
    "onert_inspect": _tool(inspect.main, "--ops"),
    "onert_bundle": _tool(bundle.main, "-o", "OUT"),
    "onert_bench": _tool(bench.main, "--peers", ""),
}


def _refused(way: Callable[[str, Path], object], path: str, folder: Path) -> None:
    with in_time(), pytest.raises(OnertError) as caught:
        way(path, folder)
    assert str(caught.value).isprintable()


def _answered(tool: Callable[[str, Path], object], path: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with in_time():
        tool(path, folder)
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1, said.err
    assert said.err.startswith("onert_")


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
@pytest.mark.parametrize("make", PLACES.values(), ids=PLACES.keys())
def test_a_path_to_no_model_is_refused(
    tmp_path: Path, make: Callable[[Path], object], way: Callable[..., object]
) -> None:
    make(tmp_path / "model")
    _refused(way, str(tmp_path / "model"), tmp_path)


@pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS.keys())
@pytest.mark.parametrize("make", PLACES.values(), ids=PLACES.keys())
def test_tools_report_a_path_to_no_model_in_one_line(
    tmp_path: Path, make: Callable[[Path], object], tool: Callable[..., object], capsys: pytest.CaptureFixture[str]
) -> None:
    make(tmp_path / "model")
    _answered(tool, str(tmp_path / "model"), tmp_path, capsys)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("path", NAMES.values(), ids=NAMES.keys())
def test_an_invalid_path_is_refused(
    tmp_path: Path, path: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, way in WAYS.items():
        if "\ud800" not in path or "bytes" not in name:
            _refused(way, path, tmp_path)
    for tool in TOOLS.values():
        _answered(tool, path, tmp_path, capsys)


@pytest.mark.parametrize("source", [None, 3, 3.5, [], object(), {"a": 1}, range(3)], ids=lambda s: type(s).__name__)
def test_a_source_that_is_neither_a_path_nor_bytes_is_refused(source: Any) -> None:
    with pytest.raises(ModelError, match=f"is given a {type(source).__name__}, expected a path or bytes"):
        onert.load(source)
    for given in ({"model_path": source}, {"model_content": source}):
        with pytest.raises(OnertError):
            onert.Interpreter(**given)


@pytest.mark.parametrize("content", [10**12, "PK", 5], ids=["a number", "text", "a small number"])
def test_content_must_be_bytes(content: Any) -> None:
    """`bytes` of a number would be that many zeros."""
    with pytest.raises(OnertError, match=r"model_content is a (int|str), expected bytes"):
        onert.Interpreter(model_content=content)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_content_may_be_any_bytes_like_object(kind: Callable[[bytes], Any]) -> None:
    content = kind(MODEL.read_bytes())
    assert onert.load(content).models == onert.load(MODEL).models
    assert onert.Interpreter(model_content=content).get_input_details()


@pytest.mark.parametrize("content", [b"", b"PK\3\4", b"TFL3" * 9, MODEL.read_bytes()[:200]])
def test_malformed_content_is_refused(content: bytes) -> None:
    for way in (onert.load, lambda c: onert.Interpreter(model_content=c)):
        with pytest.raises(OnertError):
            way(content)


def test_running_out_of_memory_is_reported_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """While a model is read, and while an output is copied."""

    def none_left(*_: object, **__: object) -> None:
        raise MemoryError

    execution = onert.Execution(onert.compile(onert.load(MODEL)))
    execution.run([[[[[0.0]] * 8] * 8]])
    tensor = execution._frame.tensors[execution.program.main.subgraph.outputs[0]]

    class Full(type(tensor.buffer)):  # type: ignore[misc] # an array whose copy does not fit
        copy = none_left

    tensor.buffer = tensor.buffer.view(Full)
    with pytest.raises(onert.ExecutionError, match="not enough memory for a copy of output"):
        execution.get_output(0)
    monkeypatch.setattr("onert.frontend.registry.open_file", none_left)
    with pytest.raises(ModelError, match="there is not enough memory to read it"):
        onert.load(MODEL)

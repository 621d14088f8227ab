"""Small packages that describe a lot: many models, many ports, long lists, members that unpack to far more."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from typing import Any

from hostile.writer import Classes, Model, tensor

CLASSES = Classes()


def _relu() -> bytes:
    model = Model()
    return model.file([tensor(name="x"), tensor(name="y")], [model.operator("RELU", (0,), (1,))])


def package(manifest: Mapping[str, Any] | bytes, members: Mapping[str, bytes]) -> bytes:
    """A zip archive with a manifest and other members."""
    raw = (
        manifest
        if isinstance(manifest, bytes)
        else json.dumps({"major-version": "1", "minor-version": "3", **manifest}).encode()
    )
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("metadata/MANIFEST", raw)
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


@CLASSES.sized(10, 300, 3000)
def chained_models(count: int) -> bytes:
    """Each model's output is the next one's input; all are the same file."""
    joined = [{"from": f"{i}:0:0", "to": [f"{i + 1}:0:0"]} for i in range(count - 1)]
    ends = {"pkg-inputs": ["0:0:0"], "pkg-outputs": [f"{count - 1}:0:0"]}
    return package({"models": ["m.tflite"] * count, "model-connect": joined, **ends}, {"m.tflite": _relu()})


@CLASSES.sized(10, 300, 3000)
def chained_backwards(count: int) -> bytes:
    """A chain of models in reverse order."""
    joined = [{"from": f"{i + 1}:0:0", "to": [f"{i}:0:0"]} for i in range(count - 1)]
    ends = {"pkg-inputs": [f"{count - 1}:0:0"], "pkg-outputs": ["0:0:0"]}
    return package({"models": ["m.tflite"] * count, "model-connect": joined, **ends}, {"m.tflite": _relu()})


@CLASSES.sized(10, 3000, 90000)
def same_output(count: int) -> bytes:
    """One output of the package, listed many times."""
    manifest = {"models": ["m.tflite"], "pkg-inputs": ["0:0:0"], "pkg-outputs": ["0:0:0"] * count}
    return package(manifest, {"m.tflite": _relu()})


@CLASSES.sized(10, 300, 3000)
def side_by_side(count: int) -> bytes:
    """Models without connections, whose inputs and outputs are all the package's."""
    ports = [f"{i}:0:0" for i in range(count)]
    manifest = {"models": ["m.tflite"] * count, "pkg-inputs": ports, "pkg-outputs": ports}
    return package(manifest, {"m.tflite": _relu()})


@CLASSES.sized(10, 300, 3000)
def same_large_model(count: int) -> bytes:
    """A larger model, listed many times."""
    model = Model()
    model.graph([tensor() for _ in range(201)], [model.operator("TANH", (i,), (i + 1,)) for i in range(200)])
    return package({"models": ["m.tflite"] * count}, {"m.tflite": model.done()})


@CLASSES.sized(10, 300, 3000)
def one_to_many(count: int) -> bytes:
    """One output that feeds `count` models."""
    joined = [{"from": "0:0:0", "to": [f"{i + 1}:0:0" for i in range(count)]}]
    return package({"models": ["m.tflite"] * (count + 1), "model-connect": joined}, {"m.tflite": _relu()})


@CLASSES.sized(10, 1000, 100000)
def deep_manifest(depth: int) -> bytes:
    """Deeply nested lists."""
    return package(b'{"models": ' + b"[" * depth + b"]" * depth + b"}", {"m.tflite": _relu()})


@CLASSES.sized(10, 1000, 60000)
def long_manifest(count: int) -> bytes:
    """Unknown keys."""
    manifest = {"models": ["m.tflite"], **{f"k{i}": [i] for i in range(count)}}
    return package(manifest, {"m.tflite": _relu()})


@CLASSES.sized(10, 5000, 100000)
def long_number(digits: int) -> bytes:
    """A version number of many digits."""
    raw = b'{"models": ["m.tflite"], "major-version": ' + b"1" * digits + b"}"
    return package(raw, {"m.tflite": _relu()})


@CLASSES.sized(10, 1000, 10000)
def same_config(count: int) -> bytes:
    """One configuration file, listed many times."""
    manifest = {"models": ["m.tflite"], "configs": ["c.cfg"] * count}
    text = "".join(f"K{i}={i}\n" for i in range(count)).encode()
    return package(manifest, {"m.tflite": _relu(), "metadata/c.cfg": text})


@CLASSES.sized(1, 100, 1000)
def bomb(megabytes: int) -> bytes:
    """A model that is mostly zeros and unpacks to far more than the archive."""
    return package({"models": ["m.tflite"]}, {"m.tflite": _relu() + bytes(megabytes << 20)})


@CLASSES.sized(1, 10, 40)
def many_bombs(count: int) -> bytes:
    """Models of 50 MB of zeros each."""
    names = [f"m{i}.tflite" for i in range(count)]
    model = _relu() + bytes(50 << 20)
    return package({"models": names}, dict.fromkeys(names, model))


@CLASSES.sized(10, 1000, 60000)
def many_members(count: int) -> bytes:
    """An archive of many files that nothing refers to."""
    return package({"models": ["m.tflite"]}, {"m.tflite": _relu(), **{f"f{i}": b"" for i in range(count)}})


@CLASSES.sized(1, 100, 1000)
def manifest_bomb(megabytes: int) -> bytes:
    """A manifest that is mostly blanks."""
    return package(b'{"models": ["m.tflite"]}' + b" " * (megabytes << 20), {"m.tflite": _relu()})

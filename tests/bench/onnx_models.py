"""ONNX models against ONNX Runtime and OpenVINO, round by round, as a Markdown table.

    python tests/bench/onnx_models.py [--threads 1,2] [--rounds 40] [--seconds 20] [NAME ...]

Without NAME: every shared model of `test_onnx_models`, with the shapes given there, and `MORE`. NAME selects the models
whose file name contains it. A cell has a value for each number of threads. Ratios are medians over the rounds, as in
`onert_bench`; the last column is the ratio to the faster peer. A peer that cannot read a model has no entry. The table
is printed when everything is measured, ready for docs/performance.md; until then each row goes to standard error.
"""

from __future__ import annotations

import argparse
import sys
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
"""Image sizes that the models' packages use, where the tests use smaller ones."""


def rows(names: list[str]) -> Iterator[tuple[str, Shapes]]:
    """Models and the shapes of those inputs that have unknown dimensions."""
    for name, shapes in (*((n, s) for n, s, _ in ROWS), *MORE):
        if not names or any(wanted in name for wanted in names):
            yield name, {key: LARGER.get(key, shape) for key, shape in shapes.items()}


def label(name: str) -> str:
    """The package and the model, without the package's version: `nudenet-3.4.2__320n` is `nudenet 320n`."""
    package, _, model = name.partition("__")
    return f"{package.rpartition('-')[0]} {model}"


def compared(path: Path, shapes: Shapes, threads: int, rounds: int, seconds: float) -> list[tuple[float, float]]:
    """Milliseconds of onert and of each peer, with the factor by which onert is faster; 0 for a peer that fails."""
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=20.0)
    chosen = parser.parse_args()
    columns = "onert ms | ONNX Runtime ms | speedup | OpenVINO ms | speedup | lower"
    ratios: dict[int, list[float]] = {int(threads): [] for threads in chosen.threads.split(",")}
    table: dict[str, str] = {}
    for name, shapes in rows(chosen.names):
        path = MODELS / f"{name}.onnx"
        if not path.is_file():
            continue
        cells: list[list[str]] = []
        for threads in ratios:
            (mine, _), *peers = compared(path, shapes, threads, chosen.rounds, chosen.seconds)
            lowest = min(ratio for _, ratio in peers if ratio)
            ratios[threads].append(lowest)
            of_peers = [(f"{ms:.3f}", f"{ratio:.2f}") if ratio else ("-", "-") for ms, ratio in peers]
            cells.append([f"{mine:.3f}", *(cell for pair in of_peers for cell in pair), f"{lowest:.2f}"])
        table[name] = f"| {label(name)} | {' | '.join(' / '.join(each) for each in zip(*cells, strict=True))} |"
        print(table[name], file=sys.stderr, flush=True)
    print(f"| model, {' / '.join(map(str, ratios))} threads | {columns} |\n|---|{'---:|' * 6}")
    for name in sorted(table, key=str.casefold):
        print(table[name])
    for threads, found in ratios.items():
        mean = exp(float(np.mean([log(r) for r in found])))
        print(f"\n{threads} threads: geometric mean {mean:.2f}, lowest {min(found):.2f}")


if __name__ == "__main__":
    main()

"""ONNX models beside ONNX Runtime, round by round, as a table in Markdown.

    python tests/bench/onnx_models.py [--threads 1,2] [--rounds 40] [--seconds 20] [NAME ...]

Without a name: every shared model of `test_onnx_models`, at the shapes given there, and `MORE`. A name chooses the
models whose file name contains it. Ratios are the median over the rounds, as `onert_bench` gives them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from math import exp, log
from pathlib import Path
from typing import Any

import numpy as np

import onert
from onert.tools.contest import Contestant, contest
from onert.tools.peers import onnxruntime

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "conformance"))

from test_onnx_models import MODELS, ROWS, inputs_of

Shapes = dict[str, tuple[int, ...]]
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


def compared(path: Path, shapes: Shapes, threads: int, rounds: int, seconds: float) -> tuple[float, float, float]:
    """Milliseconds of onert and of ONNX Runtime, and how many times onert is faster."""
    import onnxruntime as ort

    ort.set_default_logger_severity(3)
    session: Any = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    if not shapes:
        shapes = {i.name: tuple(d if isinstance(d, int) else 1 for d in i.shape) for i in session.get_inputs()}
    inputs = inputs_of(session, shapes)
    peer = onnxruntime(path, list(inputs.values()), threads)
    given = {name: array.shape for name, array in inputs.items()}
    execution = onert.Execution(onert.compile(onert.load(path), input_shapes=given, num_threads=threads))
    contestants = [Contestant("onert", lambda: execution.run(inputs)), Contestant("ONNX Runtime", peer.call)]
    mine, theirs = contest(contestants, rounds=rounds, budget_seconds=seconds)
    return mine.minimum * 1e3, theirs.minimum * 1e3, mine.ratio(theirs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=20.0)
    chosen = parser.parse_args()
    print("| model | threads | onert ms | ONNX Runtime ms | faster by |\n|---|---:|---:|---:|---:|")
    ratios: dict[int, list[float]] = {}
    for name, shapes in rows(chosen.names):
        path = MODELS / f"{name}.onnx"
        if not path.is_file():
            continue
        for threads in map(int, chosen.threads.split(",")):
            mine, theirs, ratio = compared(path, shapes, threads, chosen.rounds, chosen.seconds)
            ratios.setdefault(threads, []).append(ratio)
            print(f"| {name.partition('__')[2]} | {threads} | {mine:.3f} | {theirs:.3f} | {ratio:.2f} |", flush=True)
    for threads, found in ratios.items():
        mean = exp(float(np.mean([log(r) for r in found])))
        print(f"\n{threads} threads: geometric mean {mean:.2f}, lowest {min(found):.2f}")


if __name__ == "__main__":
    main()

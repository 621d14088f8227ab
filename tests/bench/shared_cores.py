"""Run times while another process spins on every core, against LiteRT, as in docs/performance.md.

    python tests/bench/shared_cores.py [--threads 1,2] [--rounds N] [--seconds S] [--apart] [--free] [MODEL ...]

One spinning process is bound to each core that this process may use. Each runtime and thread count runs alternately;
a round is long compared with the scheduler's time slices, and its time is the mean over all runs in it. Shown are
medians over the rounds of the times and of the ratios. With `--apart` the spinning processes are in a session of their
own, because Linux may divide processor time by session. With `--free` nothing spins.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

import onert
from onert.tools.inputs import random
from onert.tools.peers import PeerError, litert

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from shared_material import SHARED

SPIN = """
import os, sys
os.sched_setaffinity(0, {int(sys.argv[1])})
print(flush=True)
while os.getppid() == int(sys.argv[2]):
    sum(range(10_000))
"""
MODELS = (
    "trained_lstm",
    "kws_ref_model",
    "ds_cnn_quantized",
    "yamnet_audio_classifier_with_metadata",
    "face_landmark",
    "ocr_dr",
    "mobilenet_v1_0.25_224_1_default_1",
    "mobilenet_v3_small_224_fp32",
    "tf2_mobilenet_v2_1.0_224_ptq",
    "efficientnet_lite0",
    "movenet_single_pose_lightning_ptq",
    "mobilenet_v2_1.0_224_fp32",
    "bert_small_4l_256h_s128_fp32",
    "pose_landmark_full",
    "resnet50_224_int8",
    "nmp",
)
Call = Callable[[], object]


@contextlib.contextmanager
def spinning(apart: bool) -> Iterator[None]:
    """Keep each core busy with a process until the block, or this process, ends."""
    arguments = [sys.executable, "-c", SPIN]
    started = [
        subprocess.Popen([*arguments, str(core), str(os.getpid())], stdout=subprocess.PIPE, start_new_session=apart)
        for core in os.sched_getaffinity(0)
    ]
    try:
        for process in started:
            assert process.stdout is not None
            process.stdout.readline()
        yield
    finally:
        for process in started:
            process.kill()
            process.communicate()


def prepared(path: Path, threads: Sequence[int]) -> dict[str, Call]:
    """A function for each runtime and number of threads, by name."""
    package = onert.load(path)
    found: dict[str, Call] = {}
    for count in threads:
        execution = onert.Execution(onert.compile(package, num_threads=count))
        rng = np.random.default_rng(0)
        inputs = [random(info, rng) for info in execution.program.inputs]
        for position, array in enumerate(inputs):
            execution.set_input(position, array)
        execution.execute()
        found[f"onert {count}"] = execution.execute
        with contextlib.suppress(PeerError):
            found[f"LiteRT {count}"] = litert(path, inputs, count).call
    return found


def mean(call: Call, seconds: float) -> float:
    """The mean seconds of a run over a round."""
    runs, start = 0, time.perf_counter()
    while (now := time.perf_counter()) < start + seconds or runs < 4:
        call()
        runs += 1
    return (now - start) / runs if runs and now > start else math.nan


def row(path: Path, options: argparse.Namespace) -> str:
    calls = prepared(path, options.threads)
    for call in calls.values():
        mean(call, options.seconds)
    rounds: list[dict[str, float]] = []
    for at in range(options.rounds):
        names = list(calls) if at % 2 else list(reversed(calls))
        rounds.append({name: mean(calls[name], options.seconds) for name in names})

    def ratio(above: str, below: str) -> str:
        if above not in calls:
            return "-"
        return f"{statistics.median(r[above] / r[below] for r in rounds):.2f}"

    cells = [path.stem]
    for name in (f"{runtime} {count}" for runtime in ("onert", "LiteRT") for count in options.threads):
        cells.append(f"{statistics.median(r[name] for r in rounds) * 1e3:.3f}" if name in calls else "-")
    one, *more = options.threads
    cells += [ratio(f"onert {one}", f"onert {count}") for count in more]
    cells += [ratio(f"LiteRT {count}", f"onert {count}") for count in options.threads]
    return "| " + " | ".join(cells) + " |"


def main() -> int:
    out = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    out.add_argument("models", type=Path, nargs="*", metavar="MODEL")
    out.add_argument("--threads", type=lambda text: [int(each) for each in text.split(",")], default=[1, 2])
    out.add_argument("--rounds", type=int, default=15)
    out.add_argument("--seconds", type=float, default=0.1, help="per round")
    out.add_argument("--apart", action="store_true")
    out.add_argument("--free", action="store_true")
    options = out.parse_args()
    files = {path.stem: path for path in (SHARED / "models").rglob("*.tflite")}
    paths = options.models or [files[name] for name in MODELS if name in files]
    one, *more = options.threads
    heads = [f"{r} {c} ms" for r in ("onert", "LiteRT") for c in options.threads]
    heads += [f"onert {one} / onert {c}" for c in more] + [f"LiteRT {c} / onert {c}" for c in options.threads]
    print("| model | " + " | ".join(heads) + " |")
    print("|---|" + "---:|" * len(heads))
    with contextlib.nullcontext() if options.free else spinning(options.apart):
        for path in paths:
            print(row(path, options), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

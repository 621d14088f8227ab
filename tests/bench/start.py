"""Start-up, compile time, memory and call overhead, against LiteRT and OpenVINO, as Markdown tables.

    python tests/bench/start.py [--rounds N] [--threads N] [--shipped] [MODEL ...]

Without MODEL: the shared MobileNet V2 in float32 and int8. Every number comes from separate processes, one for each
program in turn, in reverse order every other round. Shown are medians, and the median of the rounds' ratios to the peer
named in the heading. The last row of a table is the first program again, to show the accuracy of the method: its ratio
should be 1.00. With `--shipped` the kernels of the measured models are first generated into the library from which
first runs take them (`onert_cache ship`), as in a wheel that ships them, and removed at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
from attrs import frozen

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from model_writer import Model
from shared_material import SHARED

from onert.ir import DType
from onert.runtime.shipping import ship

AGAIN = ", again"
MODELS = ("generated-keras/mobilenet_v2_1.0_224_fp32.tflite", "google-coral/tf2_mobilenet_v2_1.0_224_ptq.tflite")

_MOST_MEMORY = """
print(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1])
"""
FIRST = {
    "onert": """
import sys
import numpy as np
import onert
execution = onert.Execution(onert.compile(onert.load(sys.argv[1]), num_threads=int(sys.argv[2])))
execution.run([np.zeros(i.shape, i.dtype.numpy) for i in execution.program.inputs])
"""
    + _MOST_MEMORY,
    "LiteRT": """
import sys
import numpy as np
from ai_edge_litert.interpreter import Interpreter
interpreter = Interpreter(sys.argv[1], num_threads=int(sys.argv[2]))
interpreter.allocate_tensors()
for given in interpreter.get_input_details():
    interpreter.set_tensor(given["index"], np.zeros(given["shape"], given["dtype"]))
interpreter.invoke()
[interpreter.get_tensor(made["index"]) for made in interpreter.get_output_details()]
"""
    + _MOST_MEMORY,
    "OpenVINO": """
import sys
import numpy as np
import openvino
compiled = openvino.Core().compile_model(sys.argv[1], "CPU", {"INFERENCE_NUM_THREADS": int(sys.argv[2])})
compiled([np.zeros(tuple(i.shape), i.element_type.to_dtype()) for i in compiled.inputs])
"""
    + _MOST_MEMORY,
}
"""From process start to the first result."""

_CLOCK = "import json, sys, time"
_STARTED = "wall, cpu = time.perf_counter(), time.process_time()"
_READ = {
    "onert": ("import onert", "package = onert.load(sys.argv[1])"),
    "OpenVINO": ("import openvino", "core = openvino.Core()\nmodel = core.read_model(sys.argv[1])"),
}
_COMPILED = {
    "onert": "onert.compile(package, num_threads=int(sys.argv[2]))",
    "OpenVINO": 'core.compile_model(model, "CPU", {"INFERENCE_NUM_THREADS": int(sys.argv[2])})',
}
_TOLD = "print(json.dumps([time.perf_counter() - wall, time.process_time() - cpu]))"
COMPILE = {
    name: "\n".join((imported, _CLOCK, read, _STARTED, _COMPILED[name], _TOLD))
    for name, (imported, read) in _READ.items()
}
"""Compile the first model that a process has read, with an empty cache."""
LOAD = {
    name: "\n".join((imported, _CLOCK, _STARTED, read, _COMPILED[name], _TOLD))
    for name, (imported, read) in _READ.items()
}
"""Read that model too. Reading includes loading of compiler parts that do not depend on the model, in both."""

_TIMED = """
best = 1.0
for _ in range(40):
    start = time.perf_counter()
    for _ in range(1000):
        call()
    best = min(best, (time.perf_counter() - start) / 1000)
print(json.dumps([best, best]))
"""
CALL = {
    "onert": """
import json, sys, time
import numpy as np
import onert
execution = onert.Execution(onert.compile(onert.load(sys.argv[1]), num_threads=int(sys.argv[2])))
for number, given in enumerate(execution.program.inputs):
    execution.set_input(number, np.zeros(given.shape, given.dtype.numpy))
for number, made in enumerate(execution.program.outputs):
    execution.set_output(number, np.zeros(made.shape, made.dtype.numpy))
call = execution.execute
"""
    + _TIMED,
    "LiteRT": """
import json, sys, time
from ai_edge_litert.interpreter import Interpreter
interpreter = Interpreter(sys.argv[1], num_threads=int(sys.argv[2]))
interpreter.allocate_tensors()
call = interpreter.invoke
"""
    + _TIMED,
}
"""A call of a nearly empty model whose buffers are bound."""


@frozen
class Run:
    """One process's wall time and CPU time in seconds, and its peak memory in MiB as counted by the system.

    The memory is read by the process itself, because the resource usage that a parent receives includes the parent's
    own at the time of the fork.
    """

    wall: float
    cpu: float
    memory: float


def run(program: str, model: Path, threads: int, environment: Mapping[str, str], timed: bool) -> Run:
    """Run one process; with `timed` it prints the duration of the interesting part itself."""
    start = perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(model), str(threads)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**{k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}, **environment},
    )
    assert process.stdout is not None
    printed = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    wall = perf_counter() - start
    if process.returncode:
        raise SystemExit(f"a program ended with {process.returncode} on {model.name}")
    cpu = usage.ru_utime + usage.ru_stime
    last = json.loads(printed.splitlines()[-1])
    return Run(*last, memory=0.0) if timed else Run(wall, cpu, last / 1024)


def in_turn(
    programs: Mapping[str, str], model: Path, chosen: argparse.Namespace, kept: Mapping[str, Path], timed: bool
) -> dict[str, list[Run]]:
    """The runs of all programs, each with its cache in `kept`, or else with a new cache for each process."""
    again = next(iter(programs))
    every = {**programs, f"{again}{AGAIN}": programs[again]}
    found: dict[str, list[Run]] = {name: [] for name in every}
    for number in range(chosen.rounds):
        for name in reversed(every) if number % 2 else every:
            with tempfile.TemporaryDirectory() as empty:
                environment = {"ONERT_CACHE_DIR": str(kept.get(name.removesuffix(AGAIN), empty))}
                found[name].append(run(every[name], model, chosen.threads, environment, timed))
    return found


def ratio(own: Sequence[float], other: Sequence[float]) -> float:
    return median(a / b for a, b in zip(own, other, strict=True))


def table(title: str, runs: Mapping[str, Sequence[Run]], peer: str, unit: float, memory: bool) -> Iterator[str]:
    """A row for each program; `unit` is the unit of the times, in seconds."""
    name = {1.0: "s", 1e-3: "ms", 1e-6: "us"}[unit]
    yield f"\n{title}\n"
    yield f"| | {name} | CPU {name} | ratio to {peer} |" + (f" peak MiB | ratio to {peer} |" if memory else "")
    yield "|---|---|---|---|" + ("---|---|" if memory else "")
    walls = {label: [r.wall for r in some] for label, some in runs.items()}
    sizes = {label: [r.memory for r in some] for label, some in runs.items()}
    first = next(iter(runs))
    for label, some in runs.items():
        wall, cpu = median(walls[label]) / unit, median(r.cpu for r in some) / unit
        against = first if label.endswith(AGAIN) else peer
        row = f"| {label} | {wall:.3g} | {cpu:.3g} | {ratio(walls[label], walls[against]):.2f} |"
        if memory:
            row += f" {median(sizes[label]):.0f} | {ratio(sizes[label], sizes[against]):.2f} |"
        yield row


def tiny(folder: Path) -> Path:
    """A model of one addition."""
    model = Model()
    graph = model.graph()
    x, y = graph.input(DType.FLOAT32, (4,)), graph.tensor(DType.FLOAT32, (4,))
    graph.operator("ADD", [x, graph.constant(np.ones(4, np.float32))], [y], ("AddOptions", {}))
    graph.outputs(y)
    path = folder / "tiny.tflite"
    path.write_bytes(model.done())
    return path


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--shipped", action="store_true")
    chosen = parser.parse_args(arguments)
    models = chosen.models or [SHARED / "models" / name for name in MODELS]
    shipped = ship(models) if chosen.shipped else []
    try:
        tables(models, chosen)
    finally:
        for path in shipped:
            path.unlink()


def tables(models: Sequence[Path], chosen: argparse.Namespace) -> None:
    """Measure everything and print the tables."""
    with tempfile.TemporaryDirectory() as folder:
        for model in models:
            kept = Path(folder) / "cache"
            run(FIRST["onert"], model, chosen.threads, {"ONERT_CACHE_DIR": str(kept)}, False)
            first = in_turn(FIRST, model, chosen, {"onert": kept}, False)
            print(*table(f"{model.stem}: process to the first answer", first, "LiteRT", 1e-3, True), sep="\n")
            new = {"onert, kept": FIRST["onert"], "onert, nothing kept": FIRST["onert"]}
            caches = {"onert, kept": kept}
            firsts = in_turn(new, model, chosen, caches, False)
            print(*table(f"{model.stem}: a first run beside a kept one", firsts, "onert, kept", 1e-3, True), sep="\n")
            for what, programs in {"compile": COMPILE, "load and compile": LOAD}.items():
                taken = in_turn(programs, model, chosen, {}, True)
                print(*table(f"{model.stem}: {what}, nothing kept", taken, "OpenVINO", 1e-3, False), sep="\n")
        calls = in_turn(CALL, tiny(Path(folder)), chosen, {"onert": Path(folder) / "cache"}, True)
        print(*table("a model of one addition: one call", calls, "LiteRT", 1e-6, False), sep="\n")


if __name__ == "__main__":
    main()

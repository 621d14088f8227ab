"""Fully connected layers with low-bit weights against the machine's limits: `python tests/bench/weights.py`.

    python tests/bench/weights.py [--size 4096] [--layers 8] [--rounds 15]

A chain of size x size layers with float activations that are quantised row by row (dynamic range). With one row each
weight is read once, so its bytes per second are compared with those of a loop that only reads as much memory. Many rows
are compared with the core's peak for int8 products. Each round runs the loop and the layers alternately on one thread;
shares are medians over the rounds. Prints Markdown.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from statistics import median

import numpy as np
from attrs import frozen
from kernels import CHAINS, Peak, Runner
from stopwatch import fastest

import onert
from onert.ir import DType, Package, Quantization, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import I32, Kernel, Val
from onert_llvm.target.isa import target

ROWS = 128
RUN = 32
"""Weights per block that share a scale."""


@frozen
class Read:
    """Read memory into several registers at a time; a work tile is one such step."""

    name: str = "read"
    slots: tuple[str, ...] = ("x", "out")

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        lanes = k.isa.f32
        x, out = task.view("x", I32, CHAINS * lanes, lanes, 1), task.view("out", I32, 1)
        acc = [k.var(k.zeros(I32, lanes)) for _ in range(CHAINS)]
        with k.loop(end, begin) as step:
            for i, a in enumerate(acc):
                a.set(a.get() ^ x[step, i].load(lanes))
        for i, a in enumerate(acc):
            out[i * lanes].store(a.get())


def layers(dtype: DType, rows: int, size: int, count: int, run: int | None) -> Callable[[], object]:
    """A function that runs `count` layers."""
    rng, b = np.random.default_rng(0), Builder()
    y = b.input(TensorType(DType.FLOAT32, (rows, size)), "x")
    low, high = dtype.limits
    scales = size if run is None else size * size // run
    for _ in range(count):
        own = tuple(rng.uniform(0.001, 0.002, scales).astype(np.float32).tolist())
        how = Quantization(own, (0,) * scales, 0 if run is None else 1, run)
        w = rng.integers(low, high, (size, size), np.int8, endpoint=True)
        y = b.add(FullyConnected(), y, b.constant(w, quantization=how, dtype=dtype))
    package = Package((Subgraphs((b.subgraph([y]),)),), "layers")
    execution = onert.Execution(onert.compile(package, num_threads=1))
    execution.set_input(0, rng.standard_normal((rows, size), np.float32))
    return execution.execute


def share(
    run: Callable[[], object], work: float, top: Callable[[], object], top_work: float, rounds: int
) -> list[float]:
    """The work per second of a run, and its share of the loop's, as medians over the rounds."""
    run()
    found = []
    for i in range(rounds):
        pair = [(top, 2), (run, 3)] if i % 2 else [(run, 3), (top, 2)]
        times = {call: fastest(call, repeat) for call, repeat in pair}
        found.append((work / times[run], work / times[run] / (top_work / times[top])))
    return [median(each) for each in zip(*found, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=15)
    given = parser.parse_args()
    isa = target("native")
    runner = Runner(isa, True)
    out = np.zeros(CHAINS * isa.f32, np.int32)
    weights = given.layers * given.size**2
    trips = 100_000
    peak = Peak(True)
    start = np.full(CHAINS * isa.f32, 0.5, np.float32)
    products, products_work = runner.bind(peak, trips, {"out": start}), peak.operations(isa) * trips
    print("| weights | one row, GB/s | of the bandwidth | 128 rows, G/s | of the peak |")
    print("|---|---:|---:|---:|---:|")
    for name, dtype, run in (
        ("int8", DType.INT8, None),
        ("int4", DType.INT4, None),
        ("int2", DType.INT2, None),
        (f"int4, blocks of {RUN}", DType.INT4, RUN),
    ):
        nbytes = weights * dtype.bits // 8 + (0 if run is None else 4 * weights // run)
        memory = np.ones(nbytes, np.uint8)
        read = runner.bind(Read(), nbytes // (CHAINS * isa.vector_bytes), {"x": memory, "out": out})
        one = share(layers(dtype, 1, given.size, given.layers, run), nbytes, read, nbytes, given.rounds)
        few = 2
        many = layers(dtype, ROWS, given.size, few, run)
        work = 2 * ROWS * few * given.size**2
        several = share(many, work, products, products_work, given.rounds)
        print(f"| {name} | {one[0] / 1e9:.1f} | {one[1]:.0%} | {several[0] / 1e9:.0f} | {several[1]:.0%} |", flush=True)


if __name__ == "__main__":
    main()

"""What the first lengths of a model cost: processor time of a first run, and memory after it.

    python tests/bench/length_costs.py [--layers 12] [--units 384] [--vocabulary 2000] [--rounds 3]

The model is a transformer encoder with random weights whose batch and sequence are open, as exporters write it. Every
number comes from separate processes, onert and ONNX Runtime in turn, each of which runs once for each batch and
sequence in the table; shown are medians. onert runs in two: the first begins with an empty cache, the second finds what
the first left there, and runs sequences that are longer by one.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from onnx import TensorProto, helper

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from random_onnx.draft import Draft

LENGTHS = ((1, 16), (1, 20), (2, 9), (1, 24), (1, 64))
RUNTIMES = ("onert", "onert again", "onnxruntime")


def encoder(layers: int, units: int, vocabulary: int, heads: int = 6) -> bytes:
    """The model: ids and a mask of shape (batch, sequence) to the last layer's states."""
    d = Draft(np.random.default_rng(0), samples=1)
    constant, add = d.constant, d.add

    def weights(*shape: int) -> str:
        return d.weights(*shape, terms=shape[0])

    def dense(x: str, inputs: int, outputs: int) -> str:
        return str(add("Add", add("MatMul", x, weights(inputs, outputs)), weights(outputs)))

    def by_head(x: str, order: list[int]) -> str:
        split = add("Reshape", x, constant(np.array([0, 0, heads, units // heads], np.int64)))
        return str(add("Transpose", split, perm=order))

    def normalized(x: str) -> str:
        return str(add("LayerNormalization", x, weights(units), weights(units), axis=-1))

    hidden = add("Cast", "mask", to=TensorProto.FLOAT)
    hidden = add("Mul", add("Sub", hidden, constant(np.float32(1))), constant(np.float32(1e4)))
    hidden = add("Unsqueeze", hidden, constant(np.array([1, 2], np.int64)))
    x = add("Gather", weights(vocabulary, units), "ids")
    for _ in range(layers):
        y = normalized(x)
        query, key, value = (dense(y, units, units) for _ in range(3))
        scores = add("MatMul", by_head(query, [0, 2, 1, 3]), by_head(key, [0, 2, 3, 1]))
        scores = add("Div", scores, constant(np.float32(np.sqrt(units // heads))))
        shares = add("Softmax", add("Add", scores, hidden), axis=-1)
        mixed = add("Transpose", add("MatMul", shares, by_head(value, [0, 2, 1, 3])), perm=[0, 2, 1, 3])
        mixed = add("Reshape", mixed, constant(np.array([0, 0, units], np.int64)))
        x = add("Add", x, dense(mixed, units, units))
        x = add("Add", x, dense(add("Gelu", dense(normalized(x), units, 4 * units)), 4 * units, units))
    ends = [helper.make_tensor_value_info(n, TensorProto.INT64, ["batch", "sequence"]) for n in ("ids", "mask")]
    result = helper.make_tensor_value_info(x, TensorProto.FLOAT, ["batch", "sequence", units])
    graph = helper.make_graph(d.nodes, "encoder", ends, [result], d.constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    return bytes(model.SerializeToString())


def measured(runtime: str, path: str) -> list[tuple[float, float]]:
    """In this process: the processor seconds of each length's first run, and the MiB in memory after it."""
    name, *again = runtime.split()
    module: Any = __import__(name)
    session = module.InferenceSession(path, providers=["CPUExecutionProvider"])
    found = []
    for batch, length in LENGTHS:
        sequence = length + len(again)
        ids = np.arange(batch * sequence).reshape(batch, sequence)
        start = process_time()
        session.run(None, {"ids": ids, "mask": np.ones_like(ids)})
        seconds = process_time() - start
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        found.append((seconds, pages * os.sysconf("SC_PAGESIZE") / 2**20))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (("layers", 12), ("units", 384), ("vocabulary", 2000), ("rounds", 3)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.one:
        print(json.dumps(measured(*chosen.one)))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "encoder.onnx"
        path.write_bytes(encoder(chosen.layers, chosen.units, chosen.vocabulary))
        runs: dict[str, list[Any]] = {runtime: [] for runtime in RUNTIMES}
        for number in range(chosen.rounds):
            for runtime in RUNTIMES:
                environment = {**os.environ, "ONERT_CACHE_DIR": f"{folder}/{number}"}
                command = [sys.executable, __file__, "--one", runtime, str(path)]
                done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
                runs[runtime].append(json.loads(done.stdout.splitlines()[-1]))
        size = path.stat().st_size / 2**20
    print(f"The model's file has {size:.0f} MiB.\n")
    print("| batch, sequence |" + "".join(f" {r} s | {r} MiB |" for r in RUNTIMES))
    print("|---|" + "---:|" * 2 * len(RUNTIMES))
    medians = [np.median(np.array(runs[runtime]), axis=0) for runtime in RUNTIMES]
    for row, (batch, sequence) in enumerate(LENGTHS):
        print(f"| {batch}, {sequence} |" + "".join(f" {m[row][0]:.2f} | {m[row][1]:.0f} |" for m in medians))


if __name__ == "__main__":
    main()

"""Keys and values that are outputs of one run and inputs of the next, one position longer: what they cost a decoder.

    python tests/bench/growing_caches.py [--caches 56] [--rounds 40]

The model only appends a position to each cache, of 8 heads with 64 elements. A session runs in turn with ONNX
Runtime's, and only the processor time of its one thread counts. The figures are the lower quartiles of the milliseconds
of a step, and their ratio.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper

import onert

HEADS, SIZE = 8, 64
LENGTHS = (20, 60, 140, 300, 600, 1200)
_RESTART = 10
"""Steps after which both begin with the first length again."""


def model(caches: int) -> bytes:
    """The model as a file."""
    row = helper.make_tensor_value_info("row", onnx.TensorProto.FLOAT, [1, HEADS, 1, SIZE])
    inputs, outputs, nodes = [row], [], []
    for n in range(caches):
        inputs.append(helper.make_tensor_value_info(f"past {n}", onnx.TensorProto.FLOAT, [1, HEADS, "past", SIZE]))
        outputs.append(helper.make_tensor_value_info(f"now {n}", onnx.TensorProto.FLOAT, [1, HEADS, "now", SIZE]))
        nodes.append(helper.make_node("Concat", [f"past {n}", "row"], [f"now {n}"], axis=2))
    graph = helper.make_graph(nodes, "caches", inputs, outputs)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    content: bytes = made.SerializeToString()
    return content


class Decoder:
    """A session with its caches."""

    def __init__(self, package: Any, content: bytes, caches: int, length: int) -> None:
        options = package.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = package.InferenceSession(content, options)
        self.row = np.ones((1, HEADS, 1, SIZE), np.float32)
        self.caches, self.length = caches, length
        self.restart()

    def restart(self) -> None:
        """Begin with caches of the first length, and warm up."""
        self.past = {f"past {n}": np.zeros((1, HEADS, self.length, SIZE), np.float32) for n in range(self.caches)}
        for _ in range(3):
            self.step()

    def step(self) -> float:
        """The milliseconds of a step."""
        start = time.thread_time()
        now = self.session.run(None, {"row": self.row, **self.past})
        taken = time.thread_time() - start
        self.past = {f"past {n}": array for n, array in enumerate(now)}
        return 1e3 * taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--caches", type=int, default=56)
    parser.add_argument("--rounds", type=int, default=40)
    chosen = parser.parse_args()
    content = model(chosen.caches)
    print("| positions | onert ms | ONNX Runtime ms | speedup |\n|---:|---:|---:|---:|")
    for length in LENGTHS:
        decoders = [Decoder(package, content, chosen.caches, length) for package in (onert, onnxruntime)]
        times: list[list[float]] = [[], []]
        for number in range(chosen.rounds):
            for at in (0, 1) if number % 2 else (1, 0):
                if number and number % _RESTART == 0:
                    decoders[at].restart()
                times[at].append(decoders[at].step())
        mine, theirs = (float(np.percentile(each, 25)) for each in times)
        print(f"| {length} | {mine:.2f} | {theirs:.2f} | {theirs / mine:.2f} |", flush=True)


if __name__ == "__main__":
    main()

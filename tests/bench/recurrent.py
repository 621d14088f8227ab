"""Recurrent layers against ONNX Runtime, in Markdown: kinds, units, batches, steps, directions, fixed and open shapes.

    python tests/bench/recurrent.py [--threads 1,2] [--seconds 0.5] [--units 64,256] [--only LSTM,GRU] [--self-check]

The two alternate, through their sessions' `run`; a ratio is the median over the rounds. The last line has the geometric
mean and the lowest ratio. With `--self-check` onert runs against itself.
"""

from __future__ import annotations

import argparse
import itertools
import math
from functools import partial
from typing import Any

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import onert
from onert.tools.contest import Contestant, contest

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def model(kind: str, sizes: tuple[int, int, int, int], direction: str, is_open: bool) -> tuple[bytes, Any]:
    """The content of a model file with one layer of these steps, batch, inputs and units; and an input."""
    steps, batch, depth, units = sizes
    draw, ways, rows = np.random.default_rng(0), 1 + (direction == "bidirectional"), GATES[kind] * units
    shapes = {"w": (ways, rows, depth), "r": (ways, rows, units), "b": (ways, 2 * rows)}
    constants = [
        numpy_helper.from_array(draw.uniform(-1, 1, shape).astype(np.float32) / math.sqrt(units), name)
        for name, shape in shapes.items()
    ]
    attributes = {"linear_before_reset": 1} if kind == "GRU" else {}
    node = helper.make_node(kind, ["x", *shapes], ["y", "h"], hidden_size=units, direction=direction, **attributes)
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["t", "n", depth] if is_open else [*sizes[:3]])
    results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("y", "h")]
    graph = helper.make_graph([node], "one", [given], results, constants)
    content = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    return content, draw.normal(size=(steps, batch, depth)).astype(np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", default="1")
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--only", default="LSTM,GRU,RNN")
    for name, values in (("units", "32,64,128,256,512"), ("inputs", "80"), ("batch", "1,8,32"), ("steps", "1,20,100")):
        parser.add_argument(f"--{name}", default=values)
    parser.add_argument("--directions", default="forward")
    parser.add_argument("--shapes", default="open")
    parser.add_argument("--self-check", action="store_true")
    chosen = parser.parse_args()
    lists = [getattr(chosen, name).split(",") for name in ("threads", "only", "directions", "shapes")]
    numbers = [[*map(int, getattr(chosen, name).split(","))] for name in ("steps", "batch", "inputs", "units")]
    ratios = []
    print("| layer | steps | batch | inputs | units | threads | onert us | ONNX Runtime us | speedup |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for threads, kind, direction, shape in itertools.product(*lists):
        for units, depth, batch, steps in itertools.product(*reversed(numbers)):
            content, x = model(kind, (steps, batch, depth, units), direction, shape == "open")
            sessions = []
            for maker in (onert, onert if chosen.self_check else onnxruntime):
                options: Any = maker.SessionOptions()
                options.intra_op_num_threads = int(threads)
                sessions.append(maker.InferenceSession(content, options, providers=["CPUExecutionProvider"]))
            for mine, other in zip(*(session.run(None, {"x": x}) for session in sessions), strict=True):
                np.testing.assert_allclose(mine, other, rtol=1e-3, atol=1e-4)
            calls = [Contestant(n, partial(s.run, None, {"x": x})) for n, s in zip("ab", sessions, strict=True)]
            mine, other = contest(calls, budget_seconds=chosen.seconds)
            ratios.append(mine.ratio(other))
            name = f"{kind}, {direction}, {shape} | {steps} | {batch} | {depth} | {units} | {threads}"
            found = f"{mine.minimum * 1e6:.1f} | {other.minimum * 1e6:.1f} | {ratios[-1]:.2f}"
            print(f"| {name} | {found} |", flush=True)
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    below = sum(ratio < 1 for ratio in ratios)
    print(f"\ngeometric mean {mean:.2f}, lowest {min(ratios):.2f}, {below} of {len(ratios)} below 1")


if __name__ == "__main__":
    main()

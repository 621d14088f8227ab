"""Tree ensembles against ONNX Runtime, as a Markdown table.

    python tests/bench/trees.py [--threads 1,2] [--seconds 2]

Trees are drawn once: complete ones, and ones with every fifth branch ending early. The two alternate; a ratio is the
median over the rounds.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import onnx
import onnxruntime

import onert
from onert.tools.contest import Contestant, contest

FEATURES = 30
ENSEMBLES = ((100, 6, 1, 0.0), (100, 8, 1, 0.2), (300, 10, 1, 0.2), (100, 8, 3, 0.2))
"""The number of trees, their levels, the number of targets, and the share of branches that end early."""


def forest(trees: int, levels: int, targets: int, ends: float) -> bytes:
    """A regressor in ONNX's older format, with one list entry per node."""
    draw = np.random.default_rng(0)
    nodes: list[tuple[int, int, int, float, int, int, str]] = []
    votes: list[tuple[int, int, int, float]] = []

    def grow(tree: int, level: int, number: int) -> int:
        """Add a subtree; return the next free node number."""
        if level == levels or (level > 2 and draw.random() < ends):
            nodes.append((tree, number, 0, 0.0, 0, 0, "LEAF"))
            votes.extend((tree, number, target, float(draw.normal())) for target in range(targets))
            return number + 1
        at = len(nodes)
        nodes.append((0, 0, 0, 0.0, 0, 0, ""))
        no = grow(tree, level + 1, number + 1)
        end = grow(tree, level + 1, no)
        feature, split = int(draw.integers(FEATURES)), float(0.7 * draw.normal())
        nodes[at] = (tree, number, feature, split, number + 1, no, "BRANCH_LEQ")
        return end

    for tree in range(trees):
        grow(tree, 0, 0)
    names = ("treeids", "nodeids", "featureids", "values", "truenodeids", "falsenodeids", "modes")
    given: dict[str, Any] = {f"nodes_{n}": list(v) for n, v in zip(names, zip(*nodes, strict=True), strict=True)}
    sides = ("treeids", "nodeids", "ids", "weights")
    given |= {f"target_{n}": list(v) for n, v in zip(sides, zip(*votes, strict=True), strict=True)}
    h = onnx.helper
    node = h.make_node("TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", n_targets=targets, **given)
    ends_ = (
        [h.make_tensor_value_info("x", 1, ["rows", FEATURES])],
        [h.make_tensor_value_info("y", 1, ["rows", targets])],
    )
    opsets = [h.make_opsetid("ai.onnx.ml", 3), h.make_opsetid("", 15)]
    content: bytes = h.make_model(
        h.make_graph([node], "trees", *ends_), opset_imports=opsets, ir_version=8
    ).SerializeToString()
    return content


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--seconds", type=float, default=2.0)
    chosen = parser.parse_args()
    print(f"| trees | levels | targets | rows | threads | onert ms | ONNX Runtime ms | speedup |\n|{'---:|' * 8}")
    for ensemble in ENSEMBLES:
        content = forest(*ensemble)
        for rows in (1, 100, 2000):
            inputs = {"x": np.random.default_rng(1).normal(size=(rows, FEATURES)).astype(np.float32)}
            for threads in map(int, chosen.threads.split(",")):
                options = onnxruntime.SessionOptions()
                options.intra_op_num_threads = threads
                session = onnxruntime.InferenceSession(content, options)
                program = onert.compile(onert.load(content), input_shapes={"x": (rows, FEATURES)}, num_threads=threads)
                execution = onert.Execution(program)
                mine, theirs = contest(
                    [
                        Contestant("onert", lambda run=execution.run, x=inputs: run(x)),
                        Contestant("peer", lambda run=session.run, x=inputs: run(None, x)),
                    ],
                    rounds=200,
                    budget_seconds=chosen.seconds,
                )
                times = f"{mine.minimum * 1e3:.3f} | {theirs.minimum * 1e3:.3f} | {mine.ratio(theirs):.2f}"
                print(f"| {ensemble[0]} | {ensemble[1]} | {ensemble[2]} | {rows} | {threads} | {times} |", flush=True)


if __name__ == "__main__":
    main()

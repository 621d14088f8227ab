"""Single ONNX operators at sizes of real models against ONNX Runtime, the slowest first, in Markdown.

    python tests/bench/single_operators.py [NAME ...] [--threads 1,2] [--seconds 0.5] [--bound]

With names, only the cases whose label contains one of them. Inputs are drawn once. The two alternate, through their
sessions' `run`, or `--bound` to arrays, which measures the kernels alone; a ratio is the median over the rounds.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import onnxruntime
from onnx import helper, numpy_helper
from operators.drawn import Case
from operators.elements import pointwise
from operators.movement import indices, moves
from operators.products import convolutions, products
from operators.reductions import pools, reductions, rows
from operators.vision import vision

import onert
from onert.tools.contest import Contestant, contest

FAMILIES = (pools, rows, reductions, moves, indices, pointwise, convolutions, products, vision)


def _content(case: Case) -> tuple[bytes, dict[str, Any]]:
    """The content of a model file with one operator, and its inputs."""
    _, kind, given, constants, attributes = case
    inputs = [np.asarray(x) for x in given]
    domain, _, kind = kind.rpartition("::") if "::" in kind else ("", "", kind)
    kind, _, count = kind.partition(":")
    names = [f"x{i}" for i in range(len(inputs))]
    held = [(f"c{i}" if value is not None else "", value) for i, value in enumerate(constants)]
    results = [f"y{i}" for i in range(int(count or 1))]
    node = helper.make_node(kind, [*names, *(n for n, _ in held)], results, domain=domain, **attributes)
    ends = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for n, x in zip(names, inputs, strict=True)
    ]
    arrays = [numpy_helper.from_array(np.asarray(value), n) for n, value in held if value is not None]
    graph = helper.make_graph([node], "one", ends, [helper.make_empty_tensor_value_info(n) for n in results], arrays)
    opsets = [helper.make_opsetid("", 23), helper.make_opsetid("com.microsoft", 1)]
    content: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=11).SerializeToString()
    return content, dict(zip(names, inputs, strict=True))


def _session(maker: Any, content: bytes, threads: int) -> Any:
    options: Any = maker.SessionOptions()
    options.intra_op_num_threads = threads
    return maker.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def _bound(session: Any, feed: dict[str, Any], results: list[Any]) -> Callable[[], object]:
    """A run with arrays bound once."""
    names = [output.name for output in session.get_outputs()]
    if isinstance(session, onert.InferenceSession):
        execution = session.new_execution()
        for name, array in feed.items():
            execution.set_input(name, array)
        for name, result in zip(names, results, strict=True):
            execution.set_output(name, np.empty_like(result))
        return execution.execute
    binding = session.io_binding()
    for name, array in feed.items():
        binding.bind_cpu_input(name, array)
    for name, result in zip(names, results, strict=True):
        binding.bind_ortvalue_output(name, onnxruntime.OrtValue.ortvalue_from_numpy(np.empty_like(result)))
    return partial(session.run_with_iobinding, binding)


def _measured(case: Case, threads: int, seconds: float, bound: bool) -> tuple[float, str]:
    """The ratio of a case, and its row. Raises any error of either runtime, and AssertionError if results differ."""
    content, feed = _content(case)
    sessions = [_session(maker, content, threads) for maker in (onert, onnxruntime)]
    found = [session.run(None, feed) for session in sessions]
    for mine, other in zip(*found, strict=True):
        np.testing.assert_allclose(np.float64(mine), np.float64(other), rtol=2e-3, atol=2e-3)
    calls = [
        _bound(session, feed, results) if bound else partial(session.run, None, feed)
        for session, results in zip(sessions, found, strict=True)
    ]
    contestants = [Contestant(name, call) for name, call in zip("ab", calls, strict=True)]
    mine, other = contest(contestants, rounds=12, round_seconds=0.01, budget_seconds=seconds)
    ratio = mine.ratio(other)
    return ratio, f"| {case[0]} | {threads} | {mine.minimum * 1e6:.1f} | {other.minimum * 1e6:.1f} | {ratio:.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--threads", default="1")
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--bound", action="store_true")
    chosen = parser.parse_args()
    table: list[tuple[float, str]] = []
    for case in (case for family in FAMILIES for case in family()):
        if chosen.names and not any(name in case[0] for name in chosen.names):
            continue
        for threads in map(int, chosen.threads.split(",")):
            try:
                table.append(_measured(case, threads, chosen.seconds, chosen.bound))
            except Exception as error:  # of an operator that one of the two lacks, for example
                print(f"{case[0]}: {' '.join(str(error).split())[:200]}", flush=True)
    print("\n| operator | threads | onert us | ONNX Runtime us | speedup |\n|---|---:|---:|---:|---:|")
    print("\n".join(row for _, row in sorted(table)))


if __name__ == "__main__":
    main()

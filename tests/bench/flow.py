"""Times cells of flows, including call overhead: `python tests/bench/flow.py [--rounds N] [--only NAME]`.

- call: the smallest cell, against an empty C function called through ctypes
- softmax: `softmax(relu(x · W + b))` with sizes 64 and 256, against the fewest NumPy calls that compute it in place
- lstm: an LSTM cell with 128 units, peepholes and a coupled gate, batch 1, against LiteRT (XNNPACK, one thread) running
  the same layers
- rows: adds four rows of 64 to a table of 100,000 rows by index, against `np.add.at`
- training: a step of the digits example, against TensorFlow (one thread, a traced function) if it is installed

The two of a pair run alternately, a few milliseconds each. The ratio is the median over the rounds of other / onert.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import onert.flow as myelin
from onert.ir import Array, DType

TESTS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS), str(TESTS.parent / "docs" / "examples" / "digits_flow")]

Call = Callable[[], object]
RNG = np.random.default_rng(1)
UNITS = 128


def compiled(flow: myelin.Flow, cell: str) -> myelin.Instance:
    return myelin.Compiler(num_threads=1).compile(flow).cell(cell).instance()


def normal(*shape: int, scale: float = 0.1) -> Array:
    return (RNG.standard_normal(shape) * scale).astype(np.float32)


def call() -> tuple[Call, Call]:
    flow = myelin.Flow()
    f = flow.define("f")
    f.add(f.var("x", shape=[1]), 1.0)
    nothing = ctypes.PyDLL(None).PyErr_Occurred  # reads one pointer
    nothing.restype = None
    return compiled(flow, "f").compute, nothing


def softmax() -> tuple[Call, Call]:
    weight, bias, x = normal(64, 256), normal(256), normal(1, 64, scale=1)
    flow = myelin.Flow()
    f = flow.define("f")
    given = f.var("x", shape=[1, 64])
    f.softmax(f.relu(f.add(f.matmul(given, f.array("W", weight)), f.array("b", bias))), name="y")
    data = compiled(flow, "f")
    data[given] = x
    y = np.empty((1, 256), np.float32)

    def numpy() -> None:
        np.matmul(x, weight, out=y)
        np.add(y, bias, out=y)
        np.maximum(y, 0, out=y)
        np.subtract(y, y.max(), out=y)
        np.exp(y, out=y)
        np.multiply(y, np.float32(1) / y.sum(), out=y)

    data.compute()
    numpy()
    np.testing.assert_allclose(data["f/y"], y, rtol=1e-5)
    return data.compute, numpy


GATES = {"i": "xhc", "g": "xh", "o": "xhn"}
"""The cell's gates with their inputs: input x, previous output h, previous state c, new state n."""


def lstm() -> tuple[Call, Call]:
    weights = {gate + part: normal(UNITS, UNITS) for gate, parts in GATES.items() for part in parts}
    biases = {gate: normal(UNITS) for gate in GATES}
    state = {name: normal(1, UNITS, scale=1) for name in "xhc"}
    data = compiled(_lstm_flow(weights, biases), "lstm")
    for name, array in state.items():
        data[f"lstm/{name}"] = array
    data.compute()
    peer, results = _lstm_litert(weights, biases, state)
    for mine, theirs in zip(("lstm/c_out", "lstm/h_out"), results, strict=True):
        np.testing.assert_allclose(data[mine], theirs, rtol=1e-4, atol=1e-5)
    return data.compute, peer


def _lstm_flow(weights: dict[str, Array], biases: dict[str, Array]) -> myelin.Flow:
    flow = myelin.Flow()
    f = flow.define("lstm")
    parts = {name: f.var(name, shape=[1, UNITS]) for name in "xhc"}

    def gate(name: str) -> myelin.Variable:
        first, *more = (f.matmul(parts[p], f.array(f"W{name}{p}", weights[name + p])) for p in GATES[name])
        for product in more:
            first = f.add(first, product)
        return f.add(first, f.array(f"b{name}", biases[name]))

    i = f.sigmoid(gate("i"))
    kept = f.mul(f.sub(1.0, i), parts["c"])
    parts["n"] = f.add(kept, f.mul(i, f.tanh(gate("g"))), name="c_out")
    parts["n"].output = True
    f.mul(f.sigmoid(gate("o")), f.tanh(parts["n"]), name="h_out")
    return flow


def _lstm_litert(
    weights: dict[str, Array], biases: dict[str, Array], state: dict[str, Array]
) -> tuple[Call, list[Array]]:
    """LiteRT's call and its results. A gate's bias is added to its first product, and the other products are summed."""
    from ai_edge_litert.interpreter import Interpreter
    from model_writer import Model

    model = Model()
    graph = model.graph()
    shape = (1, UNITS)
    parts = {name: graph.input(DType.FLOAT32, shape) for name in "xhc"}

    def operator(code: str, *inputs: int, options: Any = None) -> int:
        result = graph.tensor(DType.FLOAT32, shape)
        graph.operator(code, inputs, [result], options)
        return result

    def gate(name: str) -> int:
        found = None
        for part in GATES[name]:
            bias = biases[name] if found is None else np.zeros(UNITS, np.float32)
            weight = np.ascontiguousarray(weights[name + part].T)
            layer = operator(
                "FULLY_CONNECTED",
                parts[part],
                graph.constant(weight),
                graph.constant(bias),
                options=("FullyConnectedOptions", {}),
            )
            found = layer if found is None else operator("ADD", found, layer, options=("AddOptions", {}))
        assert found is not None
        return found

    def times(x: int, y: int) -> int:
        return operator("MUL", x, y, options=("MulOptions", {}))

    i = operator("LOGISTIC", gate("i"))
    one = graph.constant(np.ones(1, np.float32))
    kept = times(operator("SUB", one, i, options=("SubOptions", {})), parts["c"])
    parts["n"] = operator("ADD", kept, times(i, operator("TANH", gate("g"))), options=("AddOptions", {}))
    hidden = times(operator("LOGISTIC", gate("o")), operator("TANH", parts["n"]))
    graph.outputs(parts["n"], hidden)
    peer = Interpreter(model_content=model.done(), num_threads=1)
    peer.allocate_tensors()
    for detail, array in zip(peer.get_input_details(), state.values(), strict=True):
        peer.set_tensor(detail["index"], array)
    peer.invoke()
    return peer.invoke, [peer.get_tensor(detail["index"]) for detail in peer.get_output_details()]


def rows() -> tuple[Call, Call]:
    places, update = np.array([3, 99_999, 3, 512], np.int32), normal(4, 64)
    flow = myelin.Flow()
    f = flow.define("f")
    table, given, added = f.parameter("W", shape=[100_000, 64]), f.var("i", "int32", [4, 1]), f.var("v", shape=[4, 64])
    f.assign_add_scatter(table, given, added)
    net = myelin.Compiler(num_threads=1).compile(flow)
    data, mine = net.cell("f").instance(), np.zeros((100_000, 64), np.float32)
    data[given], data[added] = places[:, None], update
    data.compute()
    np.add.at(mine, places, update)
    np.testing.assert_array_equal(net[table], mine)
    return data.compute, lambda: np.add.at(mine, places, update)


def training() -> tuple[Call, Call]:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf
    import train

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    images, labels, *_ = train.data()
    images, labels = images[: train.BATCH], labels[: train.BATCH]
    start = train.starting(np.random.default_rng(0))
    learned = {name: tf.Variable(array) for name, array in start.items()}
    means, squares = ({name: tf.Variable(np.zeros_like(a)) for name, a in start.items()} for _ in range(2))
    steps = tf.Variable(0.0)

    @tf.function
    def step(x: Any, y: Any) -> None:
        with tf.GradientTape() as tape:
            logits = tf.nn.relu(x @ learned["W1"] + learned["b1"]) @ learned["W2"] + learned["b2"]
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
        adjoints = tape.gradient(loss, learned)
        steps.assign_add(1.0)
        rate = 0.002 * tf.sqrt(1 - 0.999**steps) / (1 - 0.9**steps)
        for name, g in adjoints.items():
            means[name].assign(0.9 * means[name] + 0.1 * g)
            squares[name].assign(0.999 * squares[name] + 0.001 * g * g)
            moved = rate * means[name] / (tf.sqrt(squares[name]) + 1e-7)
            learned[name].assign_sub(moved + 0.002 * 0.3 * learned[name])

    net = myelin.Compiler(num_threads=1).compile(train.training_flow(start))
    batch, back = net.cell("train").instance(), net.cell("gradients/train").instance()
    update = net.cell("optimizer").instance()
    update["optimizer/alpha"] = 0.002
    given, wanted = np.asarray(batch["train/x"]), np.asarray(batch["train/labels"])

    def mine() -> None:
        given[...], wanted[...] = images, labels
        train.step(batch, back, update)

    for _ in range(20):
        mine()
        step(images, labels)
    for name in start:
        np.testing.assert_allclose(net[f"train/{name}"], learned[name].numpy(), rtol=1e-3, atol=1e-5)
    return mine, lambda: step(images, labels)


PAIRS = {"call": call, "softmax": softmax, "lstm": lstm, "rows": rows, "training": training}


def seconds(function: Call, count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        function()
    return (time.perf_counter() - start) / count


def rounds(mine: Call, other: Call, number: int) -> Iterator[tuple[float, float]]:
    quickest = [min(seconds(function, 3) for _ in range(5)) for function in (mine, other)]
    counts = [max(1, int(0.004 / each)) for each in quickest]  # one slow call would give too few, all cold
    for at in range(number + 2):
        found = seconds(mine, counts[0]), seconds(other, counts[1])
        if at >= 2:  # the first two warm up the machine
            yield found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=41)
    parser.add_argument("--only", choices=PAIRS)
    options = parser.parse_args()
    for name, pair in PAIRS.items():
        if options.only not in (None, name):
            continue
        if name == "training" and importlib.util.find_spec("tensorflow") is None:
            print("training  needs tensorflow")
            continue
        found = list(rounds(*pair(), options.rounds))
        mine, other = (statistics.median(side) * 1e6 for side in zip(*found, strict=True))
        ratio = statistics.median(theirs / ours for ours, theirs in found)
        print(
            f"{name:<9} onert {mine:8.2f} us  other {other:8.2f} us  ratio {ratio:6.2f}  apart {mine - other:+.2f} us"
        )


if __name__ == "__main__":
    main()

"""Weight-only matmuls, attention, recurrent layers and non-max suppression against ONNX Runtime, in Markdown.

    python tests/bench/onnx_operators.py [--threads 1,2] [--seconds 2]

Inputs are drawn once. The two alternate, through their sessions' `run`; a ratio is the median over the rounds.
"""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import onert
from onert.tools.contest import Contestant, contest

Feed = dict[str, Any]
_DRAW = np.random.default_rng(0)


def _floats(*shape: int) -> Any:
    return _DRAW.normal(size=shape).astype(np.float32)


def model(nodes: list[Any], feed: Feed, outputs: list[str], constants: Feed) -> bytes:
    """The content of a model file with these nodes."""
    ends = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in feed.items()
    ]
    results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    held = [numpy_helper.from_array(x, name) for name, x in constants.items()]
    opsets = [helper.make_opsetid("", 23), helper.make_opsetid("com.microsoft", 1)]
    graph = helper.make_graph(nodes, "one", ends, results, held)
    content: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=11).SerializeToString()
    return content


def attention(past: int, heads: int, own: int) -> tuple[bytes, Feed]:
    """One token after `past` others, 64 features per head."""
    feed = {"q": _floats(1, 1, heads * 64), "k": _floats(1, 1, own * 64), "v": _floats(1, 1, own * 64)}
    feed |= {"past_k": _floats(1, own, past, 64), "past_v": _floats(1, own, past, 64), "seen": np.int32([past])}
    names, sizes = [*feed, "most"], {"num_heads": heads, "kv_num_heads": own}
    node = helper.make_node("GroupQueryAttention", names, ["y", "all_k", "all_v"], domain="com.microsoft", **sizes)
    return model([node], feed, ["y", "all_k", "all_v"], {"most": np.int32(past + 1)}), feed


def picks(count: int) -> tuple[bytes, Feed]:
    """The boxes, scores and classes that pass non-max suppression, at most 50, as detectors' graphs end."""
    corner, size = _DRAW.uniform(0, 1, (count, 2)), _DRAW.uniform(0.05, 0.3, (count, 2))
    feed = {"boxes": np.concatenate([corner, corner + size], 1), "scores": _DRAW.uniform(0, 1, count)}
    feed = {name: x.astype(np.float32) for name, x in (feed | {"classes": _DRAW.integers(0, 9, count)}).items()}
    constants = {"most": np.int64([50]), "iou": np.float32([0.5]), "least": np.float32([0.3])}
    constants |= {"zero": np.int64([0]), "pair": np.int64([0, 1]), "last": np.int64(2)}
    steps = (
        ("Unsqueeze", ["boxes", "zero"], "b", {}),
        ("Unsqueeze", ["scores", "pair"], "s", {}),
        ("NonMaxSuppression", ["b", "s", "most", "iou", "least"], "found", {}),
        ("Gather", ["found", "last"], "which", {"axis": 1}),
        *(("Gather", [name, "which"], f"own_{name}", {}) for name in feed),
    )
    nodes = [helper.make_node(kind, names, [out], **attributes) for kind, names, out, attributes in steps]
    return model(nodes, feed, [f"own_{name}" for name in feed], constants), feed


def coded(rows: int, depth: int, width: int) -> tuple[bytes, Feed]:
    """A float32 matrix times a matrix of 4-bit codes with a scale for each 32."""
    blocks = width * depth // 32
    codes = _DRAW.integers(0, 256, (width, depth // 32, 16), dtype=np.uint8)
    sizes = {"K": depth, "N": width, "bits": 4, "block_size": 32}
    node = helper.make_node("MatMulNBits", ["x", "b", "s"], ["y"], domain="com.microsoft", **sizes)
    feed = {"x": _floats(rows, depth)}
    return model([node], feed, ["y"], {"b": codes, "s": np.abs(_floats(blocks)) / 100}), feed


def causal(tokens: int) -> tuple[bytes, Feed]:
    """Causal attention with 8 heads of 64 features."""
    feed = {name: _floats(1, tokens, 512) for name in "qkv"}
    sizes = {"q_num_heads": 8, "kv_num_heads": 8, "is_causal": 1}
    return model([helper.make_node("Attention", [*feed], ["y"], **sizes)], feed, ["y"], {}), feed


def exported(heads: int, tokens: int, size: int) -> tuple[bytes, Feed]:
    """Attention between reshapes and transposes, as PyTorch exports it."""
    feed = {name: _floats(1, tokens, heads * size) for name in "qkv"}
    constants = {"split": np.int64([1, tokens, heads, size]), "joined": np.int64([1, tokens, heads * size])}
    nodes = []
    for name, order in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])):
        nodes.append(helper.make_node("Reshape", [name, "split"], [f"{name}_heads"]))
        nodes.append(helper.make_node("Transpose", [f"{name}_heads"], [f"{name}_turned"], perm=order))
    steps = (
        ("MatMul", ["q_turned", "k_turned"], "scores", {}),
        ("Mul", ["scores", "scale"], "scaled", {}),
        ("Softmax", ["scaled"], "weights", {"axis": -1}),
        ("MatMul", ["weights", "v_turned"], "mixed", {}),
        ("Transpose", ["mixed"], "turned", {"perm": [0, 2, 1, 3]}),
        ("Reshape", ["turned", "joined"], "y", {}),
    )
    nodes += [helper.make_node(kind, names, [out], **attributes) for kind, names, out, attributes in steps]
    return model(nodes, feed, ["y"], constants | {"scale": np.float32(size**-0.5)}), feed


def recurrent(batch: int, units: int) -> tuple[bytes, Feed]:
    """An LSTM over 32 steps."""
    constants = {"w": _floats(1, 4 * units, units) / 10, "r": _floats(1, 4 * units, units) / 10}
    feed = {"x": _floats(32, batch, units)}
    node = helper.make_node("LSTM", ["x", *constants], ["y"], hidden_size=units)
    return model([node], feed, ["y"], constants), feed


ROWS = (
    *(
        (f"MatMulNBits, {rows} rows, {depth} x {depth}", coded, (rows, depth, depth))
        for rows, depth in ((16, 2048), (128, 2048))
    ),
    *((f"causal attention, {tokens} tokens", causal, (tokens,)) for tokens in (256, 1024)),
    *(
        (f"attention as exported, {tokens} tokens, {heads} heads of {size}", exported, (heads, tokens, size))
        for heads, tokens, size in ((12, 197, 64), (12, 512, 64), (8, 1024, 40), (16, 1024, 72))
    ),
    *((f"LSTM, batch of {batch}, {units} units", recurrent, (batch, units)) for batch, units in ((8, 64), (8, 256))),
    *(
        (f"1 token after {past}, heads: {heads} q, {own} kv", attention, (past, heads, own))
        for past, heads, own in ((127, 8, 2), (511, 8, 2), (1023, 32, 8))
    ),
    *((f"NonMaxSuppression, {count} boxes", picks, (count,)) for count in (100, 2000)),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", default="1")
    parser.add_argument("--seconds", type=float, default=2.0)
    chosen = parser.parse_args()
    print("| operator | threads | onert us | ONNX Runtime us | speedup |\n|---|---:|---:|---:|---:|")
    for name, write, sizes in ROWS:
        content, feed = write(*sizes)
        for threads in map(int, chosen.threads.split(",")):
            sessions = []
            for maker in (onert, onnxruntime):
                options: Any = maker.SessionOptions()
                options.intra_op_num_threads = threads
                sessions.append(maker.InferenceSession(content, options, providers=["CPUExecutionProvider"]))
            ours, theirs = sessions
            for mine, other in zip(ours.run(None, feed), theirs.run(None, feed), strict=True):
                np.testing.assert_allclose(mine, other, rtol=1e-3, atol=1e-3)
            calls = [Contestant(maker, partial(s.run, None, feed)) for maker, s in zip("ab", sessions, strict=True)]
            mine, other = contest(calls, budget_seconds=chosen.seconds)
            found = f"{mine.minimum * 1e6:.1f} | {other.minimum * 1e6:.1f} | {mine.ratio(other):.2f}"
            print(f"| {name} | {threads} | {found} |", flush=True)


if __name__ == "__main__":
    main()

"""Small language models with random weights, as graphs that ONNX Runtime's searches run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="the package onnx writes the models")
h, FLOAT, INT32 = onnx.helper, onnx.TensorProto.FLOAT, onnx.TensorProto.INT32
MICROSOFT = "com.microsoft"
WORDS, _HEADS, _SIZE = 20, 2, 8
_WIDTH, _BANDS = _HEADS * _SIZE, 6
_SPLIT = {"split": np.int64([0, 0, _HEADS, _SIZE]), "merged": np.int64([0, 0, _WIDTH]), "axes": np.int64([1, 2])}


def _end(name: str, kind: int, *dims: Any) -> Any:
    return h.make_tensor_value_info(name, kind, dims)


def _stored(arrays: dict[str, Any]) -> list[Any]:
    return [onnx.numpy_helper.from_array(np.asarray(x), name) for name, x in arrays.items()]


class _Nodes:
    """The nodes of a graph, and its weights."""

    def __init__(self, seed: int) -> None:
        self.nodes: list[Any] = []
        self.weights: dict[str, Any] = dict(_SPLIT)
        self._draw = np.random.default_rng(seed)

    def weight(self, name: str, *shape: int, scale: float = 1.0) -> str:
        self.weights[name] = (self._draw.normal(size=shape) * scale / np.sqrt(shape[0])).astype(np.float32)
        return name

    def add(self, op: str, *inputs: str, out: str = "", **attributes: Any) -> str:
        out = out or f"t{len(self.nodes)}"
        self.nodes.append(h.make_node(op, list(inputs), [out], **attributes))
        return out

    def heads(self, x: str, out: str = "") -> str:
        return self.add("Transpose", self.add("Reshape", x, "split"), out=out, perm=[0, 2, 1, 3])

    def attend(self, x: str, q: str, k: str, v: str, mask: str = "") -> str:
        scores = self.add("MatMul", q, self.add("Transpose", k, perm=[0, 1, 3, 2]))
        scores = self.add("Add", scores, mask) if mask else scores
        mixed = self.add("MatMul", self.add("Softmax", scores, axis=-1), v)
        return self.add("Add", x, self.add("Reshape", self.add("Transpose", mixed, perm=[0, 2, 1, 3]), "merged"))

    def graph(self, name: str, inputs: list[Any], outputs: list[Any]) -> Any:
        return h.make_graph(self.nodes, name, inputs, outputs, _stored(self.weights))


def decoder(seed: int, scale: float, layers: int = 2) -> Any:
    """A decoder like GPT-2."""
    n = _Nodes(seed)
    places = n.add("Gather", n.weight("places", 40, _WIDTH, scale=6), "position_ids")
    x = n.add("Add", n.add("Gather", n.weight("words", WORDS, _WIDTH, scale=4), "input_ids"), places)
    inputs = [_end(name, INT32, "b", "s") for name in ("input_ids", "position_ids")]
    inputs.append(_end("attention_mask", INT32, "b", "t"))
    outputs = [_end("logits", FLOAT, "b", "s", WORDS)]
    for at in range(layers):
        given = [x, n.weight(f"w{at}", _WIDTH, 3 * _WIDTH), n.weight(f"c{at}", 3 * _WIDTH), "attention_mask"]
        names = [f"y{at}", f"present_{at}"]
        how = {"num_heads": _HEADS, "unidirectional": 1, "domain": MICROSOFT}
        n.nodes.append(h.make_node("Attention", [*given, f"past_{at}"], names, **how))
        x = n.add("Add", x, names[0])
        inputs.append(_end(f"past_{at}", FLOAT, 2, "b", _HEADS, "p", _SIZE))
        outputs.append(_end(f"present_{at}", FLOAT, 2, "b", _HEADS, "t", _SIZE))
    n.add("MatMul", x, n.weight("last", _WIDTH, WORDS, scale=scale), out="logits")
    return n.graph("decoder", inputs, outputs)


def _steps(n: _Nodes, tokens: str, past: list[str], crossed: list[str], mask: str, scale: float) -> list[str]:
    """The layers of a decoder with an encoder; its keys and values."""
    x = n.add("Gather", n.weight("own_words", WORDS, _WIDTH, scale=4), tokens)
    hidden, found = "", list[str]()
    if mask:
        n.weights |= {"one": np.float32(1), "far": np.float32(1e4)}
        numbers = n.add("Sub", n.add("Cast", mask, to=FLOAT), "one")
        hidden = n.add("Unsqueeze", n.add("Mul", numbers, "far"), "axes")
    for at in range(len(crossed) // 2):
        q, *own = (n.heads(n.add("MatMul", x, n.weight(f"own_{name}{at}", _WIDTH, _WIDTH))) for name in ("q", "k", "v"))
        if past:
            own = [n.add("Concat", before, new, axis=2) for before, new in zip(past[2 * at :], own, strict=False)]
        for kind, each in zip(("key", "value"), own, strict=True):
            found.append(n.add("Identity", each, out=f"present_{kind}_self_{at}"))
        x = n.attend(x, q, *own)
        q = n.heads(n.add("MatMul", x, n.weight(f"cross_q{at}", _WIDTH, _WIDTH)))
        x = n.attend(x, q, *crossed[2 * at : 2 * at + 2], hidden)
    n.add("MatMul", x, n.weight("last", _WIDTH, WORDS, scale=scale), out="logits")
    return found


def _states(name: str, kind: str, layers: int, length: str) -> list[Any]:
    return [
        _end(f"{name}_{part}_{kind}_{at}", FLOAT, "b", _HEADS, length, _SIZE)
        for at in range(layers)
        for part in ("key", "value")
    ]


def encoder_and_decoder(
    seed: int,
    scale: float,
    layers: int = 1,
    *,
    first: bool = True,
    hidden: bool = True,
    sounds: bool = False,
) -> tuple[Any, Any]:
    """An encoder and its decoder like T5 or, of `sounds`, Whisper; the encoder may make the `first` step."""
    n, mask = _Nodes(seed), "" if sounds else "encoder_attention_mask"
    if sounds:
        inputs = [_end("encoder_input_ids", FLOAT, "b", _BANDS, "s")]
        x = n.add("MatMul", n.add("Transpose", "encoder_input_ids", perm=[0, 2, 1]), n.weight("bands", _BANDS, _WIDTH))
    else:
        inputs = [_end("encoder_input_ids", INT32, "b", "s"), _end(mask, INT32, "b", "s")]
        x = n.add("Gather", n.weight("words", WORDS, _WIDTH, scale=4), "encoder_input_ids")
    n.add("Identity", x, out="encoder_hidden_states")
    crossed = [
        n.heads(n.add("MatMul", x, n.weight(f"w_{part}{at}", _WIDTH, _WIDTH)), out=f"present_{part}_cross_{at}")
        for at in range(layers)
        for part in ("key", "value")
    ]
    outputs = _states("present", "cross", layers, "s")
    if first:
        inputs.append(_end("decoder_input_ids", INT32, "b", "t"))
        _steps(n, "decoder_input_ids", [], crossed, mask, scale)
        begun = [_end("logits", FLOAT, "b", "t", WORDS), _end("encoder_hidden_states", FLOAT, "b", "s", _WIDTH)]
        outputs = [*begun, *_states("present", "self", layers, "t"), *outputs]
    encoder = n.graph("encoder", inputs, outputs)
    own, past = _Nodes(seed + 1), [*_states("past", "self", layers, "p"), *_states("past", "cross", layers, "s")]
    names = [end.name for end in past]
    _steps(own, "input_ids", names[: 2 * layers], names[2 * layers :], mask, scale)
    given = [_end("input_ids", INT32, "b", 1), *([_end(mask, INT32, "b", "s")] if mask else [])]
    given += [_end("encoder_hidden_states", FLOAT, "b", "s", _WIDTH)] if hidden else []
    results = [_end("logits", FLOAT, "b", 1, WORDS), *_states("present", "self", layers, "u")]
    return encoder, own.graph("decoder", [*given, *past], results)


def search(op: str, inputs: dict[str, Any], order: list[str], results: list[str], **attributes: Any) -> bytes:
    """A model of one search; `inputs` are found by the names in `order`."""
    names = [name if name in inputs else "" for name in order]
    while not names[-1]:
        names.pop()
    node = h.make_node(op, names, results, domain=MICROSOFT, **attributes)
    ends = [_end(n, h.np_dtype_to_tensor_dtype(x.dtype), *(None,) * x.ndim) for n, x in inputs.items()]
    outputs = [_end(name, INT32 if name == "sequences" else FLOAT) for name in results]
    for each in outputs:
        each.type.tensor_type.ClearField("shape")
    graph = h.make_graph([node], "search", ends, outputs)
    opsets = [h.make_opsetid("", 17), h.make_opsetid(MICROSOFT, 1)]
    content: bytes = h.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()
    return content

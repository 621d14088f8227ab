"""Searches for sequences, whose models are graphs among their attributes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NotRequired, TypedDict

from onert.frontend.onnx.messages import Graph, ValueDeclaration
from onert.frontend.onnx.node import Importer, Node
from onert.ir import DType, ModelError, TensorType
from onert.ir.ops.control_flow.generation import Timestamps
from onert.ir.ops.control_flow.sampling import Drawing
from onert.ir.ops.control_flow.search import BeamSearch, GreedySearch
from onert.ir.ops.control_flow.steps import Encoding

_STEP = ("input_ids", "position_ids", "attention_mask")


class _Models(TypedDict):
    """The fields of a search that describe its models."""

    models: tuple[int, ...]
    layers: int
    heads: int
    size: int
    encoding: NotRequired[Encoding]


class _Fields(_Models):
    """The fields that all searches have."""

    vocabulary: int
    eos: int
    pad: int
    start: int
    ngram: int


def _type_of(graph: Graph, end: ValueDeclaration) -> TensorType:
    declared = end.type
    if declared is None or declared.kind != "tensor" or declared.dtype is None or declared.shape is None:
        raise ModelError(f"graph '{graph.name}' declares no type of '{end.name}'")
    return TensorType(declared.dtype, tuple(d if isinstance(d, int) else None for d in declared.shape))


def _subgraph(node: Node, graph: Graph) -> int:
    """The graph as a subgraph, whose only inputs are its own."""
    draft, scope = node.enclosing.nested(graph.name or "model")
    given = [draft.input(_type_of(graph, end)) for end in graph.inputs]
    found = scope.inline(graph, tuple(given))
    outputs = [x for x in found if isinstance(x, int)]
    if len(outputs) != len(graph.outputs) or len(draft.inputs) != len(given):
        raise ModelError(f"graph '{graph.name}' reads computed tensors of the graph around it, which is not supported")
    return node.enclosing.finish(draft, outputs)


def _dimension(graph: Graph, end: ValueDeclaration, rank: int, axis: int) -> int:
    shape = _type_of(graph, end).shape
    size = shape[axis] if len(shape) == rank else None
    if size is None:
        raise ModelError(f"graph '{graph.name}' declares no size of '{end.name}' along axis {axis} of {rank}")
    return size


def _require_names(graph: Graph, names: tuple[str, ...]) -> None:
    found = tuple(end.name for end in graph.inputs[: len(names)])
    if found != names:
        raise ModelError(f"graph '{graph.name}' has inputs {', '.join(found)}, expected {', '.join(names)}")


def _fields(node: Node) -> _Fields:
    """The fields that all searches have."""
    decoder, kind = node.graph("decoder"), node.integer("model_type")
    if kind not in (0, 1, 2):
        raise ModelError(f"model_type is {kind}, expected 0 to 2")
    if kind and node.has_attribute("init_decoder"):
        raise ModelError("has a decoder for the first step (init_decoder) besides an encoder, which is not supported")
    eos, pad = node.integer("eos_token_id", -1), node.integer("pad_token_id", -1)
    if eos < 0 or pad < 0:
        raise ModelError(f"eos_token_id is {eos} and pad_token_id {pad}, expected at least 0")
    if not decoder.inputs or not decoder.outputs:
        raise ModelError("the decoder has no inputs or no outputs")
    words = node.integer("vocab_size", -1)
    words = words if words > 0 else _dimension(decoder, decoder.outputs[0], 3, 2)
    models = _encoding(node, decoder, masked=kind == 1) if kind else _alone(node, decoder)
    return {
        **models,
        "vocabulary": words,
        "eos": eos,
        "pad": pad,
        "start": node.integer("decoder_start_token_id", -1),
        "ngram": max(node.integer("no_repeat_ngram_size"), 0),
    }


def _alone(node: Node, decoder: Graph) -> _Models:
    """A decoder that continues a prompt, and the one that makes the first step if that is another."""
    layers = len(decoder.inputs) - len(_STEP)
    graphs = (node.graph("init_decoder"), decoder) if node.has_attribute("init_decoder") else (decoder,)
    for graph in graphs:
        _require_names(graph, (*_STEP, *(f"past_{at}" for at in range(layers))))
    heads, size = ((_dimension(decoder, decoder.inputs[3], 5, axis) if layers else 1) for axis in (2, 4))
    return {"models": tuple(_subgraph(node, g) for g in graphs), "layers": layers, "heads": heads, "size": size}


def _encoding(node: Node, decoder: Graph, *, masked: bool) -> _Models:
    """An encoder and its decoder."""
    encoder, masks = node.graph("encoder"), ("encoder_attention_mask",) if masked else ()
    first = len(encoder.inputs) > 1 + masked
    _require_names(encoder, ("encoder_input_ids", *masks, *(("decoder_input_ids",) if first else ())))
    layers, rest = divmod(len(decoder.outputs) - 1, 2)
    made = 2 + 4 * layers if first else 2 * layers
    if rest or layers < 1 or len(encoder.outputs) != made:
        counts = f"{len(encoder.outputs)} and {len(decoder.outputs)}"
        raise ModelError(f"encoder and decoder have {counts} outputs, expected {made} and an odd number")
    given = 1 + masked + 4 * layers
    hidden = first and len(decoder.inputs) == given + 1
    if len(decoder.inputs) != given + hidden:
        raise ModelError(f"the decoder has {len(decoder.inputs)} inputs, expected {given} for {layers} layers")
    names = ("input_ids", *masks, *(("encoder_hidden_states",) if hidden else ()))
    _require_names(decoder, (*names, "past_key_self_0", "past_value_self_0"))
    ids = _type_of(decoder, decoder.inputs[0]).shape
    whole = len(ids) != 2 or ids[1] != 1
    heads, size = (_dimension(decoder, decoder.inputs[len(names)], 4, axis) for axis in (1, 3))
    models = _subgraph(node, encoder), _subgraph(node, decoder)
    how = Encoding(layers, masked, first, hidden, whole)
    return {"models": models, "layers": layers, "heads": heads, "size": size, "encoding": how}


def _given(node: Node, defaults: tuple[float | None, ...], masks: int) -> list[int | None]:
    """The inputs after the first: numbers, some with usual values, and masks from input `masks` on."""
    found: list[int | None] = []
    for at, usual in enumerate(defaults, 1):
        if node.has(at):
            found.append(node.input(at))
        elif usual is None:
            found.append(None)
        else:
            dtype = DType.INT32 if isinstance(usual, int) else DType.FLOAT32
            found.append(node.draft.constant([usual], dtype))
    found += [node.optional(at) for at in range(masks, masks + 3)]
    while found and found[-1] is None:
        found.pop()
    return found


def _refuse(node: Node, inputs: Iterable[int]) -> None:
    for at in inputs:
        if node.has(at):
            raise ModelError(f"has input {at}, which is not supported")


def _greedy(node: Node) -> int:
    """Inputs: tokens, greatest and least length, the penalty for repetitions, masks of words, first words, tokens."""
    if node.integer("model_type"):
        raise ModelError(f"model_type is {node.integer('model_type')}, expected 0")
    _refuse(node, range(7, len(node.inputs)))
    op = GreedySearch(**_fields(node))
    return node.draft.add(op, node.input(0), *_given(node, (4096, 0, 1.0), 4))


def _sampled(node: Node) -> int:
    """Inputs: as of GreedySearch, the words that are present, and the seed of random numbers."""
    if node.integer("model_type"):
        raise ModelError(f"model_type is {node.integer('model_type')}, expected 0")
    if node.uses_output(1):
        raise ModelError("returns the scores among which it draws (output 1), which is not supported")
    if node.has(7) and node.number("presence_penalty"):
        raise ModelError("has a penalty for words that are present (input 7), which is not supported")
    least, top = node.integer("min_tokens_to_keep"), node.number("top_p")
    drawing = Drawing(top, max(least, 0), node.number("filter_value", -1e20), node.integer("custom") == 1)
    op = GreedySearch(**_fields(node), drawing=drawing, temperature=node.number("temperature", 1.0))
    given = _given(node, (4096, 0, 1.0), 4)
    seed = node.optional(8)
    seed = node.draft.constant([0], DType.INT32) if seed is None else seed
    return node.draft.add(op, node.input(0), *given, *[None] * (6 - len(given)), seed)


def _beams(node: Node) -> tuple[int, ...]:
    """Inputs: tokens, greatest and least length, beams, returned sequences, penalties, masks as of GreedySearch, and
    what sequences of an encoder's decoder begin with."""
    whisper = node.op_type == "WhisperBeamSearch"
    if whisper and node.integer("model_type", 2) != 2:
        raise ModelError(f"model_type is {node.integer('model_type')}, expected 2")
    _refuse(node, (12, 13) if whisper else range(12, len(node.inputs)))
    if node.uses_output(3) or node.uses_output(4):
        raise ModelError("returns products of keys or probabilities of silence, which is not supported")
    fields, early = _fields(node), node.integer("early_stopping") == 1
    if node.has(10) and "encoding" not in fields:
        raise ModelError("has decoder_input_ids (input 10) without an encoder, which is not supported")
    times = _times(node) if node.has(11) else None
    op = BeamSearch(**fields, early_stopping=early, scores=node.uses_output(2), times=times)
    given = _given(node, (4096, 0, 1, 1, 1.0, 1.0), 7)
    more = [node.optional(10), node.optional(14) if whisper else None, node.optional(11)]
    if any(x is not None for x in more):
        given += [None] * (9 - len(given)) + more
    while given and given[-1] is None:
        given.pop()
    return node.draft.add_many(op, node.input(0), *given)


def _times(node: Node) -> Timestamps | None:
    """The tokens for times; None if the attributes do not say where they begin, and so cannot be used."""
    eos, start = node.integer("eos_token_id"), node.integer("decoder_start_token_id", -1)
    names = ("start_of_lm_token_id", "no_timestamps_token_id", "translate_token_id", "transcribe_token_id")
    lm, none, *tasks = (node.integer(name, -1) for name in names)
    begin = node.integer("beginning_timestamp_token_id", -1)
    return None if begin < 0 else Timestamps(begin, eos, (none, lm), (start, *tasks))


MICROSOFT: dict[str, Importer] = {
    "BeamSearch": _beams,
    "GreedySearch": _greedy,
    "Sampling": _sampled,
    "WhisperBeamSearch": _beams,
}

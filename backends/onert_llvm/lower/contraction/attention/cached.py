"""Attention to caches of keys and values, as a single kernel."""

from __future__ import annotations

from collections.abc import Sequence

from onert.ir import CallTypes
from onert.ir.ops.contraction.cached_attention import NO_BEAM, NO_ROOM, CachedAttention
from onert.ir.ops.recurrent.lstm_parts import needed
from onert.ir.symbolic.trace import hint, is_symbolic
from onert_llvm.command.command import Slot
from onert_llvm.kernels.contraction.attention.attention_f32 import MOST_MASKED, registers_of_keys
from onert_llvm.kernels.contraction.attention.cached_f32 import CachedF32
from onert_llvm.lower.command_builder import Lowering

_MOST = 512
"""The most elements of a row of queries or values."""
_EVEN = 16
"""Blocks must have a multiple of as many places, a multiple of every target's lanes."""
_TOGETHER = 4
"""Rows of queries that are multiplied together with keys as stored."""
_MANY, _WITH_COLUMNS = 16, 6
"""From this many rows on, keys are transposed, and as many are multiplied together."""


def why_not(op: CachedAttention, types: CallTypes) -> str | None:
    """Why this backend does not run the layer; None if it does."""
    for size in (types.input(0).shape[3], types.input(2).shape[3]):
        if size is None or not 0 < size <= _MOST:
            return f"heads have {size} features, expected 1 to {_MOST}"
    if op.shown is not None:
        return "its scores are a result"
    if op.block % _EVEN:
        return f"blocks have {op.block} places, expected a multiple of {_EVEN}"
    return None


def _rows(group: int, tokens: int) -> tuple[int, int]:
    """The rows that are multiplied together, and those of a tile."""
    count = hint(group * tokens)
    if count >= _MANY:
        return _WITH_COLUMNS, MOST_MASKED
    together = _TOGETHER if is_symbolic(tokens) else max(min(_TOGETHER, int(count)), 1)
    return together, together


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """Lower the layer to one command, which computes some rows of queries at a time."""
    at, operation, op = lowering.single(operations, CachedAttention)
    q, k, v, first = map(needed, operation.inputs[:4])
    ends, bias, sinks, blocks, beams = (*operation.inputs[4:], *[None] * 5)[:5]
    needs = {"q": q, "k": k, "v": v, "first": first}
    batch, heads, tokens, size = lowering.shape(q)
    own, places, value = *lowering.shape(k)[1:3], lowering.shape(v)[3]
    if 0 in (batch, heads, tokens):
        return
    group = heads // own
    together, most = _rows(group, tokens)
    tiles = -(-group * tokens // most)
    slots: dict[str, Slot] = {
        "report": lowering.check(at, NO_ROOM),
        "tiles": tiles,
        "tokens": tokens,
        "key_heads": own,
        "group": group,
        "places": places,
        "scale": op.scale,
    }
    if ends is not None:
        needs["ends"] = ends
    if bias is not None:
        needs["bias"] = bias
        sizes = lowering.shape(bias)
        apart = (sizes[1] * sizes[2] * places, sizes[2] * places, places)
        for name, count, step in zip(("batch", "head", "token"), sizes, apart, strict=False):
            slots[f"bias_{name}"] = step if is_symbolic(count) or count > 1 else 0
    if sinks is not None:
        needs["sinks"] = sinks
    if blocks is not None:
        needs["seen"] = blocks
        slots |= dict(zip(("layouts", "block_rows", "block_columns"), lowering.shape(blocks), strict=True))
    if beams is not None:
        needs["origin"] = beams
        slots |= {"beams": lowering.shape(beams)[1], "no_beam": lowering.check(at, NO_BEAM)}
    chunk = registers_of_keys(lowering.isa)
    chunk = min(chunk, op.block // lowering.isa.f32) if op.block else chunk
    if chunk & (chunk - 1):
        chunk = 1
    kernel = CachedF32(
        together,
        most,
        chunk,
        int(size),
        int(value),
        op.causal,
        ends is not None,
        op.window,
        op.cap,
        bias is not None,
        sinks is not None,
        op.block if blocks is not None else 0,
        beams is not None,
    )
    flops = 2 * batch * heads * tokens * places * (size + value)
    lowering.run(at, kernel, batch * own * tiles, needs, {"y": operation.outputs[0]}, slots, flops)

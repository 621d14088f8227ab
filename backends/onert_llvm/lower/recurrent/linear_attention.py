"""Linear attention with its state in registers and on the stack."""

from __future__ import annotations

from collections.abc import Sequence

from onert.ir import CallTypes
from onert.ir.ops.recurrent.linear_attention import OUTSIDE, LinearAttention
from onert.ir.ops.recurrent.lstm_parts import needed
from onert_llvm.command.command import Slot
from onert_llvm.kernels.recurrent.linear_attention import AttendLinearly
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.target.isa import Isa

_CACHED = 32 << 10
"""Bytes of columns that a tile has on the stack, which the first-level cache holds."""
_MOST = 512
"""The most rows of a state, so that the stack has room for a register of each."""


def why_not(op: LinearAttention, types: CallTypes) -> str | None:
    """Why this backend does not run the layer; None if it does."""
    heads, n, width = types.input(5).shape[1:]
    if None in (heads, n, width, types.input(0).shape[2], types.input(1).shape[2]):
        return "sizes of heads are only known in runs"
    return f"states have {n} rows, expected at most {_MOST}" if (n or 0) > _MOST else None


def _registers(isa: Isa, n: int, width: int, group: int) -> int:
    """The registers of columns that a tile has: their sums, new values and products fit into the target's registers."""
    fitting = max((isa.registers - 4) // (group + 3), 1)
    most = min(fitting, max(_CACHED // (4 * isa.f32 * n), 1), 4)
    parts = -(-width // (most * isa.f32))
    return -(-width // (parts * isa.f32))


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """Lower the layer to one command, whose tiles are columns of heads."""
    at, operation, op = lowering.single(operations, LinearAttention)
    q, k, v, decay, rate, state, bounds = (*operation.inputs, None)[:7]
    needs = {"q": needed(q), "k": needed(k), "v": needed(v), "state": needed(state)}
    q_heads, k_heads = lowering.shape(needs["q"])[2], lowering.shape(needs["k"])[2]
    count, heads, n, width = lowering.shape(needs["state"])
    tokens = lowering.shape(needs["q"])[1]
    if 0 in (heads, n, width):
        return
    slots: dict[str, Slot] = {
        "tokens": tokens,
        "heads": heads,
        "q_heads": q_heads,
        "q_share": max(heads // q_heads, 1),
        "k_heads": k_heads,
        "k_share": heads // k_heads,
        "scale": op.scale,
    }
    group, rows, shared, nbytes = max(q_heads // heads, 1), 0, False, 0
    if decay is not None:
        needs["decay"], rows = decay, int(lowering.shape(decay)[3])
    if rate is not None:
        needs["rate"], shared = rate, lowering.shape(rate)[2] == 1
    if bounds is not None:
        needs["bounds"], nbytes = bounds, lowering.type(bounds).dtype.itemsize
        slots |= {"report": lowering.check(at, OUTSIDE), "sequences": count}
    registers = _registers(lowering.isa, n, width, group)
    kernel = AttendLinearly(n, width, registers, group, rows, rate is not None, shared, nbytes)
    tiles = count * heads * kernel.parts(lowering.isa.f32)
    y, last = operation.outputs
    flops = 8 * tokens * heads * n * width * (1 if bounds is not None else count)
    lowering.run(at, kernel, tiles, needs, {"y": y, "last": last}, slots, flops)

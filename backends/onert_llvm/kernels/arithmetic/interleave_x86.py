"""Packs four registers of 32-bit results into bytes, and interleaves rows of bytes into words, with x86 instructions.

Packs and unpacks work on four lanes of each operand at a time, so results whose words were unpacked come out of the
packs in order. In between, lane i of register r holds element `16 * (i // 4) + 4 * r + i % 4`.
"""

from __future__ import annotations

from collections.abc import Sequence

from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import I8, I16, I32, Kernel, Type, Val, intrinsic, vec
from onert_llvm.irbuilder.types import size
from onert_llvm.target.isa import Isa

REGISTERS, PAIR = 4, 2
_BLOCK = 4
"""The lanes of each operand that a pack processes at a time."""


def order(isa: Isa, registers: int = REGISTERS) -> list[int]:
    """The element in each lane of four registers, or of a pair."""
    lanes = [(i // _BLOCK, i % _BLOCK) for i in range(isa.f32)]
    return [_BLOCK * (registers * block + r) + within for r in range(registers) for block, within in lanes]


def unpacked(k: Kernel, rows: Sequence[Val]) -> list[Val]:
    """Words of up to four vertically adjacent bytes, the first row in the lowest byte; missing rows are 0."""
    count = rows[0].lanes
    first, second, third, fourth = (*rows, *[k.zeros(I8, count)] * (REGISTERS - len(rows)))
    pairs = [_unpacked(a, b, high) for high in (False, True) for a, b in ((first, second), (third, fourth))]
    words = [p.bits(vec(I16, count // 2)) for p in pairs]
    found = [_unpacked(words[i], words[i + 1], high) for i in (0, 2) for high in (False, True)]
    return [w.bits(vec(I8, count)) for w in found]


def paired(k: Kernel, rows: Sequence[Val]) -> list[Val]:
    """Pairs of up to two vertically adjacent 16-bit numbers, of two registers; a missing row is 0."""
    first, second = (*rows, *[k.zeros(I16, rows[0].lanes)] * (PAIR - len(rows)))
    return [_unpacked(first, second, high) for high in (False, True)]


def _unpacked(a: Val, b: Val, high: bool) -> Val:
    """The lower or upper halves of each 128 bits of both, with alternating elements."""
    per_block = 16 // size(a.type)
    half = per_block // 2
    starts = range(half if high else 0, a.lanes, per_block)
    taken = [i for start in starts for i in range(start, start + half)]
    return a.shuffle([at for i in taken for at in (i, a.lanes + i)], b)


def packed(k: Kernel, task: Task, clamped: bool, signed: bool, values: Sequence[Val]) -> Val:
    """Four registers, or a pair, as bytes, saturated to their type and with `clamped` to the task's bounds."""
    words = [_pack(k, I16, True, a, b) for a, b in zip(values[::2], values[1::2], strict=True)]
    if len(words) > 1:
        found = _pack(k, I8, signed, *words)
    else:
        found = words[0].clamp(*((-128, 127) if signed else (0, 255))).cast(I8)
    if not clamped:
        return found
    low, high = (task.i64(name).cast(I8).splat(found.lanes) for name in ("low", "high"))
    return found.max(low).min(high) if signed else found.umax(low).umin(high)


def neighbours(k: Kernel, values: Sequence[Val], signed: bool = True, zero: int = 0) -> Val:
    """Four registers of consecutive results as saturated bytes in order; `zero` is added to results of 16 bits."""
    words = [_pack(k, I16, True, a, b) for a, b in zip(values[::2], values[1::2], strict=True)]
    if zero:
        added = k.const(words[0].type, zero)
        words = [intrinsic(k.b, f"llvm.sadd.sat.{w.type.suffix}", w.type, w, added) for w in words]
    bytes_ = _pack(k, I8, signed, *words)
    blocks = values[0].lanes // _BLOCK
    places = [REGISTERS * block + r for r in range(REGISTERS) for block in range(blocks)]
    return bytes_.bits(vec(I32, len(places))).shuffle(places).bits(bytes_.type)


_PACKS = {16: "llvm.x86.sse2.{}.128", 32: "llvm.x86.avx2.{}", 64: "llvm.x86.avx512.{}.512"}
_NAMES = {(16, True): "packssdw", (8, True): "packsswb", (8, False): "packuswb"}


def _pack(k: Kernel, to: Type, signed: bool, a: Val, b: Val) -> Val:
    name = _PACKS[k.isa.vector_bytes].format(_NAMES[to.width, signed])
    return intrinsic(k.b, name, vec(to, a.lanes * 2), a, b)

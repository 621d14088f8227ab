"""Looks up registers of bytes in a table of 256 entries.

`vpermi2b` selects from 128 bytes by the low seven bits; the eighth bit selects between two such results. `tbl` yields 0
beyond its 64 bytes; four results, for the bytes less the size of the preceding tables, are combined by or. `pshufb`
selects one of 16 by the low four bits and yields 0 if the eighth bit is set. Its tables hold the differences (exclusive
or) between consecutive blocks of sixteen: those up to the block of the byte combine to the result. That works for the
128 bytes from 0 on, and likewise for the other 128.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onert.ir import Array
from onert_llvm.irbuilder import I8, Kernel, Val, View, intrinsic, vec
from onert_llvm.target.isa import Isa, Lookup

BYTES = 256
_BLOCK = 16
_HALF = BYTES // 2
SHUFFLES = {32: "llvm.x86.avx2.pshuf.b", 64: "llvm.x86.avx512.pshuf.b.512"}


def stored_table(isa: Isa, results: Array) -> Array:
    """A table's entries, ordered by unsigned byte, in the memory layout that the target's instructions need."""
    values: Array = results.view(np.uint8)
    if isa.lookup is not Lookup.SHUFFLE:
        return values
    blocks = values.reshape(2, -1, _BLOCK)
    before = np.concatenate([np.zeros_like(blocks[:, :1]), blocks[:, :-1]], axis=1)
    differences: Array = (blocks ^ before).reshape(-1)
    return differences


def loaded(k: Kernel, table: View) -> list[Val]:
    """The registers of a stored table. Only for targets with lookup instructions."""
    if k.isa.lookup is Lookup.PERMUTE:
        return [table[at].load(k.isa.vector_bytes) for at in range(0, BYTES, k.isa.vector_bytes)]
    rows = [table[at].load(_BLOCK) for at in range(0, BYTES, _BLOCK)]
    if k.isa.lookup is Lookup.TABLE:
        return rows
    spread = list(range(_BLOCK)) * (k.isa.vector_bytes // _BLOCK)
    return [row.shuffle(spread) for row in rows]


def looked_up(k: Kernel, registers: Sequence[Val], x: Val) -> Val:
    """The table entries for at most a register of bytes."""
    width = k.isa.vector_bytes
    whole = x if x.lanes == width else x.shuffle([min(i, x.lanes) for i in range(width)])
    look_up = {Lookup.PERMUTE: _permuted, Lookup.TABLE: _tabled, Lookup.SHUFFLE: _shuffled}[k.isa.lookup]
    found = look_up(k, registers, whole)
    return found if x.lanes == width else found.shuffle(list(range(x.lanes)))


def _permuted(k: Kernel, registers: Sequence[Val], x: Val) -> Val:
    low, high = (
        intrinsic(k.b, "llvm.x86.avx512.vpermi2var.qi.512", x.type, first, x, second)
        for first, second in (registers[:2], registers[2:])
    )
    return (x < 0).select(high, low)


def _tabled(k: Kernel, registers: Sequence[Val], x: Val) -> Val:
    found = None
    for at in range(0, len(registers), 4):
        part = intrinsic(k.b, "llvm.aarch64.neon.tbl4.v16i8", x.type, *registers[at : at + 4], x - _signed(at * _BLOCK))
        found = part if found is None else found | part
    assert found is not None
    return found


def _signed(byte: int) -> int:
    return byte - BYTES if byte >= _HALF else byte


def _shuffled(k: Kernel, registers: Sequence[Val], x: Val) -> Val:
    name, t = SHUFFLES[k.isa.vector_bytes], vec(I8, x.lanes)
    halves = []
    for half, own in enumerate((registers[: len(registers) // 2], registers[len(registers) // 2 :])):
        rest, found = x ^ -_HALF if half else x, None
        for row in own:
            part = intrinsic(k.b, name, t, row, rest)
            found = part if found is None else found ^ part
            rest = rest - _BLOCK
        assert found is not None
        halves.append(found)
    return (x < 0).select(halves[1], halves[0])

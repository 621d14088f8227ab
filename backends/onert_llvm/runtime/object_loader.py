"""Loads objects into this process: sections placed in one executable mapping, with relocations applied here.

A process that finds its objects in the cache needs neither LLVM nor a linker. Source of the relocations: the processor
supplements of the System V ABI for x86-64 and AArch64.
"""

from __future__ import annotations

import ctypes
import mmap
import struct
from collections.abc import Mapping, Sequence

from attrs import field, frozen

from onert.ir import BackendError
from onert.ir.value import ByIdentity

from .elf import X86_64, Object, Relocation, Symbol, parse

_STUB = 16
_X86_STUB = b"\xff\x25\x02\x00\x00\x00\xcc\xcc"  # jmp *2(%rip): to the address that follows the padding
_ARM_STUB = b"\x50\x00\x00\x58\x00\x02\x1f\xd6"  # ldr x16, #8; br x16


@frozen(eq=False)
class Image(ByIdentity):
    """Loaded code. Its addresses are valid as long as the image is alive."""

    symbols: Mapping[str, int]
    size: int
    _memory: mmap.mmap = field(repr=False)

    def __getitem__(self, symbol: str) -> int:
        """The address of an exported symbol. Raises BackendError if there is none."""
        if symbol not in self.symbols:
            raise BackendError(f"the loaded code has no symbol {symbol!r}")
        return self.symbols[symbol]


def load(objects: Sequence[bytes], externals: Mapping[str, int] | None = None) -> Image:
    """Place objects beside one another and link them; symbols that none of them exports are looked up in `externals`.

    Raises BackendError for a damaged object, a symbol that is missing or exported twice, or an address that does not
    fit its field.
    """
    parsed = [parse(data) for data in objects]
    places, size = _layout(parsed)
    foreign = externals or {}
    wanted = sorted({r.symbol.name for o in parsed for r in o.relocations if r.symbol.section is None})
    stubs = size + -size % _STUB
    total = max(stubs + _STUB * len(wanted), 1)
    memory = mmap.mmap(-1, total, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    exported = _exports(parsed, places, base)
    addresses = {name: _address(name, exported, foreign) for name in wanted}
    slots = {name: base + stubs + i * _STUB for i, name in enumerate(wanted)}
    for name, slot in slots.items():
        memory[slot - base : slot - base + _STUB] = _stub(parsed[0].machine, addresses[name])
    linked = _Linked(memory, base, addresses, slots)
    for number, o in enumerate(parsed):
        at = {s.index: places[number, s.index] for s in o.sections}
        for s in o.sections:
            memory[at[s.index] : at[s.index] + len(s.data)] = s.data
        apply = linked.x86 if o.machine == X86_64 else linked.arm
        for r in o.relocations:
            apply(r, at[r.section] + r.offset, *linked.target(r.symbol, at))
    _make_executable(base, total)
    return Image(exported, total, memory)


def _layout(objects: Sequence[Object]) -> tuple[dict[tuple[int, int], int], int]:
    if len({o.machine for o in objects}) > 1:
        raise BackendError("the objects are for different machines")
    places, end = {}, 0
    for number, o in enumerate(objects):
        for s in o.sections:
            start = end + -end % max(s.alignment, 16)
            places[number, s.index] = start
            end = start + len(s.data)
    return places, end


def _exports(objects: Sequence[Object], places: Mapping[tuple[int, int], int], base: int) -> dict[str, int]:
    found: dict[str, int] = {}
    for number, o in enumerate(objects):
        sizes = {s.index: len(s.data) for s in o.sections}
        for symbol in o.symbols:
            if not symbol.exported or symbol.section not in sizes:
                continue
            if symbol.name in found:
                raise BackendError(f"two objects export {symbol.name!r}")
            if symbol.offset > sizes[symbol.section]:
                raise BackendError(f"symbol {symbol.name!r} is beyond the end of its section")
            found[symbol.name] = base + places[number, symbol.section] + symbol.offset
    return found


def _address(name: str, exported: Mapping[str, int], foreign: Mapping[str, int]) -> int:
    found = exported.get(name, foreign.get(name))
    if found is None:
        raise BackendError(f"the code needs the symbol {name!r}, which nothing provides")
    return found


def _stub(machine: int, address: int) -> bytes:
    """Code that jumps to any address; its last eight bytes are that address, also used as a GOT entry."""
    return (_X86_STUB if machine == X86_64 else _ARM_STUB) + struct.pack("<Q", address)


_ARM_SCALES = {277: 0, 278: 0, 284: 1, 285: 2, 286: 3, 299: 4}  # ADD and LDST{8,16,32,64,128}_ABS_LO12_NC


@frozen(eq=False)
class _Linked(ByIdentity):
    """An image in `memory` at the address `base`, and the addresses and stubs (`slots`) of symbols beyond an object."""

    memory: mmap.mmap
    base: int
    addresses: Mapping[str, int]
    slots: Mapping[str, int]

    def target(self, symbol: Symbol, at: Mapping[int, int]) -> tuple[int, int | None]:
        """The address of a symbol, and of its stub if it has one; `at` are the places of the object's sections."""
        if symbol.section is None:
            return self.addresses[symbol.name], self.slots[symbol.name]
        if symbol.section not in at:
            raise BackendError(f"a relocation names {symbol.name!r} in section {symbol.section}, which is not loaded")
        return self.base + at[symbol.section] + symbol.offset, None

    def x86(self, r: Relocation, offset: int, direct: int, slot: int | None) -> None:
        """Apply a relocation of x86-64 to the image's byte `offset`."""
        if r.kind == 1:  # R_X86_64_64
            self._put(offset, "<Q", (direct + r.addend) % (1 << 64))
        elif r.kind in (2, 4):  # PC32, PLT32: far symbols through their stub
            target = direct if slot is None else slot
            self._put(offset, "<i", target + r.addend - self.base - offset)
        elif r.kind == 24:  # PC64
            self._put(offset, "<q", direct + r.addend - self.base - offset)
        elif r.kind in (9, 41, 42) and slot is not None:  # GOTPCREL and its relaxable forms: the address in the stub
            self._put(offset, "<i", slot + 8 + r.addend - self.base - offset)
        else:
            raise BackendError(f"relocation {r.kind} against {r.symbol.name!r} is not supported for x86-64")

    def arm(self, r: Relocation, offset: int, direct: int, slot: int | None) -> None:
        """Apply a relocation of AArch64 likewise."""
        near = direct if slot is None else slot
        (word,) = struct.unpack_from("<I", self.memory, offset)
        if r.kind == 257:  # ABS64
            self._put(offset, "<Q", (direct + r.addend) % (1 << 64))
        elif r.kind == 261:  # PREL32
            self._put(offset, "<i", near + r.addend - self.base - offset)
        elif r.kind in (282, 283):  # JUMP26, CALL26
            distance = near + r.addend - self.base - offset
            if not -(1 << 27) <= distance < 1 << 27:
                raise BackendError(f"{r.symbol.name!r} is {distance} bytes away, too far for a branch")
            self._put(offset, "<I", word | (distance >> 2 & 0x3FFFFFF))
        elif r.kind in (275, 311):  # ADR_PREL_PG_HI21, ADR_GOT_PAGE
            target = (near + 8 if r.kind == 311 else near) + r.addend
            pages = (target >> 12) - (self.base + offset >> 12)
            self._put(offset, "<I", word | (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5)
        elif r.kind in _ARM_SCALES:
            self._put(offset, "<I", word | ((near + r.addend & 0xFFF) >> _ARM_SCALES[r.kind]) << 10)
        elif r.kind == 312 and slot is not None:  # LD64_GOT_LO12_NC
            self._put(offset, "<I", word | ((slot + 8 & 0xFFF) >> 3) << 10)
        else:
            raise BackendError(f"relocation {r.kind} against {r.symbol.name!r} is not supported for AArch64")

    def _put(self, offset: int, layout: str, value: int) -> None:
        if offset + struct.calcsize(layout) > len(self.memory):
            raise BackendError(f"a relocation changes byte {offset} of an image of {len(self.memory)}")
        try:
            struct.pack_into(layout, self.memory, offset, value)
        except struct.error as error:
            raise BackendError(f"the distance {value} does not fit the field of a relocation") from error


def _make_executable(base: int, size: int) -> None:
    mprotect = ctypes.CDLL(None, use_errno=True).mprotect
    if mprotect(ctypes.c_void_p(base), ctypes.c_size_t(size), mmap.PROT_READ | mmap.PROT_EXEC):
        raise BackendError(f"the system refuses to make loaded code executable (error {ctypes.get_errno()})")

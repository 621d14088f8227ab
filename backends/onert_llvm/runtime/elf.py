"""Reads relocatable ELF objects (64-bit, little-endian): sections, symbols and relocations as plain values.

Every offset and count in the file is checked before use, so that a damaged object raises BackendError. Source: System V
ABI, chapters 4 and 5.
"""

from __future__ import annotations

import struct
from typing import Any

from attrs import frozen

from onert.ir import BackendError

X86_64, AARCH64 = 62, 183
_RELOCATABLE = 1
_PROGBITS, _SYMTAB, _STRTAB, _RELA, _NOBITS = 1, 2, 3, 4, 8
_WRITE, _ALLOC = 1, 2
_UNDEFINED, _RESERVED, _ABSOLUTE = 0, 0xFF00, 0xFFF1
_LOCAL = 0
_WIDE = (1, 24, 257)
"""The relocations with a field of 8 bytes: R_X86_64_64, R_X86_64_PC64 and R_AARCH64_ABS64."""

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")


@frozen(eq=False, repr=False)
class Section:
    """Bytes to place in memory; `index` is the section's number in the file."""

    index: int
    name: str
    data: bytes
    alignment: int


@frozen(eq=False, repr=False)
class Symbol:
    """A symbol; `section` is None if another object must define it."""

    name: str
    section: int | None
    offset: int
    exported: bool


@frozen(eq=False, repr=False)
class Relocation:
    """A field at `offset` of section `section` that depends on the address of `symbol`."""

    section: int
    offset: int
    kind: int
    symbol: Symbol
    addend: int


@frozen(eq=False, repr=False)
class Object:
    """The parts of an object file that matter to a loader."""

    machine: int
    sections: tuple[Section, ...]
    symbols: tuple[Symbol, ...]
    relocations: tuple[Relocation, ...]


@frozen(eq=False, repr=False)
class _Header:
    name: str
    kind: int
    flags: int
    offset: int
    size: int
    link: int
    target: int
    alignment: int


def parse(data: bytes) -> Object:
    """Parse an object file. Raises BackendError if it is not one that a loader can place."""
    machine, headers = _headers(data)
    kept = {i: h for i, h in enumerate(headers) if h.flags & _ALLOC and h.size and h.kind in (_PROGBITS, _NOBITS)}
    sections = tuple(_section(data, i, h) for i, h in kept.items())
    table = next((h for h in headers if h.kind == _SYMTAB), None)
    symbols = () if table is None else _symbols(data, headers, table)
    relocations = tuple(
        found
        for h in headers
        if h.kind == _RELA and h.target in kept
        for found in _relocations(data, h, kept[h.target].size, symbols)
    )
    return Object(machine, sections, symbols, relocations)


def _headers(data: bytes) -> tuple[int, list[_Header]]:
    magic, kind, machine, _, _, _, table, _, _, _, _, entry, count, names = _unpack(_HEADER, data, 0)
    if magic[:6] != b"\x7fELF\x02\x01" or kind != _RELOCATABLE:
        raise BackendError("the object is not a relocatable 64-bit little-endian ELF file")
    if machine not in (X86_64, AARCH64) or entry != _SECTION.size or names >= count:
        raise BackendError(f"the object is for machine {machine} with {count} sections, expected x86-64 or AArch64")
    raw = [_unpack(_SECTION, data, table + i * _SECTION.size) for i in range(count)]
    titles = _slice(data, raw[names][4], raw[names][5])
    headers = [
        _Header(_text(titles, name), kind, flags, offset, size, link, target, alignment)
        for name, kind, flags, _, offset, size, link, target, alignment, _ in raw
    ]
    return machine, headers


def _section(data: bytes, index: int, h: _Header) -> Section:
    if h.flags & _WRITE and not h.name.startswith(".data.rel.ro"):
        raise BackendError(f"section {h.name} is writable, and loaded code may not have state of its own")
    if h.kind == _NOBITS:
        raise BackendError(f"section {h.name} has no contents")
    if h.alignment > 4096 or h.alignment & (h.alignment - 1):
        raise BackendError(f"section {h.name} is aligned to {h.alignment}, expected a power of two of at most 4096")
    return Section(index, h.name, _slice(data, h.offset, h.size), max(1, h.alignment))


def _symbols(data: bytes, headers: list[_Header], table: _Header) -> tuple[Symbol, ...]:
    if table.link >= len(headers) or headers[table.link].kind != _STRTAB:
        raise BackendError(f"the symbol table refers to section {table.link}, which is not a string table")
    strings = _slice(data, headers[table.link].offset, headers[table.link].size)
    body = _slice(data, table.offset, table.size)
    found = []
    for name, about, _, section, value, _ in _SYMBOL.iter_unpack(body[: len(body) // _SYMBOL.size * _SYMBOL.size]):
        if section >= _RESERVED and section != _ABSOLUTE:
            raise BackendError(f"symbol {_text(strings, name)!r} is in the special section {section:#x}")
        place = None if section in (_UNDEFINED, _ABSOLUTE) else section
        found.append(Symbol(_text(strings, name), place, value, place is not None and about >> 4 != _LOCAL))
    return tuple(found)


def _relocations(data: bytes, h: _Header, size: int, symbols: tuple[Symbol, ...]) -> list[Relocation]:
    body = _slice(data, h.offset, h.size)
    found = []
    for offset, what, addend in _RELOCATION.iter_unpack(body[: len(body) // _RELOCATION.size * _RELOCATION.size]):
        number, kind = what >> 32, what & 0xFFFFFFFF
        if number >= len(symbols):
            raise BackendError(f"a relocation names symbol {number} of {len(symbols)}")
        if offset > size - (8 if kind in _WIDE else 4):
            raise BackendError(f"a relocation changes byte {offset} of a section of {size}")
        found.append(Relocation(h.target, offset, kind, symbols[number], addend))
    return found


def _unpack(layout: struct.Struct, data: bytes, offset: int) -> tuple[Any, ...]:
    if offset > len(data) - layout.size:
        raise BackendError(f"the object ends before byte {offset + layout.size}")
    return layout.unpack_from(data, offset)


def _slice(data: bytes, offset: int, size: int) -> bytes:
    if offset > len(data) or size > len(data) - offset:
        raise BackendError(f"the object ends before byte {offset + size}")
    return data[offset : offset + size]


def _text(strings: bytes, offset: int) -> str:
    end = strings.find(b"\0", offset)
    if offset > len(strings) or end < 0:
        raise BackendError(f"a name starts at byte {offset} of a string table of {len(strings)}")
    return strings[offset:end].decode("utf-8", "replace")

"""Zip archives written by hand, so that every field can be wrong."""

from __future__ import annotations

import bz2
import lzma
import struct
import zlib

from attrs import evolve, frozen

METHODS = {"stored": 0, "deflated": 8, "bzip2": 12, "lzma": 14}


@frozen
class Entry:
    """A file of an archive. Fields that are None get their correct value; `packed` is the stored data."""

    name: str
    content: bytes = b""
    method: int = 0
    packed: bytes | None = None
    size: int | None = None
    checksum: int | None = None
    flags: int = 0x800
    offset: int | None = None
    packed_size: int | None = None
    local_name: str | None = None
    wide: bool = False


def pack(content: bytes, method: int) -> bytes:
    """The content as a compression method stores it."""
    if method == 8:
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        return packer.compress(content) + packer.flush()
    if method == 12:
        return bz2.compress(content)
    if method == 14:
        chain = [{"id": lzma.FILTER_LZMA1, "preset": 1, "dict_size": 1 << 20, "lc": 3, "lp": 0, "pb": 2}]
        head = struct.pack("<BBHBL", 9, 4, 5, (2 * 5 + 0) * 9 + 3, 1 << 20)
        return head + lzma.compress(content, lzma.FORMAT_RAW, filters=chain)
    return content


def write_zip(
    *entries: Entry, comment: bytes = b"", count: int | None = None, directory_at: int | None = None
) -> bytes:
    """The archive; `count` and `directory_at` override the values in its end record."""
    out, directory = bytearray(), bytearray()
    for e in entries:
        packed = pack(e.content, e.method) if e.packed is None else e.packed
        size = len(e.content) if e.size is None else e.size
        packed_size = len(packed) if e.packed_size is None else e.packed_size
        checksum = zlib.crc32(e.content) if e.checksum is None else e.checksum
        name, local = e.name.encode(), (e.name if e.local_name is None else e.local_name).encode()
        offset = len(out) if e.offset is None else e.offset
        extra = struct.pack("<2H3Q", 1, 24, size, packed_size, offset) if e.wide else b""
        shown = (0xFFFFFFFF,) * 3 if e.wide else (packed_size, size, offset)
        out += struct.pack("<4s5H3L2H", b"PK\3\4", 20, e.flags, e.method, 0, 0, checksum, *shown[:2], len(local), 0)
        out += local + packed
        directory += struct.pack(
            "<4s6H3L5H2L",
            b"PK\1\2",
            20,
            20,
            e.flags,
            e.method,
            0,
            0,
            checksum,
            *shown[:2],
            len(name),
            len(extra),
            0,
            0,
            0,
            0,
            shown[2],
        )
        directory += name + extra
    at = len(out) if directory_at is None else directory_at
    number = len(entries) if count is None else count
    out += directory
    if any(e.wide for e in entries):
        end = len(out)
        out += struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, number, number, len(directory), at)
        out += struct.pack("<4sLQL", b"PK\6\7", 0, end, 1)
        number, at = 0xFFFF, 0xFFFFFFFF
    out += struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, number, number, len(directory), at, len(comment))
    return bytes(out + comment)


def changed(entry: Entry, **fields: object) -> Entry:
    """The entry with some fields overridden."""
    return evolve(entry, **fields)

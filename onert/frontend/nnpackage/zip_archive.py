"""Reading untrusted zip archives: every size and offset is checked, and memory is bounded by the file's size.

Source: PKWARE's APPNOTE.TXT, version 6.3.10: the end of central directory record and its 64-bit form, the central
directory, local headers, and the compression methods 0, 8, 12 and 14. The size that an archive declares for a file is
not trusted: unpacking stops one byte past it.
"""

from __future__ import annotations

import bz2
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Protocol

from attrs import field, frozen

from onert.frontend.flatbuffer import Data
from onert.ir import ModelError
from onert.ir.value import ByIdentity, Value

try:
    import lzma
except ImportError:  # Python was built without it
    lzma = None  # type: ignore[assignment]

ZIP, TASK = b"PK\x03\x04", ".task"
"""How archives begin, and the suffix of those that are MediaPipe's task bundles, not packages."""
_DAMAGED: tuple[type[Exception], ...] = (zlib.error, OSError, EOFError, ValueError)
"""Exceptions that decoders raise for malformed data."""
if lzma is not None:
    _DAMAGED = (*_DAMAGED, lzma.LZMAError)

FLOOR = 1 << 27
"""The size that any archive may unpack to, in bytes. Twice as much takes seconds to unpack on a slow machine."""
RATIO = 16
"""The ratio by which larger archives may unpack; weights of trained models shrink to a quarter at best."""
MAX_MEMBERS = 1 << 16

_END = struct.Struct("<4s4H2LH")
_END_64 = struct.Struct("<4sQ2H2L4Q")
_LOCATOR = struct.Struct("<4sLQL")
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_LOCAL = struct.Struct("<4s5H3L2H")
_PIECE, _MOST_AT_ONCE = 1 << 16, 1 << 20
_UNREADABLE = 0x2061
"""Flags of members that are encrypted or patches."""
_UTF_8 = 0x800
_FULL_16, _FULL_32 = 0xFFFF, 0xFFFFFFFF


@frozen
class Member(Value):
    """A file in an archive, as listed in the central directory."""

    name: bytes
    flags: int
    method: int
    checksum: int
    packed: int
    size: int
    header: int


class Decoder(Protocol):
    """The common interface of the standard library's decompressors."""

    @property
    def eof(self) -> bool: ...

    @property
    def needs_input(self) -> bool: ...

    def decompress(self, data: bytes, max_length: int) -> bytes: ...


@frozen(eq=False)
class ZipArchive(ByIdentity):
    """The files of an archive by name. Each is unpacked at most once."""

    data: Data
    members: dict[str, Member]
    _unpacked: dict[str, Data] = field(factory=dict)

    def read(self, name: str, most: int | None = None) -> Data:
        """The content of a file. Raises ModelError if it is missing or damaged, or has more than `most` bytes.

        All files read so far count towards the limit for the archive.
        """
        if name not in self._unpacked:
            if name not in self.members:
                raise ModelError(f"{name} is not in the archive")
            member = self.members[name]
            if most is not None and member.size > most:
                raise ModelError(f"{name} unpacks to {member.size} bytes, more than {most}")
            allowed = max(FLOOR, RATIO * len(self.data))
            total = member.size + sum(map(len, self._unpacked.values()))
            if total > allowed:
                raise ModelError(
                    f"{name} unpacks to {member.size} bytes, {total} in total; "
                    f"an archive of {len(self.data)} bytes may unpack to {allowed}"
                )
            try:
                self._unpacked[name] = _content(self.data, member)
            except ModelError as error:
                raise ModelError(f"{name} cannot be unpacked: {error}") from error
        return self._unpacked[name]


def open_zip_archive(data: Data) -> ZipArchive:
    """Open the archive in `data`. Raises ModelError if its directory breaks the format's rules, or repeats a name."""
    found: dict[str, Member] = {}
    for member in _directory(data):
        try:
            name = member.name.decode("utf-8" if member.flags & _UTF_8 else "cp437")
        except UnicodeDecodeError as error:
            raise ModelError("the zip archive has a file whose name is not UTF-8") from error
        if name in found:
            raise ModelError(f"the zip archive has {name!r} twice")
        found[name] = member
    return ZipArchive(data, found)


# ---- the directory


def _directory(data: Data) -> Iterator[Member]:
    offset, size, count = _end(data)
    if offset + size > len(data):
        raise ModelError("the zip archive's directory lies outside of the file")
    if count > MAX_MEMBERS:
        raise ModelError(f"the zip archive has {count} files, more than {MAX_MEMBERS}")
    end = offset + size
    for _ in range(count):
        if offset + _CENTRAL.size > end:
            raise ModelError(f"the zip archive's directory ends before its {count} entries do")
        fields = _CENTRAL.unpack_from(data, offset)
        name_length, extra_length, comment_length = fields[10:13]
        name_at = offset + _CENTRAL.size
        extra_at = name_at + name_length
        offset = extra_at + extra_length + comment_length
        if fields[0] != b"PK\x01\x02" or offset > end:
            raise ModelError("the zip archive's directory has a malformed entry")
        extra = data[extra_at : extra_at + extra_length]
        sizes = _wide((fields[9], fields[8], fields[16]), extra)
        yield Member(bytes(data[name_at:extra_at]), fields[3], fields[4], fields[7], sizes[1], sizes[0], sizes[2])


def _end(data: Data) -> tuple[int, int, int]:
    """Offset, size and entry count of the directory, from the end record whose comment reaches the end of the file."""
    tail = bytes(data[-_END.size - _FULL_16 :])
    at = tail.rfind(b"PK\x05\x06")
    while at >= 0:
        if at + _END.size <= len(tail):
            _, disk, first, here, count, size, offset, comment = _END.unpack_from(tail, at)
            if at + _END.size + comment == len(tail):
                if _FULL_16 in (here, count) or _FULL_32 in (size, offset):
                    return _end_64(data, len(data) - len(tail) + at)
                if disk or first or here != count:
                    raise ModelError("the zip archive is part of a multi-part archive")
                return offset, size, count
        at = tail.rfind(b"PK\x05\x06", 0, at)
    raise ModelError("the zip archive has no directory at its end")


def _end_64(data: Data, end: int) -> tuple[int, int, int]:
    """The same from the 64-bit record, which is referenced by a locator in front of the end record."""
    if end < _LOCATOR.size:
        raise ModelError("the zip archive has no 64-bit directory")
    signature, _, at, disks = _LOCATOR.unpack_from(data, end - _LOCATOR.size)
    if signature != b"PK\x06\x07" or disks > 1 or at + _END_64.size > len(data):
        raise ModelError("the zip archive has no 64-bit directory")
    signature, *_, here, count, size, offset = _END_64.unpack_from(data, at)
    if signature != b"PK\x06\x06" or here != count:
        raise ModelError("the zip archive has no 64-bit directory")
    return offset, size, count


def _wide(values: tuple[int, int, int], extra: Data) -> list[int]:
    """Size, packed size and offset; those over 32 bits are stored in an extra field, in this order."""
    wide: list[int] = []
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<2H", extra, at)
        body = extra[at + 4 : at + 4 + length]
        if kind == 1:
            wide = [value for (value,) in struct.iter_unpack("<Q", body[: len(body) // 8 * 8])]
        at += 4 + length
    found = []
    for value in values:
        if value == _FULL_32:
            if not wide:
                raise ModelError("the zip archive's directory has a 64-bit entry without its numbers")
            value = wide.pop(0)
        found.append(value)
    return found


# ---- members


def _content(data: Data, member: Member) -> Data:
    """Unpack a file. Raises ModelError if it is damaged, or does not match its directory entry."""
    packed = _packed(data, member)
    if member.method == 0:
        if member.packed != member.size:
            raise ModelError(f"it is stored in {member.packed} bytes, expected {member.size}")
        content: bytes | bytearray = bytes(packed)  # a copy, for alignment
    else:
        try:
            content = _expanded(packed, member)
        except _DAMAGED as error:
            raise ModelError(f"its compressed data is damaged ({error})") from error
    if len(content) != member.size:
        less = "less" if len(content) < member.size else "more"
        raise ModelError(f"it unpacks to {less} than the {member.size} bytes in the archive's directory")
    if zlib.crc32(content) != member.checksum:
        raise ModelError("its checksum is wrong")
    return memoryview(content).toreadonly()


def _packed(data: Data, member: Member) -> Data:
    """The stored bytes of a file, after a local header that repeats its name."""
    start = member.header + _LOCAL.size
    if start > len(data):
        raise ModelError("it lies outside of the archive")
    fields = _LOCAL.unpack_from(data, member.header)
    name_length, extra_length = fields[9:11]
    if fields[0] != ZIP or bytes(data[start : start + name_length]) != member.name:
        raise ModelError("the archive's directory does not point to it")
    if (member.flags | fields[2]) & _UNREADABLE:
        raise ModelError("it is encrypted or a patch")
    start += name_length + extra_length
    if start + member.packed > len(data):
        raise ModelError("it lies outside of the archive")
    return data[start : start + member.packed]


def _expanded(packed: Data, member: Member) -> bytearray:
    """Unpack at most one byte more than declared. Memory grows with the output, not with the declared size."""
    if member.method not in _DECODERS:
        known = ", ".join(map(str, (0, *_DECODERS)))
        raise ModelError(f"its compression method is {member.method}, expected one of {known}")
    decoder, packed = _DECODERS[member.method](packed, member.size)
    out = bytearray()
    at = 0
    while len(out) <= member.size and not decoder.eof:
        piece = bytes(packed[at : at + _PIECE]) if decoder.needs_input else b""
        at += len(piece)
        made = decoder.decompress(piece, min(member.size + 1 - len(out), _MOST_AT_ONCE))
        out += made
        if not piece and not made:
            break  # the data is truncated
    return out


class _Deflate:
    """zlib's decoder with the interface of the others."""

    def __init__(self) -> None:
        self._decoder = zlib.decompressobj(-zlib.MAX_WBITS)

    @property
    def eof(self) -> bool:
        return self._decoder.eof

    @property
    def needs_input(self) -> bool:
        return not self._decoder.unconsumed_tail

    def decompress(self, data: bytes, max_length: int) -> bytes:
        return self._decoder.decompress(self._decoder.unconsumed_tail + data, max_length)


def _deflate(packed: Data, size: int) -> tuple[Decoder, Data]:
    return _Deflate(), packed


def _bzip2(packed: Data, size: int) -> tuple[Decoder, Data]:
    return bz2.BZ2Decompressor(), packed


def _lzma(packed: Data, size: int) -> tuple[Decoder, Data]:
    """The decoder configured by the member's own header: version, length of the properties, properties.

    Its dictionary is allocated up front, so it is limited to the file's size, which is as far back as it can reach.
    """
    if lzma is None:
        raise ModelError("it is compressed with LZMA, which this Python was built without")
    if len(packed) < 9 or bytes(packed[2:4]) != b"\x05\x00" or packed[4] >= 9 * 5 * 5:
        raise ModelError("its LZMA header is malformed")
    rest, lc = divmod(packed[4], 9)
    pb, lp = divmod(rest, 5)
    claimed = int.from_bytes(packed[5:9], "little")
    chain = [
        {"id": lzma.FILTER_LZMA1, "dict_size": max(4096, min(claimed, size)), "lc": lc, "lp": lp, "pb": pb},
    ]
    return lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=chain), packed[9:]


_DECODERS: dict[int, Callable[[Data, int], tuple[Decoder, Data]]] = {8: _deflate, 12: _bzip2, 14: _lzma}
"""By compression method: returns a decoder and the data for it."""

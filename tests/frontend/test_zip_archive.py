"""Zip archives: valid ones are read, and malformed ones are refused in little memory."""

from __future__ import annotations

import io
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable

import pytest
from zips import METHODS, Entry, changed, pack, write_zip

from onert.frontend.nnpackage import zip_archive
from onert.frontend.nnpackage.zip_archive import FLOOR, RATIO, open_zip_archive
from onert.ir import ModelError

TEXT = b"a model, a model, my package for a model. " * 5000
FILE = Entry("a/model", TEXT, 8)


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS.keys())
@pytest.mark.parametrize("content", [b"", b"x", TEXT, bytes(3 << 20)], ids=["empty", "a byte", "text", "zeros"])
def test_a_file_round_trips(content: bytes, method: int) -> None:
    """With both this repository's writer and the standard library's."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        archive.writestr("a/model", content)
        archive.writestr("häßlich", b"other")
    written = (write_zip(Entry("a/model", content, method), Entry("häßlich", b"other")), buffer.getvalue())
    for data in written:
        found = open_zip_archive(memoryview(data))
        assert list(found.members) == ["a/model", "häßlich"]
        assert found.read("a/model") == content
        assert found.read("häßlich") == b"other"


@pytest.mark.parametrize(
    "data",
    [
        write_zip(changed(FILE, wide=True)),
        write_zip(FILE, comment=b"PK\5\6 made by hand"),
        write_zip(FILE, comment=write_zip(Entry("other"))[:-5]),
        write_zip(changed(FILE, flags=0)),
        write_zip(FILE, Entry("folder/")),
    ],
    ids=["64-bit fields", "a comment", "an archive cut short in a comment", "the old character set", "a folder"],
)
def test_valid_variants_of_the_format_are_read(data: bytes) -> None:
    assert open_zip_archive(memoryview(data)).read("a/model") == TEXT


def _streamed() -> bytes:
    """Written to a stream that cannot seek, so the sizes follow the data."""

    class Pipe(io.RawIOBase):
        def __init__(self) -> None:
            self.written = bytearray()

        def writable(self) -> bool:
            return True

        def write(self, data: bytes) -> int:  # type: ignore[override]
            self.written += data
            return len(data)

    pipe = Pipe()
    with zipfile.ZipFile(pipe, "w", 8) as archive:
        archive.writestr("a/model", TEXT)
    return bytes(pipe.written)


def test_sizes_may_follow_the_data() -> None:
    assert open_zip_archive(memoryview(_streamed())).read("a/model") == TEXT


def _flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]


DAMAGED: dict[str, tuple[bytes, str]] = {
    "no archive": (b"PK\3\4 not at all", "no directory at its end"),
    "nothing": (b"", "no directory at its end"),
    "cut short": (write_zip(FILE)[:-1], "no directory at its end"),
    "something behind": (write_zip(FILE) + b"!", "no directory at its end"),
    "a directory outside": (write_zip(FILE, directory_at=1 << 31), "lies outside of the file"),
    "a directory elsewhere": (write_zip(FILE, directory_at=3), "has a malformed entry"),
    "too few entries": (write_zip(FILE, count=2), "ends before its 2 entries do"),
    "one name twice": (write_zip(FILE, FILE), "'a/model' twice"),
    "too many entries": (write_zip(changed(FILE, wide=True), count=1 << 20), "has 1048576 files, more than 65536"),
    "a wide entry without numbers": (write_zip(changed(FILE, packed_size=0xFFFFFFFF)), "64-bit entry without its"),
    "many ends": (b"PK\5\6" * 20_000, "no directory at its end"),
    "a name that is not UTF-8": (write_zip(FILE).replace(b"a/model", b"a/\xff\xfe\xff\xfe\xff"), "name is not UTF-8"),
    "no local header": (write_zip(changed(FILE, offset=1)), "directory does not point to it"),
    "a header outside": (write_zip(changed(FILE, offset=1 << 30)), "lies outside of the archive"),
    "another local name": (write_zip(changed(FILE, local_name="b/model")), "directory does not point to it"),
    "data outside": (write_zip(changed(FILE, packed_size=1 << 30)), "lies outside of the archive"),
    "encrypted": (write_zip(changed(FILE, flags=0x801)), "is encrypted or a patch"),
    "encrypted strongly": (write_zip(changed(FILE, flags=0x841)), "is encrypted or a patch"),
    "a patch": (write_zip(changed(FILE, flags=0x820)), "is encrypted or a patch"),
    "an unknown method": (write_zip(changed(FILE, method=9)), "method is 9, expected one of 0, 8, 12, 14"),
    "a wrong checksum": (write_zip(changed(FILE, checksum=1)), "checksum is wrong"),
    "stored in another size": (write_zip(changed(FILE, method=0, size=3)), "stored in 210000 bytes, expected 3"),
    "LZMA without a header": (write_zip(changed(FILE, method=14, packed=b"\t\4\5")), "LZMA header is malformed"),
    "LZMA of no parameters": (
        write_zip(changed(FILE, method=14, packed=b"\t\4\5\0" + b"\xff" * 30)),
        "LZMA header is malformed",
    ),
}
for _name, _method in METHODS.items():
    if _method:
        _packed = pack(TEXT, _method)
        DAMAGED |= {
            f"{_name}, more than it says": (
                write_zip(changed(FILE, method=_method, size=7)),
                "unpacks to more than the 7",
            ),
            f"{_name}, less than it says": (
                write_zip(changed(FILE, method=_method, size=len(TEXT) + 1)),
                "unpacks to less than|is damaged",
            ),
            f"{_name}, cut short": (
                write_zip(changed(FILE, method=_method, packed=_packed[: len(_packed) // 2])),
                "unpacks to less than|is damaged",
            ),
            f"{_name}, no bytes": (
                write_zip(changed(FILE, method=_method, packed=_packed[:9])),
                "unpacks to less than|is damaged",
            ),
            f"{_name}, noise": (
                write_zip(changed(FILE, method=_method, packed=_packed[:9] + b"\xaa\x55\xff" * 99)),
                "is damaged|unpacks to|checksum",
            ),
        }


def _read_all(data: bytes) -> None:
    archive = open_zip_archive(memoryview(data))
    for name in archive.members:
        archive.read(name)


@pytest.mark.parametrize(("data", "says"), DAMAGED.values(), ids=DAMAGED.keys())
def test_a_damaged_archive_is_refused(data: bytes, says: str) -> None:
    with pytest.raises(ModelError, match=says) as caught:
        _read_all(data)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS.keys())
def test_flipping_any_byte_never_changes_the_content(method: int) -> None:
    """Flips every byte of an archive in turn: it is refused or has the same content."""
    data = write_zip(Entry("m", b"abcabcabcabc" * 4, method))
    for at in range(len(data)):
        try:
            archive = open_zip_archive(memoryview(_flipped(data, at)))
            assert all(archive.read(name) == b"abcabcabcabc" * 4 for name in archive.members)
        except ModelError:
            continue


# ---- memory and work


def _zeros(count: int) -> bytes:
    """That many zeros, deflated without allocating them."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = bytes(1 << 20)
    return b"".join(packer.compress(block) for _ in range(count >> 20)) + packer.flush()


def _peak(do: Callable[[], object]) -> int:
    """The peak of the memory that Python allocated during the call."""
    tracemalloc.start()
    try:
        do()
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return peak


@pytest.mark.parametrize("method", [8, 12, 14], ids=["deflated", "bzip2", "lzma"])
@pytest.mark.parametrize("size", [1 << 20, 1 << 26, (1 << 32) - 2], ids=["1 MiB", "64 MiB", "4 GiB"])
def test_memory_is_not_allocated_for_the_sizes_an_archive_claims(size: int, method: int) -> None:
    data = write_zip(Entry("m", b"x" * 1000, method, size=size))

    def read() -> None:
        with pytest.raises(ModelError):
            open_zip_archive(memoryview(data)).read("m")

    assert _peak(read) < 8 << 20


@pytest.mark.parametrize("method", [8, 12, 14], ids=["deflated", "bzip2", "lzma"])
@pytest.mark.parametrize("size", [1, 1000, 1 << 20])
def test_unpacking_stops_at_the_declared_size(size: int, method: int) -> None:
    """64 MiB of zeros with a small declared size."""
    packed = _zeros(1 << 26) if method == 8 else pack(bytes(1 << 26), method)
    data = write_zip(Entry("m", b"", method, packed=packed, size=size))

    def read() -> None:
        with pytest.raises(ModelError, match=f"unpacks to more than the {size} bytes"):
            open_zip_archive(memoryview(data)).read("m")

    assert _peak(read) < 12 << 20


def test_the_lzma_dictionary_is_no_larger_than_the_file() -> None:
    """A header may request 4 GiB, which the decoder would allocate at once."""
    packed = bytearray(pack(TEXT, 14))
    packed[5:9] = b"\xff" * 4
    data = write_zip(Entry("m", TEXT, 14, packed=bytes(packed)))
    assert open_zip_archive(memoryview(data)).read("m") == TEXT


@pytest.mark.parametrize("sizes", [(FLOOR + 1,), (FLOOR // 2, FLOOR // 2 + 1)], ids=["one file", "two files"])
def test_the_total_unpacked_size_of_an_archive_is_bounded(sizes: tuple[int, ...]) -> None:
    data = write_zip(*(Entry(f"m{i}", b"", 8, packed=_zeros(size), size=size) for i, size in enumerate(sizes)))
    archive = open_zip_archive(memoryview(data))
    archive._unpacked.update({f"m{i}": memoryview(bytes(size)) for i, size in enumerate(sizes[:-1])})
    with pytest.raises(ModelError, match=f"an archive of {len(data)} bytes may unpack to {FLOOR}"):
        archive.read(f"m{len(sizes) - 1}")


def test_a_larger_archive_may_unpack_to_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zip_archive, "FLOOR", 1)
    small, large = Entry("m", bytes(8 << 10), 8), Entry("n", bytes(4 << 10))
    with pytest.raises(ModelError, match="may unpack to"):
        open_zip_archive(memoryview(write_zip(small))).read("m")
    archive = open_zip_archive(memoryview(write_zip(small, large)))
    assert len(archive.read("m")) + len(archive.read("n")) <= RATIO * len(archive.data)


def test_a_file_is_unpacked_once() -> None:
    archive = open_zip_archive(memoryview(write_zip(FILE)))
    assert archive.read("a/model") is archive.read("a/model")

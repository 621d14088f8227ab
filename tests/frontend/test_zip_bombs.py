"""Small archives that unpack to gigabytes are refused within one gibibyte of memory, at three sizes of each kind."""

from __future__ import annotations

import re
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import hostile_packages as hostile
import pytest
from patience import PATIENCE
from resident import SOURCE
from zips import Entry, write_zip

SIZES = (1 << 26, 1 << 29, (1 << 32) - (1 << 20))
MIB = 1 << 20

PROBE = (
    SOURCE
    + """
import sys
import onert
for path in sys.argv[1:]:
    try:
        onert.load(path)
        print("loaded")
    except onert.ModelError as error:
        print(error)
print(peak())
"""
)


def zeros(size: int) -> bytes:
    """That many zeros, deflated: one block that refers to nothing before it, repeated."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = packer.compress(bytes(MIB)) + packer.flush(zlib.Z_FULL_FLUSH)
    return block * (size // MIB) + packer.flush()


def _manifest(size: int) -> bytes:
    """A manifest that is mostly blanks."""
    return write_zip(Entry("metadata/MANIFEST", packed=zeros(size), method=8, size=size))


def _modest_manifest(size: int) -> bytes:
    """A manifest with a small declared size."""
    return write_zip(Entry("metadata/MANIFEST", packed=zeros(size), method=8, size=100))


def _model(size: int) -> bytes:
    model = Entry(hostile.MODEL, packed=zeros(size), method=8, size=size)
    return write_zip(Entry("metadata/MANIFEST", hostile.manifest()), model)


def _modest_model(size: int) -> bytes:
    model = Entry(hostile.MODEL, packed=zeros(size), method=8, size=100 << 20)
    return write_zip(Entry("metadata/MANIFEST", hostile.manifest()), model)


def _many(size: int) -> bytes:
    """Empty files, as many as the format has room for, and no manifest."""
    return write_zip(*(Entry(str(at)) for at in range(size >> 16 & 0xFFFF)))


@pytest.mark.parametrize(
    "make", [_manifest, _modest_manifest, _model, _modest_model, _many], ids=lambda f: f.__name__[1:]
)
def test_a_bomb_is_refused_in_little_memory(tmp_path: Path, make: Callable[[int], bytes]) -> None:
    paths = []
    for size in SIZES:
        path = tmp_path / f"{size}.nnpkg"
        path.write_bytes(make(size))
        paths.append(str(path))
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *paths], capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr
    *sentences, peak = done.stdout.splitlines()
    assert len(sentences) == len(SIZES)
    for sentence in sentences:
        assert re.search("unpacks to|checksum is wrong|has no metadata/MANIFEST", sentence), sentence
    assert int(peak) < 1 << 20, f"{peak} KiB"

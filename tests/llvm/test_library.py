"""Libraries of kernels that were generated before the package was installed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from shared_material import REPOSITORY

import onert
from onert.runtime.shipping import ship
from onert_llvm.codegen import library
from onert_llvm.codegen.fingerprint import own_sources
from onert_llvm.codegen.library import key, library_bytes, open_library
from onert_llvm.target.isa import target

DIGITS = REPOSITORY / "nnpackage" / "examples" / "digits_int8" / "digits_int8.tflite"
SOURCES = "ab" * 32
OBJECTS = {key("one"): b"first" * 100, key("two"): b"second" * 100}


def library_file(folder: Path, content: bytes) -> Path:
    """Write a library file with this content."""
    path = folder / "any.kernels"
    path.write_bytes(content)
    path.chmod(0o644)
    return path


def test_a_library_returns_the_objects_written_to_it(tmp_path: Path) -> None:
    found = open_library(library_file(tmp_path, library_bytes(OBJECTS, SOURCES)), SOURCES)
    assert found is not None
    assert {name: found.load(name) for name in OBJECTS} == OBJECTS
    assert found.load(key("three")) is None
    assert library_bytes(dict(reversed(OBJECTS.items())), SOURCES) == library_bytes(OBJECTS, SOURCES)


CHANGED: dict[str, Callable[[bytes], bytes]] = {
    "nothing": lambda content: b"",
    "half a head": lambda content: content[:40],
    "another magic": lambda content: b"onert kernels 0\0" + content[16:],
    "other sources": lambda content: content[:16] + bytes(32) + content[48:],
    "more rows than bytes": lambda content: content[:48] + (1 << 60).to_bytes(8, "little") + content[56:],
    "a changed row": lambda content: content[:70] + bytes([content[70] ^ 1]) + content[71:],
    "half of the rows": lambda content: content[:100],
}


@pytest.mark.parametrize("name", CHANGED)
def test_a_damaged_library_or_one_of_other_sources_is_not_used(name: str, tmp_path: Path) -> None:
    assert open_library(library_file(tmp_path, CHANGED[name](library_bytes(OBJECTS, SOURCES))), SOURCES) is None


def test_a_damaged_object_is_not_used(tmp_path: Path) -> None:
    whole = library_bytes(OBJECTS, SOURCES)
    for content in (whole[:-1], whole[:-1] + bytes([whole[-1] ^ 1])):
        found = open_library(library_file(tmp_path, content), SOURCES)
        assert found is not None
        given = [found.load(name) for name in OBJECTS]
        assert given.count(None) == 1
        assert set(given) - {None} <= set(OBJECTS.values())


def test_a_library_writable_by_others_is_not_used(tmp_path: Path) -> None:
    path = library_file(tmp_path, library_bytes(OBJECTS, SOURCES))
    path.chmod(0o666)
    assert open_library(path, SOURCES) is None
    path.chmod(0o644)
    link = tmp_path / "link.kernels"
    link.symlink_to(path)
    assert open_library(link, SOURCES) is None
    assert open_library(tmp_path, SOURCES) is None
    assert open_library(tmp_path / "none.kernels", SOURCES) is None


RUN = """
import sys
from pathlib import Path
import numpy as np
import onert
from onert_llvm.codegen import library
library.FOLDER = Path(sys.argv[2])
program = onert.compile(onert.load(sys.argv[1]), num_threads=int(sys.argv[3]))
shape = program.inputs[0].shape
x = np.arange(np.prod(shape)).reshape(shape).astype(program.inputs[0].dtype.numpy)
print(*(y.tobytes().hex() for y in onert.Execution(program).run([x]).values()))
print("llvmlite" in sys.modules)
"""


def first_run(folder: Path, cache: Path, threads: int) -> list[str]:
    """The outputs of a run in a new process with an empty cache, and whether it loaded LLVM."""
    environment = {**os.environ, "ONERT_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", RUN, str(DIGITS), str(folder), str(threads)]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout.splitlines()


def test_a_first_run_with_shipped_kernels_does_not_load_llvm_and_is_bitwise_equal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library, "FOLDER", tmp_path)
    (path,) = ship([DIGITS])
    assert path == tmp_path / f"{target('native').name}.kernels"
    plain, llvm = first_run(tmp_path / "none", tmp_path / "cache 0", 1)
    assert first_run(tmp_path, tmp_path / "cache 1", 1) == [plain, "False"]
    assert llvm == "True"
    content = bytearray(path.read_bytes())
    shipped = open_library(path, own_sources())
    assert shipped is not None
    for start, size, _ in shipped._rows.values():  # which of them are needed depends on the number of threads
        content[start + size - 1] ^= 1
    path.write_bytes(content)
    assert first_run(tmp_path, tmp_path / "cache 2", 2) == [plain, "True"]


def test_kernels_are_shipped_for_other_machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "FOLDER", tmp_path)
    paths = ship([DIGITS], ["aarch64", "x86-64"])
    assert [path.name for path in paths] == ["aarch64.kernels", "x86-64.kernels"]
    assert all(b"\x7fELF" in path.read_bytes() for path in paths)
    with pytest.raises(onert.BackendError, match="is not a target"):
        ship([DIGITS], ["sparc"])
    with pytest.raises(onert.ModelError):
        ship([np.zeros(1).tobytes()])

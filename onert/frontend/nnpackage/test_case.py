"""The optional test case of a package: inputs and their expected outputs.

Either `metadata/tc/input.h5` and `expected.h5` as written by ONE's tools (a group `value` with datasets `0`, `1`, ...
in the order of inputs or outputs), or `input.npz` and `expected.npz` with arrays of the same names, which need no HDF5.
Nothing in them is unpickled, and no array is created before its size is checked against that of the file.
"""

from __future__ import annotations

import ast
import io
import math
from pathlib import Path
from typing import Any

import numpy as np
from attrs import frozen

from onert.frontend.files import is_directory, open_file
from onert.frontend.flatbuffer import Data
from onert.ir import Array, ModelError
from onert.ir.value import ByIdentity

from .package import open_archive
from .zip_archive import FLOOR, RATIO, open_zip_archive

_FOLDER = "metadata/tc"
_KINDS = "biufcSU"
"""NumPy's kinds of numeric and text elements; some of the others are Python objects."""
_NUMPY = b"\x93NUMPY"


@frozen(eq=False)
class TestCase(ByIdentity):
    """Inputs and expected outputs in the package's order."""

    __test__ = False  # keeps pytest from collecting it

    inputs: tuple[Array, ...]
    expected: tuple[Array, ...]


def test_case(path: Path) -> TestCase | None:
    """The test case of a package in a directory or zip archive; None if it has none.

    Raises ModelError if the package or its test case cannot be read.
    """
    archive = open_archive(memoryview(b"") if is_directory(path) else open_file(path).data, path)
    for suffix, read in ((".npz", _npz), (".h5", _hdf5)):
        names = [f"{_FOLDER}/{side}{suffix}" for side in ("input", "expected")]
        if all(archive.has(name) for name in names):
            try:
                return TestCase(*(read(archive.read(name)) for name in names))
            except ModelError as error:
                raise ModelError(f"the test case cannot be read: {error}") from error
    return None


test_case.__test__ = False  # type: ignore[attr-defined] # keeps pytest from collecting it


def _npz(raw: Data) -> tuple[Array, ...]:
    archive = open_zip_archive(raw)
    return tuple(_npy(archive.read(f"{i}.npy"), f"{i}.npy") for i in range(len(archive.members)))


def _npy(raw: Data, name: str) -> Array:
    """Read an .npy array: a signature, a version, the header's length, the header as a Python literal, the elements."""
    wide = bytes(raw[6:7]) != b"\1"
    start = 12 if wide else 10
    end = start + int.from_bytes(raw[8:start], "little")
    if bytes(raw[:6]) != _NUMPY or end > len(raw) or end > 10_000:
        raise ModelError(f"{name} is not a NumPy array")
    try:
        header = ast.literal_eval(bytes(raw[start:end]).decode("latin1").strip())
        dtype, shape = np.dtype(str(header["descr"])), tuple(int(d) for d in header["shape"])
        order = "F" if header["fortran_order"] else "C"
        if dtype.kind not in _KINDS or min(shape, default=0) < 0:
            raise ModelError(f"{name} has elements or dimensions that a tensor cannot have")
        if math.prod(shape) * dtype.itemsize != len(raw) - end:
            raise ModelError(f"{name} has {len(raw) - end} bytes of elements, expected {shape} of {dtype}")
        return np.frombuffer(raw, dtype, offset=end).reshape(shape, order=order)  # type: ignore[call-overload, no-any-return]
    except (ValueError, SyntaxError, TypeError, LookupError, OverflowError, MemoryError, RecursionError) as error:
        raise ModelError(f"{name} is not a NumPy array: {error}") from error


def _hdf5(raw: Data) -> tuple[Array, ...]:
    try:
        import h5py  # noqa: PLC0415 # heavy, and only packages without .npz need it
    except ImportError as error:
        raise ModelError("it is HDF5, which needs h5py; pip install 'onert-toolkit[hdf5]'") from error
    try:
        with h5py.File(io.BytesIO(raw), "r") as file:
            group = _own(h5py, file, "value", h5py.Group)
            return tuple(_dataset(_own(h5py, group, str(i), h5py.Dataset), len(raw)) for i in range(len(group)))
    except (OSError, LookupError, ValueError, TypeError, AttributeError, RuntimeError, MemoryError) as error:
        raise ModelError(f"it is not HDF5 with a group 'value': {error}") from error


def _own(h5py: Any, parent: Any, name: str, kind: type) -> Any:
    """The object of a name inside this file; a link might lead into any other file."""
    if not isinstance(parent.get(name, getlink=True), h5py.HardLink) or not isinstance(parent[name], kind):
        raise ModelError(f"{name!r} is not a {kind.__name__.lower()} in the file itself")
    return parent[name]


def _dataset(found: Any, size: int) -> Array:
    """A dataset's elements, which must be inside this file too."""
    if found.external or found.is_virtual:
        raise ModelError(f"{found.name!r} has its elements in another file")
    if found.dtype.kind not in _KINDS:
        raise ModelError(f"{found.name!r} has elements that a tensor cannot have")
    if found.size * found.dtype.itemsize > max(FLOOR, RATIO * size):
        raise ModelError(f"{found.name!r} has {found.size} elements, more than a file of {size} bytes may have")
    return np.asarray(found)

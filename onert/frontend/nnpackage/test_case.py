"""The test case that a package may carry: inputs, and the outputs expected of them.

`metadata/tc/input.h5` and `expected.h5` as ONE's tools write them (a group `value` with datasets `0`, `1`, ... in the
order of inputs or outputs), or `input.npz` and `expected.npz` with arrays of the same names, which need no HDF5.
"""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from attrs import frozen

from onert.frontend.flatbuffer import Data
from onert.ir import Array, ModelError

from .package import open_archive

_FOLDER = "metadata/tc"


@frozen(eq=False)
class TestCase:
    """Inputs and expected outputs in the order of the package's."""

    __test__ = False  # no class of tests, whatever its name makes pytest think

    inputs: tuple[Array, ...]
    expected: tuple[Array, ...]


def test_case(path: Path) -> TestCase | None:
    """The test case of a package, a directory or a zip; None where it has none."""
    content = memoryview(b"") if path.is_dir() else memoryview(path.read_bytes())
    archive = open_archive(content, path)
    for suffix, read in ((".npz", _npz), (".h5", _hdf5)):
        names = [f"{_FOLDER}/{side}{suffix}" for side in ("input", "expected")]
        if all(archive.has(name) for name in names):
            return TestCase(*(read(archive.read(name)) for name in names))
    return None


test_case.__test__ = False  # type: ignore[attr-defined] # likewise


def _npz(raw: Data) -> tuple[Array, ...]:
    try:
        with np.load(io.BytesIO(raw), allow_pickle=False) as arrays:
            return tuple(arrays[str(i)] for i in range(len(arrays.files)))
    except (ValueError, KeyError, OSError) as error:
        raise ModelError(f"the test case cannot be read: {error}") from error


def _hdf5(raw: Data) -> tuple[Array, ...]:
    try:
        import h5py  # noqa: PLC0415 # heavy, and only packages without .npz need it
    except ImportError as error:
        raise ModelError("the test case is HDF5, which needs h5py; install onert-toolkit[hdf5]") from error
    try:
        with h5py.File(io.BytesIO(raw), "r") as file:
            group = file["value"]
            return tuple(np.asarray(group[str(i)]) for i in range(len(group)))
    except (OSError, KeyError, ValueError) as error:
        raise ModelError(f"the test case cannot be read: {error}") from error

"""Tensors from files of numbers, and random ones."""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from onert.backend import TensorInfo
from onert.backend.tensor_names import offered
from onert.ir import Array, ExecutionError

_UNREADABLE = (
    OSError,
    ValueError,
    EOFError,
    AttributeError,
    TypeError,
    KeyError,
    MemoryError,
    NotImplementedError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
)
"""What NumPy raises for files that are damaged, encrypted, truncated, or of another kind."""


def random(info: TensorInfo, rng: np.random.Generator) -> Array:
    """Random elements for an input; unknown dimensions are 1. Wide integers, which are mostly indices, are 0 or 1."""
    shape = tuple(1 if d is None else d for d in info.shape)
    if info.dtype.is_float:
        return rng.uniform(-1, 1, shape).astype(info.dtype.numpy)
    if info.dtype.is_complex:
        return (rng.uniform(-1, 1, shape) + 1j * rng.uniform(-1, 1, shape)).astype(info.dtype.numpy)
    if info.dtype.is_handle:
        out = np.empty(shape, object)
        out[...] = b""
        return out
    if info.dtype.is_integer and info.dtype.bits <= 16:
        low, high = info.dtype.limits
        return rng.integers(low, high, shape, np.int64, endpoint=True).astype(info.dtype.numpy)
    return rng.integers(0, 2, shape).astype(info.dtype.numpy)


def numpy_file(path: Path) -> Array:
    """Read a .npy file without pickled objects."""
    return _numpy(path, str(path))


def numpy_content(content: bytes, name: str) -> Array:
    """Read the content of a .npy file without pickled objects."""
    return _numpy(io.BytesIO(content), name)


def _numpy(source: Path | io.BytesIO, name: str) -> Array:
    try:
        found = np.load(source, allow_pickle=False)
    except _UNREADABLE as error:
        raise ExecutionError(f"{name} cannot be read: {error}") from error
    if not isinstance(found, np.ndarray):
        raise ExecutionError(f"{name} holds several arrays, expected one")
    return found


def archive(path: Path, infos: Sequence[TensorInfo]) -> list[Array]:
    """Read all inputs from .npz (by name, or position as `0`, `in0`, `arr_0`, ...), .npy or .h5 (group `value`)."""
    suffix = path.suffix.lower()
    if suffix == ".npy":
        if len(infos) != 1:
            raise ExecutionError(f"{path} holds one array, expected {len(infos)}")
        return [numpy_file(path)]
    if suffix in (".h5", ".hdf5"):
        return hdf5(path, len(infos))
    found, arrays = _arrays(path), []
    for i, info in enumerate(infos):
        name = next((n for n in (info.name, *info.other_names, str(i), f"in{i}", f"arr_{i}") if n in found), None)
        if name is None:
            raise ExecutionError(
                f"{path} has no array for input {offered((info,))}, only {', '.join(map(repr, found))}"
            )
        arrays.append(found[name])
    return arrays


def archive_shapes(path: Path) -> dict[int | str, tuple[int, ...]]:
    """The shapes of the arrays that `archive` reads, by name or position."""
    suffix = path.suffix.lower()
    if suffix == ".npy":
        return {0: numpy_file(path).shape}
    if suffix in (".h5", ".hdf5"):
        return hdf5_shapes(path)
    found = dict[int | str, tuple[int, ...]]()
    for name, array in _arrays(path).items():
        found[name] = array.shape
        position = re.fullmatch(r"(?:in|arr_)?(\d{1,3})", name)
        if position is not None:
            found[int(position[1])] = array.shape
    return found


def _arrays(path: Path) -> dict[str, Array]:
    """The arrays of a .npz file by name."""
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except _UNREADABLE as error:
        raise ExecutionError(f"{path} cannot be read as .npz: {error}") from error


def hdf5(path: Path, count: int) -> list[Array]:
    """Read the datasets `0`, `1`, ... of the group `value`, as written by ONE's tools."""
    file_type = _h5py()
    try:
        with file_type(path, "r") as file:
            return [np.asarray(file["value"][str(i)]) for i in range(count)]
    except _UNREADABLE as error:
        raise ExecutionError(f"{path} cannot be read as HDF5 with a group 'value': {error}") from error


def hdf5_shapes(path: Path) -> dict[int | str, tuple[int, ...]]:
    """The shapes of the datasets that `hdf5` reads, by position."""
    try:
        with _h5py()(path, "r") as file:
            return {int(name): tuple(dataset.shape) for name, dataset in file["value"].items()}
    except _UNREADABLE as error:
        raise ExecutionError(f"{path} cannot be read as HDF5 with a group 'value': {error}") from error


def _h5py() -> Any:
    try:
        import h5py  # noqa: PLC0415 # heavy and optional
    except ImportError as error:
        raise ExecutionError("HDF5 needs h5py; pip install 'onert-toolkit[hdf5]'") from error
    return h5py.File


def write_hdf5(target: BinaryIO, arrays: Sequence[Array]) -> None:
    """Write arrays as datasets `0`, `1`, ... of the group `value` to a file that is also open for reading."""
    with _h5py()(target, "w") as file:
        group = file.create_group("value")
        for i, array in enumerate(arrays):
            group.create_dataset(str(i), data=array)


def raw(path: Path, info: TensorInfo) -> Array:
    """Read raw little-endian elements in row-major order. Raises ExecutionError for a wrong number."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ExecutionError(f"{path} cannot be read: {error.strerror or error}") from error
    return raw_content(content, str(path), info)


def raw_content(content: bytes, name: str, info: TensorInfo) -> Array:
    """The same as `raw` for a file's content."""
    shape = tuple(1 if d is None else d for d in info.shape)
    wanted = int(np.prod(shape, dtype=np.int64)) * info.dtype.itemsize
    if len(content) != wanted:
        raise ExecutionError(
            f"{name} is read as raw elements: it has {len(content)} bytes, expected {wanted} for input {info.name!r}"
        )
    return np.frombuffer(content, info.dtype.numpy).reshape(shape)

"""What a model is run on: files of tensors, images and sounds, or random numbers."""

from __future__ import annotations

import wave
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from onert.backend import TensorInfo
from onert.image import Conversion, Format
from onert.ir import Array, DType, ExecutionError, quantize
from onert.ir import shape as shapes

IMAGES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp"})
_MODES = {"0to1": (1 / 255, 0.0), "neg1to1": (2 / 255, -1.0), "0to255": (1.0, 0.0), "neg128to127": (1.0, -128.0)}


def random(info: TensorInfo, rng: np.random.Generator) -> Array:
    """Random elements for an input; an unknown dimension is 1. Integers of more than 16 bits are 0 or 1, being indices
    mostly."""
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


def from_file(path: Path, info: TensorInfo, image_mode: str | None) -> Array:
    """One input from a file: .npy, an image, a .wav, or raw elements. ExecutionError if it does not fit."""
    if not path.is_file():
        raise ExecutionError(f"{path} for input {info.name!r} is no file")
    suffix = path.suffix.lower()
    if suffix in IMAGES:
        return image(path, info, image_mode)
    if suffix == ".npy":
        return numpy_file(path)
    if suffix == ".wav":
        return sound(path, info)
    return raw(path, info)


def numpy_file(path: Path) -> Array:
    """An array that NumPy saved; no pickled objects."""
    try:
        found = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise ExecutionError(f"{path} cannot be read: {error}") from error
    if not isinstance(found, np.ndarray):
        raise ExecutionError(f"{path} holds several arrays, expected one")
    return found


def archive(path: Path, infos: Sequence[TensorInfo]) -> list[Array]:
    """Every input from .npz (by name, or by position as `0`, `1`, ... or `in0`, ...), .npy or .h5 (group `value`)."""
    suffix = path.suffix.lower()
    if suffix == ".npy":
        return [numpy_file(path)]
    if suffix in (".h5", ".hdf5"):
        return hdf5(path, len(infos))
    try:
        with np.load(path, allow_pickle=False) as file:
            found = {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, AttributeError, TypeError) as error:
        raise ExecutionError(f"{path} cannot be read as .npz: {error}") from error
    arrays = []
    for i, info in enumerate(infos):
        name = next((n for n in (info.name, str(i), f"in{i}", f"arr_{i}") if n in found), None)
        if name is None:
            raise ExecutionError(f"{path} has no array for input {info.name!r}, only {', '.join(map(repr, found))}")
        arrays.append(found[name])
    return arrays


def hdf5(path: Path, count: int) -> list[Array]:
    """Datasets `0`, `1`, ... of the group `value`, as ONE's tools write them."""
    file_type = _h5py()
    try:
        with file_type(path, "r") as file:
            return [np.asarray(file["value"][str(i)]) for i in range(count)]
    except (OSError, KeyError, ValueError) as error:
        raise ExecutionError(f"{path} cannot be read as HDF5 with a group 'value': {error}") from error


def hdf5_shapes(path: Path) -> dict[int | str, tuple[int, ...]]:
    """The shapes of the datasets that `hdf5` reads, by position."""
    try:
        with _h5py()(path, "r") as file:
            return {int(name): tuple(dataset.shape) for name, dataset in file["value"].items()}
    except (OSError, KeyError, ValueError) as error:
        raise ExecutionError(f"{path} cannot be read as HDF5 with a group 'value': {error}") from error


def _h5py() -> Any:
    try:
        import h5py  # noqa: PLC0415 # heavy and optional
    except ImportError as error:
        raise ExecutionError("HDF5 needs h5py; install onert-toolkit[hdf5]") from error
    return h5py.File


def write_hdf5(path: Path, arrays: Sequence[Array]) -> None:
    """Arrays as datasets `0`, `1`, ... of the group `value`."""
    with _h5py()(path, "w") as file:
        group = file.create_group("value")
        for i, array in enumerate(arrays):
            group.create_dataset(str(i), data=array)


def raw(path: Path, info: TensorInfo) -> Array:
    """Raw little-endian elements in row-major order, just as many as the shape says."""
    shape = tuple(1 if d is None else d for d in info.shape)
    content = path.read_bytes()
    wanted = int(np.prod(shape, dtype=np.int64)) * info.dtype.itemsize
    if len(content) != wanted:
        raise ExecutionError(f"{path} has {len(content)} bytes, input {info.name!r} takes {wanted}")
    return np.frombuffer(content, info.dtype.numpy).reshape(shape)


def image(path: Path, info: TensorInfo, mode: str | None) -> Array:
    """An image resized (bilinear) to the input's height and width, its pixels as the mode says.

    The input is `[1, height, width, channels]`, `[height, width, channels]`, `[1, height, width]` or `[height, width]`,
    channels being 1 (grey), 3 or 4. A quantised input takes pixels as they are stored for the modes 0to255 and
    neg128to127, and for the others the numbers quantised.
    """
    try:
        from PIL import Image, UnidentifiedImageError  # noqa: PLC0415 # optional
    except ImportError as error:
        raise ExecutionError("images need Pillow; install onert-toolkit[images]") from error
    height, width, channels = _plane(info)
    formats = {1: Format.GRAY, 3: Format.RGB, 4: Format.RGBA}
    if channels not in formats:
        raise ExecutionError(f"input {info.name!r} has {channels} channels, an image has 1, 3 or 4")
    try:
        with Image.open(path) as opened:
            decoded = opened.convert("L" if channels == 1 else formats[channels].value)
            pixels = np.asarray(decoded.resize((width, height), Image.Resampling.BILINEAR))
    except (OSError, UnidentifiedImageError, ValueError, Image.DecompressionBombError) as error:
        raise ExecutionError(f"{path} cannot be read as an image: {error}") from error
    chosen = mode or {DType.UINT8: "0to255", DType.INT8: "neg128to127"}.get(info.dtype, "neg1to1")
    scale, offset = _MODES[chosen]
    quantization = info.quantization if chosen in ("0to1", "neg1to1") else None
    plane = TensorInfo(info.name, info.dtype, (1, height, width, channels), quantization)
    tensor = Conversion(formats[channels], scale, offset).to_tensor(pixels, formats[channels], plane)
    return tensor.reshape(tuple(d or 1 for d in info.shape))


def _plane(info: TensorInfo) -> tuple[int, int, int]:
    """Height, width and channels of an input that takes an image."""
    dims = [d or 1 for d in info.shape]
    if (len(dims) == 4 and dims[0] == 1) or (len(dims) == 3 and dims[0] == 1 and dims[2] not in (1, 3, 4)):
        dims = dims[1:]
    if len(dims) == 2:
        dims = [*dims, 1]
    if len(dims) != 3:
        raise ExecutionError(f"input {info.name!r} has shape {shapes.text(info.shape)}, which is no image's")
    return dims[0], dims[1], dims[2]


def sound(path: Path, info: TensorInfo) -> Array:
    """The first channel of a .wav file as numbers from -1 to 1, cut or padded with silence to the input's length."""
    try:
        with wave.open(str(path)) as file:
            width, channels = file.getsampwidth(), file.getnchannels()
            frames = file.readframes(file.getnframes())
    except (wave.Error, EOFError, OSError) as error:
        raise ExecutionError(f"{path} cannot be read as a sound: {error}") from error
    if width not in (1, 2, 4):
        raise ExecutionError(f"{path} has samples of {width} bytes, expected 1, 2 or 4")
    samples = np.frombuffer(frames, {1: np.uint8, 2: np.int16, 4: np.int32}[width])
    real = samples.astype(np.float32) / np.float32(1 << (8 * width - 1)) - np.float32(1 if width == 1 else 0)
    mono = real.reshape(-1, channels)[:, 0]
    shape = tuple(1 if d is None else d for d in info.shape)
    count = int(np.prod(shape, dtype=np.int64))
    whole = np.pad(mono[:count], (0, max(0, count - len(mono)))).reshape(shape)
    if info.dtype.is_integer and info.quantization is not None:
        return quantize(whole, info.quantization, info.dtype)
    return whole.astype(info.dtype.numpy)

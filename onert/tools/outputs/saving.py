"""Outputs as files: arrays in .npz, .npy or .h5, pictures in .png, sounds in .wav."""

from __future__ import annotations

import wave
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from attrs import define, field

from onert.backend import TensorInfo
from onert.ir import Array, ExecutionError
from onert.ir.process import imports
from onert.ir.process.replacing import replacing
from onert.tools import inputs

SAVED = (".npz", ".npy", ".h5", ".hdf5", ".png", ".wav")
"""Suffixes of the files that --dump can write."""
MAX_KEPT = 1 << 31
"""The most bytes of outputs held until they are written."""
_TALL = 1 << 14


@define(eq=False)
class CollectedOutputs:
    """Collects the outputs of all items, to be written together."""

    items: list[list[Array]] = field(factory=list)
    nbytes: int = 0

    def add(self, outputs: Sequence[Array]) -> None:
        """Add a copy of an item's outputs. Raises ExecutionError if the total exceeds MAX_KEPT."""
        self.nbytes += sum(array.nbytes for array in outputs)
        if self.nbytes > MAX_KEPT:
            raise ExecutionError(
                f"the outputs of {len(self.items) + 1} items have {self.nbytes} bytes, expected at most {MAX_KEPT} "
                "with --dump; use --limit to run fewer items"
            )
        self.items.append([np.array(array) for array in outputs])

    def whole(self, infos: Sequence[TensorInfo]) -> list[Array]:
        """The outputs of a single item unchanged, or those of several items stacked along a new first dimension."""
        if len(self.items) == 1:
            return self.items[0]
        columns = list(zip(*self.items, strict=True))
        for info, column in zip(infos, columns, strict=True):
            found = sorted({array.shape for array in column})
            if len(found) > 1:
                raise ExecutionError(
                    f"output {info.name!r} has shapes {' and '.join(str(list(s)) for s in found[:2])} for different "
                    "items, expected one shape for all with --dump"
                )
        return [np.stack(column) for column in columns]


def save(path: Path, infos: Sequence[TensorInfo], outputs: Sequence[Array], sample_rate: int | None) -> None:
    """Write outputs in the format of the suffix. Raises ExecutionError if that is impossible."""
    suffix = path.suffix.lower()
    try:
        with replacing(path) as file:
            if suffix in (".h5", ".hdf5"):
                inputs.write_hdf5(file, outputs)
            elif suffix == ".npy":
                np.save(file, _only(path, infos, outputs, lambda array: True, "output"), allow_pickle=False)
            elif suffix == ".png":
                pixels = _pixels(_only(path, infos, outputs, _is_picture, "picture"))
                imports.module("onert.tools.inputs.pictures").pillow().fromarray(pixels).save(file, "PNG")
            elif suffix == ".wav":
                _write_wave(file, path, _only(path, infos, outputs, _is_sound, "sound"), sample_rate)
            else:
                named: Mapping[str, Any] = {
                    info.name or str(i): array for i, (info, array) in enumerate(zip(infos, outputs, strict=True))
                }
                np.savez(file, **named)
    except OSError as error:
        raise ExecutionError(f"{path} cannot be written: {error.strerror or error}") from error


def _only(path: Path, infos: Sequence[TensorInfo], outputs: Sequence[Array], fits: Any, what: str) -> Array:
    """The only output of a kind. Raises ExecutionError if there is none, or several."""
    found = [array for array in outputs if fits(array)]
    if len(found) != 1 or found[0].dtype == object:
        all_of = ", ".join(f"{i.name!r} {a.dtype}{list(a.shape)}" for i, a in zip(infos, outputs, strict=True))
        raise ExecutionError(f"--dump {path} takes one {what}, but the outputs are {all_of}; .npz takes any outputs")
    return found[0]


def _planes(array: Array) -> tuple[int, ...]:
    dims = array.shape[1:] if array.ndim == 4 and array.shape[0] == 1 else array.shape
    return tuple(dims[1:] if len(dims) == 3 and dims[0] == 1 and dims[2] not in (1, 3, 4) else dims)


def _is_picture(array: Array) -> bool:
    dims = _planes(array)
    channels = dims[2] if len(dims) == 3 else 1
    return len(dims) in (2, 3) and channels in (1, 3, 4) and 1 < dims[0] <= _TALL and 1 < dims[1] <= _TALL


def _pixels(array: Array) -> Array:
    """Pixels as uint8: bytes unchanged, real numbers scaled from 0 to 1 or from -1 to 1."""
    plane = array.reshape(_planes(array))
    plane = plane[..., 0] if plane.ndim == 3 and plane.shape[2] == 1 else plane
    if plane.dtype == np.uint8:
        return plane
    real = np.nan_to_num(plane.astype(np.float64))
    if array.dtype.kind == "f":
        low, high = float(real.min(initial=0)), float(real.max(initial=0))
        real = (real + 1) * 127.5 if -1.5 <= low < -0.05 and high <= 1.5 else real * 255 if high <= 1.5 else real
    pixels: Array = np.clip(np.rint(real), 0, 255).astype(np.uint8)
    return pixels


def _is_sound(array: Array) -> bool:
    return array.size > 1 and max(array.shape) == array.size and array.dtype.kind in "fi"


def _write_wave(file: BinaryIO, path: Path, samples: Array, rate: int | None) -> None:
    if rate is None:
        raise ExecutionError(f"--dump {path} needs a sample rate; set it with --sample-rate")
    flat = samples.reshape(-1)
    if flat.dtype != np.int16:
        real = np.nan_to_num(flat.astype(np.float64))
        flat = np.clip(np.rint(real * 32768), -32768, 32767).astype("<i2")
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(rate)
        out.writeframes(flat.astype("<i2").tobytes())

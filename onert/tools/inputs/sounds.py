"""Sounds as inputs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from attrs import evolve

from onert.backend import TensorInfo
from onert.ir import Array, DType, ExecutionError, quantize
from onert.ir import shape as shapes

from .input_values import InputValue, ReadSettings
from .recordings import Recording, record, resampled


def sound(path: Path, info: TensorInfo, reading: ReadSettings) -> InputValue:
    """A sound file as an input (`from_recording`)."""
    return from_recording(record(path, str(path)), info, reading)


def from_recording(recording: Recording, info: TensorInfo, reading: ReadSettings) -> InputValue:
    """The first channel of a recording, with samples from -1 to 1, at the model's sample rate.

    The input has one dimension of samples; all others are 1. The recording starts at `reading.start` and is cut to the
    input's length or padded with silence; an input of unknown length takes all of it. An int16 input gets 16-bit
    samples. `source` of the result describes every step. Raises ExecutionError for other inputs.
    """
    name, rate, channels, samples = recording.name, recording.rate, recording.channels, recording.samples
    shape = _samples_shape(name, info)
    _require_elements(name, info)
    done = []
    if channels > 1:
        done.append(f"the first of {channels} channels")
    start = round(reading.start * rate)
    if start >= len(samples):
        raise ExecutionError(
            f"{name} is {len(samples) / rate:.3f} s long, expected more than the start at {reading.start:g} s"
        )
    samples = samples[start:]
    said = reading.sample_rate or reading.said.sample_rate
    wanted = said or rate
    count = math.ceil(len(samples) * wanted / rate) if -1 in shape else math.prod(shape)
    if said is None:
        done.append(f"not resampled from {rate} Hz, because the model's sample rate is unknown (--sample-rate sets it)")
    elif rate != wanted:
        done.append(f"resampled from {rate} to {wanted} Hz")
    there = len(samples) * wanted / rate
    part = samples[: math.ceil(count * rate / wanted)]
    part = part if rate == wanted else resampled(part, rate, wanted)
    if start or math.ceil(there) > count:
        done.append(f"{min(count, len(part)) / wanted:.3f} of {there / wanted + start / rate:.3f} s")
    if start:
        done.append(f"starting at {start / rate:g} s")
    if len(part) < count:
        done.append(f"{len(part)} samples and {count - len(part)} of silence")
    whole = np.pad(part[:count], (0, max(0, count - len(part)))).reshape(shape)
    return InputValue(_stored(whole, info), ", ".join((name, *done)), is_sound=True)


def windows(recording: Recording, info: TensorInfo, reading: ReadSettings) -> Iterator[InputValue]:
    """A recording in consecutive pieces of the input's length, the last one padded with silence."""
    length = seconds(recording, info, reading)
    for number in range(1 if length is None else piece_count(recording, length)):
        yield from_recording(recording, info, evolve(reading, start=number * (length or 0.0)))


def piece_count(recording: Recording, length: float) -> int:
    """The number of pieces of `length` seconds in a recording; the last one may be shorter."""
    return max(1, math.ceil(len(recording.samples) / recording.rate / length - 1e-9))


def seconds(recording: Recording, info: TensorInfo, reading: ReadSettings) -> float | None:
    """The length of the input in seconds, None if it takes sounds of any length."""
    shape = _samples_shape(recording.name, info)
    rate = reading.sample_rate or reading.said.sample_rate or recording.rate
    return None if -1 in shape else math.prod(shape) / rate


def takes_sound(info: TensorInfo) -> bool:
    """Whether an input has one dimension of samples. Its batch dimensions may be dynamic."""
    known = [d for d in info.open_shape if d not in (1, None)]
    is_long = len(known) == 1 or (not known and None in info.open_shape)
    return is_long and (info.dtype.is_float or info.dtype is DType.INT16 or info.quantization is not None)


def _samples_shape(name: str, info: TensorInfo) -> tuple[int, ...]:
    """The input's shape, with -1 for an unknown number of samples. Raises ExecutionError for inputs of other data."""
    shape = list(info.open_shape)
    unknown = [at for at, d in enumerate(shape) if d is None]
    long = [at for at, d in enumerate(shape) if d is not None and d != 1]
    if unknown and not long:
        return tuple(-1 if at == unknown[-1] else 1 for at in range(len(shape)))
    if len(long) != 1:
        raise ExecutionError(
            f"{name} is a sound, but input {info.name!r} has shape {shapes.text(info.shape)}, expected a single "
            "dimension of samples"
        )
    return tuple(d or 1 for d in info.shape)


def _require_elements(name: str, info: TensorInfo) -> None:
    """Raises ExecutionError unless the input's element type can hold samples."""
    if info.dtype.is_float or info.dtype is DType.INT16 or (info.dtype.is_integer and info.quantization is not None):
        return
    raise ExecutionError(
        f"{name} is a sound, but input {info.name!r} has element type {info.dtype.numpy}, expected real numbers, "
        "int16 or quantised integers"
    )


def _stored(real: Array, info: TensorInfo) -> Array:
    """Convert samples from -1 to 1 to the input's element type."""
    if info.dtype.is_integer and info.quantization is not None:
        return quantize(real, info.quantization, info.dtype)
    if info.dtype.is_integer:
        real = np.clip(np.rint(real * 32768), -32768, 32767)
    stored: Array = real.astype(info.dtype.numpy)
    return stored

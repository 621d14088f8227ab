"""Sounds as inputs."""

from __future__ import annotations

import math
import wave
from pathlib import Path

import numpy as np

from onert.backend import TensorInfo
from onert.ir import Array, DType, ExecutionError, quantize
from onert.ir import shape as shapes

from .given import Given, Reading

SOUNDS = frozenset({".wav"})
MAX_RATE = 1_000_000
"""The highest sample rate: resampling takes memory for a second of it."""


def sound(path: Path, info: TensorInfo, reading: Reading) -> Given:
    """The first channel of a .wav file as numbers from -1 to 1, at the sample rate that the model takes.

    The input has one dimension of samples and others of 1. What does not fit is cut, from `reading.start` on, or
    followed by silence; an input of unknown length takes all. An int16 input takes samples as they are stored there.
    `source` says all that was done. ExecutionError for other inputs, and for what is no sound.
    """
    shape = _samples_shape(path, info)
    _require_elements(path, info)
    rate, channels, samples = _read(path)
    done = []
    if channels > 1:
        done.append(f"the first of {channels} channels")
    start = round(reading.start * rate)
    if start >= len(samples):
        raise ExecutionError(
            f"{path} is {len(samples) / rate:.3f} s long, expected a sound that goes on after the start, "
            f"{reading.start:g} s"
        )
    samples = samples[start:]
    wanted = rate if reading.sample_rate is None else reading.sample_rate
    count = math.ceil(len(samples) * wanted / rate) if -1 in shape else math.prod(shape)
    if reading.sample_rate is None:
        done.append(f"at {rate} Hz as it is, for the model does not say its sample rate (--sample-rate does)")
    elif rate != wanted:
        done.append(f"resampled from {rate} to {wanted} Hz")
    there = len(samples) * wanted / rate
    part = samples[: math.ceil(count * rate / wanted)]
    part = part if rate == wanted else resampled(part, rate, wanted)
    if reading.start or math.ceil(there) > count:
        done.append(f"{min(count, len(part)) / wanted:.3f} of {there / wanted + reading.start:.3f} s")
    if start:
        done.append(f"from {reading.start:g} s on")
    if len(part) < count:
        done.append(f"{len(part)} samples and {count - len(part)} of silence")
    whole = np.pad(part[:count], (0, max(0, count - len(part)))).reshape(shape)
    return Given(_stored(whole, info), ", ".join((str(path), *done)))


def _samples_shape(path: Path, info: TensorInfo) -> tuple[int, ...]:
    """The shape with -1 for a number of samples that is not known."""
    shape = list(info.open_shape)
    unknown = [at for at, d in enumerate(shape) if d is None]
    long = [at for at, d in enumerate(shape) if d is not None and d != 1]
    if unknown and not long:
        return tuple(-1 if at == unknown[-1] else 1 for at in range(len(shape)))
    if len(long) != 1:
        raise ExecutionError(
            f"{path} is a sound, but input {info.name!r} has shape {shapes.text(info.shape)}, which is no sound's: one "
            "has a single dimension of samples"
        )
    return tuple(d or 1 for d in info.shape)


def _require_elements(path: Path, info: TensorInfo) -> None:
    """ExecutionError unless samples can be said in the input's element type."""
    if info.dtype.is_float or info.dtype is DType.INT16 or (info.dtype.is_integer and info.quantization is not None):
        return
    raise ExecutionError(
        f"{path} is a sound, but input {info.name!r} has elements of type {info.dtype.numpy}, expected real numbers, "
        "int16 or quantised ones"
    )


def _read(path: Path) -> tuple[int, int, Array]:
    """The sample rate, the number of channels, and the first of these from -1 to 1."""
    try:
        with wave.open(str(path)) as file:
            width, channels, rate = file.getsampwidth(), file.getnchannels(), file.getframerate()
            frames = file.readframes(file.getnframes())
    except (wave.Error, EOFError, OSError, RuntimeError) as error:
        raise ExecutionError(f"{path} cannot be read as a sound: {error}") from error
    if width not in (1, 2, 4):
        raise ExecutionError(f"{path} has samples of {width} bytes, expected 1, 2 or 4")
    if not 1 <= rate <= MAX_RATE:
        raise ExecutionError(f"{path} has a sample rate of {rate} Hz, expected 1 to {MAX_RATE}")
    frames = frames[: len(frames) - len(frames) % (width * channels)]
    if not frames:
        raise ExecutionError(f"{path} has no samples")
    samples = np.frombuffer(frames, {1: "u1", 2: "<i2", 4: "<i4"}[width])
    real = samples.astype(np.float32) / np.float32(1 << (8 * width - 1)) - np.float32(1 if width == 1 else 0)
    mono = real.reshape(-1, channels)[:, 0]
    return rate, channels, mono


def resampled(samples: Array, rate: int, wanted: int) -> Array:
    """The same sound at another rate: its spectrum with the frequencies that both rates can say."""
    count = math.ceil(len(samples) * wanted / rate)
    step = rate // math.gcd(rate, wanted)  # so many samples are a whole number at the other rate
    padded = np.pad(samples, (0, -len(samples) % step))
    total = len(padded) // step * (wanted // math.gcd(rate, wanted))
    spectrum = np.fft.rfft(padded)
    kept = min(len(spectrum), total // 2 + 1)
    limited = np.zeros(total // 2 + 1, spectrum.dtype)
    limited[:kept] = spectrum[:kept]
    return (np.fft.irfft(limited, total)[:count] * (total / len(padded))).astype(np.float32)


def _stored(real: Array, info: TensorInfo) -> Array:
    """Numbers from -1 to 1 as the input has them."""
    if info.dtype.is_integer and info.quantization is not None:
        return quantize(real, info.quantization, info.dtype)
    if info.dtype.is_integer:
        real = np.clip(np.rint(real * 32768), -32768, 32767)
    stored: Array = real.astype(info.dtype.numpy)
    return stored

"""Recordings: the samples of a sound and their rate."""

from __future__ import annotations

import io
import math
import wave
from pathlib import Path
from typing import Any

import numpy as np
from attrs import frozen

from onert.ir import Array, ExecutionError
from onert.ir.value import Value

from .input_values import MAX_RATE
from .suffixes import WAVES

MAX_SAMPLES = 1 << 27
"""The most samples of a recording, over all channels."""


@frozen(eq=False)
class Recording(Value):
    """The first of `channels` channels as float32 samples from -1 to 1, `rate` per second."""

    name: str
    rate: int
    channels: int
    samples: Array


def record(source: Path | bytes, name: str) -> Recording:
    """Read a recording from a file or its content. Formats other than .wav need soundfile. Raises ExecutionError if it
    is not a sound, has more than MAX_SAMPLES samples, or a rate above MAX_RATE."""
    if isinstance(source, Path) and source.suffix.lower() not in WAVES:
        return _of_soundfile(source, name)
    return _of_wave(source, name)


def _of_wave(source: Path | bytes, name: str) -> Recording:
    try:
        with wave.open(str(source) if isinstance(source, Path) else io.BytesIO(source)) as file:
            width, channels, rate = file.getsampwidth(), file.getnchannels(), file.getframerate()
            _require(name, rate, channels * file.getnframes())
            if width not in (1, 2, 3, 4):
                raise ExecutionError(f"{name} has samples of {width} bytes, expected 1 to 4")
            frames = file.readframes(file.getnframes())
    except (wave.Error, EOFError, OSError, RuntimeError) as error:
        raise ExecutionError(f"{name} cannot be read as a sound: {error}") from error
    frames = frames[: len(frames) - len(frames) % (width * channels)]
    if not frames:
        raise ExecutionError(f"{name} has no samples")
    first = np.frombuffer(frames, np.uint8).reshape(-1, channels * width)[:, :width]
    if width == 3:  # widen to four bytes with a low byte of 0
        first, width = np.pad(first, ((0, 0), (1, 0))), 4
    samples = np.ascontiguousarray(first).view({1: "u1", 2: "<i2", 4: "<i4"}[width])[:, 0]
    real = samples.astype(np.float32) / np.float32(1 << (8 * width - 1)) - np.float32(1 if width == 1 else 0)
    return Recording(name, rate, channels, real)


def _of_soundfile(path: Path, name: str) -> Recording:
    soundfile = _soundfile()
    try:
        with soundfile.SoundFile(str(path)) as file:
            _require(name, file.samplerate, file.channels * max(file.frames, 0))
            samples = file.read(MAX_SAMPLES // max(file.channels, 1), dtype="float32", always_2d=True)
            rate, channels = file.samplerate, file.channels
    except (soundfile.SoundFileError, OSError, RuntimeError, ValueError) as error:
        raise ExecutionError(f"{name} cannot be read as a sound: {error}") from error
    if not samples.size:
        raise ExecutionError(f"{name} has no samples")
    return Recording(name, rate, channels, np.ascontiguousarray(samples[:, 0]))


def _soundfile() -> Any:
    try:
        import soundfile  # noqa: PLC0415 # heavy and optional
    except ImportError as error:
        raise ExecutionError("sounds other than .wav need soundfile; pip install 'onert-toolkit[sounds]'") from error
    return soundfile


def _require(name: str, rate: int, samples: int) -> None:
    if not 1 <= rate <= MAX_RATE:
        raise ExecutionError(f"{name} has a sample rate of {rate} Hz, expected 1 to {MAX_RATE}")
    if samples > MAX_SAMPLES:
        raise ExecutionError(f"{name} has {samples} samples, expected at most {MAX_SAMPLES}")


def resampled(samples: Array, rate: int, wanted: int) -> Array:
    """Resample by cutting or extending the spectrum to the frequencies that the new rate can represent."""
    count = math.ceil(len(samples) * wanted / rate)
    step = rate // math.gcd(rate, wanted)  # this many samples are a whole number of samples at the other rate
    padded = np.pad(samples, (0, -len(samples) % step))
    total = len(padded) // step * (wanted // math.gcd(rate, wanted))
    spectrum = np.fft.rfft(padded)
    kept = min(len(spectrum), total // 2 + 1)
    limited = np.zeros(total // 2 + 1, spectrum.dtype)
    limited[:kept] = spectrum[:kept]
    return (np.fft.irfft(limited, total)[:count] * (total / len(padded))).astype(np.float32)

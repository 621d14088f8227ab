"""Cases of spectrograms, cepstral coefficients, and quantised values verified against floats."""

from __future__ import annotations

import math

import numpy as np

from onert.ir import Array, Quantization
from onert.ir.ops.elementwise.numeric_verify import NumericVerify
from onert.ir.ops.vision_audio.audio import AudioSpectrogram, Mfcc

from .case import Case


def _wave(samples: int) -> Array:
    return np.float32([[math.sin(0.7 * at) + 0.1 * at, 1.0] for at in range(samples)])


def _spectrogram(name: str, window: int, stride: int, samples: int, *, squared: bool) -> Case:
    """Expected results come from the definition of the transform."""
    x, length = _wave(samples), 1 << math.ceil(math.log2(window))
    starts = range(0, max(samples - window + 1, 0), stride)
    out = np.zeros((2, len(starts), length // 2 + 1), np.float32)
    for channel, (frame, start), frequency in (
        (c, f, q) for c in range(2) for f in enumerate(starts) for q in range(length // 2 + 1)
    ):
        total = 0j
        for at in range(window):
            hann = 0.5 - 0.5 * math.cos(2 * math.pi * at / window)
            angle = -2 * math.pi * frequency * at / length
            total += float(x[start + at, channel]) * hann * complex(math.cos(angle), math.sin(angle))
        out[channel, frame, frequency] = abs(total) ** 2 if squared else abs(total)
    return Case(name, AudioSpectrogram(window, stride, squared), (x,), (out,))


def _mel(hertz: float) -> float:
    return 1127 * math.log1p(hertz / 700)


def _mfcc(name: str, lower: float, upper: float, bands: int, coefficients: int) -> Case:
    """Each band is a triangle on the mel scale between the centres of its neighbours."""
    bins, rate = 17, 16000
    x = np.abs(np.sin(np.arange(2 * 3 * bins, dtype=np.float32))).reshape(2, 3, bins)
    centres = [_mel(lower) + (_mel(upper) - _mel(lower)) * at / (bands + 1) for at in range(bands + 2)]
    width = rate / 2 / (bins - 1)
    out = np.zeros((2, 3, coefficients), np.float32)
    for channel, frame in np.ndindex(2, 3):
        energy = [0.0] * bands
        for bin_ in range(int(1.5 + lower / width), int(upper / width) + 1):
            mel = _mel(bin_ * width)
            for band in range(bands):
                left, middle, right = centres[band : band + 3]
                share = (mel - left) / (middle - left) if mel <= middle else (right - mel) / (right - middle)
                energy[band] += max(share, 0.0) * math.sqrt(float(x[channel, frame, bin_]))
        logs = [math.log(max(e, 1e-12)) for e in energy]
        for at in range(coefficients):
            cosines = (math.cos(math.pi / bands * at * (band + 0.5)) * logs[band] for band in range(bands))
            out[channel, frame, at] = math.sqrt(2 / bands) * sum(cosines)
    return Case(name, Mfcc(upper, lower, bands, coefficients), (x, np.int32([rate])), (out,), constant=(1,))


CASES = [
    _spectrogram("powers", 8, 3, 20, squared=True),
    _spectrogram("magnitudes, a window that is no power of two", 5, 2, 13, squared=False),
    _spectrogram("too short for a window", 8, 1, 7, squared=True),
    _mfcc("all bands", 20.0, 7000.0, 6, 6),
    _mfcc("few coefficients of bands that start higher", 600.0, 7900.0, 5, 3),
    _mfcc("bands between two frequencies", 600.0, 900.0, 3, 2),
    Case(
        "bands beyond the highest frequency",
        Mfcc(9000.0, 20.0, 4, 2),
        (np.ones((1, 1, 9), np.float32), np.int32(16000)),
        (np.zeros((1, 1, 2), np.float32),),
        constant=(1,),
    ),
    Case(
        "differences",
        NumericVerify(),
        (np.int8([3, 5]), np.float32([0.25, 0.5])),
        (np.float32([-0.25, 0.5]),),
        (Quantization((0.5,), (3,)),),
    ),
    Case(
        "differences that are within bounds",
        NumericVerify(1.0, True),
        (np.uint8([3, 5]), np.float32([0.25, 0.5])),
        (np.float32([-0.25, 0.5]),),
        (Quantization((0.5,), (3,)),),
    ),
    Case("half precision", NumericVerify(), (np.float16([1.5]), np.float32([1.25])), (np.float32([0.25]),)),
]

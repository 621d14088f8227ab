"""Audio features: spectrograms and mel-frequency cepstral coefficients."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
from attrs import frozen

from onert.ir.dtype import Array, DType
from onert.ir.flops import elementwise
from onert.ir.op import Op, require
from onert.ir.shape import Dim, num_elements
from onert.ir.types import CallTypes, TensorType

_LARGEST_WINDOW = 1 << 24
_MOST_BANDS = 1 << 12


@frozen
class AudioSpectrogram(Op):
    """The power spectrum of sliding windows over audio samples.

    Operand: `x` [samples, channels]. Result: [channels, frames, frequencies]. Frames start `stride` samples apart and
    cover `window_size` samples, weighted by a periodic Hann window and zero-padded to a power of two, `length`, which
    gives length / 2 + 1 frequencies. Results are squared magnitudes, or without `magnitude_squared` their square roots.
    Element type: float32; the transform is computed in float64.

    Source: TFLite's custom operation AudioSpectrogram, kernels/internal/spectrogram.cc.
    """

    window_size: int = 2
    stride: int = 1
    magnitude_squared: bool = False

    def infer(self, x: TensorType) -> TensorType:
        require(x.rank == 2, f"x has rank {x.rank}, expected 2")
        require(x.dtype is DType.FLOAT32, f"x holds {x.dtype.text}, expected f32")
        known = 2 <= self.window_size <= _LARGEST_WINDOW
        require(known, f"window_size is {self.window_size}, expected 2 to {_LARGEST_WINDOW}")
        require(self.stride >= 1, f"stride is {self.stride}, expected at least 1")
        return x.result((x.shape[1], self._frames(x.shape[0]), self.length // 2 + 1))

    @property
    def length(self) -> int:
        """The length of the transform: the next power of two."""
        return 1 << (self.window_size - 1).bit_length()

    def _frames(self, samples: Dim) -> Dim:
        if samples is None:
            return None
        return 0 if samples < self.window_size else 1 + (samples - self.window_size) // self.stride

    def window(self) -> Array:
        """The weight of each sample of a frame: float64 [window_size]."""
        return np.asarray(0.5 - 0.5 * np.cos(2.0 * np.pi * np.arange(self.window_size) / self.window_size))

    def flops(self, types: CallTypes) -> int:
        return 20 * elementwise(types) * self.length.bit_length()

    def rounds(self, types: CallTypes) -> int:
        return math.prod(d or 0 for d in types.output.shape[:2])

    def evaluate(self, x: Array) -> Array:
        samples, channels = x.shape
        frames = self._frames(samples)
        out = np.zeros((channels, frames or 0, self.length // 2 + 1), np.float32)
        if not out.size:
            return out
        window = self.window()
        for channel in range(channels):
            cuts = np.lib.stride_tricks.sliding_window_view(x[:, channel], self.window_size)[:: self.stride]
            for at, cut in enumerate(cuts):
                spectrum = np.fft.rfft(cut * window, self.length)
                out[channel, at] = spectrum.real**2 + spectrum.imag**2
        return out if self.magnitude_squared else np.sqrt(out)


@frozen
class Mfcc(Op):
    """Mel-frequency cepstral coefficients: a cosine transform of the logarithms of mel band energies.

    Operands: `x` [channels, frames, frequencies], squared magnitudes; `rate`: one int32, samples per second. Result:
    [channels, frames, `coefficients`]. There are `bands` triangular bands, each overlapping half of the next, evenly
    spaced on the mel scale from `lower` to `upper` hertz. If `upper` is at least a frequency step beyond the last one,
    all coefficients are 0, as in TFLite. Element type: float32; computed in float64.

    Source: TFLite's custom operation Mfcc, kernels/internal/mfcc.cc, mfcc_mel_filterbank.cc, mfcc_dct.cc.
    """

    upper: float = 4000.0
    lower: float = 20.0
    bands: int = 40
    coefficients: int = 13
    least: ClassVar[float] = 1e-12
    """The minimum magnitude of a band, which keeps its logarithm finite."""

    def infer(self, x: TensorType, rate: TensorType) -> TensorType:
        require(x.rank == 3, f"x has rank {x.rank}, expected 3")
        require(x.dtype is DType.FLOAT32, f"x holds {x.dtype.text}, expected f32")
        require(rate.dtype is DType.INT32, f"rate holds {rate.dtype.text}, expected i32")
        require(num_elements(rate.shape) in (1, None), f"rate is {rate}, expected one element")
        require(all(d is None or d > 0 for d in x.shape), f"x is {x}, expected no empty dimension")
        require(x.shape[2] is None or x.shape[2] >= 2, f"x has {x.shape[2]} frequencies, expected at least 2")
        interval = 0 <= self.lower < self.upper <= 1 << 31
        require(interval, f"bands are from {self.lower} to {self.upper} Hz, expected ascending frequencies")
        within = 1 <= self.coefficients <= self.bands <= _MOST_BANDS
        require(
            within, f"there are {self.coefficients} coefficients of {self.bands} bands, expected no more than bands"
        )
        return x.result((*x.shape[:2], self.coefficients))

    def rounds(self, types: CallTypes) -> int:
        return types.input(0).shape[2] or 0

    def evaluate(self, x: Array, rate: Array) -> Array:
        hertz = int(rate.reshape(-1)[0])
        require(hertz > 0, f"rate is {hertz}, expected at least 1")
        found = self.filters(hertz, x.shape[2])
        if found is None:
            return np.zeros((*x.shape[:2], self.coefficients), np.float32)
        first, filters = found
        magnitudes = np.sqrt(x[..., first : first + len(filters)].astype(np.float64))
        logarithms = np.log(np.maximum(magnitudes @ filters, self.least))
        out: Array = (logarithms @ self.cosines().T).astype(np.float32)
        return out

    def cosines(self) -> Array:
        """The cosine transform: float64 [coefficients, bands]."""
        turns = np.arange(self.coefficients)[:, None] * (np.arange(self.bands) + 0.5)
        return np.asarray(np.sqrt(2.0 / self.bands) * np.cos(turns * (np.pi / self.bands)))

    def filters(self, rate: int, bins: int) -> tuple[int, Array] | None:
        """The first frequency in any band, and the weight of each frequency in each band: float64 [frequencies, bands].

        A frequency contributes to the two bands whose centres are around it. None if bands exceed the frequencies.
        """
        width = 0.5 * rate / (bins - 1)
        first, last = int(1.5 + self.lower / width), int(self.upper / width)
        if last >= bins:
            return None
        edges = np.linspace(_mel(self.lower), _mel(self.upper), self.bands + 2)
        mels = _mel(np.arange(first, last + 1) * width)
        above = np.minimum(np.searchsorted(edges[1:], mels, side="left"), self.bands)
        share = (edges[above + 1] - mels) / (edges[above + 1] - edges[above])
        out = np.zeros((len(mels), self.bands + 2))
        rows = np.arange(len(mels))
        out[rows, above], out[rows, above + 1] = share, 1 - share
        return first, out[:, 1:-1]


def _mel(hertz: float | Array) -> Array:
    return np.asarray(1127.0 * np.log1p(np.asarray(hertz) / 700.0))

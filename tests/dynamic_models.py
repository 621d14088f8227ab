"""The shared models with dynamic dimensions, and the shapes of their inputs for a length."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import frozen
from shared_material import SHARED

from onert.backend import TensorInfo

MODELS = SHARED / "models"
Shapes = Mapping[str, tuple[int, ...]]


@frozen
class Dynamic:
    """A model in a shared file, and the dimension of it that varies.

    `shapes` returns the shapes of the inputs that vary with the length; other inputs have the model's shape, with
    dynamic dimensions set to 1. Lengths go up to `most`, at which a run takes a few times longer.
    """

    file: str
    changed: str
    shapes: Callable[[int], Shapes]
    most: int = 48

    @property
    def name(self) -> str:
        """A name that distinguishes it from the others."""
        package, _, model = self.file.rpartition("/")[2].rpartition("__")
        return f"{' '.join(filter(None, (package.partition('-')[0], model)))} by {self.changed}"

    def inputs(self, infos: Sequence[TensorInfo], length: int, seed: int = 0) -> dict[str, Any]:
        """Arrays of a length for a program's inputs; an integer scalar is taken for a sampling rate."""
        draw, shapes = np.random.default_rng(seed), self.shapes(length)
        found = {}
        for info in infos:
            shape, dtype = shapes.get(info.name) or tuple(d or 1 for d in info.shape), info.dtype.numpy
            if dtype.kind == "i" and not shape:
                found[info.name] = np.full(shape, 16000, dtype)
            elif dtype.kind in "iu":
                found[info.name] = draw.integers(0, 100, shape).astype(dtype)
            else:
                found[info.name] = draw.normal(0, 0.3, shape).astype(dtype)
        return found


def _rows(name: str, *rest: int) -> Callable[[int], Shapes]:
    return lambda n: {name: (n, *rest)}


def _voices(name: str, samples: int, states: int, *of_states: str) -> Callable[[int], Shapes]:
    """Several voices side by side, each with its state."""
    return lambda n: {name: (n, samples), **dict.fromkeys(of_states, (2, n, states))}


ALL = (
    Dynamic("arm-ml-zoo/ds_cnn_quantized.tflite", "batch", _rows("serving_default_input:0", 490)),
    Dynamic("basic-pitch/nmp.tflite", "batch", _rows("serving_default_input_2:0", 43844, 1), 6),
    Dynamic("mlperf-tiny/kws_ref_model.tflite", "batch", _rows("input_1", 49, 10, 1)),
    Dynamic("mlperf-tiny/model_ToyCar_quant.tflite", "batch", _rows("input_1", 640)),
    Dynamic("onnx/basic_pitch-0.4.0__nmp.onnx", "batch", _rows("serving_default_input_2:0", 43844, 1), 6),
    Dynamic("onnx/faster_whisper-1.2.1__silero_vad_v6.onnx", "sequence", _rows("input", 576)),
    Dynamic("onnx/magika-1.0.3__model.onnx", "batch", _rows("bytes", 2048), 24),
    Dynamic("onnx/nudenet-3.4.2__320n.onnx", "width", lambda n: {"images": (1, 3, 160, 128 + 32 * n)}, 24),
    Dynamic("onnx/nudenet-3.4.2__320n.onnx", "size", lambda n: {"images": (1, 3, 32 * n, 64 + 32 * n)}, 10),
    Dynamic("onnx/openwakeword-0.4.0__embedding_model.onnx", "batch", _rows("input_1", 76, 32, 1)),
    Dynamic("onnx/openwakeword-0.4.0__hey_mycroft_v0.1.onnx", "batch", _rows("input_1", 16, 96)),
    Dynamic("onnx/openwakeword-0.4.0__melspectrogram.onnx", "samples", lambda n: {"input": (1, 16000 + 160 * n)}),
    Dynamic("onnx/openwakeword-0.4.0__silero_vad.onnx", "batch", _voices("input", 512, 64, "h", "c")),
    Dynamic(
        "onnx/openwakeword-0.4.0__silero_vad.onnx",
        "samples",
        lambda n: {"input": (1, 512 + 64 * n), "h": (2, 1, 64), "c": (2, 1, 64)},
    ),
    Dynamic("onnx/pipecat_ai-1.14.0__smart-turn-v3.2-cpu.onnx", "batch", _rows("input_features", 80, 800), 6),
    Dynamic("onnx/rapidocr-3.10.0__PP-OCRv6_det_small.onnx", "width", lambda n: {"x": (1, 3, 160, 128 + 32 * n)}, 24),
    Dynamic("onnx/rapidocr-3.10.0__PP-OCRv6_det_small.onnx", "size", lambda n: {"x": (1, 3, 32 * n, 64 + 32 * n)}, 10),
    Dynamic(
        "onnx/rapidocr-3.10.0__ch_ppocr_mobile_v2.0_cls_mobile.onnx", "width", lambda n: {"x": (1, 3, 48, 96 + 32 * n)}
    ),
    Dynamic("onnx/ricky0123-vad-web-0.0.31__silero_vad_v5.onnx", "batch", _voices("input", 512, 128, "state")),
    Dynamic("onnx/silero_vad-6.2.3__silero_vad.onnx", "batch", _voices("input", 512, 128, "state")),
    Dynamic("onnx/silero_vad-6.2.3__silero_vad_16k_op15.onnx", "batch", _voices("input", 512, 128, "state")),
    Dynamic("onnx/silero_vad-6.2.3__silero_vad_16k_sequence.onnx", "sequence", _rows("input", 576)),
    Dynamic("onnx/silero_vad-6.2.3__silero_vad_half.onnx", "batch", _voices("input", 512, 128, "state")),
    Dynamic("onnx/silero_vad-6.2.3__silero_vad_op18_ifless.onnx", "batch", _voices("input", 512, 128, "state")),
)
"""All but ocr_dr, whose loop also refuses any batch but 1 in LiteRT."""


def options(description: str | None) -> argparse.ArgumentParser:
    """The options of a benchmark of these models: their names, and the threads."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--threads", type=int, default=1)
    return parser


def named(names: Sequence[str]) -> list[Dynamic]:
    """The models here whose file name contains one of these names; all of them without names."""
    here = [model for model in ALL if (MODELS / model.file).is_file()]
    return [model for model in here if not names or any(name in model.file for name in names)]

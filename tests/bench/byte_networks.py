"""Writes int8 convolutional networks with per-channel scales: ResNet 18, and U-Nets of two sizes.

    python tests/bench/byte_networks.py FOLDER [NAME ...]

The weights are random, as in `detectors.py`. `onert_bench FOLDER/*.tflite` compares the models with peers.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.detectors import Detector, Tensor
from bench.writing import write_models
from model_writer import Model

from onert.ir import DType, Quantization

_PICTURE = Quantization((1 / 64,), (0,))
_POSITIVE = Quantization((6 / 255,), (-128,))
_POOLING = {"padding": 0, "strideW": 2, "strideH": 2}


def _begun(size: int) -> tuple[Model, Detector, Tensor]:
    """A model with a square input image of `size` pixels."""
    model = Model()
    graph = model.graph()
    shape = (1, size, size, 3)
    return model, Detector(graph), Tensor(graph.input(DType.INT8, shape, _PICTURE), shape, _PICTURE)


def _rectified(make: Detector, x: Tensor, n: int, window: int = 3, stride: int = 1) -> Tensor:
    return make.convolution(x, n, window, stride, _POSITIVE)


def _halved(make: Detector, x: Tensor, window: int) -> Tensor:
    """Max pooling with stride 2."""
    options = {**_POOLING, "filterWidth": window, "filterHeight": window}
    shape = (1, x.shape[1] // 2, x.shape[2] // 2, x.shape[3])
    return make.operation("MAX_POOL_2D", [x], shape, x.quantization, ("Pool2DOptions", options))


def resnet18(size: int) -> bytes:
    """ResNet 18's convolutions, without the classifier."""
    model, make, x = _begun(size)
    x = _halved(make, _rectified(make, x, 64, 7, 2), 3)
    for number, n in enumerate((64, 64, 128, 128, 256, 256, 512, 512)):
        stride = 2 if number in (2, 4, 6) else 1
        y = make.convolution(_rectified(make, x, n, 3, stride), n, 3)
        beside = make.convolution(x, n, 1, stride) if stride == 2 else x
        x = make.operation("ADD", [y, beside], y.shape, _POSITIVE, ("AddOptions", {"fusedActivationFunction": 1}))
    make.graph.outputs(x.at)
    return model.done()


def unet(size: int, width: int) -> bytes:
    """A U-Net of four levels; the first has `width` channels."""
    model, make, x = _begun(size)
    beside = []
    for level in range(4):
        x = _rectified(make, _rectified(make, x, width << level), width << level)
        beside.append(x)
        x = _halved(make, x, 2)
    x = _rectified(make, _rectified(make, x, width << 4), width << 4)
    for level in reversed(range(4)):
        x = make.joined([_rectified(make, make.doubled(x), width << level), beside[level]])
        x = _rectified(make, _rectified(make, x, width << level), width << level)
    make.graph.outputs(make.convolution(x, 2).at)
    return model.done()


MODELS = {
    "resnet18_int8": partial(resnet18, 224),
    "unet_128_16_int8": partial(unet, 128, 16),
    "unet_256_32_int8": partial(unet, 256, 32),
}

if __name__ == "__main__":
    write_models(__doc__, MODELS)

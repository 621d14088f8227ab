"""Writes int8 detectors as today's exporters write them: convolutions followed by SiLU as LOGISTIC and MUL.

    python tests/bench/detectors.py FOLDER [--sizes 160,320] [--widths 16,32]

The architecture is that of YOLO v5 and v8: a stem, stages of residual bottlenecks whose parts are concatenated, a
spatial pyramid, a neck that resizes and concatenates, and a head with boxes and classes at each of three scales. The
weights are random, with a variance that keeps activations near one, so that scales resemble those of a trained network
and no tensor is constant. `onert_bench FOLDER/*.tflite` compares the models with peers.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from attrs import define, field

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from model_writer import Graph, Model

from onert.ir import DType, Quantization

_NORMAL = Quantization((8 / 255,), (-3,))
_SIGMOID = Quantization((1 / 256,), (-128,))
_SILU = Quantization((5.3 / 255,), (-114,))
CLASSES = 80


@define
class Tensor:
    """A tensor of the graph: its index, shape and quantisation parameters."""

    at: int
    shape: tuple[int, ...]
    quantization: Quantization


@define
class Detector:
    """An int8 graph under construction."""

    graph: Graph
    rng: np.random.Generator = field(factory=lambda: np.random.default_rng(0))

    def operation(
        self,
        code: str,
        inputs: Sequence[Tensor | int],
        shape: tuple[int, ...],
        quantization: Quantization,
        options: tuple[str, dict[str, object]],
    ) -> Tensor:
        """Add an operator by its name in the schema, and return its only result."""
        at = self.graph.tensor(DType.INT8, shape, None, quantization)
        self.graph.operator(code, [i.at if isinstance(i, Tensor) else i for i in inputs], [at], options)
        return Tensor(at, shape, quantization)

    def convolution(
        self, x: Tensor, n: int, window: int = 1, stride: int = 1, result: Quantization = _NORMAL
    ) -> Tensor:
        """A convolution with SAME padding and per-channel scales; ReLU if `result` has no negative values."""
        _, height, width, c = x.shape
        deviation = 2.0 / np.sqrt(window * window * c)  # SiLU halves the variance
        weights = self.rng.normal(0, deviation, (n, window, window, c))
        scales = np.abs(weights).max(axis=(1, 2, 3)) / 127
        filters = np.rint(weights / scales[:, None, None, None]).astype(np.int8)
        biases = np.rint(self.rng.normal(0, 0.3, n) / (scales * x.quantization.scales[0])).astype(np.int32)
        kernel = self.graph.tensor(DType.INT8, filters.shape, filters, Quantization(tuple(scales), (0,) * n, 0))
        bias = self.graph.tensor(
            DType.INT32, (n,), biases, Quantization(tuple(scales * x.quantization.scales[0]), (0,) * n, 0)
        )
        shape = (1, -(-height // stride), -(-width // stride), n)
        options = {"padding": 0, "strideW": stride, "strideH": stride, "dilationWFactor": 1, "dilationHFactor": 1}
        options["fusedActivationFunction"] = int(result.zero_points[0] == -128)
        return self.operation("CONV_2D", [x, kernel, bias], shape, result, ("Conv2DOptions", options))

    def active(self, x: Tensor, n: int, window: int = 1, stride: int = 1) -> Tensor:
        """A convolution followed by SiLU."""
        y = self.convolution(x, n, window, stride)
        gate = self.operation("LOGISTIC", [y], y.shape, _SIGMOID, ("ReshapeOptions", {}))
        return self.operation("MUL", [y, gate], y.shape, _SILU, ("MulOptions", {}))

    def joined(self, parts: Sequence[Tensor]) -> Tensor:
        """Concatenate along the channels."""
        shape = (*parts[0].shape[:3], sum(p.shape[3] for p in parts))
        return self.operation(
            "CONCATENATION", parts, shape, parts[0].quantization, ("ConcatenationOptions", {"axis": 3})
        )

    def stage(self, x: Tensor, n: int, depth: int, residual: bool) -> Tensor:
        """Two halves, one of them followed by bottlenecks, all concatenated."""
        one, two = self.active(x, n // 2), self.active(x, n // 2)
        parts = [one, two]
        for _ in range(depth):
            inner = self.active(self.active(parts[-1], n // 2, 3), n // 2, 3)
            if residual:
                inner = self.operation("ADD", [parts[-1], inner], inner.shape, _SILU, ("AddOptions", {}))
            parts.append(inner)
        return self.active(self.joined(parts), n)

    def pyramid(self, x: Tensor) -> Tensor:
        """Spatial pyramid pooling: stacked max pools whose results are all concatenated."""
        n = x.shape[3]
        parts = [self.active(x, n // 2)]
        for _ in range(3):
            options = {"padding": 0, "strideW": 1, "strideH": 1, "filterWidth": 5, "filterHeight": 5}
            last = parts[-1]
            parts.append(
                self.operation("MAX_POOL_2D", [last], last.shape, last.quantization, ("Pool2DOptions", options))
            )
        return self.active(self.joined(parts), n)

    def doubled(self, x: Tensor) -> Tensor:
        """Double the height and the width."""
        _, height, width, n = x.shape
        size = self.graph.constant(np.array([2 * height, 2 * width], np.int32))
        shape = (1, 2 * height, 2 * width, n)
        return self.operation(
            "RESIZE_NEAREST_NEIGHBOR", [x, size], shape, x.quantization, ("ResizeNearestNeighborOptions", {})
        )

    def head(self, x: Tensor) -> Tensor:
        """The boxes and class scores of one scale, one row for each cell."""
        boxes = self.convolution(self.active(x, 64, 3), 64)
        scores = self.convolution(self.active(x, max(64, CLASSES), 3), CLASSES)
        sigmoid = self.operation("LOGISTIC", [scores], scores.shape, _SIGMOID, ("ReshapeOptions", {}))
        level = self.operation("QUANTIZE", [boxes], boxes.shape, _SIGMOID, ("QuantizeOptions", {}))
        both = self.joined([level, sigmoid])
        shape = (1, both.shape[1] * both.shape[2], both.shape[3])
        wanted = self.graph.constant(np.array(shape, np.int32))
        return self.operation(
            "RESHAPE", [both, wanted], shape, both.quantization, ("ReshapeOptions", {"newShape": shape})
        )


def detector(size: int, width: int, depth: int = 1) -> bytes:
    """A model for `size` x `size` images whose stem has `width` channels."""
    model = Model()
    graph = model.graph()
    make = Detector(graph)
    picture = (1, size, size, 3)
    x = Tensor(graph.input(DType.INT8, picture, Quantization((1 / 64,), (0,))), picture, Quantization((1 / 64,), (0,)))
    x = make.active(make.active(x, width, 3, 2), 2 * width, 3, 2)
    x = make.stage(x, 2 * width, depth, True)
    p3 = make.stage(make.active(x, 4 * width, 3, 2), 4 * width, 2 * depth, True)
    p4 = make.stage(make.active(p3, 8 * width, 3, 2), 8 * width, 2 * depth, True)
    p5 = make.pyramid(make.stage(make.active(p4, 16 * width, 3, 2), 16 * width, depth, True))
    up4 = make.stage(make.joined([make.doubled(p5), p4]), 8 * width, depth, False)
    out3 = make.stage(make.joined([make.doubled(up4), p3]), 4 * width, depth, False)
    out4 = make.stage(make.joined([make.active(out3, 4 * width, 3, 2), up4]), 8 * width, depth, False)
    out5 = make.stage(make.joined([make.active(out4, 8 * width, 3, 2), p5]), 16 * width, depth, False)
    rows = [make.head(o) for o in (out3, out4, out5)]
    shape = (1, sum(r.shape[1] for r in rows), rows[0].shape[2])
    graph.outputs(make.operation("CONCATENATION", rows, shape, _SIGMOID, ("ConcatenationOptions", {"axis": 1})).at)
    return model.done()


def main() -> None:
    """Write the models."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sizes", default="160,320")
    parser.add_argument("--widths", default="16,32")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for size in map(int, options.sizes.split(",")):
        for width in map(int, options.widths.split(",")):
            path = options.folder / f"silu_detector_{size}_{width}.tflite"
            path.write_bytes(detector(size, width))
            print(path)


if __name__ == "__main__":
    main()

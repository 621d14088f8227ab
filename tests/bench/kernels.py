"""How near kernels come to the core's peak: `python tests/bench/kernels.py [--target NAME] [--int8]`.

The peak is measured by a loop that multiplies and adds in registers alone. Clock rates change from second to second, so
each round runs the peak's loop and then the kernel for about as long. Shown is the median of the rounds' ratios. The
first line compares the peak with itself and must show 100 %.
"""

from __future__ import annotations

import argparse
import ctypes
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from attrs import evolve, frozen

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.stopwatch import fastest
from llvm.contractions import conv_f32, conv_int8, gemm_f32, gemm_int8, patch_conv_int8

from onert_llvm.codegen.kernel_abi import Algorithm, KernelSpec, Task, build
from onert_llvm.codegen.llvm_codegen import compile_text
from onert_llvm.irbuilder import F32, I8, I16, I32, Kernel, Val, vec
from onert_llvm.kernels.arithmetic.requantize_int8 import Requantize, Scaling
from onert_llvm.kernels.contraction.direct.conv_row_f32 import LineConvF32, Lines
from onert_llvm.kernels.contraction.direct.depthwise_f32 import DepthwiseF32
from onert_llvm.kernels.contraction.direct.depthwise_integers import DepthwiseIntegers
from onert_llvm.kernels.contraction.direct.sliding_window import slide, together
from onert_llvm.kernels.contraction.im2col import Patch
from onert_llvm.kernels.contraction.int8_microkernel import dot
from onert_llvm.runtime.object_loader import load
from onert_llvm.schedule.cost_model import Shape as ProductShape
from onert_llvm.schedule.cost_model import product_tile, row_work, with_prefetch
from onert_llvm.schedule.depthwise import MOST_ACROSS, registers_together, strip
from onert_llvm.schedule.float_packing import pack_f32, panel_bytes_f32, panels
from onert_llvm.schedule.float_scaling import Sums, fitted
from onert_llvm.schedule.line_tiles import line_tile
from onert_llvm.schedule.weight_packing import (
    channel_order,
    pack_columns,
    pack_depthwise,
    pack_floats,
    pack_int8,
    panel_bytes_int8,
)
from onert_llvm.target.isa import Isa, target

Array = np.ndarray[Any, Any]
CHAINS = 12


@frozen
class Shape:
    """A layer: a rows x columns input, a square `window`, SAME padding; a product has window 1 and one column."""

    label: str
    rows: int
    columns: int
    channels: int
    outputs: int
    window: int = 1
    stride: int = 1
    depthwise: bool = False

    @property
    def out(self) -> tuple[int, int]:
        return -(-self.rows // self.stride), -(-self.columns // self.stride)

    @property
    def operations(self) -> int:
        depth = 1 if self.depthwise else self.channels
        return 2 * self.out[0] * self.out[1] * self.outputs * depth * self.window**2


def product(label: str, m: int, k: int, n: int) -> Shape:
    return Shape(f"{label} {m}x{k}x{n}", m, 1, k, n)


def conv(label: str, size: int, channels: int, outputs: int, window: int, stride: int = 1) -> Shape:
    name = f"{label} {size}x{size}x{channels}->{outputs} {window}x{window}/{stride}"
    return Shape(name, size, size, channels, outputs, window, stride)


def depthwise(label: str, size: int, channels: int, window: int, stride: int = 1) -> Shape:
    name = f"{label} {size}x{size}x{channels} dw {window}x{window}/{stride}"
    return Shape(name, size, size, channels, channels, window, stride, True)


SHAPES = (
    product("gemm", 196, 512, 512),
    product("gemm", 784, 256, 256),
    product("gemm", 3136, 128, 64),
    product("gemm", 12544, 64, 32),
    product("gemm", 49, 1024, 1024),
    product("mobilenet_v2", 12544, 32, 16),
    product("mobilenet_v2", 12544, 16, 96),
    product("mobilenet_v2", 3136, 24, 144),
    product("mobilenet_v2", 784, 32, 192),
    product("mobilenet_v2", 196, 384, 64),
    product("mobilenet_v2", 196, 64, 384),
    product("mobilenet_v2", 49, 960, 320),
    product("mobilenet_v2", 49, 320, 1280),
    product("classifier", 1, 1280, 1001),
    product("bert_small", 128, 256, 256),
    product("bert_small", 128, 256, 1024),
    product("bert_small", 128, 1024, 256),
    product("resnet50", 3136, 64, 64),
    product("resnet50", 3136, 64, 256),
    product("resnet50", 3136, 256, 64),
    product("resnet50", 784, 128, 512),
    product("resnet50", 784, 512, 128),
    product("resnet50", 196, 256, 1024),
    product("resnet50", 196, 1024, 256),
    product("resnet50", 49, 512, 2048),
    product("resnet50", 49, 2048, 512),
    conv("resnet50", 224, 3, 64, 7, 2),
    conv("resnet50", 56, 64, 64, 3),
    conv("resnet50", 28, 128, 128, 3),
    conv("resnet50", 14, 256, 256, 3),
    conv("resnet50", 7, 512, 512, 3),
    conv("mobilenet_v2", 224, 3, 32, 3, 2),
    depthwise("mobilenet_v2", 112, 32, 3),
    depthwise("mobilenet_v2", 112, 96, 3, 2),
    depthwise("mobilenet_v2", 56, 144, 3),
    depthwise("mobilenet_v2", 28, 192, 3),
    depthwise("mobilenet_v2", 14, 384, 3),
    depthwise("mobilenet_v2", 14, 576, 3, 2),
    depthwise("mobilenet_v2", 7, 960, 3),
    depthwise("mobilenet_v3", 14, 240, 5),
)


@frozen
class Peak:
    """Multiply and add in registers alone. A work tile is one iteration of the loop."""

    integer: bool
    name: str = "peak"
    slots: tuple[str, ...] = ("out",)

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        out, lanes = task.view("out", I32 if self.integer else F32, 1), k.isa.f32
        acc = [k.var(out[i * lanes].load(lanes)) for i in range(CHAINS)]
        x = out[0].load(lanes)
        with k.loop(end, begin):
            for a, other in zip(acc, acc[1:] + acc[:1], strict=True):
                a.set(self._step(k, a.get(), x, other.get()))
        for i, a in enumerate(acc):
            out[i * lanes].store(a.get())

    def _step(self, k: Kernel, acc: Val, x: Val, other: Val) -> Val:
        """One multiplication that depends on the previous iteration; a loop-invariant product would be hoisted."""
        if not self.integer:
            return k.fma(acc, x, x)
        if k.isa.dot.value.wide:
            pairs = vec(I16, k.isa.f32 * 2)
            return dot(k, acc, other.bits(pairs), x.bits(pairs))
        return dot(k, acc, x.bits(vec(I8, k.isa.f32 * 4)), x.bits(vec(I8, k.isa.f32 * 4)))

    def operations(self, isa: Isa) -> int:
        return CHAINS * isa.f32 * 2 * (isa.group if self.integer else 1)


def _aligned(values: Array) -> Array:
    raw = np.zeros(values.nbytes + 64, np.uint8)
    start = -raw.ctypes.data % 64
    out: Array = raw[start : start + values.nbytes].view(values.dtype).reshape(values.shape)
    out[...] = values
    return out


class Runner:
    """Compiled kernels bound to buffers of random numbers."""

    def __init__(self, isa: Isa, integer: bool) -> None:
        self.isa, self.integer = isa, integer
        self.rng = np.random.default_rng(0)
        self.kept: list[Any] = []

    def bind(
        self, algorithm: Algorithm, tiles: int, slots: dict[str, Any], isa: Isa | None = None
    ) -> Callable[[], None]:
        spec = KernelSpec(algorithm, isa or self.isa)
        image = load([compile_text(str(build(spec)), spec.isa)])
        values = {n: v.ctypes.data if isinstance(v, np.ndarray) else v for n, v in slots.items()}
        task = spec.layout.fill(**{n: values[n] for n in spec.layout.names})
        entry = ctypes.CFUNCTYPE(None, ctypes.c_void_p, *[ctypes.c_int64] * 3)(image[spec.symbol])
        self.kept += [image, slots, task]
        address = task.ctypes.data
        return lambda: entry(address, 0, tiles, 0)

    def numbers(self, *shape: int) -> Array:
        if self.integer:
            return _aligned(self.rng.integers(-128, 128, shape).astype(np.int8))
        return _aligned(self.rng.standard_normal(shape).astype(np.float32))

    def layer(self, shape: Shape) -> Callable[[], None]:
        (oh, ow), k, n, w = shape.out, shape.channels, shape.outputs, shape.window
        slots = self._window(shape) | {"c": self.numbers(oh * ow, n), "ldc": n, **self._columns(n)}
        if shape.depthwise:
            return self._depthwise(shape, slots)
        patch = Patch(w, w * k) if k <= 4 else None
        depth = w * w * k
        tile = product_tile(oh * ow, n, depth, self.isa, self.integer)
        whole = ProductShape(oh * ow, n, depth, self.integer)
        work = row_work(whole, tile, panels(n, tile.columns, self.isa), depth * (1 if self.integer else 4), self.isa)
        taps = w if patch and self.integer else 1 if patch else w * w
        weights = self.numbers(taps, depth // taps, n)
        b = (pack_int8 if self.integer else pack_f32)(weights, tile.columns, self.isa)
        step = (panel_bytes_int8 if self.integer else panel_bytes_f32)(taps, depth // taps, tile.columns, self.isa)
        slots |= {"b": _aligned(b), "panel_bytes": step, "m": oh * ow, "n": n, "mc": work.mc, "k": k, "lda": k}
        slots |= {"panels": panels(n, tile.columns, self.isa), "a": slots["input"], "ahead": slots["b"]}
        rest = k % self.isa.group
        algorithm: Algorithm
        if patch is not None:
            if not self.integer:
                return self._lines(shape, slots)
            algorithm = patch_conv_int8(tile, patch, how=self._requantize)
        elif w == shape.stride == 1:
            how, packed = self._requantize, with_prefetch(tile, self.isa)
            algorithm = gemm_int8(packed, rest, how=how) if self.integer else gemm_f32(tile)
        else:
            how, packed = self._requantize, with_prefetch(tile, self.isa)
            algorithm = conv_int8(packed, rest, how=how) if self.integer else conv_f32(tile)
        return self.bind(algorithm, work.tiles, slots)

    def _lines(self, shape: Shape, slots: dict[str, Any]) -> Callable[[], None]:
        depth, k = shape.window**2 * shape.channels, shape.channels
        chosen = line_tile((shape.window,) * 2, shape.stride, k, shape.out[1], shape.outputs, self.isa, True)
        tile, isa = chosen.tile, chosen.isa
        b = pack_f32(self.numbers(depth, shape.outputs), tile.columns, isa)
        step = panel_bytes_f32(1, depth, tile.columns, isa)
        count = panels(shape.outputs, tile.columns, isa)
        slots |= {"b": _aligned(b), "panel_bytes": step, "panels": count, "pitch": shape.out[1]}
        algorithm = LineConvF32(tile, Lines(shape.window, shape.window * k, shape.stride * k))
        return self.bind(algorithm, shape.out[0] * count, slots, isa)

    def _depthwise(self, shape: Shape, slots: dict[str, Any]) -> Callable[[], None]:
        c, w = shape.channels, shape.window
        weights = self.numbers(w, w, c)
        if not self.integer:
            cut = evolve(strip((w, w), shape.stride, 1, shape.out[1], c, self.isa, MOST_ACROSS), near=True)
            return self.bind(DepthwiseF32(cut), shape.out[0], slots | {"w": weights, "channels": c})
        wide = registers_together(self.isa)
        packed = _aligned(pack_depthwise(weights, channel_order(c, wide, self.isa), self.isa, self.isa.group, wide))
        algorithm = DepthwiseIntegers(slide((w, w), shape.stride, 1, c, self.isa), wide, requantize=self._requantize)
        some = together(w, shape.stride, 1, slots["pad_w"], shape.columns, shape.out[1])
        return self.bind(algorithm, shape.out[0], slots | some | {"w": packed, "channels": c})

    def _columns(self, n: int) -> dict[str, Any]:
        if not self.integer:
            return {}
        mantissas, shifts, start = np.full(n, 1518500249), np.full(n, -9), np.zeros(n, np.int64)
        if not self.isa.rounds:
            return {"columns": _aligned(pack_columns(Scaling.NARROW, start, (mantissas, shifts), 3, self.isa))}
        reals, late = np.ldexp(mantissas.astype(float), shifts - 31), np.ldexp(0.5, shifts)
        sums = Sums(start, start + (1 << 20))
        floats = fitted(reals, late, sums, (-128, 127), 3, rectified=False, alike=False)
        assert floats is not None
        return {"columns": _aligned(pack_floats(start, floats, self.isa))}

    @property
    def _requantize(self) -> Requantize:
        """The requantisation that most layers of models use."""
        return Requantize(Scaling.FLOAT if self.isa.rounds else Scaling.NARROW)

    def _window(self, s: Shape) -> dict[str, Any]:
        pads = [max((o - 1) * s.stride + s.window - i, 0) // 2 for o, i in zip(s.out, (s.rows, s.columns), strict=True)]
        pairs = {"in": (s.rows, s.columns), "out": s.out, "kernel": (s.window,) * 2, "stride": (s.stride,) * 2}
        pairs |= {"dilation": (1, 1), "pad": (pads[0], pads[1])}
        both = {f"{name}_{axis}": pair[i] for name, pair in pairs.items() for i, axis in enumerate("hw")}
        c = s.channels
        source = self.numbers(s.rows, s.columns, c)
        strides = {"pixel": c, "row": s.columns * c, "image": s.rows * s.columns * c}
        return {**both, **strides, "input": source, "zero": np.zeros_like(self.numbers(c))}


def share_of_peak(
    run: Callable[[], None], rate: float, peak: Callable[[], None], peak_work: int, rounds: int
) -> tuple[float, float]:
    """Operations per second and their share of the peak, medians over the rounds; `rate` is one run's operations."""
    run()
    repeat = max(3, min(200, int(0.004 / max(fastest(run, 2), 1e-7))))
    speeds, shares = [], []
    for i in range(rounds):
        first, second = (fastest(peak, 3), fastest(run, repeat)) if i % 2 else (fastest(run, repeat), fastest(peak, 3))
        own, best = (second, first) if i % 2 else (first, second)
        speeds.append(rate / own)
        shares.append(rate / own / (peak_work / best))
    return statistics.median(speeds), statistics.median(shares)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", default="native")
    parser.add_argument("--int8", action="store_true")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", default="", help="shapes whose label contains this")
    options = parser.parse_args()
    isa = target(options.target)
    runner = Runner(isa, options.int8)
    trips = 100_000
    top = Peak(options.int8)
    start = _aligned(np.full(CHAINS * isa.f32, 0.5, np.float32))
    peak, work = runner.bind(top, trips, {"out": start}), top.operations(isa) * trips
    speed, share = share_of_peak(peak, work, peak, work, options.rounds)
    print(f"{isa.name} peak {speed / 1e9:.0f} G{'OP' if options.int8 else 'FLOP'}/s, against itself {share:.1%}")
    for shape in SHAPES:
        if options.only not in shape.label:
            continue
        run = runner.layer(shape)
        speed, share = share_of_peak(run, shape.operations, peak, work, options.rounds)
        micros = shape.operations / speed * 1e6
        print(f"{shape.label:44} {micros:9.1f} us {speed / 1e9:7.0f} G/s {share:6.1%}")


if __name__ == "__main__":
    main()

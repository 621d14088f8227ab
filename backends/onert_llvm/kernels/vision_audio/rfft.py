"""The Fourier transform of real rows by Stockham's method: all stages access memory contiguously, without reordering.

A row of `size` numbers is treated as half as many complex ones, whose transform yields that of the row (E. O. Brigham,
The Fast Fourier Transform). Between stages, real and imaginary parts are in separate scratch memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from attrs import frozen

from onert.ir import Array, DType
from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, F64, Kernel, Type, Val, View
from onert_llvm.kernels.data_movement.strided_copy import copy_run, fill_run
from onert_llvm.target.isa import Isa

Complex = tuple[Val, Val]
"""Real and imaginary parts."""


@frozen
class Stage(Value):
    """A stage that combines `radix` transforms at a time: `length` numbers each, `apart` between neighbours."""

    radix: int
    length: int
    apart: int

    @property
    def turns(self) -> int:
        """The number of different twiddle angles."""
        return self.length // self.radix

    def factors(self, lanes: int) -> Array:
        """Twiddle factors `[radix - 1, 2, places]`: one per butterfly if a register holds several, else per angle."""
        angles = np.outer(np.arange(1, self.radix), np.arange(self.turns)) * (-2 * np.pi / self.length)
        parts = np.stack([np.cos(angles), np.sin(angles)], 1)
        return np.repeat(parts, self.apart, axis=2) if self.apart < lanes else parts


def stages(count: int) -> tuple[Stage, ...]:
    """The stages of a complex transform of `count`, a power of two: radix 4, and a last radix 2 if needed."""
    found, length, apart = [], count, 1
    while length > 1:
        radix = 4 if length % 4 == 0 else 2
        found.append(Stage(radix, length, apart))
        length, apart = length // radix, apart * radix
    return tuple(found)


def lanes_of(isa: Isa, dtype: DType) -> int:
    """The numbers of one of the two types that a register holds."""
    return isa.f32 if dtype is DType.FLOAT32 else max(1, isa.f32 // 2)


def table(size: int, lanes: int, dtype: DType) -> Array:
    """All factors for a transform of `size` real numbers, stage by stage, then those of the last step."""
    angles = np.arange(size // 2) * (-2 * np.pi / size)
    last = np.stack([np.cos(angles), np.sin(angles)])
    parts = [stage.factors(lanes).reshape(-1) for stage in stages(size // 2) if stage.turns > 1]
    return np.concatenate([*parts, last.reshape(-1)]).astype(dtype.numpy)


@frozen
class RealFourier(Value):
    """Rows of `width` numbers, `step` apart, to `size // 2 + 1` complex numbers each; work tiles are rows.

    `size` is a power of two, at least eight registers. `short` rows have fewer than `size` elements. `dtype` is float32
    or float64.
    """

    size: int
    short: bool
    dtype: DType = DType.FLOAT32

    @property
    def slots(self) -> tuple[str, ...]:
        return ("x", "step", "out", "factors", *(("width",) if self.short else ()))

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        half, lanes = self.size // 2, lanes_of(k.isa, self.dtype)
        element = F32 if self.dtype is DType.FLOAT32 else F64
        rooms = [[k.view(k.scratch(element, half + lanes), element, 1) for _ in range(2)] for _ in range(2)]
        copy = k.view(k.scratch(element, self.size), element, 1) if self.short else None
        with k.loop(end, begin) as row:
            x = task.view("x", element, task.i64("step"), 1)[row]
            x = x if copy is None else _filled(k, task, x, copy, self.size, element)
            factors, source = task.view("factors", element, 1), rooms[0]
            for number, stage in enumerate(stages(half)):
                target = rooms[number % 2]
                load = _from_pairs(x, lanes) if number == 0 else _from_parts(source, lanes)
                _emit_stage(k, stage, half, load, target, factors, lanes)
                if stage.turns > 1:
                    factors = k.view(factors[stage.factors(lanes).size].address, element, 1)
                source = target
            out = k.view(task.view("out", element, self.size + 2, 1)[row].address, element, 1)
            _finish(k, self.size, source, out, factors, lanes)


def _filled(k: Kernel, task: Task, x: View, copy: View, size: int, element: Type) -> View:
    """A copy of a row, padded with zeros."""
    width = task.i64("width")
    copy_run(k, x, copy, width)
    fill_run(k, k.const(element, 0.0), k.view(copy[width].address, element, 1), size - width)
    return copy


Load = Callable[[Val], Complex]


def _from_pairs(x: View, lanes: int) -> Load:
    """Complex numbers from adjacent pairs of a real row."""

    def load(at: Val) -> Complex:
        both = [x[at * 2 + i * lanes].load(lanes) for i in range(2)]
        even, odd = (both[0].shuffle(range(first, 2 * lanes, 2), both[1]) for first in (0, 1))
        return even, odd

    return load


def _from_parts(parts: Sequence[View], lanes: int) -> Load:
    def load(at: Val) -> Complex:
        real, imaginary = (part[at].load(lanes) for part in parts)
        return real, imaginary

    return load


def _emit_stage(
    k: Kernel, stage: Stage, count: int, load: Load, target: Sequence[View], factors: View, lanes: int
) -> None:
    """Emit all butterflies of a stage, a register of neighbours at a time."""
    each = count // stage.radix
    for turn, first, last in _turns(k, stage, each, lanes):
        with k.loop(last, first, step=lanes, nonempty=True) as at:
            found = _butterfly([load(at + i * each) for i in range(stage.radix)])
            if stage.turns > 1:
                turned = (_product(k, v, _factor(stage, factors, i, turn, at, lanes)) for i, v in enumerate(found[1:]))
                found = [found[0], *turned]
            _store(stage, found, target, turn, at, lanes)


def _turns(k: Kernel, stage: Stage, each: int, lanes: int) -> Iterator[tuple[Val, Val, Val]]:
    """The turn and the range of its butterflies; all turns at once if a register holds butterflies of several."""
    if stage.apart < lanes or stage.turns == 1:
        yield k.index(0), k.index(0), k.index(each)
        return
    with k.loop(stage.turns) as turn:
        yield turn, turn * stage.apart, (turn + 1) * stage.apart


def _factor(stage: Stage, factors: View, number: int, turn: Val, at: Val, lanes: int) -> Complex:
    """The factor of one result of each butterfly in a register."""
    many = stage.apart < lanes
    places = stage.turns * (stage.apart if many else 1)
    here = [factors[(2 * number + part) * places + (at if many else turn)] for part in range(2)]
    real, imaginary = (h.load(lanes) if many else h.load().splat(lanes) for h in here)
    return real, imaginary


def _store(stage: Stage, found: Sequence[Complex], target: Sequence[View], turn: Val, at: Val, lanes: int) -> None:
    """Store the results of a register of butterflies, each one's `apart` from one another."""
    for part in range(2):
        values = [value[part] for value in found]
        if stage.apart < lanes:
            for i, value in enumerate(_woven(values, stage.apart)):
                target[part][at * stage.radix + i * lanes].store(value)
            continue
        for i, value in enumerate(values):
            target[part][at + (turn * (stage.radix - 1) + i) * stage.apart].store(value)


def _butterfly(x: Sequence[Complex]) -> list[Complex]:
    """The transform of two or four numbers."""
    if len(x) == 2:
        return [_sum(x[0], x[1]), _difference(x[0], x[1])]
    even, odd = _sum(x[0], x[2]), _sum(x[1], x[3])
    across, along = _difference(x[0], x[2]), _difference(x[1], x[3])
    back = (across[0] + along[1], across[1] - along[0])
    forth = (across[0] - along[1], across[1] + along[0])
    return [_sum(even, odd), back, _difference(even, odd), forth]


def _sum(x: Complex, y: Complex) -> Complex:
    return x[0] + y[0], x[1] + y[1]


def _difference(x: Complex, y: Complex) -> Complex:
    return x[0] - y[0], x[1] - y[1]


def _product(k: Kernel, x: Complex, y: Complex) -> Complex:
    return k.fma(x[0], y[0], -(x[1] * y[1])), k.fma(x[0], y[1], x[1] * y[0])


def _woven(values: Sequence[Val], run: int) -> list[Val]:
    """Two or four vectors, interleaved in runs of `run` lanes."""
    if len(values) == 2:
        return _interleaved(values[0], values[1], run)
    one, other = (_interleaved(values[i], values[i + 2], run) for i in range(2))
    return [v for a, b in zip(one, other, strict=True) for v in _interleaved(a, b, run)]


def _interleaved(a: Val, b: Val, run: int) -> list[Val]:
    lanes = a.lanes
    order = [first + side + i for first in range(0, lanes, run) for side in (0, lanes) for i in range(run)]
    return [a.shuffle(order[:lanes], b), a.shuffle(order[lanes:], b)]


def _finish(k: Kernel, size: int, source: Sequence[View], out: View, factors: View, lanes: int) -> None:
    """The transform of the real row: each number combined with its mirror image, their difference rotated."""
    half = size // 2
    first = [part[0].load() for part in source]
    for part, value in zip(source, first, strict=True):
        part[half].store(value)
    with k.loop(half, step=lanes, nonempty=True) as at:
        x, y = ([part[place].load(lanes) for part in source] for place in (at, half - at - (lanes - 1)))
        x = [v * 0.5 for v in x]  # before they are added, so that only results overflow that are too large
        real, imaginary = (v.shuffle(range(lanes - 1, -1, -1)) * 0.5 for v in y)
        between = x[1] + imaginary, real - x[0]
        turned = _product(k, between, (factors[at].load(lanes), factors[at + half].load(lanes)))
        found = x[0] + real + turned[0], x[1] - imaginary + turned[1]
        for i, value in enumerate(_interleaved(found[0], found[1], 1)):
            out[at * 2 + i * lanes].store(value)
    out[size].store(first[0] - first[1])
    for real_number in (0, size):  # no sine contributes to these, even if a number of the row is NaN
        out[real_number + 1].store(first[0].like(0.0))

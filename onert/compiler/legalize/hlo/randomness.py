"""Random bits and numbers as arithmetic on 64-bit integers, bit-identical on every backend."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from onert.compiler.legalize.decomposition import Decomposition
from onert.compiler.legalize.draft import Draft
from onert.ir import CallTypes, DType
from onert.ir.ops.arithmetic import philox
from onert.ir.ops.data_movement.copy import Copy
from onert.ir.ops.data_movement.fill import Within
from onert.ir.ops.data_movement.joining import Concat, Pack
from onert.ir.ops.data_movement.random_numbers import (
    SCRAMBLE,
    Distribution,
    MultinomialFrom,
    RandomFrom,
    StatelessUniform,
)
from onert.ir.ops.elementwise.binary import BinaryKind
from onert.ir.ops.elementwise.comparison import ComparisonKind
from onert.ir.ops.elementwise.convert import Bitcast
from onert.ir.ops.elementwise.unary import UnaryKind
from onert.ir.ops.reduction.reduce import Reduction
from onert.ir.ops.reduction.scan import CumSum
from onert.ir.ops.stablehlo.gather import BitGenerator, HloRngBitGenerator
from onert.ir.shape import static

_MASK = (1 << 32) - 1
_MOST_WORDS = 1 << 22
"""The most words drawn at once: each needs about a hundred bytes of intermediate results."""


MOST_COMPARED = 1 << 22
"""The most cumulative probabilities that drawing classes may compare."""


def _why_not(op: HloRngBitGenerator | RandomFrom | StatelessUniform, types: CallTypes) -> str | None:
    words = op.words if isinstance(op, HloRngBitGenerator) else math.prod(static(types.outputs[-1].shape))
    return None if words <= _MOST_WORDS else f"it draws {words} words at once"


def _int64(d: Draft, value: int) -> int:
    return d.constant(np.array([value], np.int64))


def _low(d: Draft, x: int) -> int:
    return d.binary(BinaryKind.BITWISE_AND, x, _int64(d, _MASK))


def _high(d: Draft, x: int) -> int:
    return _low(d, d.binary(BinaryKind.SHIFT_RIGHT, x, _int64(d, 32)))


def _xor(d: Draft, *values: int) -> int:
    found, *others = values
    for each in others:
        found = d.binary(BinaryKind.BITWISE_XOR, found, each)
    return found


def _philox(d: Draft, key: int, low: int, high: int, blocks: int) -> int:
    """The words of `blocks` Philox blocks, i64[4 * blocks] below 2**32; the key and the counter's halves are i64[1]."""
    lows = d.sum(low, d.constant(np.arange(blocks)))
    c, keys = [_low(d, lows), _high(d, lows), _low(d, high), _high(d, high)], [_low(d, key), _high(d, key)]
    for _ in range(philox.ROUNDS):
        first, second = (d.product(c[2 * at], _int64(d, by)) for at, by in enumerate(philox.MULTIPLIERS))
        c = [
            _xor(d, _high(d, second), c[1], keys[0]),
            _low(d, second),
            _xor(d, _high(d, first), c[3], keys[1]),
            _low(d, first),
        ]
        keys = [_low(d, d.sum(k, _int64(d, w))) for k, w in zip(keys, philox.WEYL, strict=True)]
    return d.reshaped(d.add(Pack(1), *c), 4 * blocks)


def _threefry(d: Draft, key: int, low: int, blocks: int) -> int:
    """The words of `blocks` Threefry blocks, i64[2 * blocks] below 2**32; the key and the counter are i64[1]."""
    counters = d.sum(low, d.constant(np.arange(blocks)))
    words = [_low(d, key), _high(d, key)]
    words.append(_xor(d, *words, _int64(d, philox.PARITY)))
    x = [_low(d, d.sum(each, word)) for each, word in zip((_low(d, counters), _high(d, counters)), words, strict=False)]
    for injection in range(5):
        for rotation in philox.ROTATIONS[injection % 2]:
            total = _low(d, d.sum(*x))
            left = d.binary(BinaryKind.SHIFT_LEFT, x[1], _int64(d, rotation))
            right = d.binary(BinaryKind.SHIFT_RIGHT, x[1], _int64(d, 32 - rotation))
            x = [total, _xor(d, _low(d, left), right, total)]
        second = d.sum(words[(injection + 2) % 3], _int64(d, injection + 1))
        x = [_low(d, d.sum(x[0], words[(injection + 1) % 3])), _low(d, d.sum(x[1], second))]
    return d.reshaped(d.add(Pack(1), *x), 2 * blocks)


def _bits(d: Draft, op: HloRngBitGenerator, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Philox or Threefry on the state as int64, cut to the words that the result needs."""
    state = d.add(Bitcast(DType.INT64), operands[0])
    parts = [d.part(state, (at,), (1,)) for at in range(d.shape(state)[0])]
    key, low = parts[:2]
    if op.algorithm is BitGenerator.THREEFRY:
        words = _threefry(d, key, low, op.blocks)
    else:
        words = _philox(d, key, low, parts[-1] if len(parts) > 2 else key, op.blocks)
    found = d.cast(d.part(words, (0,), (op.words,)), DType.UINT32)
    if op.to.itemsize == 8:
        found = d.reshaped(found, op.words // 2, 2)
    found = found if op.to is DType.UINT32 else d.add(Bitcast(op.to), found)
    next_state = d.add(Concat(0), key, d.sum(low, _int64(d, op.blocks)), *parts[2:])
    return [d.add(Bitcast(DType.UINT64), next_state), d.reshaped(found, *static(types.outputs[1].shape))]


def uniform(d: Draft, bits: int) -> int:
    """Numbers in [0, 1) from the low 23 bits; exact."""
    mask = d.like(bits, (1 << 23) - 1)
    return d.product(d.cast(d.binary(BinaryKind.BITWISE_AND, bits, mask), DType.FLOAT32), d.real(2.0**-23))


def normal(d: Draft, bits: int) -> int:
    """Standard normal numbers by the Box-Muller transform, two from each pair of words."""
    (count,) = d.shape(bits)
    uniforms = d.reshaped(uniform(d, bits), count // 2, 2)
    distance, fraction = (d.part(uniforms, (0, at), (count // 2, 1)) for at in (0, 1))
    distance = d.binary(BinaryKind.MAXIMUM, distance, d.real(1e-7))
    radians = d.product(d.cast(fraction, DType.FLOAT64), d.constant(np.array(2 * np.pi)))
    angle = d.cast(d.cast(radians, DType.FLOAT32), DType.FLOAT64)
    logarithm = d.cast(d.unary(UnaryKind.LOG, d.cast(distance, DType.FLOAT64)), DType.FLOAT32)
    radius = d.unary(UnaryKind.SQRT, d.product(logarithm, d.real(-2)))
    both = d.add(Concat(1), d.unary(UnaryKind.SIN, angle), d.unary(UnaryKind.COS, angle))
    return d.reshaped(d.product(d.cast(both, DType.FLOAT32), radius), count)


def classes(d: Draft, logits: int, bits: int, to: DType) -> int:
    """Classes drawn for each row of logits, two words each: how many cumulative probabilities a random one reaches."""
    batch, known = d.shape(logits)
    pairs = d.reshaped(d.cast(bits, DType.INT64), -1, 2)
    draws = d.shape(pairs)[0]
    high, low = (d.part(pairs, (0, at), (draws, 1)) for at in (0, 1))
    high = d.product(d.binary(BinaryKind.BITWISE_AND, high, _int64(d, (1 << 20) - 1)), _int64(d, 1 << 32))
    uniforms = d.product(d.cast(d.sum(high, low), DType.FLOAT64), d.constant(np.array(2.0**-52)))
    finite = d.compared(ComparisonKind.EQUAL, d.difference(logits, logits), d.real(0))
    wide = d.cast(logits, DType.FLOAT64)
    largest = d.reduced(Reduction.MAX, d.chosen(finite, wide, d.like(wide, -np.inf)), (1,), keep_dims=True)
    weights = d.chosen(finite, d.unary(UnaryKind.EXP, d.difference(wide, largest)), d.like(wide, 0))
    cumulative = d.add(CumSum(), weights, d.number(1))
    thresholds = d.product(d.reshaped(uniforms, batch, -1), d.part(cumulative, (0, known - 1), (batch, 1)))
    reached = d.compared(
        ComparisonKind.LESS_EQUAL,
        d.reshaped(cumulative, batch, 1, known),
        d.reshaped(thresholds, batch, draws // batch, 1),
    )
    no_finite = d.difference(_int64(d, 1), d.reduced(Reduction.MAX, d.cast(finite, DType.INT64), (1,), keep_dims=True))
    checked = d.add(Within(), no_finite, d.constant(np.array(1, np.int64)))
    return d.cast(d.sum(d.reduced(Reduction.SUM, d.cast(reached, DType.INT64), (2,)), checked), to)


def _drawn(d: Draft, state: int, words: int) -> tuple[int, ...]:
    """The next state, and `words` words drawn from this one."""
    return d.add_many(HloRngBitGenerator(BitGenerator.PHILOX, DType.UINT32, (words,)), state)


def _numbers(d: Draft, op: RandomFrom, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    shape = static(types.outputs[1].shape)
    count = math.prod(shape)
    if not count:
        return [d.add(Copy(), operands[0]), d.nothing(types.outputs[1])]
    next_state, bits = _drawn(d, operands[0], -(-count // 4) * 4)
    numbers = (uniform if op.distribution is Distribution.UNIFORM else normal)(d, bits)
    return [next_state, d.reshaped(d.part(numbers, (0,), (count,)), *shape)]


def _too_many_sums(op: MultinomialFrom, types: CallTypes) -> str | None:
    sums = math.prod(static(types.outputs[1].shape)) * (types.input(1).shape[1] or 0)
    return None if sums <= MOST_COMPARED else f"it compares {sums} cumulative probabilities"


def _drawn_classes(d: Draft, op: MultinomialFrom, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    batch, count = static(types.outputs[1].shape)
    if not batch or not count:
        return [d.add(Copy(), operands[0]), d.nothing(types.outputs[1])]
    drawn_state, bits = _drawn(d, operands[0], 2 * batch * count)
    skipped = op.reserved(batch, count) - -(-batch * count // 2)
    next_state = d.sum(d.add(Bitcast(DType.INT64), drawn_state), d.constant(np.array([0, skipped, 0], np.int64)))
    return [d.add(Bitcast(DType.UINT64), next_state), classes(d, operands[1], bits, op.to)]


def _stateless(d: Draft, op: StatelessUniform, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """A Philox block of the seeds, with a fixed scrambling key, yields the key and the counter for the bits."""
    shape, zero = static(types.output.shape), _int64(d, 0)
    seeds = d.cast(d.reshaped(operands[1], 2), DType.INT64)
    low, high = (d.part(seeds, (at,), (1,)) for at in (0, 1))
    words = _philox(d, _int64(d, SCRAMBLE), low, high, 1)
    parts = [d.part(words, (at,), (1,)) for at in range(4)]
    key, upper = (_xor(d, parts[at], d.binary(BinaryKind.SHIFT_LEFT, parts[at + 1], _int64(d, 32))) for at in (0, 2))
    count = int(np.prod(shape, dtype=np.int64))
    bits = d.part(_philox(d, key, zero, upper, -(-count // 4)), (0,), (count,))
    return [d.reshaped(uniform(d, bits), *shape)]


DECOMPOSITIONS = {
    HloRngBitGenerator: (Decomposition(_why_not, _bits),),
    StatelessUniform: (Decomposition(_why_not, _stateless),),
    RandomFrom: (Decomposition(_why_not, _numbers),),
    MultinomialFrom: (Decomposition(_too_many_sums, _drawn_classes),),
}

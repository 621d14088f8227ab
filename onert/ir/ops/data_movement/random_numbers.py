"""Random numbers: each operation has a generator, whose state persists from run to run of an execution.

Sources: the distributions of TensorFlow's random ops on Philox (core/lib/random/random_distributions_utils.h) and
LiteRT's kernel random_ops.cc, so that equal seeds give equal numbers.
"""

from __future__ import annotations

from enum import Enum
from typing import ClassVar

import numpy as np
from attrs import frozen

from onert.ir.dtype import Array, DType
from onert.ir.op import Context, Effect, OnStored, Op, require
from onert.ir.operand import Resource
from onert.ir.ops.arithmetic import shape_values as sv
from onert.ir.ops.arithmetic.philox import Philox
from onert.ir.types import CallTypes, Constant, TensorType

from .reshape import require_one

_MASK64 = (1 << 64) - 1


def uniform(bits: Array) -> Array:
    """float32 numbers in [0, 1) from the low 23 bits of `bits`."""
    one = np.uint32(127 << 23)
    return ((bits & np.uint32(0x7FFFFF)) | one).view(np.float32) - np.float32(1)


def uniform_double(high: Array, low: Array) -> Array:
    """float64 numbers in [0, 1) from the low 20 bits of `high` and all bits of `low`."""
    mantissa = ((high & np.uint32(0xFFFFF)).astype(np.uint64) << np.uint64(32)) | low.astype(np.uint64)
    out: Array = (mantissa | np.uint64(1023 << 52)).view(np.float64) - 1.0
    return out


def normal(bits: Array) -> Array:
    """float32 numbers with the standard normal distribution (Box-Muller), two from each pair of elements of `bits`."""
    pairs = bits.reshape(-1, 2)
    distance = np.maximum(uniform(pairs[:, 0]), np.float32(1e-7))
    angle = (2.0 * np.pi * uniform(pairs[:, 1]).astype(np.float64)).astype(np.float32).astype(np.float64)
    radius = np.sqrt(np.float32(-2) * np.log(distance.astype(np.float64)).astype(np.float32))
    both = np.stack([np.sin(angle), np.cos(angle)], axis=-1).astype(np.float32)
    out: Array = (both * radius.astype(np.float32)[:, None]).reshape(-1)
    return out


STATE = TensorType(DType.UINT64, (3,))
"""The type of a generator's persistent state: the key, and both halves of the counter of its next block."""


def _generator(seed: int, seed2: int, stream: int) -> Resource:
    """The variable that holds the generator state of an operation.

    If both seeds are 0, the generator is seeded at random.
    """
    name = f"{seed} {seed2} {stream}"
    if seed == 0 and seed2 == 0:
        return Resource("random", name, drawn=True)
    return Resource("random", name, Constant(np.array([seed & _MASK64, 0, seed2 & _MASK64], np.uint64)))


def _blocks(state: Array, reserved: int) -> tuple[Array, Philox]:
    """The state advanced by `reserved` blocks, and the stream of blocks at the present state."""
    key, low, high = (int(each) for each in state)
    return np.array([key, (low + reserved) & _MASK64, high], np.uint64), Philox(key, low | high << 64)


def _require_state(state: TensorType) -> None:
    known = state.dtype is STATE.dtype and state.shape in (STATE.shape, (None,))
    require(known, f"the state is {state}, expected {STATE}")


class Distribution(Enum):
    """The distribution of random numbers."""

    UNIFORM = "uniform in [0, 1)"
    NORMAL = "with mean 0 and standard deviation 1"


class _FromGenerator(Op):
    """Numbers drawn from a generator of their own, whose state is a variable."""

    __slots__ = ()

    seed: int
    seed2: int
    stream: int

    effect: ClassVar[Effect] = Effect.WRITE

    @property
    def resource(self) -> Resource:
        """The variable that holds the generator's state."""
        return _generator(self.seed, self.seed2, self.stream)

    @property
    def pure(self) -> RandomFrom | MultinomialFrom:
        """The numbers as a function of the generator's state."""
        raise NotImplementedError

    def evaluate_in(self, context: Context, types: CallTypes, *given: Array) -> Array:
        """Also replaces the generator's state by the next one."""
        held = self.resource
        state = context.state.get(held.key, held.beginning(STATE))
        assert state is not None  # a generator starts from a seed, or at random
        context.state[held.key], numbers = self.pure.evaluate(state, *given)
        return numbers


@frozen
class Random(_FromGenerator):
    """Random numbers of a given shape; float32.

    - `shape`: integers of rank 1

    Equal seeds give equal numbers in every new execution; seeds 0 and 0 give different numbers each time. `stream`
    distinguishes operations with equal seeds, so that each has its own generator.
    """

    distribution: Distribution
    seed: int = 0
    seed2: int = 0
    stream: int = 0

    @property
    def pure(self) -> RandomFrom:
        return RandomFrom(self.distribution)

    def infer(self, shape: TensorType) -> TensorType:
        return self.pure.infer(STATE, shape)[1]


@frozen
class RandomFrom(OnStored):
    """Random numbers from a generator's state; the pure function underlying `Random`.

    - `state`: uint64 [3]: the key, and both halves of the counter of the next block
    - `shape`: integers of rank 1

    Results: the next state, and float32 numbers of the given shape.
    """

    distribution: Distribution

    def infer(self, state: TensorType, shape: TensorType) -> tuple[TensorType, TensorType]:
        _require_state(state)
        return STATE, sv.of_shape(DType.FLOAT32, shape, "shape")

    def evaluate(self, state: Array, shape: Array) -> tuple[Array, Array]:
        wanted = sv.checked_shape(sv.values(shape), "shape")
        count = int(np.prod(wanted, dtype=np.int64))
        blocks = -(-count // 4)
        following, stream = _blocks(state, blocks)
        bits = stream.blocks(blocks).reshape(-1)
        numbers = uniform(bits) if self.distribution is Distribution.UNIFORM else normal(bits)
        return following, numbers[:count].reshape(wanted)


@frozen
class Multinomial(_FromGenerator):
    """Random classes, each with a probability proportional to the exponential of its logit; int32 or int64 (`to`).

    - `logits`: float32 [batch, classes]; a class whose logit is not finite is never drawn
    - `num_samples`: one integer; the result is [batch, num_samples]

    Seeds as in `Random`.
    """

    to: DType = DType.INT64
    seed: int = 0
    seed2: int = 0
    stream: int = 0

    @property
    def pure(self) -> MultinomialFrom:
        return MultinomialFrom(self.to)

    def infer(self, logits: TensorType, num_samples: TensorType) -> TensorType:
        return self.pure.infer(STATE, logits, num_samples)[1]

    def rounds(self, types: CallTypes) -> int:
        return types.input(0).shape[0] or 0


@frozen
class MultinomialFrom(OnStored):
    """Random classes from a generator's state; the pure function underlying `Multinomial`.

    - `state`: as in `RandomFrom`
    - `logits`: float32 [batch, classes]
    - `num_samples`: one integer

    Results: the next state, and int32 or int64 classes [batch, num_samples].
    """

    to: DType

    def infer(self, state: TensorType, logits: TensorType, num_samples: TensorType) -> tuple[TensorType, TensorType]:
        _require_state(state)
        require(self.to in (DType.INT32, DType.INT64), f"the result is {self.to.text}, expected i32 or i64")
        require(logits.dtype is DType.FLOAT32, f"logits hold {logits.dtype.text}, expected f32")
        require(logits.rank == 2, f"logits have rank {logits.rank}, expected 2")
        require(logits.shape[1] != 0, "there are no classes, expected at least 1")
        require_one(num_samples, "num_samples")
        found = sv.integers(num_samples, "num_samples")
        if found is None:
            return STATE, TensorType(self.to, (logits.shape[0], None))
        count = found[0]
        sv.checked_shape((count, *(() if logits.shape[0] is None else (logits.shape[0],))), "the samples' shape")
        return STATE, TensorType(self.to, (logits.shape[0], count))

    @staticmethod
    def reserved(batch: int, count: int) -> int:
        """The number of blocks by which a run advances the generator: TensorFlow leaves room for kernels that draw an
        unknown number of times."""
        return batch * (-(-count // 4) * 4) * 2 * 256

    def rounds(self, types: CallTypes) -> int:
        return types.input(1).shape[0] or 0

    def evaluate(self, state: Array, logits: Array, num_samples: Array) -> tuple[Array, Array]:
        count, batch = sv.values(num_samples)[0], len(logits)
        following, stream = _blocks(state, self.reserved(batch, count))
        pairs = stream.blocks(-(-batch * count // 2)).reshape(-1, 2)[: batch * count]
        chances = uniform_double(pairs[:, 0], pairs[:, 1]).reshape(batch, count)
        out = np.empty((batch, count), self.to.numpy)
        for row, chance, found in zip(logits, chances, out, strict=True):
            finite = np.isfinite(row)
            require(bool(finite.any()), "a row of logits has no finite element")
            weights = np.exp(
                row.astype(np.float64) - np.float64(row[finite].max()), where=finite, out=np.zeros(len(row))
            )
            below = np.cumsum(weights)
            found[:] = np.searchsorted(below, chance * below[-1], side="right")
        return following, out


SCRAMBLE = 0x02461E29_3EC8F720
"""The key with which TensorFlow derives a key and a counter from the seeds of a stateless operation."""


@frozen
class StatelessUniform(OnStored):
    """Random numbers in [0, 1) that depend only on the seeds; float32.

    - `shape`: integers of rank 1
    - `seed`: two integers

    Source: TensorFlow's StatelessRandomUniform (tf.random.stateless_uniform).
    """

    def infer(self, shape: TensorType, seed: TensorType) -> TensorType:
        sv.integers(seed, "seed")
        require(sv.length(seed) in (2, None), f"seed has {sv.length(seed)} elements, expected 2")
        return sv.of_shape(DType.FLOAT32, shape, "shape")

    def evaluate(self, shape: Array, seed: Array) -> Array:
        wanted = sv.checked_shape(sv.values(shape), "shape")
        count = int(np.prod(wanted, dtype=np.int64))
        low, high = (value & _MASK64 for value in sv.values(seed))
        words = [int(w) for w in Philox(SCRAMBLE, low | high << 64).blocks(1)[0]]
        stream = Philox(words[0] | words[1] << 32, words[2] << 64 | words[3] << 96)
        return uniform(stream.blocks(-(-count // 4)).reshape(-1))[:count].reshape(wanted)

"""Initial values of learnable variables: random numbers determined by a seed and a variable's name.

The distributions and their scales are those of SLING's Flow::Variable and Network::InitModelParameters.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping

import numpy as np

from onert.ir import Array, ExecutionError, TensorType
from onert.ir import shape as shapes
from onert.ir.ops.arithmetic.philox import Philox
from onert.ir.ops.data_movement.random_numbers import normal, uniform

ATTRIBUTE = "init"
"""The attribute of a variable that names its distribution; only files of version 6 can store it."""
_MASK64 = (1 << 64) - 1


def initial(name: str, type_: TensorType, distribution: str, seed: int) -> Array:
    """The initial elements of a variable. Raises ExecutionError if the distribution is unknown.

    Each variable has its own generator, Philox-4x32-10, whose key is the seed and whose counter starts at a digest of
    the name. There is no state between calls: equal names, shapes and seeds give equal numbers, independent of other
    variables.
    """
    draw = DISTRIBUTIONS.get(distribution)
    if draw is None:
        expected = ", ".join(DISTRIBUTIONS)
        raise ExecutionError(f"'{name}' has unknown initial distribution '{distribution}', expected one of {expected}")
    shape = shapes.static(type_.shape)
    digest = int.from_bytes(hashlib.sha256(name.encode(errors="surrogatepass")).digest()[:8], "little")
    stream = Philox(seed & _MASK64, digest << 64)
    return draw(stream, shape).astype(type_.dtype.numpy)


def _bits(stream: Philox, count: int) -> Array:
    return stream.blocks(-(-count // 4)).reshape(-1)


def _uniform(stream: Philox, shape: tuple[int, ...]) -> Array:
    count = math.prod(shape)
    drawn = uniform(_bits(stream, count))[:count].reshape(shape).astype(np.float64)
    return (2 * drawn - 1) * _scale(count)


def _standard(stream: Philox, shape: tuple[int, ...]) -> Array:
    count = math.prod(shape)
    return normal(_bits(stream, count))[:count].reshape(shape).astype(np.float64)


def _ortho(stream: Philox, shape: tuple[int, ...]) -> Array:
    drawn = _standard(stream, shape)
    if len(shape) < 2 or not drawn.size:
        return drawn
    matrix = drawn.reshape(shape[0], -1)
    wide = matrix.shape[1] > matrix.shape[0]
    found, lengths = np.linalg.qr(matrix.T if wide else matrix)
    found = found * np.where(np.diagonal(lengths) < 0, -1, 1)  # as in the Gram-Schmidt process
    return np.asarray(found.T if wide else found).reshape(shape)


def _scale(count: int) -> float:
    return 1 / math.sqrt(count) if count else 0.0


DISTRIBUTIONS: Mapping[str, Callable[[Philox, tuple[int, ...]], Array]] = {
    "uniform": _uniform,
    "normal": lambda stream, shape: _standard(stream, shape) * _scale(math.prod(shape)),
    "ortho": _ortho,
}
"""The distributions, by their names in attributes."""

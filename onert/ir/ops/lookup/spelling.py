"""Numbers written as strings, and read from them."""

from __future__ import annotations

import re

import numpy as np
from attrs import frozen

from onert.ir import shape as shapes
from onert.ir.dtype import Array, DType
from onert.ir.errors import RuleError
from onert.ir.op import Op, require
from onert.ir.types import CallTypes, TensorType

from .strings import elements, text

_INTEGER = re.compile(r"[ \t\n\v\f\r]*([+-]?[0-9]+)")
_REAL = re.compile(
    r"[ \t\n\v\f\r]*([+-]?(?:(0x(?:[0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)(?:p[+-]?[0-9]+)?)"
    r"|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf(?:inity)?|nan))",
    re.IGNORECASE,
)
"""What C's `strtoll` and `strtod` read; the second group is a hexadecimal number."""

_MOST_DIGITS = 4096
"""The most characters of a number."""

_NAMES = {"nan": "NaN", "inf": "INF", "-inf": "-INF"}


@frozen
class SpellNumbers(Op):
    """Writes numbers as strings: integers and booleans in decimal, floats with up to 8 significant digits, and NaN,
    INF and -INF. Source: ONNX Cast, with ONNX Runtime's number of digits.

    - `x`: real numbers or booleans, any shape
    """

    def infer(self, x: TensorType) -> TensorType:
        require(_is_spelled(x.dtype), f"x is {x}, expected real numbers or booleans")
        return TensorType(DType.STRING, x.shape)

    def rounds(self, types: CallTypes) -> int:
        return (shapes.num_elements(types.input(0).shape) or 0) // 8

    def evaluate(self, x: Array) -> Array:
        if x.dtype.kind in "iub":
            return elements([str(int(n)) for n in x.reshape(-1).tolist()], x.shape)
        written = [f"{n:.8g}" for n in x.astype(np.float64).reshape(-1).tolist()]
        return elements([_NAMES.get(each, each) for each in written], x.shape)


@frozen
class ReadNumbers(Op):
    """Reads the numbers that strings begin with, behind white space; what follows a number is ignored. Source: ONNX
    Cast, with what ONNX Runtime accepts.

    - `x`: strings, any shape

    Numbers for integers and booleans are decimal integers of up to 64 bits, which wrap; those for floats also have a
    point or an exponent, are hexadecimal, or are `inf` or `nan`. Raises RuleError for other strings.
    """

    to: DType

    def infer(self, x: TensorType) -> TensorType:
        require(x.dtype is DType.STRING, f"x is {x}, expected strings")
        require(_is_spelled(self.to), f"the result is {self.to.text}, expected real numbers or booleans")
        return TensorType(self.to, x.shape)

    def rounds(self, types: CallTypes) -> int:
        return (shapes.num_elements(types.input(0).shape) or 0) // 4

    def evaluate(self, x: Array) -> Array:
        texts = map(text, x.reshape(-1).tolist())
        target = self.to.numpy
        if self.to is DType.BOOL or self.to.is_integer:
            most = 1 << 63 if target.kind == "i" else 1 << 64
            found = np.array([_integer(each, most) for each in texts], np.uint64)
            return (found != 0 if self.to is DType.BOOL else found.astype(target)).reshape(x.shape)
        return np.array([_real(each) for each in texts], np.float64).astype(target).reshape(x.shape)


def _is_spelled(dtype: DType) -> bool:
    """Whether elements are real numbers or booleans."""
    return dtype is DType.BOOL or (dtype.is_numeric and not dtype.is_complex)


def _begins(pattern: re.Pattern[str], whole: str) -> re.Match[str]:
    found = pattern.match(whole)
    if found is None or found.end() > _MOST_DIGITS:
        raise RuleError(f"a string is {whole[:40]!r}, expected a number")
    return found


def _integer(whole: str, most: int) -> int:
    """The integer, which is below `most`, modulo 2**64."""
    number = int(_begins(_INTEGER, whole)[1])
    if not -(1 << 63) <= number < most:
        raise RuleError(f"a string is {whole[:40]!r}, expected an integer of 64 bits")
    return number % (1 << 64)


def _real(whole: str) -> float:
    found = _begins(_REAL, whole)
    try:
        number = float.fromhex(found[1]) if found[2] else float(found[1])
    except OverflowError:
        number = float("inf")
    if abs(number) == float("inf") and "inf" not in found[1].lower():
        raise RuleError(f"a string is {whole[:40]!r}, expected a number that is a float64")
    return number

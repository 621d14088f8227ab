"""Numbers that record how they were computed, so that a computation for one length can be repeated for another.

A `Symbolic` number has a value for the lengths that a `Trace` starts from, and an expression in them. Arithmetic
produces symbolic numbers. Every decision that depends on one (a comparison, its use as an index or truth value, or its
`repr`) becomes a condition of the trace. For other lengths for which all conditions hold, the computation takes the
same path, and `Trace.at` computes its numbers.

As dictionary keys, two numbers are equal if they have the same expression, whatever their values: equal numbers are
shared, and less sharing does not change results. Formatting a number in a message is not a decision.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from . import polynomials
from .polynomials import BY_RULE, Polynomial
from .ufuncs import UFUNCS

_Number = TypeVar("_Number", int, float)
Binary = Callable[[Any, Any], Any]

MARK = "Symbolic("  # the start of a symbolic number's `repr`


class OneLengthError(Exception):
    """An operation that needs a concrete length was applied to a symbolic one; the message names it."""


class Trace:
    """Numbers computed from some lengths, each expression once, and the conditions for reusing them for other lengths.

    Every number has an index: first the lengths, then constants and results in order of creation. `values` are the
    numbers for the initial lengths, `most` those for the maximum lengths, `steps` are the index, function and argument
    indices of each result, `conditions` the values that must be the same for other lengths. If computations may be
    repeated for other lengths, `equal` has the first length that each one always equals, and `cases` keeps what was
    found there (`cases.py`).
    """

    def __init__(self, lengths: Sequence[int], most: Sequence[int], equal: Sequence[int] = ()) -> None:
        self._count = len(lengths)
        self.equal = equal
        self.cases: Any = None
        self.values: list[Any] = list(lengths)
        self.most: list[Any] = list(most)
        self.steps: list[tuple[int, Callable[..., Any], tuple[int, ...]]] = []
        self.conditions: dict[int, Any] = {}
        self._known: dict[object, int] = {}
        self._combined: dict[tuple[Binary, tuple[int, int]], Any] = {}
        self._polynomials: dict[int, Polynomial] = {}

    @property
    def lengths(self) -> tuple[int, ...]:
        """The lengths as symbolic numbers."""
        return tuple(cast(int, Symbolic(self, at)) for at in range(self._count))

    def constant(self, value: object) -> int:
        """The index of a constant."""
        key = (type(value), value)
        at = self._known.get(key)
        if at is None:
            at = self._known[key] = len(self.values)
            self.values.append(value)
            self.most.append(value)
        return at

    def result(self, function: Callable[..., Any], *arguments: int) -> int:
        """The index of a function's result."""
        key = (function, arguments)
        at = self._known.get(key)
        if at is None:
            value = function(*(self.values[i] for i in arguments))
            at = self._known[key] = len(self.values)
            self.values.append(value)
            self.most.append(self._at_most(function, arguments, value))
            self.steps.append((at, function, arguments))
        return at

    def polynomial(self, at: int) -> Polynomial | None:
        """A number as a polynomial; None if it is not an integer."""
        found = self._polynomials.get(at)
        if found is None:
            value = self.values[at]
            if type(value) is not int:
                return None
            is_plain = at >= self._count and self._known.get((int, value)) == at
            found = self._polynomials[at] = polynomials.constant(value) if is_plain else {(at,): 1}
        return found

    def sum_of_products(self, polynomial: Polynomial) -> int:
        """The index of a polynomial's value; equal polynomials share one index."""
        total: int | None = None
        for product, count in sorted(polynomial.items(), reverse=True):
            term = None if product else self.constant(abs(count))
            for factor in product:
                term = factor if term is None else self.result(operator.mul, term, factor)
            assert term is not None
            if product and abs(count) != 1:
                term = self.result(operator.mul, term, self.constant(abs(count)))
            if total is None:
                total = term if count > 0 else self.result(operator.neg, term)
            else:
                total = self.result(operator.add if count > 0 else operator.sub, total, term)
        if total is None:
            return self.constant(0)
        self._polynomials.setdefault(total, polynomial)
        return total

    def combined(self, function: Binary, arguments: tuple[int, int]) -> Any:
        """A function's result: a plain number if it is known. It is found once, but for a quotient or a remainder: that
        the divisor is not 0 has to become a condition again."""
        found = self._combined.get((function, arguments))
        if found is None:
            found = self._simplified(function, arguments)
            if function not in _DIVIDING:
                self._combined[function, arguments] = found
        return found

    def _simplified(self, function: Binary, arguments: tuple[int, int]) -> Any:
        rule = BY_RULE.get(function)
        if rule is not None:
            first, second = map(self.polynomial, arguments)
            found = None if first is None or second is None else rule(self, first, second)
            if found is not None:
                return _number(self, found)
        return Symbolic(self, self.result(function, *arguments))

    def _at_most(self, function: Callable[..., Any], arguments: tuple[int, ...], value: Any) -> Any:
        try:
            return function(*(self.most[i] for i in arguments))
        except (ArithmeticError, ValueError):
            return value

    def require(self, at: int) -> Any:
        """Make the value of a number a condition, so that other lengths must give the same; returns it."""
        value = self.conditions[at] = self.values[at]
        return value

    def hold(self, condition: bool) -> None:
        """State that a comparison is a condition, as every comparison of symbolic numbers is."""
        if not condition:
            raise ValueError("a condition does not hold for the lengths that a trace starts from")

    def is_fixed(self, *numbers: int) -> bool:
        """Whether any of these numbers, by index, is a condition and so the same for all lengths of the trace."""
        return any(at in self.conditions for at in numbers)

    def at(self, lengths: Sequence[int]) -> list[Any] | None:
        """All numbers for other lengths, by index; None if a condition does not hold for them."""
        found = [*lengths, *self.values[self._count :]]
        conditions = self.conditions
        try:
            for at, function, arguments in self.steps:
                if len(arguments) == 2:
                    first, second = arguments
                    value = found[at] = function(found[first], found[second])
                else:
                    value = found[at] = function(*[found[i] for i in arguments])
                if at in conditions and value != conditions[at]:
                    return None
        except (ArithmeticError, ValueError):
            return None
        return found if all(found[i] == conditions[i] for i in range(self._count) if i in conditions) else None


def _forward(function: Binary) -> Binary:
    def computed(self: Symbolic, other: object) -> Any:
        return self._with(function, other)

    return computed


def _backward(function: Binary) -> Binary:
    def computed(self: Symbolic, other: object) -> Any:
        return self._with(function, other, swapped=True)

    return computed


def _decided(function: Binary) -> Binary:
    def compared(self: Symbolic, other: object) -> Any:
        if other is None:  # by far the most frequent: whether a size is unknown
            return NotImplemented
        if isinstance(other, Symbolic) and other.index == self.index and other.trace is self.trace:
            return bool(function(0, 0))
        found = self._with(function, other)
        return found.trace.require(found.index) if isinstance(found, Symbolic) else found

    return compared


def _alone(function: Callable[[Any], Any]) -> Callable[..., Any]:
    def computed(self: Symbolic, *digits: object) -> Any:
        if digits:
            raise OneLengthError(f"a symbolic length is rounded to {digits[0]} digits")
        if function is not operator.abs and self.trace.polynomial(self.index) is not None:
            return self  # an integer is already rounded
        return Symbolic(self.trace, self.trace.result(function, self.index))

    return computed


def _number(trace: Trace, found: Polynomial | bool) -> Any:
    """The value of a polynomial; a plain integer if it is constant."""
    if isinstance(found, bool):
        return found
    plain = polynomials.value_of(found)
    return Symbolic(trace, trace.sum_of_products(found)) if plain is None else plain


_DIVIDING = frozenset((operator.floordiv, operator.mod))


class Symbolic:
    """A number of a trace."""

    __slots__ = ("index", "trace")

    def __init__(self, trace: Trace, index: int) -> None:
        self.trace = trace
        self.index = index

    @property
    def value(self) -> Any:
        """The value for the initial lengths. A decision based on it must be justified, because it adds no condition."""
        return self.trace.values[self.index]

    def _with(self, function: Binary, other: object, *, swapped: bool = False) -> Any:
        trace = self.trace
        if isinstance(other, Symbolic):
            right = other.index
        elif isinstance(other, int | float):
            right = trace.constant(other)
        else:
            try:
                right = trace.constant(operator.index(cast(Any, other)))
            except TypeError:
                return NotImplemented
        return trace.combined(function, (right, self.index) if swapped else (self.index, right))

    __add__, __radd__ = _forward(operator.add), _backward(operator.add)
    __sub__, __rsub__ = _forward(operator.sub), _backward(operator.sub)
    __mul__, __rmul__ = _forward(operator.mul), _backward(operator.mul)
    __floordiv__, __rfloordiv__ = _forward(operator.floordiv), _backward(operator.floordiv)
    __truediv__, __rtruediv__ = _forward(operator.truediv), _backward(operator.truediv)
    __mod__, __rmod__ = _forward(operator.mod), _backward(operator.mod)
    __pow__, __rpow__ = _forward(operator.pow), _backward(operator.pow)
    __lshift__, __rlshift__ = _forward(operator.lshift), _backward(operator.lshift)
    __rshift__, __rrshift__ = _forward(operator.rshift), _backward(operator.rshift)
    __and__, __rand__ = _forward(operator.and_), _backward(operator.and_)
    __or__, __ror__ = _forward(operator.or_), _backward(operator.or_)
    __lt__, __le__ = _decided(operator.lt), _decided(operator.le)
    __gt__, __ge__ = _decided(operator.gt), _decided(operator.ge)
    __eq__, __ne__ = _decided(operator.eq), _decided(operator.ne)
    __pos__, __abs__ = _alone(operator.pos), _alone(operator.abs)
    __ceil__, __floor__, __round__ = _alone(math.ceil), _alone(math.floor), _alone(round)

    def __neg__(self) -> Any:
        if self.trace.polynomial(self.index) is not None:
            return self._with(operator.mul, -1)
        return Symbolic(self.trace, self.trace.result(operator.neg, self.index))

    def __divmod__(self, other: object) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: object) -> Any:
        return other // self, other % self

    def __array_ufunc__(self, ufunc: Any, method: str, *given: Any, **named: Any) -> Any:
        """Arithmetic with NumPy scalars. Raises OneLengthError if the number is combined with an array."""
        function = UFUNCS.get(ufunc.__name__)
        if function is None or method != "__call__" or named or any(getattr(x, "ndim", 0) for x in given):
            raise OneLengthError(f"NumPy's {ufunc.__name__} is applied to a symbolic length")
        return function(*(x if isinstance(x, Symbolic) else x.item() if hasattr(x, "item") else x for x in given))

    def __getattr__(self, name: str) -> Any:
        """Raises OneLengthError for a missing attribute, or AttributeError for names that Python and NumPy probe."""
        if name.startswith("__") or name == "ndim":
            raise AttributeError(name)
        raise OneLengthError(f"the attribute {name} of a symbolic length is used")

    def bit_length(self) -> int:
        """The integer's bit length, which becomes a condition."""
        return int(self.trace.require(self.trace.result(int.bit_length, self.index)))

    def __bool__(self) -> bool:
        return bool(self.trace.require(self.trace.result(bool, self.index)))

    def __hash__(self) -> int:
        return hash((Symbolic, self.index))

    def __index__(self) -> int:
        return operator.index(self._relied())

    def __int__(self) -> int:
        return int(self._relied())

    def __float__(self) -> float:
        return float(self._relied())

    def __repr__(self) -> str:
        return f"{MARK}{self._relied()!r})"

    def __str__(self) -> str:
        return str(self.value)  # used in messages, which are not decisions

    def __format__(self, spec: str) -> str:
        return format(self.value, spec)

    def _relied(self) -> Any:
        return self.trace.require(self.index)


class Computed:
    """The value of a function of numbers that may be symbolic: computed once these are known."""

    __slots__ = ("function", "numbers")

    def __init__(self, function: Callable[..., Any], numbers: tuple[Any, ...]) -> None:
        self.function = function
        self.numbers = numbers


def where_greater_of(a: Any, b: Any, then: Any, otherwise: Any) -> Any:
    """`where_greater` for plain numbers."""
    return then if a > b else otherwise


def where_greater(a: Any, b: Any, then: Any, otherwise: Any) -> Any:
    """`then` if `a > b`, else `otherwise`; adds no condition."""
    given = (a, b, then, otherwise)
    if Symbolic not in map(type, given):
        return where_greater_of(*given)
    trace = next(x.trace for x in given if isinstance(x, Symbolic))
    indices = [x.index if isinstance(x, Symbolic) else trace.constant(x) for x in given]
    first, second = map(trace.polynomial, indices[:2])
    greater = None if first is None or second is None else BY_RULE[operator.gt](trace, first, second)
    if isinstance(greater, bool):
        return then if greater else otherwise
    return Symbolic(trace, trace.result(where_greater_of, *indices))


def maximum(a: Any, b: Any) -> Any:
    """The greater of two numbers; adds no condition."""
    return where_greater(a, b, a, b)


def minimum(a: Any, b: Any) -> Any:
    """The lesser of two numbers; adds no condition."""
    return where_greater(a, b, b, a)


def is_symbolic(value: object) -> bool:
    """Whether a value is a symbolic number."""
    return isinstance(value, Symbolic)


def has_symbols(array: Any) -> bool:
    """Whether any element of an object array is a symbolic number."""
    return any(map(is_symbolic, array.reshape(-1)))


def hint(number: _Number) -> _Number:
    """The number for the initial lengths: for choices that do not affect results."""
    symbolic: Any = number
    return cast(_Number, symbolic.value) if isinstance(symbolic, Symbolic) else number


def decided(function: Callable[..., Any], *numbers: int) -> Any:
    """The result of a function of numbers, which becomes a condition. Equal functions are called once.

    A function may have a method `results`: an integer array of all results below given bounds, an axis per argument.
    """
    found = computed(function, *numbers)
    return found._relied() if isinstance(found, Symbolic) else found


def computed(function: Callable[..., Any], *numbers: int) -> Any:
    """The result of a function of numbers, like `decided`, but symbolic; adds no condition."""
    values: Sequence[Any] = numbers
    trace = next((value.trace for value in values if is_symbolic(value)), None)
    if trace is None:
        return function(*numbers)
    at = (value.index if isinstance(value, Symbolic) else trace.constant(value) for value in values)
    return Symbolic(trace, trace.result(function, *at))


def largest(number: int) -> int:
    """An upper bound of a number for all lengths of the trace; it becomes a condition."""
    symbolic: Any = number
    if not isinstance(symbolic, Symbolic):
        return number
    most: int = max(symbolic.value, symbolic.trace.most[symbolic.index])
    return most if symbolic <= most else number

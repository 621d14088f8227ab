"""Integers as polynomials, so that numbers that are always equal are known to be equal.

A polynomial maps each product, given as the sorted trace indices of its factors, to its coefficient; the empty product
is 1, and the empty mapping is 0. Equal polynomials have equal values for all lengths.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, Protocol

Product = tuple[int, ...]
Polynomial = Mapping[Product, int]

MOST_TERMS, MOST_FACTORS = 8, 8
"""The maximum number of terms, and of factors in a term; a larger polynomial is treated as an opaque number."""


def constant(value: int) -> Polynomial:
    """The polynomial of a constant."""
    return {(): value} if value else {}


def value_of(polynomial: Polynomial) -> int | None:
    """The constant value of a polynomial; None if its value depends on the lengths."""
    if not polynomial:
        return 0
    return polynomial.get(()) if len(polynomial) == 1 else None


def added(a: Polynomial, b: Polynomial, times: int = 1) -> Polynomial | None:
    """`a + times * b`; None if that is too large."""
    found = dict(a)
    for product, count in b.items():
        found[product] = found.get(product, 0) + times * count
    return _bounded(found)


def multiplied(a: Polynomial, b: Polynomial) -> Polynomial | None:
    """`a * b`; None if that is too large."""
    found: dict[Product, int] = {}
    for first, count in a.items():
        for second, times in b.items():
            product = tuple(sorted(first + second))
            found[product] = found.get(product, 0) + count * times
    return _bounded(found)


def divided(a: Polynomial, product: Product, count: int) -> tuple[Polynomial, Polynomial] | None:
    """Quotient and remainder: `a = quotient * count * product + remainder`, for `product` not 0 and `count` positive.
    None if no term of a nonzero `a` can be divided.
    """
    quotient: dict[Product, int] = {}
    rest: dict[Product, int] = {}
    for each, times in a.items():
        left = _without(each, product)
        whole, more = divmod(times, count)
        if left is None or (more and left) or (product and more):
            rest[each] = times
        else:
            if whole:
                quotient[left] = whole
            if more:
                rest[each] = more
    return (quotient, rest) if quotient or not rest else None


def _without(product: Product, factors: Product) -> Product | None:
    """A product divided by some factors; None if it does not contain them all."""
    left = list(product)
    for factor in factors:
        if factor not in left:
            return None
        left.remove(factor)
    return tuple(left)


def _bounded(found: dict[Product, int]) -> Polynomial | None:
    kept = {product: count for product, count in found.items() if count}
    if len(kept) > MOST_TERMS or any(len(product) > MOST_FACTORS for product in kept):
        return None
    return kept


class Numbers(Protocol):
    """The operations of a trace that rules use."""

    def constant(self, value: object) -> int:
        """The index of a constant."""

    def result(self, function: Callable[..., Any], *arguments: int) -> int:
        """The index of a function's result."""

    def sum_of_products(self, polynomial: Polynomial) -> int:
        """The index of a polynomial's value."""

    def require(self, at: int) -> Any:
        """Make the value of a number a condition; returns it."""


Rule = Callable[[Numbers, Polynomial, Polynomial], "Polynomial | bool | None"]
"""What a function of two numbers simplifies to: a polynomial, a truth value, or None if nothing is known."""


def _quotient(numbers: Numbers, a: Polynomial, b: Polynomial) -> tuple[Polynomial, Polynomial] | None:
    """The quotient of `a` and `b` as far as it is known, and the remainder still to be divided. That `b` is not 0
    becomes a condition."""
    if len(b) != 1:
        return _times(numbers, a, b)
    ((product, count),) = b.items()
    parts = divided(a, product, count) if count > 0 else None
    if parts is None or (product and parts[1]):
        return None
    for factor in product:
        numbers.require(numbers.result(operator.ne, factor, numbers.constant(0)))
    return parts


def _times(numbers: Numbers, a: Polynomial, b: Polynomial) -> tuple[Polynomial, Polynomial] | None:
    """The quotient if `a` is an integer multiple of the sum `b`. That `b` is not 0 becomes a condition."""
    product, count = next(iter(b.items()), ((), 1))
    times = a.get(product, 0) // count
    if not b or added(a, b, -times) != {}:
        return None
    is_some = numbers.require(numbers.result(operator.ne, numbers.sum_of_products(b), numbers.constant(0)))
    return (constant(times), {}) if is_some else None


def _of_rest(numbers: Numbers, function: Callable[[Any, Any], Any], rest: Polynomial, b: Polynomial) -> Polynomial:
    """The quotient or the remainder of the part that is still to be divided."""
    first, second = value_of(rest), value_of(b)
    if not rest:
        return {}
    if first is not None and second is not None:
        return constant(function(first, second))
    return {(numbers.result(function, *map(numbers.sum_of_products, (rest, b))),): 1}


def _divided(numbers: Numbers, a: Polynomial, b: Polynomial) -> Polynomial | None:
    found = _quotient(numbers, a, b)
    return None if found is None else added(found[0], _of_rest(numbers, operator.floordiv, found[1], b))


def _remainder(numbers: Numbers, a: Polynomial, b: Polynomial) -> Polynomial | None:
    found = _quotient(numbers, a, b)
    return None if found is None else _of_rest(numbers, operator.mod, found[1], b)


def _compared(function: Callable[[Any, Any], Any]) -> Rule:
    """A comparison of numbers whose difference is constant."""

    def rule(_: Numbers, a: Polynomial, b: Polynomial) -> bool | None:
        apart = added(a, b, -1)
        difference = None if apart is None else value_of(apart)
        return None if difference is None else bool(function(difference, 0))

    return rule


BY_RULE: dict[Callable[[Any, Any], Any], Rule] = {
    operator.add: lambda _, a, b: added(a, b),
    operator.sub: lambda _, a, b: added(a, b, -1),
    operator.mul: lambda _, a, b: multiplied(a, b),
    operator.floordiv: _divided,
    operator.mod: _remainder,
    **{
        function: _compared(function)
        for function in (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne)
    },
}

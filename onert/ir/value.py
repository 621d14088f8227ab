"""What attrs classes have in common, written once instead of generated for each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from operator import attrgetter
from typing import Any

from attrs import fields


class Value:
    """A base of `attrs.frozen` classes: values of one class are equal where their fields are, and are told by them.

    attrs writes source text for these methods and compiles it, a fifth of a millisecond for every class that a process
    reads. It leaves alone what a class has of its own, so each subclass is given these. Fields are left out with `eq`
    and `repr` as in attrs; for a class whose values are equal only to themselves (`frozen(eq=False)`) this is no base.
    """

    __slots__ = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        _give(cls, ("__eq__", "__hash__", "__repr__"))

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        kind: Any = self.__class__
        compared = _compared(kind)
        return bool(compared(self) == compared(other))

    def __hash__(self) -> int:
        kind: Any = type(self)
        return hash(_compared(kind)(self))

    def __repr__(self) -> str:
        kind: Any = type(self)
        told = (f"{a.alias}={getattr(self, a.name)!r}" for a in fields(kind) if a.repr)
        return f"{kind.__qualname__}({', '.join(told)})"


class Told:
    """A base of `attrs.frozen(eq=False)` classes: each value is equal only to itself, and told by its fields."""

    __slots__ = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        _give(cls, ("__repr__",))


def _give(cls: type[Any], names: Iterable[str]) -> None:
    """Have a class own methods of `Value`, unless it has others: attrs leaves alone what a class itself has."""
    for name in names:
        if name not in cls.__dict__:
            setattr(cls, name, Value.__dict__[name])


@cache
def _compared(kind: Any) -> Callable[[object], object]:
    """What gives the class and the fields that are compared: a tuple, in which a NaN equals itself as in attrs."""
    return attrgetter("__class__", *(a.name for a in fields(kind) if a.eq))

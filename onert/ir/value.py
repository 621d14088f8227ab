"""What attrs classes have in common, written once instead of generated for each."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import Any

from attrs import fields

_OWN = ("__eq__", "__hash__", "__repr__")


class Value:
    """A base of `attrs.frozen` classes: values of one class are equal where their fields are, and are told by them.

    attrs writes source text for these methods and compiles it, a fifth of a millisecond for every class that a process
    reads. It leaves alone what a class has of its own, so each subclass is given these. Fields are left out with `eq`
    and `repr` as in attrs; for a class whose values are equal only to themselves (`frozen(eq=False)`) this is no base.
    """

    __slots__ = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in _OWN:
            if name not in cls.__dict__:
                setattr(cls, name, Value.__dict__[name])

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


@cache
def _compared(kind: Any) -> Callable[[object], object]:
    """What gives the class and the fields that are compared: a tuple, in which a NaN equals itself as in attrs."""
    return attrgetter("__class__", *(a.name for a in fields(kind) if a.eq))

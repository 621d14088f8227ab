"""Methods shared by attrs classes, written once instead of generated for each class, and by enumerations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from functools import cache
from operator import attrgetter
from typing import Any

from attrs import fields


class Value:
    """A base of `attrs.frozen` classes whose values are compared, hashed and printed by their fields.

    attrs generates and compiles source text for these methods, a fifth of a millisecond for every class that a process
    imports. It does not replace methods that a class defines itself, so each subclass is given these. `eq=False` and
    `repr=False` exclude a field, as in attrs. Not for classes compared by identity (`frozen(eq=False)`).
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


class ByIdentity:
    """A base of `attrs.frozen(eq=False)` classes: values are compared by identity and printed by their fields."""

    __slots__ = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        _give(cls, ("__repr__",))


class NamedKind(Enum):
    """A base of enumerations whose values have functions, which may not be pickled: members are pickled by name."""

    def __reduce_ex__(self, protocol: Any) -> tuple[Callable[..., Any], tuple[Any, str]]:
        return getattr, (type(self), self.name)


def _give(cls: type[Any], names: Iterable[str]) -> None:
    """Define methods of `Value` on the class itself, unless it has its own: attrs does not replace a class's own."""
    for name in names:
        if name not in cls.__dict__:
            setattr(cls, name, Value.__dict__[name])


@cache
def _compared(kind: Any) -> Callable[[object], object]:
    """A function that returns an instance's class and compared fields, as a tuple so that a NaN equals itself."""
    return attrgetter("__class__", *(a.name for a in fields(kind) if a.eq))

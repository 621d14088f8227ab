"""A property that is computed once: `functools.cached_property` without the lock that it has before Python 3.12.

That lock is shared by all instances of a class. A child that is forked while another thread computes the property would
wait for it for ever, as would other threads if a signal handler raises in the thread that holds it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

_T = TypeVar("_T")


class cached(Generic[_T]):  # noqa: N801 # used as a decorator, like property
    """Computed on first read, then an attribute of the instance. Racing threads may compute it twice, but all get the
    same object."""

    def __init__(self, compute: Callable[[Any], _T]) -> None:
        self._compute = compute
        self._name = compute.__name__
        self.__doc__ = compute.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type) -> _T: ...

    def __get__(self, instance: object | None, owner: type) -> _T | Self:
        if instance is None:
            return self
        found: _T = instance.__dict__.setdefault(self._name, self._compute(instance))
        return found

"""A property that is computed once: `functools.cached_property` without the lock that it has until Python 3.12.

That lock is one for all instances of a class. A child that is forked while another thread computes the property would
wait for it for ever, and so would other threads where a signal handler raises in the one that holds it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

_T = TypeVar("_T")


class cached(Generic[_T]):  # noqa: N801 # used as a decorator, like property
    """Computed when it is first read, then an attribute of the instance. Threads that race may compute it twice; all
    are given the same object."""

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

"""Rebuilding values with plain numbers in place of symbolic ones."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import partial
from types import FunctionType, MappingProxyType
from typing import Any

import attrs
import numpy as np

from onert.backend import HOST, Backend
from onert.backend.residents import DeviceConstants
from onert.ir import Constant, Operand, TensorType
from onert.ir.shape import static
from onert.ir.symbolic.trace import Computed, OneLengthError, Symbolic, Trace

_LEAVES = (int, float, complex, str, bytes, Enum, np.dtype, np.generic, Backend, type(HOST), DeviceConstants, type)
_Step = Callable[[list[Any]], Any]


class UnknownValueError(OneLengthError):
    """A value may contain symbolic numbers that cannot be found."""


class Substitution:
    """Rebuilds a value: parts without symbolic numbers are reused, shared parts are rebuilt once.

    A number that the trace's conditions fix is the same for all lengths, and so no longer symbolic.
    """

    def __init__(self, trace: Trace, value: object) -> None:
        self._trace = trace
        self._visited: dict[int, tuple[bool, Any]] = {}
        self._alive: list[object] = []
        self._steps: list[_Step] = []
        self._first = len(trace.values)
        self._whole = self._visit(value)
        self._visited.clear()
        self._alive.clear()

    def value(self, numbers: list[Any]) -> Any:
        """The value with these numbers, in the order of the trace's indices."""
        found = list(numbers)
        add = found.append
        for step in self._steps:
            add(step(found))
        is_rebuilt, place = self._whole
        return found[place] if is_rebuilt else place

    def _visit(self, value: object) -> tuple[bool, Any]:
        """(True, index of the rebuilt part) if a value has to be rebuilt, otherwise (False, the value)."""
        if value is None or isinstance(value, _LEAVES):
            return False, value
        if isinstance(value, Constant):
            if value.is_symbolic:
                raise UnknownValueError("a constant has symbolic elements")
            return False, value
        if isinstance(value, Symbolic):
            fixed = self._trace.is_fixed(value.index)
            return (False, value.value) if fixed else (True, value.index)
        known = self._visited.get(id(value))
        if known is None:
            known = self._visited[id(value)] = self._rebuild(value)
            self._alive.append(value)
        return known

    def _rebuild(self, value: Any) -> tuple[bool, Any]:
        if isinstance(value, Computed):
            return self._rebuilt(value, value.numbers, lambda arguments: value.function(*arguments))
        if isinstance(value, Operand) and value.data is not None and value.data.is_symbolic:
            elements = value.data.array.reshape(-1).tolist()
            return self._rebuilt(value, [value.type, *elements], partial(_constant, value))
        if isinstance(value, np.ndarray):
            if value.dtype == object and any(isinstance(element, Symbolic) for element in value.reshape(-1)):
                raise UnknownValueError("an array contains symbolic numbers")
            return False, value
        if type(value) in (tuple, list):
            return self._rebuilt(value, value, type(value))
        if isinstance(value, dict | MappingProxyType):
            keys = tuple(value)
            for key in keys:
                if self._visit(key)[0]:
                    raise UnknownValueError("a key is symbolic")
            return self._rebuilt(value, tuple(value.values()), lambda parts: dict(zip(keys, parts, strict=True)))
        if isinstance(value, frozenset | set):
            if any(self._visit(each)[0] for each in value):
                raise UnknownValueError("a set contains symbolic numbers")
            return False, value
        if isinstance(value, FunctionType) and value.__closure__ is None:
            return False, value
        kind = type(value)
        if not attrs.has(kind):
            raise UnknownValueError(f"the contents of a {kind.__qualname__} are unknown")
        fields = [a for a in attrs.fields(kind) if a.init]
        parts = [getattr(value, a.name) for a in fields]
        if any(a.kw_only for a in fields):
            names = [a.alias for a in fields]
            return self._rebuilt(value, parts, lambda arguments: kind(**dict(zip(names, arguments, strict=True))))
        return self._rebuilt(value, parts, lambda arguments: kind(*arguments))

    def _rebuilt(self, value: object, parts: Any, build: Callable[[Any], Any]) -> tuple[bool, Any]:
        """A value that `build` makes from its parts."""
        found = [self._visit(part) for part in parts]
        rebuilt = [(at, place) for at, (is_rebuilt, place) in enumerate(found) if is_rebuilt]
        if not rebuilt:
            same = all(place is part for (_, place), part in zip(found, parts, strict=True))
            return False, value if same else build([place for _, place in found])
        fixed = [None if is_rebuilt else place for is_rebuilt, place in found]

        def step(numbers: list[Any]) -> Any:
            arguments = fixed.copy()
            for at, place in rebuilt:
                arguments[at] = numbers[place]
            return build(arguments)

        self._steps.append(step)
        return True, self._first + len(self._steps) - 1


def _constant(operand: Operand, parts: list[Any]) -> Operand:
    """A constant operand with formerly symbolic elements; `parts` has its type, then the elements."""
    type_: TensorType = parts[0]
    array = np.array(parts[1:], type_.dtype.numpy).reshape(static(type_.shape))
    return attrs.evolve(operand, type=type_, data=Constant(array))

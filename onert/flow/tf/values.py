"""Values of TensorFlow tensors during extraction, and lists of tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import frozen

from onert.flow.builder import Builder
from onert.flow.graph import Variable
from onert.ir import Array, ModelError


@frozen(eq=False)
class Resource:
    """A handle of a variable: the tensor that holds it, and the variable's name in the flow."""

    name: str
    tensor: Any


Tensor = Variable | Array
"""A tensor: a variable if it is computed, an array if it is known before the graph runs."""
Items = tuple[Tensor | None, ...]
"""A list of tensors, None for items that were not set."""
Value = Tensor | Resource | Items
AsVariable = Callable[[Tensor, str], Variable]
"""Returns the variable for a tensor; an array becomes a constant with the given name."""
_LONGEST = 4096


def known(value: Value, what: str) -> Array:
    """The elements of a tensor. Raises ModelError if they are computed."""
    if not isinstance(value, np.ndarray):
        raise ModelError(f"{what} depends on an input, expected a constant")
    return value


def _items(value: Value, name: str) -> Items:
    if not isinstance(value, tuple):
        raise ModelError(f"'{name}' needs a list of tensors of known length")
    return value


def _length(count: int, name: str) -> int:
    if not 0 <= count <= _LONGEST:
        raise ModelError(f"'{name}' has a list of {count} tensors, expected at most {_LONGEST}")
    return count


def _reserve(f: Builder, name: str, given: Sequence[Value], as_variable: AsVariable) -> Value:
    count = int(known(given[1], f"the length of the list of '{name}'"))
    return (None,) * _length(count, name)


def _from_tensor(f: Builder, name: str, given: Sequence[Value], as_variable: AsVariable) -> Value:
    """The rows of a tensor."""
    rows = given[0]
    if isinstance(rows, np.ndarray):
        return tuple(rows[: _length(len(rows), name)])
    assert isinstance(rows, Variable)
    count = _length(rows.shape[0], name)
    parts = f.split(rows, count, 0, name) if count else ()
    return tuple(f.reshape(part, rows.shape[1:], f"{name}/item") for part in parts)


def _get(f: Builder, name: str, given: Sequence[Value], as_variable: AsVariable) -> Value:
    items, at = _items(given[0], name), int(known(given[1], f"the index of '{name}'"))
    found = items[at] if 0 <= at < len(items) else None
    if found is not None:
        return found
    shape = tuple(int(size) for size in np.atleast_1d(known(given[2], f"the shape of '{name}'")))
    raise ModelError(f"'{name}' reads item {at} {list(shape)} of a list of {len(items)}, which was never set")


def _set(f: Builder, name: str, given: Sequence[Value], as_variable: AsVariable) -> Value:
    items, at = _items(given[0], name), int(known(given[1], f"the index of '{name}'"))
    item = given[2]
    if isinstance(item, tuple | Resource):
        raise ModelError(f"'{name}' sets a list item that is not a tensor")
    longer = items + (None,) * (_length(at + 1, name) - len(items))
    return (*longer[:at], item, *longer[at + 1 :])


def _push(f: Builder, name: str, given: Sequence[Value], as_variable: AsVariable) -> Value:
    items = _items(given[0], name)
    return _set(f, name, (items, np.array(len(items)), given[1]), as_variable)


def _stack(f: Builder, name: str, given: Sequence[Value], as_variable: AsVariable) -> Value:
    """The items as rows of one tensor."""
    items = _items(given[0], name)
    if not items or any(item is None for item in items):
        raise ModelError(f"'{name}' stacks a list of {len(items)} items, some of which were never set")
    if all(isinstance(item, np.ndarray) for item in items):
        return np.stack([np.asarray(item) for item in items])
    parts = [as_variable(item, f"{name}/{at}") for at, item in enumerate(items) if item is not None]
    rows = [f.reshape(part, [1, *part.shape], f"{name}/item") for part in parts]
    return f.concat(rows, name, axis=0) if len(rows) > 1 else f.identity(rows[0], name)


ListRule = Callable[[Builder, str, Sequence[Value], AsVariable], Value]
LISTS: Mapping[str, ListRule] = {
    "TensorListReserve": _reserve,
    "EmptyTensorList": lambda f, name, given, as_variable: (),
    "TensorListFromTensor": _from_tensor,
    "TensorListGetItem": _get,
    "TensorListSetItem": _set,
    "TensorListPushBack": _push,
    "TensorListStack": _stack,
    "TensorListLength": lambda f, name, given, as_variable: np.array(len(_items(given[0], name)), np.int32),
}
"""Operations on lists of tensors: each returns the value of its only result."""

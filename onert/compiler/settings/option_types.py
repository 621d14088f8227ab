"""The type of each option, with what an error says about a wrong one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

Holds = Callable[[Any], bool]


def whole(value: object) -> bool:
    """Whether a value is a whole number; booleans are not."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _number(value: object) -> bool:
    """Whether a value is a whole or a floating-point number."""
    return whole(value) or isinstance(value, float | np.floating)


def _optional(holds: Holds) -> Holds:
    return lambda value: value is None or holds(value)


def _is(kind: type) -> Holds:
    return lambda value: isinstance(value, kind)


def _mapping(key: Holds, value: Holds) -> Holds:
    return lambda given: isinstance(given, Mapping) and all(key(k) and value(v) for k, v in given.items())


def _texts(kind: type[tuple[Any, ...]] | type[frozenset[Any]]) -> Holds:
    return lambda value: isinstance(value, kind) and all(isinstance(each, str) for each in list(value))


def _shape(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes) and all(map(whole, value))


_TEXT, _FLAG = (_is(str), "a string"), (_is(bool), "True or False")
_KINDS: Mapping[str, tuple[Holds, str]] = {
    "backends": (_texts(tuple), "a tuple of names such as ('llvm',)"),
    "executor": _TEXT,
    "num_threads": (whole, "a whole number"),
    "planner": _TEXT,
    "op_backend_allops": (_optional(_is(str)), "the name of a backend, or None"),
    "op_backend": (_mapping(_is(str), _is(str)), "a dictionary such as {'Conv2D': 'llvm'}"),
    "op_backend_map": (_mapping(whole, _is(str)), "a dictionary such as {0: 'llvm'}"),
    "signature": (_optional(_is(str)), "the key of a signature, or None"),
    "input_shapes": (
        _mapping(lambda key: isinstance(key, str) or whole(key), _shape),
        "a dictionary from names or positions to shapes such as {'x': (1, 8)}",
    ),
    "max_iterations": (_optional(whole), "a whole number, or None"),
    "max_memory": (_optional(whole), "a whole number, or None"),
    "max_work": (_optional(whole), "a whole number, or None"),
    "optimize": _FLAG,
    "disabled_passes": (_texts(frozenset), "a set of names such as {'fold_constants'}"),
    "extensions": (_is(tuple), "a tuple of extensions or of their names such as ('name',)"),
    "target": _TEXT,
    "precision": _TEXT,
    "tune": (_optional(_number), "a number of seconds, or None"),
    "extra": (_mapping(_is(str), _is(str)), "a dictionary such as {'name': 'value'}"),
    "workspace_dir": (_is(str), "a path"),
    "use_scheduler": _FLAG,
    "tracing": _FLAG,
    "profiling": _FLAG,
    "minmax_dump": _FLAG,
    "trace_filepath": (_optional(_is(str)), "a path, or None"),
    "log": _FLAG,
    "graph_dot_dump": (lambda value: whole(value) and 0 <= value <= 2, "0, 1 or 2"),
}


def wrong_type(name: str, value: object) -> str | None:
    """The rest of the error message, after the option's name, for a value of a wrong type; None for a right one."""
    if name not in _KINDS:
        return None
    holds, expected = _KINDS[name]
    if holds(value):
        return None
    said = repr(value)
    return f"is {said if len(said) < 80 else 'a ' + type(value).__name__}, expected {expected}"


def tupled(value: Any) -> Any:
    """A list as a tuple; any other value unchanged."""
    return tuple(value) if isinstance(value, list) else value


def as_set(value: Any) -> Any:
    """A set, list or tuple as a frozen set; any other value unchanged."""
    return frozenset(value) if isinstance(value, set | list | tuple) else value


def path_text(value: Any) -> Any:
    """A path as text; any other value unchanged."""
    return os.fsdecode(value) if isinstance(value, os.PathLike) else value

"""The closed list of classes that a serialised program may contain, and their names.

The list has the values that programs consist of, this project's operation kinds with the enumerations and values that
are their attributes, and the classes that the program's backends list for their kernels. A name in an entry can only
select one of these, and the only modules imported by name are those of `onert.ir.ops`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from functools import cache
from types import NoneType
from typing import Any

import numpy as np
from attrs import Attribute, fields, has

import onert.ir.ops
from onert.backend import HOST, Backend, Group, Memory, Program, Routine, Step
from onert.backend import Sequence as Operations
from onert.backend.memory import ArenaPlan, Placement
from onert.backend.program import TensorInfo
from onert.ir import (
    CallTypes,
    Constant,
    DType,
    Operand,
    Operation,
    Package,
    Quantization,
    Resource,
    Signature,
    SignatureTensor,
    StateUpdate,
    Subgraph,
    Subgraphs,
    TensorType,
)
from onert.ir.package import Connection, Port
from onert.ir.process import imports
from onert.ir.quant import Numbers

CORE: tuple[type[Any], ...] = (
    *(Program, Routine, Step, Operations, Group, ArenaPlan, Placement, TensorInfo),
    *(Subgraph, Operand, Resource, Operation, TensorType, Quantization, StateUpdate, DType, CallTypes),
    *(Package, Port, Connection, Subgraphs, Signature, SignatureTensor),
)
"""The classes, including enumerations, that programs and packages consist of."""

LATER: Mapping[str, str] = {"Folded": "onert.compiler.rewrite.per_length"}
"""Classes that few programs contain, by name, with the module that is imported for them."""

_OPS = "onert.ir.ops."
_PLAIN: Mapping[str, tuple[type[Any], ...]] = {
    "None": (NoneType,),
    "bool": (bool,),
    "int": (int, bool),
    "float": (float, int),
    "str": (str,),
    "bytes": (bytes,),
    "tuple": (tuple,),
    "Shape": (tuple,),
    "dict": (dict,),
    "Mapping": (dict,),
    "Array": (np.ndarray,),
    "Constant": (Constant,),
    "Numbers": (Numbers,),
}
"""The types that a field's values may have, by the first name in its annotation."""


class Records:
    """The classes by name, including the classes and memories of the program's `backends`."""

    def __init__(self, backends: Iterable[Backend] = ()) -> None:
        of_backends = [(f"{b.name}:{kind.__qualname__}", kind) for b in backends for kind in b.serializable]
        self._classes = {kind.__qualname__: kind for kind in CORE} | dict(of_backends)
        self._names = {kind: name for name, kind in self._classes.items()}
        self.memories: Mapping[str, Memory] = {m.name: m for m in (HOST, *(b.memory for b in backends))}
        self._accepted: dict[Any, frozenset[type[Any]] | None] = {}

    def name(self, kind: type[Any]) -> str | None:
        """The name of a class; None if its values cannot be serialised."""
        found = self._names.get(kind)
        if LATER.get(kind.__qualname__) == kind.__module__:
            return kind.__qualname__
        if found is None and kind.__module__.startswith(_OPS) and (has(kind) or issubclass(kind, Enum)):
            found = self._names[kind] = f"{kind.__module__.removeprefix(_OPS)}.{kind.__qualname__}"
        return found

    def kind(self, name: str) -> type[Any]:
        """The class with a name. Raises LookupError if there is none."""
        found = self._classes.get(name)
        if found is None:
            module, _, class_name = name.rpartition(".")
            if name in LATER:
                later: type[Any] = vars(imports.module(LATER[name]))[name]
                return later
            if not _is_family(module):
                raise LookupError(f"{name!r} is not a class that a program may contain")
            found = vars(imports.module(_OPS + module))[class_name]
            if not isinstance(found, type) or self.name(found) != name:
                raise LookupError(f"{name!r} is not a class that a program may contain")
            self._classes[name] = found
        return found

    def expect(self, names: Iterable[str]) -> None:
        """Import the modules of these classes together, ahead of use."""
        modules = {name.rpartition(".")[0]: None for name in names if name not in self._classes}
        imports.ahead(_OPS + module for module in modules if _is_family(module))

    def accepts(self, attribute: Attribute[Any], values: Sequence[Any]) -> bool:
        """Whether a field may have these values; True if its annotation names other than plain and listed types."""
        annotation = attribute.type
        if annotation not in self._accepted:
            self._accepted[annotation] = self._types(annotation)
        allowed = self._accepted[annotation]
        return allowed is None or allowed.issuperset(map(type, values))

    def _types(self, annotation: Any) -> frozenset[type[Any]] | None:
        """The types that an annotation names; None if it names others, such as protocols and base classes."""
        found: set[type[Any]] = set()
        for head in _heads(annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")):
            listed = self._classes.get(head)
            if head not in _PLAIN and listed is None:
                return None
            found.update(_PLAIN.get(head, () if listed is None else (listed,)))
        return frozenset(found)


@cache
def construction(kind: Any) -> tuple[Attribute[Any], ...]:
    """The fields of a class in constructor order. Raises TypeError unless the constructor accepts all by position."""
    found: tuple[Attribute[Any], ...] = fields(kind)
    if any(not each.init or each.kw_only for each in found):
        raise TypeError(f"{kind.__qualname__} has fields that its constructor does not accept by position")
    return found


def _is_family(module: str) -> bool:
    """Whether a name, after `onert.ir.ops.`, is that of a module of operation kinds."""
    *folders, file = module.split(".")
    if file == "__init__":
        return False
    directory = os.path.dirname(onert.ir.ops.__file__)
    for folder in folders:
        if folder.startswith("_") or folder not in _listed(directory):
            return False
        directory = os.path.join(directory, folder)
    return f"{file}.py" in _listed(directory)


@cache
def _listed(folder: str) -> frozenset[str]:
    """The names in a folder of the package; empty for a file."""
    return frozenset(os.listdir(folder) if os.path.isdir(folder) else ())


@cache
def _heads(annotation: str) -> tuple[str, ...]:
    """The outermost names in an annotation: `tuple` and `None` for `tuple[int | None, ...] | None`."""
    depth, outside = 0, ""
    for character in annotation:
        depth += character == "["
        outside += "" if depth else character
        depth -= character == "]"
    return tuple(part.strip() for part in outside.split("|"))

"""Which classes a serialized program may hold, and under which names.

The list is closed: the values that programs are made of, the kinds of operations of this project with the enumerations
and values that are their attributes, and the classes that the program's backends list for their kernels. A name in an
entry selects one of them and nothing else, and no module is imported by a name but those of `onert.ir.ops`.
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
"""The classes of which programs and packages consist, enumerations among them."""

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
"""The types of values that a field may have, by the name its annotation begins with."""


class Records:
    """The classes by name. `backends` are those of the program: their classes, and the memories they name."""

    def __init__(self, backends: Iterable[Backend] = ()) -> None:
        own = [(f"{b.name}:{kind.__qualname__}", kind) for b in backends for kind in b.serializable]
        self._classes = {kind.__qualname__: kind for kind in CORE} | dict(own)
        self._names = {kind: name for name, kind in self._classes.items()}
        self.memories: Mapping[str, Memory] = {m.name: m for m in (HOST, *(b.memory for b in backends))}
        self._accepted: dict[Any, frozenset[type[Any]] | None] = {}

    def name(self, kind: type[Any]) -> str | None:
        """The name of a class; None if its values cannot be serialized."""
        found = self._names.get(kind)
        if found is None and kind.__module__.startswith(_OPS) and (has(kind) or issubclass(kind, Enum)):
            found = self._names[kind] = f"{kind.__module__.removeprefix(_OPS)}.{kind.__qualname__}"
        return found

    def kind(self, name: str) -> type[Any]:
        """The class of a name; LookupError if there is none."""
        found = self._classes.get(name)
        if found is None:
            module, _, within = name.rpartition(".")
            if not _is_family(module):
                raise LookupError(f"{name!r} names no class that a program may hold")
            found = vars(imports.module(_OPS + module))[within]
            if not isinstance(found, type) or self.name(found) != name:
                raise LookupError(f"{name!r} names no class that a program may hold")
            self._classes[name] = found
        return found

    def expect(self, names: Iterable[str]) -> None:
        """Import together what classes of these names need."""
        modules = {name.rpartition(".")[0]: None for name in names if name not in self._classes}
        imports.ahead(_OPS + module for module in modules if _is_family(module))

    def accepts(self, attribute: Attribute[Any], values: Sequence[Any]) -> bool:
        """Whether a field may have these values, as far as its annotation names plain types and listed classes."""
        annotation = attribute.type
        if annotation not in self._accepted:
            self._accepted[annotation] = self._types(annotation)
        allowed = self._accepted[annotation]
        return allowed is None or allowed.issuperset(map(type, values))

    def _types(self, annotation: Any) -> frozenset[type[Any]] | None:
        """The types that an annotation names; None if it names others, such as protocols and bases."""
        found: set[type[Any]] = set()
        for head in _heads(annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")):
            listed = self._classes.get(head)
            if head not in _PLAIN and listed is None:
                return None
            found.update(_PLAIN.get(head, () if listed is None else (listed,)))
        return frozenset(found)


@cache
def construction(kind: Any) -> tuple[Attribute[Any], ...]:
    """The fields of a class in the order of its constructor; TypeError if values are not made by that alone."""
    found: tuple[Attribute[Any], ...] = fields(kind)
    if any(not each.init or each.kw_only for each in found):
        raise TypeError(f"{kind.__qualname__} has fields that its constructor does not take by position")
    return found


def _is_family(module: str) -> bool:
    """Whether this is a module of operation kinds, as its name goes on after `onert.ir.ops.`."""
    *folders, file = module.split(".")
    if file == "__init__":
        return False
    place = os.path.dirname(onert.ir.ops.__file__)
    for folder in folders:
        if folder.startswith("_") or folder not in _listed(place):
            return False
        place = os.path.join(place, folder)
    return f"{file}.py" in _listed(place)


@cache
def _listed(folder: str) -> frozenset[str]:
    """The names in a folder of the package; nothing of a file."""
    return frozenset(os.listdir(folder) if os.path.isdir(folder) else ())


@cache
def _heads(annotation: str) -> tuple[str, ...]:
    """`tuple[int | None, ...] | None` begins with `tuple` and `None`."""
    depth, outside = 0, ""
    for character in annotation:
        depth += character == "["
        outside += "" if depth else character
        depth -= character == "]"
    return tuple(part.strip() for part in outside.split("|"))

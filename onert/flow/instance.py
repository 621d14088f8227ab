"""Instances of cells: the memory of one computation at a time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from onert.backend import HOST
from onert.exec.context import Instance as Run
from onert.exec.context import Parts
from onert.exec.execution import Execution
from onert.exec.observers.watching import Watching
from onert.exec.stop import Stop
from onert.ir import Array, ExecutionError

from .channel import Channel
from .compiled import Compiled
from .errors import FormatError
from .layout import in_order
from .report import Profile
from .tensor import Tensor, fill, tensor, value_of

Calls = tuple[Callable[[], object], ...]
Source = Callable[[], Array]
"""Returns the elements that a reference currently refers to."""


class Instance:
    """A cell's tensors, and `compute`, which computes its outputs from its inputs.

    Tensors are accessed by key: a name or an alias, a number from `Cell.index`, or any object whose `repr` is a name.
    `data[key]` is a tensor, or the element of a tensor that has only one; `data[key] = value` copies elements.
    Intermediate results may share memory: the cell's listing says which.

    A reference has no memory of its own: `connect` connects it to a channel, `data[key] = array` to an array, and
    `data[key] = instance`, for a resource, to the instance whose tensors a gradient reads. Instances of a cell may
    compute at the same time in several threads, but each of them in only one thread at a time.
    """

    compute: Callable[[], object]
    """Compute once. Raises ExecutionError if a reference is not connected, or if an element breaks a rule."""

    def __init__(self, cell: Compiled, profile: Profile | None = None) -> None:
        self._cell = cell
        watching = None if profile is None else Watching((profile,))
        self._memory = memory = HOST.allocate(cell.layout.size)
        stop = Stop()
        self._run = Run(cell.program, stop, {}, watching, Parts(Execution, stop))
        self._run.settle(memory[cell.layout.arena :])
        self._frame = frame = self._run.frame(cell.program.entry)
        self._arrays: dict[str, Array] = {}
        for field in cell.layout.fields.values():
            self._arrays[field.name] = array = field.array(memory)
            if field.offset < cell.layout.arena:
                frame.place(field.operand, in_order(array, field.column_major))
        graph = cell.program.main.subgraph
        for operand, described in zip(graph.inputs, cell.program.inputs, strict=True):
            if described.name in cell.shared.learnable:
                array = cell.shared.arrays[described.name]
                frame.place(operand, in_order(array, described.name in cell.shared.columns))
        self._sources: dict[str, Source] = {}
        self._instances: dict[str, Instance] = {}
        self._tensors: dict[Any, Any] = {}
        self._calls: Calls | None = None
        self._copied: tuple[str, ...] = ()
        if cell.references:
            self.compute = self._with_references
        else:
            calls = self._bound()
            self.compute = calls[0] if len(calls) == 1 else partial(_in_turn, calls)
        if profile is not None:
            self.compute = profile.timed(self.compute)

    def _bound(self) -> Calls:
        """The calls of one computation: only the native function if nothing else is needed."""
        cell, frame = self._cell, self._frame
        graph, targets = cell.program.main.subgraph, []
        values = graph.outputs[len(graph.outputs) - len(cell.assigned) :]
        for name, operand in zip(cell.assigned, values, strict=True):
            target = cell.shared.arrays.get(name)
            target = self._arrays[name] if target is None else target
            target = in_order(target, name in cell.shared.columns)
            if operand in cell.in_place:
                frame.place(operand, target)
            else:
                targets.append((target, operand))
        calls = frame.calls
        updates = (partial(np.copyto, target, frame.tensors[operand].array) for target, operand in targets)
        return (*calls, *updates)

    def _with_references(self) -> None:
        """Compute on copies of the referenced tensors, and copy computed ones back.

        A tensor that cannot move while the reference stays connected is not copied: the code reads it in place.
        """
        calls = self._prepared() if self._calls is None else self._calls
        found = {name: self._referred(name) for name in self._copied}
        for name, source in found.items():
            if self._cell.references[name][0]:
                np.copyto(self._arrays[name], source)
        _in_turn(calls)
        for name, source in found.items():
            if self._cell.references[name][1]:
                np.copyto(source, self._arrays[name])

    def _prepared(self) -> Calls:
        """The calls, bound to tensors of other instances. Raises ExecutionError if a reference is not connected."""
        operands = {field.name: field.operand for field in self._cell.layout.fields.values()}
        copied = []
        for name, (_, computed) in self._cell.references.items():
            place = None if computed else self._fixed(name)
            if place is None:
                self._referred(name)
                copied.append(name)
            if name in self._cell.referred:
                self._frame.place(operands[name], self._arrays[name] if place is None else place)
        self._copied = tuple(copied)
        self._calls = self._bound()
        return self._calls

    def _fixed(self, name: str) -> Array | None:
        """The elements of another instance's tensor, if their address does not change."""
        resource, target = self._cell.referred.get(name, ("", ""))
        other = self._instances.get(resource)
        if other is None or target in other._cell.references:
            return None
        found = other._array(target)
        return found if found is not None and found.flags.c_contiguous else None

    def _referred(self, name: str) -> Array:
        """The elements that a reference refers to. Raises ExecutionError if it is not connected."""
        source = self._sources.get(name)
        if source is None:
            resource = self._cell.referred.get(name)
            how = "connect it, or give it an array" if resource is None else f"give '{resource[0]}' an instance"
            raise ExecutionError(f"reference '{name}' refers to nothing: {how}")
        return source()

    def _refer(self, resource: str, other: Any) -> None:
        """Connect references to tensors of another instance. Raises FormatError, a TypeError, if formats differ."""
        if not isinstance(other, Instance):
            raise FormatError(f"'{resource}' is given {other!r:.80}, expected an instance")
        for name, (owner, target) in self._cell.referred.items():
            if owner != resource:
                continue
            wanted, found = self._cell.field(name).type, other._cell.type(target)
            if found.plain() != wanted.plain():
                raise FormatError(f"reference '{name}' is {wanted}, '{target}' of cell '{other._cell.name}' is {found}")
            place = None if target in other._cell.references else other._array(target)
            self._sources[name] = partial(other._referred, target) if place is None else partial(_same, place)
        self._instances[resource] = other
        self._calls = None

    def connect(self, key: Any, channel: Channel, index: int) -> None:
        """Connect a reference to a tensor of a channel.

        Raises FormatError, a TypeError, if the tensor is not a reference or the channel has another format, and
        KeyRangeError, an IndexError, if the channel has no such tensor.
        """
        name = self._cell.named(key)
        self._require_reference(name)
        declared = self._cell.field(name).type
        if channel.type != declared:
            raise FormatError(f"reference '{name}' is {declared}, the channel has tensors of {channel.type}")
        channel.array(index)
        self._sources[name] = partial(channel.array, index)

    def _require_reference(self, name: str) -> None:
        if name not in self._cell.references or name in self._cell.referred:
            raise FormatError(f"'{name}' is not a reference and cannot be connected")

    def _array(self, name: str) -> Array | None:
        """The elements of a tensor; None for a reference that is not connected."""
        if name in self._cell.references:
            source = self._sources.get(name)
            return None if source is None else source()
        found = self._arrays.get(name)
        if found is not None:
            return found
        shared = self._cell.shared.arrays.get(name)
        if shared is not None:
            return shared
        self._cell.field(name)  # raises
        return None

    def tensor(self, key: Any) -> Tensor | None:
        """The tensor with this key; None for a reference that is not connected."""
        name = self._cell.named(key)
        array = self._array(name)
        return None if array is None else tensor(name, array)

    def __getitem__(self, key: Any) -> Any:
        if key is None:
            return None
        if isinstance(key, tuple):
            return tuple(self[each] for each in key)
        known = self._tensors.get(key) if isinstance(key, int | str) else None
        if known is not None:
            return known
        name = self._cell.named(key)
        if name in self._cell.resources:
            return self._instances.get(name)
        array = self._array(name)
        if array is None:
            return None
        found = value_of(name, array)
        if isinstance(found, Tensor) and isinstance(key, int | str) and name not in self._cell.references:
            self._tensors[key] = found
        return found

    def __setitem__(self, key: Any, value: Any) -> None:
        name = self._cell.named(key)
        if name in self._cell.resources:
            self._refer(name, value)
            return
        references = name in self._cell.references and name not in self._cell.referred
        if references and not isinstance(value, bool | int | float):
            self._sources[name] = partial(_same, self._given(name, value))
            return
        array = self._array(name)
        if array is None:
            self._referred(name)
        else:
            fill(name, array, value)

    def _given(self, name: str, value: Any) -> Array:
        """An array for a reference. Raises FormatError, a TypeError, if its format differs from the reference's."""
        declared, array = self._cell.field(name).type, np.asarray(value)
        if array.dtype != declared.dtype.numpy or array.shape != declared.shape:
            raise FormatError(f"reference '{name}' is {declared}, but is given {array.dtype}{list(array.shape)}")
        if self._cell.references[name][1] and not array.flags.writeable:
            raise FormatError(f"reference '{name}' is computed, but is given a read-only array")
        return array

    def clear(self) -> None:
        """Set every element to 0, and disconnect every reference."""
        self._memory[:] = 0
        self._sources.clear()
        self._instances.clear()
        self._calls = None

    def __str__(self) -> str:
        lines = []
        for name in self._cell.layout.fields:
            array = self._array(name)
            lines.append(f"{name} = {'nothing' if array is None else array}")
        return "\n".join(lines)

    __repr__ = __str__


def _in_turn(calls: Calls) -> None:
    for call in calls:
        call()


def _same(array: Array) -> Array:
    return array

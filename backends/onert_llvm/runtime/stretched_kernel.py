"""The kernel of a sequence for all lengths of a trace: bound once, its commands updated in place for each length."""

from __future__ import annotations

import ctypes
from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Self

import numpy as np
from attrs import evolve, field, frozen

from onert.backend import Following, Redirect, Redirects, Tensors
from onert.backend.memory import touched
from onert.ir import Array, Context
from onert.ir.dtype import address
from onert.ir.process import imports
from onert.ir.symbolic.instructions import Instructions, NoInstructionError
from onert.ir.symbolic.trace import Computed, Symbolic, Trace, largest
from onert_llvm.command.command import COPY, PROGRAM, Access, Area, Command, Lowered, Pointer, all_steps, is_idle

from .aligned_memory import Elements
from .bound_commands import BoundCommands, Places
from .length_constants import LengthConstants
from .native_kernel import NativeKernel, checked, runner

WORD, LOWER_HALF, FLOAT = range(3)
"""What is stored of a register: all 64 bits, the lower 32, or a float64 as float32."""

_GROUP = np.dtype(
    [("addend", "i8"), ("last", "i8"), ("register", "i4"), ("kind", "i4"), ("count", "i4"), ("put", "i4")]
)
"""The same number for several addresses; `last` is what was stored last, if `put`."""
TILES, PIECES = -1, -2
"""These stand for a command's number of tiles and of pieces in place of a slot."""


@frozen(eq=False)
class Change:
    """A number of a command that depends on lengths: the command's `path` (its index in a list, then in nested
    programs), the slot (or `TILES` or `PIECES`), and the number in the trace, if any. `pointer`, which may point to a
    constant that is computed for each length, is added to it.
    """

    path: tuple[int, ...]
    slot: int
    number: int | None
    pointer: Pointer | None = None


@frozen(eq=False)
class StretchedKernel:
    """A kernel for all lengths of a trace.

    `widest` has the numbers for the lengths that the trace began with, but accesses wide enough for any. `lists` are
    its lists of commands, each with a flag whether it may be idle, and `changes` what differs by length in each list.
    `computed` are the constants to compute: index, function, and numbers, each with a flag whether it is the trace's.
    """

    kernel: NativeKernel
    widest: Lowered
    lists: tuple[tuple[tuple[Command, bool], ...], ...]
    changes: tuple[tuple[Change, ...], ...]
    computed: tuple[tuple[int, Callable[..., Array], tuple[tuple[bool, Any], ...]], ...]
    functions: Mapping[str, int]
    wanted: tuple[int, ...] = field(init=False)

    @wanted.default
    def _wanted(self) -> tuple[int, ...]:
        slots = [c.number for changes in self.changes for c in changes if c.number is not None]
        return (*slots, *(n for _, _, numbers in self.computed for symbolic, n in numbers if symbolic))

    @property
    def operands(self) -> frozenset[int]:
        slots = (
            v for commands in self.lists for c, _ in commands for step in all_steps((c,)) for v in step.slots.values()
        )
        return frozenset(v.index for v in slots if isinstance(v, Pointer) and v.area is Area.OPERAND)

    @property
    def shaped(self) -> frozenset[int]:
        return frozenset()

    def followed(self, numbers: Instructions, registers: Array) -> Callable[[], bool]:
        return _with_decisions(_Native(self.functions, numbers, registers, _Stores().encoded()), numbers, registers)

    def bind(self, tensors: Tensors, context: Context, numbers: Instructions, registers: Array) -> Following:
        return _BoundStretch(self, tensors, context, numbers, registers)


class _BoundStretch:
    """A `StretchedKernel` bound to the tensors of one execution."""

    def __init__(
        self, own: StretchedKernel, tensors: Tensors, context: Context, numbers: Instructions, registers: Array
    ) -> None:
        self._kernel = own
        self._numbers = numbers
        self._registers = registers
        self._words: dict[int, Array] = {}
        """The constants whose elements native code stores."""
        place = Places(own.widest, tensors, context.stop)
        touched(place.scratch)
        stores = _Stores()
        for index, function, given in own.computed:
            if isinstance(function, Elements) and function.are_words:
                real = function.dtype.numpy.kind == "f"
                if all((n in numbers.floats) is real for symbolic, n in given if symbolic):
                    kind = WORD if function.dtype.itemsize == 8 else FLOAT if real else LOWER_HALF
                    self._store_elements(index, function, given, kind, stores)
        others = (each for each in own.computed if each[0] not in self._words)
        self._constants = LengthConstants(others, numbers.registers)
        runs = []
        self._bound: list[BoundCommands] = []
        for listed, changes in zip(own.lists, own.changes, strict=True):
            there = [at for at, (command, may) in enumerate(listed) if not (may and is_idle(command, place))]
            commands = [listed[at][0] for at in there]
            bound = BoundCommands(own.kernel, commands, place)
            self._bound.append(bound)
            runs.append(runner(own.kernel, commands, bound, place))
            numbered = {at: number for number, at in enumerate(there)}
            for change in changes:
                if change.path[0] in numbered:
                    self._store(change, _target(bound, numbered, change), place, stores)
        run = (
            runs[0]
            if len(runs) == 1
            else imports.module("onert_llvm.runtime.measured_choice").MeasuredChoice(runs[1], runs[0])
        )
        self.run = checked(run, own.widest, place)
        self._follow = own.followed(numbers, registers)
        encoded = stores.encoded()
        self._groups = encoded[0]
        self._addends = [(number, *key[-1]) for number, key in enumerate(stores) if key[-1] is not None]
        """The groups whose addends are addresses: the number of each, the operand, and the offset."""
        self._put_all = _Native(own.functions, None, registers, encoded)
        self._become = _Native(own.functions, numbers, registers, encoded)

    @property
    def become(self) -> Callable[[], bool]:
        return self._followed if self._constants.are_used or self._numbers.python_checks else self._become

    def _store_elements(
        self, index: int, function: Elements, given: tuple[tuple[bool, Any], ...], kind: int, stores: _Stores
    ) -> None:
        """Let native code store the elements of a constant that depend on lengths."""
        made = self._words[index] = function(*(0 if symbolic else n for symbolic, n in given))
        for at, (symbolic, n) in enumerate(given):
            if symbolic:
                stores[self._numbers.registers[n], 0, kind, None].append(made.ctypes.data + at * made.itemsize)

    def _store(self, change: Change, target: int, place: Places, stores: _Stores) -> None:
        """Let native code store a number at the address `target`."""
        pointer, number = change.pointer, change.number
        if pointer is not None and pointer.area is Area.CONSTANT:
            register = -1 if number is None else self._numbers.registers[number]
            if pointer.index in self._constants:
                self._constants.point(target, pointer.index, pointer.offset, register)
                return
            if pointer.index in self._words:
                words = self._words[pointer.index].ctypes.data + pointer.offset
                if number is None:
                    ctypes.c_uint64.from_address(target).value = words
                else:
                    stores[register, words, WORD, None].append(target)
                return
        assert number is not None
        addend = 0 if pointer is None else place(pointer)
        kind = FLOAT if number in self._numbers.floats else WORD
        at = (pointer.index, pointer.offset) if pointer is not None and pointer.area is Area.OPERAND else None
        stores[self._numbers.registers[number], addend, kind, at].append(target)

    def _followed(self) -> bool:
        """`become`, if functions or constants need Python."""
        if not self._numbers.python_checks:
            found = self._become()
        else:
            found = self._follow()
            if found:
                self._put_all()
        if found and self._constants.are_used:
            self._constants.compute(self._registers.data)
        return found

    def redirect(self, operands: frozenset[int]) -> Redirect | None:
        redirected = self.run.redirect(operands) if isinstance(self.run, Redirects) else None
        groups = [(number, offset) for number, operand, offset in self._addends if operand in operands]
        if redirected is None or not groups:
            return redirected

        def with_addends(array: Array) -> None:
            redirected(array)
            for number, offset in groups:
                self._groups[number]["addend"] = address(array) + offset
                self._groups[number]["put"] = 0
            self._put_all()

        return with_addends

    def put(self) -> None:
        self._put_all()
        if self._constants.are_used:
            self._constants.compute(self._registers.data)


def _target(bound: BoundCommands, numbered: Mapping[int, int], change: Change) -> int:
    """The address of a command's number."""
    first, *inner = change.path
    at = numbered[first]
    for each in inner:
        bound, at = bound.inner[at], each
    return bound.slot(at, change.slot) if change.slot >= 0 else bound.count(at, pieces=change.slot == PIECES)


class _Stores(defaultdict[tuple[int, int, int, tuple[int, int] | None], list[int]]):
    """Addresses to store numbers at, by register, addend (0 for floats), what is stored, and the operand and offset
    that the addend is the address of, if any."""

    def __init__(self) -> None:
        super().__init__(list)

    def encoded(self) -> tuple[Array, Array]:
        """The groups for native code, and the addresses of all of them. Groups are apart, because most are only read to
        find that their number has not changed."""
        groups = np.zeros(len(self), _GROUP)
        for group, ((register, addend, kind, _), targets) in zip(groups, self.items(), strict=True):
            group["register"], group["addend"], group["kind"], group["count"] = register, addend, kind, len(targets)
        return groups, np.array([target for targets in self.values() for target in targets], np.int64)


class _Native(partial[bool]):
    """Executes instructions, if there are any, and stores registers. Returns False if the instructions have no result.
    One native call that keeps the interpreter lock, because it takes only microseconds."""

    __slots__ = ("_keep",)

    _keep: object

    def __new__(
        cls, functions: Mapping[str, int], numbers: Instructions | None, registers: Array, stores: tuple[Array, Array]
    ) -> Self:
        none = np.zeros(0, np.int64)
        code, tables = (none, none) if numbers is None else (numbers.code, numbers.tables)
        groups, targets = stores
        words = [code.ctypes.data, len(code), registers.ctypes.data, tables.ctypes.data]
        given = np.array([*words, groups.ctypes.data, len(groups), targets.ctypes.data], np.int64)
        function = ctypes.PYFUNCTYPE(ctypes.c_bool, ctypes.c_void_p)(functions["onert_become"])
        self = super().__new__(cls, function, ctypes.c_void_p(given.ctypes.data))
        self._keep = given, code, tables, registers, stores
        return self


def _with_decisions(follow: Callable[[], bool], numbers: Instructions, registers: Array) -> Callable[[], bool]:
    """Executes instructions, then calls the functions that need Python."""
    if not numbers.python_checks:
        return follow
    words = registers.data

    def agreed() -> bool:
        try:
            return follow() and all(
                function(*[words[at] for at in of]) == expected for function, of, expected in numbers.python_checks
            )
        except (ArithmeticError, ValueError):
            return False

    return agreed


def stretched(kernel: NativeKernel, trace: Trace, functions: Callable[[], Mapping[str, int]]) -> StretchedKernel:
    """A kernel with symbolic numbers for all lengths of their trace, or for fewer if a decision must be made here.
    Raises NoInstructionError if lengths change what cannot be updated in place.
    """
    lowered = kernel.lowered
    writer = _Concretizer(trace, shared=kernel.threads > 1)
    listed = (lowered.commands, *((lowered.sequential,) if lowered.sequential else ()))
    lists, changes = [], []
    constants = tuple(map(writer.constant, lowered.constants))
    for commands in listed:
        writer.computed = {at for at, c in enumerate(lowered.constants) if isinstance(c, Computed)}
        lists.append(tuple((writer.command(c, (at,)), writer.may_be_idle(c)) for at, c in enumerate(commands)))
        changes.append(tuple(writer.changes))
        writer.changes = []
    widest = evolve(
        lowered,
        commands=tuple(command for command, _ in lists[0]),
        sequential=tuple(command for command, _ in lists[1]) if lowered.sequential else (),
        constants=constants,
        scratch=largest(lowered.scratch),
    )
    computed = tuple(
        (at, c.function, tuple(map(writer.given, _as_elements(c))))
        for at, c in enumerate(lowered.constants)
        if isinstance(c, Computed)
    )
    return StretchedKernel(kernel, widest, tuple(lists), tuple(changes), computed, functions())


def _as_elements(constant: Computed) -> tuple[Any, ...]:
    """The numbers of a constant, as floats if its elements are floats."""
    function, numbers = constant.function, constant.numbers
    if isinstance(function, Elements) and function.dtype.numpy.kind == "f":
        return tuple(1.0 * n if isinstance(n, Symbolic) else n for n in numbers)
    if any(isinstance(n, Symbolic) and isinstance(n.value, float) for n in numbers):
        raise NoInstructionError("a constant is computed from a number that is no integer")
    return numbers


class _Concretizer:
    """Replaces symbolic numbers by their values for the trace's first lengths, and records which must be updated."""

    def __init__(self, trace: Trace, shared: bool) -> None:
        self._trace = trace
        self._shared = shared
        self.computed: set[int] = set()
        self.changes: list[Change] = []

    def is_open(self, value: object) -> bool:
        """Whether a number differs for other lengths."""
        return isinstance(value, Symbolic) and not self._trace.is_fixed(value.index)

    def given(self, value: Any) -> tuple[bool, Any]:
        """Whether a number is open, and its index in the trace if so, else its value."""
        return (True, value.index) if self.is_open(value) else (False, _concrete(value))

    def constant(self, constant: Any) -> Array:
        if isinstance(constant, Computed):
            constant = constant.function(*map(_concrete, constant.numbers))
        found: Array = constant
        return found

    def may_be_idle(self, command: Command) -> bool:
        """Whether a copy may turn out to be onto itself, which must then hold for all lengths."""
        if command.spec.name != COPY:
            return False
        slots = command.slots
        ends = [slots["source"], slots["target"]]
        steps = [slots["source_step"], slots["target_step"]]
        offsets = [e.offset if isinstance(e, Pointer) else None for e in ends]
        return not any(map(self.is_open, offsets)) and (
            not any(map(self.is_open, steps)) or self.given(steps[0]) == self.given(steps[1])
        )

    def command(self, command: Command, path: tuple[int, ...]) -> Command:
        slots: dict[str, Any] = {}
        for number, name in enumerate(command.spec.layout.names):
            slots[name] = self._slot(command.slots[name], path, number)
        for number, value in ((TILES, command.tiles), (PIECES, command.pieces)):
            if self.is_open(value):
                if command.spec == PROGRAM:
                    raise NoInstructionError("the number of steps of a program depends on a length")
                self.changes.append(Change(path, number, self.given(value)[1]))
        return evolve(
            command,
            slots=slots,
            tiles=_concrete(command.tiles),
            pieces=_concrete(command.pieces),
            accesses=tuple(map(self._access, command.accesses)),
            flops=_concrete(command.flops),
            program=tuple(self.command(c, (*path, at)) for at, c in enumerate(command.program)),
        )

    def _slot(self, value: Any, path: tuple[int, ...], number: int) -> Any:
        """The value of a slot for the first lengths."""
        if not isinstance(value, Pointer):
            if self.is_open(value):
                self.changes.append(Change(path, number, value.index))
            return _concrete(value)
        settled = Pointer(value.area, value.index, _concrete(value.offset))
        is_computed = value.area is Area.CONSTANT and value.index in self.computed
        if self.is_open(value.offset):
            offset: Any = value.offset
            self.changes.append(Change(path, number, offset.index, Pointer(value.area, value.index)))
        elif is_computed:
            self.changes.append(Change(path, number, None, settled))
        return settled

    def _access(self, access: Access) -> Access:
        """The widest access for any length, which matters only for threads."""
        pointer = access.pointer
        start = Pointer(pointer.area, pointer.index, 0 if self.is_open(pointer.offset) else _concrete(pointer.offset))
        if not self._shared:
            return Access(start, _concrete(access.nbytes), access.write)
        more = pointer.offset if self.is_open(pointer.offset) else 0
        return Access(start, largest(access.nbytes + more), access.write)


def _concrete(value: Any) -> Any:
    """A number for the lengths that the trace began with."""
    return value.value if isinstance(value, Symbolic) else value

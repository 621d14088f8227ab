"""The numbers of a trace as instructions for native code: a new length is then evaluated without any Python object.

A register has 64 bits and holds a signed integer (also for a truth value), or a float64. Those of the lengths come
first. An instruction is six 32-bit integers: the opcode, the register of the result, and up to four operand registers.
If a number cannot be computed exactly in such registers (an integer that is too large, a division by zero), or a
condition does not hold, evaluation fails, and the lengths have to be handled in another way.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Any

import numpy as np
from attrs import field, frozen

from onert.ir.dtype import Array
from onert.ir.value import ByIdentity

from .all_lengths import AllLengths, all_lengths
from .floats import as_float32, as_float64
from .trace import Trace, where_greater_of
from .vectorized import MOST_RESULTS, results_of

EXACT = 1 << 53
"""Integers up to this magnitude are exact as float64."""


class Opcode(IntEnum):
    """The operation of an instruction; the operands of those with FLOAT are float64.

    The third operand of a comparison, and of BOOL, is not a register: it is 2 if the result is a condition that must
    hold, 1 if it must not hold, else 0.
    """

    ADD = 0
    SUB = 1
    MUL = 2
    FLOORDIV = 3
    MOD = 4
    NEG = 5
    LT = 6
    LE = 7
    EQ = 8
    NE = 9
    GREATER = 10
    """The third operand if the first is greater than the second, else the fourth."""
    BOOL = 11
    TABLE = 12
    """A table lookup at the index in the first operand. The second operand is where the table starts in `tables`, the
    third its size, which the index must be less than; both are numbers, not registers."""
    REQUIRE = 13
    """No result: both registers must have equal bits."""
    TO_FLOAT = 14
    ADD_FLOAT = 15
    SUB_FLOAT = 16
    MUL_FLOAT = 17
    DIV_FLOAT = 18
    LT_FLOAT = 19
    LE_FLOAT = 20
    EQ_FLOAT = 21
    NE_FLOAT = 22
    FLOOR_FLOAT = 23
    CEIL_FLOAT = 24
    ROW = 25
    """Successive results: a row of `tables`, by the number of the row in the first operand. The second operand is where
    the rows start in `tables`, the third how many there are, the fourth how many results each has, at least one; they
    are numbers, not registers."""
    FINITE_FLOAT = 26
    """The first operand, unless it is infinite or NaN. The third operand is not a register: if it is 1, the number is
    rounded to float32 first."""


_PLAIN = {
    operator.add: (Opcode.ADD, Opcode.ADD_FLOAT),
    operator.sub: (Opcode.SUB, Opcode.SUB_FLOAT),
    operator.mul: (Opcode.MUL, Opcode.MUL_FLOAT),
    operator.floordiv: (Opcode.FLOORDIV, None),
    operator.mod: (Opcode.MOD, None),
    operator.lt: (Opcode.LT, Opcode.LT_FLOAT),
    operator.le: (Opcode.LE, Opcode.LE_FLOAT),
    operator.eq: (Opcode.EQ, Opcode.EQ_FLOAT),
    operator.ne: (Opcode.NE, Opcode.NE_FLOAT),
}
_TRUTHS = frozenset((*range(Opcode.LT, Opcode.NE + 1), Opcode.BOOL, *range(Opcode.LT_FLOAT, Opcode.NE_FLOAT + 1)))
_TURNED = {operator.gt: operator.lt, operator.ge: operator.le}
_ROUNDED = {math.floor: Opcode.FLOOR_FLOAT, math.ceil: Opcode.CEIL_FLOAT}
_FINITE = {as_float64: 0, as_float32: 1}
_SAME = (operator.pos, math.floor, math.ceil, round)
_KNOWN = frozenset((*_PLAIN, *_TURNED, *_FINITE, *_SAME, operator.truediv, operator.neg, bool, where_greater_of))


class NoInstructionError(TypeError):
    """A function in a trace, or one of its argument types, has no instruction."""


@frozen(eq=False)
class Instructions(ByIdentity):
    """A program that computes the numbers of a trace for other lengths and checks its conditions.

    - `code`: the instructions, int32 [count, 6]
    - `first`: the initial registers, int64: zeros for lengths, then constants
    - `tables`: tables of results of functions on which conditions depend, int64
    - `python_checks`: functions that only Python can call, with the registers of their arguments and the required
      result
    - `registers`: the register of each requested number of the trace, by its index
    - `floats`: those requested numbers that are float64
    """

    code: Array
    first: Array
    tables: Array
    python_checks: tuple[tuple[Callable[..., Any], tuple[int, ...], Any], ...] = field(repr=False)
    registers: dict[int, int] = field(repr=False)
    floats: frozenset[int] = field(repr=False)


def instructions(trace: Trace, wanted: Iterable[int]) -> Instructions:
    """The instructions for the requested numbers of a trace, by index, and for all of its conditions.

    Raises NoInstructionError if one of them cannot be computed by instructions.
    """
    return _Writer(trace).written(list(wanted))


class _Writer:
    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._code: list[tuple[int, ...]] = []
        self._left = trace.conditions
        """The conditions that are not covered by the table."""
        self._same: dict[int, int] = {}
        """Numbers that always equal an earlier number, which is computed in their place."""
        self._first = [0] * len(trace.lengths)
        self._registers = {at: at for at in range(len(trace.lengths))}
        self._constants: dict[int, int] = {}
        self._converted: dict[int, int] = {}
        self._tables: list[int] = []
        self._placed: dict[object, int] = {}
        self._counts: dict[object, tuple[int, ...]] = {}

    def written(self, wanted: list[int]) -> Instructions:
        trace = self._trace
        steps = {at: (function, arguments) for at, function, arguments in trace.steps}
        every = all_lengths(trace, wanted)
        if every is not None:
            self._registers |= {at: self._constant(value) for at, value in every.known.items() if at in steps}
            self._same = every.same
            self._left = {at: value for at, value in trace.conditions.items() if at not in every.conditions}
        needed = self._needed(wanted, steps, every)
        python_checks: list[tuple[Callable[..., Any], tuple[int, ...], Any]] = []
        for at, function, arguments in trace.steps:
            if at in needed and results_of(function) is not None:
                counts = self._counts.get(function, (0,) * len(arguments))
                self._counts[function] = tuple(map(max, counts, map(self._count, arguments)))
        for at, function, arguments in trace.steps:
            if at in needed and self._is_asked(at, function, arguments, steps, needed):
                registers = tuple(map(self._register, arguments))
                python_checks.append((function, registers, self._left[at]))
            elif at in needed:
                self._registers[at] = self._written(function, arguments, trace.values[at])
                self._conditional(at)
        for at in range(len(trace.lengths)):
            self._conditional(at)
        found = {at: self._register(at) for at in wanted}
        floats = frozenset(at for at in wanted if isinstance(trace.values[at], float))
        code = np.array(self._code, np.int32).reshape(-1, 6)
        first, tables = np.array(self._first, np.int64), np.array(self._tables, np.int64)
        return Instructions(code, first, tables, tuple(python_checks), found, floats)

    def _needed(
        self,
        wanted: Iterable[int],
        steps: Mapping[int, tuple[Callable[..., Any], tuple[int, ...]]],
        every: AllLengths | None,
    ) -> set[int]:
        """The numbers that instructions compute. First of all the lengths are looked up in the table of `every`: this
        checks conditions, and yields steady numbers."""

        def needed(known: Container[int]) -> set[int]:
            found: set[int] = set()
            waiting = [*wanted, *self._left]
            while waiting:
                at = waiting.pop()
                at = self._same.get(at, at)
                if at not in found and at not in self._registers:
                    found.add(at)
                    waiting += steps[at][1] if at in steps and at not in known else ()
            return found

        if every is None:
            return needed(())
        steady = set(every.steady)
        while True:
            found = needed(steady)
            used = found & steady
            chosen, rows, cells = every.rows(used)
            if len(chosen) == len(used):
                break
            steady -= used.difference(chosen)
        row = self._looked_up(self._put(rows), rows.shape, every.lengths)
        if not chosen:
            self._code.append((Opcode.REQUIRE, 0, row, self._constant(0), 0, 0))
            return found
        first = len(self._first)
        self._first += [0] * len(chosen)
        self._registers |= {at: first + column for column, at in enumerate(chosen)}
        self._code.append((Opcode.ROW, first, row, self._put(cells), *cells.shape))
        return found.difference(chosen)

    def _is_asked(
        self,
        at: int,
        function: Callable[..., Any],
        arguments: tuple[int, ...],
        steps: Mapping[int, tuple[Callable[..., Any], tuple[int, ...]]],
        needed: set[int],
    ) -> bool:
        """Whether a function without an instruction is used only by a condition, so that Python can evaluate it."""
        known = function in _KNOWN or self._has_table(function)
        if known or at not in self._left or any(map(self._is_float, arguments)):
            return False
        return not any(at in given for other, (_, given) in steps.items() if other in needed)

    def _conditional(self, at: int) -> None:
        if at not in self._left:
            return
        expected, own, last = self._left[at], self._register(at), self._code[-1] if self._code else (0, -1)
        if last[0] in _TRUTHS and last[1] == own:
            self._code[-1] = (*last[:4], 2 if expected else 1, 0)
        else:
            self._code.append((Opcode.REQUIRE, 0, own, self._constant(expected), 0, 0))

    def _register(self, at: int) -> int:
        """The register of a number; a constant is allocated on first use."""
        at = self._same.get(at, at)
        found = self._registers.get(at)
        if found is None:
            found = self._registers[at] = self._constant(self._trace.values[at])
        return found

    def _constant(self, value: object) -> int:
        bits = _bits(value)
        found = self._constants.get(bits)
        if found is None:
            found = self._constants[bits] = self._fresh(bits)
        return found

    def _fresh(self, bits: int = 0) -> int:
        self._first.append(bits)
        return len(self._first) - 1

    def _emit(self, opcode: Opcode, *given: int) -> int:
        result = self._fresh()
        self._code.append((opcode, result, *given, *(0,) * (4 - len(given))))
        return result

    def _is_float(self, at: int) -> bool:
        return isinstance(self._trace.values[at], float)

    def _float(self, at: int) -> int:
        """The register of a number, converted to float64."""
        own = self._register(at)
        if self._is_float(at):
            return own
        found = self._converted.get(own)
        if found is None:
            found = self._converted[own] = self._emit(Opcode.TO_FLOAT, own)
        return found

    def _written(self, function: Callable[..., Any], arguments: tuple[int, ...], value: object) -> int:
        """The register of a function's result."""
        if function in _TURNED:
            function, arguments = _TURNED[function], arguments[::-1]
        if function is operator.neg and self._is_float(arguments[0]):
            return self._emit(Opcode.MUL_FLOAT, self._register(arguments[0]), self._constant(-1.0))
        floats = any(map(self._is_float, arguments))
        if function is operator.truediv:
            return self._emit(Opcode.DIV_FLOAT, *map(self._float, arguments))
        if function in _PLAIN:
            opcode = _PLAIN[function][floats]
            if opcode is not None:
                return self._emit(opcode, *map(self._float if floats else self._register, arguments))
        elif function in _FINITE:
            return self._emit(Opcode.FINITE_FLOAT, self._float(arguments[0]), 0, _FINITE[function])
        elif function in _ROUNDED and floats:
            return self._emit(_ROUNDED[function], *map(self._register, arguments))
        elif function is where_greater_of and self._is_float(arguments[2]) is self._is_float(arguments[3]):
            return self._chosen(*arguments)
        elif not floats and len(arguments) == 1:
            (only,) = map(self._register, arguments)
            if function is bool:
                return self._emit(Opcode.BOOL, only)
            if function is operator.neg:
                return self._emit(Opcode.NEG, only)
            if function in _SAME:
                return only
        if not floats and self._has_table(function):
            return self._result(function, arguments)
        raise NoInstructionError(f"there is no instruction for {function} of {len(arguments)} numbers")

    def _chosen(self, a: int, b: int, then: int, otherwise: int) -> int:
        """The register of one of two numbers of one type, selected by `a > b`."""
        chosen = (self._register(then), self._register(otherwise))
        if not (self._is_float(a) or self._is_float(b)):
            return self._emit(Opcode.GREATER, self._register(a), self._register(b), *chosen)
        return self._emit(
            Opcode.GREATER, self._emit(Opcode.LT_FLOAT, self._float(b), self._float(a)), self._constant(0), *chosen
        )

    def _count(self, argument: int) -> int:
        """The size of a function's table along the axis of this argument."""
        most = self._trace.most[argument]
        return min(MOST_RESULTS, max(int(self._trace.values[argument]), most if isinstance(most, int) else 0) + 1)

    def _has_table(self, function: object) -> bool:
        """Whether a function has a table of its results for all possible arguments."""
        counts = self._counts.get(function)
        return counts is not None and (len(counts) == 1 or math.prod(counts) <= MOST_RESULTS)

    def _result(self, function: Any, arguments: tuple[int, ...]) -> int:
        """The register of a function's result, looked up in its table."""
        start = self._placed.get(function)
        if start is None:
            results = results_of(function)
            assert results is not None
            start = self._placed[function] = self._put(results(*self._counts[function]))
        return self._looked_up(start, self._counts[function], arguments)

    def _put(self, table: Array) -> int:
        """Append a table; returns its start."""
        self._tables += table.reshape(-1).tolist()
        return len(self._tables) - table.size

    def _looked_up(self, start: int, counts: Sequence[int], arguments: Sequence[int]) -> int:
        """The register of a table's element, with an axis per argument."""
        place, *others = map(self._register, arguments)
        for count, other in zip(counts[1:], others, strict=True):
            for least, most in ((self._constant(0), other), (other, self._constant(count - 1))):
                self._code.append((Opcode.LE, self._fresh(), least, most, 2, 0))
            place = self._emit(Opcode.ADD, self._emit(Opcode.MUL, place, self._constant(count)), other)
        return self._emit(Opcode.TABLE, place, start, math.prod(counts))


def _bits(value: object) -> int:
    """The bits of a constant in a register."""
    if isinstance(value, int):
        if not -(1 << 63) <= value < 1 << 63:
            raise NoInstructionError(f"{value} has more than 64 bits")
        return int(value)
    if isinstance(value, float):
        return int(np.array(value, np.float64).view(np.int64))
    raise NoInstructionError(f"a register cannot hold {value!r}")

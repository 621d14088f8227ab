"""Builds LLVM IR as text while a function grows.

A value is represented by its text, so that an instruction is one formatted line: no tree of objects is built or
printed. LLVM's parser finds inconsistencies.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache

from attrs import define, field

from onert.ir.value import ByIdentity

from .types import I1, I64, PTR, VOID, Sort, Type, vec

Number = int | float


class Value:
    """The result of an instruction, an argument or a constant: its type, its text, and its number for a scalar integer
    constant."""

    __slots__ = ("constant", "is_constant", "text", "type")

    def __init__(self, t: Type, text: str, constant: int | None = None, is_constant: bool = False) -> None:
        self.type = t
        self.text = text
        self.constant = constant
        self.is_constant = is_constant

    def __str__(self) -> str:
        return f"{self.type.text} {self.text}"


class Phi(Value):
    """A value that depends on the predecessor from which the block was entered."""

    __slots__ = ("_incoming",)

    def __init__(self, t: Type, text: str) -> None:
        super().__init__(t, text)
        self._incoming: list[str] = []

    def add_incoming(self, value: Value, block: Block) -> None:
        self._incoming.append(f"[ {value.text}, %{block.name} ]")

    def line(self) -> str:
        return f"{self.text} = phi {self.type.text} {', '.join(self._incoming)}"


@define(eq=False)
class Block(ByIdentity):
    """A basic block: instructions that run in order; the last one may branch."""

    name: str
    phis: list[Phi] = field(factory=list)
    lines: list[str] = field(factory=list)
    ended: bool = False

    def __str__(self) -> str:
        return "\n  ".join((f"{self.name}:", *(phi.line() for phi in self.phis), *self.lines))


class Module:
    """Functions, which share `attributes`, and declarations of external functions."""

    def __init__(self, name: str, triple: str, attributes: str = "") -> None:
        self.name = name
        self.attributes = attributes
        self._triple = triple
        self._declared: dict[str, str] = {}
        self._functions: list[Builder] = []

    def declare(self, name: str, result: Type, parameters: Sequence[Type]) -> None:
        """Declare an external function, once."""
        if name not in self._declared:
            self._declared[name] = f'declare {result.text} @"{name}"({", ".join(t.text for t in parameters)})'

    def define(self, name: str, parameters: Mapping[str, Type], alignment: int = 0) -> Builder:
        """A function without a result, its body still to be written; its stack is aligned to `alignment` bytes."""
        made = Builder(self, name, parameters, alignment)
        self._functions.append(made)
        return made

    def __str__(self) -> str:
        functions = "\n".join(map(str, self._functions))
        head = f'; ModuleID = "{self.name}"\ntarget triple = "{self._triple}"'
        return "\n".join((head, *self._declared.values(), functions, ""))


class Builder:
    """Writes a function, instruction by instruction, at the end of `block`."""

    def __init__(self, module: Module, name: str, parameters: Mapping[str, Type], alignment: int) -> None:
        self.module = module
        self.alignment = alignment
        self.name = name
        self.arguments = {label: Value(t, f"%{label}") for label, t in parameters.items()}
        self.block = Block("entry")
        self._blocks = [self.block]
        self._count = 0

    def __str__(self) -> str:
        parameters = ", ".join(map(str, self.arguments.values()))
        blocks = "\n".join(map(str, self._blocks))
        aligned = f" alignstack({self.alignment})" if self.alignment else ""
        attributes = f" {self.module.attributes}" if self.module.attributes else ""
        return f'define void @"{self.name}"({parameters}) nounwind{attributes}{aligned}\n{{\n{blocks}\n}}'

    # ---- insertion point

    def append_block(self, name: str) -> Block:
        """A new block after the others; the insertion point does not move."""
        self._count += 1
        made = Block(f"{name}.{self._count}")
        self._blocks.append(made)
        return made

    @contextmanager
    def entry(self) -> Iterator[None]:
        """Write to the entry block temporarily."""
        with self.at(self._blocks[0]):
            yield

    @contextmanager
    def at(self, block: Block) -> Iterator[None]:
        """Write to another block temporarily, before its terminator."""
        before, self.block = self.block, block
        end = [block.lines.pop()] if block.ended else []
        yield
        block.lines += end
        self.block = before

    # ---- instructions

    def value(self, t: Type, instruction: str) -> Value:
        """Append an instruction with a result."""
        self._count += 1
        text = f"%.{self._count}"
        self.block.lines.append(f"{text} = {instruction}")
        return Value(t, text)

    def do(self, instruction: str) -> None:
        """Append an instruction without a result."""
        self.block.lines.append(instruction)

    def binary(self, name: str, a: Value, b: Value) -> Value:
        """An instruction on two values of one type, whose result has that type too."""
        return self.value(a.type, f"{name} {a.type.text} {a.text}, {b.text}")

    def compare(self, name: str, a: Value, b: Value) -> Value:
        """A comparison; `name` is `icmp` or `fcmp` with its predicate."""
        return self.value(vec(I1, a.type.lanes), f"{name} {a.type.text} {a.text}, {b.text}")

    def convert(self, name: str, a: Value, t: Type) -> Value:
        """The value converted to another type."""
        return self.value(t, f"{name} {a.type.text} {a.text} to {t.text}")

    def address(self, base: Value, element: Type, offset: Value) -> Value:
        """The address `offset` elements after `base`."""
        return self.value(PTR, f"getelementptr {element.text}, ptr {base.text}, {offset.type.text} {offset.text}")

    def load(self, t: Type, pointer: Value, align: int, volatile: bool = False) -> Value:
        return self.value(t, f"load {'volatile ' if volatile else ''}{t.text}, ptr {pointer.text}, align {align}")

    def store(self, value: Value, pointer: Value, align: int) -> None:
        self.do(f"store {value.type.text} {value.text}, ptr {pointer.text}, align {align}")

    def allocate(self, element: Type, count: int, align: int) -> Value:
        return self.value(PTR, f"alloca [{count} x {element.text}], align {align}")

    def call(self, name: str, result: Type, arguments: Sequence[Value]) -> Value:
        """Call a function, declaring it if necessary."""
        self.module.declare(name, result, [a.type for a in arguments])
        call_text = f'call {result.text} @"{name}"({", ".join(map(str, arguments))})'
        if result is VOID:
            self.do(call_text)
            return Value(VOID, "")
        return self.value(result, call_text)

    def call_at(self, pointer: Value, arguments: Sequence[Value]) -> None:
        """Call the function that a pointer points to, which has no result."""
        self.do(f"call void {pointer.text}({', '.join(map(str, arguments))})")

    # ---- blocks

    def phi(self, t: Type, first: bool = False) -> Phi:
        """A new phi of this block, after its other phis or before them."""
        self._count += 1
        made = Phi(t, f"%.{self._count}")
        self.block.phis.insert(0 if first else len(self.block.phis), made)
        return made

    def branch(self, to: Block) -> None:
        self._end(f"br label %{to.name}")

    def branch_if(self, condition: Value, then: Block, otherwise: Block) -> None:
        self._end(f"br i1 {condition.text}, label %{then.name}, label %{otherwise.name}")

    def leave(self) -> None:
        """Return."""
        self._end("ret void")

    def _end(self, line: str) -> None:
        self.block.lines.append(line)
        self.block.ended = True


# ---- constants


@cache
def integer(t: Type, x: int) -> Value:
    """A scalar integer constant."""
    return Value(t, ("false", "true")[x] if t is I1 else str(x), x, True)


def constant(t: Type, x: Number) -> Value:
    """A number as a constant of a type, in every lane; integers wrap."""
    e = t.element
    if e.sort is Sort.FLOAT:
        scalar = Value(e, _hexadecimal(e, float(x)), None, True)
    elif e is I1:
        scalar = integer(I1, int(bool(x)))
    else:
        half = 1 << e.width - 1
        scalar = integer(e, (int(x) + half) % (2 * half) - half)
    return scalar if t.of is None else splat(t, scalar)


def splat(t: Type, scalar: Value) -> Value:
    """A constant in every lane of a vector."""
    return Value(t, f"splat ({scalar})", None, True)


@cache
def vector_constant(t: Type, numbers: tuple[Number, ...]) -> Value:
    """A vector constant, lane by lane."""
    return Value(t, f"<{', '.join(str(constant(t.element, n)) for n in numbers)}>", None, True)


def zeros(t: Type) -> Value:
    return Value(t, "zeroinitializer", None, True)


def poison(t: Type) -> Value:
    """A value whose lanes are never read."""
    return Value(t, "poison", None, True)


def index(x: int) -> Value:
    """A size or an index as a constant."""
    return integer(I64, x)


def _hexadecimal(t: Type, x: float) -> str:
    """A float in hexadecimal: the bits of a float64, in which LLVM writes floats of any width exactly."""
    if t.width == 32:
        (x,) = struct.unpack("<f", struct.pack("<f", x))
    (bits,) = struct.unpack("<Q", struct.pack("<d", x))
    return f"0x{bits:016x}"

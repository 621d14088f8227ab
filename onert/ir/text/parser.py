"""The parser of the text form of models: the inverse of `text`."""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from typing import Any, NoReturn, TypeVar, get_args, get_type_hints

import numpy as np
from attrs import fields, frozen, has

from onert.ir.dtype import Array, DType
from onert.ir.errors import ModelError, OnertError
from onert.ir.op import Op
from onert.ir.operand import Operand, Resource
from onert.ir.operation import Operation
from onert.ir.ops import OPS
from onert.ir.quant import Quantization
from onert.ir.shape import Shape
from onert.ir.subgraph import Signature, SignatureTensor, StateUpdate, Subgraph, Subgraphs
from onert.ir.types import Constant, TensorType
from onert.ir.value import Value

Item = TypeVar("Item")

_TOKEN = re.compile(
    r"""(?P<space>\s+)
      | (?P<string>"(?:[^"\\]|\\.)*")
      | (?P<number>-?(?:inf\b|nan\b|\d+(?:\.\d*)?(?:e[-+]?\d+)?))
      | (?P<name>[A-Za-z_]\w*(?:\.\w+)?)
      | (?P<reference>%\d+)
      | (?P<mark>[{}()\[\]<>,:=@?*-])""",
    re.VERBOSE,
)


@frozen
class Token(Value):
    """A word of the text, and its position."""

    kind: str
    text: str
    at: int


def parse(source: str) -> Subgraphs:
    """Parse a model from text. Raises ModelError with line and column for invalid text."""
    return _Parser(source).model()


def parse_subgraph(source: str) -> Subgraph:
    """Parse one subgraph from text. Raises ModelError likewise."""
    parser = _Parser(source)
    found = parser.subgraph()
    parser.end()
    return found


class _Parser:
    """A recursive-descent parser, with one method per form."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.tokens = self._split()
        self.position = 0

    # ---- words

    def _split(self) -> list[Token]:
        tokens, at = [], 0
        while at < len(self.source):
            found = _TOKEN.match(self.source, at)
            if found is None:
                self._fail_at(at, f"unexpected character {self.source[at]!r}")
            kind = str(found.lastgroup)
            if kind != "space":
                tokens.append(Token(kind, found.group(), at))
            at = found.end()
        return [*tokens, Token("end", "the end", at)]

    def _fail_at(self, at: int, what: str) -> NoReturn:
        line = self.source.count("\n", 0, at) + 1
        column = at - self.source.rfind("\n", 0, at)
        raise ModelError(f"line {line}, column {column}: {what}")

    @property
    def here(self) -> Token:
        return self.tokens[self.position]

    def _fail(self, expected: str) -> NoReturn:
        self._fail_at(self.here.at, f"{self.here.text!r} found, expected {expected}")

    def take(self, kind: str, expected: str) -> str:
        if self.here.kind != kind:
            self._fail(expected)
        self.position += 1
        return self.tokens[self.position - 1].text

    def sees(self, text: str) -> bool:
        return self.here.text == text and self.here.kind in ("name", "mark", "number")

    def accept(self, text: str) -> bool:
        if self.sees(text):
            self.position += 1
            return True
        return False

    def expect(self, text: str) -> None:
        if not self.accept(text):
            self._fail(repr(text))

    def end(self) -> None:
        if self.here.kind != "end":
            self._fail("the end")

    # ---- small forms

    def string(self) -> str:
        at = self.here.at
        try:
            found = json.loads(self.take("string", "a string"))
        except ValueError as error:
            self._fail_at(at, f"a string cannot be read: {error}")
        return str(found)

    def integer(self) -> int:
        at = self.here.at
        text = self.take("number", "an integer")
        if not re.fullmatch(r"-?\d+", text):
            self._fail_at(at, f"{text!r} found, expected an integer")
        return int(text)

    def number(self) -> int | float:
        text = self.take("number", "a number")
        return int(text) if re.fullmatch(r"-?\d+", text) else float(text)

    def reference(self) -> int:
        return int(self.take("reference", "an operand such as %0")[1:])

    def blob(self) -> bytes:
        at = self.here.at
        try:
            return base64.b64decode(self.string(), validate=True)
        except binascii.Error as error:
            self._fail_at(at, f"base64 cannot be read: {error}")

    def listed(self, opening: str, closing: str, item: Callable[[], Item]) -> tuple[Item, ...]:
        self.expect(opening)
        found: list[Item] = []
        while not self.accept(closing):
            if found:
                self.expect(",")
            found.append(item())
        return tuple(found)

    # ---- types

    def dtype(self) -> DType:
        at = self.here.at
        try:
            return DType.from_text(self.take("name", "an element type"))
        except ValueError as error:
            self._fail_at(at, str(error))

    def dim(self) -> int | None:
        return None if self.accept("?") else self.integer()

    def shape(self) -> Shape:
        return self.listed("[", "]", self.dim)

    def tensor_type(self) -> TensorType:
        dtype = self.dtype()
        return self.type_of(dtype)

    def type_of(self, dtype: DType) -> TensorType:
        """The rest of a type, after its element type."""
        save = self.position
        self.expect("[")
        ranked = not self.accept("*")
        if ranked:
            self.position = save
            shape = self.shape()
        else:
            self.expect("]")
            shape = ()
        quantization = self.quantization() if self.accept("quantized") else None
        return TensorType(dtype, shape, quantization, ranked)

    def quantization(self) -> Quantization:
        at = self.here.at
        self.expect("scales")
        self.expect("=")
        scales = tuple(float(x) for x in self.listed("[", "]", self.number))
        self.expect("zeros")
        self.expect("=")
        zeros = self.listed("[", "]", self.integer)
        axis = block = None
        if self.accept("axis"):
            self.expect("=")
            axis = self.integer()
        if self.accept("block"):
            self.expect("=")
            block = self.integer()
        try:
            return Quantization(scales, zeros, axis, block)
        except OnertError as error:
            self._fail_at(at, str(error))

    # ---- the model

    def model(self) -> Subgraphs:
        self.expect("model")
        description = self.string()
        self.expect("{")
        graphs, signatures = [], []
        while not self.accept("}"):
            if self.sees("subgraph"):
                graphs.append(self.subgraph())
            elif self.sees("signature"):
                signatures.append(self.signature())
            else:
                self._fail("a subgraph, a signature or '}'")
        self.end()
        return Subgraphs(tuple(graphs), tuple(signatures), description)

    def signature(self) -> Signature:
        self.expect("signature")
        key = self.string()
        self.expect("subgraph")
        index = self.integer()
        self.expect("inputs")
        inputs = self.listed("(", ")", self.named)
        self.expect("outputs")
        return Signature(key, index, inputs, self.listed("(", ")", self.named))

    def named(self) -> SignatureTensor:
        name = self.string()
        self.expect("=")
        return SignatureTensor(name, self.reference())

    def subgraph(self) -> Subgraph:
        self.expect("subgraph")
        name = self.string()
        self.expect("{")
        operands: list[Operand] = []
        while self.here.kind == "reference":
            at = self.here.at
            if self.reference() != len(operands):
                self._fail_at(at, f"operands are out of order, expected %{len(operands)}")
            operands.append(self.operand())
        self.expect("inputs")
        inputs = self.listed("(", ")", self.reference)
        self.expect("outputs")
        outputs = self.listed("(", ")", self.reference)
        operations: list[Operation] = []
        state: list[StateUpdate] = []
        while not self.accept("}"):
            if self.accept("state"):
                variable = self.reference()
                self.expect("=")
                state.append(StateUpdate(variable, self.reference()))
            else:
                operations.append(self.operation())
        return Subgraph(tuple(operands), tuple(operations), inputs, outputs, name, tuple(state))

    def operand(self) -> Operand:
        name = self.string()
        self.expect(":")
        type_ = self.tensor_type()
        signature = self.shape() if self.accept("signature") else None
        variable = self.accept("variable")
        resource = self.resource(type_) if self.accept("resource") else None
        from_sizes = self.accept("from_sizes")
        data = self.elements(type_) if self.accept("=") else None
        return Operand(type_, name, data, variable, signature, resource, from_sizes)

    def resource(self, type_: TensorType) -> Resource:
        container, name = self.string(), self.string()
        initial = self.elements(type_) if self.accept("begins") else None
        return Resource(container, name, initial, self.accept("drawn"))

    def elements(self, type_: TensorType) -> Constant:
        at = self.here.at
        shape = tuple(d or 0 for d in type_.shape)
        try:
            return Constant(self._array(type_).reshape(shape))
        except (ValueError, OverflowError) as error:
            self._fail_at(at, f"the elements do not fit {type_}: {error}")

    def _array(self, type_: TensorType) -> Array:
        if self.accept("base64"):
            return np.frombuffer(self.blob(), type_.dtype.numpy)
        if self.accept("strings"):
            found = self.listed("[", "]", self.blob)
            out = np.empty(len(found), object)
            out[:] = found
            return out
        return np.array(self.listed("[", "]", self.element), type_.dtype.numpy)

    def element(self) -> int | float | bool:
        for word, value in (("true", True), ("false", False)):
            if self.accept(word):
                return value
        if self.accept("inf"):
            return math.inf
        return self.number()

    # ---- operations

    def operation(self) -> Operation:
        outputs: list[int] = []
        while self.here.kind == "reference":
            outputs.append(self.reference())
            if not self.accept(","):
                self.expect("=")
        at = self.here.at
        name = self.take("name", "an operation kind")
        if name not in OPS:
            self._fail_at(at, f"no operation is called {name!r}")
        inputs = self.listed("(", ")", self.used)
        op = self.op(OPS[name], at)
        location = self.string() if self.accept("@") else ""
        return Operation(op, inputs, tuple(outputs), location)

    def used(self) -> int | None:
        return None if self.accept("-") else self.reference()

    def op(self, kind: type[Op], at: int) -> Op:
        found: Op = self.record(kind, kind, at)
        return found

    def record(self, kind: type[Any], owner: type[Op], at: int) -> Any:
        """An instance of a frozen class from its fields: an operation, or a value of one of its attributes."""
        values = dict(self.listed("{", "}", lambda: self.attribute(owner)))
        names = {f.name for f in fields(kind)}
        if unknown := values.keys() - names:
            self._fail_at(at, f"{kind.__name__} has no attribute {', '.join(sorted(unknown))}")
        try:
            return kind(**values)
        except (TypeError, ValueError, OnertError) as error:
            self._fail_at(at, f"invalid {kind.__name__}: {error}")

    def attribute(self, kind: type[Op]) -> tuple[str, Any]:
        name = self.take("name", "an attribute's name")
        self.expect("=")
        return name, self.value(kind)

    def value(self, kind: type[Op]) -> Any:
        for word, value in (("none", None), ("true", True), ("false", False), ("inf", math.inf), ("nan", math.nan)):
            if self.accept(word):
                return value
        if self.accept("bytes"):
            return self.blob()
        if self.here.kind == "string":
            return self.string()
        if self.here.kind == "number":
            return self.number()
        if self.sees("("):
            return self.listed("(", ")", lambda: self.value(kind))
        if self.sees("subgraph"):
            return self.subgraph()
        if self.accept("<"):
            dtype = self.dtype()
            found = dtype if self.sees(">") else self.type_of(dtype)
            self.expect(">")
            return found
        at = self.here.at
        member = self.take("name", "a value")
        known = _named(kind.__name__)
        if member not in known:
            self._fail_at(at, f"{member!r} found, expected one of {', '.join(known)}")
        named = known[member]
        return self.record(named, kind, at) if isinstance(named, type) else named


@cache
def _named(kind: str) -> Mapping[str, Enum | type[Any]]:
    """The names that attributes of this kind can use: enumeration members as `Class.NAME`, and classes of values."""
    found: dict[str, Enum | type[Any]] = {}
    waiting = list(get_type_hints(OPS[kind]).values())
    while waiting:
        hint = waiting.pop()
        waiting += get_args(hint)
        if not isinstance(hint, type) or hint in (DType, TensorType, Subgraph):
            continue
        if issubclass(hint, Enum):
            found.update({f"{hint.__name__}.{m.name}": m for m in hint})
        elif has(hint):
            found[hint.__name__] = hint
            waiting += get_type_hints(hint).values()
    return found

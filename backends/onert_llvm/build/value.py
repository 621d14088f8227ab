"""Values of a function under construction, with the operators of the numbers they stand for."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen
from llvmlite import ir

from .types import I1, I32, I64, element, is_float, lanes, mangle, size, vec

Number = int | float


@frozen(eq=False)
class Val:
    """An SSA value. Arithmetic picks the integer, float or vector instruction from its type; numbers become constants.

    Integers: `<`, `>>` and `min` are signed, `//` and `%` take both sides as not negative. A number or a scalar beside
    a vector is spread over its lanes.
    """

    b: ir.IRBuilder
    v: ir.Value

    @property
    def type(self) -> ir.Type:
        return self.v.type

    @property
    def lanes(self) -> int:
        return lanes(self.v.type)

    @property
    def is_float(self) -> bool:
        return is_float(self.v.type)

    @property
    def constant(self) -> int | None:
        """The value of a scalar integer constant, else None."""
        v = self.v
        return v.constant if isinstance(v, ir.Constant) and isinstance(v.constant, int) else None

    def like(self, x: Val | Number) -> Val:
        """`x` with this value's type: a number as a constant, a scalar spread over the lanes."""
        if isinstance(x, Val):
            return x.splat(self.lanes) if x.lanes == 1 else x
        return Val(self.b, constant(self.type, x))

    def __add__(self, other: Val | Number) -> Val:
        a, o = self.constant, other if isinstance(other, int) else other.constant if isinstance(other, Val) else None
        if o == 0:
            return self
        if a is not None and o is not None:
            return Val(self.b, self.type(a + o))
        if a == 0 and isinstance(other, Val):
            return other
        return self._both(other, "add", "fadd")

    def __sub__(self, other: Val | Number) -> Val:
        if isinstance(other, int):
            return self + -other
        return self._both(other, "sub", "fsub")

    def __mul__(self, other: Val | Number) -> Val:
        a, o = self.constant, other if isinstance(other, int) else other.constant if isinstance(other, Val) else None
        if o == 1:
            return self
        if a is not None and o is not None:
            return Val(self.b, self.type(a * o))
        if a == 1 and isinstance(other, Val):
            return other
        if a == 0 or o == 0:
            return Val(self.b, constant(self.type, 0))
        return self._both(other, "mul", "fmul")

    def __radd__(self, other: Number) -> Val:
        return self + other

    def __rmul__(self, other: Number) -> Val:
        return self * other

    def __rsub__(self, other: Number) -> Val:
        return self.like(other) - self

    def __truediv__(self, other: Val | Number) -> Val:
        return Val(self.b, self.b.fdiv(self.v, self.like(other).v))

    def __floordiv__(self, other: Val | int) -> Val:
        return Val(self.b, self.b.udiv(self.v, self.like(other).v))

    def __mod__(self, other: Val | int) -> Val:
        return Val(self.b, self.b.urem(self.v, self.like(other).v))

    def quotient(self, other: Val | int) -> Val:
        """Divided as signed integers, truncated; by 0, or the least by -1, the process ends."""
        return Val(self.b, self.b.sdiv(self.v, self.like(other).v))

    def __neg__(self) -> Val:
        return Val(self.b, self.b.fneg(self.v) if self.is_float else self.b.neg(self.v))

    def __and__(self, other: Val | int) -> Val:
        return Val(self.b, self.b.and_(self.v, self.like(other).v))

    def __or__(self, other: Val | int) -> Val:
        return Val(self.b, self.b.or_(self.v, self.like(other).v))

    def __xor__(self, other: Val | int) -> Val:
        return Val(self.b, self.b.xor(self.v, self.like(other).v))

    def __lshift__(self, other: Val | int) -> Val:
        return Val(self.b, self.b.shl(self.v, self.like(other).v))

    def __rshift__(self, other: Val | int) -> Val:
        return Val(self.b, self.b.ashr(self.v, self.like(other).v))

    def lshr(self, other: Val | int) -> Val:
        """Shift right, filling with zeros."""
        return Val(self.b, self.b.lshr(self.v, self.like(other).v))

    def __lt__(self, other: Val | Number) -> Val:
        return self._compare("<", other)

    def __le__(self, other: Val | Number) -> Val:
        return self._compare("<=", other)

    def __gt__(self, other: Val | Number) -> Val:
        return self._compare(">", other)

    def __ge__(self, other: Val | Number) -> Val:
        return self._compare(">=", other)

    def eq(self, other: Val | Number) -> Val:
        return self._compare("==", other)

    def ne(self, other: Val | Number) -> Val:
        """Unequal; for floats also where either side is not a number."""
        if self.is_float:
            return Val(self.b, self.b.fcmp_unordered("!=", self.v, self.like(other).v))
        return self._compare("!=", other)

    def ult(self, other: Val | int) -> Val:
        """Less as unsigned integers: one test for `0 <= x < n`."""
        return Val(self.b, self.b.icmp_unsigned("<", self.v, self.like(other).v))

    def select(self, yes: Val | Number, no: Val | Number) -> Val:
        """`yes` where this condition holds, else `no`; one of the two must be a value."""
        kind = yes if isinstance(yes, Val) and yes.lanes >= self.lanes else no
        if not isinstance(kind, Val):
            raise TypeError("select between two numbers has no type")
        return Val(self.b, self.b.select(self.v, kind.like(yes).v, kind.like(no).v))

    def min(self, other: Val | Number) -> Val:
        """The lesser; for floats the other one where this is not a number."""
        other = self.like(other)
        return (self < other).select(self, other) if self.is_float else self.call("smin", other)

    def max(self, other: Val | Number) -> Val:
        """The greater; for floats the other one where this is not a number."""
        other = self.like(other)
        return (self > other).select(self, other) if self.is_float else self.call("smax", other)

    def clamp(self, low: Val | Number, high: Val | Number) -> Val:
        return self.max(low).min(high)

    def umin(self, other: Val | int) -> Val:
        """The lesser as unsigned integers."""
        return self.call("umin", self.like(other))

    def umax(self, other: Val | int) -> Val:
        """The greater as unsigned integers."""
        return self.call("umax", self.like(other))

    def call(self, name: str, *others: Val) -> Val:
        """The intrinsic `llvm.<name>` overloaded on this type alone."""
        full = f"llvm.{name}.{mangle(self.type)}"
        return intrinsic(self.b, full, self.type, self, *others)

    def splat(self, count: int) -> Val:
        """This scalar in every one of `count` lanes."""
        if count == 1:
            return self
        if isinstance(self.v, ir.Constant):
            return Val(self.b, Literal(vec(self.type, count), f"splat ({self.v})"))
        t = vec(self.type, count)
        one = self.b.insert_element(poison(t), self.v, I32(0))
        return Val(self.b, self.b.shuffle_vector(one, poison(t), ir.Constant(vec(I32, count), None)))

    def shuffle(self, order: Sequence[int], other: Val | None = None) -> Val:
        """The lanes at `order`, which counts on from this vector into `other`."""
        second = poison(self.type) if other is None else other.v
        mask = ir.Constant(vec(I32, len(order)), list(order))
        return Val(self.b, self.b.shuffle_vector(self.v, second, mask))

    def lane(self, index: int | Val) -> Val:
        """One element of a vector."""
        at = I32(index) if isinstance(index, int) else index.v
        return Val(self.b, self.b.extract_element(self.v, at))

    def bits(self, t: ir.Type) -> Val:
        """The same bits as another type of the same size."""
        return self if t == self.type else Val(self.b, self.b.bitcast(self.v, t))

    def cast(self, to: ir.Type, signed: bool = True) -> Val:
        """The same numbers with another element type:

        integers wrap, floats truncate towards zero (poison beyond range).
        """
        t, old = vec(to, self.lanes), self.type
        if t == old:
            return self
        b = self.b
        if self.is_float and is_float(t):
            f = b.fpext if size(t) > size(old) else b.fptrunc
        elif self.is_float:
            f = b.fptosi if signed else b.fptoui
        elif is_float(t):
            f = b.sitofp if signed else b.uitofp
        elif element(t).width < element(old).width:
            f = b.trunc
        else:
            f = b.sext if signed else b.zext
        return Val(b, f(self.v, t))

    def saturated(self, to: ir.Type, signed: bool = True) -> Val:
        """Floats as integers: truncated towards zero, beyond the range the nearest there is, 0 for not-a-number."""
        t = vec(to, self.lanes)
        name = f"llvm.{'fptosi' if signed else 'fptoui'}.sat.{mangle(t)}.{mangle(self.type)}"
        return intrinsic(self.b, name, t, self)

    def rounded_even(self) -> Val:
        """Floats as the nearest 32-bit integers, halves to even; what these cannot hold becomes some integer."""
        t = vec(I32, self.lanes)
        return intrinsic(self.b, f"llvm.lrint.{mangle(t)}.{mangle(self.type)}", t, self)

    def leading_zeros(self) -> Val:
        """How many zero bits lie before the first one; all of them for 0."""
        full = f"llvm.ctlz.{mangle(self.type)}"
        return intrinsic(self.b, full, self.type, self, Val(self.b, I1(0)))

    def _both(self, other: Val | Number, integer: str, real: str) -> Val:
        kind = other if isinstance(other, Val) and other.lanes > self.lanes else self
        emit = getattr(self.b, real if self.is_float else integer)
        return Val(self.b, emit(kind.like(self).v, kind.like(other).v))

    def _compare(self, sign: str, other: Val | Number) -> Val:
        emit = self.b.fcmp_ordered if self.is_float else self.b.icmp_signed
        return Val(self.b, emit(sign, self.v, self.like(other).v))


def constant(t: ir.Type, x: Number) -> ir.Constant:
    """A number as a constant of a type, in every lane."""
    e = element(t)
    value: Number = float(x) if is_float(t) else int(x)
    if isinstance(e, ir.IntType) and e != I1:
        value = (int(x) + (1 << e.width - 1)) % (1 << e.width) - (1 << e.width - 1)
    if not isinstance(t, ir.VectorType):
        return ir.Constant(t, value)
    return Literal(t, f"splat ({e(value)})")


class Literal(ir.Constant):  # type: ignore[misc]
    """A constant by its text: llvmlite writes out every lane of a vector's constant, which takes long to read."""

    def __init__(self, t: ir.Type, text: str) -> None:
        self.type = t
        self.constant = text

    def _get_reference(self) -> str:
        return str(self.constant)

    def _to_string(self) -> str:
        return f"{self.type} {self.constant}"


def poison(t: ir.Type) -> ir.Constant:
    """A value whose lanes nobody reads."""
    return Literal(t, "poison")


def intrinsic(b: ir.IRBuilder, full: str, result: ir.Type, *args: Val) -> Val:
    """Call an intrinsic by its whole name: llvmlite cannot mangle vector types itself."""
    module = b.module
    known = module.globals.get(full)
    if known is None:
        known = ir.Function(module, ir.FunctionType(result, [a.type for a in args]), full)
    return Val(b, b.call(known, [a.v for a in args]))


def number(b: ir.IRBuilder, x: Val | int) -> Val:
    """An index or size: a value, or a number as 64 bits."""
    return x if isinstance(x, Val) else Val(b, I64(x))

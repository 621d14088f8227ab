"""SSA values of a function under construction, with Python's arithmetic operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import define

from onert.ir.value import ByIdentity

from .text import Builder, Number, Value, constant, index, integer, poison, splat, vector_constant, zeros
from .types import I1, I32, Sort, Type, is_float, size, vec


def _instruction(name: str) -> Callable[[Val, Val | Number], Val]:
    """A method that emits one instruction on two values."""

    def method(self: Val, other: Val | Number) -> Val:
        return Val(self.b, self.b.binary(name, self.v, self.like(other).v))

    return method


def _comparison(name: str) -> Callable[[Val, Val | Number], Val]:
    """A method that compares two values."""

    def method(self: Val, other: Val | Number) -> Val:
        return self._compare(name, other)

    return method


@define(eq=False)
class Val(ByIdentity):
    """An SSA value. Arithmetic picks the integer, float or vector instruction from its type; numbers become constants.

    For integers, `<`, `>>` and `min` are signed, while `//` and `%` are unsigned. A number or scalar beside a vector is
    splatted over its lanes.
    """

    b: Builder
    v: Value

    @property
    def type(self) -> Type:
        return self.v.type

    @property
    def lanes(self) -> int:
        return self.v.type.lanes

    @property
    def is_float(self) -> bool:
        return self.v.type.element.sort is Sort.FLOAT

    @property
    def constant(self) -> int | None:
        """The value of a scalar integer constant, else None."""
        return self.v.constant

    def like(self, x: Val | Number) -> Val:
        """`x` with this value's type: a number as a constant, a scalar splatted over the lanes."""
        if isinstance(x, Val):
            return x.splat(self.lanes) if x.lanes == 1 else x
        return Val(self.b, constant(self.type, x))

    def __add__(self, other: Val | Number) -> Val:
        a, o = self.constant, other if isinstance(other, int) else other.constant if isinstance(other, Val) else None
        if o == 0:
            return self
        if a is not None and o is not None:
            return Val(self.b, constant(self.type, a + o))
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
            return Val(self.b, constant(self.type, a * o))
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

    __truediv__ = _instruction("fdiv")
    __floordiv__, __mod__ = _instruction("udiv"), _instruction("urem")
    __and__, __or__, __xor__ = _instruction("and"), _instruction("or"), _instruction("xor")
    __lshift__, __rshift__ = _instruction("shl"), _instruction("ashr")
    __lt__, __le__, __gt__, __ge__ = _comparison("lt"), _comparison("le"), _comparison("gt"), _comparison("ge")
    eq = _comparison("eq")
    lshr = _instruction("lshr")
    """Shift right, filling with zeros."""
    quotient = _instruction("sdiv")
    """Signed division, truncated. Division by 0, or of the least integer by -1, ends the process."""

    def __neg__(self) -> Val:
        return Val(
            self.b,
            self.b.value(self.type, f"fneg {self.v}")
            if self.is_float
            else self.b.binary("sub", constant(self.type, 0), self.v),
        )

    def ne(self, other: Val | Number) -> Val:
        """Unequal; for floats also if either side is NaN."""
        if self.is_float:
            return Val(self.b, self.b.compare("fcmp une", self.v, self.like(other).v))
        return self._compare("ne", other)

    def ult(self, other: Val | int) -> Val:
        """Less than as unsigned integers: a single test for `0 <= x < n`."""
        return Val(self.b, self.b.compare("icmp ult", self.v, self.like(other).v))

    def unordered(self, other: Val) -> Val:
        """Whether either of two floats is NaN, lane by lane."""
        return Val(self.b, self.b.compare("fcmp uno", self.v, other.v))

    def any(self) -> Val:
        """Whether any lane of a mask is set."""
        return self if self.lanes == 1 else intrinsic(self.b, f"llvm.vector.reduce.or.{self.type.suffix}", I1, self)

    def select(self, yes: Val | Number, no: Val | Number) -> Val:
        """`yes` where this condition holds, else `no`; at least one of the two must be a `Val`."""
        kind = yes if isinstance(yes, Val) and yes.lanes >= self.lanes else no
        if not isinstance(kind, Val):
            raise TypeError("select between two numbers has no type")
        one, other = kind.like(yes).v, kind.like(no).v
        return Val(self.b, self.b.value(one.type, f"select {self.v}, {one}, {other}"))

    def min(self, other: Val | Number) -> Val:
        """The lesser; for floats `other` if this one is NaN."""
        other = self.like(other)
        return (self < other).select(self, other) if self.is_float else self.call("smin", other)

    def max(self, other: Val | Number) -> Val:
        """The greater; for floats `other` if this one is NaN."""
        other = self.like(other)
        return (self > other).select(self, other) if self.is_float else self.call("smax", other)

    def maximum(self, other: Val) -> Val:
        """The greater; for floats NaN if either is."""
        if not self.is_float:
            return self.max(other)
        # The comparisons start with `other`, because `self` may be a running total on a dependency chain. For two zeros
        # of different sign the result is `other`, as with the processor's instruction.
        return other.ne(other).select(other, (other >= self).select(other, self))

    def minimum(self, other: Val) -> Val:
        """The lesser; for floats NaN if either is."""
        if not self.is_float:
            return self.min(other)
        return other.ne(other).select(other, (other <= self).select(other, self))

    def clamp(self, low: Val | Number, high: Val | Number) -> Val:
        return self.max(low).min(high)

    def umin(self, other: Val | int) -> Val:
        """The lesser as unsigned integers."""
        return self.call("umin", self.like(other))

    def umax(self, other: Val | int) -> Val:
        """The greater as unsigned integers."""
        return self.call("umax", self.like(other))

    def call(self, name: str, *others: Val) -> Val:
        """The intrinsic `llvm.<name>`, overloaded on this type only."""
        full = f"llvm.{name}.{self.type.suffix}"
        return intrinsic(self.b, full, self.type, self, *others)

    def splat(self, count: int) -> Val:
        """This scalar in each of `count` lanes."""
        if count == 1:
            return self
        t = vec(self.type, count)
        if self.v.is_constant:
            return Val(self.b, splat(t, self.v))
        one = self.b.value(t, f"insertelement {poison(t)}, {self.v}, i32 0")
        return Val(self.b, self.b.value(t, f"shufflevector {one}, {poison(t)}, {zeros(vec(I32, count))}"))

    def shuffle(self, order: Sequence[int], other: Val | None = None) -> Val:
        """The lanes at the indices in `order`; indices past the end of this vector select from `other`."""
        second = poison(self.type) if other is None else other.v
        mask = vector_constant(vec(I32, len(order)), tuple(order))
        t = vec(self.type.element, len(order))
        return Val(self.b, self.b.value(t, f"shufflevector {self.v}, {second}, {mask}"))

    def lane(self, at: int | Val) -> Val:
        """One element of a vector."""
        place = integer(I32, at) if isinstance(at, int) else at.v
        return Val(self.b, self.b.value(self.type.element, f"extractelement {self.v}, {place}"))

    def over_lanes(self, join: Callable[[Val, Val], Val]) -> Val:
        """Reduce all lanes (a power of two, at least 2) to one element by joining halves."""
        x = self
        while x.lanes > 2:
            half = x.lanes // 2
            x = join(x.shuffle(list(range(half))), x.shuffle(list(range(half, x.lanes))))
        return join(x.lane(0), x.lane(1))

    def bits(self, t: Type) -> Val:
        """The same bits as another type of the same size."""
        return self if t is self.type else Val(self.b, self.b.convert("bitcast", self.v, t))

    def cast(self, to: Type, signed: bool = True) -> Val:
        """The same numbers with another element type.

        Integers wrap; floats are truncated towards zero (poison beyond the range).
        """
        t, old = vec(to, self.lanes), self.type
        if t is old:
            return self
        if self.is_float and is_float(t):
            name = "fpext" if size(t) > size(old) else "fptrunc"
        elif self.is_float:
            name = "fptosi" if signed else "fptoui"
        elif is_float(t):
            name = "sitofp" if signed else "uitofp"
        elif t.width < old.width:
            name = "trunc"
        else:
            name = "sext" if signed else "zext"
        return Val(self.b, self.b.convert(name, self.v, t))

    def saturated(self, to: Type, signed: bool = True) -> Val:
        """Floats as integers: truncated towards zero, saturated beyond the range, 0 for NaN."""
        t = vec(to, self.lanes)
        name = f"llvm.{'fptosi' if signed else 'fptoui'}.sat.{t.suffix}.{self.type.suffix}"
        return intrinsic(self.b, name, t, self)

    def rounded_even(self) -> Val:
        """Floats as the nearest 32-bit integers, halves to even; arbitrary for values out of range."""
        t = vec(I32, self.lanes)
        return intrinsic(self.b, f"llvm.lrint.{t.suffix}.{self.type.suffix}", t, self)

    def leading_zeros(self) -> Val:
        """The number of leading zero bits; all of them for 0."""
        full = f"llvm.ctlz.{self.type.suffix}"
        return intrinsic(self.b, full, self.type, self, Val(self.b, integer(I1, 0)))

    def ones(self) -> Val:
        """The number of set bits."""
        return intrinsic(self.b, f"llvm.ctpop.{self.type.suffix}", self.type, self)

    def _both(self, other: Val | Number, whole: str, real: str) -> Val:
        kind = other if isinstance(other, Val) and other.lanes > self.lanes else self
        name = real if self.is_float else whole
        return Val(self.b, self.b.binary(name, kind.like(self).v, kind.like(other).v))

    def _compare(self, name: str, other: Val | Number) -> Val:
        """A comparison of signed integers, or of floats, which is false if either side is NaN."""
        order = "" if name in ("eq", "ne") else "s"
        full = f"fcmp o{name}" if self.is_float else f"icmp {order}{name}"
        return Val(self.b, self.b.compare(full, self.v, self.like(other).v))


def intrinsic(b: Builder, full: str, result: Type, *args: Val) -> Val:
    """Call an intrinsic by its full name."""
    return Val(b, b.call(full, result, [a.v for a in args]))


def number(b: Builder, x: Val | int) -> Val:
    """An index or size as a value; a number becomes a 64-bit constant."""
    return x if isinstance(x, Val) else Val(b, index(x))


def transposed(rows: Sequence[Val]) -> list[Val]:
    """Transpose as many vectors as they have lanes, a power of two: lane j of vector i becomes lane i of vector j."""
    found, lanes = list(rows), rows[0].lanes
    step = 1
    while step < lanes:
        low = [at if not at & step else lanes + at - step for at in range(lanes)]
        high = [at + step if not at & step else lanes + at for at in range(lanes)]
        for i in range(lanes):
            if not i & step:
                a, b = found[i], found[i + step]
                found[i], found[i + step] = a.shuffle(low, b), a.shuffle(high, b)
        step *= 2
    return found


def interleave(rows: Sequence[Val]) -> list[Val]:
    """The rows interleaved into as many vectors: element `i` of row `r` becomes number `i * len(rows) + r`."""
    count, lanes = len(rows), rows[0].lanes
    if count == 1:
        return list(rows)
    if count % 2:
        orders = [[(at % count, at // count) for at in range(j * lanes, (j + 1) * lanes)] for j in range(count)]
        return [_gathered(rows, order) for order in orders]
    low = [at // 2 + at % 2 * lanes for at in range(lanes)]
    high = [lanes // 2 + at for at in low]
    pairs = zip(interleave(rows[::2]), interleave(rows[1::2]), strict=True)
    return [one.shuffle(order, other) for one, other in pairs for order in (low, high)]


def deinterleave(run: Sequence[Val]) -> list[Val]:
    """The inverse of `interleave`."""
    count, lanes = len(run), run[0].lanes
    if count == 1:
        return list(run)
    if count % 2:
        orders = [[divmod(i * count + row, lanes) for i in range(lanes)] for row in range(count)]
        return [_gathered(run, order) for order in orders]
    pairs = list(zip(run[::2], run[1::2], strict=True))
    even, odd = (
        deinterleave([one.shuffle(range(first, 2 * lanes, 2), other) for one, other in pairs]) for first in (0, 1)
    )
    return [row for both in zip(even, odd, strict=True) for row in both]


def _gathered(vectors: Sequence[Val], order: Sequence[tuple[int, int]]) -> Val:
    """A vector of the elements given by pairs of vector and lane; it is built one source vector at a time."""
    lanes, found = vectors[0].lanes, vectors[0]
    for number, vector in enumerate(vectors):
        if number:
            picked = [lanes + lane if own == number else at for at, (own, lane) in enumerate(order)]
            found = found.shuffle(picked, vector)
        else:
            found = vector.shuffle([lane if own == 0 else 0 for own, lane in order])
    return found

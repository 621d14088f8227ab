"""A function under construction: structured control flow, and variables that become phis without a separate pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from attrs import define, field, frozen

from onert.ir.value import ByIdentity
from onert_llvm.target.isa import Isa

from .text import Block, Builder, Module, Number, Phi, Value, constant, integer, vector_constant
from .types import F32, I32, I64, VOID, Type, vec
from .value import Val, intrinsic, number
from .view import View


@define(eq=False)
class _Scope(ByIdentity):
    """The variables' current values in a region. `header` is the block for a loop's phis, None for other regions."""

    b: Builder
    parent: _Scope | None = None
    header: Block | None = None
    before: Block = field(factory=lambda: Block(""))
    values: dict[Var, Value] = field(factory=dict)
    entered: dict[Var, tuple[Value, Phi]] = field(factory=dict)

    def get(self, var: Var) -> Value:
        found = self.values.get(var)
        if found is not None:
            return found
        if self.parent is None:
            raise KeyError("a variable is used outside the region that created it")
        outer = self.parent.get(var)
        if self.header is None:
            return outer
        with self.b.at(self.header):
            phi = self.b.phi(outer.type, first=True)
        phi.add_incoming(outer, self.before)
        self.entered[var] = (outer, phi)
        self.values[var] = phi
        return phi

    def set(self, var: Var, value: Value) -> None:
        if self.header is not None and var not in self.values and self.parent is not None and self.parent.knows(var):
            self.get(var)
        self.values[var] = value

    def knows(self, var: Var) -> bool:
        return var in self.values or (self.parent is not None and self.parent.knows(var))


@frozen(eq=False)
class Var(ByIdentity):
    """A mutable register. It lives in the region (function, loop, branch) that created it and in all nested regions."""

    k: Kernel

    def get(self) -> Val:
        return Val(self.k.b, self.k.scope.get(self))

    def set(self, value: Val) -> None:
        self.k.scope.set(self, value.v)


_STACK = 16
"""The stack alignment that the ABI guarantees. The code generator spills wider registers anyway, but unless it is told
the alignment beforehand it lets them straddle two cache lines.
"""


class Kernel:
    """A function `void name(params)` under construction.

    A Python `for` unrolls, a `with k.loop(n)` stays a loop.
    """

    def __init__(self, module: Module, name: str, params: Mapping[str, Type], isa: Isa) -> None:
        self.isa = isa
        self.b = module.define(name, params, isa.vector_bytes if isa.vector_bytes > _STACK else 0)
        self.scope = _Scope(self.b)

    def arg(self, name: str) -> Val:
        """A parameter."""
        return Val(self.b, self.b.arguments[name])

    def view(self, base: Val, element: Type, *strides: Val | int) -> View:
        """A window on memory that starts at `base`, with elements of type `element` and strides in elements."""
        return View(self.b, base.v, element, strides)

    def index(self, x: Val | int) -> Val:
        """A size or an index as a 64-bit value."""
        return number(self.b, x)

    def const(self, t: Type, x: Number) -> Val:
        """A number as a constant of a type, in every lane."""
        return Val(self.b, constant(t, x))

    def zeros(self, element: Type, count: int) -> Val:
        return self.const(vec(element, count), 0)

    def f32(self, x: float) -> Val:
        return self.const(F32, x)

    def iota(self, element: Type, count: int) -> Val:
        """0, 1, 2, ... in the lanes."""
        return Val(self.b, vector_constant(vec(element, count), tuple(range(count))))

    def mask(self, count: int, valid: Val) -> Val:
        """A mask of `count` lanes, set for lanes below `valid` (64 bits; may be negative or beyond the last lane)."""
        some = valid.clamp(0, count).cast(I32)
        return self.iota(I32, count) < some.splat(count)

    def var(self, init: Val) -> Var:
        """A variable with an initial value."""
        made = Var(self)
        self.scope.values[made] = init.v
        return made

    def fma(self, a: Val, b: Val, c: Val) -> Val:
        """`a * b + c`, rounded once if the target has fused multiply-add."""
        return a.call("fma", b, c) if self.isa.fma else a * b + c

    def scratch(self, element: Type, count: int, align: int = 64) -> Val:
        """Stack memory with undefined contents, for as long as the function runs."""
        with self.b.entry():
            return Val(self.b, self.b.allocate(element, count, align))

    def call(self, function: str, *args: Val) -> None:
        """Call a function without a result that is defined elsewhere."""
        self.b.call(function, VOID, [a.v for a in args])

    def call_at(self, address: Val, *args: Val) -> None:
        """Call the function at an address, which has no result."""
        self.b.call_at(address.v, [a.v for a in args])

    def prefetch(self, address: View, soon: bool = True) -> None:
        """Prefetch a line into all levels of cache, or into all but the first if it is not needed `soon`."""
        args = [address.base, integer(I32, 0), integer(I32, 3 if soon else 2), integer(I32, 1)]
        intrinsic(self.b, "llvm.prefetch.p0", VOID, *(Val(self.b, a) for a in args))

    def pause(self) -> None:
        """Tell the processor that this thread waits for another."""
        if self.isa.architecture == "x86_64":
            self.call("llvm.x86.sse2.pause")
        elif self.isa.architecture == "aarch64":
            self.call("llvm.aarch64.hint", self.const(I32, 1))

    @contextmanager
    def loop(self, stop: Val | int, start: Val | int = 0, step: Val | int = 1, nonempty: bool = False) -> Iterator[Val]:
        """Count from `start` while below `stop` (signed, 64 bits); `step` is positive.

        There may be no trip at all; `nonempty` promises at least one and saves the test. Raises ValueError for constant
        bounds without a trip.
        """
        first, last = self.index(start), self.index(stop)
        if first.constant is not None and last.constant is not None:
            if first.constant >= last.constant:
                raise ValueError(f"loop from {first.constant} to {last.constant} makes no trip")
            nonempty = True
        before = self.b.block
        body = self.b.append_block("loop")
        done = self.b.append_block("done")
        if nonempty:
            self.b.branch(body)
        else:
            self.b.branch_if((first < last).v, body, done)
        outer = self.scope
        self.scope = _Scope(self.b, outer, body, before)
        self.b.block = body
        index = self.b.phi(I64)
        index.add_incoming(first.v, before)
        yield Val(self.b, self._opaque(index))
        following = self.b.binary("add nsw", index, self.index(step).v)
        inner, latch = self.scope, self.b.block
        index.add_incoming(following, latch)
        self.b.branch_if(self.b.compare("icmp slt", following, last.v), body, done)
        self.scope = outer
        self.b.block = done
        for var, (initial, phi) in inner.entered.items():
            final = inner.values[var]
            phi.add_incoming(final, latch)
            if final is phi:
                continue
            outer.set(var, final if nonempty else self._join(initial.type, (initial, before), (final, latch)))

    def pieces(self, stop: Val, size: int, start: Val | int = 0) -> Iterator[tuple[Val, int]]:
        """The start and size of each whole piece of `size`, then of each remaining element (size 1). A `for` over them
        emits its body twice, in one loop each.
        """
        whole = stop - (stop - start) % size
        with self.loop(whole, start, step=size) as at:
            yield at, size
        with self.loop(stop, whole) as at:
            yield at, 1

    def overlapping(self, stop: Val, size: int) -> Iterator[tuple[Val, int]]:
        """The start and size of each piece of `size`, of which the last may overlap the one before; if `stop`, at least
        1, is less than that, of each element. A `for` over them emits its body for either case.
        """
        with self.either(stop >= size) as (many, few):
            with many, self.loop(stop, step=size, nonempty=True) as at:
                yield at.min(stop - size), size
            with few, self.loop(stop, nonempty=True) as at:
                yield at, 1

    def registers(self, stop: Val, start: Val | int = 0, free: bool = True) -> Iterator[tuple[Val, Val | None]]:
        """The start of each register of a row, and the mask of its elements if it needs one. A `for` over them emits
        its body for whole registers and for the tail, or only once where masks cost nothing and may be `free`.
        """
        lanes = self.isa.f32
        if free and self.isa.free_masks:
            with self.loop(stop, start, step=lanes) as at:
                yield at, self.mask(lanes, stop - at)
            return
        whole = stop - (stop - start) % lanes
        with self.loop(whole, start, step=lanes) as at:
            yield at, None
        with self.when(whole < stop):
            yield whole, self.mask(lanes, stop - whole)

    @contextmanager
    def times(self, count: Val) -> Iterator[None]:
        """Run the body `count` times, at least once; counts down in the count's own type, which may have 32 bits."""
        before = self.b.block
        body, done = self.b.append_block("loop"), self.b.append_block("done")
        self.b.branch(body)
        outer = self.scope
        self.scope = _Scope(self.b, outer, body, before)
        self.b.block = body
        left = self.b.phi(count.type)
        left.add_incoming(count.v, before)
        yield
        fewer = self.b.binary("add", left, integer(count.type, -1))
        inner, latch = self.scope, self.b.block
        left.add_incoming(fewer, latch)
        self.b.branch_if(self.b.compare("icmp ne", fewer, integer(count.type, 0)), body, done)
        self.scope = outer
        self.b.block = done
        for var, (_, phi) in inner.entered.items():
            final = inner.values[var]
            phi.add_incoming(final, latch)
            if final is not phi:
                outer.set(var, final)

    def _opaque(self, counter: Value) -> Value:
        """The counter of a loop, disguised from LLVM's loop strength reduction.

        That pass takes a sixth of the code generation time, makes no kernel faster, and can only be turned off for the
        whole process. It ignores what is computed from a frozen number. The subtraction, for which no instruction is
        generated, is there because the freeze of the counter itself would be moved out of the loop.
        """
        same = self.b.binary("sub", counter, self.index(0).v)
        return self.b.value(I64, f"freeze i64 {same.text}")

    @contextmanager
    def repeat(self, condition: Callable[[], Val]) -> Iterator[None]:
        """Run the body as long as the condition, computed before each round, holds.

        Neither may change a variable from outside.
        """
        head, body, done = (self.b.append_block(name) for name in ("head", "round", "done"))
        self.b.branch(head)
        self.b.block = head
        outer, self.scope = self.scope, _Scope(self.b, self.scope)
        self.b.branch_if(condition().v, body, done)
        self.b.block = body
        yield
        self.b.branch(head)
        self.scope = outer
        self.b.block = done

    @contextmanager
    def when(self, condition: Val) -> Iterator[None]:
        """Run the body only if the condition holds."""
        with self.either(condition) as (then, _), then:
            yield

    @contextmanager
    def either(self, condition: Val) -> Iterator[tuple[Region, Region]]:
        """Two regions, `then` and `otherwise`, each to be entered once with `with`; one left out stays empty."""
        then, otherwise = self.b.append_block("then"), self.b.append_block("else")
        joined = self.b.append_block("join")
        self.b.branch_if(condition.v, then, otherwise)
        regions = Region(self, then), Region(self, otherwise)
        outer = self.scope
        yield regions
        for region in regions:
            if not region.entered:
                with region:
                    pass
            with self.b.at(region.end):
                self.b.branch(joined)
        self.b.block = joined
        written = dict.fromkeys(v for r in regions for v in r.scope.values if outer.knows(v))
        sides = {var: [(r.scope.values.get(var) or outer.get(var), r.end) for r in regions] for var in written}
        for var, (one, other) in sides.items():
            outer.set(var, self._join(one[0].type, one, other))

    def _join(self, t: Type, *sides: tuple[Value, Block]) -> Value:
        phi = self.b.phi(t)
        for value, block in sides:
            phi.add_incoming(value, block)
        return phi

    def finish(self) -> None:
        """Return from the function; nothing may follow."""
        self.b.leave()


class Region:
    """One side of a branch."""

    def __init__(self, k: Kernel, block: Block) -> None:
        self.k = k
        self.block = block
        self.scope = _Scope(k.b, k.scope)
        self.end = block
        self.entered = False

    def __enter__(self) -> None:
        self.entered = True
        self._outer = self.k.scope
        self.k.scope = self.scope
        self.k.b.block = self.block

    def __exit__(self, *_: object) -> None:
        self.end = self.k.b.block
        self.k.scope = self._outer

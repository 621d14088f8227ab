"""Strided windows on memory: indexing computes an address, only `load` and `store` access memory."""

from __future__ import annotations

from attrs import define

from onert.ir.value import ByIdentity

from .text import Builder, Value, constant, integer
from .types import I1, I32, VOID, Type, size, vec
from .value import Val, intrinsic, number


@define(eq=False)
class View(ByIdentity):
    """A window on elements of one type; `strides` are in elements.

    `view[i, j]` moves the window and drops the strides that it used; fewer indices than strides leave a smaller window.
    """

    b: Builder
    base: Value
    element: Type
    strides: tuple[Val | int, ...]

    def __getitem__(self, index: Val | int | tuple[Val | int, ...]) -> View:
        indices = index if isinstance(index, tuple) else (index,)
        if len(indices) > len(self.strides):
            raise IndexError(f"{len(indices)} indices into a view with {len(self.strides)} strides")
        moving, fixed = number(self.b, 0), 0
        for i, s in zip(indices, self.strides, strict=False):
            place = number(self.b, i) * s
            known = place.constant
            if known is None:
                moving = moving + place
            else:
                fixed += known
        return View(
            self.b,
            self._at(self._at(self.base, moving), number(self.b, fixed)),
            self.element,
            self.strides[len(indices) :],
        )

    def after(self, offset: Val | int) -> View:
        """The same window, moved by this many elements."""
        return View(self.b, self._at(self.base, number(self.b, offset)), self.element, self.strides)

    def _at(self, base: Value, offset: Val) -> Value:
        return base if offset.constant == 0 else self.b.address(base, self.element, offset.v)

    @property
    def address(self) -> Val:
        return Val(self.b, self.base)

    def load(self, lanes: int = 1, mask: Val | None = None, align: int | None = None) -> Val:
        """One element, or adjacent ones as a vector; lanes outside `mask` are not read and become 0."""
        t, align = vec(self.element, lanes), align or size(self.element)
        if mask is None:
            return Val(self.b, self.b.load(t, self.base, align))
        args = [self.address, Val(self.b, integer(I32, align)), mask, Val(self.b, constant(t, 0))]
        return intrinsic(self.b, f"llvm.masked.load.{t.suffix}.p0", t, *args)

    def load_once(self) -> Val:
        """One volatile read: the value that is checked is the one used, even if another thread writes it meanwhile."""
        return Val(self.b, self.b.load(self.element, self.base, size(self.element), volatile=True))

    def load_shared(self) -> Val:
        """One integer that other threads change: what they stored before they changed it is seen afterwards."""
        t = self.element
        return Val(self.b, self.b.value(t, f"load atomic {t.text}, ptr {self.base.text} acquire, align {size(t)}"))

    def replace(self, old: Val, new: Val) -> Val:
        """Store `new` if the integer here is `old`, unless another thread does so first; whether it was stored."""
        t = self.element
        pair = self.b.value(t, f"cmpxchg ptr {self.base.text}, {old.v}, {new.v} acq_rel acquire, align {size(t)}")
        return Val(self.b, self.b.value(I1, f"extractvalue {{ {t.text}, i1 }} {pair.text}, 1"))

    def raise_to(self, value: Val) -> None:
        """Store a nonnegative integer if it exceeds the one here, after everything that this thread stored before."""
        self.b.value(
            self.element, f"atomicrmw umax ptr {self.base.text}, {value.v} release, align {size(self.element)}"
        )

    def store(self, value: Val, mask: Val | None = None, align: int | None = None) -> None:
        """Store one element, or adjacent ones from a vector; those outside `mask` are left alone."""
        align = align or size(self.element)
        if mask is None:
            self.b.store(value.v, self.base, align)
            return
        args = [value, self.address, Val(self.b, integer(I32, align)), mask]
        intrinsic(self.b, f"llvm.masked.store.{value.type.suffix}.p0", VOID, *args)

"""Quotients, powers and shifts of integers."""

from __future__ import annotations

from onert_llvm.irbuilder import F32, F64, Kernel, Val


def quotient(k: Kernel, a: Val, b: Val) -> Val:
    """The quotient of signed integers; the minimum divided by -1 wraps."""
    if b.v.is_constant:
        return a.quotient(b)
    minus = b.eq(-1)
    divisor = (minus | b.eq(0)).select(1, b)
    return minus.select(-a, _real_quotient(a, divisor, True) if _has_real(k, a) else a.quotient(divisor))


def unsigned_quotient(k: Kernel, a: Val, b: Val) -> Val:
    if b.v.is_constant:
        return a // b
    divisor = b.eq(0).select(1, b)
    return _real_quotient(a, divisor, False) if _has_real(k, a) else a // divisor


def _has_real(k: Kernel, a: Val) -> bool:
    """Whether integers are divided as floats, for which processors have vector instructions."""
    return a.lanes > 1 and int(a.type.width) <= 32 and k.isa.architecture in ("x86_64", "aarch64")


def _real_quotient(a: Val, b: Val, signed: bool) -> Val:
    """The quotient by a float of at least half as many bits more than the integers: unless it is whole, it is further
    from the next integer than it is rounded."""
    real = F64 if int(a.type.width) == 32 else F32
    return (a.cast(real, signed) / b.cast(real, signed)).cast(a.type.element, signed)


def power(k: Kernel, a: Val, b: Val) -> Val:
    """An integer power with a non-negative exponent, by squaring; wraps."""
    total, base, left = k.var(a.like(1)), k.var(a), k.var(b)
    with k.loop(b.type.width):
        odd = (left.get() & 1).ne(0)
        total.set(odd.select(total.get() * base.get(), total.get()))
        base.set(base.get() * base.get())
        left.set(left.get().lshr(1))
    return total.get()


def shifted(a: Val, b: Val, left: bool) -> Val:
    bits = a.type.width
    inside = b.ult(bits)
    by = inside.select(b, 0)
    return inside.select(a << by if left else a.lshr(by), 0)

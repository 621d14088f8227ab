"""Objects with several versions of their code: which processors can be told apart at run time, and which to build."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import evolve

from onert.ir import BackendError

from .isa import ISAS, Isa
from .triple import choose

NEEDS = {
    "x86-64": (),
    "x86-64-v3": ("v3",),
    "x86-64-v3-vnni": ("v3", "avxvnni"),
    "x86-64-v4": ("v3", "v4"),
    "x86-64-v4-vnni": ("v3", "v4", "avx512vnni"),
    "x86-64-v4-vbmi": ("v3", "v4", "avx512vnni", "avx512vbmi"),
    "aarch64": (),
    "aarch64-dotprod": ("dotprod",),
}
"""The targets that may be versions in one object, and the features that are checked before such code runs."""

MULTI = {
    "x86_64": ("x86-64", "x86-64-v3", "x86-64-v4-vnni", "x86-64-v4-vbmi"),
    "aarch64": ("aarch64", "aarch64-dotprod"),
}
"""The processors that "multi" stands for: those that differ most. Each further version would repeat the weights."""


def versions(triple: str | None, cpu: str | None, features: str | None) -> tuple[Isa, ...]:
    """The requested targets, from the least to the most capable. As `choose`, but `cpu` may also be "multi" or several
    names separated by commas.

    If neither a processor nor features are named, a machine that supports "multi" gets several versions. Raises
    BackendError if a name is unknown or the versions cannot be told apart.
    """
    asked = choose(triple, None, None) if cpu in (None, "multi") else None
    if cpu is None and features is None and asked is not None and asked.name != triple and why_not_multi(asked) is None:
        cpu = "multi"
    if cpu == "multi":
        assert asked is not None
        why = why_not_multi(asked)
        if why is not None:
            raise BackendError(f"several versions cannot be made for {asked.triple}: {why}")
        cpu = ",".join(MULTI[asked.architecture])
    if cpu is None or "," not in cpu:
        return (choose(triple, cpu, features),)
    if features is not None:
        raise BackendError(f"the features {features!r} are given with the processors {cpu!r}, expected one processor")
    return _apart(triple, cpu.split(","))


def _apart(triple: str | None, names: list[str]) -> tuple[Isa, ...]:
    base = choose(triple, None, None)
    own = {isa.name: evolve(isa, triple=base.triple) for isa in ISAS if isa.architecture == base.architecture}
    found = [own[name] if name in own else choose(triple, name, None) for name in names]
    why = why_not_multi(base)
    odd = next((isa.name for isa in found if isa.name not in NEEDS), None)
    if why is None and odd is not None:
        known = ", ".join(isa.name for isa in ISAS if isa.name in NEEDS and isa.name in own)
        why = f"no program can detect the processor {odd!r}, expected some of {known}"
    if why is not None:
        raise BackendError(f"several versions cannot be made for {base.triple}: {why}")
    order = [isa.name for isa in ISAS]
    return tuple(sorted(dict.fromkeys(found), key=lambda isa: order.index(isa.name)))


def why_not_multi(isa: Isa) -> str | None:
    """The reason why an object for this machine can have only one version; None if it may have several."""
    if isa.architecture not in MULTI:
        return f"onert generates only one version of code for {isa.architecture}, expected one of {', '.join(MULTI)}"
    if isa.architecture != "x86_64" and "linux" not in isa.triple:  # x86-64 has cpuid
        return "only Linux tells a program which features its processor has"
    return None


def notes(isas: Sequence[Isa]) -> Iterator[str]:
    """A note if a single version of the code is much slower on a better processor."""
    if len(isas) > 1:
        return
    (isa,) = isas
    of_bytes, of_floats = instructions(isa)
    if max(of_bytes, of_floats) >= 2:
        several = " or several versions (--cpu multi)" if why_not_multi(isa) is None else ""
        yield (
            f"on the best processors code for {isa.name} alone takes up to {of_bytes:g} times the vector instructions "
            f"for products of bytes and {of_floats:g} times for products of floats; choose a processor (--cpu){several}"
        )


def instructions(isa: Isa) -> tuple[float, float]:
    """How many times as many vector instructions a target needs as the most capable target of its architecture, for
    products of bytes and for products of floats."""
    others = [isa, *(other for other in ISAS if other.architecture == isa.architecture)]
    return max(map(_bytes, others)) / _bytes(isa), max(map(_floats, others)) / _floats(isa)


def _bytes(isa: Isa) -> float:
    """Products of bytes per instruction; if bytes are widened to 16 bits, a second instruction adds the pairs."""
    return isa.vector_bytes / (4 if isa.dot.value.wide else 1)


def _floats(isa: Isa) -> float:
    return isa.f32 * (1 if isa.fma else 0.5)

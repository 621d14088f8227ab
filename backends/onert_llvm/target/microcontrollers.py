"""Processors without an operating system: Arm Cortex-M and 32-bit RISC-V."""

from __future__ import annotations

from onert.ir import BackendError

from .architecture import Architecture, like
from .isa import Products

_TUNING = frozenset({"strict-align"})
_HARD = (
    like("cortex-m4", "cortex-m4")
    | like("cortex-m7", "cortex-m7")
    | like("cortex-m33", "cortex-m33 cortex-m35p")
    | like("cortex-m55", "cortex-m55 cortex-m85")
)
_SOFT = {name: f"{isa}-soft" for name, isa in _HARD.items()}
_NO_PAIRS = {"dsp": {"products": Products.BYTES}}
_DOUBLES = {"fp64": {"doubles": True}}

ARMV6M = Architecture(
    "thumbv6m-unknown-none-eabi", like("cortex-m0", "cortex-m0 cortex-m0plus cortex-m1"), {}, frozenset()
)
ARMV7M = Architecture("thumbv7m-unknown-none-eabi", like("cortex-m3", "cortex-m3"), {}, _TUNING)
ARMV8M_BASE = Architecture("thumbv8m.base-unknown-none-eabi", like("cortex-m23", "cortex-m23"), {}, frozenset())
CORTEX_M = Architecture("thumbv7em-unknown-none-eabihf", _HARD, _DOUBLES, _TUNING | {"dsp"}, _NO_PAIRS)
CORTEX_M_SOFT = Architecture("thumbv7em-unknown-none-eabi", _SOFT, {}, _TUNING | {"dsp"}, _NO_PAIRS)
RISCV32 = Architecture(
    "riscv32-unknown-none-elf",
    like("rv32imc", "generic-rv32 sifive-e20 sifive-e21 sifive-e31"),
    {},
    frozenset(["a", "zba", "zbb", "zbs"]),
)

_ARM = {
    "thumbv6m": (ARMV6M, None),
    "thumbv7m": (ARMV7M, None),
    "thumbv8m.base": (ARMV8M_BASE, None),
    **dict.fromkeys(("thumbv7em", "thumbv8m.main", "thumbv8.1m.main"), (CORTEX_M_SOFT, CORTEX_M)),
}
"""The architectures whose convention passes floats in integer registers, and in floating-point registers."""

_TRIPLES = {
    "cortex-m0": "thumbv6m", "cortex-m0plus": "thumbv6m", "cortex-m1": "thumbv6m", "cortex-m3": "thumbv7m",
    "cortex-m4": "thumbv7em", "cortex-m7": "thumbv7em", "cortex-m23": "thumbv8m.base", "cortex-m33": "thumbv8m.main",
    "cortex-m35p": "thumbv8m.main", "cortex-m55": "thumbv8.1m.main", "cortex-m85": "thumbv8.1m.main",
}  # fmt: skip


def microcontroller(triple: str) -> Architecture | None:
    """The architecture of a triple, or None if there is none. Raises BackendError if it lacks the triple's ABI."""
    first = triple.split("-", 1)[0]
    if first == "riscv32":
        return RISCV32
    if first not in _ARM:
        return None
    soft, hard = _ARM[first]
    if "-" not in triple or not triple.endswith("hf"):
        return hard if "-" not in triple and hard is not None else soft
    if hard is None:
        raise BackendError(
            f"the target {triple!r} passes floats in floating-point registers, which its processors do not have; "
            "expected a triple that ends in eabi"
        )
    return hard


def bare_triple(triple: str, cpu: str | None) -> str:
    """Replaces `arm-none-eabi`, which does not name the architecture, by the triple of the processor.

    Other triples are returned as they are. Without a processor it is the architecture that every Cortex-M runs, or the
    Cortex-M4's if floats are passed in registers. Raises BackendError if the processor is unknown.
    """
    first, *rest = triple.split("-")
    if first not in ("arm", "thumb") or "none" not in rest or not rest[-1].startswith("eabi"):
        return triple
    least = "cortex-m4" if rest[-1].endswith("hf") else "cortex-m0"
    chosen = cpu or least
    if chosen not in _TRIPLES:
        raise BackendError(f"the processor {chosen!r} is not known for {triple}, expected one of {', '.join(_TRIPLES)}")
    return "-".join((_TRIPLES[chosen], *rest))

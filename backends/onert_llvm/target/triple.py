"""Chooses the target for a triple, a processor name and features, as users specify them for bundles."""

from __future__ import annotations

import re

from attrs import evolve

from onert.ir import BackendError

from .architecture import Architecture
from .architecture import like as _like
from .isa import ISAS, Dot, Isa, Lookup, runnable, target
from .microcontrollers import bare_triple, microcontroller

_SYSTEMS = frozenset({"linux", "none", "unknown", "elf", "freebsd", "netbsd", "openbsd", "wasi", "windows"})
_APPLE = re.compile(r"(darwin|macosx?)[0-9.]*")
"""macOS, with or without its version."""


_AVX2 = {"vector_bytes": 32, "masks": True, "lookup": Lookup.SHUFFLE}
_AVX512 = {"vector_bytes": 64, "masks": True, "registers": 32, "fma": True, "lookup": Lookup.SHUFFLE}

_X86 = Architecture(
    "x86_64-unknown-linux-gnu",
    _like("x86-64", "x86-64 x86-64-v2 nehalem westmere sandybridge ivybridge silvermont goldmont")
    | _like("x86-64-v3", "x86-64-v3 haswell broadwell skylake znver1 znver2 znver3")
    | _like("x86-64-v3-vnni", "x86-64-v3-vnni alderlake raptorlake gracemont")
    | _like("x86-64-v4", "x86-64-v4 skylake-avx512")
    | _like("x86-64-v4-vnni", "x86-64-v4-vnni cascadelake")
    | _like("x86-64-v4-vbmi", "x86-64-v4-vbmi icelake-server")
    | _like("x86-64-v4-bf16", "x86-64-v4-bf16 sapphirerapids znver4 znver5"),
    {
        "avx2": _AVX2,
        "fma": {"fma": True},
        "avxvnni": {**_AVX2, "dot": Dot.AVX_VNNI},
        "avx512bw": _AVX512,
        "avx512bf16": {"bfloat": True},
    },
    frozenset(["sse3", "ssse3", "sse4.1", "sse4.2", "popcnt", "lzcnt", "bmi", "bmi2", "f16c", "prefer-256-bit"]),
)
_X86_32 = Architecture(
    "i686-unknown-linux-gnu",
    _like("i386", "pentium4 pentium-m prescott nocona core2 atom bonnell silvermont"),
    {},
    frozenset(["sse3", "ssse3", "sse4.1", "sse4.2", "popcnt"]),
)
_AARCH64 = Architecture(
    "aarch64-unknown-linux-gnu",
    _like("aarch64", "generic cortex-a53 cortex-a57 cortex-a72 cortex-a73")
    | _like("aarch64-dotprod", "cortex-a55 cortex-a75 cortex-a76 cortex-a77 cortex-a78 cortex-x1 cortex-a510")
    | _like("aarch64-dotprod", "neoverse-n1 neoverse-n2 neoverse-v1 neoverse-v2 apple-m1 apple-m2"),
    {"dotprod": {"dot": Dot.SDOT}, "bf16": {"bfloat": True}, "fullfp16": {"half": True}},
    frozenset(["lse", "rcpc", "crc", "i8mm"]),
)
_ARM = Architecture(
    "armv7-unknown-linux-gnueabihf",
    _like("armv7", "generic cortex-a8 cortex-a9")
    | _like("armv7-vfpv4", "cortex-a5 cortex-a7 cortex-a12 cortex-a15 cortex-a17 cortex-a32 cortex-a53"),
    {"vfp4": {"fma": True}},
    frozenset(["hwdiv", "hwdiv-arm", "d32"]),
)
_RISCV = Architecture(
    "riscv64-unknown-linux-gnu",
    _like("riscv64", "generic-rv64 sifive-u54 sifive-u74 rocket-rv64")
    | _like("riscv64-v", "riscv64-v sifive-x280 sifive-p670 spacemit-x60"),
    {"v": {"masks": True, "registers": 32}},
    frozenset(["zba", "zbb", "zbs"]),
)
_WASM = Architecture(
    "wasm32-unknown-unknown",
    _like("wasm32", "generic bleeding-edge"),
    {},
    frozenset(["simd128", "relaxed-simd", "bulk-memory", "nontrapping-fptoint", "sign-ext", "mutable-globals"]),
)


def choose(triple: str | None, cpu: str | None, features: str | None) -> Isa:
    """The requested target; without a triple this machine's architecture, without a processor its baseline.

    `triple` may be LLVM's, a tool chain's (without the vendor), an architecture alone, or a target's own name; the
    `cpu` "native" is the most capable target that this machine runs. Raises BackendError if a name is unknown.
    """
    if cpu == "native":
        isa = _native(triple)
        wanted = _architecture(isa.triple)
    else:
        named = next((isa for isa in ISAS if isa.name == triple), None)
        full = named.triple if named else _normal(runnable()[0].triple if triple is None else bare_triple(triple, cpu))
        wanted = _architecture(full)
        isa = named if named and cpu is None else _processor(wanted, full, cpu)
    for feature in filter(None, (features or "").split(",")):
        isa = _with_feature(wanted, isa, feature)
    return isa


def _native(triple: str | None) -> Isa:
    isa = runnable("bf16")[-1]
    if triple is not None and _architecture(_normal(triple)) is not _architecture(isa.triple):
        raise BackendError(f"the processor native is {isa.architecture}, which does not match the target {triple!r}")
    return isa


def _architecture(triple: str) -> Architecture:
    first = triple.split("-", 1)[0]
    small = microcontroller(triple)
    if small is not None:
        return small
    if first.startswith(("armv7", "thumbv7")) and first[-1] != "m":
        return _ARM
    found = {"x86_64": _X86, "i686": _X86_32, "aarch64": _AARCH64, "riscv64": _RISCV, "wasm32": _WASM}.get(first)
    if found is None:
        raise BackendError(
            f"the target {triple!r} is for none of the architectures x86_64, i386, aarch64, armv7, thumbv7, thumbv6m, "
            "thumbv7m, thumbv7em, thumbv8m.base, thumbv8m.main, riscv32, riscv64 and wasm32"
        )
    return found


_OTHER_NAMES = {
    "amd64": "x86_64", "arm64": "aarch64", "arm": "armv7", "armv7a": "armv7", "armv7l": "armv7",
    "i386": "i686", "i486": "i686", "i586": "i686", "x86": "i686",
    "riscv32imc": "riscv32", "riscv32imac": "riscv32",
}  # fmt: skip


def _normal(triple: str) -> str:
    """A triple as LLVM writes it: architecture, vendor, system, environment."""
    first, *rest = triple.split("-")
    first = _OTHER_NAMES.get(first, first)
    architecture = _architecture(first)
    if not rest:
        return first + "-" + architecture.triple.split("-", 1)[1]
    if rest[-1] == "mingw32":  # GCC's name
        rest = ["w64", "windows", "gnu"]
    if rest[0] == "windows":
        rest = ["pc", *rest]
    if _APPLE.fullmatch(rest[0]):
        rest = ["apple", *rest]
    if rest[0] in _SYSTEMS and not (len(rest) > 1 and rest[1] in _SYSTEMS):
        rest = ["unknown", *rest]
    if len(rest) < 2:
        raise BackendError(f"the target {triple!r} names no system, expected one like {architecture.triple}")
    if rest[1] not in _SYSTEMS and not _APPLE.fullmatch(rest[1]):
        known = "linux, none, wasi, windows or macos"
        raise BackendError(f"the target {triple!r} is for the system {rest[1]!r}, expected {known}")
    if (rest[1] == "windows" or _APPLE.fullmatch(rest[1])) and architecture not in (_X86, _AARCH64):
        raise BackendError(f"the target {triple!r} is for {rest[1]}, which needs x86_64 or aarch64")
    if rest[1] == "windows" and rest[2:] not in (["gnu"], ["msvc"]):
        raise BackendError(f"the target {triple!r} does not name a toolchain, expected gnu or msvc at its end")
    if architecture is _ARM and not rest[-1].endswith("hf"):
        raise BackendError(f"the target {triple!r} passes floats in integer registers, expected one that ends in hf")
    return "-".join((first, *rest))


def _processor(wanted: Architecture, triple: str, cpu: str | None) -> Isa:
    least = "apple-m1" if wanted is _AARCH64 and "-apple-" in triple else next(iter(wanted.processors))
    chosen = least if cpu is None else cpu
    if chosen not in wanted.processors:
        known = ", ".join(wanted.processors)
        raise BackendError(f"the processor {chosen!r} is not known for {triple}, expected one of {known}")
    isa = target(wanted.processors[chosen])
    if chosen == isa.name or chosen == isa.cpu:
        return evolve(isa, triple=triple)
    return evolve(isa, triple=triple, name=chosen, cpu=chosen)


def _with_feature(wanted: Architecture, isa: Isa, feature: str) -> Isa:
    """The target with one feature added or removed."""
    sign, name = feature[:1], feature[1:]
    known = sorted({*wanted.gains, *wanted.others})
    if sign not in ("+", "-") or name not in known:
        raise BackendError(
            f"the feature {feature!r} is not known for {isa.triple}, expected + or - and one of {', '.join(known)}"
        )
    if sign == "-" and name in wanted.gains:
        raise BackendError(f"the feature {name!r} cannot be taken from {isa.name}, expected a lesser processor")
    gained = (wanted.gains if sign == "+" else wanted.losses).get(name, {})
    features = ",".join(filter(None, (isa.features, feature)))
    if gained.get("vector_bytes", 0) == 64:
        features += ",-prefer-256-bit"
    widths = {k: max(v, getattr(isa, k)) if isinstance(v, int) else v for k, v in gained.items()}
    return evolve(isa, name=f"{isa.name}{feature}", features=features, **widths)

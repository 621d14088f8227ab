"""Target descriptions: what each instruction set offers kernels, and which target this machine supports."""

from __future__ import annotations

import platform
from enum import Enum, IntEnum
from functools import cache

import numpy as np
from attrs import evolve, frozen

from onert.ir import BackendError
from onert.ir.value import Value

from .processor import processor


@frozen
class DotProduct(Value):
    """A dot-product instruction: multiplies `group` adjacent bytes of two vectors and adds the products in 32 bits.

    `moved` are the offsets that bring unsigned and signed activations into the domain of the instruction; weights are
    signed. `intrinsic` is the LLVM intrinsic as a format string; without one, bytes are widened to 16 bits and pairs of
    products are added, or if they are `short`, sums of two products fit in 16 bits and are added up to 32. `pairs` is
    the intrinsic for pairs of 16-bit numbers, if the target has one.
    """

    name: str
    group: int
    moved: tuple[int, int] = (0, 0)
    intrinsic: str = ""
    pairs: str = ""
    short: bool = False

    @property
    def wide(self) -> bool:
        """Whether bytes are widened to 16 bits first."""
        return not self.intrinsic and not self.short

    def named(self, name: str, lanes: int) -> str:
        """The name of an intrinsic for a vector of `lanes` 32-bit sums."""
        return name.format(lanes=lanes, bytes=lanes * 4, bits=lanes * 32)


_VPDP = ("llvm.x86.avx512.vpdpbusd.{bits}", "llvm.x86.avx512.vpdpwssd.{bits}")


class Dot(Enum):
    """The instructions for products of bytes, one per member.

    `VNNI` is AVX-512's vpdpbusd, `AVX_VNNI` the same under AVX2's encoding: unsigned by signed bytes. `SDOT` is Arm's:
    signed by signed. `MADD` widens to 16 bits and adds pairs of products (pmaddwd). `SHORT` is x86's pmaddubsw, for
    weights of at most four bits: unsigned by signed bytes, the sums of two products in 16 bits.
    """

    VNNI = DotProduct("vpdpbusd", 4, (0, 128), *_VPDP)
    AVX_VNNI = DotProduct("vpdpbusd.vex", 4, (0, 128), *_VPDP)
    SDOT = DotProduct("sdot", 4, (-128, 0), "llvm.aarch64.neon.sdot.v{lanes}i32.v{bytes}i8")
    MADD = DotProduct("pmaddwd", 2)
    SHORT = DotProduct("pmaddubsw", 4, (0, 128), short=True)


class Lookup(IntEnum):
    """How many entries of a byte table one lookup instruction covers.

    `PERMUTE` is AVX-512's vpermi2b, `TABLE` Arm's tbl with four registers, `SHUFFLE` x86's pshufb, which uses the same
    sixteen entries in each 128-bit lane.
    """

    NONE = 0
    SHUFFLE = 16
    TABLE = 64
    PERMUTE = 128


class Products(Enum):
    """How processors with word-sized registers multiply bytes: one at a time, as pairs of halfwords, or sixteen at a
    time with Helium.
    """

    BYTES = "mla"
    SMLAD = "smlad"
    HELIUM = "vmladava"


@frozen
class Isa(Value):
    """An instruction set.

    `vector_bytes` is the width of a vector register, `registers` their number, `masks` whether a masked load or store
    is one instruction, `fma` whether multiply-add rounds once, `dot` the instruction for integer products, `abi` the
    calling convention if the triple leaves a choice, `doubles` whether the hardware has vectors of float64, `small`
    whether memory is counted in kilobytes, so that nothing is precomputed for all steps at once, `products` how
    such processors multiply bytes, `lookup` the instruction for byte tables, `bfloat` whether one instruction adds
    products of bfloat16 pairs to float32, `half` whether there is a vector multiply-add in float16, `processor` the
    machine that code is generated for if it is this one (`processor.py`), `narrow` whether kernels use half registers
    (`narrowed`).
    """

    name: str
    triple: str
    cpu: str
    features: str
    vector_bytes: int
    registers: int
    fma: bool
    masks: bool
    dot: Dot
    abi: str = ""
    doubles: bool = True
    small: bool = False
    products: Products | None = None
    lookup: Lookup = Lookup.NONE
    bfloat: bool = False
    half: bool = False
    processor: str = ""
    narrow: bool = False

    def __hash__(self) -> int:
        return hash((self.name, self.processor))  # a key looked up for every tile; equality compares the rest

    @property
    def free_masks(self) -> bool:
        """Whether there are mask registers, and masked instructions are as fast as unmasked ones."""
        return self.masks and self.registers >= 32

    @property
    def rounds(self) -> bool:
        """Whether floating-point instructions can encode a rounding mode."""
        return self.free_masks and self.architecture == "x86_64"

    @property
    def converts_halves(self) -> bool:
        """Whether instructions convert a register of float16 to float32, and back."""
        return self.fma and self.architecture in ("x86_64", "aarch64")

    @property
    def group(self) -> int:
        """How many neighbours along k are adjacent for each column of a packed panel of bytes."""
        return self.dot.value.group

    @property
    def widens_bytes(self) -> bool:
        """Whether bytes are multiplied as 16-bit pairs by x86's instruction for these."""
        return self.dot.value.wide and self.architecture == "x86_64"

    @property
    def architecture(self) -> str:
        """The first component of the triple."""
        return self.triple.split("-", 1)[0]

    @property
    def pointer_bytes(self) -> int:
        return 4 if self.architecture.startswith(("arm", "thumb", "wasm32", "riscv32", "i")) else 8

    def whole(self, count: int) -> int:
        """This many 32-bit lanes, rounded up to whole registers."""
        return -(-count // self.f32) * self.f32

    def lanes(self, bits: int) -> int:
        """How many elements of `bits` bits a register holds."""
        return self.vector_bytes * 8 // bits

    @property
    def f32(self) -> int:
        """Lanes of 32 bits in a register."""
        return self.vector_bytes // 4


_LINUX_X86, _LINUX_ARM = "x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"
_LINUX_X86_32 = "i686-unknown-linux-gnu"
_LINUX_ARM32 = "armv7-unknown-linux-gnueabihf"
_LINUX_RISCV, _WASM = "riscv64-unknown-linux-gnu", "wasm32-unknown-unknown"

_V6M, _V7M, _V7EM = (f"thumb{version}-unknown-none-eabi" for version in ("v6m", "v7m", "v7em"))
_V8M_BASE, _V8M, _V81M = (f"thumb{version}-unknown-none-eabi" for version in ("v8m.base", "v8m.main", "v8.1m.main"))
_BARE_RISCV32 = "riscv32-unknown-none-elf"

_ALIGNED = "+strict-align"
"""Only aligned memory accesses: firmware may trap unaligned ones (CCR.UNALIGN_TRP)."""

_NO_UNIT = _ALIGNED + ",-fpregs"
"""The same without the floating-point unit, which firmware with this convention need not have enabled."""

_WIDE = "-prefer-256-bit,-idivq-to-divl"
"""Full-width registers, and plain 64-bit divisions: the check whether both operands are short would be a large part of
the code of kernels, which divide a few times per work tile.
"""
_VNNI = _WIDE + ",+avx512vnni"
_VBMI = _VNNI + ",+avx512vbmi"
_BFLOAT = _VBMI + ",+avx512bf16"
_DOT = "+neon,+dotprod"


def _microcontroller(name: str, triple: str, cpu: str, features: str, products: Products, abi: str = "") -> Isa:
    fma = triple.endswith("hf")
    return Isa(name, triple, cpu, features, 16, 8, fma, False, Dot.MADD, abi, False, True, products)


_X86_64_V4_VBMI = Isa(
    "x86-64-v4-vbmi", _LINUX_X86, "x86-64-v4", _VBMI, 64, 32, True, True, Dot.VNNI, lookup=Lookup.PERMUTE
)
_AARCH64_DOTPROD = Isa(
    "aarch64-dotprod", _LINUX_ARM, "generic", _DOT, 16, 32, True, False, Dot.SDOT, lookup=Lookup.TABLE
)

ISAS = (
    Isa("x86-64", _LINUX_X86, "x86-64", "", 16, 16, False, False, Dot.MADD),
    Isa("x86-64-v3", _LINUX_X86, "x86-64-v3", "", 32, 16, True, True, Dot.MADD, lookup=Lookup.SHUFFLE),
    Isa("x86-64-v3-vnni", _LINUX_X86, "x86-64-v3", "+avxvnni", 32, 16, True, True, Dot.AVX_VNNI, lookup=Lookup.SHUFFLE),
    Isa("x86-64-v4", _LINUX_X86, "x86-64-v4", _WIDE, 64, 32, True, True, Dot.MADD, lookup=Lookup.SHUFFLE),
    Isa("x86-64-v4-vnni", _LINUX_X86, "x86-64-v4", _VNNI, 64, 32, True, True, Dot.VNNI, lookup=Lookup.SHUFFLE),
    _X86_64_V4_VBMI,
    evolve(_X86_64_V4_VBMI, name="x86-64-v4-bf16", features=_BFLOAT, bfloat=True),
    Isa("i386", _LINUX_X86_32, "pentium4", "", 16, 8, False, False, Dot.MADD),
    Isa("aarch64", _LINUX_ARM, "generic", "+neon", 16, 32, True, False, Dot.MADD, lookup=Lookup.TABLE),
    _AARCH64_DOTPROD,
    evolve(_AARCH64_DOTPROD, name="aarch64-fp16", features=_DOT + ",+fullfp16", half=True),
    evolve(_AARCH64_DOTPROD, name="aarch64-bf16", features=_DOT + ",+bf16", bfloat=True),
    Isa("armv7", _LINUX_ARM32, "generic", "+neon", 16, 16, False, False, Dot.MADD),
    Isa("armv7-vfpv4", _LINUX_ARM32, "cortex-a7", "", 16, 16, True, False, Dot.MADD),
    _microcontroller("cortex-m0", _V6M, "cortex-m0", _ALIGNED, Products.BYTES),
    _microcontroller("cortex-m23", _V8M_BASE, "cortex-m23", _ALIGNED, Products.BYTES),
    _microcontroller("cortex-m3", _V7M, "cortex-m3", _ALIGNED, Products.BYTES),
    _microcontroller("cortex-m4-soft", _V7EM, "cortex-m4", _NO_UNIT, Products.SMLAD),
    _microcontroller("cortex-m7-soft", _V7EM, "cortex-m7", _NO_UNIT, Products.SMLAD),
    _microcontroller("cortex-m33-soft", _V8M, "cortex-m33", _NO_UNIT, Products.SMLAD),
    _microcontroller("cortex-m55-soft", _V81M, "cortex-m55", _NO_UNIT, Products.SMLAD),
    _microcontroller("cortex-m4", f"{_V7EM}hf", "cortex-m4", _ALIGNED, Products.SMLAD),
    _microcontroller("cortex-m7", f"{_V7EM}hf", "cortex-m7", f"{_ALIGNED},-fp64", Products.SMLAD),
    _microcontroller("cortex-m33", f"{_V8M}hf", "cortex-m33", _ALIGNED, Products.SMLAD),
    _microcontroller("cortex-m55", f"{_V81M}hf", "cortex-m55", _ALIGNED, Products.HELIUM),
    _microcontroller("rv32imc", _BARE_RISCV32, "generic-rv32", "+m,+c", Products.BYTES, "ilp32"),
    Isa("riscv64", _LINUX_RISCV, "generic-rv64", "+m,+a,+f,+d,+c", 16, 8, True, False, Dot.MADD, "lp64d"),
    Isa("riscv64-v", _LINUX_RISCV, "generic-rv64", "+m,+a,+f,+d,+c,+v", 16, 32, True, True, Dot.MADD, "lp64d"),
    Isa("wasm32", _WASM, "generic", "+simd128", 16, 16, False, False, Dot.MADD),
)
"""All targets; those of one architecture are ordered from the least to the most capable.

If an instruction set has no vectors (Cortex-M4, RISC-V without V), the code generator computes lane by lane, and
`registers` counts groups of scalar registers that hold four lanes.
"""

_NEEDS = {
    "x86-64": (),
    "x86-64-v3": ("X86_V3",),
    "x86-64-v4": ("X86_V4",),
    "x86-64-v4-vnni": ("X86_V4", "AVX512VNNI"),
    "x86-64-v4-vbmi": ("X86_V4", "AVX512VNNI", "AVX512VBMI"),
    "x86-64-v4-bf16": ("X86_V4", "AVX512VNNI", "AVX512VBMI", "AVX512BF16"),
    "aarch64": (),
    "aarch64-dotprod": ("ASIMDDP",),
    "aarch64-fp16": ("ASIMDDP", "ASIMDHP"),
    "aarch64-bf16": ("ASIMDDP", "ASIMDBF16"),
}
_OLDER_NAMES = {"X86_V3": ("AVX2", "FMA3", "F16C"), "X86_V4": ("AVX512_SKX",)}


def target(name: str, precision: str = "exact") -> Isa:
    """The target of a name; `native` is the most capable one that this machine runs. Raises BackendError if unknown."""
    if name == "native":
        return _native(precision, processor())
    found = next((isa for isa in ISAS if isa.name == name), None)
    if found is None:
        known = ", ".join(isa.name for isa in ISAS)
        raise BackendError(f"{name!r} is not a target, expected native or one of {known}")
    return found


@cache
def _native(precision: str, processor: str) -> Isa:
    """Cached, so that there is one object: it is part of many keys, and identical keys compare fastest."""
    return evolve(runnable(precision)[-1], processor=processor)


@cache
def narrowed(isa: Isa) -> Isa:
    """An AVX-512 target that uses half of each register; masks and the number of registers stay the same."""
    return evolve(isa, vector_bytes=isa.vector_bytes // 2, narrow=True)


@cache
def multiplying(isa: Isa, bits: int) -> Isa:
    """The target as it multiplies bytes by weights of `bits` bits: pairs of products with at most four bits fit in 16
    bits, which saves x86 without VNNI the widening. (Of x86-64's own vectors, none multiply bytes.)
    """
    return evolve(isa, dot=Dot.SHORT) if bits <= 4 and isa.widens_bytes and isa.vector_bytes > 16 else isa


def runnable(precision: str = "exact") -> tuple[Isa, ...]:
    """The targets whose code this machine can run, the most capable last.

    Targets that add only 16-bit products to others are left out unless `precision` uses them. Raises BackendError if
    the architecture is unknown.
    """
    machine = platform.machine().lower()
    architecture = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}.get(machine)
    if architecture is None:
        raise BackendError(f"there is no target for this machine's architecture {machine!r}")
    return _runnable(architecture, precision, frozenset(name for name, has in _host_features().items() if has))


@cache
def _runnable(architecture: str, precision: str, features: frozenset[str]) -> tuple[Isa, ...]:
    """Cached because it is needed for every operation."""
    return tuple(
        isa
        for isa in ISAS
        if isa.triple.startswith(architecture)
        and isa.name in _NEEDS
        and (precision == "bf16" or not isa.bfloat)
        and (precision == "fp16" or not isa.half)
        and all(need in features or features.issuperset(_OLDER_NAMES.get(need, (need,))) for need in _NEEDS[isa.name])
    )


def _host_features() -> dict[str, bool]:
    """The features that NumPy detected in the processor and the operating system; asking LLVM would mean loading it."""
    umath = getattr(getattr(np, "_core", None), "_multiarray_umath", None)
    features: dict[str, bool] = getattr(umath, "__cpu_features__", {})
    return features

"""Runs the code of AVX-512 targets on any processor with AVX2: `make emulated`.

LLVM splits 64-byte registers into two, and intrinsics that AVX2 lacks are defined here by instructions it has. Rounding
modes that are part of an instruction are not emulated: kernels that would use them take their other forms.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import wraps

from attrs import evolve

from onert_llvm.irbuilder.text import Builder, Module, Type, Value
from onert_llvm.target import isa as targets
from onert_llvm.target.isa import Isa

HOST, EMULATED = "x86-64-v3", ("x86-64-v4", "x86-64-v4-vnni", "x86-64-v4-vbmi")
UNSUITABLE = (
    "test_only_avx512_targets_scale_with_float_multipliers",  # by rounding modes
    "test_a_first_run_with_shipped_kernels_does_not_load_llvm_and_is_bitwise_equal",  # in another process
    "test_the_default_is_the_baseline_processor_and_native_the_best",  # of the real targets
)
"""Tests that an emulated target cannot pass."""


class Definition:
    """Writes the body of a function that stands for an intrinsic."""

    def __init__(self, name: str, result: Type, parameters: Sequence[Type]) -> None:
        self.name, self.result, self.parameters = name, result.text, [t.text for t in parameters]
        self.lines: list[str] = []
        self.declared: dict[str, str] = {}

    def __call__(self, instruction: str) -> str:
        """Write an instruction; returns the name of its result."""
        self.lines.append(f"  %v{len(self.lines)} = {instruction}")
        return f"%v{len(self.lines) - 1}"

    def picked(self, x: str, count: int, element: str, lanes: Iterable[int], other: str = "") -> str:
        """Some lanes of a vector of `count` elements, or of two."""
        order, kind = list(lanes), f"<{count} x {element}>"
        mask = f"<{len(order)} x i32> <{', '.join(f'i32 {i}' for i in order)}>"
        return self(f"shufflevector {kind} {x}, {kind} {other or x}, {mask}")

    def text(self, found: str) -> str:
        arguments = ", ".join(f"{t} %a{i}" for i, t in enumerate(self.parameters))
        lines = "\n".join(self.lines)
        head = f'define internal {self.result} @"{self.name}"({arguments}) alwaysinline nounwind'
        return f"{head} {{\n{lines}\n  ret {self.result} {found}\n}}"


def _shape(kind: str) -> tuple[int, str]:
    """The number of elements of a vector type, and their type."""
    found = re.fullmatch(r"<(\d+) x (\w+)>", kind)
    assert found
    return int(found[1]), found[2]


def _dot(d: Definition) -> str:
    """Sums of products of adjacent numbers, added to an accumulator if there is one; `busds` saturates that sum."""
    count, _ = _shape(d.result)
    first = "sext"
    group, element, at, found = 2, "i16", 0, ""
    if "vpdp" in d.name:
        at = 1
        if "busd" in d.name:
            group, element, first = 4, "i8", "zext"

    def parts(number: int, extension: str) -> list[str]:
        x = f"%a{number}"
        if d.parameters[number] != f"<{count * group} x {element}>":
            x = d(f"bitcast {d.parameters[number]} {x} to <{count * group} x {element}>")
        picked = [d.picked(x, count * group, element, range(i, count * group, group)) for i in range(group)]
        return [d(f"{extension} <{count} x {element}> {one} to <{count} x i32>") for one in picked]

    for x, y in zip(parts(at, first), parts(at + 1, "sext"), strict=True):
        product = d(f"mul <{count} x i32> {x}, {y}")
        found = d(f"add <{count} x i32> {found}, {product}") if found else product
    if "busds" in d.name:
        name = f"llvm.sadd.sat.v{count}i32"
        d.declared[name] = f'declare <{count} x i32> @"{name}"(<{count} x i32>, <{count} x i32>)'
        return d(f'call <{count} x i32> @"{name}"(<{count} x i32> %a0, <{count} x i32> {found})')
    return d(f"add <{count} x i32> %a0, {found}") if at else found


def _halves(d: Definition) -> str:
    """Instructions that work on 16 bytes at a time: AVX2's on both halves."""
    name = d.name.removeprefix("emulated.").replace("avx512", "avx2").replace(".512", "")
    name = name.replace("pmaddubs.w", "pmadd.ub.sw")
    (count, element), kinds = _shape(d.result), [_shape(p) for p in d.parameters]
    types = ", ".join(f"<{n // 2} x {t}>" for n, t in kinds)
    d.declared[name] = f'declare <{count // 2} x {element}> @"{name}"({types})'
    found = []
    for half in range(2):
        given = (
            f"<{n // 2} x {t}> {d.picked(f'%a{i}', n, t, range(half * n // 2, (half + 1) * n // 2))}"
            for i, (n, t) in enumerate(kinds)
        )
        found.append(d(f'call <{count // 2} x {element}> @"{name}"({", ".join(given)})'))
    return d.picked(found[0], count // 2, element, range(count), found[1])


def _byte_sums(d: Definition) -> str:
    """Sums of eight absolute differences of bytes."""
    found = ""
    for i in range(8):
        wide = [d(f"zext <8 x i8> {d.picked(x, 64, 'i8', range(i, 64, 8))} to <8 x i64>") for x in ("%a0", "%a1")]
        apart = d(f"sub <8 x i64> {wide[0]}, {wide[1]}")
        negative = d(f"icmp slt <8 x i64> {apart}, zeroinitializer")
        other = d(f"sub <8 x i64> zeroinitializer, {apart}")
        size = d(f"select <8 x i1> {negative}, <8 x i64> {other}, <8 x i64> {apart}")
        found = d(f"add <8 x i64> {found}, {size}") if found else size
    return found


def _permuted(d: Definition) -> str:
    """Elements of one or two registers by number."""
    count, element = _shape(d.result)
    tables = [p for p in (0, 2) if p < len(d.parameters)]
    memory = d(f"alloca [{count * len(tables)} x {element}], align 64")
    for number, table in enumerate(tables):
        place = d(f"getelementptr {element}, ptr {memory}, i64 {number * count}")
        d.lines.append(f"  store {d.result} %a{table}, ptr {place}, align 1")
    index, found = _shape(d.parameters[1])[1], "undef"
    for lane in range(count):
        number = d(f"and {index} {d(f'extractelement {d.parameters[1]} %a1, i32 {lane}')}, {count * len(tables) - 1}")
        place = d(f"getelementptr {element}, ptr {memory}, i64 {d(f'zext {index} {number} to i64')}")
        found = d(
            f"insertelement {d.result} {found}, {element} {d(f'load {element}, ptr {place}, align 1')}, i32 {lane}"
        )
    return found


def _scaled(d: Definition) -> str:
    """x times two to the power of the floor of n, rounded once: computed in float64."""
    d.declared["llvm.floor.v16f32"] = 'declare <16 x float> @"llvm.floor.v16f32"(<16 x float>)'
    floor, found = d('call <16 x float> @"llvm.floor.v16f32"(<16 x float> %a1)'), "undef"
    for lane in range(16):
        n = d(f"extractelement <16 x float> {floor}, i32 {lane}")
        least = d(f"select i1 {d(f'fcmp ogt float {n}, 300.0')}, float 300.0, float {n}")
        bound = d(f"select i1 {d(f'fcmp olt float {least}, -400.0')}, float -400.0, float {least}")
        nan = d(f"fcmp uno float {n}, {n}")
        power = d(f"fptosi float {d(f'select i1 {nan}, float 0.0, float {bound}')} to i64")
        exponent = d(f"add i64 {power}, 1023")
        factor = d(f"bitcast i64 {d(f'shl i64 {exponent}, 52')} to double")
        x = d(f"fpext float {d(f'extractelement <16 x float> %a0, i32 {lane}')} to double")
        y = d(f"fptrunc double {d(f'fmul double {x}, {factor}')} to float")
        found = d(
            f"insertelement <16 x float> {found}, float {d(f'select i1 {nan}, float {n}, float {y}')}, i32 {lane}"
        )
    return found


FORMS: dict[str, Callable[[Definition], str]] = {
    r"pmaddw\.d\.512|vpdp(busds?|wssd)\.\d+": _dot,
    r"pack\w+\.512|pshuf\.b\.512|pmaddubs\.w\.512": _halves,
    r"psad\.bw\.512": _byte_sums,
    r"vpermi2var\.\w+\.512|permvar\.sf\.512": _permuted,
    r"mask\.scalef\.ps\.512": _scaled,
}
"""How intrinsics are emulated, by their names after `llvm.x86.avx512.`."""


def install() -> None:
    """Emulate from now on."""
    runnable, call, written = targets._runnable, Builder.call, Module.__str__
    hosted = tuple(evolve(each, cpu=HOST, features="") for each in targets.ISAS if each.name in EMULATED)
    definitions: dict[Module, dict[str, str]] = {}

    @wraps(runnable)
    def emulating(architecture: str, precision: str, features: frozenset[str]) -> tuple[Isa, ...]:
        return (*(each for each in runnable(architecture, precision, features) if each.name == HOST), *hosted)

    @wraps(call)
    def calling(builder: Builder, name: str, result: Type, arguments: Sequence[Value]) -> Value:
        own = name.removeprefix("llvm.x86.avx512.")
        form = next((form for pattern, form in FORMS.items() if own != name and re.fullmatch(pattern, own)), None)
        if form is None:
            return call(builder, name, result, arguments)
        module, definition = builder.module, Definition(f"emulated.{name}", result, [a.type for a in arguments])
        known = definitions.setdefault(module, {})
        if name not in known:
            known[name] = definition.text(form(definition))
            module._declared.update(definition.declared)
        return builder.value(result, f'call {result.text} @"{definition.name}"({", ".join(map(str, arguments))})')

    @wraps(written)
    def writing(module: Module) -> str:
        return "\n".join((written(module), *definitions.get(module, {}).values(), ""))

    others = {each.name: each for each in hosted}
    targets.ISAS = tuple(others.get(each.name, each) for each in targets.ISAS)
    targets._runnable = emulating
    Isa.rounds = property(lambda _: False)
    Builder.call, Module.__str__ = calling, writing

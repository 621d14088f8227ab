"""What users request for bundles becomes an LLVM target, or an error of one sentence."""

from __future__ import annotations

import pytest

from onert.ir import BackendError
from onert_llvm.codegen.kernel_abi import KernelSpec, build
from onert_llvm.codegen.llvm_codegen import assembly, compile_text
from onert_llvm.kernels.contraction.register_tile import Tile, columns
from onert_llvm.target import microcontrollers
from onert_llvm.target import triple as target_choice
from onert_llvm.target.isa import ISAS, Isa, Products, runnable
from onert_llvm.target.triple import Architecture, choose

from .contractions import gemm_int8

ARCHITECTURES = tuple(
    found
    for module in (target_choice, microcontrollers)
    for found in vars(module).values()
    if isinstance(found, Architecture)
)


def _has_code(isa: Isa) -> bool:
    """Whether an int8 product, which uses instructions specific to the target, can be compiled."""
    spec = KernelSpec(gemm_int8(Tile(2, columns(20, 1, isa)), 1), isa)
    return compile_text(str(build(spec)), isa).startswith((b"\x7fELF", b"\0asm"))


@pytest.mark.parametrize("wanted", ARCHITECTURES, ids=lambda a: a.triple.split("-")[0])
def test_every_processor_and_feature_can_be_compiled_for(wanted: Architecture) -> None:
    for processor in wanted.processors:
        assert _has_code(choose(wanted.triple, processor, None)), processor
    for feature in (*wanted.gains, *wanted.others):
        assert _has_code(choose(wanted.triple, None, f"+{feature}")), feature
    for feature in wanted.others:
        assert _has_code(choose(wanted.triple, None, f"-{feature}")), feature


@pytest.mark.parametrize(
    ("requested", "triple_of_llvm"),
    [
        ("x86_64", "x86_64-unknown-linux-gnu"),
        ("amd64-linux-gnu", "x86_64-unknown-linux-gnu"),
        ("aarch64-none-elf", "aarch64-none-elf"),
        ("arm64-linux", "aarch64-unknown-linux"),
        ("arm-linux-gnueabihf", "armv7-unknown-linux-gnueabihf"),
        ("arm-none-linux-gnueabihf", "armv7-none-linux-gnueabihf"),
        ("thumbv7em-none-eabihf", "thumbv7em-unknown-none-eabihf"),
        ("thumbv7em-none-eabi", "thumbv7em-unknown-none-eabi"),
        ("arm-none-eabi", "thumbv6m-unknown-none-eabi"),
        ("arm-none-eabihf", "thumbv7em-unknown-none-eabihf"),
        ("riscv32imac-unknown-none-elf", "riscv32-unknown-none-elf"),
        ("wasm32-wasi", "wasm32-unknown-wasi"),
        ("wasm32-unknown-unknown", "wasm32-unknown-unknown"),
    ],
)
def test_triples_are_normalised_as_in_toolchains(requested: str, triple_of_llvm: str) -> None:
    assert choose(requested, None, None).triple == triple_of_llvm


def test_targets_are_found_by_their_names_too() -> None:
    assert all(choose(isa.name, None, None) == isa for isa in ISAS)


@pytest.mark.parametrize(
    ("triple", "cpu", "doubles", "floats"),
    [
        ("thumbv7em-none-eabihf", "cortex-m7", False, "vadd.f32"),
        ("arm-none-eabihf", "cortex-m7", False, "vadd.f32"),
        ("thumbv7em-none-eabi", "cortex-m7", False, "__aeabi_fadd"),
        ("arm-none-eabi", "cortex-m55", False, "__aeabi_fadd"),
        ("arm-none-eabi", "cortex-m3", False, "__aeabi_fadd"),
        ("thumbv8.1m.main-none-eabihf", "cortex-m55", True, "vadd.f32"),
    ],
)
def test_microcontrollers_use_only_the_float_units_they_certainly_have(
    triple: str, cpu: str, doubles: bool, floats: str
) -> None:
    isa = choose(triple, cpu, None)
    text = (
        "define float @sum(float %a, float %b) {\n  %c = fadd float %a, %b\n  ret float %c\n}\n"
        "define double @wide(double %a, double %b) {\n  %c = fadd double %a, %b\n  ret double %c\n}\n"
    )
    code = assembly(text, isa)
    assert floats in code
    assert ("vadd.f64" in code) is doubles
    assert "+strict-align" in isa.features
    assert choose("thumbv7em-none-eabihf", "cortex-m7", "+fp64").doubles


def test_dual_multiply_accumulate_is_used_where_the_processor_has_it() -> None:
    assert choose("thumbv8m.main-none-eabihf", "cortex-m33", None).products is Products.SMLAD
    assert choose("thumbv8m.main-none-eabihf", "cortex-m33", "-dsp").products is Products.BYTES
    assert choose("thumbv8.1m.main-none-eabihf", "cortex-m55", None).products is Products.HELIUM
    assert choose("thumbv8.1m.main-none-eabi", "cortex-m55", None).products is Products.SMLAD
    assert choose("arm-none-eabi", "cortex-m3", None).products is Products.BYTES
    assert choose("armv7-linux-gnueabihf", None, None).products is None


def test_the_default_is_the_baseline_processor_and_native_the_best() -> None:
    assert choose(None, None, None) == runnable()[0]
    assert choose(None, "native", None) == runnable("bf16")[-1]


@pytest.mark.parametrize(
    ("triple", "cpu", "features"),
    [
        ("sparc", None, None),
        ("", None, None),
        ("x86_64-windows", None, None),
        ("arm-linux-gnueabi", None, None),
        ("thumbv6m-none-eabihf", None, None),
        ("arm-none-eabihf", "cortex-m3", None),
        ("arm-none-eabi", "cortex-a7", None),
        ("thumbv7em-none-eabi", "cortex-m0", None),
        ("aarch64", "haswell", None),
        ("x86_64", None, "avx2"),
        ("x86_64", None, "+neon"),
        ("x86-64-v3", None, "-avx2"),
        ("riscv64", None, "+zvl256b"),
    ],
)
def test_unknown_targets_are_rejected_with_one_sentence(triple: str, cpu: str | None, features: str | None) -> None:
    with pytest.raises(BackendError) as raised:
        choose(triple, cpu, features)
    assert "\n" not in str(raised.value)
    assert "expected" in str(raised.value) or "none of" in str(raised.value)

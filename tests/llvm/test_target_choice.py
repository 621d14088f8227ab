"""What users ask bundles for becomes a target that LLVM has, or one sentence."""

from __future__ import annotations

import pytest

from onert.ir import BackendError
from onert_llvm.codegen.kernel_abi import KernelSpec, build
from onert_llvm.codegen.llvm_codegen import compile_text
from onert_llvm.kernels.contraction.gemm_int8 import GemmInt8
from onert_llvm.kernels.contraction.register_tile import Tile, columns
from onert_llvm.target import triple as target_choice
from onert_llvm.target.isa import ISAS, Isa, runnable
from onert_llvm.target.triple import Architecture, choose

ARCHITECTURES = tuple(found for found in vars(target_choice).values() if isinstance(found, Architecture))


def _has_code(isa: Isa) -> bool:
    """Whether a product of bytes, which asks for what an instruction set has of its own, can be compiled."""
    spec = KernelSpec(GemmInt8(Tile(2, columns(20, 1, isa)), 1), isa)
    return compile_text(str(build(spec)), isa).startswith((b"\x7fELF", b"\0asm"))


@pytest.mark.parametrize("wanted", ARCHITECTURES, ids=lambda a: a.triple.split("-")[0])
def test_every_processor_and_feature_has_code(wanted: Architecture) -> None:
    for processor in wanted.processors:
        assert _has_code(choose(wanted.triple, processor, None)), processor
    for feature in (*wanted.gains, *wanted.others):
        assert _has_code(choose(wanted.triple, None, f"+{feature}")), feature
    for feature in wanted.others:
        assert _has_code(choose(wanted.triple, None, f"-{feature}")), feature


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("x86_64", "x86_64-unknown-linux-gnu"),
        ("amd64-linux-gnu", "x86_64-unknown-linux-gnu"),
        ("aarch64-none-elf", "aarch64-none-elf"),
        ("arm64-linux", "aarch64-unknown-linux"),
        ("arm-linux-gnueabihf", "armv7-unknown-linux-gnueabihf"),
        ("arm-none-linux-gnueabihf", "armv7-none-linux-gnueabihf"),
        ("thumbv7em-none-eabihf", "thumbv7em-unknown-none-eabihf"),
        ("wasm32-wasi", "wasm32-unknown-wasi"),
        ("wasm32-unknown-unknown", "wasm32-unknown-unknown"),
    ],
)
def test_triples_are_those_of_tool_chains(said: str, meant: str) -> None:
    assert choose(said, None, None).triple == meant


def test_targets_go_by_their_names_too() -> None:
    assert all(choose(isa.name, None, None) == isa for isa in ISAS)


def test_nothing_said_is_the_least_processor_and_native_the_best() -> None:
    assert choose(None, None, None) == runnable()[0]
    assert choose(None, "native", None) == runnable()[-1]


@pytest.mark.parametrize(
    ("triple", "cpu", "features"),
    [
        ("sparc", None, None),
        ("", None, None),
        ("x86_64-windows", None, None),
        ("arm-linux-gnueabi", None, None),
        ("thumbv6m-none-eabi", None, None),
        ("aarch64", "haswell", None),
        ("x86_64", None, "avx2"),
        ("x86_64", None, "+neon"),
        ("x86-64-v3", None, "-avx2"),
        ("riscv64", None, "+zvl256b"),
    ],
)
def test_what_is_not_known_is_one_sentence(triple: str, cpu: str | None, features: str | None) -> None:
    with pytest.raises(BackendError) as raised:
        choose(triple, cpu, features)
    assert "\n" not in str(raised.value)
    assert "expected" in str(raised.value) or "none of" in str(raised.value)

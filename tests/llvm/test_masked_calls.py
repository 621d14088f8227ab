"""For WebAssembly masked loads and stores become calls, so that kernels do not expand into thousands of blocks."""

from __future__ import annotations

from pathlib import Path

from bundle import toys

import onert
from onert_llvm.codegen.llvm_codegen import compile_text
from onert_llvm.codegen.masked_calls import as_calls
from onert_llvm.target.triple import choose

LOAD = '<4 x float> @"llvm.masked.load.v4f32.p0"(ptr, i32, <4 x i1>, <4 x float>)'
STORE = 'void @"llvm.masked.store.v16i8.p0"(<16 x i8>, ptr, i32, <16 x i1>)'


def test_each_masked_access_is_defined_once() -> None:
    use = (
        f"declare {LOAD}\ndeclare {STORE}\n"
        "define <4 x float> @f(ptr %p, <4 x i1> %m, <4 x float> %e, <16 x i8> %v, <16 x i1> %n) {\n"
        '  %r = call <4 x float> @"llvm.masked.load.v4f32.p0"(ptr %p, i32 4, <4 x i1> %m, <4 x float> %e)\n'
        '  call void @"llvm.masked.store.v16i8.p0"(<16 x i8> %v, ptr %p, i32 1, <16 x i1> %n)\n'
        "  ret <4 x float> %r\n}\n"
    )
    first, second, defined = as_calls([use, use.replace("@f", "@g")])
    assert "llvm.masked" not in first + second
    assert defined.count("define ") == 2
    isa = choose("wasm32", None, None)
    assert all(compile_text(text, isa).startswith(b"\0asm") for text in (first, second, defined))


def test_code_without_masks_is_unchanged() -> None:
    assert as_calls(["define void @f() {\n  ret void\n}\n"]) == ["define void @f() {\n  ret void\n}\n"]


def test_kernels_of_a_bundle_call_the_masked_access_functions(tmp_path: Path) -> None:
    onert.bundle(toys.network(), tmp_path, target="wasm32", save_ir=True)
    bodies = [body.partition("\n}")[0] for body in (tmp_path / "net.ll").read_text().split("\ndefine ")[1:]]
    callers = [body for body in bodies if "@onert.masked.load" in body.partition("{")[2]]
    direct = [body for body in bodies if "@llvm.masked." in body]
    assert callers
    assert all("@onert.masked." in body.partition("{")[0] for body in direct)

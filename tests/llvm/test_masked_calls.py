"""For WebAssembly loads and stores under masks are calls, so that kernels do not fall into thousands of blocks."""

from __future__ import annotations

from onert_llvm.codegen.masked_calls import as_calls
from onert_llvm.target.triple import choose

LOAD = '<4 x float> @"llvm.masked.load.v4f32.p0"(ptr, i32, <4 x i1>, <4 x float>)'
STORE = 'void @"llvm.masked.store.v16i8.p0"(<16 x i8>, ptr, i32, <16 x i1>)'


def test_each_type_is_defined_once() -> None:
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
    direct = [body for body in bodies if "call" in body and "@llvm.masked" in body.partition("\ndeclare")[0]]
    assert all("@onert.masked." in body.partition("(")[0] for body in direct)

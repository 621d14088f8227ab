"""Code generation."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from onert.ir import BackendError
from onert_llvm.codegen.kernel_abi import KernelSpec, build
from onert_llvm.codegen.llvm_codegen import compile_text
from onert_llvm.kernels.reduction.integer_softmax import SoftmaxInt8
from onert_llvm.schedule.cost_model import product_tile
from onert_llvm.target.isa import target

from .contractions import gemm_f32

NATIVE = target("native")


def test_concurrent_code_generation_is_deterministic() -> None:
    algorithms = [gemm_f32(product_tile(64, n, 64, NATIVE)) for n in (8, 16, 40, 128)] + [SoftmaxInt8()]
    texts = [str(build(KernelSpec(algorithm, NATIVE))) for algorithm in algorithms]
    alone = [compile_text(text, NATIVE) for text in texts]
    with ThreadPoolExecutor(5) as workers:
        for _ in range(3):
            assert list(workers.map(lambda text: compile_text(text, NATIVE), texts)) == alone


@pytest.mark.parametrize(
    "text",
    [
        "define void @f() {",
        "define void @f(float %x) {\n  %y = add float %x, %x\n  ret void\n}",
        "define i32 @f() {\n  ret void\n}",
    ],
)
def test_invalid_ir_raises_a_clear_error(text: str) -> None:
    with pytest.raises(BackendError, match="not valid IR"):
        compile_text(text, NATIVE)

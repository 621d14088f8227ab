"""Programs sent to another process: the received program gives the same results, for the same shapes."""

from __future__ import annotations

import numpy as np
import pytest

import onert
from onert.backend import Backend
from onert.compiler.program_cache.transport import deserialise, serialise
from onert.ir import BackendError, CompileError, DType, Package, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.custom import Python
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert_llvm import Llvm
from onert_reference import Reference

X = np.float32([[1, 2, 3, 4]])
ROW = TensorType(DType.FLOAT32, (4,))


def package() -> Package:
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (None, 4)), "x")
    return Package((b.model([b.add(Binary(BinaryKind.MUL), x, b.constant(np.float32([1, 2, 3, 4])))]),), "made")


def over(program: onert.Program, backends: list[Backend]) -> memoryview:
    """The program's bytes, aligned to a cache line."""
    content = b"".join(serialise(program, backends))
    room = np.empty(len(content) + 64, np.uint8)
    start = -room.ctypes.data % 64
    room[start : start + len(content)] = np.frombuffer(content, np.uint8)
    return memoryview(room)[start : start + len(content)]


@pytest.mark.parametrize("backend", [Llvm, Reference])
def test_a_received_program_runs_like_the_one_that_was_sent(backend: type[Backend]) -> None:
    backends = [backend()]
    program = onert.compile(package(), backends=(backends[0].name,), num_threads=1, input_shapes={"x": (1, 4)})
    again = deserialise(over(program, backends), backends)
    assert again.inputs == program.inputs
    assert [o.tolist() for o in onert.Execution(again).run([X]).values()] == [[[1.0, 4.0, 9.0, 16.0]]]
    with pytest.raises(CompileError, match="inputs of the shapes that it was compiled for"):
        again.specialize({0: (2, 4)})


def test_truncated_programs_and_those_of_other_backends_are_rejected() -> None:
    backends = [Reference()]
    content = over(onert.compile(package(), backends=(backends[0].name,), num_threads=1), backends)
    for wrong, with_ in ((content[:-64], backends), (content[:0], backends), (content, [])):
        with pytest.raises(BackendError, match="cannot be read"):
            deserialise(wrong, with_)


def test_programs_with_custom_code_or_unserialisable_kernels_are_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    b = Builder()
    mine = Python("Mine", lambda x, options: x, results=(ROW,))
    code = Package((Subgraphs((b.subgraph([b.add(mine, b.input(ROW, "x"))]),)),), "made")
    backends = [Reference()]
    program = onert.compile(code, backends=(backends[0].name,), num_threads=1)
    with pytest.raises(CompileError, match="made cannot be sent to another process"):
        serialise(program, backends)
    program = onert.compile(package(), backends=(backends[0].name,), num_threads=1)
    monkeypatch.setattr(Reference, "keep", lambda self, kernel: None)
    with pytest.raises(BackendError, match="the kernels of backend 'reference' cannot be sent"):
        serialise(program, backends)

"""Runs operations while another process overwrites their integer operands: `python changing.py RUNS [PREFIX]`.

The operands are in memory shared by both processes. The other process alternates between valid and wild elements, so a
kernel that reads an index twice uses one that it has not checked.
"""

from __future__ import annotations

import mmap
import os
import sys
from collections.abc import Iterator

import numpy as np
from cases import all_cases
from cases.case import Case

import onert
from onert.ir import Array, DType, OnertError, Op, Package, Quantization
from onert.ir.builder import Builder
from onert.ir.ops.data_movement.fill import TopK
from onert.ir.ops.data_movement.gather import EmbeddingLookup, Gather, GatherNd, OneHot, ScatterNd
from onert.ir.ops.data_movement.layout import ReverseSequence
from onert.ir.ops.data_movement.slicing import Slice
from onert.ir.ops.reduction.reduce import Reduction
from onert.ir.ops.reduction.segment import ReduceRanges, SegmentReduction, SegmentSum, UnsortedSegment
from onert.ir.ops.reduction.softmax import Softmax

SIZE, HEAD = 1 << 20, 4096
"""Bytes of shared memory for operands; and bytes before them for their size and the flag to stop."""
_ROWS = 20_000


def _many() -> Iterator[Case]:
    """Operations with so many indices that changes happen during a run."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(_ROWS, 2)).astype(np.float32)
    at = rng.integers(0, 50, _ROWS).astype(np.int32)
    table = rng.normal(size=(50, 2)).astype(np.float32)
    ordered, eight, sixteen = np.sort(at), Quantization((0.1,), (0,)), Quantization((1e-3,), (0,))

    def case(op: Op, *inputs: Array, quantization: tuple[Quantization | None, ...] = (), **more: object) -> Case:
        return Case(f"many: {op.label}", op, inputs, quantization=quantization, **more)  # type: ignore[arg-type]

    yield case(ScatterNd(), at[:, None], rows, np.int32([50, 2]))
    yield case(Gather(0), table, at)
    yield case(Gather(0), table, at.astype(np.int64))
    yield case(GatherNd(), table, at[:, None])
    yield case(EmbeddingLookup(), at, table)
    yield case(SegmentSum(), rows, ordered)
    yield case(UnsortedSegment(SegmentReduction.MAX), rows, at, np.int32(50))
    yield case(ReduceRanges(Reduction.SUM), table, at[:1000], at[:1000] + 3)
    yield case(OneHot(-1), at[:2000], np.int32(50), np.float32(1), np.float32(0))
    yield case(TopK(), rows, np.int32(2))
    yield case(Slice(), rows, np.int32([3, 0]), np.int32([7, 2]))
    yield case(ReverseSequence(1, 0), rows.reshape(200, 200), at[:200])
    low = (rng.integers(-128, 128, (200, 500)).astype(np.int8),)
    yield case(Softmax(), *low, quantization=(eight,), result_quantization=(Quantization((1 / 256,), (-128,)),))
    high = (rng.integers(-32768, 32768, (200, 500)).astype(np.int16),)
    yield case(Softmax(), *high, quantization=(sixteen,), result_quantization=(Quantization((1 / 32768,), (0,)),))


def _program(case: Case, backend: str) -> tuple[onert.Program, list[Array]] | None:
    """The case with its integers as inputs, and these; None if it has none, or they must be constant."""
    b, given, integers = Builder(), [], []
    for array, type_ in zip(case.inputs, case.input_types(known=False), strict=True):
        if array is None or type_ is None:
            given.append(None)
        elif array.dtype.kind in "iu" and type_.dtype not in (DType.INT4, DType.INT2):
            given.append(b.input(type_))
            integers.append(array)
        else:
            given.append(b.constant(array, type_.quantization, dtype=type_.dtype))
    try:
        results = b.add_many(case.op, *given, quantization=case.result_quantization)
        package = Package((b.model(results),))
        program = onert.compile(package, backends=(backend,), optimize=False, num_threads=1)
    except OnertError:
        return None
    return (program, integers) if integers else None


def _flip(memory: mmap.mmap, most: int) -> None:
    """Alternate between wild and valid elements, a bounded number of times or until told to stop."""
    head = np.frombuffer(memory, np.int64, HEAD // 8)
    here, right, wild = (np.frombuffer(memory, np.uint8, SIZE, HEAD + i * SIZE) for i in range(3))
    parent = os.getppid()
    for _ in range(most):
        count = int(head[0])
        if head[1] or os.getppid() != parent:  # told to stop, or orphaned by a crash
            return
        for source in (wild, right):
            here[:count] = source[:count]


def _run(program: onert.Program, integers: list[Array], memory: mmap.mmap, runs: int) -> None:
    head = np.frombuffer(memory, np.int64, HEAD // 8)
    execution, rng, offset = onert.Execution(program), np.random.default_rng(1), 0
    for position, array in enumerate(integers):
        limits = np.iinfo(array.dtype)
        here, right, other = (
            np.frombuffer(memory, array.dtype, array.size, HEAD + i * SIZE + offset).reshape(array.shape)
            for i in range(3)
        )
        here[...] = right[...] = array
        other[...] = rng.integers(limits.min, limits.max, array.shape, array.dtype, endpoint=True)
        execution.set_input(position, here)
        offset += -(-array.nbytes // 64) * 64
    head[0] = offset
    for _ in range(runs):
        try:
            execution.execute()
        except OnertError:
            continue
    head[0] = 0


def main(runs: int, prefix: str = "") -> int:
    """Run all cases whose names start with `prefix`, and return the number of programs run."""
    memory = mmap.mmap(-1, HEAD + 3 * SIZE)
    child = os.fork()
    if child == 0:
        _flip(memory, 50_000_000)
        os._exit(0)
    done = 0
    try:
        for case in (*_many(), *all_cases()):
            if not case.name.startswith(prefix):
                continue
            for backend in ("reference", "llvm"):
                found = _program(case, backend)
                if found is not None:
                    _run(*found, memory, runs if case.name.startswith("many") else 3)
                    done += 1
    finally:
        np.frombuffer(memory, np.int64, 2)[1] = 1
        os.waitpid(child, 0)
    return done


if __name__ == "__main__":
    print(main(int(sys.argv[1]), *sys.argv[2:]), "programs")

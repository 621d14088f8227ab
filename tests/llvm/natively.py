"""Runs subgraphs natively on tensors between guard pages, and by evaluating their operations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar
from unittest.mock import patch

import numpy as np
from attrs import evolve
from cases.case import Case

from onert.backend import Sequence as Operations
from onert.backend import Settings, Tensor, Tensors
from onert.backend.alone import Alone
from onert.compiler import Options
from onert.compiler.legalize.legalize import Support, legalize
from onert.compiler.pipeline import optimize
from onert.ir import CallTypes, Op, Operation, Subgraph, Subgraphs, TensorType, evaluate
from onert.ir.analysis.model_inference import infer_alone, infer_model
from onert.ir.builder import Builder
from onert.ir.ops.reduction.pool import Pool2D, Pooling
from onert_llvm import compile as generation
from onert_llvm.backend import Llvm
from onert_llvm.codegen.kernel_abi import KernelSpec
from onert_llvm.lower import command_builder
from onert_llvm.runtime import bound_commands, native_kernel
from onert_llvm.runtime.native_kernel import NativeKernel
from onert_llvm.target.isa import Isa, runnable

from . import replay
from .harness import Array, guarded

T = TypeVar("T")
BACKEND = Llvm()


NOTHING = Alone()
"""Stands for the subgraphs and state that no natively run operation needs."""


def by_width(found: Iterable[T], isa_of: Callable[[T], Isa]) -> list[list[T]]:
    """Group items whose targets have the same register width and differ only in single instructions."""
    widths: dict[tuple[Any, ...], list[T]] = {}
    for each in found:
        isa = isa_of(each)
        widths.setdefault((isa.triple, isa.f32, isa.small, isa.bfloat, isa.half), []).append(each)
    return list(widths.values())


def in_turn(position: int, widths: Sequence[Sequence[T]]) -> list[T]:
    """Select one item: the widths take turns, and so do the targets within a width.

    The turns shift by one in each round, so that rows that repeat every few positions meet all widths.
    """
    round_ = position // len(widths)
    width = widths[(position + round_) % len(widths)]
    return [width[round_ % len(width)]]


def a_target(position: int) -> list[Isa]:
    """A runnable target for the test at this position; positions take turns."""
    return in_turn(position, by_width(runnable(), lambda isa: isa))


def subgraph_of(case: Case, constant: Sequence[int] | None = None) -> Subgraph:
    """A case's operation alone; `constant` replaces the case's own list of constant operands."""
    b = Builder()
    fixed = case.constant if constant is None else constant
    operands: list[int | None] = []
    for i, (array, type_) in enumerate(zip(case.inputs, case.input_types(known=True), strict=True)):
        if array is None or type_ is None:
            operands.append(None)
        elif i in fixed:
            operands.append(b.constant(array, type_.quantization, dtype=type_.dtype))
        else:
            operands.append(b.input(evolve(type_, data=None)))
    return b.subgraph(b.add_many(case.op, *operands, quantization=case.result_quantization))


def single(op: Op, *operands: Any, constant: Sequence[int] = ()) -> tuple[Subgraph, list[Array]]:
    """A subgraph of one operation on arrays (None for an absent operand), and the arrays that are its inputs."""
    case = Case("", op, operands, constant=tuple(constant))
    return subgraph_of(case), [a for i, a in enumerate(operands) if a is not None and i not in constant]


def _support(operation: Operation, types: CallTypes) -> Support:
    return Support.NATIVE if BACKEND.supports(operation, types) is None else Support.EVALUATED


def legal(subgraph: Subgraph) -> Subgraph:
    """The subgraph as the backend receives it, with operations that lack a native form decomposed where possible."""
    found = legalize(subgraph, _support)
    return subgraph if found is subgraph else infer_alone(found)


def why_not(subgraph: Subgraph) -> str | None:
    """The reason why some operation of the subgraph has no native form, even after decomposition, or None."""
    return unsupported(legal(subgraph))


def unsupported(subgraph: Subgraph) -> str | None:
    """The reason why some operation of a subgraph that is already `legal` has no native form, or None."""
    found = (BACKEND.supports(o, subgraph.types(o)) for o in subgraph.operations)
    return next((reason for reason in found if reason is not None), None)


def enclosed(graphs: Sequence[Subgraph]) -> Subgraph:
    """The first graph, with the graphs it calls enclosed in its operations."""
    model = infer_model(Subgraphs(tuple(graphs)), 0)
    return optimize(model[0], Options(), model, lambda operation, types: True)


def sequence_of(subgraph: Subgraph, settings: Settings) -> Operations:
    """All operations of a subgraph, in the backend's groups."""
    sequence = Operations(subgraph, tuple(range(len(subgraph.operations))), subgraph.inputs, subgraph.outputs)
    return evolve(sequence, groups=BACKEND.fuse(sequence, settings))


def kernels(subgraph: Subgraph, isa: Isa, compact: bool = False) -> Counter[str]:
    """How often each kernel is called for a subgraph, by name."""
    return Counter(spec.name for spec in specs(subgraph, isa, compact))


def specs(subgraph: Subgraph, isa: Isa, compact: bool = False) -> list[KernelSpec]:
    """The kernels that are called for a subgraph, in order."""
    made = generation.lowered(sequence_of(subgraph, Settings()), isa, Settings(), compact=compact)
    return [command.spec for command in made.commands]


def natively(subgraph: Subgraph, inputs: Sequence[Array], isa: Isa, *how: Any, **named: Any) -> list[Array]:
    """The outputs of a natively run subgraph; all tensors, packed constants and scratch memory end at guard pages.

    Further arguments are those of `natively_legalized`.
    """
    return natively_legalized(legal(subgraph), inputs, isa, *how, **named)


def natively_legalized(
    subgraph: Subgraph,
    inputs: Sequence[Array],
    isa: Isa,
    threads: int = 1,
    runs: int = 1,
    precision: str = "exact",
    compact: bool = False,
) -> list[Array]:
    """Like `natively` for a subgraph that is already `legal`; legalising takes longer than compiling a small kernel.

    With several threads, the commands are also replayed one by one, and results must be the same. If `compact`, the
    subgraph is lowered as for a bundle.
    """
    reason = unsupported(subgraph)
    assert reason is None, reason
    settings = Settings(num_threads=threads, target=isa.name, precision=precision)
    sequence = sequence_of(subgraph, settings)
    unstored = {i for group in sequence.groups for i in group.unstored}
    given = dict(zip(subgraph.inputs, inputs, strict=True))
    tensors: dict[int, Tensor] = {}
    for index, operand in enumerate(subgraph.operands):
        if index in unstored:
            continue
        type_ = operand.type
        if type_.dtype.is_handle:  # no elements that native code could touch
            tensors[index] = Tensor(type_, np.empty(tuple(d or 0 for d in type_.shape), object))
            continue
        elements = operand.data.array if operand.data is not None else given.get(index, _garbage(type_))
        tensors[index] = Tensor(type_, guarded(np.asarray(elements), at_end=index % 2 == 0))
    with (
        patch.object(command_builder, "aligned", _fenced),
        patch.object(generation, "target", lambda _name, _precision: isa),
        patch.object(generation, "lowered", partial(generation.lowered, compact=compact)),
    ):
        kernel = BACKEND.generate(sequence, settings)
    with patch.object(bound_commands, "zeros", _room):
        call = kernel.bind(Tensors(tensors), NOTHING)
    expected = _replayed(kernel, subgraph, tensors) if threads > 1 else None
    for number in range(runs):
        call()
        if number == 0 and expected is not None:
            assert [tensors[i].array.tobytes() for i in subgraph.outputs] == expected
    return [tensors[i].array for i in subgraph.outputs]


def _replayed(kernel: NativeKernel, subgraph: Subgraph, tensors: Mapping[int, Tensor]) -> list[bytes]:
    """The outputs of a replay; the tensors are left as they were."""
    before = {i: tensor.array.copy() for i, tensor in tensors.items()}
    with patch.object(native_kernel, "runner", replay.runner), patch.object(bound_commands, "zeros", _room):
        kernel.bind(Tensors(tensors), NOTHING)()
    outputs = [tensors[i].array.tobytes() for i in subgraph.outputs]
    for i, array in before.items():
        tensors[i].array[...] = array
    return outputs


def _fenced(array: Array) -> Array:
    """A copy of a packed constant whose last byte is adjacent to a guard page."""
    return guarded(np.ascontiguousarray(array))


def _room(count: int, dtype: type[np.generic]) -> Array:
    """Zeroed memory, except that scratch bytes have the contents another command might have left."""
    return guarded(np.full(count, 0x5A if dtype is np.uint8 else 0, dtype))


def _garbage(type_: TensorType) -> Array:
    shape = tuple(d or 0 for d in type_.shape)
    return np.full(int(np.prod(shape)) * type_.dtype.itemsize, 0x5A, np.uint8).view(type_.dtype.numpy).reshape(shape)


def evaluated(subgraph: Subgraph, inputs: Sequence[Array]) -> list[Array]:
    """The outputs of a subgraph, with each operation evaluated by its definition."""
    known: dict[int, Array] = {i: o.data.array for i, o in enumerate(subgraph.operands) if o.data is not None}
    known |= dict(zip(subgraph.inputs, inputs, strict=True))
    for operation in subgraph.operations:
        arrays = [None if i is None else known[i] for i in operation.inputs]
        results = evaluate(operation.op, arrays, subgraph.types(operation), Alone())
        known |= dict(zip(operation.outputs, results, strict=True))
    return [known[i] for i in subgraph.outputs]


def assert_close(found: Sequence[Array], expected: Sequence[Array], tolerance: float = 1e-5, where: str = "") -> None:
    """Require equality, except that floats may differ by `tolerance` times the largest magnitude of each output."""
    for mine, theirs in zip(found, expected, strict=True):
        assert mine.dtype == theirs.dtype, where
        assert mine.shape == theirs.shape, where
        if mine.dtype.kind not in "fc":
            np.testing.assert_array_equal(mine, theirs, err_msg=where)
            continue
        finite = np.abs(theirs[np.isfinite(theirs)])
        room = tolerance * float(finite.max()) if finite.size else 0.0
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=room, err_msg=where)


def check(subgraph: Subgraph, inputs: Sequence[Array], isa: Isa, tolerance: float = 1e-5, threads: int = 1) -> None:
    """Require that native results agree with the operations' definitions."""
    assert_close(natively(subgraph, inputs, isa, threads), evaluated(subgraph, inputs), tolerance)


def assert_pooled(op: Pool2D, x: Array, isa: Isa) -> None:
    """A pool's native results match its definition, and are the same for any number of threads. Averages are those of
    finite numbers."""
    graph, inputs = single(op, x if op.kind is Pooling.MAX else np.nan_to_num(x, neginf=-3))
    found = natively(graph, inputs, isa, 1)
    assert_close(found, evaluated(graph, inputs), 1e-6)
    np.testing.assert_array_equal(found, natively(graph, inputs, isa, 3))

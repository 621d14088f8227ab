"""Legalization: which operations are decomposed, and that decompositions are equivalent to their operations."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from importlib import import_module

import numpy as np
import pytest
from attrs import evolve, frozen
from cases import all_cases
from cases.case import Case
from llvm.natively import assert_close, evaluated, subgraph_of

import onert
from onert.compiler import Options
from onert.compiler import legalize as package
from onert.compiler.extension import Extension
from onert.compiler.legalize import decomposition as table
from onert.compiler.legalize.decomposition import Decomposition, decompositions, places
from onert.compiler.legalize.draft import Draft
from onert.compiler.legalize.legalize import MOST_NESTED, Support, decomposed, legalize
from onert.compiler.legalize.reductions import _why_not_separated
from onert.compiler.pipeline import optimize
from onert.compiler.rewrite.contract import TYPED, rewriting
from onert.compiler.rewrite.edit import Edit, definer
from onert.ir import (
    OPS,
    Array,
    CallTypes,
    DType,
    Op,
    Operation,
    Package,
    Quantization,
    RuleError,
    Subgraph,
    TensorType,
)
from onert.ir.builder import Builder
from onert.ir.ops.control_flow.enclosed import Branch
from onert.ir.ops.data_movement.gather import OneHot, PutRow
from onert.ir.ops.elementwise.binary import Binary
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.ops.recurrent.rnn import RNN
from onert.ir.ops.reduction.norm import BatchNorm
from onert.ir.ops.reduction.reduce import Reduce, Reduction
from onert.ir.ops.vision_audio.interpolate import Interpolate, Interpolation
from onert.ir.ops.vision_audio.resize import ResizeNearestNeighbor

ROW = TensorType(DType.FLOAT32, (1, 4))


# ---- the table


def test_the_index_lists_every_file_and_every_kind_once() -> None:
    found_files = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    files = {m.name.removeprefix(f"{package.__name__}.") for m in found_files if not m.ispkg}
    files -= {"bound_sizes", "draft", "decomposition", "legalize", "quantized_products"}
    assert files == set(places().values())
    for file in files:
        found = import_module(f"{package.__name__}.{file}").DECOMPOSITIONS
        assert {kind.__name__ for kind in found} == {kind for kind, place in places().items() if place == file}
        assert all(OPS[kind.__name__] is kind and each for kind, each in found.items())


CASES: dict[type[Op], list[Case]] = {}
for _case in all_cases():
    CASES.setdefault(type(_case.op), []).append(_case)


def _graph(case: Case, number: int) -> tuple[Subgraph, Subgraph, list[Array]] | str:
    """A case with constant weights, its decomposition, and the inputs of both; or the reason why there is none."""
    given = [i for i, array in enumerate(case.inputs) if array is not None]
    for constant in (case.constant, tuple(given[1:]), ()):
        graph = subgraph_of(case, constant)
        (operation,) = graph.operations
        types = graph.types(operation)
        if any(t is not None and not t.is_static for t in (*types.inputs, *types.outputs)):
            reason: str | None = "a shape is not known"
            continue
        decomposition = decompositions(type(case.op))[number]
        reason = decomposition.why_not(case.op, types)
        if reason is None:
            inputs = [array for i, array in enumerate(case.inputs) if array is not None and i not in constant]
            return graph, decomposed(decomposition, operation, types), inputs
    return reason or ""


@pytest.mark.parametrize(
    ("kind", "number"),
    [(kind, number) for kind in sorted(places()) for number in range(len(decompositions(OPS[kind])))],
)
def test_a_decomposition_is_equivalent_or_states_why_it_does_not_apply(
    kind: str, number: int, subtests: pytest.Subtests
) -> None:
    meant = 0
    for case in CASES[OPS[kind]]:
        with subtests.test(case.name):
            found = _graph(case, number)
            if isinstance(found, str):
                assert found
                continue
            graph, parts, inputs = found
            operands = [array for array in case.inputs if array is not None]
            wanted, types_found = graph.operations[0], [parts.type(o) for o in parts.outputs]
            assert [evolve(t, data=None) for t in types_found] == [graph.type(o) for o in wanted.outputs]
            assert_close(evaluated(parts, operands), evaluated(graph, inputs), max(case.tolerance, 1e-5))
            meant += 1
    assert meant


@pytest.mark.parametrize("kind", list(UnaryKind), ids=lambda kind: kind.name)
def test_a_function_composed_of_others_is_equal_over_its_domain(kind: UnaryKind) -> None:
    b = Builder()
    graph = b.subgraph([b.add(Unary(kind), b.input(TensorType(DType.FLOAT32, (401,))))]) if _is_real(kind) else None
    (decomposition,) = table.decompositions(Unary)
    if graph is None or decomposition.why_not(Unary(kind), graph.types(graph.operations[0])) is not None:
        assert decomposition.why_not(Unary(kind), CallTypes((ROW,), (ROW,))) is not None
        return
    parts = decomposed(decomposition, graph.operations[0], graph.types(graph.operations[0]))
    for x in (np.linspace(-9, 9, 401), np.linspace(-1e-2, 1e-2, 401)):
        x = np.abs(x) + 1e-3 if kind is UnaryKind.RSQRT else x
        assert_close(evaluated(parts, [x.astype(np.float32)]), evaluated(graph, [x.astype(np.float32)]), 2e-5)


def _is_real(kind: UnaryKind) -> bool:
    return not kind.value.booleans and kind not in (UnaryKind.COMPLEX_ABS, UnaryKind.REAL, UnaryKind.IMAG)


@pytest.mark.parametrize("index", [-1, 3, 1 << 20])
def test_the_decomposition_of_put_row_rejects_a_row_out_of_range(index: int) -> None:
    b = Builder()
    types = (TensorType(DType.FLOAT32, (3, 2)), TensorType(DType.FLOAT32, (1, 2)), TensorType(DType.INT32, ()))
    graph = b.subgraph([b.add(PutRow(), *(b.input(t) for t in types))])
    (decomposition,) = decompositions(PutRow)
    parts = decomposed(decomposition, graph.operations[0], graph.types(graph.operations[0]))
    given = [np.zeros((3, 2), np.float32), np.ones((1, 2), np.float32), np.array(index, np.int32)]
    with pytest.raises(RuleError):
        evaluated(parts, given)
    given[2] = np.array(2, np.int32)
    assert_close(evaluated(parts, given), evaluated(graph, given))


# ---- which operations are decomposed


@frozen
class Negated(Op):
    """`-x`, with two decompositions."""

    def infer(self, x: TensorType) -> TensorType:
        return x.result(x.shape)

    def evaluate(self, x: Array) -> Array:
        return -x


@frozen
class TwiceNegated(Negated):
    """`x`, decomposed into two negations."""

    def evaluate(self, x: Array) -> Array:
        return x


@frozen
class Circular(Negated):
    """Decomposed into itself."""


def _zero_minus(d: Draft, op: Op, types: CallTypes, operands: list[int]) -> list[int]:
    zero = d.constant(np.zeros(types.input(0).shape, np.float32))
    return [d.difference(zero, operands[0])]


def _function(d: Draft, op: Op, types: CallTypes, operands: list[int]) -> list[int]:
    return [d.unary(UnaryKind.NEG, operands[0])]


def _twice(d: Draft, op: Op, types: CallTypes, operands: list[int]) -> list[int]:
    return [d.add(Negated(), d.add(Negated(), operands[0]))]


def _itself(d: Draft, op: Op, types: CallTypes, operands: list[int]) -> list[int]:
    return [d.add(Circular(), operands[0])]


def _always(op: Op, types: CallTypes) -> None:
    return None


TOY = {
    Negated: (Decomposition(_always, _zero_minus), Decomposition(_always, _function)),
    TwiceNegated: (Decomposition(_always, _twice),),
    Circular: (Decomposition(_always, _itself),),
}


@pytest.fixture(autouse=True)
def _toys(monkeypatch: pytest.MonkeyPatch) -> None:
    def find(kind: type[Op]) -> tuple[Decomposition, ...]:
        return TOY.get(kind) or table.decompositions(kind)

    monkeypatch.setattr("onert.compiler.legalize.legalize.decompositions", find)
    monkeypatch.setattr("onert.compiler.legalize.legalize.has_decompositions", lambda kind: bool(find(kind)))


def _one(op: Op) -> Subgraph:
    b = Builder()
    return b.subgraph([b.add(op, b.input(ROW))])


def _with(**levels: Support) -> Callable[[Operation, CallTypes], Support]:
    """Support by name of the kind; none for other kinds."""

    def supports(operation: Operation, types: CallTypes) -> Support:
        op = operation.op
        name = op.kind.name if isinstance(op, Unary | Binary) else type(op).__name__
        return levels.get(name, Support.NONE)

    return supports


EVALUATED, NATIVE = Support.EVALUATED, Support.NATIVE


@pytest.mark.parametrize(("level", "found"), [(EVALUATED, True), (NATIVE, True), (Support.NAMED, False)])
def test_a_simpler_form_replaces_a_native_operation_unless_the_user_assigned_it(level: Support, found: bool) -> None:
    b = Builder()
    op = Interpolate(Interpolation.NEAREST, (1, 2), scales=(2.0, 2.0))
    graph = b.subgraph([b.add(op, b.input(TensorType(DType.FLOAT32, (1, 3, 4, 2))))])
    legalized = legalize(graph, _with(Interpolate=level, ResizeNearestNeighbor=NATIVE))
    assert (ResizeNearestNeighbor in [type(o.op) for o in legalized.operations]) is found


@pytest.mark.parametrize(
    ("op", "levels", "found"),
    [
        (Negated(), {"Negated": NATIVE, "NEG": NATIVE}, None),
        (Negated(), {"Negated": EVALUATED, "NEG": EVALUATED}, None),
        (Negated(), {"Negated": EVALUATED}, None),
        (Negated(), {"Negated": EVALUATED, "SUB": NATIVE}, ["SUB"]),
        (Negated(), {"Negated": EVALUATED, "NEG": NATIVE}, ["NEG"]),
        (Negated(), {"Negated": EVALUATED, "SUB": NATIVE, "NEG": NATIVE}, ["NEG"]),  # it reads no constant
        (Negated(), {"NEG": EVALUATED}, ["NEG"]),
        (TwiceNegated(), {"TwiceNegated": EVALUATED, "NEG": NATIVE}, ["NEG", "NEG"]),
        (TwiceNegated(), {"TwiceNegated": EVALUATED, "Negated": NATIVE}, ["Negated", "Negated"]),
        (TwiceNegated(), {"TwiceNegated": EVALUATED, "Negated": EVALUATED, "SUB": EVALUATED}, None),
        (Circular(), {"Circular": EVALUATED}, None),
        (Circular(), {}, None),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Op) else str(value),
)
def test_an_operation_is_decomposed_if_its_parts_have_better_support(
    op: Op, levels: dict[str, Support], found: list[str] | None
) -> None:
    graph = _one(op)
    legalized = legalize(graph, _with(**levels))
    if found is None:
        assert legalized is graph
        return
    names = [o.op.kind.name if isinstance(o.op, Unary | Binary) else type(o.op).__name__ for o in legalized.operations]
    assert names == found
    assert {o.location for o in legalized.operations} == {graph.operations[0].location}
    x = np.float32([[1, -2, 3, 0.5]])
    assert_close(evaluated(legalized, [x]), evaluated(graph, [x]))


@rewriting(requires=(TYPED,), ensures=(TYPED,))
def _negations(subgraph: Subgraph) -> Subgraph:
    """NEG(NEG(x))   -->   TwiceNegated(x)"""
    edit = Edit(subgraph)
    for at, operation in enumerate(subgraph.operations):
        before = definer(subgraph, operation.inputs[0])
        if before is not None and before.op == operation.op == Unary(UnaryKind.NEG):
            edit.replace(at, evolve(operation, op=TwiceNegated(), inputs=before.inputs))
    return edit.done()


def test_an_operation_that_a_pass_recombines_is_decomposed_again() -> None:
    extension = Extension((_negations,), TOY)
    found = optimize(
        _one(TwiceNegated()),
        Options(),
        supports=_with(TwiceNegated=EVALUATED, NEG=NATIVE),
        extensions=(extension,),
    )
    assert [o.op for o in found.operations] == [Unary(UnaryKind.NEG)] * 2
    assert [o.op for o in optimize(found, Options(), extensions=(extension,)).operations] == [TwiceNegated()]


def test_an_operation_that_decomposes_endlessly_is_left_alone() -> None:
    queried: list[Operation] = []

    def supports(operation: Operation, types: CallTypes) -> Support:
        queried.append(operation)
        return Support.NONE

    assert len(legalize(_one(Circular()), supports).operations) == 1
    assert len(queried) <= 3 * MOST_NESTED


def test_subgraphs_of_branches_are_legalized() -> None:
    b = Builder()
    condition, x = b.input(TensorType(DType.BOOL, (1,))), b.input(ROW)
    graph = b.subgraph([b.add(Branch(_one(Negated()), _one(Unary(UnaryKind.ABS))), condition, x)])
    legalized = legalize(graph, _with(Negated=EVALUATED, NEG=NATIVE))
    op = legalized.operations[0].op
    assert isinstance(op, Branch)
    assert isinstance(op.then.operations[0].op, Unary)
    assert op.otherwise is graph.operations[0].op.otherwise  # type: ignore[attr-defined]


# ---- in the compiler


def _recurrent() -> tuple[Package, Array]:
    rng = np.random.default_rng(3)
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (5, 1, 3)), "x")
    arrays = ((4, 3), (4, 4), (4,), (1, 4))
    constants = (b.constant(rng.standard_normal(shape).astype(np.float32)) for shape in arrays)
    y, _ = b.add_many(RNN(time_major=True), x, *constants)
    return Package((b.model([y]),), "recurrent"), rng.standard_normal((5, 1, 3)).astype(np.float32)


@pytest.mark.parametrize(
    ("options", "native"),
    [
        ({}, True),
        ({"op_backend": {"RNN": "reference"}}, False),
        ({"op_backend_allops": "reference"}, False),
        ({"disabled_passes": frozenset({"legalize"})}, False),
        ({"optimize": False}, True),
    ],
    ids=["as it is", "its kind on reference", "all on reference", "legalize disabled", "nothing optimised"],
)
def test_options_decide_whether_a_layer_is_decomposed(options: dict[str, object], native: bool) -> None:
    package, x = _recurrent()
    program = onert.compile(package, **options)
    (routine,) = program.routines
    assert any(isinstance(o.op, RNN) for o in routine.subgraph.operations) is not native
    assert {step.backend for step in routine.steps} == ({"llvm"} if native else {"reference"})
    (found,) = onert.Execution(program).run([x]).values()
    (expected,) = evaluated(package.models[0].primary, [x])
    assert_close([found], [expected])


@pytest.mark.parametrize("constant", [(1, 2, 3, 4), (1, 2, 3), (4,), ()])
def test_batch_norm_is_correct_with_any_of_its_operands_constant(constant: tuple[int, ...]) -> None:
    b = Builder()
    arrays = [np.float32(a) for a in ([[1, -2], [3, 4]], [2, 3], [0.5, 1], [1, 2], [4, 0.25])]
    operands = [
        b.constant(a) if at in constant else b.input(TensorType(DType.FLOAT32, a.shape), f"x{at}")
        for at, a in enumerate(arrays)
    ]
    graph = b.model([b.add(BatchNorm(0.0), *operands)])
    given = [a for at, a in enumerate(arrays) if at not in constant]
    for backends in ((), ("reference",)):
        program = onert.compile(Package((graph,), "made"), backends=backends)
        (found,) = onert.Execution(program).run(given).values()
        np.testing.assert_allclose(found, [[0.5, -23], [2.5, 13]], rtol=1e-5)


@pytest.mark.parametrize(("shape", "why"), [((2, 3, 4), None), ((2, 3, 0), "a tensor has no elements")])
def test_a_reduction_of_an_empty_tensor_is_not_decomposed(shape: tuple[int, ...], why: str | None) -> None:
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, shape), "x")
    graph = b.subgraph([b.add(Reduce(Reduction.SUM), x, b.constant(np.int32([0, 2])))])
    (operation,) = graph.operations
    assert isinstance(operation.op, Reduce)
    assert _why_not_separated(operation.op, graph.types(operation)) == why


@pytest.mark.parametrize(("known", "native"), [(True, True), (False, False)])
def test_one_hot_rows_of_bytes_are_native_whatever_the_scales_of_constants(known: bool, native: bool) -> None:
    b, scales = Builder(), [Quantization((s,), (0,)) for s in (0.5, 0.25, 1.0)]
    at, value = b.input(TensorType(DType.INT32, (2,)), "at"), np.int8([7])
    on, off = (
        b.constant(value, s) if known else b.input(TensorType(DType.INT8, (1,), s), f"value{i}")
        for i, s in enumerate(scales[:2])
    )
    rows = b.add(OneHot(), at, b.constant(np.int32([3])), on, off, quantization=(scales[2],))
    program = onert.compile(Package((b.model([rows]),)))
    assert ("reference" not in program.backends) is native

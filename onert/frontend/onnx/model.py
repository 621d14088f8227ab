"""Converts ONNX models (ModelProto) to the IR."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from onert.frontend.flatbuffer import Data
from onert.frontend.format import InputShapes, ranks_are_missing
from onert.frontend.wire import Message, budget
from onert.ir import Array, DType, ModelError, Shape, Signature, SignatureTensor, Subgraphs, TensorType, unranked
from onert.ir.analysis.model_inference import infer_model
from onert.ir.ops.control_flow.sequences import VARIANT
from onert.ir.process.budget import Budget

from .draft import Draft
from .elements import Storage
from .graph import Context, Scope, own_results
from .messages import Columns, Model, Node, ValueDeclaration, columns, ranks, read_model
from .node import NEWEST
from .runtime_values import operand_of, value_of
from .table import importer

_UNPACKED = 256 << 20
_PACKED = 32
_IR_VERSIONS = range(1, 15)
SIGNATURE = "main"


def read_package(
    content: Data,
    path: Path | None,
    initializers: Mapping[str, Array] | None = None,
    shapes: InputShapes | None = None,
) -> tuple[Subgraphs, bool]:
    """The model in a file's content, and whether the content alone determines it (no elements are in other files).

    `initializers` replace the graph's initializers of the same names, and `shapes` of inputs, by name or number,
    decide ranks.
    """
    steps = budget(len(content))
    model = read_model(Message(content, steps))
    storage = storage_of(content, path, initializers)
    subgraphs = convert(model, storage, steps, shapes or {})
    return subgraphs, not storage.files


def storage_of(content: Data, path: Path | None, initializers: Mapping[str, Array] | None) -> Storage:
    """Where the elements of a file's tensors come from, and how much memory they may take."""
    return Storage(path, Budget(_UNPACKED + _PACKED * len(content), ModelError, "bytes"), initializers or {})


def convert(model: Model, storage: Storage, steps: Budget, shapes: InputShapes) -> Subgraphs:
    """The IR of a model. Raises ModelError with the node's place if it breaks a rule."""
    if model.ir_version not in _IR_VERSIONS:
        raise ModelError(f"the IR version is {model.ir_version}, expected 1 to {_IR_VERSIONS[-1]}")
    opsets = model.opsets or {"": 1}
    version = opsets.get("", 1)
    if not 1 <= version <= NEWEST:
        raise ModelError(f"the opset is {version}, expected 1 to {NEWEST}")
    functions = {(f.domain, f.name, f.overload): f for f in model.functions}
    _require_known(model, functions.keys())
    context = Context(opsets, functions, storage, steps)
    draft = Draft(model.graph.name, steps, storage.memory)
    scope = Scope(context, draft, None, {}, model.graph.values)
    scope.read_initializers(model.graph)
    unknown = sorted(set(storage.initializers) - {tensor.name for tensor in model.graph.initializers})
    if unknown:
        raise ModelError(f"there is no initializer {', '.join(map(repr, unknown))}")
    declared = {each.name: each for each in model.graph.inputs}
    inputs = [each for name, each in declared.items() if name not in scope.names]  # initializers may be listed too
    known = ranks(inputs, shapes)
    _add_inputs(inputs, columns(model.graph.nodes), scope, known)
    names = [each.name for each in model.graph.outputs]
    try:
        values = scope.read_nodes(model.graph.nodes, names)
    except ModelError as error:
        asked = ", ".join(repr(each.name) for each in inputs if each.decides_ranks and each.name not in known)
        if not asked or not ranks_are_missing(error):
            raise
        raise ModelError(f"{error}; ranks depend on the shape of {asked}, which input_shapes can give") from error
    outputs = own_results(draft, [operand_of(draft, value) for value in values], names)
    context.subgraphs[0] = draft.subgraph(outputs)
    signature = Signature(SIGNATURE, 0, _named([each.name for each in inputs], draft.inputs), _named(names, outputs))
    graphs = tuple(g for g in context.subgraphs if g is not None)
    return infer_model(Subgraphs(graphs, (signature,), model.description, tuple(context.notes)), budget=steps)


def _named(names: Sequence[str], operands: Sequence[int]) -> tuple[SignatureTensor, ...]:
    return tuple(SignatureTensor(name, operand) for name, operand in zip(names, operands, strict=True))


def _add_inputs(
    inputs: Sequence[ValueDeclaration], maps: Mapping[str, Columns], scope: Scope, known: Mapping[int | str, Shape]
) -> None:
    """Create the inputs, with the known shapes instead of the declared ones."""
    for declared in inputs:
        type_ = _input_type(declared, maps.get(declared.name))
        shape = known.get(declared.name)
        operand = scope.draft.input(type_ if shape is None else type_.with_shape(shape), declared.name)
        scope.bind(declared.name, operand if declared.type is None else value_of(operand, declared.type))


def _input_type(declared: ValueDeclaration, mapped: Columns | None) -> TensorType:
    """The operand's type. A map is a tensor with one row and a column for each key."""
    type_ = declared.type
    if type_ is not None and type_.kind == "map" and mapped is not None and type_.element is not None:
        row = (1, None if mapped.keys is None else len(mapped.keys))
        return TensorType(type_.element.dtype or DType.FLOAT32, row)
    if type_ is not None and type_.kind in ("sequence", "optional"):
        return VARIANT
    if type_ is None or type_.kind != "tensor" or type_.dtype is None:
        kind = "untyped" if type_ is None else f"a {type_.kind}"
        raise ModelError(f"input '{declared.name}' is {kind}, expected a tensor")
    if type_.shape is None:
        return unranked(type_.dtype)
    return TensorType(type_.dtype, tuple(d if isinstance(d, int) else None for d in type_.shape))


def _require_known(model: Model, own: Collection[tuple[str, str, str]]) -> None:
    """Raise ModelError that lists all operators without an implementation, and where each first occurs."""
    bodies = {"": model.graph.nodes, **{f"function '{f.name}', ": f.nodes for f in model.functions}}
    first: dict[tuple[str, str], str] = {}
    for place, nodes in bodies.items():
        for at, node in enumerate(nodes):
            for n in _all((node,)):
                key = n.domain, n.op_type
                if (*key, n.overload) not in own and importer(*key) is None:
                    first.setdefault(key, f"{place}node {at}")
    if first:
        listed = ", ".join(f"{d}.{op} ({at})" if d else f"{op} ({at})" for (d, op), at in sorted(first.items()))
        raise ModelError(f"there is no implementation of the operators {listed}")


def _all(nodes: Sequence[Node]) -> Iterator[Node]:
    """Yield the nodes and those of their nested graphs."""
    for node in nodes:
        yield node
        for graph in node.graphs:
            yield from _all(graph.nodes)

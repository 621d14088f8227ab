"""TFLite and circle models, which are flatbuffers of one schema."""

from __future__ import annotations

import graphlib
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from pathlib import Path

import numpy as np
from attrs import evolve

from onert.frontend.flatbuffer import LETTERS, Data, Table, budget, root
from onert.ir import (
    Constant,
    ModelError,
    Operand,
    Operation,
    RuleError,
    Signature,
    SignatureTensor,
    StateUpdate,
    Subgraph,
    Subgraphs,
)
from onert.ir import shape as shapes
from onert.ir.analysis.model_inference import infer_model
from onert.ir.process.budget import Budget

from .check_control_flow import check_control_flow
from .custom_ops import CUSTOM_OPS
from .external_models import ExternalModels
from .operators import Code, read_codes, read_operator
from .schema import slot
from .tensors import Buffers, Details, read_tensors

SCHEMA_VERSION = 3
_OPERATOR = 40
"""Units of work charged for an operator in addition to the tables and numbers that it refers to."""
_READING = "reading its operators"
_UNPACKED = 256 << 20
_PACKED = 32
"""How much larger constants may be than the file: enough for 3 % dense sparse ones and for 4 bits unpacked to 32."""
DETAILS: Mapping[bytes, Details] = {
    b"TFL3": Details(blockwise=2),
    b"CIR0": Details(blockwise=3, rows_from_buffer=True),
}
"""What differs between the formats of this schema, by file identifier (the second four bytes)."""


def read_model(data: Data, external_models: ExternalModels) -> Subgraphs:
    """The model in `data`, with the rules of every operation checked. Raises ModelError with the place of a violation.

    Other models that its operators run are read too; their subgraphs are appended to its own.
    """
    identifier = bytes(data[4:8])
    if identifier not in DETAILS:
        raise ModelError(f"begins with {bytes(data[:8])!r}, expected a tflite or circle model")
    details = DETAILS[identifier]
    spent = budget(len(data))
    model = root(data, spent)
    version = int(model.scalar(slot("Model", "version"), "I", 0))
    if version not in (0, SCHEMA_VERSION):
        raise ModelError(f"schema version is {version}, expected {SCHEMA_VERSION}")
    buffers = Buffers(data, tuple(model.tables(slot("Model", "buffers"))), _expansion(len(data)))
    codes = read_codes(model)
    tables = list(model.tables(slot("Model", "subgraphs")))
    if not tables:
        raise ModelError("the model has no subgraph")
    external = external_models.for_model(len(tables), spent)
    graphs = tuple(_subgraph(i, t, codes, buffers, details, external) for i, t in enumerate(tables))
    signatures, notes = _signatures(model, graphs)
    subgraphs = Subgraphs((*graphs, *external.appended), signatures, model.text(slot("Model", "description")), notes)
    check_control_flow(subgraphs)
    return infer_model(_informed(subgraphs), budget=spent)


def _expansion(nbytes: int) -> Budget:
    """The total number of bytes that packed and sparse constants of a file of `nbytes` bytes may unpack to."""
    return Budget(_UNPACKED + _PACKED * nbytes, ModelError, "bytes")


def _informed(model: Subgraphs) -> Subgraphs:
    """The model with operations that have been given what they need of the subgraphs they call (`Op.informed`)."""
    graphs = []
    for graph in model.subgraphs:
        operations = tuple(
            evolve(o, op=o.op.informed([model[called] for called in o.op.subgraphs])) if o.op.subgraphs else o
            for o in graph.operations
        )
        graphs.append(graph if operations == graph.operations else evolve(graph, operations=operations))
    return evolve(model, subgraphs=tuple(graphs))


def _place(index: int, name: str) -> str:
    return f"subgraph {index} '{name}'" if name else f"subgraph {index}"


def _subgraph(
    index: int, table: Table, codes: Sequence[Code], buffers: Buffers, details: Details, external: ExternalModels
) -> Subgraph:
    name = table.text(slot("SubGraph", "name"))
    try:
        operands = read_tensors(list(table.tables(slot("SubGraph", "tensors"))), buffers, details)
        inputs = _indices(table, "inputs", len(operands))
        outputs = _indices(table, "outputs", len(operands))
        if len(set(inputs)) != len(inputs):
            raise ModelError(f"tensor {Counter(inputs).most_common(1)[0][0]} is an input twice")
        reader = _Reader(operands, codes, buffers, external)
        for at, operator in enumerate(table.tables(slot("SubGraph", "operators"))):
            reader.read(at, operator)
        return reader.subgraph(inputs, outputs, name)
    except ModelError as error:
        raise ModelError(f"{_place(index, name)}, {error}") from error


def _indices(table: Table, side: str, count: int) -> tuple[int, ...]:
    found = tuple(int(i) for i in table.array(slot("SubGraph", side), "i"))
    for i in found:
        if not 0 <= i < count:
            raise ModelError(f"{side} name tensor {i}, expected 0 to {count - 1}")
    return found


class _Reader:
    """Reads the operators of one subgraph. The next values of state operands become additional operands."""

    def __init__(
        self, operands: tuple[Operand, ...], codes: Sequence[Code], buffers: Buffers, external: ExternalModels
    ) -> None:
        self.operands = list(operands)
        self.file_operands = operands
        self.codes = codes
        self.buffers = buffers
        self.external = external
        self.operations: list[Operation] = []
        self.next_value: dict[int, int] = {}
        self.variable_of: dict[int, int] = {}

    def read(self, at: int, table: Table) -> None:
        number = int(table.scalar(slot("Operator", "opcode_index"), "I", 0))
        if not 0 <= number < len(self.codes):
            raise ModelError(f"operation {at}: operator code index is {number}, expected 0 to {len(self.codes) - 1}")
        code = self.codes[number]
        place = f"operation {at} {code.name}"
        table.budget.spend(_OPERATOR + len(place) // LETTERS, _READING)
        try:
            inputs = self._ends(table, "inputs", -1)
            outputs = self._ends(table, "outputs", 0)
            op = read_operator(table, code, self.file_operands, (inputs, outputs), self.buffers.data, self.external)
            operands = [self.next_value.get(i, i) if i >= 0 else None for i in inputs]
            while operands and operands[-1] is None and len(operands) > len(op.params):
                operands.pop()
            op.check_arity([i is not None for i in operands])
            extra = self._next_states(op.carries, [p.name for p in op.params], operands)
            self.operations.append(Operation(op, tuple(operands), (*outputs, *extra), place))
        except (ModelError, RuleError) as error:
            raise ModelError(f"{place}: {error}") from error

    def _ends(self, table: Table, side: str, lowest: int) -> tuple[int, ...]:
        found: tuple[int, ...] = tuple(table.array(slot("Operator", side), "i").tolist())
        for i in found:
            if not lowest <= i < len(self.file_operands):
                raise ModelError(f"{side} name tensor {i}, expected {lowest} to {len(self.file_operands) - 1}")
        return found

    def _next_states(self, carries: Sequence[str], params: Sequence[str], operands: Sequence[int | None]) -> list[int]:
        """Create operands for the next values of state; variables are set to them after the run."""
        extra = []
        for name in carries:
            at = params.index(name)
            source = operands[at] if at < len(operands) else None
            if source is None:
                raise ModelError(f"input {at} ({name}) is absent, expected a variable tensor")
            self.operands.append(Operand(evolve(self.operands[source].type), f"{self.operands[source].name}:next"))
            extra.append(len(self.operands) - 1)
            variable = self.variable_of.get(source, source)
            if self.operands[variable].variable:
                self.next_value[variable] = extra[-1]
                self.variable_of[extra[-1]] = variable
        return extra

    def subgraph(self, inputs: tuple[int, ...], outputs: tuple[int, ...], name: str) -> Subgraph:
        """The subgraph, with its operations in an order in which every value is produced before it is used."""
        made: dict[int, int] = {}
        given = frozenset(inputs)
        for at, operation in enumerate(self.operations):
            for out in operation.outputs:
                if out in made:
                    first = self.operations[made[out]].location
                    raise ModelError(f"{operation.location}: {self._label(out)} is already written by {first}")
                if out in given or self.operands[out].is_constant:
                    raise ModelError(
                        f"{operation.location}: {self._label(out)} is written, but it is an input or a constant"
                    )
                made[out] = at
        self._empty_constants(made.keys() | given)
        self._require_written(made, inputs, outputs)
        state = tuple(StateUpdate(v, s) for v, s in self.next_value.items())
        return Subgraph(tuple(self.operands), self._sort(made), inputs, outputs, name, state)

    def _empty_constants(self, written: Set[int]) -> None:
        """Turn tensors without elements into constants; they need no buffer."""
        for index, operand in enumerate(self.operands):
            if index not in written and not operand.variable and operand.data is None:
                self.operands[index] = _empty_constant(operand)

    def _require_written(self, made: dict[int, int], inputs: tuple[int, ...], outputs: tuple[int, ...]) -> None:
        known = {i for i, o in enumerate(self.operands) if o.is_constant or o.variable} | set(inputs) | made.keys()
        for operation in self.operations:
            for i in operation.used:
                if i not in known:
                    raise ModelError(f"{operation.location}: {self._label(i)} is read, but nothing writes it")
        for i in outputs:
            if i not in known:
                raise ModelError(f"{self._label(i)} is an output, but nothing writes it")

    def _sort(self, made: dict[int, int]) -> tuple[Operation, ...]:
        """The operations in the file's order if that is topological, otherwise sorted."""
        needs = [{made[i] for i in operation.used if i in made} for operation in self.operations]
        if all(n < at for at, needed in enumerate(needs) for n in needed):
            return tuple(self.operations)
        try:
            order = list(graphlib.TopologicalSorter(dict(enumerate(needs))).static_order())
        except graphlib.CycleError as error:
            place = self.operations[error.args[1][0]].location
            raise ModelError(f"{place}: its inputs depend on its own outputs") from error
        return tuple(self.operations[at] for at in order)

    def _label(self, index: int) -> str:
        return f"tensor {index} '{self.operands[index].name}'"


def _empty_constant(operand: Operand) -> Operand:
    """The operand as an empty constant if its shape has no elements."""
    if operand.type.dtype.is_handle or 0 not in operand.type.shape:
        return operand
    return evolve(operand, data=Constant(np.zeros(shapes.static(operand.type.shape), operand.type.dtype.numpy)))


def _signatures(model: Table, graphs: Sequence[Subgraph]) -> tuple[tuple[Signature, ...], tuple[str, ...]]:
    """The signatures without tensors that are not inputs or outputs of their subgraph, and a note for each left out."""
    found: list[Signature] = []
    notes: list[str] = []
    for table in model.tables(slot("Model", "signature_defs")):
        key = table.text(slot("SignatureDef", "signature_key"))
        index = int(table.scalar(slot("SignatureDef", "subgraph_index"), "I", 0))
        if index >= len(graphs):
            raise ModelError(f"signature '{key}' names subgraph {index}, expected 0 to {len(graphs) - 1}")
        inputs, outputs = (_signature_tensors(table, side, key, graphs[index], notes) for side in ("inputs", "outputs"))
        found.append(Signature(key, index, inputs, outputs))
    return tuple(found), tuple(notes)


def _signature_tensors(
    table: Table, side: str, key: str, graph: Subgraph, notes: list[str]
) -> tuple[SignatureTensor, ...]:
    """The names of one side that belong to inputs or outputs of the subgraph; adds a note for every other tensor.

    Converters drop inputs that nothing reads but leave them in the signature. Raises ModelError if there is no such
    tensor in the subgraph.
    """
    found = []
    ends = graph.inputs if side == "inputs" else graph.outputs
    table.budget.spend(len(ends), "reading its signatures")
    members = frozenset(ends)
    for item in table.tables(slot("SignatureDef", side)):
        name = item.text(slot("TensorMap", "name"))
        operand = int(item.scalar(slot("TensorMap", "tensor_index"), "I", 0))
        if operand >= len(graph.operands):
            raise ModelError(
                f"signature '{key}' maps '{name}' to tensor {operand}, expected 0 to {len(graph.operands) - 1}"
            )
        if operand in members:
            found.append(SignatureTensor(name, operand))
        else:
            table.budget.spend(len(ends) + (len(name) + len(key)) // LETTERS, "reading its signatures")
            notes.append(
                f"'{name}' in the {side} of signature '{key}' is ignored: it names tensor {operand}, which is not one "
                f"of the subgraph's {side} {list(ends)}"
            )
    return tuple(found)


def read_package(content: Data, path: Path | None) -> tuple[Subgraphs, bool]:
    """The model in a file's content, and whether the content alone determines it: it runs no models in other files,
    and no custom operators are registered."""
    external_models = ExternalModels(path, read_model)
    model = read_model(content, external_models)
    return model, not external_models.chain.found and not CUSTOM_OPS

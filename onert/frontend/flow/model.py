"""Converts a flow file to a model: a subgraph and a signature for each function."""

from __future__ import annotations

from onert.frontend.flatbuffer import Data
from onert.ir import ModelError, Signature, SignatureTensor, Subgraph, Subgraphs
from onert.ir.analysis.verify import verify

from .emitter import Rule
from .file import FlowFile, Operation, decode
from .function import translate
from .resolve import resolve
from .table import TABLE


def read_model(data: Data) -> Subgraphs:
    """The model in a flow file. Raises ModelError with the offset of malformed data, or the operation that breaks a
    rule."""
    return model_of(decode(data))


def model_of(flow: FlowFile) -> Subgraphs:
    """The model with a flow's functions; the first one is the primary subgraph. Raises ModelError if there is none."""
    graph = resolve(flow)
    if not flow.functions:
        raise ModelError("the flow has no function")
    translations = [translate(graph, function, rule_of) for function in flow.functions]
    subgraphs = tuple(translation.subgraph for translation in translations)
    signatures = tuple(signature(subgraph, at) for at, subgraph in enumerate(subgraphs))
    notes = tuple(dict.fromkeys(note for translation in translations for note in translation.notes))
    model = Subgraphs(subgraphs, signatures, notes=notes)
    verify(model)
    return model


def rule_of(operation: Operation) -> Rule | None:
    """The rule for an operation's type; None if it is unknown."""
    return TABLE.get(operation.type)


def signature(subgraph: Subgraph, index: int) -> Signature:
    """The signature of a function's subgraph, with tensors named after variables."""
    inputs, outputs = (
        tuple(SignatureTensor(subgraph.operands[i].name, i) for i in ends)
        for ends in (subgraph.inputs, subgraph.outputs)
    )
    return Signature(subgraph.name, index, inputs, outputs)

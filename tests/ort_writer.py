"""Writes ONNX models as files of ONNX Runtime's own format.

Source of the slots: onnxruntime/core/flatbuffers/schema/ort.fbs.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from hostile.writer import Table, Writer
from onnx import AttributeProto, ModelProto, TensorProto, TypeProto, helper

from onert.frontend.tflite_schema.schema import Field

_SCHEMA = {
    "InferenceSession": "ort_version model session_state kernel_type_str_resolver",
    "Model": "ir_version:q opset_import producer_name producer_version domain model_version:q doc_string graph "
    "graph_doc_string metadata_props",
    "OperatorSetId": "domain version:q",
    "StringStringEntry": "key value",
    "Graph": "initializers node_args nodes max_node_index:I node_edges inputs outputs sparse_initializers",
    "ValueInfo": "name doc_string type",
    "TypeInfo": "denotation value_type:B value",
    "TensorTypeAndShape": "elem_type:i shape",
    "SequenceType": "elem_type",
    "MapType": "key_type:i value_type",
    "Shape": "dim",
    "Dimension": "value denotation",
    "DimensionValue": "dim_type:b dim_value:q dim_param",
    "Node": "name doc_string domain since_version:i index:I op_type type:i execution_provider_type inputs outputs "
    "attributes input_arg_counts implicit_inputs",
    "Attribute": "name doc_string type:i f:f i:q s t g floats ints strings tensors graphs",
    "Tensor": "name doc_string dims data_type:i raw_data string_data external_data_offset:q",
    "SparseTensor": "values indices dims",
}
"""The fields of each table in order; those that are stored in the table itself with their type."""


@cache
def _slots(kind: str) -> dict[str, Field]:
    words = (word.partition(":") for word in _SCHEMA[kind].split())
    # No field is left out for having its default, except where -1 stands for none.
    return {
        name: Field(at, code, -1 if name == "external_data_offset" else 0) for at, (name, _, code) in enumerate(words)
    }


def written(model: ModelProto) -> bytes:
    """The model's file."""
    return file_of(model_table(model))


def file_of(model: Table) -> bytes:
    """The file of a table of the schema's `Model`."""
    return Writer(_slots).done(Table("InferenceSession", ort_version="6", model=model), b"ORTM")


def model_table(model: ModelProto) -> Table:
    """The table of a model, whose functions are left out."""
    return Table(
        "Model",
        ir_version=model.ir_version,
        opset_import=[Table("OperatorSetId", domain=o.domain, version=o.version) for o in model.opset_import],
        producer_name=model.producer_name,
        producer_version=model.producer_version,
        domain=model.domain,
        model_version=model.model_version,
        doc_string=model.doc_string,
        graph=_graph(model.graph),
        graph_doc_string=model.graph.doc_string,
        metadata_props=[Table("StringStringEntry", key=p.key, value=p.value) for p in model.metadata_props],
    )


def _graph(graph: Any) -> Table:
    values = (*graph.input, *graph.value_info, *graph.output)
    return Table(
        "Graph",
        initializers=[_tensor(t) for t in graph.initializer],
        node_args=[Table("ValueInfo", name=v.name, type=_type(v.type)) for v in values],
        nodes=[_node(n) for n in graph.node],
        inputs=[v.name for v in graph.input],
        outputs=[v.name for v in graph.output],
        sparse_initializers=[_sparse(t) for t in graph.sparse_initializer],
    )


def _type(type_: TypeProto) -> Table | None:
    if type_.HasField("tensor_type"):
        shape = type_.tensor_type.shape if type_.tensor_type.HasField("shape") else None
        dims = None if shape is None else Table("Shape", dim=[Table("Dimension", value=_dim(d)) for d in shape.dim])
        kind, value = 1, Table("TensorTypeAndShape", elem_type=type_.tensor_type.elem_type, shape=dims)
    elif type_.HasField("sequence_type"):
        kind, value = 2, Table("SequenceType", elem_type=_type(type_.sequence_type.elem_type))
    elif type_.HasField("map_type"):
        kind = 3
        value = Table("MapType", key_type=type_.map_type.key_type, value_type=_type(type_.map_type.value_type))
    else:
        return None
    return Table("TypeInfo", value_type=kind, value=value)


def _dim(dim: Any) -> Table:
    if dim.HasField("dim_value"):
        return Table("DimensionValue", dim_type=1, dim_value=dim.dim_value)
    return Table("DimensionValue", dim_type=2 if dim.dim_param else 0, dim_param=dim.dim_param)


def _node(node: Any) -> Table:
    return Table(
        "Node",
        name=node.name,
        domain=node.domain,
        op_type=node.op_type,
        inputs=list(node.input),
        outputs=list(node.output),
        attributes=[_attribute(a) for a in node.attribute],
    )


def _attribute(a: Any) -> Table:
    content: dict[str, Any] = {}
    match a.type:
        case AttributeProto.FLOAT:
            content["f"] = a.f
        case AttributeProto.INT:
            content["i"] = a.i
        case AttributeProto.STRING:
            content["s"] = a.s
        case AttributeProto.TENSOR:
            content["t"] = _tensor(a.t)
        case AttributeProto.GRAPH:
            content["g"] = _graph(a.g)
        case AttributeProto.FLOATS:
            content["floats"] = np.array(a.floats, np.float32)
        case AttributeProto.INTS:
            content["ints"] = np.array(a.ints, np.int64)
        case AttributeProto.STRINGS:
            content["strings"] = list(a.strings)
        case AttributeProto.TENSORS:
            content["tensors"] = [_tensor(t) for t in a.tensors]
        case AttributeProto.GRAPHS:
            content["graphs"] = [_graph(g) for g in a.graphs]
    return Table("Attribute", name=a.name, type=a.type, **content)


def _tensor(tensor: TensorProto) -> Table:
    fields: dict[str, Any] = {"dims": np.array(tensor.dims, np.int64), "data_type": tensor.data_type}
    if tensor.data_type == TensorProto.STRING:
        return Table("Tensor", name=tensor.name, string_data=list(tensor.string_data), **fields)
    if tensor.data_location == TensorProto.EXTERNAL:
        fields["external_data_offset"] = 0
    return Table("Tensor", name=tensor.name, raw_data=tensor.raw_data or _packed(tensor), **fields)


def _packed(tensor: TensorProto) -> bytes:
    """The elements in the message's fields as bytes, however many there are."""
    wide = (("float_data", "<f4"), ("double_data", "<f8"), ("int64_data", "<i8"), ("uint64_data", "<u8"))
    parts = [np.array(getattr(tensor, name), dtype).tobytes() for name, dtype in wide]
    if tensor.int32_data:
        size = helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize
        parts.append(np.array(tensor.int32_data, "<i4").astype(f"<u{min(size, 8)}").tobytes())
    return b"".join(parts)


def _sparse(tensor: Any) -> Table:
    dims = np.array(tensor.dims, np.int64)
    return Table("SparseTensor", values=_tensor(tensor.values), indices=_tensor(tensor.indices), dims=dims)


def attributes_of(model: Table, node: int) -> Sequence[Table]:
    """The attributes of a node of the main graph."""
    found: Sequence[Table] = model.fields["graph"].fields["nodes"][node].fields["attributes"]
    return found

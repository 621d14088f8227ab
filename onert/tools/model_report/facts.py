"""The most important facts about a model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite, prod
from typing import Any

from onert.backend import TensorInfo
from onert.ir import DType, Quantization, Subgraph
from onert.ir.analysis.cost import cost

from .compiling import Compiled
from .pools import quantization

PRODUCTS = ("contraction", "recurrent")
"""Families of operations that sum up products, so that two of their operations are one multiply-add."""


def facts(found: Compiled) -> dict[str, Any]:
    """A model's inputs, outputs, signatures, parameters, operations, arithmetic, memory and backends."""
    graph = found.model[found.entry] if len(found.model) else Subgraph((), (), (), ())
    program = found.program
    inputs = _ends(graph, graph.inputs) if program is None else [_info(info) for info in program.inputs]
    for position, open_shape in found.left_open.items():
        inputs[position].update(shape=list(open_shape), taken=list(found.taken.shapes[position]))
    outputs = _ends(graph, graph.outputs) if program is None else [_info(info) for info in program.outputs]
    return {
        "inputs": inputs,
        "outputs": outputs,
        "signatures": _signatures(found),
        "parameters": parameters(found.model.subgraphs),
        "operations": _operations(found.model.subgraphs),
        "arithmetic": _arithmetic(found),
        "memory": _memory(found),
        "runs": _runs(found),
    }


def _info(info: TensorInfo) -> dict[str, Any]:
    return {
        "name": info.name,
        "other_names": list(info.other_names),
        "dtype": info.dtype.text,
        "shape": list(info.open_shape),
        "taken": None,
        "quantization": quantization(info.quantization),
        "range": real_range(info.dtype, info.quantization),
    }


def _ends(graph: Subgraph, operands: Iterable[int]) -> list[dict[str, Any]]:
    """The same as `_info`, for a model that could not be compiled."""
    found = []
    for at in operands:
        operand = graph.operands[at]
        type_ = operand.type
        found.append(
            {
                "name": operand.name,
                "other_names": [],
                "dtype": type_.dtype.text,
                "shape": list(operand.open_shape) if type_.ranked else None,
                "taken": None,
                "quantization": quantization(type_.quantization),
                "range": real_range(type_.dtype, type_.quantization),
            }
        )
    return found


def real_range(dtype: DType, q: Quantization | None) -> list[float] | None:
    """The range of real numbers that a tensor can hold; None if its element type has more than 16 bits or no bounds."""
    if not dtype.is_integer or dtype.bits > 16:
        return None
    low, high = dtype.limits
    if q is None:
        return [float(low), float(high)]
    if not q.per_tensor:
        return None
    ends = [q.scale * (low - q.zero_point), q.scale * (high - q.zero_point)]
    return ends if all(map(isfinite, ends)) else None


def _signatures(found: Compiled) -> list[dict[str, Any]]:
    return [
        {
            "key": signature.key,
            "subgraph": signature.subgraph,
            "inputs": [tensor.name for tensor in signature.inputs],
            "outputs": [tensor.name for tensor in signature.outputs],
            "entered": found.options.signature == signature.key,
        }
        for model in found.package.models
        for signature in model.signatures
    ]


def parameters(graphs: Iterable[Subgraph]) -> dict[str, Any]:
    """Elements and bytes of constants by element type. A constant shared by several operands counts once.

    Integers of 32 bits and more that are not quantised (axes and shapes, unlike biases) do not count as parameters.
    """
    seen: set[object] = set()
    by_type: dict[str, list[int]] = {}
    for graph in graphs:
        for operand in graph.operands:
            constant = operand.data
            if constant is None or not operand.type.is_static:
                continue
            key = constant.place or id(constant)
            wide = operand.type.dtype.is_integer and operand.type.dtype.bits >= 32
            if key in seen or operand.type.dtype.is_handle or (wide and operand.type.quantization is None):
                continue
            seen.add(key)
            counted = by_type.setdefault(operand.type.dtype.text, [0, 0])
            counted[0] += prod(d or 0 for d in operand.type.shape)
            counted[1] += operand.type.nbytes
    return {
        "elements": sum(count for count, _ in by_type.values()),
        "bytes": sum(nbytes for _, nbytes in by_type.values()),
        "by_type": [[name, *counted] for name, counted in sorted(by_type.items(), key=lambda item: -item[1][1])],
    }


def _operations(graphs: Iterable[Subgraph]) -> dict[str, Any]:
    kinds: dict[str, int] = {}
    for graph in graphs:
        for operation in graph.operations:
            kinds[operation.op.label] = kinds.get(operation.op.label, 0) + 1
    by_kind = sorted(kinds.items(), key=lambda item: (-item[1], item[0]))
    return {"count": sum(kinds.values()), "by_kind": [list(item) for item in by_kind]}


def arithmetic(graphs: Iterable[Subgraph]) -> dict[str, Any]:
    """Multiply-adds of sums of products, and all other arithmetic operations. A called subgraph counts once.

    `unknown` is the number of operations with dynamic shapes, which are not counted.
    """
    products, others, unknown = 0, 0, 0
    for graph in graphs:
        for operation in graph.operations:
            types = graph.types(operation)
            if any(t is not None and not t.is_static for t in (*types.inputs, *types.outputs)):
                unknown += 1
                continue
            flops = cost(operation.op, types).flops
            if any(f".ops.{family}." in type(operation.op).__module__ for family in PRODUCTS):
                products += flops // 2
            else:
                others += flops
    return {"multiply_adds": products, "others": others, "unknown": unknown}


def _arithmetic(found: Compiled) -> dict[str, Any]:
    """The arithmetic of the model or of its program, whichever is more: a program has more static shapes, but its
    operations may hide branches and loops inside them."""
    said = arithmetic(found.model.subgraphs)
    if found.program is None or not said["unknown"]:
        return said
    made = arithmetic(routine.subgraph for routine in found.program.routines)
    return max(made, said, key=lambda told: (int(told["multiply_adds"] + told["others"]), -int(told["unknown"])))


def _memory(found: Compiled) -> dict[str, Any] | None:
    """Bytes of the program's constants, arenas by memory space, and inputs and outputs."""
    program = found.program
    if program is None:
        return None
    arenas: dict[str, list[int]] = {}
    for routine in program.routines:
        for name, plan in routine.arenas.items():
            sizes = arenas.setdefault(name, [0, 0])
            sizes[0] += plan.size
            sizes[1] += plan.lower_bound
    ends = [t.type.nbytes for t in (*program.inputs, *program.outputs) if t.type.is_static]
    return {
        "constants": program.constant_bytes,
        "arenas": {name: {"bytes": size, "lower_bound": bound} for name, (size, bound) in arenas.items()},
        "inputs_and_outputs": sum(ends),
        "open": any(d is None for info in (*program.inputs, *program.outputs) for d in info.shape),
    }


def _runs(found: Compiled) -> dict[str, Any] | None:
    """The number of operations and steps on each backend, and why some operations do not run on the first one."""
    program = found.program
    if program is None:
        return None
    steps: dict[str, int] = {}
    for routine in program.routines:
        for step in routine.steps:
            steps[step.backend] = steps.get(step.backend, 0) + 1
    operations: Mapping[str, int] = program.backends
    return {
        "executor": program.executor,
        "threads": program.num_threads,
        "backends": [{"name": name, "operations": operations[name], "steps": steps[name]} for name in operations],
        "notes": [note for note in program.notes if " runs on " in note],
    }

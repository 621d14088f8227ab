"""Fusion of matrix products with the operations that follow them."""

from __future__ import annotations

from collections.abc import Mapping

from onert.flow.graph import Graph, Operation, Variable

from .rewriting import fuse, is_assigned_between, is_internal

_FUSED: Mapping[tuple[str, str], str] = {
    ("MatMul", "Add"): "MatMulAdd",
    ("MatMul", "Relu"): "MatMulRelu",
    ("MatMulAdd", "Relu"): "MatMulAddRelu",
}


def fuse_products(flow: Graph) -> bool:
    """Fuse a bias and a rectifier into the preceding product.

    y = Relu(Add(MatMul(x, W), b))  -->  y = MatMulAddRelu(x, W, b)
    """
    changed = False
    for second in list(flow.ops.values()):
        for variable in second.inputs:
            first = variable.producer
            optype = None if first is None else _FUSED.get((first.type, second.type))
            if first is not None and optype is not None and _may_fuse(first, second, variable):
                fuse(flow, first, second, optype)
                changed = True
                break
    return changed


def _may_fuse(first: Operation, second: Operation, between: Variable) -> bool:
    """Whether nothing else reads the intermediate result, and adding the bias preserves its shape."""
    same = first.func is second.func and first.attrs.get("task") == second.attrs.get("task")
    if len(first.outputs) != 1 or len(second.outputs) != 1:
        return False
    alone = is_internal(between, second) and not ({"nomerge"} & (first.attrs.keys() | second.attrs.keys()))
    return same and alone and second.outputs[0].shape == between.shape and not is_assigned_between(first, second)

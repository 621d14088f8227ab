"""The seed of a process: sessions draw the same random numbers in every run of an application that sets it."""

from __future__ import annotations

from typing import TypeGuard

from attrs import define, evolve

from onert.ir import Package
from onert.ir.op import Op
from onert.ir.operation import Operation
from onert.ir.ops.data_movement.random_numbers import Multinomial, Random
from onert.ir.subgraph import Subgraph, Subgraphs


@define
class _Process:
    """What an application has chosen; None as long as it has not."""

    seed: int | None = None


_PROCESS = _Process()


def set_seed(seed: int) -> None:
    """Sessions made from now on draw equal random numbers wherever their models give no seed.

    It holds for the whole process, as in ONNX Runtime; the numbers are not ONNX Runtime's. Seeds of models stay.
    """
    _PROCESS.seed = int(seed)


def seeded(package: Package) -> Package:
    """The package with the process's seed in each random operation that has none; itself if none was set."""
    seed = _PROCESS.seed
    if seed is None:
        return package
    models = tuple(_model(model, seed) for model in package.models)
    same = all(new is old for new, old in zip(models, package.models, strict=True))
    return package if same else evolve(package, models=models)


def _model(model: Subgraphs, seed: int) -> Subgraphs:
    if not any(_unseeded(operation.op) for graph in model.subgraphs for operation in graph.operations):
        return model
    return evolve(model, subgraphs=tuple(_graph(graph, seed) for graph in model.subgraphs))


def _graph(graph: Subgraph, seed: int) -> Subgraph:
    return evolve(graph, operations=tuple(_operation(operation, seed) for operation in graph.operations))


def _operation(operation: Operation, seed: int) -> Operation:
    op = operation.op
    return evolve(operation, op=evolve(op, seed=seed, seed2=1)) if _unseeded(op) else operation


def _unseeded(op: Op) -> TypeGuard[Random | Multinomial]:
    """Seeds of 0 and 0 are others each time."""
    return isinstance(op, Random | Multinomial) and not (op.seed or op.seed2)

"""The process's random seed: with it, sessions draw the same random numbers whenever an application runs."""

from __future__ import annotations

from typing import Any

from attrs import evolve

from onert.ir import Package
from onert.ir.op import Op
from onert.ir.operation import Operation
from onert.ir.process.imports import module
from onert.ir.subgraph import Subgraph, Subgraphs


class _Process:
    """The seed that the application has set; None if it has not."""

    seed: int | None = None


_PROCESS = _Process()


def set_seed(seed: int) -> None:
    """Make sessions created from now on draw reproducible random numbers if their models specify no seed.

    It applies to the whole process, as in ONNX Runtime, but yields other numbers. Seeds of models take precedence.
    """
    _PROCESS.seed = int(seed)


def seeded(package: Package) -> Package:
    """The package with the process's seed in each random operation without a seed; unchanged if no seed was set."""
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
    op: Any = operation.op
    return evolve(operation, op=evolve(op, seed=seed, seed2=1)) if _unseeded(op) else operation


def _unseeded(op: Op) -> bool:
    """Whether an operation's seeds are 0 and 0, which stand for a different seed in each run."""
    kinds: Any = module("onert.ir.ops.data_movement.random_numbers")  # imported only for processes with a seed
    return isinstance(op, kinds.Random | kinds.Multinomial) and not (op.seed or op.seed2)

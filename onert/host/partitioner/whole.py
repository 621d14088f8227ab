"""An undivided network as a DAG."""

from __future__ import annotations

from onert.backend import Program
from onert.host.dag import DAG, DAGNode
from onert.host.memory import program_memory
from onert.ir import Package


def whole(name: str, package: Package, program: Program, backend: str, copies: int = 1) -> DAG:
    """The network as a single sub-network on `copies` devices."""
    inputs = tuple(range(len(program.inputs)))
    outputs = tuple(range(len(inputs), len(inputs) + len(program.outputs)))
    size = program_memory(program).total
    node = DAGNode(name, package, inputs, outputs, size, backend, tuple(range(copies)))
    return DAG(
        name,
        (node,),
        tuple(zip(program.inputs, inputs, strict=True)),
        tuple(zip(program.outputs, outputs, strict=True)),
    )

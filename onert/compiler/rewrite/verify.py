"""The check after each pass: what every later phase takes for granted."""

from __future__ import annotations

from onert.ir import CompileError, Subgraph


def check(subgraph: Subgraph, after: str) -> None:
    """CompileError, a defect of the pass named `after`, unless every operand is there, defined once, and before use."""
    operands = range(len(subgraph.operands))
    defined = {i for i, operand in enumerate(subgraph.operands) if operand.is_constant or operand.variable}
    defined.update(subgraph.inputs)
    for operation in subgraph.operations:
        for read in operation.used:
            if read not in operands:
                raise CompileError(f"{after} lets {operation} read operand {read} of {len(operands)}")
            if read not in defined:
                raise CompileError(f"{after} lets {operation} read {subgraph.label(read)} before it is defined")
        for made in operation.outputs:
            if made not in operands:
                raise CompileError(f"{after} lets {operation} define operand {made} of {len(operands)}")
            if made in defined:
                raise CompileError(f"{after} lets {operation} define {subgraph.label(made)} again")
            defined.add(made)
    for kept in subgraph.kept:
        if kept not in defined:
            raise CompileError(f"{after} leaves output {kept} undefined")

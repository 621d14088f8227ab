"""Tables of a compiled program's operations and memory plan, for tools to print."""

from __future__ import annotations

from attrs import frozen

from onert.backend import ArenaPlan, Program, Routine
from onert.ir import Subgraph
from onert.ir.value import Value


@frozen
class Table(Value):
    """A heading for every column, and rows with a text for each."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __str__(self) -> str:
        """The table with columns as wide as their longest text."""
        lines = (self.headings, *self.rows)
        widths = [max(len(line[column]) for line in lines) for column in range(len(self.headings))]
        return "\n".join(
            "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in lines
        )


def operations_table(routine: Routine) -> Table:
    """Every operation in execution order: step, backend, location, kind, operands and results."""
    rows = []
    for number, step in enumerate(routine.steps):
        for operation in step.sequence.body:
            operands = " ".join("-" if i is None else _operand(i) for i in operation.inputs)
            results = " ".join(_operand(o) for o in operation.outputs)
            rows.append((str(number), step.backend, str(operation), operation.op.label, operands, results))
    return Table(("step", "backend", "operation", "kind", "reads", "makes"), tuple(rows))


def plan_table(subgraph: Subgraph, plan: ArenaPlan) -> Table:
    """Every tensor of an arena by offset: its start and end, bytes, type, and the tensor whose memory it shares."""
    rows = []
    for operand, place in sorted(plan.placements.items(), key=lambda item: (item[1].offset, item[0])):
        shared = "" if place.root == operand else _operand(place.root)
        start, end = place.offset, place.offset + place.nbytes
        rows.append((_operand(operand), str(start), str(end), str(place.nbytes), str(subgraph.type(operand)), shared))
    return Table(("tensor", "from", "to", "bytes", "type", "shares"), tuple(rows))


def memory_lines(program: Program) -> tuple[str, ...]:
    """For every arena of the entry, a line with its bytes and the lower bound."""
    return tuple(
        f"{name}: {plan.size} bytes for {len(plan.placements)} tensors by {plan.planner}, "
        f"at least {plan.lower_bound} needed"
        for name, plan in program.memory_plan.items()
    )


def _operand(operand: int) -> str:
    return f"%{operand}"

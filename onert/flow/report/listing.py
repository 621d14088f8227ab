"""The listing of a cell: the memory of its tensors, and the steps of its computation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from onert.backend import HOST
from onert.flow.compiled import Compiled
from onert.flow.layout import Field
from onert.ir import TensorType
from onert.ir.errors import printable

_NAMES = {
    "float32": "Flt",
    "float64": "Dbl",
    "float16": "Half",
}
"""Element types in the variants of kernels; others by their own names."""


def listing(cell: Compiled) -> str:
    """The content of a cell, in lines:

        cell NAME {  // size BYTES
          input var NAME: TYPE  // offset BYTES size BYTES alignment BYTES row-major
            union NAME: TYPE    // the same offset as the tensor above

          const NAME: TYPE      // size BYTES alignment BYTES row-major

          RESULTS = KERNEL[VARIANT](OPERANDS) RECIPE
        }

    Tensors that no step writes to memory have no line. A variant is the kernel's element type and the backend that runs
    it. Source of the form: SLING's guide to Myelin.
    """
    blocks = [
        list(_aligned(_field_lines(cell))),
        list(_aligned(_shared_lines(cell))),
        list(_step_lines(cell)),
    ]
    body = "\n\n".join("\n".join(block) for block in blocks if block)
    return f"cell {printable(cell.name)} {{  // size {cell.layout.size}\n{body}\n}}"


def type_text(type_: TensorType, reference: bool = False) -> str:
    """A type as `&float32[1x64]`."""
    sizes = "x".join("?" if d is None else str(d) for d in type_.shape)
    return f"{'&' if reference else ''}{type_.dtype.name.lower()}{f'[{sizes}]' if sizes else ''}"


def _aligned(lines: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Text with notes aligned in a column beside it."""
    found = list(lines)
    width = max((len(line) for line, _ in found), default=0)
    return (f"{line:<{width}}  // {note}" for line, note in found)


def _field_lines(cell: Compiled) -> Iterator[tuple[str, str]]:
    outputs = cell.program.outputs[: len(cell.program.outputs) - len(cell.assigned)]
    ends = {i.name: "input " for i in cell.program.inputs} | {o.name: "output " for o in outputs}
    before: Field | None = None
    for field in sorted(cell.layout.fields.values(), key=lambda f: f.offset):
        name, reference = printable(field.name), field.name in cell.references
        declaration = f"{name}: {type_text(field.type, reference)}"
        shares = before is not None and before.offset == field.offset
        line = f"    union {declaration}" if shares else f"  {ends.get(field.name, '')}var {declaration}"
        links = ", ".join(printable(other) for other in cell.links.get(field.name, ()))
        linked = f" linked to {links}" if links else ""
        where = f"offset {field.offset} size {field.type.nbytes} alignment {HOST.alignment}"
        yield line, f"{where} {_order(field.column_major)}{linked}"
        before = field


def _shared_lines(cell: Compiled) -> Iterator[tuple[str, str]]:
    read = dict.fromkeys(name for step in cell.steps for name in step.inputs if name in cell.shared.types)
    for name in read:
        kind, type_ = "global" if name in cell.shared.learnable else "const", cell.shared.types[name]
        declaration = f"  {kind} {printable(name)}: {type_text(type_)}"
        yield declaration, f"size {type_.nbytes} alignment {HOST.alignment} {_order(name in cell.shared.columns)}"


def _order(column_major: bool) -> str:
    return "column-major" if column_major else "row-major"


def _step_lines(cell: Compiled) -> Iterator[str]:
    for step in cell.steps:
        outputs, inputs = (", ".join(map(printable, side)) for side in (step.outputs, step.inputs))
        recipe = f" {step.recipe}" if step.recipe else ""
        result = f"{outputs} = " if outputs else ""
        yield f"  {result}{step.kernel}[{variant(step.types, step.backends)}]({inputs}){recipe}"


def variant(types: Sequence[str], backends: Sequence[str]) -> str:
    """The element type of a step, and the backends that run it."""
    element = types[0] if types else ""
    return " ".join(filter(None, (_NAMES.get(element, element.capitalize()), "+".join(backends))))

"""Measured times of operations on each backend, in `exec_time.json`.

Source of the layout: ONE's runtime, `{backend: {operation: {"0" | "1": [[bytes, microseconds], ...]}}}`, where "1"
stands for quantised operands, bytes are those of all operands and results, and a copy to another backend is an
operation with that backend's name.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from attrs import field, frozen

from onert.ir import CallTypes, CompileError, Op, TensorType
from onert.ir.process.replacing import replace
from onert.ir.value import Value

FILE = "exec_time.json"
FAILED = (1 << 31) - 1
"""The time recorded if a backend could not run an operation."""

Records = Mapping[int, float]

_ONE_NAMES = {
    "Binary": "BinaryArithmetic",
    "Unary": "ElementwiseUnary",
    "Concat": "Concat",
    "ArgReduce": "ArgMinMax",
    "TopK": "TopKV2",
    "PRelu": "PReLU",
}
"""ONE's names of kinds whose names differ here."""


@frozen
class ExecTimes(Value):
    """Times by backend, operation, whether quantised, and bytes. Immutable; `with_time` returns a new object."""

    times: Mapping[tuple[str, str, bool], Records] = field(factory=dict)

    def operation(self, backend: str, op: Op, types: CallTypes) -> float | None:
        """Microseconds of an operation on a backend; infinite if it failed there, None if nothing is known.

        Measurements of exactly this operation take precedence over those of its kind, which are matched by bytes.
        """
        quantized, size = is_quantized(types), total_bytes(types)
        for name in (detail(op, types), op.label, op.name(), _ONE_NAMES.get(op.name(), op.name())):
            records = self.times.get((backend, name, quantized))
            if records:
                return _at(records, size)
        return None

    def transfer(self, source: str, target: str, type_: TensorType) -> float | None:
        """Microseconds to copy a tensor from one backend's memory to another's; None if nothing is known."""
        records = self.times.get((source, target, type_.quantization is not None))
        records = records or self.times.get((source, target, type_.quantization is None))
        return _at(records, 2 * type_.nbytes) if records else None

    def with_time(self, backend: str, name: str, quantized: bool, nbytes: int, microseconds: float) -> ExecTimes:
        """These times with one more, averaged with the time already known for this size."""
        key = (backend, name, quantized)
        records = dict(self.times.get(key, {}))
        known = records.get(nbytes)
        records[nbytes] = microseconds if known is None or known >= FAILED else (known + microseconds) / 2
        return ExecTimes({**self.times, key: records})


def detail(op: Op, types: CallTypes) -> str:
    """A description with attributes and types, which two operations share only if they take the same time."""
    attributes = ", ".join(f"{name}={_text(value)}" for name, value in op.attributes.items())
    inputs = ", ".join("-" if t is None else str(t) for t in types.inputs)
    return f"{op.label}({attributes}) {inputs} -> {', '.join(map(str, types.outputs))}"


def _text(value: Any) -> str:
    return str(getattr(value, "name", value))


def is_quantized(types: CallTypes) -> bool:
    return any(t is not None and t.quantization is not None for t in (*types.inputs, *types.outputs))


def total_bytes(types: CallTypes) -> int:
    """The bytes of all operands and results that have a static type."""
    return sum(t.nbytes for t in (*types.inputs, *types.outputs) if t is not None and t.is_static)


def _at(records: Records, size: int) -> float:
    """The time for a size: the known one, the only one, or interpolated between the nearest two sizes; at least 1."""
    points = sorted((nbytes, time) for nbytes, time in records.items() if time < FAILED)
    if not points:
        return float("inf")
    if size in dict(points):
        return dict(points)[size]
    if len(points) == 1:
        return points[0][1]
    right = next((i for i, (nbytes, _) in enumerate(points) if nbytes > size), len(points) - 1)
    (x0, y0), (x1, y1) = points[max(right, 1) - 1], points[max(right, 1)]
    return max(1.0, y0 + (y1 - y0) * (size - x0) / (x1 - x0))


def load(path: Path) -> ExecTimes:
    """The times in a file. Raises CompileError if it is missing or has another layout."""
    try:
        tree = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CompileError(
            f"the scheduler needs {path}: {error.strerror or error}; `onert_run --profile-backends` creates it"
        ) from error
    except ValueError as error:
        raise CompileError(f"{path} is not valid JSON: {error}") from error
    try:
        return ExecTimes(
            {
                (backend, name, bool(int(quantized))): {int(nbytes): float(time) for nbytes, time in records}
                for backend, operations in tree.items()
                for name, kinds in operations.items()
                for quantized, records in kinds.items()
            }
        )
    except (AttributeError, TypeError, ValueError) as error:
        raise CompileError(f"{path} does not have the layout of {FILE}: {error}") from error


def save(times: ExecTimes, path: Path) -> None:
    """Write the times. Raises CompileError if the file cannot be written."""
    tree: dict[str, dict[str, dict[str, list[list[float]]]]] = {}
    for (backend, name, quantized), records in sorted(times.times.items()):
        kinds = tree.setdefault(backend, {}).setdefault(name, {})
        kinds[str(int(quantized))] = [[nbytes, round(time, 3)] for nbytes, time in sorted(records.items())]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace(path, (json.dumps(tree, indent=1).encode(),))
    except OSError as error:
        raise CompileError(f"{path} cannot be written: {error.strerror or error}") from error


def merged(known: ExecTimes, found: Iterable[tuple[str, str, bool, int, float]]) -> ExecTimes:
    """The times with measurements added: backend, operation, whether quantised, bytes, microseconds."""
    for backend, name, quantized, nbytes, microseconds in found:
        known = known.with_time(backend, name, quantized, nbytes, microseconds)
    return known

"""The minimum and maximum of every tensor, for the calibration of quantisation."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path

import numpy as np
from attrs import define

from onert.backend import Program, Tensor, Tensors
from onert.exec.exclusive import Serial
from onert.ir import Array, ExecutionError, Subgraph, dequantize
from onert.ir.process.replacing import replace

from .observer import Observer, Work


@define
class Range:
    """The extremes of a tensor that was computed `runs` times, as real numbers if it is quantised.

    NaN and infinities are ignored.
    """

    low: float
    high: float
    runs: int = 1


class MinMax(Observer):
    """Records ranges, also of inputs, by the tensor's name, or by its number if it has none.

    Tensors that a backend does not write to memory are missing. If `path` is given, the ranges are written there as
    JSON when the execution is closed.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self._path = None if path is None else Path(path)
        self.ranges: dict[str, Range] = {}
        self._turns = Serial()

    def run_begins(self, program: Program, tensors: Tensors) -> None:
        subgraph = program.main.subgraph
        for operand in subgraph.inputs:
            self._record(subgraph, operand, tensors[operand])

    def ends(self, work: Work, tensors: Tensors, start: int, end: int) -> None:
        subgraph = work.routine.subgraph
        for at in work.operations:
            for operand in subgraph.operations[at].outputs:
                if operand in tensors:
                    self._record(subgraph, operand, tensors[operand])

    def _record(self, subgraph: Subgraph, operand: int, tensor: Tensor) -> None:
        if tensor.buffer is None or tensor.type.dtype.is_handle or tensor.type.dtype.numpy.kind == "c":
            return
        array = tensor.array
        if tensor.declared.quantization is not None and tensor.type.dtype.is_integer:
            array = dequantize(array, tensor.declared.quantization)
        self.add(subgraph.operands[operand].name or f"{subgraph.name or 'main'}:{operand}", array)

    def add(self, name: str, array: Array) -> None:
        """Include an array of a tensor's elements in its range."""
        numbers = array.astype(np.float64).ravel()
        numbers = numbers[np.isfinite(numbers)]
        if len(numbers):
            self._turns(partial(self._add, name, float(numbers.min()), float(numbers.max())))

    def _add(self, name: str, low: float, high: float) -> None:
        known = self.ranges.get(name)
        if known is None:
            self.ranges[name] = Range(low, high)
        else:
            known.low, known.high, known.runs = min(known.low, low), max(known.high, high), known.runs + 1

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write `{name: {"min", "max", "runs"}}`. Raises ExecutionError if the file cannot be written."""
        target = Path(path)
        rows = {name: {"min": r.low, "max": r.high, "runs": r.runs} for name, r in self.ranges.items()}
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            replace(target, (json.dumps(rows, indent=1).encode(),))
        except OSError as error:
            raise ExecutionError(f"the ranges cannot be written to {target}: {error.strerror or error}") from error

    def close(self) -> None:
        if self._path is not None:
            self.write(self._path)

"""One operation on given types, computed by a backend and by the operation's definition."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
from attrs import evolve, frozen

from onert.backend.backend import Backend, Settings
from onert.ir import Array, Constant, DType, Op, Operand, Operation, Quantization, Subgraph, TensorType, evaluate, infer
from onert.ir.value import Value

from .bench import Bench


class Skipped(Exception):  # noqa: N818 - not an error
    """The backend does not support the operation; the message is its reason."""


class Misaligned(AssertionError):  # noqa: N818 - read in a test's report: "Misaligned: result 0 differs ..."
    """The backend's results differ from the operation's definition, or it violates the contract."""


@frozen
class Trial(Value):
    """An operation and the types of its operands; a constant operand is given as an array.

    `tolerance` is the largest difference from the reference: for floats relative to the reference's largest magnitude,
    for integers in units of the stored numbers. `quantization` is that of the results.
    """

    name: str
    op: Op
    operands: tuple[TensorType | Array | None, ...]
    tolerance: float = 1e-5
    quantization: Quantization | None = None

    def __str__(self) -> str:
        return self.name

    @property
    def subgraph(self) -> Subgraph:
        """A subgraph with only this operation: operands without elements are its inputs."""
        operands: list[Operand] = []
        inputs: list[int] = []
        read: list[int | None] = []
        for given in self.operands:
            if given is None:
                read.append(None)
                continue
            read.append(len(operands))
            if isinstance(given, TensorType):
                inputs.append(len(operands))
                operands.append(Operand(given, f"input {len(inputs) - 1}"))
            else:
                type_ = TensorType(DType.from_numpy(given.dtype), given.shape)
                operands.append(Operand(type_, "constant", Constant(given)))
        results = infer(self.op, tuple(None if i is None else operands[i].known for i in read))
        assert results is not None
        made = tuple(range(len(operands), len(operands) + len(results)))
        operands += [Operand(evolve(result, quantization=self.quantization), "result") for result in results]
        operation = Operation(self.op, tuple(read), made, f"{self.op.label} of trial {self.name}")
        return Subgraph(tuple(operands), (operation,), tuple(inputs), made)

    def inputs(self, seed: int = 0) -> list[Array]:
        """Random elements for the inputs, reproducible for each seed."""
        rng = np.random.default_rng((zlib.crc32(self.name.encode()), seed))
        return [_random(given, rng) for given in self.operands if isinstance(given, TensorType)]

    def wanted(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """The reference results for these inputs."""
        subgraph = self.subgraph
        (operation,) = subgraph.operations
        arrays = dict(zip(subgraph.inputs, inputs, strict=True))
        for index, operand in enumerate(subgraph.operands):
            if operand.data is not None:
                arrays[index] = operand.data.array
        given = [None if i is None else arrays[i] for i in operation.inputs]
        return evaluate(self.op, given, subgraph.types(operation))


def align(backend: Backend, trial: Trial, settings: Settings | None = None, runs: int = 2) -> None:
    """Run the trial on the backend several times, each time with other inputs.

    Raises Skipped if the backend does not support it, and Misaligned if a result differs, memory outside the tensors
    was written, or an input was changed.
    """
    subgraph = trial.subgraph
    (operation,) = subgraph.operations
    reason: object = backend.supports(operation, subgraph.types(operation))
    if reason is not None and not isinstance(reason, str):
        raise Misaligned(f"{trial.name}: supports returned {reason!r}, expected None or a sentence that says why not")
    if reason is not None:
        raise Skipped(reason)
    with Bench(backend, subgraph, settings or Settings()) as bench:
        for seed in range(runs):
            inputs = trial.inputs(seed)
            found = bench.run(inputs)
            for number, (got, wanted) in enumerate(zip(found, trial.wanted(inputs), strict=True)):
                compare(f"{trial.name}: result {number}", got, wanted, trial.tolerance)
            for operand, given in zip(subgraph.inputs, inputs, strict=True):
                if bench.tensors[operand].array.tobytes() != given.tobytes():
                    raise Misaligned(f"{trial.name}: the kernel changes its operand {operand}")
            if not bench.guards_hold():
                raise Misaligned(f"{trial.name}: the kernel writes outside of its results")


def compare(what: str, got: Array, wanted: Array, tolerance: float) -> None:
    """Raises Misaligned unless `got` equals `wanted` within the tolerance; NaN equals NaN."""
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        raise Misaligned(f"{what} is {got.dtype}{list(got.shape)}, expected {wanted.dtype}{list(wanted.shape)}")
    if not wanted.size or got.tobytes() == wanted.tobytes():
        return
    a, b = got.astype(np.float64), wanted.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    allowed = tolerance * max(float(np.abs(b[np.isfinite(b)]).max(initial=0.0)), 1e-30)
    if wanted.dtype.kind != "f":
        allowed = np.floor(tolerance)
    with np.errstate(invalid="ignore"):
        off = ~same & ~(np.abs(a - b) <= allowed)
    if off.any():
        at = tuple(int(i) for i in np.argwhere(off)[0])
        raise Misaligned(
            f"{what} differs in {int(off.sum())} of {off.size} elements, first at {at}: {a[at]}, expected {b[at]}"
        )


def _random(type_: TensorType, rng: np.random.Generator) -> Array:
    shape = tuple(d or 0 for d in type_.shape)
    kind = type_.dtype.numpy
    if type_.dtype.is_float:
        return rng.standard_normal(shape).astype(kind)
    if kind == np.bool_:
        return rng.integers(0, 2, shape).astype(kind)
    bounds = np.iinfo(kind)
    low, high = (bounds.min, bounds.max) if type_.quantization is not None else (-50, 50)
    return rng.integers(max(low, bounds.min), min(high, bounds.max), shape, dtype=kind, endpoint=True)

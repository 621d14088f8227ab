"""All cases with float32 operands, small and stretched, with one element of an operand replaced by a special value."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from enum import Enum, auto
from functools import cached_property

import ml_dtypes
import numpy as np
from attrs import Factory, evolve, frozen
from cases.case import Case

from onert.backend import Settings, Tensor, Tensors
from onert.compiler.legalize.decomposition import places
from onert.ir import Array, OnertError, Subgraph
from onert.ir.ops.contraction.cached_attention import CachedAttention
from onert.ir.ops.recurrent.linear_attention import LinearAttention
from onert.ir.ops.recurrent.lstm import LSTM
from onert.ir.ops.reduction.reduce import Reduce, Reduction
from onert.ir.ops.reduction.scan import RFFT2D
from onert.ir.ops.vision_audio.fourier import Fourier
from onert_llvm.target.isa import Isa, runnable

from .natively import BACKEND, NOTHING, legal, sequence_of, subgraph_of, unsupported

VALUES = {
    "NaN": np.nan,
    "infinity": np.inf,
    "minus infinity": -np.inf,
    "minus zero": -0.0,
    "a denormal": 1e-41,
    "huge": 3e38,
    "minus huge": -3e38,
    "1e8": 1e8,
}
Run = Callable[[Sequence[Array]], list[Array]]


class Stretched(Enum):
    """Which float operands of a case are longer."""

    NONE = auto()
    FIRST = auto()
    ALL = auto()


@frozen(eq=False)
class Special:
    """A case's operation on operands of certain shapes; `constant` lists the constant operands.

    `stretched` tells which shapes differ from the case's.
    """

    name: str
    stretched: Stretched
    case: Case
    constant: tuple[int, ...]
    _runs: dict[str, Run] = Factory(dict)

    @cached_property
    def legal(self) -> Subgraph:
        """The operation as the backend receives it."""
        return legal(self.subgraph())

    def bound(self, isa: Isa) -> Run:
        """A function that runs the operation natively on a target."""
        if isa.name not in self._runs:
            self._runs[isa.name] = bind(self.legal, isa)
        return self._runs[isa.name]

    @property
    def floats(self) -> list[int]:
        """The operands with float32 elements."""
        return [i for i, a in enumerate(self.case.inputs) if a is not None and a.dtype == np.float32 and a.size]

    def subgraph(self, replaced: tuple[int, int, float] | None = None) -> Subgraph:
        """The operation alone; `replaced` gives the operand, position and value of a constant's element to replace."""
        if replaced is None:
            return subgraph_of(self.case, self.constant)
        operand, position, value = replaced
        arrays = list(self.case.inputs)
        arrays[operand] = _with(arrays[operand], position, value)
        return subgraph_of(evolve(self.case, inputs=tuple(arrays)), self.constant)

    @property
    def inputs(self) -> list[tuple[int, Array]]:
        """The operands passed to a run, with their indices."""
        return [(i, a) for i, a in enumerate(self.case.inputs) if a is not None and i not in self.constant]


def positions(array: Array) -> list[int]:
    """The first, a middle and the last element, which cover vector bodies, tails and padded edges."""
    return sorted({0, array.size // 2, array.size - 1})


def replacements(inputs: Sequence[Array], operand: int) -> Iterator[tuple[str, list[Array]]]:
    """A run's inputs for every special value at every position of an operand."""
    for position in positions(inputs[operand]):
        for name, value in VALUES.items():
            changed = list(inputs)
            changed[operand] = _with(inputs[operand], position, value)
            yield f"{name} at {position} of input {operand}", changed


def _with(array: Array | None, position: int, value: float) -> Array:
    assert array is not None
    changed = array.copy()
    changed.reshape(-1)[position] = value
    return changed


def specials(family: str, every: bool) -> Iterator[Special]:
    """The cases of a family that run natively, as they are or stretched; new cases are included automatically.

    Unless `every` one is wanted, the native choices of constant operands take turns.
    """
    turn = 0
    for case in getattr(importlib.import_module(f"cases.{family}"), "CASES", ()):
        for how, which, stretched in _stretches(case):
            rest = tuple(i for i, a in enumerate(stretched.inputs) if a is not None and i)
            found = [
                special
                for constant in dict.fromkeys((stretched.constant, rest))
                if (special := Special(f"{case.name}-{how}-{len(constant)}", which, stretched, constant)).floats
                and _native(special)
            ]
            if every or len(found) < 2:
                yield from found
            else:
                yield found[turn % len(found)]
                turn += 1


_STRETCHES = (
    ("wide", True, -1, 19),
    ("long", True, 0, 7),
    ("channels", False, -1, 19),
    ("rows", False, 1, 5),
    ("columns", False, 2, 11),
)
"""The axis along which all float operands, or only the first, are repeated, and how many times."""


def _stretches(case: Case) -> Iterator[tuple[str, Stretched, Case]]:
    yield "small", Stretched.NONE, case
    floats = [i for i, a in enumerate(case.inputs) if a is not None and a.dtype == np.float32 and a.ndim]
    for how, every, axis, times in _STRETCHES:
        chosen = floats if every else floats[:1]
        arrays = list(case.inputs)
        if not chosen or any(not -np.ndim(arrays[i]) <= axis < np.ndim(arrays[i]) for i in chosen):
            continue
        for i in chosen:
            arrays[i] = np.concatenate([np.asarray(arrays[i])] * times, axis=axis)
        which = Stretched.ALL if every else Stretched.FIRST
        yield how, which, evolve(case, inputs=tuple(arrays), expected=None)


def _native(special: Special) -> bool:
    """Whether a case runs natively, and not by a decomposition (other than recurrent ones) that reorders arithmetic."""
    try:
        subgraph = special.subgraph()
        (operation,) = subgraph.operations
        if places().get(type(special.case.op).__name__, "recurrent") != "recurrent":
            return BACKEND.supports(operation, subgraph.types(operation)) is None
        if unsupported(special.legal) is not None:
            return False
        special.bound(runnable()[-1])
        return True
    except (OnertError, ValueError):  # the operation rejects these shapes
        return False


def bind(subgraph: Subgraph, isa: Isa) -> Run:
    """A function that runs a subgraph natively, which is already `legal`."""
    settings = Settings(num_threads=1, target=isa.name)
    sequence = sequence_of(subgraph, settings)
    tensors = {
        i: Tensor(
            o.type,
            np.array(o.data.array)
            if o.data is not None
            else np.zeros([d or 0 for d in o.type.shape], o.type.dtype.numpy),
        )
        for i, o in enumerate(subgraph.operands)
    }
    call = BACKEND.generate(sequence, settings).bind(Tensors(tensors), NOTHING)

    def run(inputs: Sequence[Array]) -> list[Array]:
        for i, array in zip(subgraph.inputs, inputs, strict=True):
            tensors[i].array[...] = array
        call()
        return [tensors[i].array.copy() for i in subgraph.outputs]

    return run


def order_decides(special: Special, what: str) -> bool:
    """Whether the order of additions or multiplications, which backends choose, decides if the result overflows, or
    whether it is NaN."""
    op = special.case.op
    if isinstance(op, LinearAttention):  # the factors of a state are multiplied by keys or by states
        return "huge" in what or ("inf" in what and what.endswith(("input 3", "constant 3")))
    if isinstance(op, CachedAttention):  # values that a token does not see may have a factor of 0
        return "of input 2" in what or "constant 2" in what
    if isinstance(op, RFFT2D | Fourier):  # an infinity meets factors of 0 in some decompositions and not in others
        return "infinity" in what
    product = isinstance(op, Reduce) and op.kind is Reduction.PROD
    normalised = isinstance(op, LSTM) and "normalised" in special.name
    return "huge" in what and (product or normalised)


def compared(special: Special, result: Array) -> Array:
    """A result as it is compared: real and imaginary parts together, since factors of 0, which some decompositions
    leave out, decide which of them a NaN reaches."""
    if isinstance(special.case.op, Fourier) and result.shape[-1] == 2:
        return np.ascontiguousarray(result).view(np.complex128 if result.dtype == np.float64 else np.complex64)
    return result


def difference(mine: Array, theirs: Array) -> str | None:
    """How two results differ: in NaNs, infinities, values (beyond 1e-5 of their magnitude) or signs of zeros."""
    if mine.dtype != theirs.dtype or mine.shape != theirs.shape:
        return f"{mine.dtype}{mine.shape} is not {theirs.dtype}{theirs.shape}"
    if mine.dtype == ml_dtypes.bfloat16:
        mine, theirs = mine.astype(np.float32), theirs.astype(np.float32)
    if mine.dtype.kind not in "fc":
        return None if np.array_equal(mine, theirs) else "elements"
    if not np.array_equal(np.isnan(mine), np.isnan(theirs)):
        return "NaNs"
    if mine.dtype.kind == "f" and not np.array_equal(
        np.where(np.isinf(mine), mine, 0), np.where(np.isinf(theirs), theirs, 0)
    ):
        return "infinities"
    finite = np.isfinite(mine) & np.isfinite(theirs)
    a, b = mine[finite].astype(np.complex128), theirs[finite].astype(np.complex128)
    if np.abs(a - b).max(initial=0) > 1e-5 * np.abs(b).max(initial=0):
        return "values"
    zeros = (mine == 0) & (theirs == 0)
    signs = mine.dtype.kind == "c" or np.array_equal(np.signbit(mine[zeros]), np.signbit(theirs[zeros]))
    return None if signs else "signs of zeros"

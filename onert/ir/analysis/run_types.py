"""The types of an operation in a run, where only a run knows the sizes: kept for the sizes seen last."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import evolve, frozen

from onert.ir.dtype import Array
from onert.ir.op import Op
from onert.ir.types import CallTypes, Constant, TensorType
from onert.ir.value import ByIdentity

from .evaluate import is_plain, sized
from .inference import declare, infer, shapes_ok

MOST_KEPT, MOST_BYTES = 64, 256
"""For how many combinations of sizes an operation's types are kept, and the most bytes of elements that distinguish
them."""


@frozen(eq=False)
class Priced(ByIdentity):
    """Types of an operation, the bytes of its results, the cost of evaluating it in additions, and `is_plain`.

    `function` computes the results of operands with these types and elements, where the operation has `sized`.
    """

    types: CallTypes
    nbytes: int
    work: int
    is_plain: bool
    function: Callable[..., tuple[Array, ...]] | None = None


def priced(op: Op, types: CallTypes, work: Callable[[Op, CallTypes], int]) -> Priced:
    plain, whole = is_plain(op, types), all(t.is_static for t in types.outputs)
    function = sized(op, types) if plain and whole else None
    nbytes = sum(t.nbytes for t in types.outputs if t.is_static)
    return Priced(types, nbytes, work(op, types), plain, function)


class _Noted(Constant):
    """Elements that note that they were read."""

    def __init__(self, source: Array, read: set[int], at: int) -> None:
        super().__init__(source)
        self._read = read
        self._at = at

    @property
    def array(self) -> Array:
        self._read.add(self._at)
        assert not callable(self._source)
        return self._source


class RunTypes:
    """The types and the cost of an operation for the arrays of a run.

    `inputs` and `outputs` are what is known of them before any run. The operation's rules are checked for every
    combination of shapes, and of those elements that they depend on. If shapes alone determine the results' shapes,
    elements are left to `evaluate`, which checks them for itself; so they are if the operation `finds` the number of
    its results. `varying` are the inputs that are not constants.
    """

    __slots__ = ("_inputs", "_kept", "_needs_elements", "_op", "_outputs", "_read", "_varying", "_work")

    def __init__(
        self,
        op: Op,
        inputs: Sequence[TensorType | None],
        outputs: Sequence[TensorType],
        work: Callable[[Op, CallTypes], int],
        varying: Sequence[int],
    ) -> None:
        self._op = op
        self._inputs = inputs
        self._outputs = outputs
        self._work = work
        self._varying = varying
        self._kept: dict[object, Priced] = {}
        self._read: tuple[int, ...] = ()
        """The inputs whose elements types have depended on so far."""
        self._needs_elements = False

    def __call__(self, arrays: Sequence[Array | None]) -> Priced:
        """Raises RuleError if these arrays break a rule of the operation."""
        return self.kept(arrays, self._shapes(arrays)) or self._new(arrays)

    def _shapes(self, arrays: Sequence[Array | None]) -> list[object]:
        return [None if (array := arrays[at]) is None else array.shape for at in self._varying]

    def kept(self, arrays: Sequence[Array | None], shapes: list[object]) -> Priced | None:
        """What is kept for arrays of these sizes, with the shapes of those that vary; reads each element at most
        once."""
        return self._kept.get(self._key(arrays, shapes))

    def _key(self, arrays: Sequence[Array | None], shapes: list[object]) -> object:
        """What types depend on, as far as it is known; None, for which nothing is kept, if that is too much."""
        key = shapes
        for at in self._read:
            array = arrays[at]
            if array is not None:
                if array.nbytes > MOST_BYTES or array.dtype.hasobject:
                    return None
                key.append(array.tobytes())
        return tuple(key)

    def _new(self, arrays: Sequence[Array | None]) -> Priced:
        read: set[int] = set()
        known = tuple(
            None if t is None or array is None else _known(t, array, _Noted(array, read, at))
            for at, (t, array) in enumerate(zip(self._inputs, arrays, strict=True))
        )
        found = self._found(known)
        read.intersection_update(self._varying)
        if not read.issubset(self._read):
            self._read = tuple(sorted(read.union(self._read)))
            self._kept.clear()
        key = self._key(arrays, self._shapes(arrays))
        if key is not None:
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            plain = tuple(None if t is None else t.with_data(None) for t in known)
            self._kept[key] = evolve(found, types=CallTypes(plain, found.types.outputs))
        return found

    def _found(self, known: tuple[TensorType | None, ...]) -> Priced:
        outputs: Sequence[TensorType] | None = None
        if not self._needs_elements:
            outputs = self._inferred(tuple(None if t is None else t.with_data(None) for t in known))
            self._needs_elements = not self._op.finds and not all(t.is_static for t in outputs)
        if outputs is None or self._needs_elements:
            outputs = self._inferred(known)
        for type_ in outputs:
            shapes_ok(type_)
        return priced(self._op, CallTypes(known, tuple(outputs)), self._work)

    def _inferred(self, inputs: tuple[TensorType | None, ...]) -> Sequence[TensorType]:
        results, declared = infer(self._op, inputs), self._outputs
        return declared if results is None else [declare(r, d) for r, d in zip(results, declared, strict=True)]


def _known(declared: TensorType, array: Array, elements: Constant) -> TensorType:
    """The type of an operand in this run, including its elements."""
    return TensorType(declared.dtype, array.shape, declared.quantization, data=elements)

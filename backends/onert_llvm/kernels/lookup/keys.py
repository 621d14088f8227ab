"""Replaces elements by the value of the key that they equal."""

from __future__ import annotations

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import I8, I16, I32, I64, Kernel, Type, Val
from onert_llvm.kernels.arithmetic.expression import Kind

SIZES = {1: I8, 2: I16, 4: I32, 8: I64}
"""Integer types by their bytes."""


@frozen
class FindKeys(Value):
    """`out[i] = values[n]` if `keys[n]` equals `x[i]`; the value after the last if no key does.

    Keys are sorted integers, `count` of them: 2 to the power of `levels`. Those of floats are their bits, with one
    pattern for 0 and one, `nan`, for NaN. With `numbered` there are no keys: x - `low` is the position of the value if
    it is at least 0 and below `count`. Values have `bytes` bytes. Work tiles are single elements.
    """

    kind: Kind
    bytes: int
    numbered: bool = False

    @property
    def slots(self) -> tuple[str, ...]:
        return ("x", "out", "values", "count", *(("low",) if self.numbered else ("keys", "levels", "nan")))

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        value = SIZES[self.bytes]
        x, out, values = task.view("x", self.kind.memory, 1), task.view("out", value, 1), task.view("values", value, 1)
        count = task.i64("count")
        with k.loop(end, begin) as i:
            element = x[i].load()
            if self.numbered:
                at = element.cast(I64, signed=self.kind.signed) - task.i64("low")
                inside = at.ult(count)
            else:
                at, inside = self._found(k, task, element)
            out[i].store(values[inside.select(at, count)].load())

    def _found(self, k: Kernel, task: Task, element: Val) -> tuple[Val, Val]:
        """Binary search: the position of the last key that is not above an element, and whether they are equal."""
        kind, key = self.kind, self._key
        if kind.is_float:
            some = (element + 0.0).bits(key)  # -0 plus 0 is 0
            element = element.unordered(element).select(task.i64("nan").cast(key), some)
        keys = task.view("keys", key, 1)
        at, half = k.var(k.index(0)), k.var(task.i64("count") // 2)
        with k.loop(task.i64("levels")):
            middle = keys[at.get() + half.get()].load()
            below = element < middle if kind.signed else element.ult(middle)
            at.set(at.get() + below.select(0, half.get()))
            half.set(half.get() // 2)
        return at.get(), keys[at.get()].load().eq(element)

    @property
    def _key(self) -> Type:
        return SIZES[{Kind.F32: 4, Kind.F64: 8}[self.kind]] if self.kind.is_float else self.kind.memory

"""Cases of operations."""

from __future__ import annotations

import numpy as np
from attrs import evolve, field, frozen

from onert.ir import Array, CallTypes, Constant, DType, Op, Quantization, TensorType, infer


def scaled(scale: float, zero: int = 0) -> Quantization:
    """The quantisation of a whole tensor, with a scale in float32."""
    return Quantization((float(np.float32(scale)),), (zero,))


def by_channel(count: int, axis: int = 0) -> Quantization:
    """Different scales along an axis of `count` channels."""
    return Quantization(tuple(float(np.float32(0.01 + 0.003 * i)) for i in range(count)), (0,) * count, axis)


@frozen(eq=False)
class Case:
    """An operation on given elements, and the expected results.

    `expected` does not come from the code under test: it is written by hand, from a formula, or a published golden
    value. If it is None, results are only compared with `infer`. `quantization` and `result_quantization` are by
    position. `dtypes` gives the logical element types of inputs that NumPy's types do not determine (int4).
    """

    name: str
    op: Op
    inputs: tuple[Array | None, ...]
    expected: tuple[Array, ...] | None = None
    quantization: tuple[Quantization | None, ...] = ()
    result_quantization: tuple[Quantization | None, ...] = ()
    dtypes: tuple[DType | None, ...] = ()
    constant: tuple[int, ...] = ()
    """Inputs whose elements are known before the run (a reshape's shape, a filter)."""
    tolerance: float = field(default=1e-5)
    """Largest difference from `expected`, relative to its largest magnitude. For integers it is absolute and rounded
    down, so the default requires equality."""

    def input_types(self, *, known: bool) -> tuple[TensorType | None, ...]:
        """The inputs' types; with `known`, all include their elements, otherwise only the constants do."""
        found: list[TensorType | None] = []
        for i, array in enumerate(self.inputs):
            if array is None:
                found.append(None)
                continue
            dtype = self.dtypes[i] if i < len(self.dtypes) else None
            found.append(
                TensorType(
                    dtype or DType.from_numpy(array.dtype),
                    array.shape,
                    self.quantization[i] if i < len(self.quantization) else None,
                    data=Constant(array) if known or i in self.constant else None,
                )
            )
        return tuple(found)

    def types(self) -> CallTypes:
        """The types of inputs and results; results are inferred, with the case's quantisation."""
        inputs = self.input_types(known=True)
        results = infer(self.op, inputs)
        assert results is not None
        return CallTypes(
            inputs,
            tuple(
                evolve(r, quantization=self.result_quantization[i] if i < len(self.result_quantization) else None)
                for i, r in enumerate(results)
            ),
        )

"""What a case of an operation is."""

from __future__ import annotations

from attrs import evolve, field, frozen

from onert.ir import Array, CallTypes, Constant, DType, Op, Quantization, TensorType, infer


@frozen(eq=False)
class Case:
    """An operation on given elements, and what it must give.

    `expected` comes from somewhere else than the code under test: written by hand, from a formula, or from a published
    golden. Where it is None the results are only held against `infer`. `quantization` and `result_quantization` go by
    position.
    `dtypes` names the logical element types of inputs where NumPy's do not say it (int4).
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
    """Largest difference from `expected`, relative to its largest magnitude; integers: the difference itself, rounded
    down, so that the default asks for equality."""

    def input_types(self, *, known: bool) -> tuple[TensorType | None, ...]:
        """The inputs' types; with `known`, every input's elements are known to `infer`, else only the constants'."""
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
        """The types on both sides, results as `infer` gives them with the case's quantisation."""
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

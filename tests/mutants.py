"""Cases with one change, as a hostile file might contain."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from attrs import evolve, fields
from cases.case import Case

from onert.ir import Array, Context, DType, Quantization, RuleError, TensorType, evaluate, infer
from onert.ir.analysis.inference import shapes_ok
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.arithmetic.window import Margins, Padding
from onert.ir.ops.contraction.attention import Pairing
from onert.ir.ops.data_movement.dense import Combiner
from onert.ir.ops.data_movement.element_indices import Combination
from onert.ir.ops.data_movement.random_numbers import Distribution
from onert.ir.ops.elementwise.binary import BinaryKind
from onert.ir.ops.elementwise.unary import UnaryKind
from onert.ir.ops.reduction.pool import Pooling
from onert.ir.ops.reduction.reduce import Extreme, Reduction
from onert.ir.ops.reduction.reduce_window import WindowReduction
from onert.ir.ops.reduction.segment import SegmentReduction
from onert.ir.ops.stablehlo.gather import BitGenerator
from onert.ir.ops.stablehlo.products import Places
from onert.ir.ops.stablehlo.sliding import Sliding
from onert.ir.ops.vision_audio.detection_output import BoxCode
from onert.ir.ops.vision_audio.interpolate import Coordinates, Interpolation, Rounding

ATTRIBUTES: dict[str, tuple[Any, ...]] = {
    "Activation": tuple(Activation),
    "BinaryKind | None": tuple(BinaryKind),
    "BitGenerator": tuple(BitGenerator),
    "BoxCode": tuple(BoxCode),
    "bool | None": (False, True),
    "Combination": tuple(Combination),
    "Combiner": tuple(Combiner),
    "Coordinates": tuple(Coordinates),
    "DType": (DType.INT32, DType.INT64, DType.INT8, DType.FLOAT32, DType.STRING),
    "DType | None": (None, DType.INT16, DType.INT32, DType.INT8),
    "Distribution": tuple(Distribution),
    "Extreme": tuple(Extreme),
    "Interpolation": tuple(Interpolation),
    "Pairing": tuple(Pairing),
    "Padding": tuple(Padding),
    "Padding | Margins": (
        *Padding,
        Margins(((1, 0), (0, 2))),
        Margins(((-1, 0), (0, 0))),
        Margins(((0, (1 << 31) - 1), (1 << 40, 0))),
        Margins(((1, 1),)),
        Margins(((1, 1), (0, 0), (2, 0))),
        Margins(((1, 1, 1), ())),  # type: ignore[arg-type]
    ),
    "Pooling": tuple(Pooling),
    "Reduction": tuple(Reduction),
    "Rounding": tuple(Rounding),
    "SegmentReduction": tuple(SegmentReduction),
    "WindowReduction": tuple(WindowReduction),
    "bool": (False, True),
    "float": (0.0, -1.0, 1e30, float("inf"), float("nan")),
    "int": (0, 1, 2, 3, -1, 1 << 16, (1 << 31) - 1, -(1 << 31), 1 << 40),
    "Places": (Places(0, 1, ()), Places(0, 0, (1, 2)), Places(-1, 1, (2, 3)), Places(1, 3, (0, 2))),
    "UnaryKind": tuple(UnaryKind),
    "str": ("", "->", "ab,bc->ad", "aa->a", "ab,bc", "ab,ab->", "..."),
    "tuple[TensorType, ...]": (
        (),
        (TensorType(DType.INT8, (1,)),) * 5,
        (TensorType(DType.INT8, (1,), Quantization((1e-30,), (0,))),) * 5,
        (TensorType(DType.INT8, (1,), Quantization((0.5,), (300,))),) * 12,
        (TensorType(DType.INT8, (), Quantization((0.5, 1.0), (0, 0), 0)),) * 12,
    ),
    "tuple[bool, ...]": ((), (True,), (True, True), (False,) * 3),
    "tuple[int, ...]": ((), (0,), (1,), (0, 0), (2, 1), (-1, 3), (1 << 40, 1), (1 << 62, -(1 << 62)), (0, 1, 2)),
    "tuple[float, ...] | None": (None, (), (0.5,), (float("nan"),), (1e30,), (-1.0, 2.0)),
    "tuple[float, ...]": ((), (1.0, 0.0), (float("nan"),), (0.5, 0.5, 1e30)),
}
TYPES = (np.float32, np.float16, np.float64, np.int8, np.uint8, np.int16, np.int32, np.int64, np.bool_, np.complex64)
QUANTIZATIONS = (
    None,
    Quantization((0.5,), (3,)),
    Quantization((1e-30,), (0,)),
    Quantization((1e30,), (0,)),
    Quantization((0.5, 0.25), (0, 0), 0),
    Quantization((0.5,) * 3, (0,) * 3, 3),
    Quantization((0.5,) * 4, (0,) * 4, 1, 2),
    Quantization((0.5,) * 4, (0,) * 4, 1, 0),
    Quantization((0.5,) * 4, (0,) * 4, 9, -1),
)


def _attribute(chance: random.Random, op: Any) -> Any:
    found = fields(type(op))
    if not found:
        return op
    field = chance.choice(found)
    value = getattr(op, field.name)
    other = _attribute(chance, value) if isinstance(value, Sliding) else chance.choice(ATTRIBUTES[str(field.type)])
    return evolve(op, **{field.name: other})


def _array(chance: random.Random, array: Array) -> Array:
    """The same elements with another type or shape, fewer or more of them, or hostile values."""
    match chance.randrange(6):
        case 0:
            if array.dtype == object:
                return np.zeros(array.shape, chance.choice(TYPES))
            with np.errstate(all="ignore"):
                return array.real.astype(chance.choice(TYPES))
        case 1:
            return array.reshape(chance.choice([(-1,), (*array.shape, 1), (1, *array.shape), (1, array.size, 1, 1)]))
        case 2 if array.size and array.ndim:
            axis = chance.randrange(array.ndim)
            return np.take(array, range(chance.choice([0, 1, array.shape[axis] // 2])), axis, mode="clip")
        case 3 if array.ndim:
            return np.concatenate([array, array], axis=chance.randrange(array.ndim))
        case 4 if array.dtype.kind in "iu":
            info = np.iinfo(array.dtype)
            return np.full_like(array, chance.choice([0, 1, info.min, info.max, info.max // 3]))
        case 5 if array.dtype.kind == "f":
            return np.full_like(array, chance.choice([0, np.inf, -np.inf, np.nan, 60000]))
    return array.T


def mutant(chance: random.Random, case: Case) -> Case:
    """A case with a changed attribute, operand, operand quantisation or result quantisation."""
    kind = chance.randrange(4) if case.inputs else chance.choice((0, 3))
    if kind == 0:
        return evolve(case, op=_attribute(chance, case.op))
    if kind == 3:
        return evolve(case, result_quantization=(chance.choice(QUANTIZATIONS),))
    at = chance.randrange(len(case.inputs))
    if kind == 1:
        inputs = list(case.inputs)
        found = inputs[at]
        inputs[at] = None if found is None or chance.random() < 0.1 else _array(chance, found)
        return evolve(case, inputs=tuple(inputs), dtypes=())
    quantization = [*case.quantization, *(None,) * len(case.inputs)]
    quantization[at] = chance.choice(QUANTIZATIONS)
    return evolve(case, quantization=tuple(quantization))


def check_mutants(case: Case, context: Context | None = None, rounds: int = 25) -> None:
    """Check that each mutant gives results of the inferred types, or one sentence."""
    chance = random.Random(case.name)
    for _ in range(rounds):
        changed = mutant(chance, case)
        try:
            infer(changed.op, changed.input_types(known=False))
            types = changed.types()
            for result in types.outputs:
                shapes_ok(result)
            if any(result.nbytes > 1 << 24 for result in types.outputs):
                continue
            results = evaluate(changed.op, changed.inputs, types, context)
        except RuleError:
            continue
        assert [r.shape for r in results] == [t.shape for t in types.outputs]

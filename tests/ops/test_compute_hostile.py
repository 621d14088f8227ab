"""Whatever a file says, an operation that computes gives a result or one sentence: cases with one thing changed."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from attrs import evolve, fields
from cases import conv, matmul, norm, pool, reduce, transpose_conv
from cases.case import Case

from onert.ir import Array, DType, Op, Quantization, RuleError, evaluate, infer
from onert.ir.inference import shapes_ok
from onert.ir.ops.activation import Activation
from onert.ir.ops.pool import Pooling
from onert.ir.ops.reduce import Extreme, Reduction
from onert.ir.ops.reduce_window import WindowReduction
from onert.ir.ops.window import Padding

CASES = [case for module in (conv, matmul, norm, pool, reduce, transpose_conv) for case in module.CASES]

ATTRIBUTES: dict[str, tuple[Any, ...]] = {
    "Activation": tuple(Activation),
    "DType": (DType.INT32, DType.INT64, DType.INT8, DType.FLOAT32),
    "DType | None": (None, DType.INT16, DType.INT32, DType.INT8),
    "Extreme": tuple(Extreme),
    "Padding": tuple(Padding),
    "Pooling": tuple(Pooling),
    "Reduction": tuple(Reduction),
    "WindowReduction": tuple(WindowReduction),
    "bool": (False, True),
    "float": (0.0, -1.0, 1e30, float("inf"), float("nan")),
    "int": (0, 1, 2, 3, -1, 1 << 16, (1 << 31) - 1, -(1 << 31), 1 << 40),
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


def _attribute(chance: random.Random, op: Op) -> Op:
    found = fields(type(op))
    if not found:
        return op
    field = chance.choice(found)
    return evolve(op, **{field.name: chance.choice(ATTRIBUTES[str(field.type)])})


def _array(chance: random.Random, array: Array) -> Array:
    """The same elements in another type, another shape, fewer or more of them, or hostile values."""
    match chance.randrange(6):
        case 0:
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


def _mutant(chance: random.Random, case: Case) -> Case:
    kind = chance.randrange(4)
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


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.op.label}: {case.name}")
def test_one_thing_changed_gives_a_result_or_one_sentence(case: Case) -> None:
    chance = random.Random(case.name)
    for _ in range(25):
        mutant = _mutant(chance, case)
        try:
            infer(mutant.op, mutant.input_types(known=False))
            types = mutant.types()
            for result in types.outputs:
                shapes_ok(result)
            if any(result.nbytes > 1 << 24 for result in types.outputs):
                continue
            results = evaluate(mutant.op, mutant.inputs, types)
        except RuleError:
            continue
        assert [r.shape for r in results] == [t.shape for t in types.outputs]

"""Cases of fully connected layers and of matrix products."""

from __future__ import annotations

import numpy as np
from formulas import floats, spread

from onert.ir import Array, DType, Quantization
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.contraction.matmul import BatchMatMul

from .case import Case, by_channel, scaled

_X, _W, _B = floats((2, 3, 4)), floats((5, 4), 29), floats((5,), 11)
_PRODUCT = np.einsum("abk,ok->abo", _X.astype(np.float64), _W.astype(np.float64))
_A, _Y = floats((2, 1, 3, 4)), floats((3, 4, 5), 29)
_BATCHED = np.einsum("abik,bkj->abij", np.broadcast_to(_A, (2, 3, 3, 4)).astype(np.float64), _Y.astype(np.float64))

_LEFT = spread((2, 1, 6, 5), -90, 90, 37).astype(np.int64)
_RIGHT = spread((3, 5, 21), -90, 90, 53).astype(np.int64)


def _wide(dtype: type[np.generic], second: bool) -> tuple[Array, Array]:
    """Both operands in an element type, one of them transposed."""
    x, y = _LEFT.astype(dtype), _RIGHT.astype(dtype)
    return (x, np.ascontiguousarray(y.swapaxes(-1, -2))) if second else (np.ascontiguousarray(x.swapaxes(-1, -2)), y)


_I8 = spread((3, 6), -128, 127).astype(np.int8)
_F8 = spread((4, 6), -127, 127, 101).astype(np.int8)
_B32 = spread((4,), -900, 900, 731).astype(np.int32)
_XQ, _BQ = scaled(0.05, 3), scaled(0.001)


def _stored(dtype: DType, *shape: int) -> Array:
    """Integers over their whole range."""
    return spread(shape, *dtype.limits, 37 + 2 * len(shape)).astype(dtype.numpy)


def _of_127(rows: int, features: int) -> Array:
    """Integers with a largest magnitude of 127 in each row, so their 8-bit quantisation is exact with scale 1."""
    out = spread((rows, features), -126, 126, 41).astype(np.float32)
    out[:, 0] = 127
    return out


def _from_minus_one(rows: int, features: int) -> Array:
    """Each row ranges from -1 to 0, so it quantises exactly into 255 steps starting at -1."""
    out = -spread((rows, features), 0, 1, 7).astype(np.float32)
    out[:, :2] = -1, 0
    return out


def _in_blocks(x: Array, y: Array, run: int) -> Array:
    """The product if blocks of `run` terms have scales of 1/2, 2 and 1/4 in turn."""
    scaled = y.astype(np.float32) * np.repeat(np.float32([0.5, 2.0, 0.25]), run)
    out: Array = x @ scaled.T
    return out


def _clipped(sums: Array) -> Array:
    """Saturated sums, whose scale equals that of the result."""
    return np.clip(sums, -128, 127).astype(np.int8)


def _real_sums(x: Array, x_zero: int, y: Array, y_zero: int) -> Array:
    """The exact product of integers with scales of 1/4 and 1/8."""
    out: Array = ((x.astype(np.float64) - x_zero) / 4 @ ((y.astype(np.float64) - y_zero) / 8)).astype(np.float32)
    return out


CASES = [
    Case(
        "rows of a flattened input", FullyConnected(), (_X, _W, _B), ((_PRODUCT + _B).reshape(6, 5).astype(np.float32),)
    ),
    Case(
        "dimensions kept, without bias",
        FullyConnected(keep_dims=True),
        (_X, _W),
        (_PRODUCT.astype(np.float32),),
    ),
    Case(
        "relu",
        FullyConnected(Activation.RELU),
        (_X, _W, _B),
        (np.maximum(_PRODUCT + _B, 0).reshape(6, 5).astype(np.float32),),
    ),
    Case(
        "features across dimensions",
        FullyConnected(),
        (floats((2, 2, 3)), floats((2, 6), 29)),
        ((floats((2, 6)).astype(np.float64) @ floats((2, 6), 29).T.astype(np.float64)).astype(np.float32),),
    ),
    Case(
        "int8 by tensor",
        FullyConnected(),
        (_I8, _F8, _B32),
        (np.int8([[108, 4, -5, 3], [-53, -45, 58, -106], [-84, 36, -76, -85]]),),
        (_XQ, scaled(0.02), _BQ),
        (scaled(0.2, -5),),
        constant=(1, 2),
    ),
    Case(
        "int8 by output",
        FullyConnected(Activation.RELU6),
        (_I8, _F8, _B32),
        (np.int8([[100, -61, -100, -52], [-100, -100, 100, -100], [-100, 76, -100, -100]]),),
        (_XQ, by_channel(4, 0), _BQ),
        (scaled(0.03, -100),),
        constant=(1, 2),
    ),
    Case(
        "products halfway between integers",
        FullyConnected(),
        (np.int8([[1], [2], [3], [-1], [-3]]), np.int8([[1], [3]])),
        # products of 0.5: TFLite rounds halves away from zero, once
        (np.int8([[1, 2], [1, 3], [2, 5], [-1, -2], [-2, -5]]),),
        (scaled(1.0), scaled(0.5)),
        (scaled(1.0),),
        constant=(1,),
    ),
    Case(
        "uint8",
        FullyConnected(),
        (
            spread((2, 5), 0, 255).astype(np.uint8),
            spread((3, 5), 0, 255, 101).astype(np.uint8),
            spread((3,), -900, 900, 731).astype(np.int32),
        ),
        (np.uint8([[161, 66, 74], [61, 120, 124]]),),
        (scaled(0.05, 120), scaled(0.02, 131), _BQ),
        (scaled(0.3, 110),),
        constant=(1, 2),
    ),
    *(
        Case(
            f"real sums of {dtype.name.lower()}",
            FullyConnected(keep_dims=True, output=DType.FLOAT32),
            (_stored(dtype, 2, 3, 37), _stored(DType.INT8, 37, 5).T.copy()),
            (_real_sums(_stored(dtype, 2, 3, 37), 7, _stored(DType.INT8, 37, 5), 0),),
            (scaled(0.25, 7), Quantization((0.125,) * 5, (0,) * 5, 0)),
            constant=(1,),
        )
        for dtype in (DType.INT8, DType.UINT8)
    ),
    Case(
        "int4 filter",
        FullyConnected(),
        (_I8, spread((4, 6), -8, 7, 5).astype(np.int8), _B32),
        (np.int8([[-3, -15, 2, -31], [-22, 6, 26, -26], [-28, -10, 4, 3]]),),
        (_XQ, by_channel(4, 0), _BQ),
        (scaled(0.05, -5),),
        dtypes=(DType.INT8, DType.INT4),
        constant=(1, 2),
    ),
    Case(
        "int16",
        FullyConnected(),
        (
            spread((2, 5), -32768, 32767, 9973).astype(np.int16),
            spread((3, 5), -127, 127, 101).astype(np.int8),
            spread((3,), -90000, 90000, 73133).astype(np.int64),
        ),
        (np.int16([[20422, -19389, -17421], [-19135, 3314, 3964]]),),
        (scaled(0.0005), scaled(0.01), scaled(5e-6)),
        (scaled(0.001),),
        constant=(1, 2),
    ),
    Case(
        "int16 with int16",
        FullyConnected(),
        (np.int16([[100, -200], [300, 7]]), np.int16([[1000, 500], [-3, 2000]])),
        (np.int16([[0, -3127], [2371, 102]]),),
        (scaled(1 / 16), scaled(1 / 32)),
        (scaled(1 / 4),),
    ),
    Case(
        "dynamic range, symmetric",
        FullyConnected(),
        (floats((3, 6)), _F8, floats((4,), 11)),
        (
            np.float32(
                [
                    [3.073228359222412, -3.916102409362793, -2.954252004623413, 1.5012991428375244],
                    [-7.858189105987549, 0.8852953910827637, 2.0088977813720703, -1.7265551090240479],
                    [3.036673069000244, -3.710738182067871, -2.499438762664795, 1.24178147315979],
                ]
            ),
        ),
        (None, scaled(0.01)),
        constant=(1, 2),
        tolerance=3e-7,
    ),
    Case(
        "dynamic range, asymmetric, by output",
        FullyConnected(asymmetric_inputs=True),
        (floats((3, 6)), _F8, floats((4,), 11)),
        (
            np.float32(
                [
                    [3.09676456451416, -4.608614921569824, -4.581106185913086, 1.877791166305542],
                    [-7.839926719665527, 1.6677281856536865, 3.315058946609497, -4.27155876159668],
                    [3.052058696746826, -4.347085475921631, -3.865812063217163, 1.3893793821334839],
                ]
            ),
        ),
        (None, by_channel(4, 0)),
        constant=(1, 2),
        tolerance=3e-7,
    ),
    *(
        Case(
            f"dynamic range, {dtype.name.lower()} filter of {features}",
            FullyConnected(),
            (_of_127(3, features), _stored(dtype, 5, features)),
            ((_of_127(3, features) @ _stored(dtype, 5, features).T.astype(np.float32)) * np.float32(0.25),),
            (None, scales),
            dtypes=(DType.FLOAT32, dtype),
            constant=(1,),
        )
        for dtype in (DType.INT4, DType.INT2)
        for features, scales in ((6, scaled(0.25)), (37, Quantization((0.25,) * 5, (0,) * 5, 0)))
    ),
    *(
        Case(
            f"int2 filter of {features}",
            FullyConnected(),
            (_stored(DType.INT8, 3, features), _stored(DType.INT2, 5, features)),
            (_clipped(_stored(DType.INT8, 3, features).astype(int) @ _stored(DType.INT2, 5, features).T),),
            (scaled(0.5), scaled(0.25)),
            (scaled(0.125),),
            dtypes=(DType.INT8, DType.INT2),
            constant=(1,),
        )
        for features in (3, 37)
    ),
    Case(
        "int4 filter in blocks",
        FullyConnected(),
        # every row ranges from -1 to 0, in 255 steps with -1 at -128: the quantised values are exact
        (np.float32([[-1, 0, -1, 0], [0, -1, -1, 0]]), np.int8([[1, 2, 3, 4], [-8, 7, 0, 1]])),
        (np.float32([[-1 * 0.5 - 3 * 2, 8 * 0.25 - 0], [-2 * 0.5 - 3 * 2, -7 * 0.25 - 0]]),),
        (None, Quantization((0.5, 2.0, 0.25, 4.0), (0,) * 4, 1, 2)),
        dtypes=(DType.FLOAT32, DType.INT4),
        constant=(1,),
    ),
    *(
        Case(
            f"{dtype.name.lower()} filter in blocks of sixteen, {rows} rows",
            FullyConnected(),
            (_from_minus_one(rows, 48), _stored(dtype, 5, 48)),
            (_in_blocks(_from_minus_one(rows, 48), _stored(dtype, 5, 48), 16),),
            (None, Quantization((0.5, 2.0, 0.25) * 5, (0,) * 15, 1, 16)),
            dtypes=(DType.FLOAT32, dtype),
            constant=(1,),
        )
        for dtype in (DType.INT8, DType.INT4, DType.INT2)
        for rows in (1, 5)
    ),
    Case("matrices", BatchMatMul(), (_A, _Y), (_BATCHED.astype(np.float32),)),
    Case("sums of no terms", BatchMatMul(), (np.ones((2, 3, 0), np.float32), np.ones((2, 0, 4), np.float32))),
    Case(
        "first transposed",
        BatchMatMul(adjoint_x=True),
        (np.ascontiguousarray(_A.swapaxes(-1, -2)), _Y),
        (_BATCHED.astype(np.float32),),
    ),
    Case(
        "second transposed",
        BatchMatMul(adjoint_y=True),
        (_A, np.ascontiguousarray(_Y.swapaxes(-1, -2))),
        (_BATCHED.astype(np.float32),),
    ),
    *(
        Case(
            f"{dtype.__name__} of odd sizes, the {'second' if adjoint else 'first'} transposed",
            BatchMatMul(adjoint_x=not adjoint, adjoint_y=adjoint),
            _wide(dtype, adjoint),
            ((_LEFT @ _RIGHT).astype(dtype),),
            tolerance=1e-12,
        )
        for dtype in (np.float64, np.int32, np.int64)
        for adjoint in (False, True)
    ),
    *(
        Case(
            f"int32 sums of {dtype.name.lower()} with one matrix{' turned round' if adjoint else ''}",
            BatchMatMul(adjoint_y=adjoint, output=DType.INT32),
            (_stored(dtype, 2, 3, 37), _stored(DType.INT8, *((19, 37) if adjoint else (37, 19)))),
            (
                _stored(dtype, 2, 3, 37).astype(np.int32)
                @ (_stored(DType.INT8, 19, 37).T if adjoint else _stored(DType.INT8, 37, 19)).astype(np.int32),
            ),
            constant=(1,),
        )
        for dtype in (DType.INT8, DType.UINT8)
        for adjoint in (False, True)
    ),
    Case(
        "int32 sums of int8",
        BatchMatMul(output=DType.INT32),
        (_I8, np.ascontiguousarray(_F8.T)),
        (_I8.astype(np.int32) @ _F8.T.astype(np.int32),),
        (_XQ, scaled(0.02, 5)),
    ),
    *(
        Case(
            f"real sums of {left.name.lower()} and {right.name.lower()} from {zero}",
            BatchMatMul(output=DType.FLOAT32),
            (_stored(left, 2, 3, 37), _stored(right, 2, 37, 19)),
            (_real_sums(_stored(left, 2, 3, 37), 7, _stored(right, 2, 37, 19), zero),),
            (scaled(0.25, 7), scaled(0.125, zero)),
        )
        for left in (DType.INT8, DType.UINT8)
        for right, zero in ((DType.INT8, -3), (DType.INT8, 0), (DType.UINT8, 125))
    ),
    Case(
        "int8 matrices",
        BatchMatMul(),
        (_I8, np.ascontiguousarray(_F8.T)),
        (np.int8([[78, 6, -2, 7], [-30, -27, 39, -67], [-52, 26, -51, -54]]),),
        (_XQ, scaled(0.02, 5)),
        (scaled(0.3, -4),),
    ),
    Case(
        "int16 matrices",
        BatchMatMul(),
        (
            spread((2, 3, 5), -32768, 32767, 9973).astype(np.int16),
            spread((2, 5, 2), -32768, 32767, 7919).astype(np.int16),
        ),
        (np.int16([[[16495, 6750], [-15219, -10520], [-5415, 13729]], [[2568, -5447], [2995, -954], [-11251, -756]]]),),
        (scaled(0.0005), scaled(0.0004)),
        (scaled(0.02),),
    ),
    Case(
        "dynamic range matrices",
        BatchMatMul(),
        (floats((2, 3, 6)), np.ascontiguousarray(_F8.T)),
        (
            np.float32(
                [
                    [
                        [6.073228359222412, -2.291102409362793, -2.704252004623413, 0.3762992024421692],
                        [-4.858189105987549, 2.5102953910827637, 2.2588977813720703, -2.851555109024048],
                        [6.036673069000244, -2.085738182067871, -2.249438762664795, 0.11678148806095123],
                    ],
                    [
                        [-4.864822864532471, 2.7218995094299316, 2.6787006855010986, -3.0869388580322266],
                        [5.985236167907715, -1.8803149461746216, -1.8147637844085693, -0.14291338622570038],
                        [-4.920531272888184, 2.9265646934509277, 3.131190776824951, -3.3579328060150146],
                    ],
                ]
            ),
        ),
        (None, scaled(0.01)),
        constant=(1,),
        tolerance=3e-7,
    ),
]

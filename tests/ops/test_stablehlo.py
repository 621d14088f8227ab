"""StableHLO's operators equal LiteRT where it has kernels, and follow their specification elsewhere."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from model_writer import LiteRt
from stablehlo_models import agree_with_litert, convolution, gather, hlo_model, one, random, run

import onert
from onert.ir import Array, DType

KINDS = [np.float32, np.int8, np.int16, np.int32, np.int64, np.uint8]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("low", "high", "interior", "shape"),
    [
        ((1, 0), (2, 0), (0, 0), (6, 4)),
        ((0, 2), (1, 1), (2, 1), (8, 10)),
        ((-1, 1), (0, -2), (1, 0), (4, 3)),
        ((-2, 0), (-1, 0), (2, 3), (4, 13)),
    ],
)
def test_pad_equals_litert(kind: Any, low: Any, high: Any, interior: Any, shape: tuple[int, ...]) -> None:
    x, value = random(3, 4, kind=kind), np.array(7, kind)
    options = ("StablehloPadOptions", {"edgePaddingLow": low, "edgePaddingHigh": high, "interiorPadding": interior})
    agree_with_litert("STABLEHLO_PAD", [x, value], [(DType.from_numpy(kind), shape)], options)


@pytest.mark.parametrize("kind", [np.float32, np.int32, np.int64, np.int8])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_gather_equals_litert(kind: Any, index: Any) -> None:
    x = random(3, 4, 2, kind=kind)
    indices = np.array([[[0, 0], [1, 0], [2, 1]], [[0, 1], [1, 1], [0, 9]]], index)
    results = [(DType.from_numpy(kind), (2, 3, 2, 2))]
    agree_with_litert("STABLEHLO_GATHER", [x, indices], results, gather([2, 3], [0], [1, 0], 2, [1, 2, 2]))


def test_gather_accepts_other_dimension_numbers() -> None:
    x, indices = random(4, 5, 3), np.int32([[2, 0, 4], [1, 3, -5]])
    options = gather([0, 2], [2], [1, 0], 0, [2, 3, 1])
    found = one("STABLEHLO_GATHER", [x, indices], (DType.FLOAT32, (2, 3, 3)), options)
    for at, (column, row) in enumerate([(2, 1), (0, 2), (2, 0)]):
        np.testing.assert_array_equal(found[:, at], x[row : row + 2, column : column + 3, 0])


@pytest.mark.parametrize(("algorithm", "words"), [(0, 2), (0, 3), (1, 2), (1, 3), (2, 2)])
@pytest.mark.parametrize("kind", [np.int32, np.uint32, np.int64, np.uint64])
@pytest.mark.parametrize("count", [8, 7])
def test_random_bits_equal_litert(algorithm: int, words: int, kind: Any, count: int) -> None:
    states = np.array([[1, 2, 3], [2**63 + 5, 2**64 - 1, 7], [2**40, 2**32 - 1, 2**64 - 1]], np.uint64)
    results = [(DType.UINT64, (words,)), (DType.from_numpy(kind), (count,))]
    options = ("StablehloRngBitGeneratorOptions", {"algorithm": algorithm})
    model = hlo_model("STABLEHLO_RNG_BIT_GENERATOR", [states[0, :words]], results, options)
    theirs = LiteRt(model)
    for state in states[:, :words]:
        for mine, other in zip(run(model, state), theirs(state), strict=True):
            np.testing.assert_array_equal(mine, other)


def test_data_movement_follows_the_specification() -> None:
    x = random(2, 3, 4)
    f = DType.FLOAT32
    options: Any = {"startIndices": [0, 1, 0], "limitIndices": [2, 3, 4], "strides": [1, 1, 3]}
    found = one("STABLEHLO_SLICE", [x], (f, (2, 2, 2)), ("StablehloSliceOptions", options))
    np.testing.assert_array_equal(found, x[:, 1:3, ::3])
    found = one("STABLEHLO_TRANSPOSE", [x], (f, (4, 2, 3)), ("StablehloTransposeOptions", {"permutation": [2, 0, 1]}))
    np.testing.assert_array_equal(found, x.transpose(2, 0, 1))
    np.testing.assert_array_equal(one("STABLEHLO_RESHAPE", [x], (f, (6, 4))), x.reshape(6, 4))
    options = {"broadcastDimensions": [2, 0]}
    small = random(3, 1)
    found = one("STABLEHLO_BROADCAST_IN_DIM", [small], (f, (5, 2, 3)), ("StablehloBroadcastInDimOptions", options))
    np.testing.assert_array_equal(found, np.broadcast_to(small.T.reshape(1, 1, 3), (5, 2, 3)))
    found = one("STABLEHLO_CONCATENATE", [x, x], (f, (2, 6, 4)), ("StablehloConcatenateOptions", {"dimension": 1}))
    np.testing.assert_array_equal(found, np.concatenate([x, x], 1))
    found = one("STABLEHLO_IOTA", [], (DType.INT32, (2, 3)), ("StablehloIotaOptions", {"iotaDimension": 1}))
    np.testing.assert_array_equal(found, [[0, 1, 2]] * 2)
    bounds = [np.array(-0.5, np.float32), x, np.array(0.5, np.float32)]
    np.testing.assert_array_equal(one("STABLEHLO_CLAMP", bounds, (f, x.shape)), np.clip(x, -0.5, 0.5))
    starts = [np.array(at, np.int32) for at in (1, 9, -3)]
    found = one(
        "STABLEHLO_DYNAMIC_SLICE",
        [x, *starts],
        (f, (1, 2, 2)),
        ("StablehloDynamicSliceOptions", {"sliceSizes": [1, 2, 2]}),
    )
    np.testing.assert_array_equal(found, x[1:2, 1:3, 0:2])
    update = random(1, 2, 2, seed=5)
    found = one("STABLEHLO_DYNAMIC_UPDATE_SLICE", [x, update, *starts], (f, x.shape))
    expected = x.copy()
    expected[1:2, 1:3, 0:2] = update
    np.testing.assert_array_equal(found, expected)


def test_dot_general_follows_the_specification() -> None:
    x, y = random(2, 3, 4, 5), random(5, 2, 6, 3, seed=1)
    options = {
        "lhsBatchingDimensions": [0],
        "rhsBatchingDimensions": [1],
        "lhsContractingDimensions": [3, 1],
        "rhsContractingDimensions": [0, 3],
    }
    found = one("STABLEHLO_DOT_GENERAL", [x, y], (DType.FLOAT32, (2, 4, 6)), ("StablehloDotGeneralOptions", options))
    np.testing.assert_allclose(found, np.einsum("bijk,kbni->bjn", x, y), atol=1e-5)
    a, b = random(3, 4, kind=np.int8), random(4, 2, kind=np.int8)
    options = {"lhsContractingDimensions": [1], "rhsContractingDimensions": [0]}
    found = one("STABLEHLO_DOT_GENERAL", [a, b], (DType.INT32, (3, 2)), ("StablehloDotGeneralOptions", options))
    np.testing.assert_array_equal(found, a.astype(np.int32) @ b.astype(np.int32))


def _convolution(x: Array, kernel: Array, o: Any) -> Array:
    """The definition, computed per element: x is [batch, space, features], kernel [space, inputs, outputs]."""
    batch, outputs = x.shape[0] // o["batchGroupCount"], kernel.shape[3]
    groups, batches = o["featureGroupCount"], o["batchGroupCount"]
    sizes = []
    for i in range(2):
        wide = (x.shape[1 + i] - 1) * o["lhsDilation"][i] + 1 + o["padding"][2 * i] + o["padding"][2 * i + 1]
        sizes.append((wide - (kernel.shape[i] - 1) * o["rhsDilation"][i] - 1) // o["windowStrides"][i] + 1)
    out = np.zeros((batch, *sizes, outputs))
    for b, p, q, f in product(range(batch), range(sizes[0]), range(sizes[1]), range(outputs)):
        part = f // (outputs // groups)
        item = b + (f // (outputs // batches)) * batch
        for r, s, c in product(range(kernel.shape[0]), range(kernel.shape[1]), range(kernel.shape[2])):
            at = [
                place * o["windowStrides"][i] + step * o["rhsDilation"][i] - o["padding"][2 * i]
                for i, (place, step) in enumerate(((p, r), (q, s)))
            ]
            if any(a % d or not 0 <= a // d < n for a, d, n in zip(at, o["lhsDilation"], x.shape[1:3], strict=True)):
                continue
            source = (item, at[0] // o["lhsDilation"][0], at[1] // o["lhsDilation"][1], part * kernel.shape[2] + c)
            taps = (-1 - r if o["windowReversal"][0] else r, -1 - s if o["windowReversal"][1] else s)
            out[b, p, q, f] += float(x[source]) * float(kernel[(*taps, c, f)])
    return out


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"windowStrides": [2, 1], "padding": [1, 1, 0, 2], "rhsDilation": [1, 2]},
        {"lhsDilation": [2, 1], "padding": [2, 1, -1, 0], "windowReversal": [True, False]},
        {"featureGroupCount": 2},
        {"batchGroupCount": 2},
    ],
    ids=str,
)
def test_convolution_follows_the_specification(changed: dict[str, Any]) -> None:
    options = convolution(**changed)
    x, kernel = random(4, 5, 6, 4), random(2, 3, 4 // options["featureGroupCount"], 6, seed=1)
    expected = _convolution(x, kernel, options)
    for turned in (False, True):  # batch first and features last, or vice versa
        places: dict[str, Any] = {}
        for side in ("input", "output") if turned else ():
            places |= {f"{side}BatchDimension": 3, f"{side}FeatureDimension": 0, f"{side}SpatialDimensions": [2, 1]}
        given = [x.transpose(3, 2, 1, 0) if turned else x, kernel]
        wanted = expected.transpose(3, 2, 1, 0) if turned else expected
        table = ("StablehloConvolutionOptions", {**options, **places})
        found = one("STABLEHLO_CONVOLUTION", given, (DType.FLOAT32, wanted.shape), table)
        np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_an_unknown_custom_call_is_named_in_the_error() -> None:
    x = random(2)
    model = hlo_model(
        "STABLEHLO_CUSTOM_CALL",
        [x],
        [(DType.FLOAT32, (2,))],
        ("StablehloCustomCallOptions", {"callTargetName": b"stranger"}),
    )
    with pytest.raises(onert.CompileError, match="STABLEHLO_CUSTOM_CALL stranger"):
        onert.compile(onert.load(model))

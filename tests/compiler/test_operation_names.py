"""`OP_BACKEND_<Op>`: which names select which operations, and which names are rejected."""

from __future__ import annotations

from enum import Enum

import pytest

from onert.compiler import Options
from onert.compiler.scheduler.manual import Choices, choices
from onert.compiler.scheduler.operation_names import ONE_NAMES, kinds
from onert.ir import OPS, CompileError, DType, Op, Operation, Package, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.custom import Python
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.ops.reduction.reduce import ArgReduce, Extreme, Reduce, Reduction

from .toy import ToyAdd

ONE_1_8 = """
    BatchToSpaceND BinaryArithmetic BroadcastTo Conv2D DepthwiseConv2D Pool2D Concat Fill Floor FullyConnected Reduce
    Reshape Softmax Squeeze Slice StridedSlice Transpose ElementwiseActivation ElementwiseBinary ElementwiseUnary
    ExpandDims Comparison LSTM ResizeBilinear ResizeNearestNeighbor Reverse RNN SpaceToBatchND SpaceToDepth
    EmbeddingLookup L2Normalization HashtableLookup InstanceNorm PReLU TransposeConv SquaredDifference TopKV2 Gather
    ArgMax Einsum LocalResponseNormalization DepthToSpace Pack Select Split SplitV Unpack Pad Custom Permute OneHot
    Shape ConvertFp32ToFp16 ConvertFp16ToFp32 If While Pow Tile Range Rank BCQFullyConnected BCQGather MatrixBandPart
    BatchMatMul FusedBatchNorm LogSoftmax StatelessRandomUniform
"""
ONE_SINCE = "AddN ArgMinMax Attention Bulk Call CumSum DetectionPostProcess DynamicUpdateSlice Loss RmsNorm RoPE"


def _operation(op: Op) -> Operation:
    return Operation(op, (0,), (1,))


def test_every_operation_name_of_one_is_accepted() -> None:
    assert {*ONE_1_8.split(), *ONE_SINCE.split()} == ONE_NAMES.keys()
    x = Builder()
    graph = x.model([x.add(Unary(UnaryKind.ABS), x.input(TensorType(DType.FLOAT32, (1,)), "x"))]).primary
    options = Options(op_backend=dict.fromkeys(ONE_NAMES, "reference"))
    assert choices(graph, options).by_kind.keys() == ONE_NAMES.keys()


@pytest.mark.parametrize("name", [own for names in ONE_NAMES.values() for own in names])
def test_every_operation_name_of_one_maps_to_existing_kinds(name: str) -> None:
    kind, dot, member = name.partition(".")
    fields = OPS[kind].__annotations__
    assert not dot or "kind" in fields
    if dot:
        enums = {"Binary": BinaryKind, "Unary": UnaryKind, "ArgReduce": Extreme}
        found: type[Enum] = enums[kind]
        assert member in found.__members__


OPERATIONS: dict[str, tuple[Op, tuple[str, ...]]] = {
    "addition": (Binary(BinaryKind.ADD, Activation.RELU), ("Binary.ADD", "ADD", "BinaryArithmetic", "Binary")),
    "power": (Binary(BinaryKind.POW), ("Binary.POW", "POW", "Pow", "Binary")),
    "maximum": (Binary(BinaryKind.MAXIMUM), ("Binary.MAXIMUM", "MAXIMUM", "ElementwiseBinary", "Binary")),
    "angle, which ONE lacks": (Binary(BinaryKind.ATAN2), ("Binary.ATAN2", "ATAN2", "Binary")),
    "relu": (Unary(UnaryKind.RELU6), ("Unary.RELU6", "RELU6", "ElementwiseActivation", "Unary")),
    "floor, twice": (Unary(UnaryKind.FLOOR), ("Unary.FLOOR", "FLOOR", "Floor", "ElementwiseUnary", "Unary")),
    "cast": (Cast(DType.INT8), ("Cast", "ElementwiseUnary")),
    "largest": (
        ArgReduce(Extreme.MAX, DType.INT32),
        ("ArgReduce.MAX", "MAX", "ArgMax", "ArgReduce", "ArgMinMax"),
    ),
    "smallest": (ArgReduce(Extreme.MIN, DType.INT32), ("ArgReduce.MIN", "MIN", "ArgReduce", "ArgMinMax")),
    "sum": (Reduce(Reduction.SUM), ("Reduce.SUM", "SUM", "Reduce")),
    "comparison": (Comparison(ComparisonKind.LESS), ("Comparison.LESS", "LESS", "Comparison")),
    "custom": (Python("Mine", len), ("Mine", "Python", "Custom")),
    "a plugin's": (ToyAdd(), ("ToyAdd",)),
}


@pytest.mark.parametrize(("op", "names"), OPERATIONS.values(), ids=OPERATIONS.keys())
def test_the_most_specific_name_chosen_for_an_operation_wins(op: Op, names: tuple[str, ...]) -> None:
    assert kinds(_operation(op)) == names
    for at, name in enumerate(names):
        chosen = Choices("all", {wider: wider for wider in names[at:]}).of(_operation(op))
        assert chosen is not None
        assert (chosen.backend, chosen.option) == (name, f"OP_BACKEND_{name}")


UNKNOWN = {
    "Conv2d": "Conv2D",
    "CONV_2D": "Conv2D",
    "Activation": "ElementwiseActivation",
    "Maxpool2D": "Pool2D",
    "AD": "ADD",
    "Quux": None,
}


@pytest.mark.parametrize(("name", "similar"), UNKNOWN.items(), ids=UNKNOWN.keys())
def test_an_unknown_operation_name_is_rejected_with_the_most_similar_names(name: str, similar: str | None) -> None:
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (2,)), "x")
    package = Package((b.model([b.add(Binary(BinaryKind.ADD), x, x)]),))
    with pytest.raises(CompileError) as caught:
        choices(package.model.primary, Options(op_backend={"Conv2D": "llvm", name: "reference"}))
    message, _, names = str(caught.value).partition("; the most similar names are ")
    assert message == f"op_backend has {name!r}, but no kind of operation is called {name!r}"
    assert (similar in names.split(", ")) if similar else not names


def test_a_custom_operator_of_the_model_is_chosen_by_its_code() -> None:
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (2,)), "x")
    model = b.model([b.add(Python("Mine", len, results=(TensorType(DType.FLOAT32, (2,)),)), x)])
    assert choices(model.primary, Options(op_backend={"Mine": "reference"})).by_kind == {"Mine": "reference"}
    empty = Builder()
    other = empty.model([empty.input(TensorType(DType.FLOAT32, (2,)), "x")]).primary
    assert choices(other, Options(op_backend={"Mine": "reference"}), (model.primary,)).by_kind
    with pytest.raises(CompileError, match="op_backend has 'Mine', but no kind"):
        choices(other, Options(op_backend={"Mine": "reference"}))

"""The names by which users choose backends for kinds of operations: this project's own, and ONE's.

Source of ONE's names: runtime/onert/core/include/ir/Operations.lst of the newest version and of version 1.8.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from enum import Enum

from onert.ir import OPS, CompileError, Operation, Subgraph
from onert.ir.process import imports


def _members(kind: str, names: str) -> tuple[str, ...]:
    return tuple(f"{kind}.{name}" for name in names.split())


ONE_NAMES: Mapping[str, tuple[str, ...]] = {
    "AddN": ("AddN",),
    "ArgMax": ("ArgReduce.MAX",),
    "ArgMinMax": ("ArgReduce",),
    "Attention": ("Attention",),
    "BCQFullyConnected": ("BcqFullyConnected",),
    "BCQGather": ("BcqGather",),
    "BatchMatMul": ("BatchMatMul",),
    "BatchToSpaceND": ("BatchToSpaceND",),
    "BinaryArithmetic": _members("Binary", "ADD SUB MUL DIV"),
    "BroadcastTo": ("BroadcastTo",),
    "Bulk": (),  # a whole model for one NPU, which nothing here loads
    "Call": ("Call",),
    "Comparison": ("Comparison",),
    "Concat": ("Concat",),
    "Conv2D": ("Conv2D",),
    "ConvertFp16ToFp32": (),  # ONE inserts these two under FP16_ENABLE
    "ConvertFp32ToFp16": (),
    "CumSum": ("CumSum",),
    "Custom": ("Python", "Unsupported"),
    "DepthToSpace": ("DepthToSpace",),
    "DepthwiseConv2D": ("DepthwiseConv2D",),
    "DetectionPostProcess": ("DetectionPostProcess",),
    "DynamicUpdateSlice": ("DynamicUpdateSlice",),
    "Einsum": ("Einsum",),
    "ElementwiseActivation": (
        *_members("Unary", "ELU GELU GELU_TANH LOGISTIC RELU RELU6 RELU_N1_TO_1 RELU_0_TO_1 TANH"),
        "LeakyRelu",
    ),
    "ElementwiseBinary": _members("Binary", "FLOOR_DIV FLOOR_MOD LOGICAL_AND LOGICAL_OR MAXIMUM MINIMUM"),
    "ElementwiseUnary": (
        *_members("Unary", "ABS COS ERF EXP FLOOR LOG LOGICAL_NOT NEG ROUND RSQRT SIN SQRT SQUARE"),
        "Cast",
        "Dequantize",
        "Quantize",
        "ZerosLike",
    ),
    "EmbeddingLookup": ("EmbeddingLookup",),
    "ExpandDims": ("ExpandDims",),
    "Fill": ("Fill",),
    "Floor": ("Unary.FLOOR",),
    "FullyConnected": ("FullyConnected",),
    "FusedBatchNorm": ("BatchNorm",),
    "Gather": ("Gather",),
    "HashtableLookup": ("HashtableLookup",),
    "If": ("If", "Branch"),
    "InstanceNorm": ("InstanceNorm",),
    "L2Normalization": ("L2Normalization",),
    "LSTM": ("LSTM",),
    "LocalResponseNormalization": ("LocalResponseNormalization",),
    "LogSoftmax": ("LogSoftmax",),
    "Loss": (),  # training
    "MatrixBandPart": ("MatrixBandPart",),
    "OneHot": ("OneHot",),
    "PReLU": ("PRelu",),
    "Pack": ("Pack",),
    "Pad": ("Pad",),
    "Permute": ("Permute",),
    "Pool2D": ("Pool2D",),
    "Pow": ("Binary.POW",),
    "RNN": ("RNN",),
    "Range": ("Range",),
    "Rank": ("Rank",),
    "Reduce": ("Reduce",),
    "Reshape": ("Reshape",),
    "ResizeBilinear": ("ResizeBilinear",),
    "ResizeNearestNeighbor": ("ResizeNearestNeighbor",),
    "Reverse": ("Reverse",),
    "RmsNorm": ("RmsNorm",),
    "RoPE": ("RoPE",),
    "Select": ("Select",),
    "Shape": ("ShapeOf",),
    "Slice": ("Slice",),
    "Softmax": ("Softmax",),
    "SpaceToBatchND": ("SpaceToBatchND",),
    "SpaceToDepth": ("SpaceToDepth",),
    "Split": ("Split",),
    "SplitV": ("SplitV",),
    "SquaredDifference": ("Binary.SQUARED_DIFFERENCE",),
    "Squeeze": ("Squeeze",),
    "StatelessRandomUniform": ("StatelessUniform",),
    "StridedSlice": ("StridedSlice",),
    "Tile": ("Tile",),
    "TopKV2": ("TopK",),
    "Transpose": ("Transpose",),
    "TransposeConv": ("TransposeConv2D", "TransposeConvBias2D"),
    "Unpack": ("Unpack",),
    "While": ("While", "Loop"),
}
"""ONE's names of operation kinds, and their equivalents here: classes, or members of element-wise classes."""


def _inverse() -> dict[str, tuple[str, ...]]:
    """ONE's names by this project's names, the most specific first."""
    found: dict[str, tuple[str, ...]] = {}
    for name, names in sorted(ONE_NAMES.items(), key=lambda item: len(item[1])):
        for each in names:
            found[each] = (*found.get(each, ()), name)
    return found


_ONE_NAME_OF = _inverse()


def kinds(operation: Operation) -> tuple[str, ...]:
    """The names by which an operation's kind may be chosen, the narrowest first.

    An addition is a "Binary.ADD", an "ADD", one of ONE's "BinaryArithmetic", and a "Binary".
    """
    label, name = operation.op.label, operation.op.name()
    member = label.rpartition(".")[2]
    return tuple(dict.fromkeys((label, member, *_ONE_NAME_OF.get(label, ()), name, *_ONE_NAME_OF.get(name, ()))))


def check_kinds(names: Iterable[str], subgraphs: Iterable[Subgraph], *, explicit: bool) -> None:
    """Raise CompileError for an unknown kind of operation, listing the most similar names.

    Valid are the names of `kinds` (ONE's, this project's, and those that plugins declare) and the codes of the model's
    custom operators. `explicit` names come from the option, others from the variables.
    """
    unknown = [name for name in names if name not in ONE_NAMES]
    if unknown:
        present = {name for s in subgraphs for operation in s.operations for name in kinds(operation)}
        unknown = [name for name in unknown if name not in present]
    if unknown:
        known = present | ONE_NAMES.keys() | _declared()
        unknown = [name for name in unknown if name not in known]
    if unknown:
        raise CompileError("; ".join(_sentence(name, known, explicit=explicit) for name in unknown))


def _declared() -> set[str]:
    """The names of all operation classes, and of the members of element-wise classes."""
    found: set[str] = set()
    for name, op in OPS.items():
        found.add(name)
        annotated = op.__annotations__.get("kind")
        kind = vars(sys.modules[op.__module__]).get(annotated) if isinstance(annotated, str) else annotated
        if isinstance(kind, type) and issubclass(kind, Enum):
            for member in kind:
                found |= {member.name, f"{name}.{member.name}"}
    return found


def _sentence(name: str, known: Iterable[str], *, explicit: bool) -> str:
    by_lower: dict[str, str] = {}
    for each in sorted(known):
        by_lower.setdefault(each.lower().replace("_", ""), each)
    short = name.lower().replace("_", "")
    close = imports.module("difflib").get_close_matches(short, by_lower, n=4, cutoff=0.6)
    longer = sorted((each for each in by_lower if len(short) > 2 and short in each), key=len)
    near = list(dict.fromkeys(by_lower[each] for each in (*close, *longer)))[:4]
    hint = f"; the most similar names are {', '.join(near)}" if near else ""
    subject = f"op_backend has {name!r}" if explicit else f"OP_BACKEND_{name} is set"
    return f"{subject}, but no kind of operation is called {name!r}{hint}"

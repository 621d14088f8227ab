"""Writes docs/ops.md, the table of operators by element type and backend: `python tests/ops_table.py > docs/ops.md`."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from dtype_models import Kind, build
from dtype_recipes import RECIPES, Recipe, of
from llvm.natively import why_not

import onert
from onert.frontend.tflite_schema.table import CUSTOM, TABLE
from onert.frontend.tflite_schema.table.builtins import BUILTINS
from onert.ir import DType
from onert_reference import Reference

KINDS = (
    "float32",
    "float16",
    "bfloat16",
    "float64",
    "int8q",
    "uint8q",
    "int16q",
    "int8",
    "uint8",
    "int16",
    "int32",
    "int64",
    "uint32",
    "bool",
)
CAST = Recipe((of(3, 4),), (((3, 4), DType.FLOAT32),), ("CastOptions", {}))

HEAD = """# Operators

Which operators run, in which element types, on which backend. Written by `python tests/ops_table.py > docs/ops.md`; a
test fails when it is not up to date.

The reference backend runs whatever has a meaning; where the backend `llvm` has native code for an operator with static
shapes, or for every operation that the compiler decomposes it into, it runs there, else on the reference backend. `q`
stands for quantised. The types are those of the first operand of a model of just this operator (a CAST goes to
float32); `tests/conformance/test_dtypes.py` holds what LiteRT runs of them to LiteRT's kernels. Where the row names no
type (operators with state, subgraphs, strings, or several types at once), the rules are on the operation's page in
`onert/ir/ops`: it runs on the reference backend where the last column is empty, else that column says what has native
code where weights are constant.

| operator | reference | llvm, natively |
|---|---|---|
"""

_GATES = "float32; float32 with weights of bytes and int8q with 16-bit gates, these two not normalised"
_WHOLE = "where shapes are known or have a bound and all that it runs is native"
NATIVE = {
    "IF": _WHOLE,
    "WHILE": f"{_WHOLE}, and a counter ends it",
    "STABLEHLO_WHILE": f"{_WHOLE}, and a counter ends it",
    "LSTM": f"full kernel: {_GATES}; basic kernel: float32",
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _GATES,
    "BIDIRECTIONAL_SEQUENCE_LSTM": "float32; float32 with weights of bytes where there is no linked second input",
    **dict.fromkeys(
        ("RNN", "UNIDIRECTIONAL_SEQUENCE_RNN", "BIDIRECTIONAL_SEQUENCE_RNN"),
        "float32; float32 with weights of bytes",
    ),
    **dict.fromkeys(("RANDOM_UNIFORM", "RANDOM_STANDARD_NORMAL", "MULTINOMIAL"), "float32, of a known shape"),
    "STABLEHLO_RNG_BIT_GENERATOR": "all its integers",
    "SVDF": "float32; float32 with weights of bytes; int8q",
    "GRU": "float32",
    **dict.fromkeys(
        (
            *(f"STABLEHLO_{name}" for name in ("LOGISTIC", "COSINE", "EXPONENTIAL", "FLOOR", "LOG", "RSQRT", "TANH")),
            *("FAKE_QUANT", "INSTANCE_NORM", "RMS_NORM", "ROPE", "ATTENTION"),
        ),
        "float32",
    ),
    **dict.fromkeys(
        (f"STABLEHLO_{name}" for name in ("ADD", "SUBTRACT", "MULTIPLY", "MAXIMUM", "MINIMUM", "ABS", "NEGATE")),
        "float32 int32 int64",
    ),
    **dict.fromkeys(
        (
            *(f"STABLEHLO_{name}" for name in ("RESHAPE", "CONCATENATE", "BROADCAST_IN_DIM", "SLICE", "TRANSPOSE")),
            *(f"STABLEHLO_{name}" for name in ("DYNAMIC_SLICE", "PAD", "GATHER", "IOTA")),
            *("BITCAST", "DILATE", "SPARSE_TO_DENSE"),
        ),
        "any but strings and complex128",
    ),
    **dict.fromkeys(("STABLEHLO_AND", "STABLEHLO_OR"), "int32 int64 bool"),
    "STABLEHLO_CLAMP": "float32 int8 uint8 int16 int32 int64",
    **dict.fromkeys(
        ("STABLEHLO_SELECT", "STABLEHLO_COMPARE", "STABLEHLO_CONVERT"),
        "float32 int8 uint8 int16 int32 int64 bool",
    ),
    **dict.fromkeys(
        ("STABLEHLO_DOT_GENERAL", "STABLEHLO_CONVOLUTION"), "float32; int8 to int32 where sums have at most 1023 terms"
    ),
    **dict.fromkeys(
        ("STABLEHLO_REDUCE", "STABLEHLO_REDUCE_WINDOW"),
        "float32 int32 int64 bool, by a sum, a product, an extreme, AND or OR",
    ),
    "REDUCE_WINDOW": "float32 int32 int64; bool by AND and OR",
    "STABLEHLO_SCATTER": "float32 int32 int64 bool by a known function, any but strings where rows are replaced",
    "STABLEHLO_DYNAMIC_UPDATE_SLICE": "any but strings, for whole rows of the first dimension",
    "BUCKETIZE": "float32 int8 uint8 int16 int32, up to 64 boundaries",
    "CONV_3D_TRANSPOSE": "float32, not dilated",
    "RFFT2D": "rows of a power of two up to 8192, others where a matrix of 2**20 factors does it",
    "ATAN2": "float32",
    "BITCAST": "any but strings",
    "BROADCAST_ARGS": "int32 int64",
    "UNIQUE": "float32 float64 int8 uint8 int16 int32 int64 uint32, of a known length",
    "SPARSE_TO_DENSE": "any but strings, indices of 32 or 64 bits",
    **dict.fromkeys(("NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5"), "float32, of a constant size"),
    **dict.fromkeys(("REAL", "IMAG", "COMPLEX_ABS"), "complex64"),
    **dict.fromkeys(("VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE"), "any but strings"),
}
"""Which types of operators with several operand types are native; `tests/llvm` and `tests/control` run them."""


STAYS: dict[str, tuple[str, ...]] = {
    "strings": (
        *("RegexFullMatch", "StringConcat", "StringNormalize", "StringSplit", "SkipGram", "Tokenize"),
        *("LshProjection", "ImageDecoder"),
    ),
    "hash tables": ("HashTable", "HashTableFind", "HashTableImport", "HashTableSize", "HashtableLookup"),
    "lists that grow as a model runs": (
        *("SequenceAt", "SequenceErase", "SequenceInsert", "SequenceJoin", "SequenceLength", "SequenceOf"),
        "SplitToSequence",
    ),
    "a sum over as many rows as the data says": ("CountGroups", "EmbeddingLookupSparse"),
    "arithmetic on shapes, which is folded where these are known": ("BroadcastGradientArgs",),
    "a constant matrix, which is folded where no product reads its codes": ("DequantizeBlocks",),
    "a matrix that nearly every model has as a constant": ("MelWeights",),
    "as many boxes, or elements of a box, as the data says": ("DetectionOutput", "MaxRoiPool"),
    "no model is known in which it takes time": (
        *(
            "BcqFullyConnected",
            "BcqGather",
            "Determinant",
            "Inverse",
            "NumericVerify",
        ),
    ),
    "whatever Python does": ("Python", "Unsupported"),
}
"""The kinds that only the reference backend runs, by reason."""
OTHERWISE: dict[str, tuple[str, ...]] = {
    "run as `CountedWhere` and `CountedBoxes`, which fill memory for the most there can be (up to 4 MiB), and count: "
    "what treats all rows alike, joins, reduces, orders, cuts, pads or gathers them runs on the whole, natively, and "
    "`FirstEntries` takes what counts; a bundle gives the whole and the count. So it is where a computed integer says "
    "how long a dimension is, and it is known how large it can be: a range, a shape, margins, repetitions, the sizes "
    "of parts and of resized pictures, and slices of up to 64 KiB, along one axis or several. Integers that an input "
    "gives have no such bound": (
        "Where",
        "BoxesPerClass",
        "FirstEntries",
    ),
    "run as `Loop` and `Branch`, or in the place of the call, where all that they run is native and every shape inside "
    "is known or has a bound: first entries, the larger of what two branches give, and what each of at most so many "
    "rounds adds to a tensor; else the executor calls subgraphs, whose own operations are native, and no bundle has "
    "them. There is no bound where an input gives the number of rounds that add to a tensor, where rounds add ever "
    "more to it, and for tensors of more than 4 MiB": (*("Call", "Case", "If", "While", "Loop", "Branch"),),
    "written in native operations for the elements of one row, with the number of different ones; slices of several "
    "elements stay on the reference backend": ("Unique", "UniqueSlices"),
    "become functions of a variable of the entry, which subgraphs take and give; native where it is known how many "
    "numbers there can be, but for more than 2**22 words or compared sums of chances at once, for as many classes of "
    "several rows as a run says, and for what the condition of a loop draws; without a seed they are in no bundle, for "
    "C has nothing to draw one from": ("Random", "Multinomial"),
    "become operands of the entry": ("VarHandle", "ReadVariable", "AssignVariable", "CallOnce"),
    "belong to the compiler": ("Permute", "Refuse"),
}
"""The kinds that are not native under their own names, and what they become."""


def _named(groups: dict[str, tuple[str, ...]]) -> Iterator[str]:
    for reason, kinds in groups.items():
        yield f"- {reason}: {', '.join(f'`{kind}`' for kind in sorted(kinds))}"


def _runs(code: str, kind: str) -> tuple[bool, bool]:
    """Whether the reference backend runs an operator in an element type, and whether there is native code."""
    recipe = CAST if code == "CAST" else RECIPES[code]
    try:
        model, _ = build(code, Kind(kind), recipe)
        graph = onert.load(model).model.primary
    except onert.OnertError:
        return False, False
    operation = graph.operations[0]
    return Reference().supports(operation, graph.types(operation)) is None, why_not(graph) is None


def _row(code: str) -> str:
    if code not in TABLE:
        return f"| {code} | not implemented | |"
    if code not in RECIPES and code != "CAST":
        return f"| {code} | yes | {NATIVE.get(code, '')} |".replace("|  |", "| |")
    found = {kind: _runs(code, kind) for kind in KINDS}
    reference = " ".join(kind for kind, (runs, _) in found.items() if runs)
    native = " ".join(kind for kind, (_, natively) in found.items() if natively)
    return f"| {code} | {reference} | {native} |"


def lines() -> Iterator[str]:
    """The page, line by line."""
    yield from HEAD.rstrip("\n").split("\n")
    yield from (_row(code) for code in BUILTINS if code not in ("CUSTOM", "DELEGATE"))
    yield ""
    yield "Custom operators with an implementation: " + ", ".join(f"`{code}`" for code in sorted(CUSTOM)) + "."
    yield "Any other runs as a Python function that `onert.custom_op` registers; without one an error names it, with"
    yield "all others that nothing implements."
    yield ""
    yield "Kinds of operations (`onert/ir/ops`) that are not native under their own names:"
    yield ""
    yield from _named(OTHERWISE)
    yield ""
    yield "Kinds that stay on the reference backend, and why:"
    yield ""
    yield from _named(STAYS)
    yield ""
    yield "Beside these an operation runs there whose shapes only a run tells (where it takes a result as long as"
    yield "elements say and is none of those above), and one of element types that its row does not name."


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in lines())

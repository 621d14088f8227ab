"""Writes docs/ops.md, the table of operators by element type and backend: `python tests/ops_table.py > docs/ops.md`."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from dtype_models import Kind, build
from dtype_recipes import RECIPES, Recipe, of
from llvm.natively import why_not

import onert
from onert import frontend
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

The reference backend runs every well-defined operation. An operator runs on the backend `llvm` if that has native code
for it with static shapes, or for every operation that the compiler decomposes it into; otherwise it runs on the
reference backend. `q` stands for quantised. The types are those of the first operand of a model of this operator alone
(CAST converts to float32); `tests/conformance/test_dtypes.py` compares those that LiteRT runs with LiteRT's kernels. If
a row names no type (operators with state, subgraphs, strings, or several types at once), the rules are in the
operation's docstring in `onert/ir/ops`: it runs on the reference backend if the last column is empty; otherwise that
column says what is native for constant weights.

| operator | reference | llvm, natively |
|---|---|---|
"""

_GATES = "float32; float32 with byte weights and int8q with 16-bit gates, both without normalisation"
_WHOLE = "if shapes are known or bounded and everything it runs is native"
NATIVE = {
    "IF": _WHOLE,
    "WHILE": f"{_WHOLE}, and a counter ends the loop",
    "STABLEHLO_WHILE": f"{_WHOLE}, and a counter ends the loop",
    "LSTM": f"full kernel: {_GATES}; basic kernel: float32",
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _GATES,
    "BIDIRECTIONAL_SEQUENCE_LSTM": "float32; float32 with byte weights and no linked second input",
    **dict.fromkeys(
        ("RNN", "UNIDIRECTIONAL_SEQUENCE_RNN", "BIDIRECTIONAL_SEQUENCE_RNN"),
        "float32; float32 with byte weights",
    ),
    **dict.fromkeys(("RANDOM_UNIFORM", "RANDOM_STANDARD_NORMAL", "MULTINOMIAL"), "float32 of known shape"),
    "STABLEHLO_RNG_BIT_GENERATOR": "all integer types",
    "SVDF": "float32; float32 with byte weights; int8q",
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
        ("STABLEHLO_DOT_GENERAL", "STABLEHLO_CONVOLUTION"), "float32; int8 to int32 for sums of at most 1023 terms"
    ),
    **dict.fromkeys(
        ("STABLEHLO_REDUCE", "STABLEHLO_REDUCE_WINDOW"),
        "float32 int32 int64 bool, by sum, product, extreme, AND or OR",
    ),
    "REDUCE_WINDOW": "float32 int32 int64; bool by AND or OR",
    "STABLEHLO_SCATTER": "float32 int32 int64 bool by a known function; any but strings if rows are replaced",
    "STABLEHLO_DYNAMIC_UPDATE_SLICE": "any but strings, for whole rows of the first dimension",
    "BUCKETIZE": "float32 int8 uint8 int16 int32, up to 64 boundaries",
    "CONV_3D_TRANSPOSE": "float32 without dilation",
    "RFFT2D": "rows of a power of two up to 8192, others and planes if matrices of 2**20 factors suffice",
    "ATAN2": "float32",
    "BITCAST": "any but strings",
    "BROADCAST_ARGS": "int32 int64",
    "UNIQUE": "float32 float64 int8 uint8 int16 int32 int64 uint32 of known length",
    "SPARSE_TO_DENSE": "any but strings, indices of 32 or 64 bits",
    **dict.fromkeys(("NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5"), "float32 with a constant output size"),
    **dict.fromkeys(("REAL", "IMAG", "COMPLEX_ABS"), "complex64"),
    **dict.fromkeys(("VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE"), "any but strings"),
}
"""Which types of operators with several operand types are native; `tests/llvm` and `tests/control` run them."""


STAYS: dict[str, tuple[str, ...]] = {
    "strings": (
        *("MurmurHash3", "RegexFullMatch", "StringConcat", "StringNormalize", "StringSplit", "SkipGram", "Tokenize"),
        *("LshProjection", "ImageDecoder", "ReadNumbers", "SpellNumbers"),
    ),
    "hash tables": ("HashTable", "HashTableFind", "HashTableImport", "HashTableSize", "HashtableLookup"),
    "lists that grow as a model runs": (
        *("SequenceAt", "SequenceErase", "SequenceInsert", "SequenceJoin", "SequenceLength", "SequenceOf"),
        "SplitToSequence",
    ),
    "lists of tensors, which become tensors if a loop sets items of a known shape": (
        *("ListFrom", "ListGet", "ListReserve", "ListSet", "ListStack"),
    ),
    "sums over a data-dependent number of rows": ("CountGroups", "EmbeddingLookupSparse"),
    "slices that are each repeated a data-dependent number of times": ("Repeat",),
    "arithmetic on shapes, which is folded if they are known": ("BroadcastGradientArgs",),
    "a constant matrix, which is folded unless a product reads its codes": ("DequantizeBlocks",),
    "a matrix that is constant in nearly every model": ("MelWeights",),
    "a data-dependent number of boxes, or of elements in a box": ("DetectionOutput", "MaxRoiPool"),
    "no known model spends time in it": (
        *(
            "BcqFullyConnected",
            "BcqGather",
            "Determinant",
            "Inverse",
            "NumericVerify",
        ),
    ),
    "arbitrary Python code": ("Python", "Unsupported"),
}
"""The kinds that only the reference backend runs, by reason."""
OTHERWISE: dict[str, tuple[str, ...]] = {
    "run as `CountedWhere` and `CountedBoxes`, which fill a buffer of the largest possible size (up to 4 MiB) and "
    "count the valid entries: operations that treat all rows equally, join, reduce, sort, slice, pad or gather them "
    "run natively on the whole buffer, and `FirstEntries` selects the valid part; a bundle returns the whole buffer "
    "and the count. The same holds if a computed integer with a known bound determines a dimension: a range, a shape, "
    "padding, repetitions, the sizes of parts and of resized images, and slices of up to 64 KiB, along one axis or "
    "several. Integers that are inputs have no such bound": (
        "Where",
        "BoxesPerClass",
        "FirstEntries",
    ),
    "run as `Loop` and `Branch`, or inlined in place of the call, if everything they run is native and every shape "
    "inside is known or bounded: first entries, the larger result of two branches, and tensors to which each of a "
    "bounded number of rounds appends; otherwise the executor calls subgraphs, whose own operations are native, and no "
    "bundle can contain them. There is no bound if an input determines the number of rounds that append to a tensor, "
    "if rounds append ever more to it, and for tensors of more than 4 MiB": (
        *("Call", "Case", "If", "While", "Loop", "Branch"),
    ),
    "decomposed into native operations for the elements of one row, with the number of unique ones; slices of several "
    "elements stay on the reference backend": ("Unique", "UniqueSlices"),
    "become functions of a variable of the entry, which is passed through subgraphs; native if the number of values "
    "is bounded, except for more than 2**22 words or compared cumulative probabilities at once, for several rows of a "
    "dynamic number of classes, and in the condition of a loop; without a seed no bundle can contain them, because C "
    "has no source for one": ("Random", "Multinomial"),
    "become operands of the entry": ("VarHandle", "ReadVariable", "AssignVariable", "CallOnce"),
    "search token by token in Python; the models that they call are native for every length, and no bundle can contain "
    "them": ("BeamSearch", "GreedySearch"),
    "belong to the compiler": ("Permute", "Refuse", "Rest"),
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
        graph = frontend.load(model).model.primary  # without beginning to compile
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
    yield "Any other runs as a Python function registered with `onert.custom_op`; without one an error names it and"
    yield "all others without an implementation."
    yield ""
    yield "Kinds of operations (`onert/ir/ops`) that are not native under their own names:"
    yield ""
    yield from _named(OTHERWISE)
    yield ""
    yield "Kinds that stay on the reference backend, and why:"
    yield ""
    yield from _named(STAYS)
    yield ""
    yield "An operation also runs there if its results have sizes that a run computes and nothing bounds, or if its row"
    yield "does not list its element types. What follows such sizes is compiled when a run knows them (`Rest`), and is"
    yield "native for all of them, but not inside graphs that operations call, in bundles, with `use_scheduler` or"
    yield "`minmax_dump`, and for tensors without names: operations whose shapes only a run knows run on the reference"
    yield "backend there."


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in lines())

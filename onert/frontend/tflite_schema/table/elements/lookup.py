"""Lookup tables, segments, diagonals, buckets and random numbers."""

from __future__ import annotations

from onert.frontend.tflite_schema.element_types import DTYPES
from onert.frontend.tflite_schema.table.importer import Importer, Operator, Table, choice, fixed, read
from onert.ir import DType, ModelError, Op
from onert.ir.ops.data_movement.dense import Bucketize, Combiner, Dilate, EmbeddingLookupSparse, SparseToDense
from onert.ir.ops.data_movement.diagonal import MatrixDiag, MatrixSetDiag
from onert.ir.ops.data_movement.random_numbers import Distribution, Multinomial, Random
from onert.ir.ops.lookup.hash_tables import HashTable, HashTableFind, HashTableImport, HashTableSize
from onert.ir.ops.lookup.projection import LshProjection
from onert.ir.ops.lookup.skip_gram import SkipGram
from onert.ir.ops.reduction.segment import SegmentReduction, SegmentSum, UnsortedSegment

_COMBINERS = (Combiner.SUM, Combiner.MEAN, Combiner.SQRTN)


def _dtype(operator: Operator, field: str) -> DType:
    """The element type in a field that holds a TensorType."""
    code = operator.integer(field)
    if code not in DTYPES:
        raise ModelError(f"{field} is {code}, which is not an element type")
    return DTYPES[code]


def _projection(operator: Operator) -> Op:
    """LSHProjectionType: 1 is sparse, 2 is dense; no kernel ever supported 0 and 3 (an old sparse one)."""
    kind = operator.integer("type")
    if kind not in (1, 2):
        raise ModelError(f"type is {kind}, expected 1 (SPARSE) or 2 (DENSE)")
    return LshProjection(dense=kind == 2)


def _seeds(operator: Operator) -> tuple[int, int]:
    """Both seeds as LiteRT stores them: the low 32 bits of each, signed."""
    first, second = (((operator.integer(f) + (1 << 31)) % (1 << 32)) - (1 << 31) for f in ("seed", "seed2"))
    return first, second


def _random(distribution: Distribution) -> Importer:
    return lambda operator: Random(distribution, *_seeds(operator), operator.position)


def _multinomial(operator: Operator) -> Op:
    to = operator.outputs[0].dtype if operator.outputs else DType.INT64
    return Multinomial(to, *_seeds(operator), operator.position)


TABLE: Table = {
    "BUCKETIZE": read(Bucketize),
    "DILATE": fixed(Dilate()),
    "EMBEDDING_LOOKUP_SPARSE": lambda operator: EmbeddingLookupSparse(choice(operator, "combiner", _COMBINERS)),
    "HASHTABLE": lambda operator: HashTable(
        operator.integer("table_id"), _dtype(operator, "key_dtype"), _dtype(operator, "value_dtype")
    ),
    "HASHTABLE_FIND": fixed(HashTableFind()),
    "HASHTABLE_IMPORT": fixed(HashTableImport()),
    "HASHTABLE_SIZE": fixed(HashTableSize()),
    "LSH_PROJECTION": _projection,
    "MATRIX_DIAG": fixed(MatrixDiag()),
    "MATRIX_SET_DIAG": fixed(MatrixSetDiag()),
    "MULTINOMIAL": _multinomial,
    "RANDOM_STANDARD_NORMAL": _random(Distribution.NORMAL),
    "RANDOM_UNIFORM": _random(Distribution.UNIFORM),
    "SEGMENT_SUM": fixed(SegmentSum()),
    "SKIP_GRAM": read(SkipGram, size="ngram_size", skip="max_skip_size", shorter="include_all_ngrams"),
    "SPARSE_TO_DENSE": fixed(SparseToDense()),
    **{f"UNSORTED_SEGMENT_{kind.name}": fixed(UnsortedSegment(kind)) for kind in SegmentReduction},
}
CUSTOM: Table = {}

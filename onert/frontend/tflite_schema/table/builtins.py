"""Every builtin operator of the schema, with its newest supported version and its options table.

Generated from the operator registrations of LiteRT f67457790 (register.cc) and its schema; the last eight are circle's.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from onert.ir.value import Value


@frozen
class Builtin(Value):
    """`max_version` is None if the operator is not versioned; `options` is empty if it has none."""

    max_version: int | None
    options: str


_LISTING = """
ADD:6=AddOptions AVERAGE_POOL_2D:3=Pool2DOptions CONCATENATION:7=ConcatenationOptions CONV_2D:8=Conv2DOptions
DEPTHWISE_CONV_2D:7=DepthwiseConv2DOptions DEPTH_TO_SPACE:2=DepthToSpaceOptions DEQUANTIZE:9=DequantizeOptions
EMBEDDING_LOOKUP:5 FLOOR:1 FULLY_CONNECTED:14=FullyConnectedOptions HASHTABLE_LOOKUP:1 L2_NORMALIZATION:2=L2NormOptions
L2_POOL_2D:1=Pool2DOptions LOCAL_RESPONSE_NORMALIZATION:1=LocalResponseNormalizationOptions LOGISTIC:3
LSH_PROJECTION:1=LSHProjectionOptions LSTM:4=LSTMOptions MAX_POOL_2D:3=Pool2DOptions MUL:8=MulOptions RELU:3
RELU_N1_TO_1:1 RELU6:3 RESHAPE:1=ReshapeOptions RESIZE_BILINEAR:4=ResizeBilinearOptions RNN:3=RNNOptions
SOFTMAX:4=SoftmaxOptions SPACE_TO_DEPTH:2=SpaceToDepthOptions SVDF:4=SVDFOptions TANH:3
CONCAT_EMBEDDINGS=ConcatEmbeddingsOptions SKIP_GRAM:1=SkipGramOptions CALL=CallOptions CUSTOM
EMBEDDING_LOOKUP_SPARSE:1=EmbeddingLookupSparseOptions PAD:6=PadOptions UNIDIRECTIONAL_SEQUENCE_RNN:3=SequenceRNNOptions
GATHER:8=GatherOptions BATCH_TO_SPACE_ND:4=BatchToSpaceNDOptions SPACE_TO_BATCH_ND:4=SpaceToBatchNDOptions
TRANSPOSE:9=TransposeOptions MEAN:3=ReducerOptions SUB:5=SubOptions DIV:2=DivOptions SQUEEZE:2=SqueezeOptions
UNIDIRECTIONAL_SEQUENCE_LSTM:4=UnidirectionalSequenceLSTMOptions STRIDED_SLICE:8=StridedSliceOptions
BIDIRECTIONAL_SEQUENCE_RNN:3=BidirectionalSequenceRNNOptions EXP:2=ExpOptions TOPK_V2:3=TopKV2Options
SPLIT:5=SplitOptions LOG_SOFTMAX:2=LogSoftmaxOptions DELEGATE=FakeQuantOptions
BIDIRECTIONAL_SEQUENCE_LSTM:3=BidirectionalSequenceLSTMOptions CAST:9=CastOptions PRELU:1
MAXIMUM:4=MaximumMinimumOptions ARG_MAX:3=ArgMaxOptions MINIMUM:4=MaximumMinimumOptions LESS:3=LessOptions
NEG:1=NegOptions PADV2:6=PadV2Options GREATER:2=GreaterOptions GREATER_EQUAL:3=GreaterEqualOptions
LESS_EQUAL:2=LessEqualOptions SELECT:4=SelectOptions SLICE:8=SliceOptions SIN:2 TRANSPOSE_CONV:5=TransposeConvOptions
SPARSE_TO_DENSE:3=SparseToDenseOptions TILE:3=TileOptions EXPAND_DIMS:1=ExpandDimsOptions EQUAL:5=EqualOptions
NOT_EQUAL:4=NotEqualOptions LOG:2 SUM:2=ReducerOptions SQRT:2 RSQRT:3 SHAPE:1=ShapeOptions POW:1=PowOptions
ARG_MIN:3=ArgMinOptions FAKE_QUANT:2=FakeQuantOptions REDUCE_PROD:2=ReducerOptions REDUCE_MAX:3=ReducerOptions
PACK:5=PackOptions LOGICAL_OR:1=LogicalOrOptions ONE_HOT:1=OneHotOptions LOGICAL_AND:1=LogicalAndOptions
LOGICAL_NOT:1=LogicalNotOptions UNPACK:6=UnpackOptions REDUCE_MIN:3=ReducerOptions FLOOR_DIV:3=FloorDivOptions
REDUCE_ANY:1=ReducerOptions SQUARE:1=SquareOptions ZEROS_LIKE:1=ZerosLikeOptions FILL:5=FillOptions
FLOOR_MOD:2=FloorModOptions RANGE:2=RangeOptions RESIZE_NEAREST_NEIGHBOR:4=ResizeNearestNeighborOptions
LEAKY_RELU:2=LeakyReluOptions SQUARED_DIFFERENCE:2=SquaredDifferenceOptions MIRROR_PAD:3=MirrorPadOptions
ABS:5=AbsOptions SPLIT_V:3=SplitVOptions UNIQUE:1=UniqueOptions CEIL:1 REVERSE_V2:4=ReverseV2Options ADD_N:1=AddNOptions
GATHER_ND:6=GatherNdOptions COS:2=CosOptions WHERE:2=WhereOptions RANK:1=RankOptions ELU:1
REVERSE_SEQUENCE:1=ReverseSequenceOptions MATRIX_DIAG:1=MatrixDiagOptions QUANTIZE:6=QuantizeOptions
MATRIX_SET_DIAG:1=MatrixSetDiagOptions ROUND:1 HARD_SWISH:1=HardSwishOptions IF:1=IfOptions WHILE:1=WhileOptions
NON_MAX_SUPPRESSION_V4:1=NonMaxSuppressionV4Options NON_MAX_SUPPRESSION_V5:1=NonMaxSuppressionV5Options
SCATTER_ND:1=ScatterNdOptions SELECT_V2:2=SelectV2Options DENSIFY:1=DensifyOptions SEGMENT_SUM:1=SegmentSumOptions
BATCH_MATMUL:4=BatchMatMulOptions CUMSUM:1=CumsumOptions CALL_ONCE:1=CallOnceOptions BROADCAST_TO:4=BroadcastToOptions
RFFT2D:1=Rfft2dOptions CONV_3D:1=Conv3DOptions IMAG:1 REAL:1 COMPLEX_ABS:1 HASHTABLE:1=HashtableOptions
HASHTABLE_FIND:1=HashtableFindOptions HASHTABLE_IMPORT:1=HashtableImportOptions HASHTABLE_SIZE:1=HashtableSizeOptions
REDUCE_ALL:1=ReducerOptions CONV_3D_TRANSPOSE:1=Conv3DOptions VAR_HANDLE:1=VarHandleOptions
READ_VARIABLE:1=ReadVariableOptions ASSIGN_VARIABLE:1=AssignVariableOptions BROADCAST_ARGS:1
RANDOM_STANDARD_NORMAL:1=RandomOptions BUCKETIZE:1=BucketizeOptions RANDOM_UNIFORM:1=RandomOptions
MULTINOMIAL:1=RandomOptions GELU:3=GeluOptions DYNAMIC_UPDATE_SLICE:6=DynamicUpdateSliceOptions RELU_0_TO_1:1
UNSORTED_SEGMENT_PROD:1=UnsortedSegmentProdOptions UNSORTED_SEGMENT_MAX:1=UnsortedSegmentMaxOptions
UNSORTED_SEGMENT_SUM:1=UnsortedSegmentSumOptions ATAN2:1=ATan2Options UNSORTED_SEGMENT_MIN:1=UnsortedSegmentMinOptions
SIGN:2=SignOptions BITCAST:1=BitcastOptions BITWISE_XOR:1=BitwiseXorOptions RIGHT_SHIFT:1=RightShiftOptions
STABLEHLO_LOGISTIC STABLEHLO_ADD:1 STABLEHLO_DIVIDE STABLEHLO_MULTIPLY:1 STABLEHLO_MAXIMUM:1 STABLEHLO_RESHAPE
STABLEHLO_CLAMP STABLEHLO_CONCATENATE=StablehloConcatenateOptions
STABLEHLO_BROADCAST_IN_DIM=StablehloBroadcastInDimOptions STABLEHLO_CONVOLUTION=StablehloConvolutionOptions
STABLEHLO_SLICE=StablehloSliceOptions STABLEHLO_CUSTOM_CALL=StablehloCustomCallOptions
STABLEHLO_REDUCE=StablehloReduceOptions STABLEHLO_ABS STABLEHLO_AND:1 STABLEHLO_COSINE STABLEHLO_EXPONENTIAL
STABLEHLO_FLOOR STABLEHLO_LOG STABLEHLO_MINIMUM:1 STABLEHLO_NEGATE STABLEHLO_OR STABLEHLO_POWER STABLEHLO_REMAINDER
STABLEHLO_RSQRT STABLEHLO_SELECT STABLEHLO_SUBTRACT STABLEHLO_TANH STABLEHLO_SCATTER:1=StablehloScatterOptions
STABLEHLO_COMPARE=StablehloCompareOptions STABLEHLO_CONVERT STABLEHLO_DYNAMIC_SLICE=StablehloDynamicSliceOptions
STABLEHLO_DYNAMIC_UPDATE_SLICE STABLEHLO_PAD:1=StablehloPadOptions STABLEHLO_IOTA=StablehloIotaOptions
STABLEHLO_DOT_GENERAL=StablehloDotGeneralOptions STABLEHLO_REDUCE_WINDOW:1=StablehloReduceWindowOptions
STABLEHLO_SORT=StablehloSortOptions STABLEHLO_WHILE=StablehloWhileOptions STABLEHLO_GATHER:1=StablehloGatherOptions
STABLEHLO_TRANSPOSE=StablehloTransposeOptions DILATE:1=DilateOptions
STABLEHLO_RNG_BIT_GENERATOR:1=StablehloRngBitGeneratorOptions REDUCE_WINDOW:1=ReduceWindowOptions
STABLEHLO_COMPOSITE:1=StableHLOCompositeOptions STABLEHLO_SHIFT_LEFT:1=StablehloShiftLeftOptions STABLEHLO_CBRT
STABLEHLO_CASE:1=StablehloCaseOptions INSTANCE_NORM=InstanceNormOptions BCQ_FULLY_CONNECTED=BCQFullyConnectedOptions
BCQ_GATHER=BCQGatherOptions GRU=GRUOptions RMS_NORM=RmsNormOptions ROPE=RoPEOptions RUN_MODEL=RunModelOptions
ATTENTION=AttentionOptions
"""
"""Operators, followed by the version after a colon and the options after an equals sign, if any."""


def _builtins() -> Iterator[tuple[str, Builtin]]:
    for word in _LISTING.split():
        versioned, _, options = word.partition("=")
        name, _, version = versioned.partition(":")
        yield name, Builtin(int(version) if version else None, options)


BUILTINS: dict[str, Builtin] = dict(_builtins())

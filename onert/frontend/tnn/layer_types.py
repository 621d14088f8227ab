"""Names of layer types.

A prefix says that a layer computes with integers (`Quantized`, `Int8`) or has its weights stored as integers
(`DynamicRangeQuantized`). Source: TNN's core/layer_type.cc.
"""

from __future__ import annotations

_PREFIXES = ("DynamicRangeQuantized", "Quantized", "Int8")
_SYNONYMS = {
    "Relu": "ReLU",
    "Relu6": "ReLU6",
    "BatchNormalization": "BatchNormCxx",
    "Reduce_Sum": "ReduceSum",
    "RealDiv": "Div",
    "SoftmaxCaffe": "Softmax",
    "Pooling_split_CC": "Pooling",
    "Dropout": "Identity",
}
_NAMES = """
Abs Acos Add AdaptiveAvgPool2d AdaptiveMaxPool2d ArgMaxOrMin Asin Atan BatchNorm BatchNormCxx BatchNormalization
BiasAdd BitShift BlobScale CbamFusedPooling CbamFusedReduce Cast Ceil Clip Concat Const ConstantOfShape Convolution
Convolution1D Convolution3D ConvolutionDepthwise Cos Deconvolution Dequantize DetectionOutput DetectionPostProcess Div
Dropout Einsum Eltwise Elu Equal Erf Exp Expand Fill Flatten Floor GELU Gather GatherND GridSample GroupNorm Gru
HDRGuide HardSigmoid HardSwish HardTanH Histogram Identity InnerProduct InstBatchNormCxx Interp Inverse LRN LSTMONNX
LayerNorm LeakyRelu Log LogSigmoid Lstm MatMul Maximum Minimum Mul Neg NonZero Normalize OneHot PReLU Pack Pad PadV2
Permute PixelShuffle Placeholder Pooling Pooling3D Pooling_split_CC Power PriorBox Prod ROIPooling Range ReLU ReLU6
RealDiv Reciprocal ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum
ReduceSumSquare Reduce_Sum Reformat Relu Relu6 Reorg Repeat Requantize Reshape ReshapeTensorflow ResizeBicubic Reverse
RoiAlign Rsqrt Scale ScatterND Selu Shape ShuffleChannel Sigmoid Sign SignedMul Sin Size Slice SliceCaffe Softmax
SoftmaxCaffe Softplus Softsign Split SplitV Sqrt Square SquaredDifference Squeeze StridedSlice StridedSliceV2 Sub Tan
Tanh Tile TopK Transpose Unpack Unsqueeze Upsample Where
"""
KNOWN = frozenset(prefix + name for name in _NAMES.split() for prefix in ("", *_PREFIXES))
"""Every name that may stand for a type, with and without prefixes."""


def plain(name: str) -> tuple[str, bool]:
    """The type's one name, and whether it computes with integers."""
    for prefix in _PREFIXES:
        if name.startswith(prefix) and len(name) > len(prefix):
            rest = name[len(prefix) :]
            return _SYNONYMS.get(rest, rest), prefix != _PREFIXES[0]
    return _SYNONYMS.get(name, name), False

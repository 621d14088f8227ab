"""Names of layer types.

A prefix marks a layer that computes with integers (`Quantized`, `Int8`) or has its weights stored as integers
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
    "CumSum": "Cumsum",
}
_NAMES = """
Abs Acos AdaptiveAvgPool2d AdaptiveMaxPool2d Add And ArgMaxOrMin Asin Atan BatchNorm BatchNormalization BatchNormCxx
BiasAdd BitShift BlobScale Cast CbamFusedPooling CbamFusedReduce Ceil Clip Concat Const ConstantOfShape Convolution
Convolution1D Convolution3D ConvolutionDepthwise Cos CumSum Cumsum Deconvolution Dequantize DetectionOutput
DetectionPostProcess Div Dropout Einsum Eltwise Elu Equal Erf Exp Expand Fill Flatten FlattenTorch Floor Gather
GatherElements GatherND GELU GLU Greater GridSample GroupNorm Gru HardSigmoid HardSwish HardTanH HDRGuide Histogram
Identity InnerProduct InstBatchNormCxx Interp Inverse LayerNorm LeakyRelu Less Log LogSigmoid LogSoftmax LRN Lstm
LSTMONNX MatMul Maximum Minimum Mod Mul Neg NonMaxSuppression NonZero Normalize Not OneHot Or Pack Pad PadV2 Permute
PermuteV2 PixelShuffle Placeholder Pooling Pooling1D Pooling3D Pooling_split_CC Power PReLU PriorBox Prod Range
RealDiv Reciprocal Reduce_Sum ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd
ReduceSum ReduceSumSquare Reformat ReLU Relu ReLU6 Relu6 Reorg Repeat Requantize Reshape ReshapeTensorflow
ResizeBicubic Reverse RoiAlign ROIPooling Roll Rsqrt Scale ScatterElements ScatterND Selu Shape ShuffleChannel Sigmoid
Sign SignedMul Sin Size Slice SliceCaffe Softmax SoftmaxCaffe Softplus Softsign Split SplitTorch SplitV Sqrt Square
SquaredDifference Squeeze StridedSlice StridedSliceV2 Sub Tan Tanh Tile TopK Transpose Unpack Unsqueeze Upsample Where
"""
KNOWN = frozenset(prefix + name for name in _NAMES.split() for prefix in ("", *_PREFIXES))
"""Every valid type name, with and without prefixes."""


def base_type(name: str) -> tuple[str, bool]:
    """The canonical name of a type without its prefix, and whether it computes with integers."""
    for prefix in _PREFIXES:
        if name.startswith(prefix) and len(name) > len(prefix):
            rest = name[len(prefix) :]
            return _SYNONYMS.get(rest, rest), prefix != _PREFIXES[0]
    return _SYNONYMS.get(name, name), False

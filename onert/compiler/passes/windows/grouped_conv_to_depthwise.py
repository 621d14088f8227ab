"""Turn grouped convolutions with one channel per group into depthwise convolutions."""

from __future__ import annotations

from attrs import asdict, evolve

from onert.compiler.rewrite.contract import TYPED, rewriting
from onert.compiler.rewrite.edit import Edit
from onert.ir import Operation, Subgraph
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.depthwise import DepthwiseConv2D


@rewriting(requires=(TYPED,), ensures=(TYPED,))
def grouped_conv_to_depthwise(subgraph: Subgraph) -> Subgraph:
    """Replace a convolution with constant filters and one channel per group by a depthwise convolution.

    Results stay bit-identical; the filters are transposed. A convolution that quantises its input at run time stays,
    because the two kinds then round their scales in different orders.

        y = Conv2D(x [n, h, w, 8], const [16, 3, 3, 1])   -->   y = DepthwiseConv2D(x, const [1, 3, 3, 16])
    """
    edit = Edit(subgraph)
    for at, operation in enumerate(subgraph.operations):
        op = operation.op
        if isinstance(op, Conv2D) and op.output is None and _has_single_channel_groups(subgraph, operation):
            weight = subgraph.operands[operation.used[1]]
            assert weight.data is not None
            quantization = weight.type.quantization
            if quantization is not None and quantization.axis is not None:
                quantization = evolve(quantization, axis=3)
            filters = edit.constant(weight.data.array.transpose(3, 1, 2, 0).copy(), weight.type.dtype, quantization)
            inputs = (operation.inputs[0], filters, *operation.inputs[2:])
            fields = asdict(op, recurse=False, filter=lambda attribute, _: attribute.name != "output")
            edit.replace(at, evolve(operation, op=DepthwiseConv2D(**fields), inputs=inputs))
    return edit.done()


def _has_single_channel_groups(subgraph: Subgraph, operation: Operation) -> bool:
    types = subgraph.types(operation)
    x, weight = types.input(0), types.input(1)
    if weight.value is None or x.dtype.is_float != weight.dtype.is_float:
        return False
    return weight.shape[3] == 1 and x.shape[3] is not None and x.shape[3] > 1

"""What each layer type becomes, one family a file.

`LAYERS` are functions of real numbers; `QUANTIZED` are layers that have an integer form of their own. Any other
quantised layer computes with real numbers between its quantised inputs and outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from onert.frontend.tnn.site import Site

from . import (
    activations,
    binary,
    convolution,
    detection,
    movement,
    normalization,
    pooling,
    products,
    reduction,
    resizing,
)

Writer = Callable[[Site], Sequence[int]]

LAYERS: Mapping[str, Writer] = {
    **convolution.LAYERS,
    **pooling.LAYERS,
    **products.LAYERS,
    **activations.LAYERS,
    **binary.LAYERS,
    **reduction.LAYERS,
    **movement.LAYERS,
    **normalization.LAYERS,
    **resizing.LAYERS,
    **detection.LAYERS,
}
QUANTIZED: Mapping[str, Writer] = {
    **convolution.QUANTIZED,
    **pooling.QUANTIZED,
    **products.QUANTIZED,
    **activations.QUANTIZED,
}

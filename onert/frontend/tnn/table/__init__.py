"""What each layer type becomes, one family a file.

`LAYERS` are functions of real numbers; `QUANTIZED` are layers that have an integer form of their own. Any other
quantised layer computes with real numbers between its quantised inputs and outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from onert.frontend.tnn.site import Site

from .activations import LAYERS as ACTIVATIONS
from .activations import QUANTIZED as QUANTIZED_ACTIVATIONS
from .binary import LAYERS as BINARY
from .convolution import LAYERS as CONVOLUTION
from .convolution import QUANTIZED as QUANTIZED_CONVOLUTION
from .detection import LAYERS as DETECTION
from .logic import LAYERS as LOGIC
from .movement import LAYERS as MOVEMENT
from .normalization import LAYERS as NORMALIZATION
from .pooling import LAYERS as POOLING
from .pooling import QUANTIZED as QUANTIZED_POOLING
from .products import LAYERS as PRODUCTS
from .products import QUANTIZED as QUANTIZED_PRODUCTS
from .recurrent import LAYERS as RECURRENT
from .reduction import LAYERS as REDUCTION
from .resizing import LAYERS as RESIZING
from .selection import LAYERS as SELECTION
from .volume import LAYERS as VOLUME

Writer = Callable[[Site], Sequence[int]]

LAYERS: Mapping[str, Writer] = {
    **CONVOLUTION,
    **POOLING,
    **PRODUCTS,
    **ACTIVATIONS,
    **BINARY,
    **REDUCTION,
    **MOVEMENT,
    **NORMALIZATION,
    **RESIZING,
    **DETECTION,
    **SELECTION,
    **LOGIC,
    **RECURRENT,
    **VOLUME,
}
QUANTIZED: Mapping[str, Writer] = {
    **QUANTIZED_CONVOLUTION,
    **QUANTIZED_POOLING,
    **QUANTIZED_PRODUCTS,
    **QUANTIZED_ACTIVATIONS,
}

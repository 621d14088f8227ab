"""The translation of layer types, one family per file.

`LAYERS` has functions on real numbers, `QUANTIZED` those of layers with an integer implementation. Any other quantised
layer computes with real numbers between its quantised inputs and outputs.
"""

from __future__ import annotations

from onert.frontend.families import Families
from onert.frontend.tnn.site import Writer

_FAMILIES = ("convolution", "pooling", "products", "activations")
"""The table files, those with the most common layers first."""
_OTHERS = ("binary", "reduction", "movement", "normalization", "resizing")
_RARE = ("detection", "selection", "logic", "recurrent", "volume")

LAYERS: Families[str, Writer] = Families(__name__, (*_FAMILIES, *_OTHERS, *_RARE), "LAYERS")
QUANTIZED: Families[str, Writer] = Families(__name__, _FAMILIES, "QUANTIZED")

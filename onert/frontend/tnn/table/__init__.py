"""What each layer type becomes, one family a file.

`LAYERS` are functions of real numbers; `QUANTIZED` are layers that have an integer form of their own. Any other
quantised layer computes with real numbers between its quantised inputs and outputs.
"""

from __future__ import annotations

from onert.frontend.families import Families
from onert.frontend.tnn.site import Writer

_FAMILIES = ("convolution", "pooling", "products", "activations")
"""The files of tables, those first whose layers models have most."""
_OTHERS = ("binary", "reduction", "movement", "normalization", "resizing")
_RARE = ("detection", "selection", "logic", "recurrent", "volume")

LAYERS: Families[str, Writer] = Families(__name__, (*_FAMILIES, *_OTHERS, *_RARE), "LAYERS")
QUANTIZED: Families[str, Writer] = Families(__name__, _FAMILIES, "QUANTIZED")

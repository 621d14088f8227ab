"""What the cost models know of processors: one place for all numbers about machines.

A processor has the `USUAL` figures; over these those that are `LISTED` by the beginning of its name, what the system
says of its caches, and what `onert_bench --machine --keep` found, each where there is something. Code that is made for
another machine has the usual ones, so that it does not change with where it is made.
"""

from __future__ import annotations

from collections.abc import Mapping

Figures = Mapping[str, float | tuple[float, ...]]

USUAL: Figures = {
    "first_cache": 32768,  # bytes of a core's own caches
    "second_cache": 1048576,
    "clock": 4.0e9,  # cycles a second
    "outer_bytes": 128e9,  # bytes a second that are copied within the cache around them
    "products": 2.0,  # multiplications with additions of registers a cycle: of floats,
    "halves": 1.0,  # times as many of floats in registers of half the width
    "dots": 2.0,  # and of bytes
    "latency": 4.0,  # cycles from one addition to an accumulator to the next
    "block": 12.0,  # cycles to begin and end a tile of bytes, beside its inner loop
    "step": 0.3,  # cycles of a step of an inner loop, beside products: the loop itself,
    "row": 0.03,  # each row, in addresses,
    "column": 0.25,  # and each register of columns, in reading a panel again for each block
    "float_block": (12.0, 0.0, 0.0),  # of floats: a tile, each row, and each sum beyond sixteen
    "float_step": (0.3, 0.03, 0.25),  # and of a step, of its rows and of its registers of columns
    "float_panel": 0.5,  # cycles at least to read one of the latter
    "spread": 0.6,  # what a row of bytes takes at every step to be spread over the lanes, in products
    "unfetched": 0.5,  # part of the bytes a second for lines that are not fetched ahead
    "stream": 4096,  # bytes ahead that lines are asked for where all are read once; 0: the processor is faster unasked
    "foreign": 2.0,  # times as long to read what another core has written than what lies in a core's own cache
    # Cycles to transform a register of channels of a tile: F(2x2, 3x3), F(4x4, 3x3), and F(2x2, 3x3) for a stride of 2;
    "forward": (26.0, 100.0, 65.0),
    "back": (34.0, 120.0, 70.0),  # and to transform back one of columns
    "byte_forward": 90.0,  # the same for bytes by F(4x4, 3x3): a register of channels in 16 bits,
    "byte_back": 110.0,  # and one of columns until they are bytes again
}

LISTED: Mapping[str, Figures] = {
    # Fifth generation of EPYC, a virtual machine of two cores.
    "AuthenticAMD 26": {"first_cache": 49152, "second_cache": 1048576, "clock": 4.06e9, "outer_bytes": 122e9},
    # Fourth generation of EPYC, the same: one product of whole registers a cycle, or two of half ones, behind which the
    # rest hides.
    "AuthenticAMD 25 17": {
        "clock": 3.7e9,
        "stream": 0,
        "outer_bytes": 118e9,
        "products": 1.0,
        "halves": 2.0,
        "dots": 1.0,
        "float_block": (10.0, 1.0, 3.0),
        "float_step": (0.0, 0.02, 0.1),
        "float_panel": 2.2,
        "spread": 0.05,
        "column": 0.0,
    },
    # Second generation of Xeon Scalable (Cascade Lake), a virtual machine of two cores.
    "GenuineIntel 6 85": {"first_cache": 32768, "second_cache": 1048576},
}

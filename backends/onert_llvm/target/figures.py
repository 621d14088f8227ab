"""Figures of processors for the cost models: the only place for numbers about machines.

A processor starts from the `USUAL` figures, overridden by those `LISTED` for the beginning of its name, then by the
cache sizes that the system reports, then by what `onert_bench --machine --keep` measured, where available. Code for
another machine uses the usual figures, so it does not depend on where it is generated.
"""

from __future__ import annotations

from collections.abc import Mapping

Figures = Mapping[str, float | tuple[float, ...] | tuple[tuple[float, float], ...]]

USUAL: Figures = {
    "first_cache": 32768,  # bytes of a core's own data caches
    "second_cache": 1048576,
    "clock": 4.0e9,  # cycles a second
    "outer_bytes": 128e9,  # bytes per second copied within the shared cache
    "products": 2.0,  # vector multiplications with additions per cycle: of floats,
    "halves": 1.0,  # the factor for floats in registers of half the width,
    "dots": 2.0,  # and of bytes
    "latency": 4.0,  # cycles between dependent additions to an accumulator
    "block": 12.0,  # cycles to begin and end a tile of bytes, outside its inner loop
    "step": 0.3,  # cycles of an inner-loop step besides products: the loop itself,
    "row": 0.03,  # each row, for addresses,
    "column": 0.25,  # and each register of columns, for reading a panel again for each block
    "float_block": (12.0, 0.0, 0.0),  # of floats: a tile, each row, and each sum beyond sixteen
    "float_step": (0.3, 0.03, 0.25),  # a step, each of its rows and each of its registers of columns
    "float_panel": 0.5,  # minimum cycles to read a register of columns
    "spread": 0.6,  # cost per step of broadcasting a row of bytes over the lanes, in products
    "unfetched": 0.5,  # the fraction of the bandwidth for lines that are not prefetched
    "stream": 4096,  # prefetch distance in bytes for data that is read once; 0: faster without
    "foreign": 2.0,  # cost factor for reading what another core has written, relative to a core's own cache
    # Cycles to transform a register of channels of a tile, and to transform a register of columns back: F(2x2, 3x3),
    # F(4x4, 3x3), and F(2x2, 3x3) for a stride of 2
    "transforms": ((26.0, 34.0), (100.0, 120.0), (65.0, 70.0)),
    "byte_forward": 90.0,  # the same for bytes by F(4x4, 3x3): a register of channels in 16 bits,
    "byte_back": 110.0,  # and a register of columns until they are bytes again
}

LISTED: Mapping[str, Figures] = {
    # Fifth generation of EPYC, a virtual machine with two cores.
    "AuthenticAMD 26": {"first_cache": 49152, "second_cache": 1048576, "clock": 4.06e9, "outer_bytes": 122e9},
    # Third generation of EPYC, likewise.
    "AuthenticAMD 25 1": {"clock": 3.2e9, "outer_bytes": 65e9, "dots": 1.5},
    # Fourth generation of EPYC, likewise: one product of whole registers per cycle or two of half registers, which hide
    # the rest.
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
}

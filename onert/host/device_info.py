"""`DeviceInfo`: what the partitioner knows of a device."""

from __future__ import annotations

from attrs import frozen

from onert.ir.value import Value


@frozen
class DeviceInfo(Value):
    """Memory and speed of a device, and what it does not run.

    - `available_memory`: bytes that networks may still take
    - `backend_name`: the backend that compiles for it; devices of one backend are interchangeable
    - `supported_nodes`: the only kinds of operations that it is given; empty: any that its backend supports
    - `non_supported_nodes`: kinds that it is not given
    - `sram_capacity`: bytes; a tensor up to this size counts as read and written at `peak_sram_bw`
    - `peak_compute`: additions and multiplications a second
    - `peak_dram_bw`, `peak_sram_bw`: bytes a second
    - `peak_link_bw`: bytes a second from this device to another
    - `input_count_max`: how many inputs a partition may have; 0: any number

    Only the ratios of the speeds decide how a network is divided. The defaults are those of one core of a desktop
    processor.
    """

    available_memory: int
    backend_name: str = "llvm"
    supported_nodes: frozenset[str] = frozenset()
    non_supported_nodes: frozenset[str] = frozenset()
    sram_capacity: int = 1 << 20
    peak_compute: float = 50e9
    peak_dram_bw: float = 10e9
    peak_sram_bw: float = 50e9
    peak_link_bw: float = 5e9
    input_count_max: int = 0

"""`DeviceInfo`: a device as the partitioner sees it."""

from __future__ import annotations

from attrs import frozen

from onert.ir.value import Value


@frozen
class DeviceInfo(Value):
    """Memory and speed of a device, and the operations that it accepts.

    - `available_memory`: bytes that networks may still use
    - `backend_name`: the backend that compiles for it; devices with the same backend are interchangeable
    - `supported_nodes`: the only kinds of operations assigned to it; empty: all that its backend supports
    - `non_supported_nodes`: kinds of operations that are not assigned to it
    - `sram_capacity`: bytes; a tensor up to this size is assumed to be read and written at `peak_sram_bw`
    - `peak_compute`: additions and multiplications per second
    - `peak_dram_bw`, `peak_sram_bw`: bytes per second
    - `peak_link_bw`: bytes per second from this device to another
    - `input_count_max`: the most inputs of a partition; 0: any number

    Only the ratios of the speeds affect partitioning. The defaults are those of one core of a desktop processor.
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

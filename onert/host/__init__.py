"""The host runtime: run requests for several networks on several devices.

with HostManager([DeviceConfig(), DeviceConfig()]) as host:
    host.add_network("digits", onert.load("digits.tflite"))
    future = host.run_network("digits", {"image": array})
    outputs = future.result()
"""

from typing import TYPE_CHECKING

from onert.ir.process.later import later

if TYPE_CHECKING:
    from .dag import DAG, BackendHints, DAGNode
    from .device_config import DeviceConfig, load_devices
    from .device_info import DeviceInfo
    from .device_manager import CompiledFunction, DeviceManager
    from .errors import (
        ConfigurationError,
        DeadlineError,
        DeviceLostError,
        DeviceNotFoundError,
        HostError,
        NetworkBusyError,
        NetworkExistsError,
        NetworkNotFoundError,
        OutOfDeviceMemoryError,
        PartitionError,
        RequestRefusedError,
    )
    from .host_config import BatchConfig, HostConfig
    from .host_manager import HostManager
    from .partitioner import PartitionConfig, partition_svg, partition_table
    from .statistics import DeviceStatistics, HostStatistics, NetworkStatistics
    from .trace import HostTrace

__all__ = [
    "DAG",
    "BackendHints",
    "BatchConfig",
    "CompiledFunction",
    "ConfigurationError",
    "DAGNode",
    "DeadlineError",
    "DeviceConfig",
    "DeviceInfo",
    "DeviceLostError",
    "DeviceManager",
    "DeviceNotFoundError",
    "DeviceStatistics",
    "HostConfig",
    "HostError",
    "HostManager",
    "HostStatistics",
    "HostTrace",
    "NetworkBusyError",
    "NetworkExistsError",
    "NetworkNotFoundError",
    "NetworkStatistics",
    "OutOfDeviceMemoryError",
    "PartitionConfig",
    "PartitionError",
    "RequestRefusedError",
    "load_devices",
    "partition_svg",
    "partition_table",
]

__getattr__ = later(
    __name__,
    {
        **dict.fromkeys(__all__, "onert.host.errors"),
        **dict.fromkeys(("DAG", "BackendHints", "DAGNode"), "onert.host.dag"),
        **dict.fromkeys(("DeviceConfig", "load_devices"), "onert.host.device_config"),
        **dict.fromkeys(("CompiledFunction", "DeviceManager"), "onert.host.device_manager"),
        **dict.fromkeys(("BatchConfig", "HostConfig"), "onert.host.host_config"),
        **dict.fromkeys(("PartitionConfig", "partition_svg", "partition_table"), "onert.host.partitioner"),
        **dict.fromkeys(("DeviceStatistics", "HostStatistics", "NetworkStatistics"), "onert.host.statistics"),
        "DeviceInfo": "onert.host.device_info",
        "HostManager": "onert.host.host_manager",
        "HostTrace": "onert.host.trace",
    },
)

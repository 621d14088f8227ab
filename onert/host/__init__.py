"""The host runtime: networks on devices, and the requests for them.

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
        "BackendHints": "onert.host.dag",
        "BatchConfig": "onert.host.host_config",
        "CompiledFunction": "onert.host.device_manager",
        "ConfigurationError": "onert.host.errors",
        "DAG": "onert.host.dag",
        "DAGNode": "onert.host.dag",
        "DeadlineError": "onert.host.errors",
        "DeviceConfig": "onert.host.device_config",
        "DeviceInfo": "onert.host.device_info",
        "DeviceLostError": "onert.host.errors",
        "DeviceManager": "onert.host.device_manager",
        "DeviceNotFoundError": "onert.host.errors",
        "DeviceStatistics": "onert.host.statistics",
        "HostConfig": "onert.host.host_config",
        "HostError": "onert.host.errors",
        "HostManager": "onert.host.host_manager",
        "HostStatistics": "onert.host.statistics",
        "HostTrace": "onert.host.trace",
        "NetworkBusyError": "onert.host.errors",
        "NetworkExistsError": "onert.host.errors",
        "NetworkNotFoundError": "onert.host.errors",
        "NetworkStatistics": "onert.host.statistics",
        "OutOfDeviceMemoryError": "onert.host.errors",
        "PartitionConfig": "onert.host.partitioner",
        "PartitionError": "onert.host.errors",
        "RequestRefusedError": "onert.host.errors",
        "load_devices": "onert.host.device_config",
        "partition_svg": "onert.host.partitioner",
        "partition_table": "onert.host.partitioner",
    },
)

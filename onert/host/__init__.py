"""The host runtime: networks on devices, and the requests for them.

with HostManager([DeviceConfig(), DeviceConfig()]) as host:
    host.add_network("digits", onert.load("digits.tflite"))
    future = host.run_network("digits", {"image": array})
    outputs = future.result()
"""

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

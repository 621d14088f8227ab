"""The errors of a host, one class for each kind."""

from __future__ import annotations

from onert.ir import OnertError


class HostError(OnertError):
    """The base class of the host's errors."""


class ConfigurationError(HostError):
    """The configuration of a device or host is invalid."""


class PartitionError(HostError):
    """A network cannot be partitioned as requested, or among these devices."""


class NetworkNotFoundError(HostError):
    """There is no network of this name, or the device does not have it."""


class NetworkBusyError(HostError):
    """The network is being added or removed, or has requests in progress."""


class NetworkExistsError(HostError):
    """A network of this name already exists."""


class DeviceNotFoundError(HostError):
    """There is no device of this name or kind."""


class OutOfDeviceMemoryError(HostError):
    """A network does not fit into the memory of a device."""


class RequestRefusedError(HostError):
    """The queue is full, or the host or device no longer accepts requests."""


class DeadlineError(HostError, TimeoutError):
    """The request was not answered before its deadline."""


class DeviceLostError(HostError):
    """The device died during the run."""

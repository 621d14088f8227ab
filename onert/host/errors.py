"""What a host refuses or cannot do, each kind with a class of its own."""

from __future__ import annotations

from onert.ir import OnertError


class HostError(OnertError):
    """The root of what goes wrong between a request and the run of its network."""


class ConfigurationError(HostError):
    """A device or a host cannot be configured so."""


class PartitionError(HostError):
    """A network cannot be divided as asked for, or among these devices."""


class NetworkNotFoundError(HostError):
    """No network of this name was added, or the device does not have it."""


class NetworkBusyError(HostError):
    """The network is being added or removed, or requests for it are under way."""


class NetworkExistsError(HostError):
    """There is a network of this name already."""


class DeviceNotFoundError(HostError):
    """There is no device of this name or kind."""


class OutOfDeviceMemoryError(HostError):
    """A network does not fit into the memory of a device."""


class RequestRefusedError(HostError):
    """The queue is full, or the host or the device does not take requests any more."""


class DeadlineError(HostError, TimeoutError):
    """The request was not answered before its deadline."""


class DeviceLostError(HostError):
    """The device ended in the middle of the run."""

"""Create devices of the kinds named in a configuration."""

from __future__ import annotations

from collections.abc import Sequence

from onert.compiler import Options
from onert.host.device_config import DeviceConfig, named
from onert.host.device_manager import DeviceManager
from onert.host.errors import ConfigurationError, DeviceNotFoundError
from onert.ir.process import imports

KINDS = {"cpu": "cpu:CpuDevice", "process": "process:ProcessDevice", "ray": "ray:RayDevice"}
"""The class of each kind of device, in a module of this package that is imported when needed."""


def made(devices: Sequence[DeviceConfig | DeviceManager]) -> list[DeviceManager]:
    """The devices of a host, initialised. Raises DeviceNotFoundError for an unknown kind.

    Devices without a number of threads get an equal share of the processors.
    """
    configs = named([d.config if isinstance(d, DeviceManager) else d for d in devices])
    share = max(1, Options().num_threads // len(configs))
    found: list[DeviceManager] = []
    try:
        for given, config in zip(devices, configs, strict=True):
            device = given if isinstance(given, DeviceManager) else _kind(config)(config, config.threads or share)
            device.init()
            found.append(device)
    except BaseException:
        for device in found:
            device.stop()
        raise
    return found


def _kind(config: DeviceConfig) -> type[DeviceManager]:
    place = KINDS.get(config.kind)
    if place is None:
        raise DeviceNotFoundError(
            f"device {config.name!r} is of kind {config.kind!r}, expected one of {', '.join(KINDS)}"
        )
    module, _, name = place.partition(":")
    try:
        kind: type[DeviceManager] = getattr(imports.module(f"onert.host.devices.{module}"), name)
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"device {config.name!r} is of kind {config.kind!r}, which needs {error.name!r}: install "
            f"onert-toolkit[{config.kind}]"
        ) from error
    return kind

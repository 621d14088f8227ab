"""Devices of the kinds that a configuration names."""

from __future__ import annotations

from collections.abc import Sequence

from onert.compiler import Options
from onert.host.device_config import DeviceConfig, named
from onert.host.device_manager import DeviceManager
from onert.host.errors import ConfigurationError, DeviceNotFoundError
from onert.ir.process import imports

KINDS = {"cpu": "cpu:CpuDevice", "process": "process:ProcessDevice", "ray": "ray:RayDevice"}
"""Where the class of each kind of device is: a module of this package, read when such a device is wanted."""


def made(devices: Sequence[DeviceConfig | DeviceManager]) -> list[DeviceManager]:
    """The devices of a host, ready to take functions; DeviceNotFoundError for a kind that there is none of.

    Each that says nothing of threads is given an equal share of the processors.
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

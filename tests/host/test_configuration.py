"""Configuration of a host: devices, limits, and the device file."""

from __future__ import annotations

from pathlib import Path

import pytest

from onert.host import ConfigurationError, DeviceConfig, HostConfig, load_devices
from onert.host.device_config import named

DEVICES = """
[[device]]
name = "big"
memory = "2 GiB"
threads = 2
cores = [0, 1]
unsupported = ["Div", "ADD"]

[[device]]
backend = "reference"
memory = 5000
supported = ["Conv2D"]
[device.speeds]
peak_compute = 1e9
[device.parameters]
key = "value"
"""


def test_a_device_file_is_read_in_order(tmp_path: Path) -> None:
    path = tmp_path / "devices.toml"
    path.write_text(DEVICES, encoding="utf-8")
    assert load_devices(path) == (
        DeviceConfig(name="big", memory=2 << 30, threads=2, cores=(0, 1), unsupported=frozenset({"Div", "ADD"})),
        DeviceConfig(
            name="cpu1",
            backend="reference",
            memory=5000,
            supported=frozenset({"Conv2D"}),
            speeds={"peak_compute": 1e9},
            parameters={"key": "value"},
        ),
    )


WRONG = {
    "no TOML": ("[[device", "the file is not TOML"),
    "no text": (b"\xff\xfe", "the file is not TOML"),
    "nothing": ("", "the host has no devices, expected at least one"),
    "another table": ("[host]\n", r"unknown table host, expected \[\[device\]\]"),
    "no list": ("[device]\n", r"'device' is not a list of tables, expected \[\[device\]\]"),
    "a field": ("[[device]]\nmemroy = 1\n", "device 0: unknown field memroy, expected backend, cores"),
    "a number": ("[[device]]\nname = 1\n", "device 0: name is 1, expected a string"),
    "a boolean": ("[[device]]\nthreads = true\n", "threads is True, expected a whole number"),
    "a negative number": ("[[device]]\ncores = [-1]\n", "cores is -1, expected a whole number of at least 0"),
    "nothing of memory": ("[[device]]\nmemory = 0\n", "memory is 0, expected more than 0"),
    "no thread": ("[[device]]\nthreads = 0\n", "threads is 0, expected more than 0"),
    "a unit": ("[[device]]\nmemory = '2 G'\n", "memory is '2 G', expected bytes, or a number and one of KiB"),
    "a fraction": ("[[device]]\nmemory = '1.5 GiB'\n", "memory is '1.5 GiB'"),
    "a long number": (f"[[device]]\nmemory = '{'9' * 5000} GiB'\n", "expected bytes, or a number and one of"),
    "a list": ("[[device]]\nsupported = 'ADD'\n", "supported is 'ADD', expected a list"),
    "a table": ("[[device]]\nparameters = 1\n", "parameters is 1, expected a table"),
    "a parameter": ("[[device]]\nparameters = {a = 1}\n", "parameters.a is 1, expected a string"),
    "a speed": ("[[device]]\nspeeds = {peak = 1}\n", "speeds has 'peak', expected sram_capacity"),
    "a slow speed": ("[[device]]\nspeeds = {peak_compute = 0}\n", "peak_compute is 0, expected a number above 0"),
    "infinite": ("[[device]]\nspeeds = {peak_compute = inf}\n", "peak_compute is inf, expected a number above 0"),
    "one name twice": ("[[device]]\nname = 'a'\n[[device]]\nname = 'a'\n", "two devices are called 'a'"),
    "a name given by place": ("[[device]]\nname = 'cpu1'\n[[device]]\n", "two devices are called 'cpu1'"),
}


@pytest.mark.parametrize(("text", "message"), WRONG.values(), ids=WRONG.keys())
def test_errors_in_a_device_file_name_the_place(text: str | bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "devices.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigurationError, match=message):
        load_devices(path)


def test_a_missing_device_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"none\.toml: the devices cannot be read: No such file"):
        load_devices(tmp_path / "none.toml")


def test_unnamed_devices_are_named_by_kind_and_position() -> None:
    assert [d.name for d in named([DeviceConfig(), DeviceConfig(name="x"), DeviceConfig(kind="process")])] == [
        "cpu0",
        "x",
        "process2",
    ]


@pytest.mark.parametrize(
    ("field", "value"), [("max_active_requests", 0), ("max_queue_size", -1), ("executor_threads", 0)]
)
def test_host_limits_below_their_minimum_are_rejected(field: str, value: int) -> None:
    with pytest.raises(ConfigurationError, match=f"{field} is {value}, expected at least"):
        HostConfig(**{field: value})

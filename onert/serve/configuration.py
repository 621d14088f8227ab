"""The configuration of a served model, as in the protocol's model configuration extension.

Source: Triton's "Model Configuration Extension" and "Model Configuration".
"""

from __future__ import annotations

from typing import Any

from onert.backend import TensorInfo
from onert.host import HostManager

from .datatypes import dimensions, name_of

_MICROSECONDS = 1e6


def configuration(host: HostManager, name: str, version: int) -> dict[str, Any]:
    """The fields of `ModelConfig` besides names: tensors with all their dimensions, and batching.

    An instance group is a sub-network, and its count the number of devices that hold it. `sequence_batching` is present
    if the requests of a sequence share state.
    """
    dag = host.get_network_dag(name)
    found: dict[str, Any] = {
        "version_policy": {"specific": {"versions": [version]}},
        "max_batch_size": 0,
        "input": [_tensor(info) for info, _ in dag.inputs],
        "output": [_tensor(info) for info, _ in dag.outputs],
        "instance_group": [
            {"name": part, "kind": "KIND_CPU", "count": len(devices)}
            for part, devices in host.get_device_partition_mapping(name).items()
        ],
    }
    batch = host.get_network_batching(name)
    if batch is not None:
        delay = round(batch.max_delay * _MICROSECONDS)
        found["dynamic_batching"] = {
            "preferred_batch_size": [batch.max_size],
            "max_queue_delay_microseconds": delay,
        }
    if host.is_stateful(name):
        idle = round(host.config.sequence_idle * _MICROSECONDS)
        found["sequence_batching"] = {"max_sequence_idle_microseconds": idle}
    return found


def _tensor(info: TensorInfo) -> dict[str, Any]:
    datatype = name_of(info.dtype)
    kind = "STRING" if datatype == "BYTES" else datatype
    return {"name": info.name, "data_type": f"TYPE_{kind}", "dims": dimensions(info)}

"""A network in a host: its sub-networks on their devices, and the checks of its requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from math import inf
from typing import Any

from numpy import ndarray

from onert.backend import TensorInfo
from onert.exec.arguments import elements
from onert.ir import Array, ExecutionError
from onert.ir import shape as shapes

from .dag import DAG, DAGNode
from .device_manager import DeviceManager
from .line import SharedQueue
from .rules import least_busy
from .statistics import Counters

_NEVER = 1 << 62
"""A load so high that any other device is preferred."""
Outputs = dict[str, Array]
"""Outputs by name."""


class PlacedNode:
    """A sub-network and the devices that hold it, each under the function names of its copies."""

    __slots__ = ("_copies", "_ticks", "_used", "devices", "functions", "inputs", "line", "node", "outputs", "stateful")

    def __init__(
        self, node: DAGNode, devices: Sequence[DeviceManager], functions: Sequence[str], *, stateful: bool = False
    ) -> None:
        self.node = node
        self.inputs = node.inputs
        self.outputs = node.outputs
        self.devices = tuple(devices)
        self.functions = tuple(functions)
        self.stateful = stateful
        """Whether runs keep state for later runs of the same sequence."""
        line = SharedQueue() if len(self.devices) > 1 else None
        serving = [] if line is None else [device.serve(line, at) for at, device in enumerate(self.devices)]
        self.line = line if serving and all(serving) else None
        """The shared queue from which its devices take each other's waiting runs; None unless all of them serve it."""
        self._ticks = count(1)
        self._copies = count()
        self._used = [0] * len(devices)

    def choose(self, lost: DeviceManager | None = None) -> tuple[DeviceManager, str]:
        """The least busy device (of several, the one chosen least recently), and the function name of the next copy.

        A `lost` device is chosen only if there is no other.
        """
        function = self.functions[0]
        if len(self.functions) > 1:
            function = self.functions[next(self._copies) % len(self.functions)]
        if len(self.devices) == 1:
            return self.devices[0], function
        loads = [device.load for device in self.devices]
        if lost in self.devices:
            loads[self.devices.index(lost)] = _NEVER
        at = least_busy(loads, self._used)
        self._used[at] = next(self._ticks)
        return self.devices[at], function


class Network:
    """A network as its requests use it."""

    def __init__(self, dag: DAG, nodes: Sequence[PlacedNode], most: int) -> None:
        self.name = dag.name
        self.dag = dag
        self.nodes = tuple(nodes)
        self.parents = tuple(len(parents) for parents in dag.parents)
        self.children = dag.children
        self.roots = dag.roots
        self.inputs = tuple(value for _, value in dag.inputs)
        self.outputs = tuple(value for _, value in dag.outputs)
        self.most_active = most
        """The most requests that may run at the same time."""
        self.active: dict[int, None] = {}
        """The numbers of running requests. Managed by the admission."""
        self.waiting: list[tuple[int, int, Any]] = []
        """Requests in the queue, a heap by priority and number. Managed by the admission."""
        self.removed = False
        self.batcher: Any = None
        """The `Batcher`, if requests are batched."""
        self.idle_states: list[Any] = []
        """Execution states for reuse. Managed by the executor."""
        self.counters = Counters()
        self._infos = {info.name: info for info, _ in dag.inputs}
        self._plain = [(info.dtype.numpy, info.shape) for info, _ in dag.inputs]
        """The usual element types and shapes of the inputs, for a fast check."""
        self._only = self._plain[0] if len(self._plain) == 1 else None
        self._names = tuple(info.name for info, _ in dag.outputs)
        only = self.nodes[0].node if len(self.nodes) == 1 else None
        self.is_single = only is not None and (only.inputs, only.outputs) == (self.inputs, self.outputs)
        """Whether there is only one sub-network, with the same inputs and outputs in the same order."""

    def is_brief(self, seconds: float, inputs: Sequence[Array]) -> bool:
        """Whether the last runs of all sub-networks together took at most `seconds`, each on its fastest device.

        False unless each device's last run tells how long a run on `inputs` takes.
        """
        left = seconds
        for node in self.nodes:
            times = [device.last_run(node.functions[0], inputs) for device in node.devices]
            if inf in times:
                return False
            left -= min(times)
        return left >= 0

    def checked(self, given: Mapping[str, Any] | Sequence[Any]) -> tuple[Array, ...]:
        """The inputs in order, given by name or in order. Raises ExecutionError if one is missing or invalid."""
        if self._only is not None and type(given) is list and len(given) == 1:  # twice as fast as the code below
            array, (dtype, shape) = given[0], self._only
            if type(array) is ndarray and array.dtype is dtype and array.shape == shape:
                return (array,)
        if type(given) is not list and isinstance(given, Mapping):
            if given.keys() != self._infos.keys():
                raise self._misnamed(given)
            arrays = [given[name] for name in self._infos]
        else:
            arrays = list(given)
            if len(arrays) != len(self._infos):
                raise ExecutionError(
                    f"network {self.name!r} is given {len(arrays)} inputs, expected {len(self._infos)}"
                )
        if [type(each) is ndarray and (each.dtype, each.shape) for each in arrays] == self._plain:
            return tuple(arrays)
        return tuple(map(self._fitting, self._infos.values(), arrays))

    def _misnamed(self, given: Mapping[str, Any]) -> ExecutionError:
        known = ", ".join(map(repr, self._infos))
        unknown = [name for name in given if name not in self._infos]
        if unknown:
            return ExecutionError(f"network {self.name!r} has no input {unknown[0]!r}, expected {known}")
        missing = ", ".join(repr(name) for name in self._infos if name not in given)
        return ExecutionError(f"network {self.name!r} is missing input {missing}")

    def _fitting(self, info: TensorInfo, given: Any) -> Array:
        try:
            array = elements(info, given)
        except (TypeError, ValueError, OverflowError) as error:
            raise ExecutionError(f"network {self.name!r}: input {info.name!r}: {error}") from error
        except ExecutionError as error:
            raise ExecutionError(f"network {self.name!r}: {error}") from error
        if array.shape != info.shape and not shapes.compatible(info.open_shape, array.shape):
            raise ExecutionError(
                f"network {self.name!r}: input {info.name!r} is given shape {shapes.text(array.shape)}, expected "
                f"{shapes.text(info.open_shape)}"
            )
        return array

    def named(self, outputs: Sequence[Array]) -> Outputs:
        """Outputs by name, from outputs in order."""
        names = self._names
        return {names[0]: outputs[0]} if len(names) == len(outputs) == 1 else dict(zip(names, outputs, strict=True))

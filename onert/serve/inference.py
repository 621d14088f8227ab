"""An inference request and its answer, independent of HTTP and gRPC."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from attrs import frozen

from onert.ir import Array
from onert.ir.value import Value

from .errors import bad

MICROSECOND = 1e-6
Parameter = bool | int | float | str
_MAX_TIMEOUT = 3600 * 10**6


@frozen(eq=False)
class InferenceRequest:
    """A request: inputs for a model, parameters, and the names of the wanted outputs (empty: all)."""

    id: str
    inputs: Mapping[str, Array]
    parameters: Mapping[str, Parameter]
    outputs: tuple[str, ...] = ()


@frozen(eq=False)
class InferenceResponse:
    """The outputs of a model, each as name, datatype (the protocol's name) and array."""

    model: str
    version: str
    id: str
    outputs: tuple[tuple[str, str, Array], ...]


@frozen
class RequestParameters(Value):
    """The parameters of a request that concern the host.

    - `priority`: requests with lower values run first
    - `timeout`: time limit in seconds; None: the server's own limit
    - `sequence`: the sequence whose state it uses, if any; whether it `begins` and `ends` the sequence
    """

    priority: int = 0
    timeout: float | None = None
    sequence: Hashable = None
    begins: bool = False
    ends: bool = False


def parse_parameters(parameters: Mapping[str, Parameter]) -> RequestParameters:
    """Parse the parameters `priority`, `timeout` (microseconds), `sequence_id`, `sequence_start` and `sequence_end`.

    Other parameters are ignored. Raises ServeError for an invalid value.
    """
    priority = _whole(parameters, "priority", -(1 << 31), 1 << 31)
    timeout = _whole(parameters, "timeout", 0, _MAX_TIMEOUT)
    sequence = parameters.get("sequence_id", 0)
    if not isinstance(sequence, int | str) or (isinstance(sequence, str) and len(sequence) > 200):
        raise bad("parameter 'sequence_id' is invalid, expected a whole number or a string of up to 200 characters")
    return RequestParameters(
        priority=priority,
        timeout=timeout * MICROSECOND if timeout else None,
        sequence=sequence or None,
        begins=_truth(parameters, "sequence_start"),
        ends=_truth(parameters, "sequence_end"),
    )


def _whole(parameters: Mapping[str, Parameter], name: str, least: int, most: int) -> int:
    value = parameters.get(name, 0)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise bad(f"parameter {name!r} is {value!r:.100}, expected a whole number from {least} to {most}")
    return value


def _truth(parameters: Mapping[str, Parameter], name: str) -> bool:
    value = parameters.get(name, False)
    if not isinstance(value, bool):
        raise bad(f"parameter {name!r} is {value!r:.100}, expected true or false")
    return value

"""One inference that was asked for, in whatever form it came, and its answer."""

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
class Asked:
    """Inputs for a model, and what of its outputs is wanted: names in order, all of them if there are none."""

    id: str
    inputs: Mapping[str, Array]
    parameters: Mapping[str, Parameter]
    outputs: tuple[str, ...] = ()


@frozen(eq=False)
class Answer:
    """The outputs of a model, with the protocol's names of their element types."""

    model: str
    version: str
    id: str
    outputs: tuple[tuple[str, str, Array], ...]


@frozen
class Wishes(Value):
    """What the parameters of a request ask of the host.

    - `priority`: lower ones are run first
    - `timeout`: seconds in which it must be answered; None: the server's own limit
    - `sequence`: the state that it shares with others; `begins` and `ends` it
    """

    priority: int = 0
    timeout: float | None = None
    sequence: Hashable = None
    begins: bool = False
    ends: bool = False


def wishes(parameters: Mapping[str, Parameter]) -> Wishes:
    """What the parameters `priority`, `timeout` (microseconds), `sequence_id`, `sequence_start` and `sequence_end` say.

    ServeError for a value that is none. Other parameters are for other servers.
    """
    priority = _whole(parameters, "priority", -(1 << 31), 1 << 31)
    timeout = _whole(parameters, "timeout", 0, _MAX_TIMEOUT)
    sequence = parameters.get("sequence_id", 0)
    if not isinstance(sequence, int | str) or (isinstance(sequence, str) and len(sequence) > 200):
        raise bad("parameter 'sequence_id' is no number and no text of up to 200 characters")
    return Wishes(
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

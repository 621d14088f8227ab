"""Code ahead of time: what a backend makes an object file of, and what it gives."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from attrs import field, frozen

from onert.ir import Subgraph
from onert.ir.value import Value

from .kernel import Sequence


class Region(Enum):
    """The memory that a compiled function is given: constants, then what outlives a call, then the rest."""

    CONSTANTS = "constants"
    MUTABLES = "mutables"
    ACTIVATIONS = "activations"


@frozen
class Place(Value):
    """So many bytes from the beginning of a region."""

    region: Region
    offset: int


@frozen
class Symbol(Value):
    """A variable that callers may look up: its name, where it lies, and how many elements it has."""

    name: str
    place: Place
    elements: int


@frozen
class Beginning(Value):
    """What a variable operand begins with.

    It takes the elements of the constant operand `initial` while the boolean operand `started` is false, which then
    becomes true.
    """

    variable: int
    initial: int
    started: int


@frozen
class EntryPoint(Value):
    """A function `int symbol(uint8_t *constants, uint8_t *mutables, uint8_t *activations)`.

    It runs the sequences in order, then lets the subgraph's variables take their new values, and returns 0. Where
    elements broke a rule it runs those of `undo` instead, which undo what was updated in place, and returns another
    number. Before all this variables begin: see `Beginning`. `places` has every operand that lies in mutables or
    activations; where constants lie the backend decides.
    """

    symbol: str
    subgraph: Subgraph
    sequences: tuple[Sequence, ...]
    places: Mapping[int, Place]
    undo: tuple[Sequence, ...] = ()
    beginnings: tuple[Beginning, ...] = ()


@frozen
class CodeTarget(Value):
    """What code is made for: the words of a user, None if nothing was said.

    `relocation` is "pic" or "static".
    """

    triple: str | None = None
    cpu: str | None = None
    features: str | None = None
    relocation: str = "pic"


@frozen
class Blueprint(Value):
    """All that one object file holds: functions that share constants and mutables, and what tells callers about them.

    Every region starts at a multiple of `alignment` bytes. `symbols` are those of mutables, whose region has
    `mutable_bytes`; what the entries' operands take of activations is `activation_bytes`. With `configuration` the
    object also defines `NAME_config`: sizes, alignment and the table of all symbols, as `docs/bundles.md` lays them
    out. `listings` names those wanted beside the code: "asm", "ir".
    """

    name: str
    entries: tuple[EntryPoint, ...]
    symbols: tuple[Symbol, ...]
    mutable_bytes: int
    activation_bytes: int
    target: CodeTarget
    alignment: int = 64
    configuration: bool = True
    listings: frozenset[str] = field(default=frozenset())


@frozen
class ObjectCode(Value):
    """An object file, the bytes of the constants it reads, and what is known only now that both are there.

    `symbols` are the blueprint's and those of constants; `activation_bytes` includes the backend's own scratch memory.
    `target` names what the code runs on. Entries return n for the n-th of `errors`, a sentence with N for the
    element that broke the rule. `functions` are global functions beside the entries that it defines.
    """

    code: bytes
    constants: bytes
    symbols: tuple[Symbol, ...]
    activation_bytes: int
    target: str
    errors: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    listings: Mapping[str, str] = field(factory=dict)

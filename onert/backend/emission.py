"""Code ahead of time: what a backend makes an object file of, and what it gives."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, IntEnum

from attrs import field, frozen

from onert.ir import Subgraph
from onert.ir.value import Value

from .kernel import Sequence


class Region(Enum):
    """The memory that a compiled function is given: constants, then what outlives a call, then the rest."""

    CONSTANTS = "constants"
    MUTABLES = "mutables"
    ACTIVATIONS = "activations"


class Code(IntEnum):
    """What entry points return beside 0 and the numbers of rules that elements broke.

    `CONTENT`: the constants are not those that the object was made with. Of an entry that runs layer by layer: `MORE`,
    it has not come to the end; `NO_LAYER`, there is no layer of that number.
    """

    CONTENT = -1
    MORE = -2
    NO_LAYER = -3


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

    `cpu` may name several processors, separated by commas, or be "multi": the object then has a version of its code for
    each, and takes the most able that the processor runs. `relocation` is "pic" or "static".
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

    `steps` asks for entries that run layer by layer too (`symbol_step`), `hook` for calls of `NAME_hook(layer, ended)`
    around layers, `embedded` for the constants in the object, as `NAME_weights`. With `footprint` it is found out what
    the code takes of flash and stack.
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
    steps: bool = False
    hook: bool = False
    embedded: bool = False
    footprint: bool = False


@frozen
class Layer(Value):
    """A part of an entry point's run: `operation` is the first it computes, by its index in the subgraph.

    `kernels` are the symbols of the functions that compute it in the object's first version, and `constants` the bytes
    of constants that it reads there.
    """

    entry: str
    operation: int
    kernels: tuple[str, ...]
    constants: int


@frozen
class Version(Value):
    """A version of an object's code: the processor it is for, and the bytes of constants that it reads."""

    target: str
    constants: int


@frozen
class Footprint(Value):
    """Bytes of an object's code and read-only data, and the most that a call of an entry point takes of the stack, what
    the C library takes of it not counted."""

    flash: int
    stack: int


@frozen
class ObjectCode(Value):
    """An object file, the bytes of the constants it reads, and what is known only now that both are there.

    `symbols` are the blueprint's and those of constants; `activation_bytes` includes the backend's own scratch memory.
    `target` names what the code runs on. Entries return n for the n-th of `errors`, a sentence with N for the
    element that broke the rule. `functions` are global functions beside the entries that it defines. `content` are 16
    bytes that only this object, its constants and its header have in common; they end the constants. `layers` are those
    of all entries in order, `versions` the versions of the code, the least able processor's first.
    `notes` are sentences about the choice of processor.
    """

    code: bytes
    constants: bytes
    symbols: tuple[Symbol, ...]
    activation_bytes: int
    target: str
    errors: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    listings: Mapping[str, str] = field(factory=dict)
    content: bytes = b""
    layers: tuple[Layer, ...] = ()
    versions: tuple[Version, ...] = ()
    footprint: Footprint | None = None
    notes: tuple[str, ...] = ()

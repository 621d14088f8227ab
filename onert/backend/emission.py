"""Ahead-of-time compilation: what a backend generates an object file from, and what it returns."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, IntEnum

from attrs import field, frozen

from onert.ir import Subgraph
from onert.ir.value import Value

from .kernel import Sequence


class Region(Enum):
    """A memory region passed to a compiled function: constants, state that outlives a call, and everything else."""

    CONSTANTS = "constants"
    MUTABLES = "mutables"
    ACTIVATIONS = "activations"


class Code(IntEnum):
    """Return values of entry points other than 0 and the numbers of violated rules.

    `CONTENT`: the constants are not those that belong to the object. Entries that run layer by layer also return
    `MORE` if layers remain, and `NO_LAYER` if there is no layer with this number.
    """

    CONTENT = -1
    MORE = -2
    NO_LAYER = -3


@frozen
class Place(Value):
    """An offset in bytes from the start of a region."""

    region: Region
    offset: int


@frozen
class Symbol(Value):
    """A variable that callers may look up: its name, place and number of elements."""

    name: str
    place: Place
    elements: int


@frozen
class Beginning(Value):
    """How a variable operand gets its initial value.

    While the boolean operand `started` is false, the variable is set to the elements of the constant operand `initial`,
    and `started` to true.
    """

    variable: int
    initial: int
    started: int


@frozen
class EntryPoint(Value):
    """A function `int symbol(uint8_t *constants, uint8_t *mutables, uint8_t *activations)`.

    It initialises variables (see `Beginning`), runs the sequences in order, updates the subgraph's variables to their
    new values, and returns 0. If elements break a rule, it runs the sequences of `undo` instead, which revert in-place
    updates, and returns the rule's number. `places` has every operand in mutables or activations; the backend decides
    where constants are placed.
    """

    symbol: str
    subgraph: Subgraph
    sequences: tuple[Sequence, ...]
    places: Mapping[int, Place]
    undo: tuple[Sequence, ...] = ()
    beginnings: tuple[Beginning, ...] = ()


@frozen
class CodeTarget(Value):
    """The target of code generation, as the user specified it; None for what was not specified.

    `cpu` may be several processors, separated by commas, or "multi": the object then has a version of its code for
    each, and uses the most capable one that the processor can run. `relocation` is "pic" or "static".
    """

    triple: str | None = None
    cpu: str | None = None
    features: str | None = None
    relocation: str = "pic"


@frozen
class Blueprint(Value):
    """The contents of one object file: functions that share constants and mutables, and their description for callers.

    Every region is aligned to `alignment` bytes. `symbols` are in mutables, a region of `mutable_bytes`;
    `activation_bytes` is the size of the entries' operands in activations. With `configuration` the object also defines
    `NAME_config`: sizes, alignment and the table of all symbols, in the layout given in `docs/bundles.md`. `listings`
    are the additional outputs wanted: "asm", "ir".

    `steps` adds entries that run layer by layer (`symbol_step`), `hook` adds calls of `NAME_hook(layer, ended)` around
    layers, and `embedded` stores the constants in the object as `NAME_weights`. With `footprint` the flash and stack
    usage of the code is measured.
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

    `kernels` are the symbols of the functions that compute it in the object's first version; `constants` is the number
    of bytes of constants that they read there.
    """

    entry: str
    operation: int
    kernels: tuple[str, ...]
    constants: int


@frozen
class Version(Value):
    """A version of an object's code: its processor, and the number of bytes of constants that it reads."""

    target: str
    constants: int


@frozen
class Footprint(Value):
    """Bytes of an object's code and read-only data, and the maximum stack usage of an entry point's call, without the C
    library's."""

    flash: int
    stack: int


@frozen
class ObjectCode(Value):
    """An object file, the bytes of the constants it reads, and facts that are only known once both exist.

    `symbols` are the blueprint's and those of constants; `activation_bytes` includes the backend's own scratch memory.
    `target` names the processors that the code runs on. Entries return n for the n-th of `errors`, a sentence with N
    for the element that broke the rule. `functions` are its global functions besides the entries. `content` is an
    identifier of 16 bytes that only this object, its constants and its header share; it ends the constants. `layers`
    are those of all entries in order, `versions` the versions of the code, the least capable processor's first. `notes`
    are sentences about the choice of processor.
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

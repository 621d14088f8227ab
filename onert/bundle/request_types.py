"""The user's request for a bundle, and the resulting files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path

from attrs import field, frozen

from onert.backend import CodeTarget, Footprint, Program, Version
from onert.ir import OptionError, Package
from onert.ir.process.cpus import MAX_THREADS
from onert.ir.value import Value


class Api(Enum):
    """How a C program finds sizes and offsets: by macros, by `NAME_config` at run time, or by both."""

    STATIC = "static"
    DYNAMIC = "dynamic"
    BOTH = "both"


@frozen
class LayerFacts(Value):
    """A layer of an entry point: its operation, its name and its costs.

    `multiply_adds` is 0 for operations that do not compute products. `constants` are the bytes of constants that it
    reads, `results` the bytes of its first operation's results, `kernels` the functions that compute it.
    """

    entry: str
    operation: str
    name: str
    multiply_adds: int
    constants: int
    results: int
    kernels: tuple[str, ...]


@frozen
class Files(Value):
    """A written bundle: its files by suffix ("o", "weights", "h" ...), sizes in bytes, and its target.

    `versions` are those of its code, with the bytes of constants that each reads; `layers` the parts of a run; `notes`
    are sentences about the choice of processor.
    """

    name: str
    paths: Mapping[str, Path]
    constants: int
    mutables: int
    activations: int
    target: str
    versions: tuple[Version, ...] = ()
    layers: tuple[LayerFacts, ...] = ()
    footprint: Footprint | None = None
    notes: tuple[str, ...] = ()


Source = Program | Package


@frozen
class Request(Value):
    """The user's choices; the fields are those of `bundle`."""

    name: str | None = None
    entry: str | None = None
    api: Api = Api.DYNAMIC
    target: CodeTarget = field(factory=CodeTarget)
    listings: frozenset[str] = frozenset()
    shapes: Mapping[int | str, tuple[int, ...]] = field(factory=dict)
    signatures: tuple[str, ...] = ()
    threads: int = 1
    precision: str = "exact"
    overlap: bool = False
    embed_weights: bool = False
    steps: bool = False
    instrument: bool = False
    share: bool = False
    report: bool = False


def request(
    *,
    name: str | None,
    entry: str | None,
    api: str | Api,
    target: str | None,
    cpu: str | None,
    features: str | None,
    relocation: str,
    shapes: Mapping[int | str, Sequence[int]] | None,
    signatures: Sequence[str],
    threads: int,
    precision: str,
    overlap: bool,
    save_asm: bool,
    save_ir: bool,
    embed_weights: bool,
    steps: bool,
    instrument: bool,
    share: bool,
    report: bool,
) -> Request:
    """The request made by the arguments of `bundle`. Raises OptionError if one is invalid."""
    if relocation not in ("pic", "static"):
        raise OptionError("relocation", f"is {relocation!r}, expected pic or static")
    known = [kind.value for kind in Api]
    if (api.value if isinstance(api, Api) else api) not in known:
        raise OptionError("api", f"is {api!r}, expected one of {', '.join(known)}")
    if not 1 <= threads <= MAX_THREADS:
        raise OptionError("threads", f"is {threads}, expected 1 to {MAX_THREADS}")
    if overlap and share:
        raise OptionError("overlap", "cannot be combined with share")
    return Request(
        name,
        entry,
        Api(api),
        CodeTarget(target, cpu, features, relocation),
        frozenset(kind for kind, chosen in (("asm", save_asm), ("ir", save_ir)) if chosen),
        {k: tuple(int(d) for d in v) for k, v in (shapes or {}).items()},
        tuple(signatures),
        threads,
        precision,
        overlap,
        embed_weights,
        steps,
        instrument,
        share,
        report,
    )

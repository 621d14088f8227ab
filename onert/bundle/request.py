"""Asking for a bundle. What makes one is read when one is made."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path

from attrs import field, frozen

from onert.backend import CodeTarget, Program
from onert.ir import CompileError, Package


class Api(Enum):
    """How a C program finds its way about: by macros alone, by `NAME_config` at run time, or by both."""

    STATIC = "static"
    DYNAMIC = "dynamic"
    BOTH = "both"


@frozen
class Files:
    """A bundle that was written: its files by suffix ("o", "weights", "h" ...), sizes in bytes, and what it runs on."""

    name: str
    paths: Mapping[str, Path]
    constants: int
    mutables: int
    activations: int
    target: str


Source = Program | Package


@frozen
class Request:
    """What the user chose; the fields are those of `bundle`."""

    name: str | None = None
    entry: str | None = None
    api: Api = Api.DYNAMIC
    target: CodeTarget = field(factory=CodeTarget)
    listings: frozenset[str] = frozenset()
    shapes: Mapping[int | str, tuple[int, ...]] = field(factory=dict)
    signatures: tuple[str, ...] = ()
    threads: int = 1


def bundle(
    source: Source | Mapping[str, Source],
    directory: str | os.PathLike[str],
    *,
    name: str | None = None,
    entry: str | None = None,
    api: str | Api = Api.DYNAMIC,
    target: str | None = None,
    cpu: str | None = None,
    features: str | None = None,
    relocation: str = "pic",
    shapes: Mapping[int | str, Sequence[int]] | None = None,
    signatures: Sequence[str] = (),
    threads: int = 1,
    save_asm: bool = False,
    save_ir: bool = False,
) -> Files:
    """Write a program, or what a package compiles to, as a bundle into a directory, which is made where it is missing.

    Several programs or packages by the names of their entry points, or several `signatures` of one package, make a
    bundle with as many entry points that share constants. `shapes` are those of inputs that the model leaves open, by
    name or position. `target` is a triple ("aarch64-linux-gnu") or one of onert's target names, `cpu` a processor
    ("native" for this machine's), `features` like "+avx2,+fma"; without them code for the least processor of this
    machine's architecture. With more than one thread the object starts a pool of its own.

    CompileError, one sentence, for what cannot be bundled; BackendError for an unknown target. Nothing is left behind
    where it fails.
    """
    if relocation not in ("pic", "static"):
        raise CompileError(f"relocation is {relocation!r}, expected pic or static")
    known = [kind.value for kind in Api]
    if (api.value if isinstance(api, Api) else api) not in known:
        raise CompileError(f"api is {api!r}, expected one of {', '.join(known)}")
    if threads < 1:
        raise CompileError(f"threads is {threads}, expected at least 1")
    wanted = Request(
        name,
        entry,
        Api(api),
        CodeTarget(target, cpu, features, relocation),
        frozenset(kind for kind, chosen in (("asm", save_asm), ("ir", save_ir)) if chosen),
        {k: tuple(int(d) for d in v) for k, v in (shapes or {}).items()},
        tuple(signatures),
        threads,
    )
    files: Files = importlib.import_module("onert.bundle.emit").write(source, Path(directory), wanted)
    return files

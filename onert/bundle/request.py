"""The function `bundle`. Everything that it needs is imported when it is called."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from onert.ir.process import imports

if TYPE_CHECKING:
    from .request_types import Api, Files, Source


def bundle(
    source: Source | Mapping[str, Source],
    directory: str | os.PathLike[str],
    *,
    name: str | None = None,
    entry: str | None = None,
    api: str | Api = "dynamic",
    target: str | None = None,
    cpu: str | None = None,
    features: str | None = None,
    relocation: str = "pic",
    shapes: Mapping[int | str, Sequence[int]] | None = None,
    signatures: Sequence[str] = (),
    threads: int = 1,
    precision: str = "exact",
    overlap: bool = False,
    save_asm: bool = False,
    save_ir: bool = False,
    embed_weights: bool = False,
    steps: bool = False,
    instrument: bool = False,
    share: bool = False,
    report: bool = False,
) -> Files:
    """Write a program, or the result of compiling a package, as a bundle into a directory, which is created if missing.

    Several programs or packages by the names of their entry points, or several `signatures` of one package, make a
    bundle with several entry points that share constants. `shapes` are those of inputs that the model leaves open, by
    name or position. `target` is a triple ("aarch64-linux-gnu") or one of onert's target names, `cpu` a processor
    ("native" for this machine's), several separated by commas, or "multi": then the code has a version for each, and
    the first call selects the most capable one that the processor can run. `features` are like "+avx2,+fma". Without
    any of these the code is "multi" if several versions exist, else for the least capable processor. With more than
    one thread the object starts its own thread pool. `precision` is that of `Options`: how much results may be rounded.

    `embed_weights` stores the constants in the object, `steps` adds entry points that run layer by layer, `instrument`
    adds calls of a hook around layers. With `share`, inputs and outputs of several entry points with the same name and
    type become one. With `overlap`, inputs, outputs and intermediate results share memory, so that a run overwrites its
    inputs. With `report`, the flash and stack usage of the code is measured (`Files.footprint`).

    Raises CompileError if the model cannot be bundled, and BackendError for an unknown target. No files are left behind
    on failure.
    """
    request = imports.module("onert.bundle.request_types").request(
        name=name,
        entry=entry,
        api=api,
        target=target,
        cpu=cpu,
        features=features,
        relocation=relocation,
        shapes=shapes,
        signatures=signatures,
        threads=threads,
        precision=precision,
        overlap=overlap,
        save_asm=save_asm,
        save_ir=save_ir,
        embed_weights=embed_weights,
        steps=steps,
        instrument=instrument,
        share=share,
        report=report,
    )
    files: Files = imports.module("onert.bundle.emit").write(source, Path(directory), request)
    return files

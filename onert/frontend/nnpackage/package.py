"""Reads a package, and checks that its connections fit its models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from onert.frontend.circle import FORMAT as CIRCLE
from onert.frontend.flatbuffer import Data
from onert.frontend.format import HEAD, Format
from onert.frontend.tflite import FORMAT as TFLITE
from onert.ir import ModelError, Package, Port, Subgraphs
from onert.ir.content import Content, InMemory, Models, Source

from .archive import Archive, Directory, open_zip
from .manifest import MAX_BYTES, MAX_CONFIG_BYTES, Manifest, parse_config, parse_manifest
from .zip_archive import TASK, ZIP

MANIFEST = "metadata/MANIFEST"
MAX_MODELS = 256
"""The maximum number of different models in a package."""


def _recognize(head: bytes, path: Path | None) -> bool:
    if path is not None and path.is_dir():
        return (path / MANIFEST).is_file()
    return head.startswith(ZIP) and (path is None or path.suffix != TASK)


def open_archive(content: Data, path: Path | None) -> Archive:
    """Open the files of a package."""
    if path is not None and path.is_dir():
        return Directory(path)
    return open_zip(content, MANIFEST)


def _load(content: Data, path: Path | None) -> Package:
    archive, manifest = _open(content, path)
    packages = _models(archive, manifest)
    models = tuple(package.model for package in packages)
    _check_ports(manifest, models)
    alone = packages[0].content if _is_plain(manifest) else None
    return _package(models if alone is None else alone, path, archive, manifest)


def _models(archive: Archive, manifest: Manifest) -> list[Package]:
    """All models; one that is listed several times is read once. Raises ModelError if there are too many."""
    if len(set(manifest.models)) > MAX_MODELS:
        raise ModelError(f"MANIFEST names {len(set(manifest.models))} models, more than {MAX_MODELS}")
    read: dict[tuple[str, str], Package] = {}
    found = []
    for at, name in enumerate(manifest.models):
        key = (name, manifest.model_types[at] if manifest.model_types else "")
        if key not in read:
            read[key] = _model(archive, manifest, at, _load_now)
        found.append(read[key])
    return found


def _unread(source: Source, path: Path | None) -> Package | None:
    """A package with an unread model. None for an archive, which would have to be unpacked, or for several models."""
    if path is None or not path.is_dir():
        return None
    archive, manifest = _open(InMemory(b"").data, path)
    model = _model(archive, manifest, 0, _load_lazily) if _is_plain(manifest) else None
    return None if model is None or model.content is None else _package(model.content, path, archive, manifest)


def _open(content: Data, path: Path | None) -> tuple[Archive, Manifest]:
    archive = open_archive(content, path)
    return archive, parse_manifest(archive.read(MANIFEST, MAX_BYTES))


def _is_plain(manifest: Manifest) -> bool:
    """Whether the package has one model, whose inputs and outputs are the package's."""
    return len(manifest.models) == 1 and not (manifest.inputs or manifest.outputs or manifest.connections)


def _package(models: Models | Content, path: Path | None, archive: Archive, manifest: Manifest) -> Package:
    config: dict[str, str] = {}
    for name in manifest.configs:
        config.update(parse_config(archive.read(f"metadata/{name}", MAX_CONFIG_BYTES)))
    return Package(
        models,
        path.stem if path is not None else "",
        manifest.inputs,
        manifest.outputs,
        manifest.connections,
        config,
        manifest.models,
    )


_Read = TypeVar("_Read", Package, Package | None)


def _load_now(format_: Format, source: Source, path: Path | None) -> Package:
    return format_.load(source.data, path)


def _load_lazily(format_: Format, source: Source, path: Path | None) -> Package | None:
    return format_.unread(source, path)


def _model(
    archive: Archive, manifest: Manifest, index: int, load: Callable[[Format, Source, Path | None], _Read]
) -> _Read:
    """Read one model. Raises ModelError if its type is not the one in the manifest."""
    name = manifest.models[index]
    source = archive.source(name)
    head = source.part(0, HEAD)
    for format_ in (TFLITE, CIRCLE):
        if format_.recognize(head, None):
            if manifest.model_types and manifest.model_types[index] != format_.name:
                raise ModelError(f"{name} is a {format_.name} model, but MANIFEST says {manifest.model_types[index]}")
            try:
                return load(format_, source, archive.path(name))
            except ModelError as error:
                raise ModelError(f"{name}: {error}") from error
    raise ModelError(f"{name} begins with {head[:8]!r}, expected a tflite or circle model")


def _check_ports(manifest: Manifest, models: Sequence[Subgraphs]) -> None:
    """Raise ModelError for a port that does not exist."""
    for port in manifest.inputs:
        _require(port, models, lambda m, s: len(m[s].inputs), "input")
    for port in manifest.outputs:
        _require(port, models, lambda m, s: len(m[s].outputs), "output")
    for connection in manifest.connections:
        _require(connection.source, models, lambda m, s: len(m[s].outputs), "output")
        for target in connection.targets:
            _require(target, models, lambda m, s: len(m[s].inputs), "input")


def _require(port: Port, models: Sequence[Subgraphs], count: Callable[[Subgraphs, int], int], side: str) -> None:
    if port.model >= len(models):
        raise ModelError(f"MANIFEST names {port}, but there are {len(models)} models")
    if port.subgraph >= len(models[port.model]):
        raise ModelError(f"MANIFEST names {port}, but the model has {len(models[port.model])} subgraphs")
    there = count(models[port.model], port.subgraph)
    if port.position >= there:
        raise ModelError(f"MANIFEST names {port}, but the subgraph has {there} {side}s")


FORMAT = Format("nnpackage", _recognize, _load, _unread)

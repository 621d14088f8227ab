"""Reading a package: its models, and whether its connections fit them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from onert.frontend.circle import FORMAT as CIRCLE
from onert.frontend.flatbuffer import Data
from onert.frontend.registry import HEAD, Format
from onert.frontend.tflite import FORMAT as TFLITE
from onert.ir import ModelError, Package, Port, Subgraphs

from .archive import Archive, Directory, open_zip
from .manifest import Manifest, parse_config, parse_manifest

MANIFEST = "metadata/MANIFEST"
_ZIP = b"PK\x03\x04"


def _recognize(head: bytes, path: Path | None) -> bool:
    if path is not None and path.is_dir():
        return (path / MANIFEST).is_file()
    return head.startswith(_ZIP)


def open_archive(content: Data, path: Path | None) -> Archive:
    """The files of a package."""
    if path is not None and path.is_dir():
        return Directory(path)
    return open_zip(content, MANIFEST)


def _load(content: Data, path: Path | None) -> Package:
    archive = open_archive(content, path)
    manifest = parse_manifest(archive.read(MANIFEST))
    config: dict[str, str] = {}
    for name in manifest.configs:
        config.update(parse_config(archive.read(f"metadata/{name}")))
    models = tuple(_model(archive, name, i, manifest) for i, name in enumerate(manifest.models))
    _check_ports(manifest, models)
    return Package(
        models,
        path.stem if path is not None else "",
        manifest.inputs,
        manifest.outputs,
        manifest.connections,
        config,
        manifest.models,
    )


def _model(archive: Archive, name: str, index: int, manifest: Manifest) -> Subgraphs:
    """One model, of the type that the manifest says where it does."""
    content = archive.read(name)
    head = bytes(content[:HEAD])
    for format_ in (TFLITE, CIRCLE):
        if format_.recognize(head, None):
            if manifest.model_types and manifest.model_types[index] != format_.name:
                raise ModelError(f"{name} is a {format_.name} model, MANIFEST says {manifest.model_types[index]}")
            try:
                return format_.load(content, archive.path(name)).model
            except ModelError as error:
                raise ModelError(f"{name}: {error}") from error
    raise ModelError(f"{name} begins with {head[:8]!r}, expected a tflite or circle model")


def _check_ports(manifest: Manifest, models: Sequence[Subgraphs]) -> None:
    """ModelError for a port that is not there."""
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
        raise ModelError(f"MANIFEST names {port}, there are {len(models)} models")
    if port.subgraph >= len(models[port.model]):
        raise ModelError(f"MANIFEST names {port}, the model has {len(models[port.model])} subgraphs")
    there = count(models[port.model], port.subgraph)
    if port.position >= there:
        raise ModelError(f"MANIFEST names {port}, the subgraph has {there} {side}s")


FORMAT = Format("nnpackage", _recognize, _load)

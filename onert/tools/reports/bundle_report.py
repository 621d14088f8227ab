"""A bundle's footprint: flash, RAM, stack, and multiply-adds layer by layer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from onert.bundle import Files

_HEADS = ("layer", "operation", "multiply-adds", "constants", "results")


def values(files: Files) -> dict[str, Any]:
    """The report's figures, in bytes and multiply-adds."""
    assert files.footprint is not None
    embedded = "weights" not in files.paths
    return {
        "flash": {
            "code": files.footprint.flash - (files.constants if embedded else 0),
            "constants": files.constants,
        },
        "ram": {"mutables": files.mutables, "activations": files.activations},
        "stack": files.footprint.stack,
        "multiply_adds": sum(layer.multiply_adds for layer in files.layers),
        "layers": [
            {
                "entry": layer.entry,
                "name": layer.name,
                "operation": layer.operation,
                "multiply_adds": layer.multiply_adds,
                "constants": layer.constants,
                "results": layer.results,
            }
            for layer in files.layers
        ],
    }


def lines(files: Files) -> Iterator[str]:
    """The report as text: totals, then a row for each layer."""
    found = values(files)
    flash, ram = found["flash"], found["ram"]
    yield f"  flash: {sum(flash.values())} bytes: code {flash['code']}, constants {flash['constants']}"
    yield f"  RAM: {sum(ram.values())} bytes: mutables {ram['mutables']}, activations {ram['activations']}"
    yield f"  stack: {found['stack']} bytes, not counting the C library's use"
    yield f"  multiply-adds: {found['multiply_adds']}"
    rows = [_HEADS]
    for layer in found["layers"]:
        figures = (str(layer[key]) for key in ("multiply_adds", "constants", "results"))
        rows.append((layer["name"], layer["operation"], *figures))
    widths = [max(len(row[at]) for row in rows) for at in range(len(_HEADS))]
    for row in rows:
        cells = [
            cell.ljust(w) if at < 2 else cell.rjust(w) for at, (cell, w) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  " + "  ".join(cells).rstrip()

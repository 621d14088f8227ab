"""What the programs that write models share: one network as a model, and the command line."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol, TypeVar

from model_writer import Graph, Model

NetT = TypeVar("NetT")


class Output(Protocol):
    """A tensor that a network returns."""

    at: int


def network(make: Callable[[NetT], Output], begin: Callable[[Graph], NetT]) -> bytes:
    """A model with one graph and one output."""
    model = Model()
    graph = model.graph()
    graph.outputs(make(begin(graph)).at)
    return model.done()


def write_models(description: str | None, models: Mapping[str, Callable[[], bytes]]) -> None:
    """Write the named models, or all, to a folder: `FOLDER [NAME ...]`."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(models))
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for name in options.names or models:
        path = options.folder / f"{name}.tflite"
        path.write_bytes(models[name]())
        print(path)

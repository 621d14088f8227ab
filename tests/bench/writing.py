"""The command line of the programs that write models."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path


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

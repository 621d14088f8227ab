"""Writes hostile files of every class at three sizes.

python -m hostile.make FOLDER
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from hostile import constants, graphs, packages, sharing, sizes

SIZES = ("small", "medium", "large")
CLASSES: dict[str, tuple[Callable[[int], bytes], tuple[int, int, int]]] = {
    **sharing.CLASSES,
    **graphs.CLASSES,
    **sizes.CLASSES,
    **constants.CLASSES,
    **packages.CLASSES,
}


def make(name: str, size: str) -> bytes:
    """One file."""
    build, numbers = CLASSES[name]
    return build(numbers[SIZES.index(size)])


def write_all(folder: Path) -> None:
    """Every class at every size."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in CLASSES:
        kind = "zip" if name in packages.CLASSES else "tflite"
        for size in SIZES:
            (folder / f"{name}_{size}.{kind}").write_bytes(make(name, size))


if __name__ == "__main__":
    write_all(Path(sys.argv[1]))

"""RAM of bundles against TFLite Micro's, in bytes: a row for each model, as in docs/bundles.md.

    python -m bundle.arena [--target TRIPLE] [MODEL...]          # in tests/

A bundle needs its mutables and activations; with `--overlap` inputs and outputs are part of the memory plan. For TFLite
Micro it is the arena size that its interpreter reports (the package tflite-micro). Without MODEL: the models of
`small_models.py`.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import onert

from .small_models import SMALL

TARGET = "thumbv7em-none-eabihf"
_ARENA = 64 << 20

_REPORT = f"""
import sys
from tflite_micro import runtime
for number, path in enumerate(sys.argv[1:]):
    print(f"model {{number}}", flush=True)
    runtime.Interpreter.from_file(path, arena_size={_ARENA}).print_allocations()
"""


def theirs(models: Sequence[Path]) -> list[int | None]:
    """The arena sizes in bytes; None for a model that fails there, and for all models after it."""
    command = [sys.executable, "-u", "-c", _REPORT, *map(str, models)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    said = re.split(r"^model \d+$", done.stdout, flags=re.MULTILINE)[1:]
    found = [re.search(r"Arena allocation total (\d+) bytes", text) for text in said]
    return [int(match.group(1)) if match else None for match in found] + [None] * (len(models) - len(found))


def ours(model: Path, target: str = TARGET, overlap: bool = False) -> int:
    """The bytes of RAM that a bundle needs, without its constants."""
    with tempfile.TemporaryDirectory() as folder:
        files = onert.bundle(onert.load(model), folder, name="model", target=target, overlap=overlap)
        return files.mutables + files.activations


def main() -> int:
    out = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    out.add_argument("models", type=Path, nargs="*", metavar="MODEL")
    out.add_argument("--target", metavar="TRIPLE", default=TARGET)
    options = out.parse_args()
    print("| model | RAM | with `--overlap` | TFLite Micro |\n|---|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        models = options.models or []
        if not models:
            for name, make in SMALL.items():
                models.append(Path(folder) / f"{name}.tflite")
                models[-1].write_bytes(make())
        for model in models:
            apart, together = (ours(model, options.target, overlap) for overlap in (False, True))
            print(f"| {model.stem} | {apart} | {together} | {theirs([model])[0] or '-'} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

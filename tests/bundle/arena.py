"""RAM of bundles beside TFLite Micro's, in bytes: a row for each model, as in docs/bundles.md.

    python -m bundle.arena [--target TRIPLE] [MODEL...]          # in tests/

A bundle takes its mutables and activations, with `--overlap` the same with inputs and outputs in the memory plan.
TFLite Micro's is the arena that its interpreter reports (the package tflite-micro). Without models it is the small ones
of `small_models.py`.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import onert

from .small_models import SMALL

TARGET = "thumbv7em-none-eabihf"
_ARENA = 64 << 20

_REPORT = f"""
import sys
from tflite_micro import runtime
runtime.Interpreter.from_file(sys.argv[1], arena_size={_ARENA}).print_allocations()
"""


def theirs(model: Path) -> int | None:
    """The bytes of the arena; None for a model that does not run there."""
    done = subprocess.run([sys.executable, "-c", _REPORT, str(model)], capture_output=True, text=True, check=False)
    found = re.search(r"Arena allocation total (\d+) bytes", done.stdout + done.stderr)
    return int(found.group(1)) if found else None


def ours(model: Path, target: str = TARGET, overlap: bool = False) -> int:
    """The bytes that a C program gives a bundle beside its constants."""
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
            print(f"| {model.stem} | {apart} | {together} | {theirs(model) or '-'} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

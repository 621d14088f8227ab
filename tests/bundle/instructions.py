"""Instructions and bytes of stack for one call of a bundle on each board, as in docs/bundles.md.

    python -m bundle.instructions [--board NAME] MODEL...          # in tests/

QEMU counts the instructions where the board has a clock to read them from (`-icount`), accurate to about forty.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import onert

from . import toys
from .boards import BOARDS, Board, run


def counted(model: Path, board: Board, folder: Path) -> tuple[int, int]:
    """The instructions of one call, and its bytes of stack."""
    package = onert.load(model)
    onert.bundle(package, folder, name="model", target=board.target, cpu=board.cpu)
    inputs = toys.random_inputs(onert.compile(package, backends=("reference",), num_threads=1).inputs)
    (result,) = run(board, folder, {"model": inputs}).values()
    return result.instructions, result.stack


def main() -> int:
    out = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    out.add_argument("models", type=Path, nargs="+", metavar="MODEL")
    out.add_argument("--board", action="append", metavar="NAME", choices=[board.name for board in BOARDS])
    options = out.parse_args()
    print("| model | board | instructions | stack |\n|---|---|---:|---:|")
    for model in options.models:
        for board in BOARDS:
            if options.board is not None and board.name not in options.board:
                continue
            with tempfile.TemporaryDirectory() as folder:
                try:
                    instructions, stack = counted(model, board, Path(folder))
                except AssertionError as error:  # too large for the board
                    print(f"{model.stem} on {board.name}: {str(error).splitlines()[-1]}", file=sys.stderr)
                    continue
            print(f"| {model.stem} | {board.name} | {instructions} | {stack} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

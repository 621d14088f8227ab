"""What the tests of broken files share: bytes changed at random, inputs, and mutants in a process of their own."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

import onert


def bytes_changed(rng: random.Random, content: bytes, most: int) -> bytes:
    """At most so many bytes replaced, or the end cut off."""
    if rng.random() < 0.2:
        return content[: rng.randrange(len(content))]
    raw = bytearray(content)
    for _ in range(rng.randint(1, most)):
        raw[rng.randrange(len(raw))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
    return bytes(raw)


def lines_of(probe: str, *arguments: str) -> list[str]:
    """What a module of this folder prints about its mutants, a line for each."""
    done = subprocess.run(
        [sys.executable, "-m", f"fuzz.{probe}", *arguments],
        cwd=Path(__file__).parent.parent,
        capture_output=True,
        text=True,
        timeout=1500,
        check=False,
    )
    lines = done.stdout.splitlines()
    assert done.returncode == 0, f"the process ended with {done.returncode} at seed {lines[-1:]}: {done.stderr[-2000:]}"
    return lines


def blank(info: onert.TensorInfo) -> Any:
    """An input of zeros or of empty strings, 1 where a dimension is open."""
    shape = tuple(d or 1 for d in info.shape)
    return np.full(shape, b"", object) if info.dtype.is_handle else np.zeros(shape, info.dtype.numpy)


def findings(lines: list[str]) -> list[str]:
    """Those that say of a seed, whatever else they say, that it ended neither in a result nor refused."""
    return [line for line in lines if line.split()[-1] not in ("result", "refused")]

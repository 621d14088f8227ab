"""Shared by the fuzz tests: random byte changes, inputs, and running mutants in a separate process."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

import onert


def bytes_changed(rng: random.Random, content: bytes, most: int) -> bytes:
    """The content with one to `most` bytes replaced, or with its end cut off."""
    if rng.random() < 0.2:
        return content[: rng.randrange(len(content))]
    raw = bytearray(content)
    for _ in range(rng.randint(1, most)):
        raw[rng.randrange(len(raw))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
    return bytes(raw)


def lines_of(probe: str, *arguments: str) -> list[str]:
    """The lines that a module of this folder prints about its mutants."""
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
    """An input of zeros or empty strings; dynamic dimensions are 1."""
    shape = tuple(d or 1 for d in info.shape)
    return np.full(shape, b"", object) if info.dtype.is_handle else np.zeros(shape, info.dtype.numpy)


def findings(lines: list[str]) -> list[str]:
    """The lines of seeds that ended neither in a result nor in a refusal."""
    return [line for line in lines if line.split()[-1] not in ("result", "refused")]

"""Loads, compiles and runs mutants of ONNX models in a separate process; see `probe`.

    python -m fuzz.onnx_probe FIRST COUNT

Prints a line for each seed as `probe` does.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import numpy as np
from fuzz.mutate_onnx import mutant
from fuzz.probe import report_mutants
from onnx.reference.ops import op_pool_common
from onnx_cases import cases, read

from onert.ir import Array

KINDS = ("simple", "pytorch-operator", "pytorch-converted")
NODES = (
    "test_if",
    "test_loop",
    "test_scan",
    "test_resize",
    "test_lstm",
    "test_ai_onnx_ml",
    "test_sequence",
    "test_opt",
)
EVERY = 15
"""One in this many of the other node cases is used."""


def _zeros(padded: Array, x_shape: Any, kernel: Any, strides: Any, out_shape: Any, *_: Any, **__: Any) -> Array:
    return np.zeros((*x_shape[:2], *out_shape), padded.dtype)


def corpus() -> list[bytes]:
    """Small models of ONNX's suite: node cases with graphs or many features, and a sample of the others."""
    found = [read(kind, name).model for kind in KINDS for name in sorted(cases(kind))]
    with patch.object(op_pool_common, "pool", _zeros):  # no results are wanted, and these take longer than all others
        names = sorted(cases("node"))
    nodes = sorted({*names[::EVERY], *(n for n in names if n.startswith(NODES))})
    return [m for m in (*found, *(read("node", n).model for n in nodes)) if len(m) < 60_000]


def main(arguments: Sequence[str]) -> None:
    report_mutants(arguments, corpus(), mutant)


if __name__ == "__main__":
    main(sys.argv[1:])

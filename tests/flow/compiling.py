"""Flows compiled for one thread."""

from __future__ import annotations

from pathlib import Path

import onert.flow as myelin
from onert.flow.library import Library


def compiled(flow: myelin.Flow | Path, library: Library | None = None) -> myelin.Network:
    return myelin.Compiler(library, num_threads=1).compile(flow)


def with_gradient(net: myelin.Network) -> tuple[myelin.Instance, myelin.Instance]:
    """An instance of `f`, and one of its gradient."""
    return net.cell("f").instance(), net.cell("gradients/f").instance()

"""The on-disk cache of compiled cells: a cell is looked up by its content, whichever flow it is part of."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from patience import PATIENCE

PROGRAM = """
import sys
import numpy as np
import onert.flow as myelin
from onert.backend.writers import WRITERS
from onert.compiler.program_cache import other_shapes

other_shapes.WORTH_CACHING = 0.0

def layer(flow, name, scale):
    f = flow.define(name)
    f.func.backprop = True
    x = f.var("x", shape=[1, 8])
    f.tanh(f.matmul(x, f.array("W", np.full((8, 8), scale, "f4"))), name="y")

flow = myelin.Flow()
for name, scale in zip(sys.argv[1:3:2], sys.argv[2:3:2]):
    layer(flow, name, float(scale))
net = myelin.Compiler(num_threads=1).compile(flow)
for name in sys.argv[1:3:2]:
    data, back = net.cell(name).instance(), net.cell(f"gradients/{name}").instance()
    data[f"{name}/x"] = np.ones((1, 8), "f4")
    data.compute()
    back[f"gradients/{name}/primal"] = data
    back[f"gradients/{name}/d_y:0"] = np.ones((1, 8), "f4")
    back.compute()
    print(round(data[f"{name}/y"][0, 0], 3), round(back[f"gradients/{name}/d_x"][0, 0], 3), end=" ")
print("compiled" if "llvmlite" in sys.modules else "kept")
if "--code" in sys.argv:
    print(net.cell("f").assembly(), net.cell("f").llvm_ir())
WRITERS.finish()
"""


def run(cache: Path, *arguments: str) -> str:
    """The output of a process that compiles a layer for each pair of a name and a weight in the arguments."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    environment.pop("ONERT_CACHE_DIR", None)
    command = [sys.executable, "-c", PROGRAM, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_cell_is_found_in_the_cache_by_its_content(tmp_path: Path) -> None:
    """A cell with other weights is not confused with it."""
    first, second = "0.664 0.447", "0.922 0.241"
    assert run(tmp_path, "f", "0.1") == f"{first} compiled"
    assert run(tmp_path, "f", "0.1") == f"{first} kept"
    assert run(tmp_path, "f", "0.2").startswith(second)


def test_a_cached_cell_shows_the_same_code(tmp_path: Path) -> None:
    made, cached = (run(tmp_path, "f", "0.1", "--code").splitlines() for _ in range(2))
    assert (made[0][-8:], cached[0][-4:]) == ("compiled", "kept")
    assert len(made) > 100
    assert made[1:] == cached[1:]

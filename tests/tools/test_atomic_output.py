"""Output files are written atomically: complete or not at all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from onert.backend import TensorInfo
from onert.exec.observers.minmax import MinMax
from onert.exec.observers.recording import ProfileFile
from onert.exec.observers.trace import Trace
from onert.ir import DType
from onert.ir.process.replacing import replace
from onert.tools.outputs import save
from onert.tools.reports.measure import PHASES, Measurements, write_report

KILLED = """
import os, signal, sys
from pathlib import Path
from onert.ir.process.replacing import replacing
with replacing(Path(sys.argv[1])) as file:
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_writer_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"before")
    ended = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert path.read_bytes() == b"before"


def test_a_failed_writer_leaves_only_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"before")
    with pytest.raises(TypeError):
        replace(path, (b"half", None))  # type: ignore[arg-type]
    assert path.read_bytes() == b"before"
    assert os.listdir(tmp_path) == ["out"]


def test_a_new_file_has_default_permissions(tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(b"")
    replace(tmp_path / "new", (b"whole",))
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_links_and_pipes_are_written_through(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "target")
    replace(link, (b"whole",))
    assert link.is_symlink()
    assert (tmp_path / "target").read_bytes() == b"whole"
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE) as reader:
        replace(pipe, (b"whole",))
        assert reader.stdout is not None
        assert reader.stdout.read() == b"whole"


PLANE = np.zeros((1, 4, 5, 3), np.uint8)
SOUND = np.zeros((1, 8), np.float32)


MEASURED = Measurements(dict.fromkeys(PHASES, 1.0), [1.0], memory={phase: {} for phase in PHASES})


def _saved(array: np.ndarray) -> Callable[[Path], None]:
    info = TensorInfo("y", DType.from_numpy(array.dtype), array.shape)
    return lambda path: save(path, [info], [array], 8000)


WRITERS: dict[str, Callable[[Path], None]] = {
    "out.npz": _saved(SOUND),
    "out.npy": _saved(SOUND),
    "out.h5": _saved(SOUND),
    "out.png": _saved(PLANE),
    "out.wav": _saved(SOUND),
    "trace.json": lambda path: Trace(path).close(),
    "profile.md": lambda path: ProfileFile(str(path)).close(),
    "ranges.json": lambda path: MinMax(path).close(),
    "times.csv": lambda path: write_report(path, MEASURED, ("onert", "m", "llvm")),
}


@pytest.mark.parametrize("name", WRITERS)
def test_outputs_traces_and_profiles_replace_the_old_file_when_complete(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(b"before")
    with path.open("rb") as before:  # still reads the old content, because the new file replaces it
        WRITERS[name](path)
        assert before.read() == b"before"
    assert path.stat().st_size
    assert path.read_bytes() != b"before"
    assert os.listdir(tmp_path) == [name]

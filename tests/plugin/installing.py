"""Installs packages from outside the project the way users do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from shared_material import REPOSITORY


def pip_install(source: Path, target: Path) -> None:
    """Have pip install the package in a folder into a directory, without the network."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"]
    done = subprocess.run(
        [*pip, "--no-build-isolation", "--no-deps", "--target", str(target), str(source)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def shell(site: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a process that finds the project and what is installed in `site`."""
    path = os.pathsep.join([str(site), str(REPOSITORY), str(REPOSITORY / "backends")])
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, check=False, env=environment, cwd=site
    )

"""Builds the wheel, installs it into fresh environments outside the tree, and tries it.

One environment contains only what the wheel requires, the other also the extras for images, sounds, videos and HDF5.
Packages that are installed here are linked into them, so that nothing is fetched; pip installs the missing ones.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
DIGITS = REPOSITORY / "nnpackage" / "examples" / "digits_float"
EXTRAS = ("hdf5", "images", "sounds", "video")
SCRIPT = """
from __future__ import annotations

import numpy as np

import onert


def digit(path: str, picture: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> int:
    package: onert.Package = onert.load(path)
    program: onert.Program = onert.compile(package, num_threads=1, executor="Linear")
    with onert.Execution(program) as execution:
        outputs = execution.run({"image": picture})
    scores = next(iter(outputs.values()))
    return int(np.argmax(scores))


def kept() -> int:
    return sum(entry.size for entry in onert.cache.entries() if entry.kind == "program")


try:
    onert.load("none.tflite")
except onert.ModelError as error:
    words: str = str(error)
options = onert.Options(backends=("builtin",))
"""
"""A script as a user may write it; `mypy --strict` must accept it."""


def requirements(found: Distribution, extras: Iterable[str] = ()) -> Iterator[str]:
    """The names of the distributions that one requires, including those for extras."""
    wanted = set(extras)
    for line in found.requires or ():
        name, _, condition = line.partition(";")
        extra = re.search(r"extra == ['\"]([\w-]+)['\"]", condition)
        if extra is None and "python_version" in condition and "<" in condition:
            continue
        if "platform" in condition or "implementation" in condition or "sys_" in condition:
            continue
        if extra is None or extra[1] in wanted:
            yield re.split(r"[\s<>=!~\[;(]", name.strip())[0]


def all_of(names: Iterable[str]) -> tuple[list[Distribution], list[str]]:
    """Distributions of these names and all that they require, and the names that are not installed here."""
    found: dict[str, Distribution] = {}
    missing: list[str] = []
    waiting = list(names)
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if name in found or name in missing:
            continue
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:
            missing.append(name)
            continue
        waiting.extend(requirements(found[name]))
    return list(found.values()), missing


def linked(found: Iterable[Distribution], site: Path) -> None:
    """Link the files of distributions into another environment's site-packages."""
    for each in found:
        tops = {file.parts[0] for file in each.files or () if file.parts[0] not in ("..", "__pycache__")}
        for top in tops:
            source = Path(str(each.locate_file(top)))
            if source.exists() and not (site / top).exists():
                (site / top).symlink_to(source.resolve() if not source.is_symlink() else source)


def environment(place: Path, wheel: Path, extras: tuple[str, ...]) -> Path:
    """Make a fresh environment with the wheel; returns its Python."""
    venv.create(place, with_pip=False, symlinks=True)
    python = place / "bin" / "python"
    site = next((place / "lib").glob("python*")) / "site-packages"
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "--python", str(python), "install"]
    output_of([*pip, "--no-deps", "--no-index", "--no-compile", str(wheel)])
    own = next(Distribution.discover(name="onert-toolkit", path=[str(site)]))
    found, missing = all_of(requirements(own, extras))
    linked(found, site)
    if missing:
        output_of([*pip, *missing])
    return python


def output_of(command: list[str], status: int = 0, **given: str) -> str:
    """What a command prints to both streams; it must end with the given status."""
    own = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME", "MYPYPATH")}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**own, **given}, cwd=given.get("PWD")
    )
    if done.returncode != status:
        raise SystemExit(
            f"{' '.join(command)} ends with {done.returncode}, expected {status}:\n{done.stdout}{done.stderr}"
        )
    return done.stdout + done.stderr


def require(text: str, *words: str) -> None:
    """Exit with the text unless it contains some words."""
    for word in words:
        if word not in text:
            raise SystemExit(f"{word!r} is missing in:\n{text}")


def try_out(python: Path, folder: Path, *, with_extras: bool) -> None:
    """Run an environment's commands from outside the tree, and a user's script."""
    variables = {"PWD": str(folder), "XDG_CACHE_HOME": str(folder / "cache")}
    binaries = python.parent
    model = shutil.copytree(DIGITS, folder / "digits")
    picture = str(model / "samples" / "3.png")
    require(output_of([str(python), "-c", "import onert; print(onert.__file__)"], **variables), str(binaries.parent))
    require(output_of([str(python), "-m", "onert", "--version"], **variables), "onert ")
    require(output_of([str(binaries / "onert_inspect"), str(model)], **variables), "FullyConnected")
    run = [str(binaries / "onert_run"), str(model)]
    if with_extras:
        printed = output_of(
            [*run, "--input", picture, "--show", "out.png", "--dump", "out.h5", "--backends", "builtin"], **variables
        )
        require(printed, "is read as the scores of 10 classes", "  1. 0.9", "     3")
        for name in ("out.png", "out.h5"):
            require(" ".join(path.name for path in folder.iterdir()), name)
    else:
        require(output_of(run, **variables), "random numbers, seed 0")
        for option in (["--input", picture], ["--load", "x.h5"], ["--input", "x.mp4"]):
            (folder / option[1]).touch()
            printed = output_of([*run, *option], status=1, **variables)
            require(printed, "pip install 'onert-toolkit[")
            require(str(len(printed.strip().splitlines())), "1")
    script = folder / "script.py"
    script.write_text(SCRIPT)
    output_of([str(python), str(script)], **variables)
    if not with_extras:
        mypy = [sys.executable, "-m", "mypy", "--strict", "--python-executable", str(python), "--cache-dir", os.devnull]
        output_of([*mypy, str(script)], **variables)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
        output_of(build, PWD=str(REPOSITORY))
        (wheel,) = folder.glob("*.whl")
        for extras in ((), EXTRAS):
            here = folder / ("with" if extras else "without")
            here.mkdir()
            python = environment(here / "environment", wheel, extras)
            try_out(python, here, with_extras=bool(extras))
            print(f"the wheel works {'with' if extras else 'without'} extras")


if __name__ == "__main__":
    main()

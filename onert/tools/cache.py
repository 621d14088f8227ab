"""`onert_cache`: list the cache of compiled code, limit its size, remove entries, and ship code with the package."""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from onert import __version__
from onert.ir import ExecutionError
from onert.ir.errors import printable
from onert.runtime import cache
from onert.runtime.shipping import ship

from .exits import UsageError, ended
from .options import option

_SIZES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_AGES = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_ANY = "any"


def parser() -> argparse.ArgumentParser:
    out = argparse.ArgumentParser(
        prog="onert_cache", description="List the cache of compiled code, limit its size, or remove entries."
    )
    option(out, "--directory", "the cache (default: ONERT_CACHE_DIR or ~/.cache/onert)", type=Path, default=None)
    out.add_argument("--version", action="version", version=f"onert {__version__}")
    commands = out.add_subparsers(dest="command", required=True)
    listing = commands.add_parser("ls", help="list programs, least recently used first: size, last use, model, options")
    option(listing, "--all", "list kernels and other entries too")
    removing = commands.add_parser("rm", help="remove entries whose keys start with the given prefixes, or all")
    option(removing, "prefixes KEY", "beginnings of keys, as ls prints them", nargs="*")
    option(removing, "--all", "remove every entry")
    limiting = commands.add_parser(
        "limit", help="show the limits of the cache; --size and --age set them, for every process"
    )
    option(limiting, "--size BYTES", "total size of all entries: 256M, 2G (default 2G)")
    option(limiting, "--age TIME", "how long an unused entry is kept: 12h, 30d, any (default any)")
    shipping = commands.add_parser(
        "ship", help="generate the kernels of models and store them beside this package, so that first runs are faster"
    )
    option(shipping, "models MODEL", "model files or nnpackages", nargs="+")
    option(
        shipping, "--targets", "comma-separated kinds of machines to generate for (default: this one)", default="native"
    )
    return out


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0 when done, 1 when the cache cannot be read or has no such entry, 2 for wrong usage."""
    return ended("onert_cache", partial(_run, parser().parse_args(arguments)))


def _run(options: argparse.Namespace) -> None:
    place = options.directory or cache.directory()
    if options.directory is not None and options.command != "limit":
        os.scandir(place).close()  # OSError unless it can be read
    if options.command == "ship":
        for path in ship(options.models, options.targets.split(",")):
            print(f"{path}: {_size(path.stat().st_size)}")
    elif options.command == "limit":
        _limit(options, place)
    elif options.command == "ls":
        _list(place, everything=options.all)
    else:
        _remove(options, place)


def _list(place: Path, *, everything: bool) -> None:
    found = cache.entries(place)
    for entry in found:
        if everything or entry.kind == "program":
            used = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.used))
            named = (
                f"  {entry.name or 'a model in memory'}" if entry.kind == "program" else f"  ({entry.kind or 'mark'})"
            )
            print(
                printable(
                    f"{entry.key[:16]}  {_size(entry.size):>9}  {used}{named}  {'  '.join(entry.options)}"
                ).rstrip()
            )
    programs = [entry for entry in found if entry.kind == "program"]
    print(
        f"{len(programs)} programs, {len(found)} entries, {_size(sum(e.size for e in found))} of "
        f"{_size(cache.limits(place).size or 0)} in {place}"
    )


def _remove(options: argparse.Namespace, place: Path) -> None:
    if options.all == bool(options.prefixes):
        raise UsageError("rm takes either keys or --all, expected one of them")
    keys = [entry.key for entry in cache.entries(place)]
    for prefix in options.prefixes:
        if not any(key.startswith(prefix) for key in keys):
            raise ExecutionError(f"no key in {place} begins with {prefix!r}")
    chosen = [key for key in keys if options.all or key.startswith(tuple(options.prefixes))]
    print(f"{cache.remove(chosen, place)} entries removed")


def _limit(options: argparse.Namespace, place: Path) -> None:
    size = None if options.size is None else _number(options.size, "--size", _SIZES)
    age = None if options.age is None else float("inf") if options.age == _ANY else _number(options.age, "--age", _AGES)
    now = cache.limits(place) if size is None and age is None else cache.set_limits(size=size, age=age, place=place)
    unused = "unused for any time" if now.age is None else f"unused for at most {_age(now.age)}"
    print(f"at most {_size(now.size or 0)}, {unused}, in {place}")


def _number(text: str, option: str, units: dict[str, int]) -> int:
    """Parse a number with a unit, such as `30d` or `256M`. Raises UsageError for anything else."""
    found = re.fullmatch(r"(\d{1,15})([A-Za-z]?)", text)
    if found is None or found[2] not in units:
        offered = ", ".join(unit for unit in units if unit)
        raise UsageError(f"{option} is {text!r}, expected a whole number, optionally followed by one of {offered}")
    return int(found[1]) * units[found[2]]


def _size(count: int) -> str:
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        width = 1 << (10 * ("KiB", "MiB", "GiB", "TiB").index(unit) + 10)
        if count >= width:
            return f"{count / width:.1f} {unit}"
    return f"{count} B"


def _age(seconds: float) -> str:
    for unit in ("w", "d", "h", "m"):
        if seconds >= _AGES[unit] and seconds % _AGES[unit] == 0:
            return f"{seconds / _AGES[unit]:g}{unit}"
    return f"{seconds:g}s"


if __name__ == "__main__":
    sys.exit(main())

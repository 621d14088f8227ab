"""`onert_cache`: look at the cache of compiled code, and remove from it."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from onert import __version__
from onert.backend.cache import Cache, default_directory
from onert.ir import ExecutionError

from .exits import UsageError, ended


def parser() -> argparse.ArgumentParser:
    out = argparse.ArgumentParser(prog="onert_cache", description="List the cache of compiled code, or remove from it.")
    out.add_argument(
        "--directory", type=Path, default=None, help="the cache (default: ONERT_CACHE_DIR or ~/.cache/onert)"
    )
    out.add_argument("--version", action="version", version=f"onert {__version__}")
    commands = out.add_subparsers(dest="command", required=True)
    commands.add_parser("ls", help="list the entries, the longest unused first")
    removing = commands.add_parser("rm", help="remove entries whose keys begin with the given prefixes, or all")
    removing.add_argument("prefixes", nargs="*", metavar="KEY")
    removing.add_argument("--all", action="store_true", help="remove every entry")
    return out


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0 when done, 1 when the cache cannot be read or has no such entry, 2 for wrong usage."""
    return ended("onert_cache", partial(_run, parser().parse_args(arguments)))


def _run(options: argparse.Namespace) -> None:
    directory = options.directory or default_directory(os.environ)
    if options.directory is not None:
        os.scandir(directory).close()  # OSError unless it can be read
    cache = Cache(directory)
    entries = cache.entries()
    if options.command == "ls":
        for entry in entries:
            used = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.used))
            print(f"{entry.key[:16]}  {entry.size:>10}  {used}")
        print(f"{len(entries)} entries, {sum(e.size for e in entries)} bytes in {cache.directory}")
        return
    if options.all == bool(options.prefixes):
        raise UsageError("rm wants either keys or --all")
    for prefix in options.prefixes:
        if not any(entry.key.startswith(prefix) for entry in entries):
            raise ExecutionError(f"no entry's key begins with {prefix!r} in {cache.directory}")
    chosen = [e.key for e in entries if options.all or e.key.startswith(tuple(options.prefixes))]
    print(f"{cache.remove(chosen)} entries removed")


if __name__ == "__main__":
    sys.exit(main())

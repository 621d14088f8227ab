"""`onert_cache`: look at the cache of compiled code, and remove from it."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from pathlib import Path

from onert.backend.cache import Cache, default_directory


def parser() -> argparse.ArgumentParser:
    out = argparse.ArgumentParser(prog="onert_cache", description=__doc__)
    out.add_argument(
        "--directory", type=Path, default=None, help="the cache (default: ONERT_CACHE_DIR or ~/.cache/onert)"
    )
    commands = out.add_subparsers(dest="command", required=True)
    commands.add_parser("ls", help="list the entries, the longest unused first")
    removing = commands.add_parser("rm", help="remove entries whose keys begin with the given prefixes, or all")
    removing.add_argument("prefixes", nargs="*", metavar="KEY")
    removing.add_argument("--all", action="store_true", help="remove every entry")
    return out


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    cache = Cache(options.directory or default_directory(os.environ))
    entries = cache.entries()
    if options.command == "ls":
        for entry in entries:
            used = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.used))
            print(f"{entry.key[:16]}  {entry.size:>10}  {used}")
        print(f"{len(entries)} entries, {sum(e.size for e in entries)} bytes in {cache.directory}")
        return 0
    if options.all == bool(options.prefixes):
        parser().error("rm wants either keys or --all")
    chosen = [e.key for e in entries if options.all or e.key.startswith(tuple(options.prefixes))]
    print(f"{cache.remove(chosen)} entries removed")
    return 0

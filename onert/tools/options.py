"""How the commands declare their options."""

from __future__ import annotations

import argparse
from typing import Any


def option(to: argparse._ActionsContainer, names: str, text: str, **rules: Any) -> None:
    """Add an option or argument, given its names and then the word for its value: `-l --load FILE`.

    Without such a word, and without rules, it is a flag.
    """
    *first, last = names.split()
    if not first or last.startswith("-"):
        first.append(last)
        rules = rules or {"action": "store_true"}
    else:
        rules["metavar"] = last
    to.add_argument(*first, help=text, **rules)


def add_threads(options: argparse._ActionsContainer, **rules: Any) -> None:
    """Add `--num_threads`, and `--threads` as a hidden synonym."""
    options.add_argument("--num_threads", **rules)
    hidden = {**rules, "default": argparse.SUPPRESS, "help": argparse.SUPPRESS}
    options.add_argument("--threads", dest="num_threads", **hidden)

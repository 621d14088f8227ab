"""Generates the commands' pages from their `--help`: `python tests/command_pages.py` writes them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from onert.tools.commands import COMMANDS, parser_of

FOLDER = Path(__file__).parent.parent / "docs" / "commands"


def page(command: str) -> str:
    """A command's page: usage, then a table for each group of its options."""
    return "\n".join(_lines(f"onert_{command}", COMMANDS[command], parser_of(command))) + "\n"


def _lines(name: str, what: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    yield f"# `{name}`"
    yield ""
    yield f"{what[0].upper()}{what[1:]}. `python -m onert {name.removeprefix('onert_')}` is the same command."
    for group in parser._action_groups:
        rows = [action for action in group._group_actions if action.help is not argparse.SUPPRESS]
        if not rows:
            continue
        yield from ("", f"## {(group.title or '').capitalize()}", "", "| | |", "|---|---|")
        for action in rows:
            if isinstance(action, argparse._SubParsersAction):
                for choice in action._choices_actions:
                    yield f"| `{choice.dest}` | {choice.help} |"
                continue
            value = "" if action.nargs == 0 else f" {_value(action)}"
            names = ", ".join(action.option_strings) or _value(action)
            help_text = (action.help or "").replace("|", "\\|").replace("%%", "%")
            yield f"| `{names}{value if action.option_strings else ''}` | {help_text} |"


def _value(action: argparse.Action) -> str:
    if isinstance(action.metavar, str):
        return action.metavar
    return "{" + ",".join(map(str, action.choices)) + "}" if action.choices else action.dest.upper()


if __name__ == "__main__":
    for command in COMMANDS:
        (FOLDER / f"onert_{command}.md").write_text(page(command), encoding="utf-8")

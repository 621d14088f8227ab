"""`python -m onert COMMAND`: run a command by its short name, or print shell completions."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from onert import __version__
from onert.ir.process import imports

from .exits import ended

COMMANDS = {
    "run": "load, compile and run a model",
    "inspect": "describe a model and how it runs on this machine",
    "bundle": "compile models ahead of time into an object file, weights and a C header",
    "bench": "compare the speed of onert with other runtimes",
    "serve": "serve models over HTTP and gRPC in the Open Inference Protocol",
    "host": "plan how many devices a set of models needs",
    "cache": "list the cache of compiled code, limit its size, or remove entries",
}
"""Each command's module in this package, and its description. In a shell the commands are `onert_run` and so on."""
SHELLS = ("bash", "zsh", "fish")


def parser() -> argparse.ArgumentParser:
    told = "\n".join(
        f"  {name:<10} {what}"
        for name, what in (*COMMANDS.items(), ("completion", "print a completion script for a shell"))
    )
    out = argparse.ArgumentParser(
        prog="python -m onert",
        description=f"A neural-network compiler and runtime.\n\ncommands:\n{told}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    out.add_argument("--version", action="version", version=f"onert {__version__}")
    out.add_argument("command", metavar="COMMAND", choices=(*COMMANDS, "completion"), help=argparse.SUPPRESS)
    out.add_argument("arguments", metavar="...", nargs=argparse.REMAINDER, help="the arguments of the command")
    return out


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status, 2 for wrong usage."""
    given = parser().parse_args(arguments)
    if given.command != "completion":
        status: int = _module(given.command).main(given.arguments)
        return status
    completing = argparse.ArgumentParser(prog="python -m onert completion")
    completing.add_argument("shell", choices=SHELLS)
    shell = completing.parse_args(given.arguments).shell
    return ended("onert", partial(print, completion(shell), end=""))


def parser_of(command: str) -> argparse.ArgumentParser:
    """The parser of a command's arguments."""
    found: argparse.ArgumentParser = _module(command).parser()
    return found


def _module(command: str) -> Any:
    return imports.module(f"onert.tools.{command}")


# ---- completion


def completion(shell: str) -> str:
    """A script with which a shell completes the commands' options, their choices, and file names."""
    write = {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell]
    return "".join(f"{line}\n" for command in COMMANDS for line in write(f"onert_{command}", _options(command)))


_Options = Sequence[tuple[tuple[str, ...], str, tuple[str, ...]]]
"""Names, help and choices of each option. Subcommands are the choices of an option without a name."""


def _options(command: str) -> _Options:
    found = []
    for action in parser_of(command)._actions:
        if action.option_strings and action.help is argparse.SUPPRESS:
            continue
        said = (action.help or "").replace("%%", "%").replace("\n", " ")
        found.append((tuple(action.option_strings), said, tuple(map(str, action.choices or ()))))
    return found


def _words(options: _Options) -> tuple[str, str]:
    """The names of all options, and the choices of those without a name."""
    names = (name for each, _, _ in options for name in each)
    return " ".join(names), " ".join(choice for each, _, choices in options if not each for choice in choices)


def _cases(options: _Options, completes: str) -> Iterator[str]:
    """The rest of a `case` statement on the word before, with a command that completes one of the choices."""
    for each, _, choices in options:
        if each and choices:
            yield f"    {'|'.join(each)}) {completes.format(' '.join(choices))}; return ;;"
    yield "  esac"


def _function(command: str, lines: Iterable[str], register: str) -> Iterator[str]:
    """A function of these lines, registered as what completes the command."""
    name = f"_{command}_completion"
    yield from (f"{name}() {{", *lines, "}", f"{register} {name} {command}")


def _bash(command: str, options: _Options) -> Iterator[str]:
    names, free = _words(options)
    lines = (
        "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}",
        '  case "$before" in',
        *_cases(options, 'COMPREPLY=($(compgen -W "{}" -- "$word"))'),
        f'  if [[ "$word" == -* ]]; then COMPREPLY=($(compgen -W "{names}" -- "$word"))',
        f'  else COMPREPLY=($(compgen -W "{free}" -- "$word") $(compgen -f -- "$word")); fi',
    )
    return _function(command, lines, "complete -o filenames -F")


def _zsh(command: str, options: _Options) -> Iterator[str]:
    names, free = _words(options)
    lines = (
        "  case ${words[CURRENT-1]} in",
        *_cases(options, "compadd -- {}"),
        f"  if [[ ${{words[CURRENT]}} == -* ]]; then compadd -- {names}",
        f"  else {f'compadd -- {free}; ' if free else ''}_files; fi",
    )
    return _function(command, lines, "compdef")


def _fish(command: str, options: _Options) -> Iterator[str]:
    for each, said, choices in options:
        text = said.replace("\\", "\\\\").replace("'", "\\'")
        listed = f" -x -a '{' '.join(choices)}'" if choices else ""
        if not each:
            if choices:
                yield f"complete -c {command}{listed}"
            continue
        named = " ".join(f"-l '{n[2:]}'" if n.startswith("--") else f"-s {n[1:]}" for n in each)
        yield f"complete -c {command} {named}{listed} -d '{text}'"

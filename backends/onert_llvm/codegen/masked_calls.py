"""Turns masked loads and stores into calls, for WebAssembly, which has no instructions for them.

LLVM expands each into a branch per lane, and one of its WebAssembly passes is quadratic in a function's blocks: a
kernel with two hundred took a minute. As calls of one function per type they add no blocks to the kernel.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_DECLARED = re.compile(r'^declare (\S.*) @"llvm\.masked\.(load|store)\.(\w+)\.p0"\((.*)\)$', re.MULTILINE)
_CALLED = re.compile(r'@"llvm\.masked\.(load|store)\.(\w+)\.p0"')


def as_calls(texts: Iterable[str]) -> list[str]:
    """The modules with such calls, followed by one that defines the called functions."""
    found: dict[tuple[str, str], tuple[str, str]] = {}
    made = []
    for text in texts:
        for result, kind, suffix, parameters in _DECLARED.findall(text):
            found[kind, suffix] = (result, parameters)
        made.append(_CALLED.sub(r'@"onert.masked.\1.\2"', text))
    defined = [_defined(kind, suffix, *types) for (kind, suffix), types in found.items()]
    return [*made, "\n".join(defined)] if defined else made


def _defined(kind: str, suffix: str, result: str, parameters: str) -> str:
    """A function that does what the intrinsic does, for memory of any alignment."""
    types = re.findall(r"<[^>]*>|\w+", parameters)
    names = [f"{t} %a{at}" for at, t in enumerate(types)]
    given = [f"{t} 1" if t == "i32" else name for t, name in zip(types, names, strict=True)]
    intrinsic = f'@"llvm.masked.{kind}.{suffix}.p0"'
    call = f"call {result} {intrinsic}({', '.join(given)})"
    body = f"  {call}\n  ret void" if result == "void" else f"  %r = {call}\n  ret {result} %r"
    return (
        f"declare {result} {intrinsic}({parameters})\n"
        f'define {result} @"onert.masked.{kind}.{suffix}"({", ".join(names)}) nounwind noinline {{\n{body}\n}}'
    )

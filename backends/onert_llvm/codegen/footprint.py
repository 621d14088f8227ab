"""The memory footprint of generated code, in bytes: loaded sections of an object, and stack."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from functools import partial

import llvmlite.binding as llvm
from attrs import frozen

from onert.ir.value import Value
from onert_llvm.target.isa import Isa

_UNLOADED = re.compile(
    r"^$|^\.(symtab|strtab|shstrtab|rela?\.|note|comment|debug|llvm|drectve|group|riscv|ARM\.attr|bss)|^__(bss|common)"
)
"""Names of an object's sections that take no flash: those that only the linker reads, and zero-initialised data."""


def loaded_bytes(code: bytes) -> int:
    """The bytes of an object's code and read-only data: everything that is loaded, without zero-initialised data."""
    if code.startswith(b"\0asm"):
        return sum(size for kind, size in _wasm_sections(code) if kind in _WASM_LOADED)
    found = llvm.ObjectFileRef.from_data(code)
    return sum(s.size() for s in found.sections() if not _UNLOADED.match((s.name() or b"").decode()))


_WASM_LOADED = (10, 11)
"""The numbers of WebAssembly's code and data sections."""


def _wasm_sections(code: bytes) -> Iterator[tuple[int, int]]:
    """The number and the size in bytes of each section."""
    at = 8
    while at < len(code):
        kind, size, shift = code[at], 0, 0
        at += 1
        while True:
            byte = code[at]
            at += 1
            size |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        yield kind, size
        at += size


@frozen
class _Words(Value):
    """How an architecture's assembly shows a function's stack use.

    `taken` are patterns of instructions that move the stack pointer by a number of bytes, `pushed` is that of ones that
    store lists of registers; `register_bytes` has the size of a register by its first letter. `called` finds callees,
    and `word` is the number of bytes that a call itself pushes.
    """

    taken: tuple[str, ...]
    pushed: str
    register_bytes: Mapping[str, int]
    called: str
    word: int = 0


_ARM = _Words(
    (r"subs?(?:\.w)?\s+sp, (?:sp, )?#(\d+)", r"str\s+\w+, \[sp, #-(\d+)\]!", r"subw\s+sp, sp, #(\d+)"),
    r"(?:push(?:\.w)?|vpush|stmdb\s+sp!,)\s*\{([^}]*)\}",
    {"r": 4, "l": 4, "p": 4, "s": 4, "d": 8, "q": 16},
    r"\bb\w*(?:\.w)?\s+([\w.$]+)",
)
_RISCV = _Words((r"addi\s+sp, sp, -(\d+)",), r"$^", {}, r"(?:call|tail)\s+([\w.$]+)")
_WORDS = {
    "x86_64": _Words(
        (r"subq\s+\$(\d+), %rsp", r"leaq\s+-(\d+)\(%rsp\), %rsp", r"andq\s+\$-(\d+), %rsp"),
        r"pushq\s+(%\w+)",
        {"%": 8},
        r"(?:callq?|jmp)\s+([\w.$]+)(?:@PLT)?$",
        8,
    ),
    "i686": _Words(
        (r"subl\s+\$(\d+), %esp", r"andl\s+\$-(\d+), %esp"),
        r"pushl\s+(%\w+)",
        {"%": 4},
        r"(?:calll?|jmp)\s+([\w.$]+)(?:@PLT)?$",
        4,
    ),
    "aarch64": _Words(
        (r"sub\s+(?:sp|x9), sp, #(\d+)(?!, lsl)", r"st[pr]\s+.*, \[sp, #-(\d+)\]!", r"sub\s+sp, sp, #(\d+), lsl #12"),
        r"$^",
        {},
        r"bl?\s+([\w.$]+)",
    ),
    "riscv32": _RISCV,
    "riscv64": _RISCV,
    "wasm32": _Words((r"i32\.const\s+(\d+)\n\s*i32\.sub",), r"$^", {}, r"call\s+([\w.$]+)"),
}


def stack_bytes(assembly: str, isa: Isa, entries: Collection[str], tasks: bool = False) -> int:
    """The largest stack use of a call of one of the entries, from the assembly of their module, without that of C
    library functions.

    With `tasks`, the entries also call the other functions by address.
    """
    words = _ARM if isa.architecture.startswith(("arm", "thumb")) else _WORDS[isa.architecture]
    bodies = _bodies(assembly)
    known: dict[str, int] = {}
    depth = partial(_depth, words, bodies, known)
    found = max((depth(entry) for entry in entries), default=0)
    return found + (max((depth(name) for name in bodies if name not in entries), default=0) if tasks else 0)


def _bodies(assembly: str) -> dict[str, str]:
    """The text of each function, by symbol."""
    found: dict[str, list[str]] = {}
    name = None
    for line in assembly.splitlines():
        label = re.match(r'"?([A-Za-z_][\w.$]*)"?:', line)
        if label is not None:
            name = label[1]
        if name is not None:
            found.setdefault(name, []).append(line.split("\t#")[0].split("\t@")[0].split("//")[0].strip())
    return {name: "\n".join(lines) for name, lines in found.items()}


def _depth(words: _Words, bodies: Mapping[str, str], known: dict[str, int], name: str) -> int:
    if name not in bodies:
        return 0
    if name not in known:
        known[name] = 0  # recursion is not counted again
        body = bodies[name]
        callees = set(re.findall(words.called, body, re.MULTILINE)) - {name}
        deepest = max((_depth(words, bodies, known, callee) for callee in callees), default=0)
        known[name] = words.word + _frame(words, body) + deepest
    return known[name]


def _frame(words: _Words, body: str) -> int:
    found = 0
    for pattern in words.taken:
        scale = 4096 if pattern.endswith("lsl #12") else 1
        found += scale * sum(map(int, re.findall(pattern, body)))
    for registers in re.findall(words.pushed, body):
        found += sum(words.register_bytes.get(name.strip()[:1], 0) for name in registers.split(","))
    return found

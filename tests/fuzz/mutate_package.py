"""Mutations of valid packages: archive bytes and fields, manifest, configuration and files."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import hostile_packages as hostile
from attrs import evolve, frozen
from zips import METHODS, Entry, pack, write_zip

from onert.compiler.settings.config_keys import NAMES

NUMBERS = (-1, 0, 1, 2, 0xFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFE, 0xFFFFFFFF)
WORDS = (
    "",
    "llvm",
    "reference",
    "reference;llvm",
    "os:abort",
    "evil:B",
    "0=reference",
    "0=evil:B",
    "Linear",
    "Parallel",
    "WIC",
    "1",
    "-1",
    "99999999999999999999",
    "1" * 5000,
    "../../victim",
    "/tmp",
    "\x1b[2J",
    "nan",
)
JSON_VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1,
    1 << 31,
    10**30,
    1e308,
    "",
    "0:0:0",
    "1:0:0",
    "0:0:99",
    "first.tflite",
    "../first.tflite",
    "/etc/passwd",
    "a\0b",
    "\ud800",
    "m" * 5000,
    [],
    ["0:0:0"],
    ["x.cfg"] * 3,
    {},
    {"from": "0:0:0", "to": ["1:0:0"]},
    {"from": "1:0:0", "to": ["0:0:0"]},
)
TEXTS = (
    b"Infinity",
    b"NaN",
    b"-Infinity",
    b"1e999",
    b"9" * 5000,
    b"[" * 3000,
    b'{"a":' * 3000,
    b"\xff",
    b"\xef\xbb\xbf",
    b"}",
)


@frozen
class Mutant:
    """A package as the bytes of an archive, or as a directory's files with some replaced by special ones."""

    archive: bytes | None = None
    files: Mapping[str, bytes] | None = None
    replaced: tuple[tuple[str, str], ...] = ()

    def write(self, folder: Path) -> bytes | Path:
        """What to load: the archive itself, or the directory written for it."""
        if self.archive is not None:
            return self.archive
        hostile.write_folder(folder, dict(self.files or {}))
        for name, kind in self.replaced:
            (folder / name).unlink(missing_ok=True)
            if kind == "gone":
                continue
            if kind == "unreadable":
                (folder / name).write_bytes(b"")
                (folder / name).chmod(0)
            else:
                hostile.IN_PLACE_OF_FILES[kind](folder / name)
        return folder


def base(chance: random.Random, models: Mapping[str, bytes]) -> dict[str, bytes]:
    """A valid package of one or two models, with or without a configuration and a test case."""
    names = list(models)[: chance.choice((1, 2))]
    keys: dict[str, Any] = {"major-version": "1", "minor-version": "3", "patch-version": "0", "models": names}
    keys["model-types"] = ["tflite"] * len(names)
    if len(names) == 2:
        keys |= {"pkg-inputs": ["0:0:0", "1:0:0"], "pkg-outputs": ["0:0:0", "1:0:0"], "model-connect": []}
    files = {name: models[name] for name in names}
    if chance.random() < 0.6:
        keys["configs"] = ["x.cfg"]
        files["metadata/x.cfg"] = b"BACKENDS=reference\nNUM_THREADS=1 # one\n"
    if chance.random() < 0.3:
        row = write_zip(
            Entry("0.npy", b"\x93NUMPY\1\0\x3a\0{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}  \n\0\0\0\0")
        )
        files |= {"metadata/tc/input.npz": row, "metadata/tc/expected.npz": row}
    return {"metadata/MANIFEST": json.dumps(keys).encode(), **files}


def mutant(seed: int, models: Mapping[str, bytes]) -> Mutant:
    """A package with one to three changes, determined by the seed."""
    chance = random.Random(seed)
    files = base(chance, models)
    kind = chance.randrange(8)
    if kind < 3:
        return Mutant(archive=_archive(chance, files, damaged=True))
    for _ in range(chance.choice((1, 1, 2, 3))):
        chance.choice((change_manifest, change_manifest_text, change_config, change_bytes))(chance, files)
    if kind < 6:
        return Mutant(archive=_archive(chance, files, damaged=kind == 5))
    if kind == 6:
        return Mutant(files=files)
    kinds = ("gone", "unreadable", *hostile.IN_PLACE_OF_FILES)
    names = chance.sample(sorted(files), chance.choice((1, 1, 2)))
    # At most one cycle of links in a package: its second link has a fixed name.
    replaced = {name: chance.choice(kinds) for name in names}
    if list(replaced.values()).count("a circle of links") > 1:
        replaced = dict(list(replaced.items())[:1])
    return Mutant(files=files, replaced=tuple(replaced.items()))


# ---- archives


def _archive(chance: random.Random, files: Mapping[str, bytes], *, damaged: bool) -> bytes:
    prefix = chance.choice(("", "", "", "p/", "../", "a/b/"))
    entries = [Entry(prefix + name, data, chance.choice(tuple(METHODS.values()))) for name, data in files.items()]
    if not damaged:
        return write_zip(*entries)
    at = chance.randrange(len(entries))
    kind = chance.randrange(6)
    if kind == 0:
        packed = bytearray(pack(entries[at].content, entries[at].method))
        for _ in range(chance.randint(1, 4)):
            packed[chance.randrange(len(packed))] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
        keep = chance.choice((len(packed), len(packed), chance.randrange(len(packed))))
        entries[at] = evolve(entries[at], packed=bytes(packed[:keep]))
    elif kind == 1:
        name = chance.choice(("size", "packed_size", "offset", "flags", "method", "checksum"))
        value = chance.choice(NUMBERS[1:])
        packed = pack(entries[at].content, entries[at].method)
        entries[at] = evolve(
            entries[at], packed=packed, **{name: value & 0xFFFF if name in ("flags", "method") else value}
        )
    elif kind == 2:
        entries.insert(
            at,
            evolve(entries[at], name=chance.choice((entries[0].name, "metadata/MANIFEST", "q/metadata/MANIFEST", ""))),
        )
    elif kind == 3:
        return write_zip(*entries, count=chance.choice((0, 1, 0xFFFF)), directory_at=chance.choice(NUMBERS[1:]))
    elif kind == 4:
        entries[at] = evolve(entries[at], wide=True)
    return _edited(chance, write_zip(*entries)) if kind >= 4 else write_zip(*entries)


def _edited(chance: random.Random, data: bytes) -> bytes:
    """Bytes replaced, cut out, duplicated or inserted; more often near the end, where the directory is."""
    raw = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        low = chance.choice((0, max(0, len(raw) - 400), max(0, len(raw) - 22)))
        at = chance.randrange(low, len(raw)) if len(raw) > low else 0
        kind = chance.randrange(4)
        if kind == 0 and at + 4 <= len(raw):
            raw[at : at + 4] = (chance.choice(NUMBERS) & 0xFFFFFFFF).to_bytes(4, "little")
        elif kind == 1 and raw:
            raw[min(at, len(raw) - 1)] = chance.randrange(256)
        elif kind == 2:
            del raw[at : at + chance.choice((1, 4, 100))]
        else:
            raw[at:at] = raw[at : at + chance.choice((1, 22, 300))]
    return bytes(raw)


# ---- files


def change_manifest(chance: random.Random, files: dict[str, bytes]) -> None:
    """Replace or remove one value anywhere in the manifest, or add a known key."""
    try:
        tree = json.loads(files["metadata/MANIFEST"])
    except (ValueError, RecursionError):
        return  # an earlier change broke the text
    node: Any = tree
    while isinstance(node, dict | list) and node:
        key = chance.choice(list(node)) if isinstance(node, dict) else chance.randrange(len(node))
        if not isinstance(node[key], dict | list) or not node[key] or chance.random() < 0.5:
            if chance.random() < 0.2:
                del node[key]
            else:
                node[key] = chance.choice(JSON_VALUES)
            break
        node = node[key]
    if isinstance(tree, dict) and chance.random() < 0.3:
        tree[chance.choice(("pkg-inputs", "pkg-outputs", "model-connect", "configs", "model-types", "x"))] = [
            chance.choice(JSON_VALUES)
        ]
    files["metadata/MANIFEST"] = json.dumps(tree).encode()


def change_manifest_text(chance: random.Random, files: dict[str, bytes]) -> None:
    raw = files["metadata/MANIFEST"]
    kind = chance.randrange(3)
    at = chance.randrange(len(raw) + 1)
    if kind == 0:
        files["metadata/MANIFEST"] = raw[:at] + chance.choice(TEXTS) + raw[at:]
    elif kind == 1:
        files["metadata/MANIFEST"] = raw[:at]
    else:
        files["metadata/MANIFEST"] = raw.replace(b'"1"', chance.choice(TEXTS), 1)


def change_config(chance: random.Random, files: dict[str, bytes]) -> None:
    names = (*sorted(NAMES), "OP_BACKEND_Conv2D", "OP_BACKEND_", "PATH", "", "\0")
    lines = [f"{chance.choice(names)}={chance.choice(WORDS)}" for _ in range(chance.randint(1, 3))]
    text = files.get("metadata/x.cfg", b"") + chance.choice(("\n", "\r", "\0", "\u2028")).join(lines).encode()
    files["metadata/x.cfg"] = text if chance.random() < 0.9 else (text + b"\n") * (100_000 // len(text) + 1)


def change_bytes(chance: random.Random, files: dict[str, bytes]) -> None:
    """Change a few bytes of one file, or replace it by another."""
    name = chance.choice(sorted(files))
    if chance.random() < 0.2:
        files[name] = files[chance.choice(sorted(files))]
    elif files[name]:
        files[name] = _edited(chance, files[name])

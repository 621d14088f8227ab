"""Hand-written binary files as text: bytes in hexadecimal, quoted strings, and comments after a semicolon."""

from __future__ import annotations

import json
import re
from pathlib import Path

GOLDEN = Path(__file__).parent / "golden"
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[0-9a-f]+|;.*|\s+')


def laid_out(text: str) -> bytes:
    """The bytes that a layout describes."""
    found = bytearray()
    for token in _TOKEN.findall(text):
        if token.startswith('"'):
            found += json.loads(token).encode()
        elif not token.startswith(";") and token.strip():
            found += bytes.fromhex(token)
    return bytes(found)


def golden(name: str) -> bytes:
    """The bytes of the golden layout of this name."""
    return laid_out((GOLDEN / f"{name}.txt").read_text(encoding="utf-8"))

"""Claims about errors: one line that is safe to print, whatever names a file has."""

from __future__ import annotations

import pytest

from onert.ir import BackendError, CompileError, ExecutionError, ModelError, OnertError
from onert.ir.errors import MAX_SENTENCE


@pytest.mark.parametrize("kind", [OnertError, ModelError, CompileError, ExecutionError, BackendError])
@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a\nb", "a\\nb"),
        ("\x1b[2J", "\\x1b[2J"),
        ("\0", "\\x00"),
        ("\ud800", "\\ud800"),
        ("\u202e", "\\u202e"),
        ("\u2028", "\\u2028"),
        ("größe · 名前", "größe · 名前"),
    ],
)
def test_what_a_terminal_would_act_on_is_escaped(kind: type[OnertError], name: str, shown: str) -> None:
    assert str(kind(f"tensor {name} is wrong")) == f"tensor {shown} is wrong"
    assert str(kind(f"model: {kind(name)}")) == f"model: {shown}"


@pytest.mark.parametrize("length", [MAX_SENTENCE + 1, 1 << 20])
def test_a_sentence_is_never_longer_than_a_few_pages(length: int) -> None:
    text = str(ModelError("begins " + "x" * length + " ends"))
    assert len(text) < MAX_SENTENCE + 100
    assert text.startswith("begins xxx")
    assert text.endswith("xxx ends")
    assert f"[{length + 12 - MAX_SENTENCE} characters left out]" in text

"""Myelin's names for features of x86 processors, and the code generator's target that they allow."""

from __future__ import annotations

import re
from collections.abc import Mapping

from onert.ir import CompileError
from onert.ir.process.cpus import detected_features

_REQUIRED: Mapping[str, tuple[str, ...]] = {
    "sse": (),
    "sse2": ("sse",),
    "sse3": ("sse2",),
    "sse4.1": ("sse3",),
    "sse4.2": ("sse4.1",),
    "avx": ("sse4.2",),
    "avx2": ("avx",),
    "fma3": ("avx",),
    "avx512": ("avx2", "fma3"),
}
"""The features, each with the features that it implies."""
_TARGETS = (("x86-64-v4", "avx512"), ("x86-64-v3", "avx2 fma3"), ("x86-64", "sse2"))
"""The targets of the code generator with the features that they need, most capable first."""
_NUMPY = {"sse4.1": "SSE41", "sse4.2": "SSE42", "avx512": "AVX512_SKX"}
_WORD = re.compile(r"([+-]?)([a-z0-9.]+)")


def host_features() -> frozenset[str]:
    """The features of this processor."""
    known = detected_features()
    # Newer versions of NumPy name features by the x86-64 level that introduced them; every level has SSE2.
    most = [n for n in _REQUIRED if known.get(_NUMPY.get(n, n.upper())) or (n == "avx512" and known.get("X86_V4"))]
    if known.get("X86_V3"):
        most += ["avx2", "fma3"]
    return frozenset(_closed([*most, "sse2"]))


def _closed(names: list[str]) -> set[str]:
    """Features with all that they imply."""
    found: set[str] = set()
    while names:
        name = names.pop()
        if name not in found:
            found.add(name)
            names += _REQUIRED[name]
    return found


def allowed(text: str, host: frozenset[str]) -> frozenset[str]:
    """Apply a text to the features of a processor.

    `-avx512-fma3` removes features, and those that imply them; `+avx` adds one, and those that it implies. If the first
    has no sign, the set starts empty. Raises CompileError for any other text.
    """
    words = _WORD.findall(text)
    if "".join(sign + name for sign, name in words) != text or not words:
        raise CompileError(f"processor features are given as {text!r}, expected e.g. '-avx512-fma3' or 'avx+sse3'")
    found = set(host) if words[0][0] else set()
    for sign, name in words:
        if name not in _REQUIRED:
            raise CompileError(f"'{name}' is not a processor feature, expected one of {', '.join(_REQUIRED)}")
        if sign == "-":
            found -= {other for other in _REQUIRED if name in _closed([other])}
        else:
            found |= _closed([name])
    return frozenset(found)


def target_of(text: str) -> str:
    """The most capable target that needs only allowed features; `native` if all of this processor's are allowed.

    Raises CompileError if the text is invalid, or if it leaves no target.
    """
    host = host_features()
    found = allowed(text, host)
    if found == host:
        return "native"
    for target, needed in _TARGETS:
        if found.issuperset(needed.split()):
            return target
    raise CompileError(f"processor features {text!r} leave no target to generate code for, expected at least sse2")

"""The models that are mutated."""

from __future__ import annotations

from shared_material import REPOSITORY, SHARED


def corpus() -> list[str]:
    """Small models of many kinds: the shipped ones, and those of other projects if available."""
    found = sorted((REPOSITORY / "nnpackage/examples").glob("*/*.tflite"))
    for folder in ("nnapi", "glow_tflite"):
        found += sorted(p for p in (SHARED / "conformance" / folder).glob("*.tflite") if p.stat().st_size < 20_000)
    return [str(path) for path in found]

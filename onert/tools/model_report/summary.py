"""A report as lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

from onert.ir.errors import printable

from .words import microseconds, nbytes, number, scaled, shape

MOST_KINDS = 6
MOST_NOTES = 8
WIDTH = 13
BESIDE = 58
"""The width of the left report in a side-by-side comparison."""
FORMATS = {
    "tflite": "TFLite",
    "circle": "circle",
    "nnpackage": "nnpackage",
    "onnx": "ONNX",
    "ort": "ONNX Runtime",
    "tnn": "TNN",
    "flow": "flow",
}


def summary_lines(report: dict[str, Any]) -> list[str]:
    """The most important facts about a model, in one or a few lines each."""
    return [printable(f"{labelled(what)} {words}".rstrip()) for what, words in _rows(report)]


def labelled(what: str) -> str:
    """A label padded to the width of the first column."""
    return f"{what:<{WIDTH}}"


def side_by_side(reports: Sequence[dict[str, Any]]) -> list[str]:
    """Two summaries side by side; a `*` marks differences."""
    left, right = (_by_question(report) for report in reports)
    lines = []
    for what in dict.fromkeys((*left, *right)):
        for at, (a, b) in enumerate(zip_longest(left.get(what, []), right.get(what, []), fillvalue="")):
            cut = a if len(a) <= BESIDE else f"{a[: BESIDE - 3]}..."
            mark = "*" if a != b else " "
            lines.append(printable(f"{what if at == 0 else '':<{WIDTH}} {cut:<{BESIDE}} {mark} {b}".rstrip()))
    return lines


def _by_question(report: dict[str, Any]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    last = ""
    for what, words in _rows(report):
        last = what or last
        found.setdefault(last, []).append(words)
    return found


def _rows(report: dict[str, Any]) -> Iterator[tuple[str, str]]:
    facts = report["facts"]
    yield from _model(report["model"])
    if report["error"]:
        yield "not compiled", report["error"]
    for what, ends in (("input", facts["inputs"]), ("output", facts["outputs"])):
        for at, end in enumerate(ends):
            yield (what if at == 0 else ""), _end(end)
        if not ends:
            yield what, "none"
        if what == "input" and report["open_shapes"]:
            yield "shapes", report["open_shapes"]
    for at, signature in enumerate(facts["signatures"]):
        words = f"{signature['key']}({', '.join(signature['inputs'])}) -> {', '.join(signature['outputs'])}"
        yield ("signature" if at == 0 else ""), words
    for at, each in enumerate(report["model"]["labels"]):
        first = ", ".join([*each["labels"][:4], *(["..."] if each["count"] > 4 else [])])
        yield ("labels" if at == 0 else ""), f"{each['count']} in {each['file']}: {first}"
    yield from _sizes(facts)
    yield from _where(report)
    yield from _time(report)


def _model(model: dict[str, Any]) -> Iterator[tuple[str, str]]:
    several = f", {model['models']} models" if model["models"] > 1 else ""
    graphs = f", {model['subgraphs']} subgraphs" if model["subgraphs"] > 1 else ""
    named = FORMATS.get(model["format"], model["format"])
    yield "model", f"{model['name']}: {named}, {nbytes(model['bytes'])}{several}{graphs}"
    if model["description"]:
        yield "", model["description"][:200]
    if model["task"]:
        size = model["image_size"]
        yield "task", model["task"] + (f", pictures of {size[0]} x {size[1]}" if size else "")


def _end(end: dict[str, Any]) -> str:
    q, held = end["quantization"], end["range"]
    words = f"{end['name']!r} {end['dtype']}{shape(end['shape'])}"
    if end["taken"] is not None:
        words += f", compiled for {shape(end['taken'])}"
    if held is not None:
        words += f", {number(held[0])} to {number(held[1])}"
    if q is not None and q["axis"] is None:
        words += f" (scale {number(q['scales'][0])}, zero point {q['zero_points'][0]})"
    return words + (f", also {', '.join(map(repr, end['other_names']))}" if end["other_names"] else "")


def _sizes(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    held = facts["parameters"]
    types = ", ".join(f"{name} {scaled(count, '')}" for name, count, _ in held["by_type"])
    yield "parameters", f"{scaled(held['elements'], '')} in {nbytes(held['bytes'])}" + (f": {types}" if types else "")
    operations = facts["operations"]
    kinds = [f"{count} {kind}" for kind, count in operations["by_kind"]]
    more = f", {len(kinds) - MOST_KINDS} more kinds" if len(kinds) > MOST_KINDS else ""
    yield "operations", f"{operations['count']}: {', '.join(kinds[:MOST_KINDS])}{more}" if kinds else "none"
    done = facts["arithmetic"]
    unknown = f"; not counting {done['unknown']} operations with dynamic shapes" if done["unknown"] else ""
    yield (
        "arithmetic",
        f"{scaled(done['multiply_adds'], '')} multiply-adds, {scaled(done['others'], '')} others{unknown}",
    )
    memory = facts["memory"]
    if memory is not None:
        arenas = "; ".join(
            f"{name} {nbytes(each['bytes'])} (lower bound of any plan: {nbytes(each['lower_bound'])})"
            for name, each in memory["arenas"].items()
        )
        words = (
            f"{nbytes(memory['constants'])} of constants, {nbytes(memory['inputs_and_outputs'])} of inputs and outputs"
        )
        yield "memory", words + (", plus those with dynamic shapes" if memory["open"] else "")
        if arenas:
            yield "", f"intermediate tensors: {arenas}"


def _where(report: dict[str, Any]) -> Iterator[tuple[str, str]]:
    runs = report["facts"]["runs"]
    if runs is None:
        return
    for at, each in enumerate(runs["backends"]):
        words = f"{each['name']} runs {_count(each['operations'], 'operation')} in {_count(each['steps'], 'step')}"
        yield ("runs on" if at == 0 else ""), words
    for at, note in enumerate(runs["notes"][:MOST_NOTES]):
        yield ("falls back" if at == 0 else ""), note
    if len(runs["notes"]) > MOST_NOTES:
        yield "", f"and {len(runs['notes']) - MOST_NOTES} more, listed by --html"
    yield "executor", f"{runs['executor']}, {_count(runs['threads'], 'thread')}"


def _count(many: int, what: str) -> str:
    return f"{many} {what}" if many == 1 else f"{many} {what}s"


def _time(report: dict[str, Any]) -> Iterator[tuple[str, str]]:
    estimate, profile, machine = report["estimate"], report["profile"], report["machine"]
    if estimate is not None:
        peaks = ", ".join(f"{scaled(peak, 'op/s')} {name}" for name, peak in machine["flops_per_second"].items())
        once = "; called subgraphs count once" if estimate["calls_subgraphs"] else ""
        measured = "" if profile is not None else "; --profile measures it"
        yield "expected", f"about {microseconds(estimate['us'])} per run (an estimate{once}{measured})"
        yield "", f"for {machine['processor']}: {peaks}, {scaled(machine['bytes_per_second'], 'B/s')}"
    if profile is not None:
        if "error" in profile:
            yield "measured", f"a run on random inputs fails: {profile['error']}"
            return
        words = f"{microseconds(profile['median_us'])} per run, the median of {profile['runs']} on random inputs"
        yield "measured", f"{words}; 90% take at most {microseconds(profile['p90_us'])}"
        yield from _slowest(profile)


def _slowest(profile: dict[str, Any]) -> Iterator[tuple[str, str]]:
    own = [piece for piece in profile["pieces"] if not piece["calls"]]
    whole = sum(piece["us"] for piece in own) or 1.0
    for at, piece in enumerate(sorted(own, key=lambda piece: -piece["us"])[:5]):
        yield (
            "slowest" if at == 0 else "",
            f"{piece['us'] / whole:>5.1%} {microseconds(piece['us']):>8}  {piece['label']} on {piece['backend']}",
        )

"""A memory plan as a diagram: tensors as bars over time and offset."""

from __future__ import annotations

from xml.sax.saxutils import escape

from onert.backend import ArenaPlan, Routine
from onert.backend.planner.liveness import Lifetimes, lifetimes
from onert.compiler.linearize import linearize
from onert.ir.errors import printable

WIDTH, HEIGHT = 1200, 640
_LEFT, _TOP, _BOTTOM = 90, 30, 40
_TICKS = 8
_COLOURS = ("#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2", "#edc948", "#b07aa1", "#9c755f")


def plan_svg(routine: Routine, plan: ArenaPlan, title: str) -> str:
    """An SVG document: time, in moments of a sequential run, runs to the right, offsets run upwards.

    Each bar is a tensor with its operand, type and offsets as a tooltip; tensors that share memory are one bar. The
    dashed line is the lower bound.
    """
    tensors, alive = bars(routine, plan)
    moments = max((int(m) + 1 for m in alive.last), default=1)
    top = max(plan.size, plan.lower_bound, 1)
    across, up = (WIDTH - _LEFT - 10) / moments, (HEIGHT - _TOP - _BOTTOM) / top
    ground = HEIGHT - _BOTTOM
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        'font-size="11">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{_LEFT}" y="18" font-size="14">{escape(title)}: {plan.size} bytes by {escape(plan.planner)}, '
        f"lower bound {plan.lower_bound}</text>",
    ]
    for tick in range(_TICKS + 1):
        offset = top * tick // _TICKS
        y = ground - offset * up
        lines.append(f'<line x1="{_LEFT}" x2="{WIDTH - 10}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        lines.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{offset}</text>')
    for number, operands in enumerate(tensors):
        place = plan.placements[operands[0]]
        first, last = int(alive.first[number]), int(alive.last[number])
        x, width = _LEFT + first * across, (last + 1 - first) * across
        y, height = ground - (place.offset + place.nbytes) * up, place.nbytes * up
        names = printable(", ".join(routine.subgraph.label(operand) for operand in operands))
        tip = f"{names}: {routine.subgraph.type(operands[0])}, bytes {place.offset} to {place.offset + place.nbytes}"
        lines.append(
            f'<rect class="tensor" x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" height="{height:.2f}" '
            f'fill="{_COLOURS[number % len(_COLOURS)]}" fill-opacity="0.8" stroke="white" stroke-width="0.5">'
            f"<title>{escape(tip)}, moments {first} to {last}</title></rect>"
        )
    y = ground - plan.lower_bound * up
    lines.append(
        f'<line x1="{_LEFT}" x2="{WIDTH - 10}" y1="{y:.1f}" y2="{y:.1f}" stroke="black" stroke-dasharray="6 4"/>'
    )
    lines.append(f'<text x="{_LEFT}" y="{HEIGHT - 12}">moment 0 to {moments - 1}</text>')
    return "\n".join((*lines, "</svg>", ""))


def bars(routine: Routine, plan: ArenaPlan) -> tuple[list[list[int]], Lifetimes]:
    """The groups of operands that share memory in a routine's arena, and their lifetimes in moments."""
    shared: dict[int, list[int]] = {}
    for operand, place in plan.placements.items():
        shared.setdefault(place.root, []).append(operand)
    tensors = list(shared.values())
    timeline = linearize([step.sequence for step in routine.steps], len(routine.subgraph.operations))
    return tensors, lifetimes(routine.subgraph, tensors, timeline.of_operation)

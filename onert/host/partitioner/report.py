"""A partitioned network as a table and as a picture."""

from __future__ import annotations

from xml.sax.saxutils import escape

from onert.compiler.report.tables import Table
from onert.host.dag import DAG, DAGNode
from onert.host.memory import type_bytes
from onert.ir.errors import printable

WIDTH, ROW, BOX_WIDTH, BOX_HEIGHT = 260, 130, 220, 78
_COLOURS = ("#dbe9f6", "#fde5cf", "#ddf0dc", "#f8dedd", "#e6e0f0", "#f7f0d0")


def partition_table(dag: DAG) -> Table:
    """A row for each sub-network, in topological order: its devices, memory, time, and received bytes."""
    rows = []
    for at in dag.order:
        node = dag.nodes[at]
        estimate = node.estimate
        rows.append(
            (
                node.name,
                node.backend_name,
                ",".join(map(str, node.logical_devices)),
                str(node.replication_count),
                "" if estimate is None else str(estimate.operations),
                str(node.size),
                "" if estimate is None else str(estimate.memory.constants),
                "" if estimate is None else str(estimate.memory.activations),
                "" if estimate is None else f"{estimate.seconds * 1e3:.3f}",
                str(sum(received_bytes(dag, at).values())),
            )
        )
    return Table(
        (
            "partition", "backend", "devices", "copies", "operations", "bytes", "constants", "activations", "ms",
            "received",
        ),
        tuple(rows),
    )  # fmt: skip


def received_bytes(dag: DAG, at: int) -> dict[int, int]:
    """The bytes that a sub-network reads from each of its parents."""
    node, makers = dag.nodes[at], dag.makers
    found: dict[int, int] = {}
    for position, value in enumerate(node.inputs):
        if value in makers:
            graph = node.package.model.primary
            found[makers[value]] = found.get(makers[value], 0) + type_bytes(graph.type(graph.inputs[position]))
    return found


def partition_svg(dag: DAG) -> str:
    """An SVG document with a box for each sub-network, below its parents and coloured by its first device; arrows are
    labelled with the bytes transferred."""
    level: dict[int, int] = {}
    for at in dag.order:
        level[at] = 1 + max((level[parent] for parent in dag.parents[at]), default=-1)
    rows: list[list[int]] = [[] for _ in range(max(level.values(), default=-1) + 1)]
    for at in dag.order:
        rows[level[at]].append(at)
    width = WIDTH * max(map(len, rows), default=1)
    place = {
        at: (WIDTH * column + 20, ROW * row + 40) for row, each in enumerate(rows) for column, at in enumerate(each)
    }
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {ROW * len(rows) + 30}" '
        'font-family="sans-serif" font-size="12">',
        '<defs><marker id="tip" markerWidth="8" markerHeight="8" refX="7" refY="3" orient="auto">'
        '<path d="M0,0 L7,3 L0,6 z"/></marker></defs>',
        f'<text x="20" y="22" font-size="15">{_text(dag.name)}</text>',
    ]
    for at in dag.order:
        for parent, nbytes in received_bytes(dag, at).items():
            (x1, y1), (x2, y2) = place[parent], place[at]
            x1, x2, y1 = x1 + BOX_WIDTH // 2, x2 + BOX_WIDTH // 2, y1 + BOX_HEIGHT
            lines.append(f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="black" marker-end="url(#tip)"/>')
            lines.append(f'<text x="{(x1 + x2) // 2 + 6}" y="{(y1 + y2) // 2 + 4}">{nbytes} bytes</text>')
    for at in dag.order:
        lines += _box(dag.nodes[at], *place[at])
    return "\n".join((*lines, "</svg>", ""))


def _box(node: DAGNode, x: int, y: int) -> list[str]:
    colour = _COLOURS[node.logical_devices[0] % len(_COLOURS)]
    devices = ", ".join(map(str, node.logical_devices))
    told = [f"{node.backend_name}, device {devices}", f"{node.size} bytes"]
    if node.estimate is not None:
        told.append(f"{node.estimate.operations} operations, {node.estimate.seconds * 1e3:.3g} ms")
    lines = [
        f'<rect class="partition" x="{x}" y="{y}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="6" fill="{colour}" '
        'stroke="black"/>',
        f'<text x="{x + 8}" y="{y + 18}" font-weight="bold">{_text(node.name)}</text>',
    ]
    lines += [f'<text x="{x + 8}" y="{y + 36 + 16 * at}">{_text(text)}</text>' for at, text in enumerate(told)]
    return lines


def _text(text: str) -> str:
    return escape(printable(text))

"""Plants faults drawn at random from all single changes of operators and constants in `onert/ir` and `onert/compiler`.

    python tests/mutation/sample.py --count 60 --seed 1
    python tests/mutation/sample.py --count 20 onert/compiler/planner

Changes are those of the usual mutation tools: a comparison for its neighbour, a sum for a difference, `and` for `or`, a
number for the next, a condition for its opposite. Docstrings, annotations and error sentences stay. A file's tests are
those that the planted faults of its folder name, with the operations' cases for `onert/ir/ops`.
"""

from __future__ import annotations

import argparse
import ast
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from mutation.run import REPOSITORY, run
from mutation.table import Fault, faults

FOLDERS = ("onert/ir", "onert/compiler")
OF_OPERATIONS = ("tests/ir", "tests/ops")
_COMPARED = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==", ast.Is: "is not",
    ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in",
}  # fmt: skip
_COMPUTED = {
    ast.Add: "-", ast.Sub: "+", ast.Mult: "+", ast.FloorDiv: "*", ast.Div: "*", ast.Mod: "+", ast.LShift: ">>",
    ast.RShift: "<<", ast.BitAnd: "|", ast.BitOr: "&",
}  # fmt: skip


def changes(source: str) -> Iterator[str]:
    """The source with one thing changed, each thing in turn; only what stays on its line."""
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line.encode()))
    raw = source.encode()

    def place(row: int, column: int) -> int:
        return starts[row - 1] + column

    for left, right, new in sorted(_spans(ast.parse(source), raw, place)):
        old = raw[left:right].decode()
        if "\n" not in old and "#" not in old and old.strip() != new:
            yield (raw[:left] + new.encode() + raw[right:]).decode()


def _spans(tree: ast.Module, raw: bytes, place: object) -> Iterator[tuple[int, int, str]]:
    """Where a change begins and ends, and what is put there."""
    at = place
    assert callable(at)
    skipped = {id(n) for part in _kept(tree) for n in ast.walk(part)}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARED:
            left, right = node.left, node.comparators[0]
            span = at(left.end_lineno, left.end_col_offset), at(right.lineno, right.col_offset)
            yield from _between(raw, *span, f" {_COMPARED[type(node.ops[0])]} ")
        elif isinstance(node, ast.BinOp) and type(node.op) in _COMPUTED:
            span = at(node.left.end_lineno, node.left.end_col_offset), at(node.right.lineno, node.right.col_offset)
            yield from _between(raw, *span, f" {_COMPUTED[type(node.op)]} ")
        elif isinstance(node, ast.BoolOp):
            other = " or " if isinstance(node.op, ast.And) else " and "
            for one, two in zip(node.values, node.values[1:], strict=False):
                span = at(one.end_lineno, one.end_col_offset), at(two.lineno, two.col_offset)
                yield from _between(raw, *span, other)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield at(node.lineno, node.col_offset), at(node.operand.lineno, node.operand.col_offset), ""
        elif isinstance(node, ast.Constant) and type(node.value) is int:
            span = at(node.lineno, node.col_offset), at(node.end_lineno, node.end_col_offset)
            yield (*span, str(node.value + 1))
        elif isinstance(node, ast.Constant) and type(node.value) is bool:
            span = at(node.lineno, node.col_offset), at(node.end_lineno, node.end_col_offset)
            yield (*span, str(not node.value))


def _between(raw: bytes, left: int, right: int, new: str) -> Iterator[tuple[int, int, str]]:
    """An operator between two operands, where no parenthesis lies there too."""
    if not set(raw[left:right].decode()) & set("()"):
        yield left, right, new


def _kept(tree: ast.Module) -> Iterator[ast.AST]:
    """What takes no part: annotations, sentences of errors, and what `__future__` and type checkers read."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
            yield node.annotation
        if isinstance(node, ast.FunctionDef) and node.returns is not None:
            yield node.returns
        if isinstance(node, ast.JoinedStr | ast.Raise):
            yield node
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            yield node


def drawn(folders: Sequence[str], count: int, seed: int) -> list[Fault]:
    """So many changes of the files in these folders, as faults."""
    every: list[tuple[str, str, str]] = []
    for folder in folders:
        root = REPOSITORY / folder
        for path in sorted(root.rglob("*.py") if root.is_dir() else [root]):
            source = path.read_text(encoding="utf-8")
            every += [(str(path.relative_to(REPOSITORY)), source, changed) for changed in changes(source)]
    chosen = random.Random(seed).sample(every, min(count, len(every)))
    return [
        Fault("sample", number, file, _difference(source, changed), source, changed, _tests(file))
        for number, (file, source, changed) in enumerate(chosen, 1)
    ]


def _difference(source: str, changed: str) -> str:
    """The changed line, with its number."""
    for number, (old, new) in enumerate(zip(source.splitlines(), changed.splitlines(), strict=True), 1):
        if old != new:
            return f"{number}: {old.strip()}  -->  {new.strip()}"
    raise ValueError("nothing is changed")


def _tests(file: str) -> tuple[str, ...]:
    """The tests that faults of this file, or of its folder, name."""
    known = faults()
    named = [f.tests for f in known if f.file == file] or [
        f.tests for f in known if Path(f.file).parent == Path(file).parent
    ]
    more = OF_OPERATIONS if file.startswith("onert/ir/") else ("tests/compiler",)
    return (*dict.fromkeys(test for tests in named for test in tests), *more)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", default=FOLDERS, help="folders or files (onert/ir onert/compiler)")
    parser.add_argument("-j", "--jobs", type=int, default=2, help="how many at a time (2)")
    parser.add_argument("-n", "--count", type=int, default=60, help="how many changes to draw (60)")
    parser.add_argument("--seed", type=int, default=0, help="of the drawing (0)")
    options = parser.parse_args(arguments)
    outcomes = run(drawn(options.folders, options.count, options.seed), options.jobs, checked=False)
    survived = [outcome.fault for outcome in outcomes if not outcome.noticed]
    print(f"\n{len(outcomes)} changes, {len(survived)} survived")
    for fault in survived:
        print(f"  {fault.file}:{fault.breaks}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Plants random faults, drawn from all changes that Cosmic Ray's operators make to `onert/ir` and `onert/compiler`.

    python tests/mutation/sample.py --count 60 --seed 1
    python tests/mutation/sample.py --count 20 onert/backend/planner

A file is drawn with a probability proportional to its size, then a place in it, then one of Cosmic Ray's changes for
that place: another comparison or operation, a neighbouring number, `and` for `or`, a negated condition, a loop without
iterations, an exception that is not caught. Annotations, decorators and error messages are spared: the first two change
nothing or everything, and messages are compared where they matter.

A change is tried with tests that execute the changed line (`reach`), those of files that name the module first, for
`--seconds` of processor time. If none are known, the tests are those that name the module and those that the planted
faults of its folder name.
"""

from __future__ import annotations

import argparse
import ast
import random
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import parso.tree  # first: otherwise cosmic_ray imports it halfway
from attrs import evolve, frozen
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from mutation.reach import Reached, chosen, measured
from mutation.run import REPOSITORY, run
from mutation.table import Fault, faults

FOLDERS = ("onert/ir", "onert/compiler")
OF_OPERATIONS = ("tests/ir", "tests/ops")
SPARED = {"annassign", "tfpdef", "decorator", "decorators", "raise_stmt", "fstring", "import_from", "import_name"}
"""Kinds of syntax that are not changed."""

Place = tuple[int, int]
"""Line from 1, column from 0."""


@frozen
class Change:
    """One occurrence, by number, of a Cosmic Ray operator in a file."""

    operator: str
    occurrence: int

    def made(self, source: str) -> str:
        """The source with this change alone."""
        return str(mutate_code(source, get_operator(self.operator)(), self.occurrence))


def places(source: str) -> dict[Place, list[Change]]:
    """The places of a source that can be changed, each with its changes."""
    found: dict[Place, list[Change]] = {}
    nodes = list(ast_nodes(get_ast(source)))
    left_out = {id(node) for node in nodes if _is_spared(node)}
    for name in operator_names():
        kind = get_operator(name)
        if kind.arguments():
            continue
        operator, count = kind(), 0
        for node in nodes:
            for begin, _ in operator.mutation_positions(node):
                if id(node) not in left_out:
                    found.setdefault(begin, []).append(Change(name, count))
                count += 1
    return found


def _is_spared(node: parso.tree.NodeOrLeaf | None) -> bool:
    """Whether a node is part of spared syntax or of a result's annotation."""
    while node is not None:
        parent = node.parent
        if node.type in SPARED or (parent is not None and parent.type == "funcdef" and parent.annotation is node):
            return True
        node = parent
    return False


def drawn(folders: Sequence[str], count: int, seed: int) -> list[Fault]:
    """`count` changes of the files in these folders, as faults."""
    roots = [REPOSITORY / folder for folder in folders]
    paths = [path for root in roots for path in sorted(root.rglob("*.py") if root.is_dir() else [root])]
    sizes = [path.stat().st_size for path in paths]
    left: dict[Path, list[list[Change]]] = {}
    source, found = random.Random(seed), list[Fault]()
    while len(found) < count and any(sizes):
        (at,) = source.choices(range(len(paths)), sizes)
        if paths[at] not in left:
            every = sorted(places(paths[at].read_text(encoding="utf-8")).items())
            left[paths[at]] = [changes for _, changes in every]
        if left[paths[at]]:
            changes = left[paths[at]].pop(source.randrange(len(left[paths[at]])))
            found.append(_fault(len(found) + 1, paths[at], source.choice(changes)))
        else:
            sizes[at] = 0
    return found


def reaching(fault: Fault, reached: Mapping[str, Reached], seconds: float) -> Fault:
    """The fault with the tests that execute what it changes, if known."""
    old, new = ((REPOSITORY / fault.file).read_text(encoding="utf-8"), fault.new)
    differ = [
        at for at, pair in enumerate(zip(old.splitlines(), new.splitlines(), strict=False), 1) if pair[0] != pair[1]
    ]
    first = [test for test in fault.tests if test.endswith(".py")]
    found = chosen(reached, fault.file, _statement(old, differ), first, seconds)
    return evolve(fault, tests=tuple(found)) if found else fault


def _statement(source: str, lines: Sequence[int]) -> set[int]:
    """These lines, and the first lines of their smallest enclosing statements, which is what coverage counts."""
    found = set(lines)
    for line in lines:
        around = [
            n
            for n in ast.walk(ast.parse(source))
            if isinstance(n, ast.stmt) and n.lineno <= line <= (n.end_lineno or 0)
        ]
        found |= {n.lineno for n in around[-1:] if not isinstance(n, ast.FunctionDef | ast.ClassDef)}
    return found


def _fault(number: int, path: Path, change: Change) -> Fault:
    source, file = path.read_text(encoding="utf-8"), str(path.relative_to(REPOSITORY))
    changed = change.made(source)
    return Fault("sample", number, file, _difference(source, changed), source, changed, _tests(file))


def _difference(source: str, changed: str) -> str:
    """The changed line, with its number."""
    for number, (old, new) in enumerate(zip(source.splitlines(), changed.splitlines(), strict=False), 1):
        if old != new:
            return f"{number}: {old.strip()}  -->  {new.strip()}"
    raise ValueError("nothing is changed")


def _tests(file: str) -> tuple[str, ...]:
    """The tests that name this module, then those named by the planted faults of this file, or else of its folder."""
    known, module = faults(), file.removesuffix(".py").replace("/", ".")
    importing = re.compile(
        rf"\b{re.escape(module)}\b|from {re.escape(module.rpartition('.')[0])} import .*\b{Path(file).stem}\b"
    )
    mine = [
        p for p in sorted((REPOSITORY / "tests").rglob("test_*.py")) if importing.search(p.read_text(encoding="utf-8"))
    ]
    named = [f.tests for f in known if f.file == file] or [
        f.tests for f in known if Path(f.file).parent == Path(file).parent
    ]
    more = OF_OPERATIONS if file.startswith("onert/ir/") else ("tests/compiler",)
    first = (str(path.relative_to(REPOSITORY)) for path in mine)
    return tuple(dict.fromkeys([*first, *(test for tests in named for test in tests), *more]))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "folders", nargs="*", default=FOLDERS, help="folders or files (default: onert/ir onert/compiler)"
    )
    parser.add_argument("-j", "--jobs", type=int, default=2, help="number of parallel workers (default: 2)")
    parser.add_argument("-n", "--count", type=int, default=60, help="number of changes to draw (default: 60)")
    parser.add_argument("--seconds", type=float, default=60.0, help="of tests for each change (default: 60)")
    parser.add_argument("--seed", type=int, default=0, help="of the random generator (default: 0)")
    options = parser.parse_args(arguments)
    reached = measured(options.jobs)
    changes = [reaching(each, reached, options.seconds) for each in drawn(options.folders, options.count, options.seed)]
    outcomes = run(changes, options.jobs, {}, checked=False)
    survived = [outcome.fault for outcome in outcomes if not outcome.noticed]
    print(f"\n{len(outcomes)} changes, {len(survived)} survived")
    for fault in survived:
        print(f"  {fault.file}:{fault.breaks}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

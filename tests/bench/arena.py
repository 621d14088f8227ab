"""Compares planned arenas with their lower bound and other planners, or with LiteRT's. Prints Markdown tables.

    python tests/bench/arena.py [--backend NAME] [MODEL ...]
    python tests/bench/arena.py --litert [MODEL ...]

Without MODEL: all shared models that compile. LiteRT places inputs and outputs in its arena while onert leaves them to
the caller, so their sizes are added here. LiteRT's arena is the span of the addresses of its non-constant tensors, with
the built-in kernels and no delegate.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from attrs import frozen

import onert
from onert.backend.registry import load_backends
from onert.compiler.settings.config_keys import EXECUTORS

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from shared_material import SHARED

ALIGNMENT = 64
COMPARED = ("WIC", "GreedyBySize", "GreedyByBreadth", "Recycle", "FirstFit", "Bump")


@frozen
class Row:
    """The arena sizes in bytes, by planner, and their lower bound for one model and executor."""

    model: str
    executor: str
    bound: int
    sizes: dict[str, int]

    @property
    def met(self) -> bool:
        return self.sizes["Best"] == self.bound


def models() -> list[Path]:
    """The shared models."""
    return sorted(p for p in (SHARED / "models").rglob("*") if p.suffix in (".tflite", ".circle"))


def measured(path: Path, executor: str, backend: str, planners: Sequence[str]) -> Row | None:
    """The arena sizes of a model's entry, or None if the model does not compile."""
    sizes = {}
    bound = 0
    try:
        package = onert.load(path)
        for planner in planners:
            program = onert.compile(package, backends=(backend,), executor=executor, planner=planner, num_threads=2)
            sizes[planner] = sum(plan.size for plan in program.memory_plan.values())
            bound = sum(plan.lower_bound for plan in program.memory_plan.values())
    except onert.OnertError as error:
        print(f"{path.name}: {error}", file=sys.stderr)
        return None
    return Row(path.stem, executor, bound, sizes)


def bounds(paths: Sequence[Path], backend: str) -> Iterator[str]:
    """The table of arena sizes and their lower bounds."""
    planners = ("Best", *COMPARED)
    yield f"| model | executor | lower bound | {' | '.join(planners)} |"
    yield f"|---|---|---:|{'---:|' * len(planners)}"
    rows = [row for path in paths for executor in EXECUTORS if (row := measured(path, executor, backend, planners))]
    for row in rows:
        yield f"| {row.model} | {row.executor} | {row.bound} | {' | '.join(str(row.sizes[p]) for p in planners)} |"
    for executor in EXECUTORS:
        own = [row for row in rows if row.executor == executor]
        counts = (f"{p} {sum(r.sizes[p] == r.bound for r in own)}" for p in planners)
        yield f"\n{executor}: of {len(own)} models these plans equal the bound: {', '.join(counts)}"


def litert_arena(path: Path) -> int:
    """The span in bytes of the addresses of LiteRT's planned tensors.

    Raises ValueError if LiteRT plans some of them only during the run, and RuntimeError if it rejects the model.
    """
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(
        model_path=str(path), experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    )
    interpreter.allocate_tensors()
    graph = onert.load(path).model.primary
    spans = []
    for index, operand in enumerate(graph.operands):
        planned = index in graph.definitions or index in graph.inputs
        if planned and operand.type.is_static and index < len(interpreter.get_tensor_details()):
            view = interpreter.tensor(index)()
            if isinstance(view, np.ndarray):  # a scalar is returned as a copy, so its address is unknown
                spans.append((view.ctypes.data, view.ctypes.data + view.nbytes))
    size = max(end for _, end in spans) - min(start for start, _ in spans)
    if size > sum(end - start + ALIGNMENT for start, end in spans):
        raise ValueError("its tensors are not in one contiguous arena")
    return size


def beside_litert(paths: Sequence[Path], backend: str) -> Iterator[str]:
    yield "| model | onert: arena | lower bound | with inputs and outputs | LiteRT: arena | onert / LiteRT |"
    yield "|---|---:|---:|---:|---:|---:|"
    for path in paths:
        program = onert.compile(onert.load(path), backends=(backend,))
        plan = program.memory_plan.get("host")
        size, bound = (plan.size, plan.lower_bound) if plan is not None else (0, 0)
        ends = sum(info.type.nbytes for info in (*program.inputs, *program.outputs) if info.type.is_static)
        try:
            with ProcessPoolExecutor(1) as alone:  # reading an unplanned tensor may crash the process
                theirs = alone.submit(litert_arena, path).result()
        except (RuntimeError, ValueError) as error:
            print(f"{path.name}: LiteRT plans no arena: {error}", file=sys.stderr)
            continue
        ratio = (size + ends) / theirs
        yield f"| {path.stem} | {size} | {bound} | {size + ends} | {theirs} | {ratio:.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", type=Path, metavar="MODEL")
    parser.add_argument("--backend", default="llvm", choices=[b.name for b in load_backends()])
    parser.add_argument("--litert", action="store_true", help="compare with LiteRT's arena")
    options = parser.parse_args()
    table = beside_litert if options.litert else bounds
    for line in table(options.models or models(), options.backend):
        print(line)


if __name__ == "__main__":
    main()

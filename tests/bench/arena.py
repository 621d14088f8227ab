"""Planned memory beside LiteRT's: a table in Markdown.

    python tests/bench/arena.py MODEL.tflite ...

LiteRT keeps inputs and outputs in its arena, onert leaves them to the caller; they are added here. LiteRT's
arena is the span of addresses of its tensors that are no constants, with its built-in kernels and no delegate.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from ai_edge_litert.interpreter import Interpreter, OpResolverType

import onert


def litert_arena(path: Path) -> int:
    """Bytes from the first to the last address of LiteRT's tensors that it plans."""
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
            spans.append((view.ctypes.data, view.ctypes.data + view.nbytes))
    return max(end for _, end in spans) - min(start for start, _ in spans)


def rows(paths: list[Path]) -> Iterator[str]:
    yield "| model | onert: arena | lower bound | with inputs and outputs | LiteRT: arena | onert / LiteRT |"
    yield "|---|---:|---:|---:|---:|---:|"
    for path in paths:
        program = onert.compile(onert.load(path), backends=("reference",))
        plan = program.memory_plan.get("host")
        size, bound = (plan.size, plan.lower_bound) if plan is not None else (0, 0)
        ends = sum(info.type.nbytes for info in (*program.inputs, *program.outputs) if info.type.is_static)
        theirs = litert_arena(path)
        ratio = (size + ends) / theirs
        yield f"| {path.stem} | {size} | {bound} | {size + ends} | {theirs} | {ratio:.2f} |"


if __name__ == "__main__":
    for line in rows([Path(argument) for argument in sys.argv[1:]]):
        print(line)

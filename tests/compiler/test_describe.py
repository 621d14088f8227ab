"""Tables printed by the tools, and specialising a program from several threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from onert.backend import Program
from onert.compiler import Options, compile
from onert.compiler.report.tables import memory_lines, operations_table, plan_table
from onert.ir import Package, Subgraphs

from .toy import Draft, Run, ToyAdd, ToyBackend, ToyFlat, ToyScale


def compiled() -> Program:
    d = Draft()
    x = d.input(None, 2, name="x")
    flat = d.op(ToyFlat(), d.op(ToyScale(), x))
    graph = d.graph(d.op(ToyAdd(), flat, d.op(ToyScale(3.0), flat)))
    return compile(Package((Subgraphs((graph,)),)), Options(), [ToyBackend("fast", [ToyScale]), ToyBackend("builtin")])


def test_the_operations_table_lists_steps_backends_and_operands() -> None:
    program = compiled().specialize({0: (2, 2)})
    assert str(operations_table(program.main)).splitlines() == [
        "step  backend  operation             kind      reads  makes",
        "0     fast     operation 0 ToyScale  ToyScale  %0     %1",
        "1     builtin  operation 1 ToyFlat   ToyFlat   %1     %2",
        "2     fast     operation 2 ToyScale  ToyScale  %2     %3",
        "3     builtin  operation 3 ToyAdd    ToyAdd    %2 %3  %4",
    ]


def test_the_plan_table_lists_offsets_and_shared_memory() -> None:
    program = compiled().specialize({0: (2, 2)})
    assert str(plan_table(program.main.subgraph, program.memory_plan["host"])).splitlines() == [
        "tensor  from  to  bytes  type       shares",
        "%1      0     16  16     f32[2, 2]",
        "%2      0     16  16     f32[4]     %1",
        "%3      64    80  16     f32[4]",
    ]
    assert memory_lines(program) == ("host: 128 bytes for 3 tensors by Best, at least 128 needed",)


def test_threads_may_specialize_a_program_concurrently() -> None:
    program = compiled()
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda i: program.specialize({0: (1 + i % 3, 2)}), range(48)))
    again = [program.specialize({0: (1 + i, 2)}) for i in range(3)]
    assert all(p is again[i] for i, p in enumerate(program.specialize({0: (1 + i, 2)}) for i in range(3)))
    for p in found[:3]:
        rows = p.inputs[0].shape[0] or 0
        np.testing.assert_array_equal(Run(p)(np.ones((rows, 2), np.float32))[0], np.full(2 * rows, 8, np.float32))

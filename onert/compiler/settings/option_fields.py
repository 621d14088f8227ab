"""The fields of `Options` as typed keywords, so that type checkers know `onert.compile(package, backends=...)`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from os import PathLike
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from onert.compiler.extension import Extension


class OptionFields(TypedDict, total=False):
    """Any of the fields of `Options`."""

    backends: Sequence[str]
    executor: str
    num_threads: int
    planner: str
    op_backend_allops: str | None
    op_backend: Mapping[str, str]
    op_backend_map: Mapping[int, str]
    signature: str | None
    input_shapes: Mapping[int | str, Sequence[int]] | Mapping[int, Sequence[int]] | Mapping[str, Sequence[int]]
    max_iterations: int | None
    max_memory: int | None
    max_work: int | None
    optimize: bool
    disabled_passes: Set[str]
    extensions: Sequence[str | Extension]
    target: str
    precision: str
    tune: float | None
    extra: Mapping[str, str]
    workspace_dir: str | PathLike[str]
    use_scheduler: bool
    tracing: bool
    profiling: bool
    minmax_dump: bool
    trace_filepath: str | PathLike[str] | None
    log: bool
    graph_dot_dump: int

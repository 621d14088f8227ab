"""The user's choices as one frozen value."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import evolve, field, fields, frozen

from onert.backend import Settings
from onert.backend.planner import PLANNERS
from onert.compiler.settings.config_keys import EXECUTORS, PRECISIONS, PREFIX, parse, without_effect
from onert.compiler.settings.option_types import as_set, path_text, tupled, wrong_type
from onert.ir import OnertWarning, OptionError
from onert.ir.process import imports
from onert.ir.process.cpus import MAX_THREADS, available_cpus
from onert.ir.value import Value

if TYPE_CHECKING:
    from .extension import Extension


MOST_TUNING = 86400.0
"""In seconds: one day."""


@frozen
class Options(Value):
    """How to compile and run a model.

    A value is taken from the first of: an explicit choice, the package's configuration file, the environment, the
    default. Explicit are the keyword arguments of `from_environment` and, if options are constructed directly, all
    fields that differ from their default.

    - `backends`: names in order of preference; if empty, all that are installed, best first
    - `op_backend_allops`, `op_backend`, `op_backend_map`: a backend for every operation, for every operation of a kind
      (a class name like "Conv2D", a member like "ADD", or one of ONE's names like "BinaryArithmetic"; the narrower name
      wins), and for one operation by its index in the model file; the later option wins
    - `signature`: the signature to enter the model by; None for the first subgraph
    - `input_shapes`: shapes to compile for, by name or position of the input
    - `max_iterations`: the bound on every loop of the model; None for no bound
    - `max_memory`: the most bytes that one execution may need beside its constants; None: a limit by the model's size
    - `max_work`: the limit on one run's work in additions and multiplications, with other work converted to these;
      None: a limit by the model's size
    - `optimize`: whether the optional passes run; `disabled_passes` excludes some of them
    - `extensions`: passes and decompositions of other packages, each an `Extension`, the name of an entry point
      `onert.passes`, or an import path `module:NAME`; a program compiled with extensions is not cached
    - `target`: what backends generate code for: "native", or a target triple
    - `precision`: "exact": results are as accurate as summing all terms; "fast": convolutions may use algorithms with
      more rounding, up to 6e-6 of their results' range; "bf16": products of float32 may round their factors to bfloat16
      and add in float32; "fp16": products with constant weights may round their factors to float16 and add in float16
      and float32, on Arm processors that support this
    - `tune`: seconds for which backends may measure alternatives to their cost models' choices and cache the findings;
      0: use cached findings without measuring; None: neither
    - `extra`: settings that only one backend has
    - `workspace_dir`: the folder for files that have no path of their own
    - `use_scheduler`: backends are chosen by the measured times in `exec_time.json` in the workspace
    - `profiling`: `onert.compile` first measures every operation on every backend, which updates `exec_time.json`
    - `tracing`: every execution writes a trace and a table of times; `minmax_dump`: the ranges of its tensors
    - `trace_filepath`: every execution writes a trace to this file
    - `log`: `onert.compile` writes its decisions (backends, steps, memory) to standard error
    - `graph_dot_dump`: 1 writes the lowered subgraphs as dot files, 2 also the subgraphs before lowering
    - `fixed`: the explicit fields; None: those that differ from their default
    """

    backends: tuple[str, ...] = field(default=(), converter=tupled)
    executor: str = "Linear"
    num_threads: int = field(factory=available_cpus)
    planner: str = "Best"
    op_backend_allops: str | None = None
    op_backend: Mapping[str, str] = field(factory=dict)
    op_backend_map: Mapping[int, str] = field(factory=dict)
    signature: str | None = None
    input_shapes: Mapping[int | str, tuple[int, ...]] = field(factory=dict)
    max_iterations: int | None = 1_000_000
    max_memory: int | None = None
    max_work: int | None = None
    optimize: bool = True
    disabled_passes: frozenset[str] = field(default=frozenset(), converter=as_set)
    extensions: tuple[str | Extension, ...] = field(default=(), converter=tupled)
    target: str = "native"
    precision: str = "exact"
    tune: float | None = None
    extra: Mapping[str, str] = field(factory=dict)
    workspace_dir: str = field(default=".", converter=path_text)
    use_scheduler: bool = False
    tracing: bool = False
    profiling: bool = False
    minmax_dump: bool = False
    trace_filepath: str | None = field(default=None, converter=path_text)
    log: bool = False
    graph_dot_dump: int = 0
    fixed: frozenset[str] | None = None

    def __attrs_post_init__(self) -> None:
        for each in fields(Options):
            rest = wrong_type(each.name, getattr(self, each.name))
            if rest is not None:
                raise OptionError(each.name, rest)
        for name, allowed in (("executor", EXECUTORS), ("planner", tuple(PLANNERS)), ("precision", PRECISIONS)):
            if getattr(self, name) not in allowed:
                raise OptionError(name, f"is {getattr(self, name)!r}, expected one of {', '.join(allowed)}")
        if not 1 <= self.num_threads <= MAX_THREADS:
            raise OptionError("num_threads", f"is {self.num_threads}, expected 1 to {MAX_THREADS}")
        for name in ("max_iterations", "max_memory", "max_work"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise OptionError(name, f"is {value}, expected at least 1")
        if self.tune is not None and not 0 <= self.tune <= MOST_TUNING:
            raise OptionError("tune", f"is {self.tune}, expected 0 to {MOST_TUNING:.0f} seconds")

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None, **explicit: Any) -> Options:
        """The options from environment variables, overridden by `explicit` ones.

        Names begin with `ONERT_`. If `environ` is given, it replaces the process's environment, and ONE's names (the
        same without the prefix) are accepted too.

        Raises CompileError naming a variable whose value is not allowed. Issues an OnertWarning for each of ONE's
        variables that has no effect here, with the reason.
        """
        if environ is None:
            return cls(**{**parse(os.environ, PREFIX), **explicit}, fixed=frozenset(explicit))
        for note in without_effect(environ):
            warnings.warn(note, OnertWarning, stacklevel=2)
        return cls(**{**parse(environ), **parse(environ, PREFIX), **explicit}, fixed=frozenset(explicit))

    def choose(self, **explicit: Any) -> Options:
        """These options with explicit choices, which a package's configuration does not override."""
        return evolve(self, **explicit, fixed=self._explicit() | explicit.keys())

    def with_config(self, config: Mapping[str, str]) -> Options:
        """These options with a package's configuration for every field that was not chosen explicitly.

        Raises ModelError if the configuration sets an option that packages may not set (`package_options`).
        """
        if not config:
            return self
        explicit = self._explicit()
        chosen = imports.module("onert.compiler.settings.package_config").package_options(config)
        return evolve(self, **{name: value for name, value in chosen.items() if name not in explicit})

    def is_explicit(self, name: str) -> bool:
        """Whether a field was chosen in Python, rather than by the environment or a package's configuration."""
        return name in self._explicit()

    def _explicit(self) -> frozenset[str]:
        if self.fixed is not None:
            return self.fixed
        default = Options()
        return frozenset(f.name for f in fields(Options) if getattr(self, f.name) != getattr(default, f.name))

    @property
    def settings(self) -> Settings:
        """The settings passed to backends."""
        return Settings(self.num_threads, self.target, self.precision, self.extra, self.tune)


def recordings(options: Options) -> dict[str, str]:
    """The paths of the files that executions write, by kind: trace, table, minmax."""
    folder = Path(options.workspace_dir)
    found: dict[str, str] = {}
    if options.tracing:
        found |= {"trace": str(folder / "trace.chrome.json"), "table": str(folder / "trace.table.md")}
    if options.trace_filepath is not None:
        found["trace"] = options.trace_filepath
    if options.minmax_dump:
        found["minmax"] = str(folder / "minmax.json")
    return found

"""What the user chose, as one frozen value."""

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
"""Seconds: a day."""


@frozen
class Options(Value):
    """How to compile and run a model.

    A value is taken from the first of: an explicit choice, the package's configuration file, the environment, the
    default. Explicit are the keyword arguments of `from_environment`, and, where options are made directly, all fields
    that differ from their default.

    - `backends`: names in order of preference; none: whatever is installed, best first
    - `op_backend_allops`, `op_backend`, `op_backend_map`: a backend for every operation, for every operation of a kind
      (a class name like "Conv2D", a member like "ADD", or one of ONE's names like "BinaryArithmetic"; the narrower name
      wins), and for one operation by its index in the model file; the later wins
    - `signature`: the named way into the model, where it is not the first subgraph
    - `input_shapes`: shapes to compile for, by name or position of the input
    - `max_iterations`: the bound on every loop of the model; None for no bound
    - `max_memory`: the most bytes that one execution may need beside its constants; None: what suits the model's size
    - `max_work`: the most additions and multiplications of one run, with what takes as long; None likewise
    - `optimize`: whether the optional passes run; `disabled_passes` names some that do not
    - `extensions`: passes and decompositions of others, each an `Extension`, the name of an entry point `onert.passes`,
      or an import path `module:NAME`; a program that they have a part in is not cached
    - `target`: what backends generate code for: "native", or a target triple
    - `precision`: "exact": results are as near to the true ones as sums of all terms are; "fast": convolutions may
      take algorithms that round more, up to 6e-6 of the range of their results; "bf16": products of float32 may
      be those of numbers rounded to bfloat16, added in float32; "fp16": those with constant weights may be of numbers
      rounded to float16, added in float16 and float32, on Arm's processors that do so
    - `tune`: seconds in which backends measure alternatives to what their cost models choose, and keep what they find
      in the cache; 0 takes what was found before. None: neither
    - `extra`: settings that only one backend knows
    - `workspace_dir`: where files are written and read that have no path of their own
    - `use_scheduler`: backends are chosen by the measured times in `exec_time.json` in the workspace
    - `profiling`: `onert.compile` first measures every operation on every backend, which updates `exec_time.json`
    - `tracing`, `minmax_dump`: every execution writes a trace and a table of times, the ranges of its tensors
    - `trace_filepath`: every execution writes a trace to this file
    - `log`: `onert.compile` writes to standard error what it decided: backends, steps, memory
    - `graph_dot_dump`: 1 writes the lowered subgraphs as dot files, 2 also what they were before
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
        """The options that the environment's variables give, and `explicit` ones over them.

        Names begin with `ONERT_`. Where `environ` is given, it is looked at in the place of the process's environment,
        and ONE's names, which are the same without that beginning, count in it too.

        CompileError names a variable whose value is none of the allowed ones. An OnertWarning says why one of ONE's
        variables has no effect here.
        """
        if environ is None:
            return cls(**{**parse(os.environ, PREFIX), **explicit}, fixed=frozenset(explicit))
        for note in without_effect(environ):
            warnings.warn(note, OnertWarning, stacklevel=2)
        return cls(**{**parse(environ), **parse(environ, PREFIX), **explicit}, fixed=frozenset(explicit))

    def choose(self, **explicit: Any) -> Options:
        """These options with explicit choices over them, which no package's configuration overrides."""
        return evolve(self, **explicit, fixed=self._explicit() | explicit.keys())

    def with_config(self, config: Mapping[str, str]) -> Options:
        """These options with a package's configuration in every field that was not chosen explicitly.

        ModelError if the configuration sets what a package may not (`package_options`), chosen explicitly or not.
        """
        if not config:
            return self
        explicit = self._explicit()
        chosen = imports.module("onert.compiler.settings.package_config").package_options(config)
        return evolve(self, **{name: value for name, value in chosen.items() if name not in explicit})

    def is_explicit(self, name: str) -> bool:
        """Whether a field was chosen in Python, and not in the environment or in a package's configuration."""
        return name in self._explicit()

    def _explicit(self) -> frozenset[str]:
        if self.fixed is not None:
            return self.fixed
        default = Options()
        return frozenset(f.name for f in fields(Options) if getattr(self, f.name) != getattr(default, f.name))

    @property
    def settings(self) -> Settings:
        """What backends are told."""
        return Settings(self.num_threads, self.target, self.precision, self.extra, self.tune)


def recordings(options: Options) -> dict[str, str]:
    """The files that executions write, by what they hold."""
    folder = Path(options.workspace_dir)
    found: dict[str, str] = {}
    if options.tracing:
        found |= {"trace": str(folder / "trace.chrome.json"), "table": str(folder / "trace.table.md")}
    if options.trace_filepath is not None:
        found["trace"] = options.trace_filepath
    if options.minmax_dump:
        found["minmax"] = str(folder / "minmax.json")
    return found

"""What a package's own configuration may set.

A package is untrusted, so its configuration may only set what is on a list: installed backends by name, and options
that only change how the model is run. Everything else - import paths, files, dumps, profiling - is the user's choice.
`SECURITY.md` says what else is trusted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from onert.backend.registry import OWN, available
from onert.ir import CompileError, ModelError
from onert.ir.process.cpus import available_cpus

from .config_keys import NAMES, PER_KIND, parse

Check = Callable[[str, Any], Any]
"""Takes a variable and its parsed value; returns the value to use, or raises ModelError."""


def package_options(config: Mapping[str, str]) -> dict[str, Any]:
    """Fields of `Options` by name, from a package's configuration.

    Raises ModelError for one of onert's variables that is not in `PERMITTED`, and for a value that is not allowed.
    Other keys have no meaning here and are ignored, as in ONE.
    """
    found: dict[str, Any] = {}
    for variable, text in config.items():
        check = _check_of(variable)
        if check is None:
            if variable in NAMES:
                raise ModelError(f"the package's configuration sets {variable}, which only the user may set")
            continue
        try:
            parsed = parse({variable: text})
        except CompileError as error:
            raise ModelError(f"the package's configuration is invalid: {error}") from error
        for option, value in parsed.items():
            checked = check(variable, value)
            found[option] = {**found.get(option, {}), **checked} if isinstance(checked, Mapping) else checked
    return found


def _check_of(variable: str) -> Check | None:
    if variable in PERMITTED:
        return PERMITTED[variable]
    return _each_backend if variable.startswith(PER_KIND) and variable not in NAMES else None


def _as_it_is(variable: str, value: Any) -> Any:
    return value


def _backend(variable: str, name: str) -> str:
    """The name of an installed backend. A name with a colon is an import path, which could run any code."""
    if name not in OWN and (":" in name or name not in available()):
        installed = ", ".join(sorted({*OWN, *available()}))
        raise ModelError(
            f"the package's configuration sets {variable} to {name!r}, expected an installed backend ({installed})"
        )
    return name


def _each_backend(variable: str, chosen: Mapping[Any, str]) -> Mapping[Any, str]:
    return {what: _backend(variable, name) for what, name in chosen.items()}


def _threads(variable: str, count: int) -> int:
    """The number of threads, at most the number of CPUs that the process may use."""
    return min(count, available_cpus())


PERMITTED: Mapping[str, Check] = {
    "BACKENDS": lambda variable, names: tuple(_backend(variable, name) for name in names),
    "OP_BACKEND_ALLOPS": _backend,
    "OP_BACKEND_MAP": _each_backend,
    "EXECUTOR": _as_it_is,
    "CPU_MEMORY_PLANNER": _as_it_is,
    "NUM_THREADS": _threads,
}
"""The variables that a package may set, and the checks of their values. `OP_BACKEND_<Op>` may be set too."""

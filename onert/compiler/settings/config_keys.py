"""ONE's configuration variables: their names and the format of their values.

Source: runtime/onert/core/include/util/Config.lst. A package's configuration file uses these names, and so does the
environment that `onert_run` reads; elsewhere the environment's names begin with `PREFIX`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from onert.backend.planner import PLANNERS
from onert.ir import CompileError
from onert.ir.process.cpus import MAX_THREADS

EXECUTORS = ("Linear", "Dataflow", "Parallel")
PRECISIONS = ("exact", "fast", "bf16", "fp16")

PREFIX = "ONERT_"
"""The prefix of names in an application's environment."""
PER_KIND = "OP_BACKEND_"
"""The prefix of variables that choose a backend for a kind of operations."""

_TRUE, _FALSE = ("1", "true", "on", "yes"), ("0", "false", "off", "no")
_MAX_DIGITS = 9
"""The most digits of an operation's index."""


def parse(variables: Mapping[str, str], prefix: str = "") -> dict[str, Any]:
    """Fields of Options by name, from the variables whose names begin with `prefix`. An empty value counts as absent.

    Raises CompileError, naming the variable, for an invalid value. Unknown names are ignored, as the environment is
    full of them.
    """
    found = dict(_fields(variables, prefix))
    kinds = dict(_kinds(variables, prefix))
    if kinds:
        found["op_backend"] = kinds
    return found


def _fields(variables: Mapping[str, str], prefix: str) -> Iterator[tuple[str, Any]]:
    for short, (option, read) in _VARIABLES.items():
        name = prefix + short.removeprefix(prefix)
        text = variables.get(name, "").strip()
        if text:
            value = read(name, text)
            if value is not None:
                yield option, value


def _kinds(variables: Mapping[str, str], prefix: str) -> Iterator[tuple[str, str]]:
    """Kinds of operations and their backends from variables `OP_BACKEND_<Kind>`."""
    start = prefix + PER_KIND
    for name, text in variables.items():
        if name.startswith(start) and name.removeprefix(prefix) not in _VARIABLES and text.strip():
            yield name.removeprefix(start), text.strip()


def _names(name: str, text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(";") if word.strip())


def _name(name: str, text: str) -> str:
    return text


def _choice(*allowed: str) -> Callable[[str, str], str]:
    def read(name: str, text: str) -> str:
        if text not in allowed:
            raise CompileError(f"{name} is {text!r}, expected one of {', '.join(allowed)}")
        return text

    return read


def _flag(name: str, text: str) -> bool:
    if text.lower() not in _TRUE + _FALSE:
        raise CompileError(f"{name} is {text!r}, expected one of {', '.join(_TRUE + _FALSE)}")
    return text.lower() in _TRUE


def _threads(name: str, text: str) -> int | None:
    """A number of threads; None, which stands for the default, for ONE's -1."""
    expected = f"-1 or 1 to {MAX_THREADS}"
    value = _integer(name, text, expected)
    if not 1 <= value <= MAX_THREADS and value != -1:
        raise CompileError(f"{name} is {text}, expected {expected}")
    return None if value == -1 else value


def _level(name: str, text: str) -> int:
    value = _integer(name, text, "0, 1 or 2")
    if not 0 <= value <= 2:
        raise CompileError(f"{name} is {text}, expected 0, 1 or 2")
    return value


def _integer(name: str, text: str, expected: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise CompileError(f"{name} is {text!r}, expected {expected}") from error


def _map(name: str, text: str) -> dict[int, str]:
    """`0=cpu;3=ruy`: backends by operation index."""
    found: dict[int, str] = {}
    for word in _names(name, text):
        index, equals, backend = (part.strip() for part in word.partition("="))
        if not (equals and backend and index.isdecimal() and len(index) <= _MAX_DIGITS):
            raise CompileError(f"{name} has {word!r}, expected INDEX=BACKEND pairs separated by ';'")
        found[int(index)] = backend
    return found


def without_effect(variables: Mapping[str, str]) -> Iterator[str]:
    """A sentence for each of ONE's variables that is set but has no effect here.

    Raises CompileError, naming the variable, for an invalid value.
    """
    for name, (read, reason) in _WITHOUT_EFFECT.items():
        text = variables.get(name, "").strip()
        if text and read(name, text):
            yield f"{name}={text} has no effect: {reason}"


def _size(name: str, text: str) -> int:
    value = _integer(name, text, "an integer")
    return max(value, 0)  # ONE's -1 and 0 stand for the default


_VARIABLES: Mapping[str, tuple[str, Callable[[str, str], Any]]] = {
    "BACKENDS": ("backends", _names),
    "EXECUTOR": ("executor", _choice(*EXECUTORS)),
    "CPU_MEMORY_PLANNER": ("planner", _choice(*PLANNERS)),
    "OP_BACKEND_ALLOPS": ("op_backend_allops", _name),
    "OP_BACKEND_MAP": ("op_backend_map", _map),
    "NUM_THREADS": ("num_threads", _threads),
    "PRECISION": ("precision", _choice(*PRECISIONS)),
    "WORKSPACE_DIR": ("workspace_dir", _name),
    "USE_SCHEDULER": ("use_scheduler", _flag),
    "TRACING_MODE": ("tracing", _flag),
    "PROFILING_MODE": ("profiling", _flag),
    "MINMAX_DUMP": ("minmax_dump", _flag),
    "GRAPH_DOT_DUMP": ("graph_dot_dump", _level),
    "ENABLE_LOG": ("log", _flag),
    "ONERT_LOG_ENABLE": ("log", _flag),  # its name in ONE before 1.28
    "TRACE_FILEPATH": ("trace_filepath", _name),
}
"""The field of Options that each variable sets, and the function that parses its value."""

_WITHOUT_EFFECT: Mapping[str, tuple[Callable[[str, str], Any], str]] = {
    "INTERNAL_OUTPUT_ALLOC": (_flag, "outputs without a buffer from set_output are always allocated internally"),
    "USE_MMAPED_DATA": (_flag, "model files are read into private memory, and never mapped"),
    "FP16_ENABLE": (_flag, "no backend computes float32 models in float16"),
    "DELETE_CACHED_DATA": (_flag, "a backend that packs constants keeps no other copy of them"),
    "DISABLE_COMPILE": (_flag, "there is no interpreter; OP_BACKEND_ALLOPS=reference runs each operation by itself"),
    "OP_SEQ_MAX_NODE": (_size, "the executor decides how long sequences are; Dataflow and Parallel cut them"),
    "RUY_THREADS": (_size, "NUM_THREADS is the number of threads of all backends"),
    "XNNPACK_THREADS": (_size, "NUM_THREADS is the number of threads of all backends"),
    "ACL_LAYOUT": (_name, "each backend's memory says which layout its tensors have"),
    "NCNN_LAYOUT": (_name, "each backend's memory says which layout its tensors have"),
}
"""ONE's other variables, of its newest Config.lst and of version 1.8: a parser, and why the variable has no effect."""

NAMES = frozenset(_VARIABLES)
"""All variables with an effect, except those that begin with `PER_KIND`."""

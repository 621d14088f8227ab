"""The import graph, read from the sources: absolute module names, including lazy imports by name."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path

from attrs import frozen
from shared_material import REPOSITORY

_DOTTED = re.compile(r"onert(?:_\w+)?(?:\.\w+)+")
_QUOTED = re.compile(rf"[\"']{_DOTTED.pattern}[\"']")


def sources_in(*folders: str) -> list[Path]:
    """The Python files below some folders of the repository, sorted."""
    found = (p for folder in folders for p in (REPOSITORY / folder).rglob("*.py"))
    return sorted(p for p in found if "__pycache__" not in p.parts)


def sources() -> list[Path]:
    """The files of the product: `onert/` and `backends/`."""
    return sources_in("onert", "backends")


def module_of(path: Path) -> str:
    """The import name of a file."""
    relative = path.relative_to(REPOSITORY).with_suffix("")
    parts = relative.parts[1:] if relative.parts[0] == "backends" else relative.parts
    return ".".join(p for p in parts if p != "__init__")


@cache
def modules() -> Mapping[str, Path]:
    """The product's files by import name."""
    return {module_of(path): path for path in sources()}


def absolute(node: ast.ImportFrom, path: Path) -> str:
    """The module that `from ... import` names."""
    base = node.module or ""
    if not node.level:
        return base
    parts = module_of(path).split(".")
    keep = len(parts) - node.level + (1 if path.name == "__init__.py" else 0)
    return ".".join([*parts[:keep], *([node.module] if node.module else [])])


@frozen(eq=False)
class Source:
    """A file's text, docstring, import statements (each with whether it is inside a function), and the strings that
    look like names of the product's modules.
    """

    text: str
    docstring: str | None
    imports: tuple[tuple[ast.Import | ast.ImportFrom, bool], ...]
    names: frozenset[str]


@cache
def source(path: Path) -> Source:
    """A file, read once. Its syntax tree is not stored: those of all files are a million objects."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    imports = ((n, inside) for n, inside in _statements(tree, False) if isinstance(n, ast.Import | ast.ImportFrom))
    names: frozenset[str] = frozenset()
    if _QUOTED.search(text):
        strings = (n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str))
        names = frozenset(filter(_DOTTED.fullmatch, strings))
    return Source(text, ast.get_docstring(tree), tuple(imports), names)


def _statements(node: ast.AST, inside: bool) -> Iterator[tuple[ast.AST, bool]]:
    """The statements in a node, without expressions, each with whether it is inside a function."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.expr):
            yield child, inside
            yield from _statements(child, inside or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef))


@cache
def exported(package: str) -> Mapping[str, str]:
    """The names that a package's `__init__` imports from modules, with each one's module."""
    path = modules()[package]
    if path.name != "__init__.py":
        return {}
    nodes = [node for node, _ in source(path).imports if isinstance(node, ast.ImportFrom)]
    return {alias.asname or alias.name: absolute(node, path) for node in nodes for alias in node.names}


def _defining(base: str, name: str) -> str:
    """The product's module that defines a name of another module, followed through re-exporting packages."""
    if base not in modules():
        return base
    if name in exported(base):
        return _defining(exported(base)[name], name)
    return f"{base}.{name}" if f"{base}.{name}" in modules() else base


@cache
def dependencies(module: str) -> frozenset[str]:
    """The product's modules that a module imports: at its top, for its types, or lazily by a name in a string."""
    path = modules()[module]
    found = set(source(path).names)
    for node, _ in source(path).imports:
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        else:
            found.update(_defining(absolute(node, path), alias.name) for alias in node.names)
    return frozenset(found & modules().keys()) - {module}


def siblings(package: str) -> dict[str, set[str]]:
    """A package's direct members, files and folders, and which of them each imports. Its `__init__` is omitted."""
    prefix = package + "."
    found: dict[str, set[str]] = {}
    for module in modules():
        if module.startswith(prefix):
            own = module[len(prefix) :].split(".")[0]
            others = {d[len(prefix) :].split(".")[0] for d in dependencies(module) if d.startswith(prefix)}
            found.setdefault(own, set()).update(others - {own})
    return found


def cycles(graph: Mapping[str, Collection[str]]) -> Iterator[tuple[str, ...]]:
    """Groups of nodes that reach one another, each once."""
    reached = {node: _reach(graph, node) for node in graph}
    seen: set[str] = set()
    for node in sorted(graph):
        group = tuple(sorted(other for other in reached[node] if node in reached.get(other, ())))
        if node in reached[node] and node not in seen:
            seen.update(group)
            yield group


def _reach(graph: Mapping[str, Collection[str]], start: str) -> set[str]:
    found: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting.extend(graph.get(node, ()))
    return found

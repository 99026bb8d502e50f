"""Which module imports which, by whatever means: statements anywhere in a file, and names of modules in strings."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import oomscope

PACKAGE = Path(oomscope.__file__).parent


def name_of(path: Path) -> str:
    """``oomscope.model.note`` for its file."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def modules() -> dict[str, Path]:
    """Every module of the package, by its name."""
    return {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def import_graph() -> dict[str, set[str]]:
    """For each module those that it imports, at once or later; what only type checkers see is left out."""
    known = modules()
    return {name: set(_imports(name, path, known)) - {name} for name, path in known.items()}


def _imports(name: str, path: Path, known: dict[str, Path]) -> Iterator[str]:
    for node in _run(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                if (target := inner if inner in known else node.module) in known:
                    yield target
        elif (
            isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in known and "." in node.value
        ):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield from _beneath(name, node, known)


def _beneath(name: str, text: ast.JoinedStr, known: dict[str, Path]) -> Iterator[str]:
    """The modules that ``f"{__name__}.{…}"`` can name: those of the package itself."""
    first = text.values[0] if text.values else None
    if isinstance(first, ast.FormattedValue) and isinstance(first.value, ast.Name) and first.value.id == "__name__":
        yield from (one for one in known if one.rpartition(".")[0] == name)


def _run(tree: ast.Module) -> Iterator[ast.AST]:
    """The nodes of a module that are run, or may be: all but those under ``if TYPE_CHECKING``."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            waiting += node.orelse
        else:
            waiting += ast.iter_child_nodes(node)


def cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Groups of modules that import each other, directly or through others."""
    reached = {name: _reached(name, graph) for name in graph}
    groups = {tuple(sorted(other for other in reached[name] if name in reached[other])) for name in graph}
    return sorted(list(group) for group in groups if group)


def _reached(start: str, graph: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += graph[name]
    return found

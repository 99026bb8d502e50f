"""Every number by which a verdict or advice is decided has a name, a reason, and a test that mentions it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TESTED = [
    *sorted((ROOT / "oomscope" / "analysis" / "verdict").rglob("*.py")),
    *sorted((ROOT / "oomscope" / "analysis" / "remedies").rglob("*.py")),
    *(
        ROOT / "oomscope" / "analysis" / "passes" / f"{name}.py"
        for name in ("finished", "kept_models", "rising_request")
    ),
]
TESTS = "\n".join(path.read_text() for path in sorted((ROOT / "tests").rglob("test_*.py")) if path != Path(__file__))


def thresholds() -> Iterator[tuple[str, str]]:
    """Module and name of each constant that is a number, or several."""
    for path in TESTED:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and _is_number(node.value):
                yield path.parent.name if path.stem == "__init__" else path.stem, node.targets[0].id


def _is_number(node: ast.expr) -> bool:
    if isinstance(node, ast.Tuple):
        return all(map(_is_number, node.elts))
    if isinstance(node, ast.BinOp):
        return _is_number(node.left) or _is_number(node.right)
    return isinstance(node, ast.Constant) and isinstance(node.value, (int, float))


def test_there_are_thresholds() -> None:
    assert len(list(thresholds())) > 30


@pytest.mark.parametrize(("module", "name"), sorted(thresholds()))
def test_each_threshold_is_mentioned_in_a_test(module: str, name: str) -> None:
    assert f"{module}.{name}" in TESTS or f"import {name}" in TESTS, "test it just below and just above"

"""What may import what, and what importing costs.

import-linter checks the layers by import statements; here modules that are named in strings are checked as well.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys

import pytest

from tests.imports import PACKAGE, cycles, import_graph, modules

HEAVY = {"torch", "matplotlib", "jinja2", "click", "rich"}


def loaded_by(program: str) -> set[str]:
    """The top-level modules that a fresh interpreter has loaded after `program`."""
    code = f"{program}\nimport sys, json; print(json.dumps(sorted({{name.partition('.')[0] for name in sys.modules}})))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_importing_oomscope_loads_nothing_heavy() -> None:
    assert not loaded_by("import oomscope; oomscope.__version__; dir(oomscope)") & (HEAVY | {"numpy"})


@pytest.mark.parametrize("name", ["load", "analyze", "Snapshot", "Findings", "OomscopeError"])
def test_reading_and_analysis_need_no_renderer_and_no_torch(name: str) -> None:
    assert not loaded_by(f"import oomscope; oomscope.{name}") & HEAVY


def test_asking_for_the_recorder_does_not_yet_need_torch() -> None:
    assert "torch" not in loaded_by("import oomscope; oomscope.record")


def test_every_public_name_is_there() -> None:
    import oomscope

    for name in oomscope.__all__:
        assert getattr(oomscope, name) is not None
        assert name in dir(oomscope)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = oomscope.nothing


@pytest.mark.parametrize("package", ["model", "reading", "allocator", "history", "analysis"])
def test_each_layer_can_be_used_alone(package: str) -> None:
    assert not loaded_by(f"import oomscope.{package}") & HEAVY


def layers() -> list[list[str]]:
    """The layers that import-linter checks, from the top; those in one row know nothing of each other."""
    text = (PACKAGE.parent / "pyproject.toml").read_text(encoding="utf-8")
    found = re.search(r"^layers = (\[.*?\n\])", text, re.MULTILINE | re.DOTALL)
    assert found is not None
    return [row.split(" | ") for row in ast.literal_eval(found[1])]


LAYERS = {package: (level, package) for level, row in enumerate(layers()) for package in row}
ENTRIES = {"oomscope", "oomscope.__main__"}
"""What a user imports or runs: it may name any module, by import or by string."""


def layer_of(module: str) -> tuple[int, str]:
    package = max((one for one in LAYERS if f"{module}.".startswith(f"{one}.")), key=len, default=None)
    assert package is not None, f"{module} belongs to no layer of pyproject.toml"
    return LAYERS[package]


def test_every_module_belongs_to_a_layer() -> None:
    assert {layer_of(module)[1] for module in modules() if module not in ENTRIES} == set(LAYERS)


def test_no_module_names_one_above_or_beside_its_layer_not_even_in_a_string() -> None:
    upward = []
    for module, imported in import_graph().items():
        if module in ENTRIES:
            continue
        level, package = layer_of(module)
        for other in sorted(imported - ENTRIES):
            there, where = layer_of(other)
            if there < level or (there == level and where != package):
                upward.append(f"{module} -> {other}")
    assert upward == []


def test_only_what_stands_on_top_imports_the_package_itself() -> None:
    named = {module for module, imported in import_graph().items() if imported & ENTRIES}
    top = {layer_of(module)[0] for module in modules() if module.startswith(("oomscope.testing", "oomscope.commands"))}
    assert {layer_of(module)[0] for module in named - ENTRIES} <= top


def test_no_modules_import_each_other_in_a_circle_at_once_or_later() -> None:
    assert cycles(import_graph()) == []


@pytest.mark.parametrize(
    ("graph", "found"),
    [
        ({"a": {"b"}, "b": {"c"}, "c": set()}, []),
        ({"a": {"b"}, "b": {"a"}, "c": {"a"}}, [["a", "b"]]),
        ({"a": {"b"}, "b": {"c"}, "c": {"a"}}, [["a", "b", "c"]]),
    ],
)
def test_circles_are_found(graph: dict[str, set[str]], found: list[list[str]]) -> None:
    assert cycles(graph) == found


def test_the_graph_sees_lazy_imports_and_names_in_strings() -> None:
    graph = import_graph()
    assert "oomscope.rendering.html.notebook" in graph["oomscope"]
    assert "oomscope.commands.report" in graph["oomscope.commands"]
    assert "oomscope.reading.load" not in graph["oomscope.model.snapshot"]
    assert "oomscope.rendering.html.page" in graph["oomscope.rendering.formats"]


def test_no_record_of_the_upper_layers_shares_its_name_with_another() -> None:
    """One name, one meaning: a reader who has met a `Limit` knows it wherever it stands."""
    upper = ("oomscope.commands", "oomscope.export", "oomscope.redaction", "oomscope.rendering", "oomscope.wording")
    found: dict[str, list[str]] = {}
    for module, path in modules().items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name.lstrip("_"), []).append(module)
    shared = {name: homes for name, homes in found.items() if len(homes) > 1}
    assert [homes for homes in shared.values() if any(home.startswith(upper) for home in homes)] == []

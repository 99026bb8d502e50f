"""What importing costs: a training script that imports oomscope pays for nothing that it does not use."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

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

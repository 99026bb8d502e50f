"""What templates were compiled to is kept, and does no harm where it cannot be, is damaged or out of date."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from jinja2 import Environment, FileSystemLoader

from oomscope.rendering.html.compiled_templates import CompiledTemplates


def rendered(folder: Path) -> str:
    environment = Environment(
        loader=FileSystemLoader(folder), bytecode_cache=CompiledTemplates(folder), autoescape=True
    )
    return environment.get_template("page.html").render(name="a & b")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", None)
    (tmp_path / "page.html").write_text("one {{ name }}")
    return tmp_path


def kept(folder: Path) -> list[Path]:
    return sorted(folder.glob("__pycache__/*"))


def test_what_was_compiled_is_used_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert rendered(folder) == "one a &amp; b"
    assert len(kept(folder)) == 1
    monkeypatch.setattr(Environment, "_compile", lambda *_: pytest.fail("compiled again"))
    assert rendered(folder) == "one a &amp; b"


def test_a_changed_template_is_compiled_again(folder: Path) -> None:
    rendered(folder)
    (folder / "page.html").write_text("two {{ name }}")
    assert rendered(folder) == "two a &amp; b"


@pytest.mark.parametrize("content", [b"", b"nonsense", "cut", "flipped"])
def test_a_damaged_file_is_compiled_again(folder: Path, content: bytes | str) -> None:
    rendered(folder)
    (path,) = kept(folder)
    whole = path.read_bytes()
    if isinstance(content, str):
        content = whole[: len(whole) // 2] if content == "cut" else whole[:30] + bytes(40) + whole[70:]
    path.write_bytes(content)
    assert rendered(folder) == "one a &amp; b"


def test_nothing_is_kept_where_python_keeps_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert rendered(folder) == "one a &amp; b"
    assert not kept(folder)


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
def test_a_folder_that_cannot_be_written_is_no_obstacle(folder: Path) -> None:
    (folder / "__pycache__").write_text("a file where the folder would be")
    assert rendered(folder) == "one a &amp; b"

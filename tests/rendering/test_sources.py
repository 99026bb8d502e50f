"""Lines of source come from the dump, or from the one folder that the reader names; never from anywhere else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from oomscope.analysis import analyze
from oomscope.rendering import render_html
from oomscope.rendering.common.sources import LARGEST_FILE, Sources
from tests.rendering.hostile import SCRIPT
from tests.samples import sample

TEXT = "".join(f"line {number}\n" for number in range(1, 10))
LEAK = "oom_leak_total_loss"
FILE = "/workspace/train/workloads.py"


def told(file: str, line: int, first: int, text: tuple[str, ...]):
    context = {"schema_version": 1, "sources": [{"filename": file, "line": line, "first": first, "text": list(text)}]}
    return replace(sample(LEAK), context=context)


def lines(sources: Sources, file: str, line: int, count: int = 1) -> list[tuple[int, str, bool]] | None:
    found = sources.around(file, line, count)
    return None if found is None else list(found.lines)


def test_the_dump_comes_first_and_lines_are_indented_alike():
    sources = Sources(told("/a/train.py", 5, 4, ("    for x in y:", "        step(x)", "")))
    assert lines(sources, "/a/train.py", 5) == [(4, "for x in y:", False), (5, "    step(x)", True)]
    assert sources.around("/a/train.py", 5).text == "step(x)"
    assert sources.around("/a/train.py", 4).text == "for x in y:"
    assert lines(sources, "/a/train.py", 3) is None
    assert lines(sources, "/b/train.py", 5) is None


def test_without_a_folder_no_file_is_read(tmp_path: Path):
    (tmp_path / "train.py").write_text(TEXT)
    assert lines(Sources(sample(LEAK)), str(tmp_path / "train.py"), 2) is None


@pytest.mark.parametrize("file", ["/home/user/proj/train.py", "C:\\\\proj\\\\train.py", "train.py"])
def test_a_folder_is_matched_by_the_end_of_the_path(tmp_path: Path, file: str):
    (tmp_path / "train.py").write_text(TEXT)
    assert lines(Sources(None, tmp_path), file.replace("\\\\", "\\"), 2) == [
        (1, "line 1", False), (2, "line 2", True), (3, "line 3", False),
    ]  # fmt: skip


def test_the_longest_end_wins(tmp_path: Path):
    (tmp_path / "proj").mkdir()
    (tmp_path / "train.py").write_text("other\n")
    (tmp_path / "proj" / "train.py").write_text("right\n")
    assert lines(Sources(None, tmp_path), "/home/user/proj/train.py", 1) == [(1, "right", True)]


def test_nothing_outside_the_folder_is_read(tmp_path: Path):
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (outside / "secret.py").write_text(TEXT)
    (inside / "link.py").symlink_to(outside / "secret.py")
    (inside / "folder").symlink_to(outside)
    sources = Sources(None, inside)
    for file in ("/x/../outside/secret.py", "../outside/secret.py", "/x/link.py", "/x/folder/secret.py", "a\0b.py"):
        assert lines(sources, file, 2) is None, file
    assert lines(sources, str(outside / "secret.py"), 2) is None


def test_libraries_are_not_mistaken_for_files_of_the_folder(tmp_path: Path):
    (tmp_path / "functional.py").write_text(TEXT)
    sources = Sources(None, tmp_path)
    assert lines(sources, "/usr/lib/python3.11/site-packages/torch/nn/functional.py", 2) is None
    assert lines(sources, "/usr/lib/python3.11/functional.py", 2) is None


def test_lines_that_are_not_there_and_files_too_large_are_none(tmp_path: Path):
    (tmp_path / "train.py").write_text(TEXT + "\n")
    (tmp_path / "large.py").write_text("x\n" * (LARGEST_FILE // 2 + 1))
    sources = Sources(None, tmp_path)
    assert lines(sources, "train.py", 0) is None
    assert lines(sources, "train.py", 99) is None
    assert lines(sources, "train.py", 10) is None
    assert lines(sources, "large.py", 1) is None


def test_the_page_opens_with_the_line_and_its_neighbours():
    text = (f"before {SCRIPT}", "    losses += loss", "after \u202e")
    page = render_html(analyze(told(FILE, 206, 205, text), whatif=False))
    shown = page[page.index('class="culprit"') : page.index('class="fix"')]
    assert "losses += loss" in shown
    assert "before &lt;/script&gt;" in shown
    assert "\u202e" not in page
    assert shown.count('class="line') == 3
    assert shown.count('class="line it') == 1


def test_the_page_reads_a_folder_only_where_told(tmp_path: Path):
    (tmp_path / "workloads.py").write_text("\n".join(f"source_{number} = 1" for number in range(1, 400)))
    findings = analyze(sample(LEAK), whatif=False)
    assert "source_51 = 1" not in render_html(findings)
    assert "source_51 = 1" in render_html(findings, sources=Sources(findings.snapshot, tmp_path))

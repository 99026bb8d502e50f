"""The documents name what is there: files, links, and the examples that are run."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import click
import pytest

from oomscope.commands import cli
from oomscope.recording.options import Options
from tests.readme import shown_text, terminal_text

REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGE = REPOSITORY / "oomscope"
DOCUMENTS = sorted([*PACKAGE.rglob("*.md"), *REPOSITORY.glob("*.md")])
EXAMPLES = sorted((REPOSITORY / "tests" / "gpu" / "examples").glob("*.py"))
UNCHANGED = "unchanged.py"
"""A program that knows nothing of oomscope, and so is no example of it."""

LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)(?:#[^)\s]*)?\)")
NAME = re.compile(r"`([\w./]+\.(?:py|json|md))`")
OF_TORCH = re.compile(r"c10/|_memory_viz\.py")
"""Files of torch, which documents name as well."""

ROOMS = ("reading", "messages", "allocator", "history", "analysis", "wording", "rendering", "recording")


def identify(path: Path) -> str:
    return path.relative_to(REPOSITORY).as_posix()


@pytest.mark.parametrize("document", DOCUMENTS, ids=identify)
def test_every_link_leads_somewhere(document: Path):
    for target in LINK.findall(document.read_text(encoding="utf-8")):
        assert (document.parent / target).exists(), target


@pytest.mark.parametrize("document", [path for path in DOCUMENTS if path.is_relative_to(PACKAGE)], ids=identify)
def test_every_file_that_is_named_exists(document: Path):
    """Named from the document's own folder, from the package or from the repository."""
    places = (document.parent, PACKAGE, REPOSITORY, *(path for path in document.parent.iterdir() if path.is_dir()))
    for name in NAME.findall(document.read_text(encoding="utf-8")):
        if OF_TORCH.search(name) or (document.parent.name == "docs" and "/" not in name):
            continue  # docs speak of files within a package that the sentence names
        assert any((place / name).exists() for place in places), name


def test_every_package_that_asks_questions_says_which():
    rooms = [PACKAGE / name for name in ROOMS]
    rooms += [path.parent for path in (PACKAGE / "analysis").glob("*/__init__.py")]
    assert [identify(room) for room in rooms if not (room / "README.md").is_file()] == []


@pytest.mark.parametrize("example", [path for path in EXAMPLES if path.name != UNCHANGED], ids=lambda path: path.stem)
def test_the_examples_of_recording_are_those_that_run_on_a_gpu(example: Path):
    blocks = re.findall(
        r"```python\n(.*?)```", (PACKAGE / "docs" / "recording.md").read_text(encoding="utf-8"), re.DOTALL
    )
    assert example.read_text(encoding="utf-8").strip() in [block.strip() for block in blocks]


def test_every_option_of_recording_is_in_its_table():
    text = (PACKAGE / "docs" / "recording.md").read_text(encoding="utf-8")
    assert [one.name for one in fields(Options) if f"\n| `{one.name}` |" not in text] == []


def test_the_readme_shows_what_the_terminal_shows():
    assert shown_text() == terminal_text(), "write it anew: python -m tests.readme"


def test_the_picture_of_the_readme_is_small():
    assert 10_000 < (PACKAGE / "docs" / "report.png").stat().st_size < 200_000


@pytest.mark.parametrize(
    "document", [REPOSITORY / "README.md", PACKAGE / "docs" / "whatif.md", PACKAGE / "docs" / "export.md"], ids=identify
)
def test_every_command_and_option_that_a_document_shows_is_there(document: Path):
    shown = re.findall(r"^\$ oomscope (\w+)([^#\n]*)", document.read_text(encoding="utf-8"), re.MULTILINE)
    assert shown
    for name, rest in shown:
        command = cli.get_command(click.Context(cli), name)
        assert command is not None, name
        known = {option for parameter in command.params for option in parameter.opts}
        assert set(re.findall(r"(?<=\s)--?[a-z][\w-]*", rest)) <= known, (name, rest)

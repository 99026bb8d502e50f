"""File names are shown as their readers know them."""

from __future__ import annotations

import pytest

from oomscope.model import Frame, StackTable
from oomscope.wording.clean import clean
from oomscope.wording.paths import common_folder, shortener


def test_own_files_lose_the_folder_they_share_and_libraries_all_before_the_package():
    files = [
        "/home/a/run/train.py",
        "/home/a/run/models/gpt.py",
        "/venv/lib/python3.12/site-packages/torch/nn/modules/module.py",
        "/usr/lib/python3.12/threading.py",
    ]
    shorten = shortener(StackTable.from_stacks([Frame(file, 1, "f") for file in files], [[0]]))
    assert [shorten(file) for file in files] == [
        "train.py",
        "models/gpt.py",
        "torch/nn/modules/module.py",
        "python3.12/threading.py",
    ]


def test_windows_paths():
    assert common_folder({r"C:\run\train.py", r"C:\run\models\gpt.py"}) == "C:\\run\\"


@pytest.mark.parametrize("text", ["a\x00b", "a\u202eb", "a\x1b[31m", "\ud800"])
def test_what_cannot_be_printed_is_escaped(text: str):
    assert clean(text).isprintable()


def test_long_names_lose_their_middle():
    assert len(clean("x" * 1000, 60)) == 60

"""File names as readers want them: from the root that their own files share, libraries by their package."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TypeAlias

from oomscope.model import FrameKind, StackTable, frame_kind, package_path, standard_path
from oomscope.wording.clean import clean

Shorten: TypeAlias = Callable[[str], str]
"""From a file's full name to the one that is shown."""

_LONGEST = 160


def shortener(stacks: StackTable) -> Shorten:
    """Shortens the file names in `stacks`: libraries to package and file, all others to what follows their folder."""
    return shortener_of(frame.filename for frame in stacks.frames)


def shortener_of(files: Iterable[str]) -> Shorten:
    """Shortens file names as `shortener` does, where these `files` are all there are."""
    root = common_folder({file for file in files if _is_own(file)})

    def shorten(path: str) -> str:
        return clean(_shortened(path, root), _LONGEST)

    return shorten


def common_folder(paths: Iterable[str]) -> str:
    """The longest folder, with its closing separator, that all `paths` lie in; empty where there is none."""
    folders = [re.split(r"(?<=[/\\])", path)[:-1] for path in paths]
    if not folders:
        return ""
    shared = []
    for level in zip(*folders, strict=False):
        if len(set(level)) != 1:
            break
        shared.append(level[0])
    return "".join(shared)


def _is_own(path: str) -> bool:
    return ("/" in path or "\\" in path) and frame_kind(path) is FrameKind.OWN


def _shortened(path: str, root: str) -> str:
    known = package_path(path) or standard_path(path)
    if known is not None:
        return known
    return path[len(root) :] if root and path.startswith(root) else path

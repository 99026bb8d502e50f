"""Writes anew what the README shows of a report: ``python -m tests.readme``.

The terminal's answer always; the picture where Chromium is there, and Pillow, which matplotlib brings.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

from oomscope.analysis import analyze
from oomscope.reading import load
from oomscope.rendering import write_report
from oomscope.rendering.text.brief import brief
from oomscope.rendering.text.terminal import plain
from tests.samples import bundled_path

SAMPLE = "oom_leak_in_validation"
REPOSITORY = Path(__file__).resolve().parents[1]
PICTURE = REPOSITORY / "oomscope" / "docs" / "report.png"
WIDTH, HEIGHT = 1280, 634
COLOURS = 96
"""Enough for the page's palette and smooth letters; a fifth of the size of all colours."""
_BLOCK = re.compile(rf"(?<=\$ oomscope summary {SAMPLE}\.pickle\.xz\n).*?(?=```)", re.DOTALL)


def terminal_text() -> str:
    """What ``oomscope summary`` prints about the sample in 80 columns."""
    return plain(brief(replace(analyze(load(bundled_path(SAMPLE)), whatif_seconds=0), whatif=()), width=80))


def shown_text() -> str:
    """What the README says that it prints."""
    match = _BLOCK.search((REPOSITORY / "README.md").read_text(encoding="utf-8"))
    assert match is not None
    return match[0]


def take_picture(browser: str) -> None:
    """The first screen of the sample's page, as the README shows it."""
    from PIL import Image

    with tempfile.TemporaryDirectory() as folder:
        page, raw = Path(folder, "report.html"), Path(folder, "report.png")
        write_report(analyze(load(bundled_path(SAMPLE))), page)
        options = ["--headless", "--no-sandbox", "--hide-scrollbars", f"--window-size={WIDTH},{HEIGHT + 80}"]
        subprocess.run([browser, *options, f"--screenshot={raw}", page.as_uri()], check=True, capture_output=True)
        with Image.open(raw) as image:
            cropped = image.convert("RGB").crop((0, 0, WIDTH, HEIGHT))
        cropped.quantize(COLOURS, dither=Image.Dither.NONE).save(PICTURE, optimize=True)


def main() -> None:
    """Write both."""
    readme = REPOSITORY / "README.md"
    text = terminal_text()
    readme.write_text(_BLOCK.sub(lambda _: text, readme.read_text(encoding="utf-8")), encoding="utf-8")
    if browser := shutil.which("chromium") or shutil.which("google-chrome"):
        take_picture(browser)


if __name__ == "__main__":
    main()

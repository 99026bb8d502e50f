"""Findings and snapshots show themselves in a notebook."""

from __future__ import annotations

from html.parser import HTMLParser

import oomscope
from tests.builders import block, loaded, segment


class Frames(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[dict[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "iframe":
            self.found.append(dict(attrs))


def test_findings_are_one_sandboxed_frame_with_the_whole_report() -> None:
    snapshot = loaded([segment(0x1000_0000, [block(2 << 20)])])
    parser = Frames()
    parser.feed(oomscope.analyze(snapshot)._repr_html_())
    (frame,) = parser.found
    assert frame["sandbox"] == "allow-scripts"
    assert (frame["srcdoc"] or "").lstrip().lower().startswith("<!doctype html>")


def test_a_snapshot_is_a_table_of_its_devices() -> None:
    text = loaded([segment(0x1000_0000, [block(2 << 20)])])._repr_html_()
    assert text.count('<th scope="row">') == 1
    assert "2.00 MiB" in text

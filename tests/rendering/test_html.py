"""The HTML report: one file, bounded, safe, and in agreement with the findings."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
import sys
from html import unescape
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from oomscope.analysis import Findings, analyze
from oomscope.errors import OutputError
from oomscope.rendering import render_html, write_report, write_text_atomically
from oomscope.rendering.html import page as html
from oomscope.rendering.html.page_size import MOST_BYTES, PAGE_CAPS, trimmed
from oomscope.rendering.html.site_rows import SMALL
from oomscope.units import format_bytes
from oomscope.wording.opening import split_verdict
from tests.builders import block, entry, loaded, segment
from tests.rendering.hostile import hostile_findings
from tests.rendering.huge import huge_findings
from tests.rendering.many import many_sites_findings
from tests.samples import SAMPLES, sample_findings
from tests.shared import captures, needs_shared, public, shared_snapshot

BOUND = MOST_BYTES
TYPICAL = 400_000
VOID = {"meta", "link", "br", "img", "input", "hr"}


class Page(HTMLParser):
    """What a test wants to know of a page; fails where tags do not match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.content: dict[str, list[str]] = {}
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open:
            self.content.setdefault(self.open[-1], []).append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def every_page() -> list[tuple[str, Findings]]:
    made = [("hostile", hostile_findings()), ("many_sites", many_sites_findings())]
    return made + [(name, sample_findings(name)) for name in SAMPLES]


@pytest.fixture(scope="module", params=["hostile", "huge", "many_sites", *SAMPLES])
def page(request: pytest.FixtureRequest) -> tuple[Findings, str]:
    made = {"hostile": hostile_findings, "huge": huge_findings, "many_sites": many_sites_findings}
    findings = made[request.param]() if request.param in made else sample_findings(request.param)
    return findings, render_html(findings)


def test_tags_match_and_identifiers_are_unique(page: tuple[Findings, str]):
    parsed = Page(page[1])
    found = [attributes["id"] for _, attributes in parsed.tags if "id" in attributes]
    assert len(found) == len(set(found))


def test_every_link_and_reference_has_its_target(page: tuple[Findings, str]):
    parsed = Page(page[1])
    known = {attributes.get("id") for _, attributes in parsed.tags}
    links = [attributes.get("href") for attributes in parsed.all("a")]
    assert all(link.startswith("#") and link[1:] in known for link in links)
    labels = [attributes["aria-labelledby"].split() for _, attributes in parsed.tags if "aria-labelledby" in attributes]
    assert {name for label in labels for name in label} <= known
    assert set(re.findall(r"url\(#([\w-]+)\)", page[1])) <= known


def test_headings_descend_one_level_at_a_time(page: tuple[Findings, str]):
    levels = [int(tag[1]) for tag, _ in Page(page[1]).tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_nothing_is_loaded_and_no_attribute_carries_style_or_script(page: tuple[Findings, str]):
    parsed = Page(page[1])
    for tag, attributes in parsed.tags:
        assert "style" not in attributes, tag
        assert not [name for name in attributes if name.startswith("on")], tag
        assert not attributes.get("src"), tag
    assert [link["href"] for link in parsed.all("link")] == ["data:,"]
    assert "@import" not in page[1]
    assert not re.search(r"url\((?!#)", page[1])


def test_the_policy_names_exactly_the_scripts_and_styles_of_the_page(page: tuple[Findings, str]):
    text = page[1]
    policy = next(meta["content"] for meta in Page(text).all("meta") if "http-equiv" in meta)
    sources = re.findall(r"<script>(.*?)</script>", text, re.DOTALL) + re.findall(
        r"<style>(.*?)</style>", text, re.DOTALL
    )
    hashes = {base64.b64encode(hashlib.sha256(source.encode()).digest()).decode() for source in sources}
    assert set(re.findall(r"'sha256-([^']*)'", policy)) == hashes
    assert "unsafe" not in policy
    assert policy.startswith("default-src 'none'")


def test_the_page_is_bounded(page: tuple[Findings, str]):
    assert len(page[1].encode()) <= BOUND


def test_a_page_says_that_it_was_shortened_and_only_where_it_was(page: tuple[Findings, str]):
    findings, text = page
    shortened = len(html._rendered(findings, None, PAGE_CAPS[0]).encode()) > BOUND
    assert ('id="shortened"' in text) == shortened == (findings is huge_findings())


def test_the_lowest_caps_hold_with_much_to_spare():
    assert len(html._rendered(huge_findings(), None, PAGE_CAPS[-1]).encode()) <= 0.6 * BOUND


def test_a_shortened_page_keeps_its_verdict_and_its_sums():
    findings = huge_findings()
    assert findings.main is not None
    text = render_html(findings)
    first, _ = split_verdict(findings)
    assert first in unescape(text).replace("\N{NO-BREAK SPACE}", " ")
    shown = trimmed(findings, PAGE_CAPS[-1]).main
    assert shown is not None
    assert len(shown.sites) == PAGE_CAPS[-1].rows
    assert sum(use.bytes for use in shown.sites) == findings.main.at.allocated


def test_a_great_many_steps_make_no_great_page():
    trace, at = [], 0x7F0000000000
    for number in range(20_000):
        size = (number % 7 + 1) << 20
        for action in ("alloc", "free_requested", "free_completed"):
            trace.append(entry(action, at, size, time_us=len(trace) + 1))
    steps = [{"stage": "START", "name": f"ProfilerStep#{n}", "device": 0, "time_us": 3 * n + 1} for n in range(20_000)]
    made = loaded([segment(at, [block(8 << 20, "inactive")])], [trace], external_annotations=steps)
    findings = analyze(made, whatif=False)
    assert findings.devices[0].steps.count == 20_000
    assert len(render_html(findings).encode()) <= TYPICAL


@pytest.mark.parametrize("name", SAMPLES)
def test_a_typical_page_is_small(name: str):
    assert len(render_html(sample_findings(name)).encode()) <= TYPICAL


def test_the_same_findings_give_the_same_page():
    findings = sample_findings("oom_fragmentation")
    assert render_html(findings) == render_html(findings)


@pytest.mark.parametrize("name", SAMPLES)
def test_the_verdict_comes_first_and_numbers_are_those_of_the_findings(name: str):
    findings = sample_findings(name)
    text = render_html(findings)
    device = findings.main
    assert device is not None
    if device.oom is not None:
        assert text.index("<h1>") < text.index('id="todo"') < text.index('id="when"') < text.index('id="who"')
        assert f'title="{device.oom.totals.reserved:,} bytes">{format_bytes(device.oom.totals.reserved)}' in text
    for use in device.sites:
        if use.bytes * SMALL >= device.at.allocated:
            assert f'data-v="{use.bytes}"' in text


def test_hostile_strings_are_text():
    text = render_html(hostile_findings())
    parsed = Page(text)
    assert parsed.all("img") == []
    assert len(parsed.all("script")) == 3
    assert "\x00" not in text
    assert "\u202e" not in text
    assert "\x1b" not in text
    json.loads("".join(parsed.content["script"][1:2]))


def test_the_title_is_the_readers_to_choose():
    text = render_html(sample_findings("train_ok"), title="Run 7 <b>")
    assert "<title>Run 7 &lt;b&gt;</title>" in text


def test_no_growth_leak_or_fragmentation_is_claimed_of_a_healthy_run():
    text = re.sub(
        r"<script.*?</script>|<style.*?</style>", "", render_html(sample_findings("train_ok")), flags=re.DOTALL
    )
    assert "No OOM: allocated memory peaked" in text
    assert not re.search(r"\bleak\b|fragmentation", re.sub(r"<[^>]*>", "", text))


@needs_shared
@pytest.mark.parametrize("name", [*captures(), *public()])
def test_every_real_snapshot_gives_a_page(name: str):
    text = render_html(analyze(shared_snapshot(name), whatif=False))
    Page(text)
    assert len(text.encode()) <= BOUND


def test_an_existing_file_is_kept_unless_forced(tmp_path):
    path = tmp_path / "report.html"
    path.write_text("mine")
    with pytest.raises(OutputError, match="already exists"):
        write_report(sample_findings("train_ok"), path)
    assert path.read_text() == "mine"
    assert write_report(sample_findings("train_ok"), path, force=True) == path
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("suffix", "begin"), [(".md", "### "), (".json", "{"), (".txt", ""), (".html", "<!DOCTYPE html>")]
)
def test_the_name_of_the_file_decides_the_format(tmp_path, suffix: str, begin: str):
    path = write_report(sample_findings("train_ok"), tmp_path / f"report{suffix}")
    text = path.read_text(encoding="utf-8")
    assert text.startswith(begin)
    assert ("<!DOCTYPE" in text) == (suffix == ".html")


def test_a_file_that_cannot_be_written_leaves_nothing_behind(tmp_path):
    with pytest.raises(OutputError, match="cannot be written"):
        write_text_atomically(tmp_path / "missing" / "report.html", "text")
    with pytest.raises(OutputError, match="is a directory"):
        write_text_atomically(tmp_path, "text", force=True)
    assert list(tmp_path.iterdir()) == []


def test_importing_the_package_brings_in_neither_matplotlib_nor_jinja2():
    code = "import sys, oomscope.rendering; sys.exit(bool({'matplotlib', 'jinja2', 'rich'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

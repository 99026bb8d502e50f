"""Markdown for tickets: short enough, legible as text, and nothing foreign becomes markup."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from oomscope.rendering.markdown import MAX_BYTES, escaped, render_markdown
from tests.rendering.hostile import hostile_findings
from tests.samples import SAMPLES, sample_findings


@pytest.mark.parametrize("name", SAMPLES)
def test_fits_a_comment_and_begins_with_the_verdict(name: str):
    text = render_markdown(sample_findings(name))
    assert len(text.encode()) < MAX_BYTES
    assert text.startswith("### ")
    assert text.count("<details>") == text.count("</details>")


@pytest.mark.parametrize("name", SAMPLES)
def test_tables_line_up_as_plain_text(name: str):
    for table in re.findall(r"(?:^\|.*\n)+", render_markdown(sample_findings(name)), re.MULTILINE):
        lines = table.splitlines()
        assert len({len(line) for line in lines}) == 1
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}) == 1


def test_hostile_names_become_no_markup():
    text = render_markdown(hostile_findings())
    assert len(text.encode()) < MAX_BYTES
    assert "<img" not in re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    # Inside a code block nothing is markup.
    outside = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    assert "@octocat" not in outside
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "\n## heading" not in text
    assert "http://evil" not in outside


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a|b", r"a\|b"),
        ("`x`", r"\`x\`"),
        ("<b>&", "&lt;b&gt;&amp;"),
        ("train_step", "train_step"),
        ("__init__", r"\_\_init\_\_"),
        ("@someone", "@\u200bsomeone"),
        ("see #12", "see #\u200b12"),
        ("https://x.y", "https://\u200bx.y"),
    ],
)
def test_escapes(text: str, shown: str):
    assert escaped(text) == shown


def test_what_is_too_long_is_left_out_and_said_so():
    findings = hostile_findings()
    device = findings.devices[0]
    site = replace(device.sites[0], label="|" * 300, site=None)
    pin_like = tuple(replace(site, bytes=at) for at in range(5000))
    many = replace(device, sites=pin_like, names=tuple(replace(device.names[0], name="`" * 400) for _ in range(500)))
    text = render_markdown(replace(findings, devices=(many,)), title="t" * 10_000)
    assert len(text.encode()) < MAX_BYTES

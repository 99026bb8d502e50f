"""Markdown for tickets: short enough, legible as text, and nothing foreign becomes markup."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from oomscope.analysis import analyze
from oomscope.reading import load
from oomscope.rendering.common.sources import Sources
from oomscope.rendering.html.culprit import culprit
from oomscope.rendering.markdown import MAX_BYTES, escaped, prose, render_markdown
from oomscope.wording.paths import shortener
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


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Use `x.detach()` here", "Use `x.detach()` here"),
        ("`a` and `b c`", "`a` and `b c`"),
        ("odd ` tick", r"odd \` tick"),
        ("`<img>`", r"\`&lt;img&gt;\`"),
        ("`@someone`", "\\`@\u200bsomeone\\`"),
        ("`http://evil`", "\\`http:\u200b//evil\\`"),
    ],
)
def test_code_in_sentences(text: str, shown: str):
    assert prose(text) in (shown, shown.replace(":\u200b//", "://\u200b"))


@pytest.mark.parametrize("name", ["oom_leak_total_loss", "oom_fragmentation", "oom_activations"])
def test_what_to_do_stands_before_the_tables_and_the_evidence_is_one_line(name: str):
    text = render_markdown(sample_findings(name))
    assert 0 < text.index("**What to do**") < text.index("\n|")
    assert len(re.findall(r"^<sub>How we know: .*</sub>$", text, re.MULTILINE)) == 1


def test_a_holder_is_said_to_be_held_as_something():
    path = Path(__file__).parents[1] / "recording" / "fixtures" / "leak_total_loss.pickle.xz"
    text = render_markdown(analyze(load(path), whatif=False))
    assert re.search(r"\| autograd graph +\| leak_total_loss: total_loss", text)
    assert re.search(r"\| parameters +\|", text)


def test_the_line_is_quoted_with_its_neighbours():
    findings = sample_findings("oom_leak_total_loss")
    line = culprit(findings.devices[0], shortener(findings.snapshot.stacks), Sources())
    assert line is not None
    assert f"{line.function} ({line.file}:{line.line})" in render_markdown(findings)
    text = ["for batch in loader:", "    loss = step(batch)  # ```", ""]
    source = {"filename": line.full.rpartition(":")[0], "line": line.line, "first": line.line - 1, "text": text}
    shown = render_markdown(replace(findings, snapshot=replace(findings.snapshot, context={"sources": [source]})))
    assert (
        f"```python\n  {line.line - 1:>5}  for batch in loader:\n→ {line.line:>5}      loss = step(batch)  # '''"
        in shown
    )

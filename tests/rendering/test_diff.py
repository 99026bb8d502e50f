"""A comparison in every format: valid, complete, harmless, and the same figures everywhere."""

from __future__ import annotations

import json
import re

import jsonschema
import pytest

from oomscope.analysis.compare.diff import compare
from oomscope.analysis.compare.records import Diff
from oomscope.rendering.diff import DIFF_SCHEMA, MOST_SITES, diff_document, diff_to_json, diff_to_markdown, diff_to_text
from oomscope.rendering.html.diff_page import diff_to_html
from oomscope.rendering.html.page_size import MOST_BYTES
from oomscope.rendering.markdown import MAX_BYTES
from oomscope.wording.diff import signed_bytes, times
from tests.analysis.programs import MIB, Program
from tests.builders import frame
from tests.compare.seeded import PLAIN, TRUTHS
from tests.samples import BUNDLED, SAMPLES, bundled_path, sample

SCHEMA = json.loads(DIFF_SCHEMA.read_text(encoding="utf-8"))
HOSTILE = "<script>alert(1)</script>\u202e\x1b[31m|`@everyone` #1 \ud800"


def strict(schema: object) -> object:
    """`schema`, in which objects may have no members beyond those that are named."""
    if isinstance(schema, dict):
        made = {key: strict(value) for key, value in schema.items()}
        if made.get("additionalProperties") is True:
            made["additionalProperties"] = False
        return made
    return [strict(item) for item in schema] if isinstance(schema, list) else schema


def check(found: Diff) -> dict:
    document = json.loads(diff_to_json(found))
    jsonschema.validate(document, strict(SCHEMA))
    return document


def seeded(name: str) -> Diff:
    return compare(PLAIN.snapshot(), TRUTHS[name].variant.snapshot(), files=("a.pickle", "b.pickle"))


def hostile(size: int, files: int = 1) -> Diff:
    def recording(count: int) -> Program:
        program = Program()
        for number in range(files):
            program.alloc(count * MIB, (frame(HOSTILE, number + 1, f"/{HOSTILE}/{number}{HOSTILE * size}.py"),))
        return program

    return compare(recording(3).snapshot(), recording(9).snapshot(), files=(HOSTILE, HOSTILE))


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("name", SAMPLES)
def test_every_pair_of_samples_is_valid_in_every_format(name: str):
    found = compare(sample(SAMPLES[0]), sample(name), files=(SAMPLES[0], name))
    document = check(found)
    assert sum(row["change"] for row in document["sites"]) == document["change"]["allocated"]
    assert sum(row["change"] for row in document["stacks"]) == document["change"]["allocated"]
    assert document["nothing_changed"] == (name == SAMPLES[0])
    for text in (diff_to_text(found), diff_to_markdown(found), diff_to_html(found)):
        assert document["headline"].split(":")[0] in " ".join(text.replace("\u200b", "").split())
    assert len(diff_to_markdown(found).encode()) < MAX_BYTES
    assert max(map(len, diff_to_text(found).splitlines())) <= 80


@pytest.mark.parametrize("name", BUNDLED)
def test_recordings_with_names_and_holders_are_valid(name: str):
    from oomscope.reading import load

    found = compare(load(bundled_path(BUNDLED[0])), load(bundled_path(name)), at="end")
    document = check(found)
    for rows in (document["names"], document["holders"]):
        assert rows is None or all(row["change"] == row["after"] - row["before"] for row in rows)


def test_of_a_file_and_itself_it_says_that_nothing_changed():
    found = compare(sample("oom_fragmentation"), sample("oom_fragmentation"))
    assert "Nothing changed." in diff_to_text(found)
    assert diff_to_text(found).count("\n") <= 3
    assert "Nothing changed." in diff_to_markdown(found)
    assert "<h1>Nothing changed.</h1>" in diff_to_html(found)
    assert check(found)["nothing_changed"] is True


def test_the_seeded_regression_stands_first_everywhere():
    found = seeded("all at once, batch doubled, rank 3")
    text, page, markdown = diff_to_text(found), diff_to_html(found), diff_to_markdown(found)
    rows = text[text.index("What changed") :].splitlines()
    assert "log_metrics" in rows[2]
    assert re.search(r"1</span>.*?log_metrics", page)
    assert re.search(r"\*\*What changed\*\*\n\n.*\n.*\n.*log\\?_metrics", markdown)
    assert "× 2" in text
    assert check(found)["sites"][0]["site"]["function"] == "log_metrics"


def test_what_the_figure_shows_are_the_rows_beside_it():
    page = diff_to_html(seeded("batch 1.5"))
    steps = re.findall(r'class="tag">(\d+)</span>', page[: page.index("<nav")])
    assert steps == [str(number) for number in range(1, len(steps) + 1)]
    assert len(steps) >= 5
    assert '<svg class="fig" id="fig-change"' in page


@pytest.mark.parametrize("size", [1, 3000])
def test_a_strangers_names_break_nothing(size: int):
    found = hostile(size, files=12)
    page, text, markdown = diff_to_html(found), diff_to_text(found), diff_to_markdown(found)
    assert "<script>alert" not in page
    assert "<script>alert" not in markdown
    assert len(page.encode("utf-8", "backslashreplace")) <= MOST_BYTES
    for shown in (page, text, markdown):
        assert "\x1b" not in shown
        assert "\u202e" not in shown
    assert "@everyone" not in markdown
    check(found)


def test_the_page_loads_nothing_and_allows_only_its_own_script():
    page = diff_to_html(seeded("lines moved"))
    assert "default-src 'none'" in page
    assert not re.search(r'(?:src|href)="(?!#|data:)', page)
    assert "style=" not in page


def test_a_document_of_many_sites_is_cut_and_still_adds_up():
    program, other = Program(), Program()
    for line in range(MOST_SITES + 50):
        program.alloc(512, (frame("f", line + 1),))
        other.alloc(1024, (frame("f", line + 1),))
    document = diff_document(compare(program.snapshot(), other.snapshot()))
    assert len(document["sites"]) == MOST_SITES + 1
    assert sum(row["change"] for row in document["sites"]) == document["change"]["allocated"]
    assert document["sites"][-1]["label_code"] == "all_others"


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (1536, "+1.50 KiB"), (-1536, "−1.50 KiB"), (5 << 30, "+5.00 GiB")]
)
def test_changes_have_a_sign(count: int, text: str):
    assert signed_bytes(count) == text


def test_factors_are_short():
    assert [times(factor) for factor in (1.5, 2.0, 1 / 3, 48.0)] == ["× 1.5", "× 2", "× 0.3333", "× 48"]

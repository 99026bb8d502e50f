"""Answers as text, Markdown and JSON, and the command that prints them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest

from oomscope.analysis import analyze
from oomscope.analysis.whatif import WhatIf, whatif
from oomscope.analysis.whatif.records import SelfCheck, WhatIfRow
from oomscope.commands.common.errors import run
from oomscope.model import note
from oomscope.rendering import render_html
from oomscope.rendering.common.whatif_table import changing, left_every_pass, split_rows, view
from oomscope.rendering.markdown import render_markdown
from oomscope.rendering.text.terminal import render_text
from oomscope.rendering.whatif import as_document, to_json, to_markdown, to_text
from oomscope.wording.whatif_table import CONDITIONS, EXPLAINED, HEADINGS, headroom_text, outcome_text
from tests import builders
from tests.said import reason_text
from tests.samples import sample_findings
from tests.whatif.recorder import Recorder

MIB = 1 << 20
CONTRACT = {
    "setting", "limit", "peak_reserved", "final_reserved", "peak_allocated", "segment_allocs", "retries", "oom",
    "failed_allocation", "headroom", "least_memory", "range", "exact", "note",
}  # fmt: skip


DEPARTS = SelfCheck(3, 1, 2, 5, note("whatif.replay_departs", entry=5, mismatches=2, addresses=3, segment_events=1))


def recorded() -> Recorder:
    recorder = Recorder()
    for name in range(6):
        recorder.malloc(name, 9 * MIB)
    recorder.free(2)
    recorder.malloc(9, 30 * MIB)
    return recorder


@pytest.fixture
def answer() -> WhatIf:
    return whatif(recorded().snapshot(), 0, limit=64 * MIB)


def test_the_json_has_what_was_promised(answer: WhatIf) -> None:
    document = json.loads(to_json(answer))
    assert document["schema_version"] == 2
    assert document["next"][0] == "oomscope report SNAPSHOT"
    assert {"addresses", "mismatches", "first_mismatch"} <= set(document["self_check"])
    for row in document["whatif"]:
        assert set(row) >= CONTRACT
        assert isinstance(row["range"]["peak_reserved"], list)
    assert document["whatif"][0]["setting"] == "recorded"
    assert document["whatif"][0]["oom"] is True
    assert document["whatif"][0]["failed_allocation"] == 6


def test_an_unknown_is_null() -> None:
    refused = WhatIf(0, DEPARTS, (WhatIfRow("recorded", notes=(note("whatif.from_the_trace"),)),))
    row = as_document(refused)["whatif"][0]
    assert row["peak_reserved"] is None
    assert row["oom"] is None
    assert row["range"] == {}


@pytest.mark.parametrize("render", [to_text, to_markdown])
def test_every_row_stands_in_the_table_with_what_holds_for_it(render: object, answer: WhatIf) -> None:
    text = render(answer)  # type: ignore[operator]
    for row in answer.rows:
        assert row.setting in text
    flat = " ".join(text.split())
    assert "fails after 6 allocations" in flat
    assert "all 7 addresses" in flat or "all 6 addresses" in flat
    assert "Limit: 64.0 MiB" in flat
    assert "All rows: up to the last recorded entry" in flat
    assert CONDITIONS in flat
    assert EXPLAINED in flat


def test_a_failed_check_says_so_first() -> None:
    text = to_text(WhatIf(0, DEPARTS, (WhatIfRow("recorded"),)))
    assert " ".join(text.split()).startswith(f"What if, device 0 Self-check failed: {reason_text(DEPARTS)}.")


def test_what_was_left_out_is_said() -> None:
    answer = WhatIf(0, SelfCheck(3, 1, 0, None), (WhatIfRow("recorded"),), ("max_split_size_mb:512",))
    assert "Skipped, time budget spent: max_split_size_mb:512." in " ".join(to_text(answer).split())


def test_a_pipe_in_a_setting_does_not_break_the_table() -> None:
    answer = WhatIf(0, SelfCheck(3, 1, 0, None), (WhatIfRow("a|b"),))
    row = next(line for line in to_markdown(answer).splitlines() if "a\\|b" in line)
    assert row.replace("\\|", "").count("|") == 8


CHECK = SelfCheck(3, 1, 0, None)
LAST, ONE_ORDER = note("whatif.up_to_the_last_entry"), note("whatif.one_order")
LONG = WhatIfRow(
    "recorded, without metrics.py:17, model.py:31 × 0.5 freed each step",
    limit=14 << 30, peak_reserved=1020 * MIB, final_reserved=1020 * MIB, peak_allocated=13 << 30, retries=1234,
    oom=True, failed_allocation=1_234_567, headroom=-1020 * MIB, least_memory=1020 * MIB,
    range={"peak_reserved": (1000 * MIB, 1020 * MIB), "retries": (1200, 1300)},
    notes=(LAST, ONE_ORDER),
)  # fmt: skip


@pytest.mark.parametrize("width", [60, 79, 80])
def test_a_setting_and_its_outcome_stand_above_the_figures_where_a_line_is_too_short(width: int) -> None:
    text = to_text(WhatIf(0, CHECK, (LONG, WhatIfRow("plain", notes=(LAST,)))), width)
    assert max(map(len, text.splitlines())) <= width
    title = f"{LONG.setting} [1, 2] – fails after 1,234,567 allocations"
    assert f"{title} 1,020 MiB short 1,020 MiB 1,020 MiB 1,234 1,020 MiB" in " ".join(text.split())


@pytest.mark.parametrize("width", [20, 40])
def test_no_figure_is_cut_short_however_narrow_the_terminal(width: int) -> None:
    text = to_text(WhatIf(0, CHECK, (LONG,)), width)
    assert max(map(len, text.splitlines())) <= width
    assert (
        "outcome fails after 1,234,567 allocations; room left 1,020 MiB short; peak 1,020 MiB; at the end 1,020 MiB; "
        "retries 1,234; needed 1,020 MiB"
    ) in " ".join(text.split())


def test_where_there_is_room_a_setting_is_one_line() -> None:
    text = to_text(WhatIf(0, CHECK, (WhatIfRow("recorded", oom=False, peak_reserved=20 * MIB, retries=0),)), 120)
    cells = ["recorded", "no", "failure", "–", "20.0", "MiB", "–", "0", "–"]
    assert any(line.split() == cells for line in text.splitlines())


@pytest.mark.parametrize(
    ("headroom", "per_pass", "told"),
    [
        (None, None, "serves this request"),
        (99, 100, "serves this request; fails again in the next pass"),
        (100, 100, "serves this request; fails again after about 1 pass"),
        (350, 100, "serves this request; fails again after about 3 passes"),
        (None, 100, "serves this request; the growth goes on"),
    ],
)
def test_a_run_that_grows_is_not_said_to_survive(headroom: int | None, per_pass: int | None, told: str) -> None:
    row = WhatIfRow("a:1", oom=False, peak_reserved=20 * MIB, headroom=headroom, served={7: True})
    assert view(WhatIf(0, CHECK, (row,)), per_pass).rows[0].cells[0].text == told
    assert outcome_text(replace(row, served={7: True, 9: True})) == "serves every recorded request"
    assert outcome_text(replace(row, oom=True, failed_allocation=3), per_pass) == "fails after 3 allocations"


def test_only_where_the_verdict_is_growth_a_pass_leaves_something() -> None:
    leak, calm = sample_findings("oom_leak_total_loss").main, sample_findings("train_ok").main
    assert leak is not None
    assert leak.oom is not None
    assert left_every_pass(leak) == next(one.values["per_pass"] for one in leak.oom.verdict.headline)
    assert [left_every_pass(one) for one in (calm, None, sample_findings("oom_activations").main)] == [None] * 3
    for values, left in (({"each": 60 * MIB, "every": 3}, 20 * MIB), ({"each": "each of", "hooks": 9}, None)):
        verdict = replace(leak.oom.verdict, headline=(note("causes.growth", **values),))
        assert left_every_pass(replace(leak, oom=replace(leak.oom, verdict=verdict))) == left


def test_a_note_is_one_line_and_rows_refer_to_it_by_number() -> None:
    rows = [WhatIfRow(name, notes=(LAST, *notes)) for name, notes in NOTED]
    shown = view(WhatIf(0, CHECK, tuple(rows)))
    assert shown.notes == ("One order of addresses tried.", "Not answered: nothing is left to replay.")
    assert [row.marks for row in shown.rows] == [(), (1,), (1, 2)]
    assert [row[0] for row in shown.table.rows] == ["a:1,b:2", "c [1]", "d [1, 2]"]
    assert shown.numbered == ("[1] One order of addresses tried.", "[2] Not answered: nothing is left to replay.")


NOTED = (
    ("a:1,b:2", ()),
    ("c", (ONE_ORDER,)),
    ("d", (note("whatif.not_answered", why=note("whatif.nothing_left")), ONE_ORDER)),
)


def test_ranges_over_orders_of_addresses_are_a_note() -> None:
    shown = view(WhatIf(0, CHECK, (LONG, WhatIfRow("plain"))))
    assert "Over the orders of addresses: peak 1,000 MiB to 1,020 MiB, retries 1,200 to 1,300." in shown.notes


def test_ranges_too_small_to_be_seen_are_said_to_be() -> None:
    row = WhatIfRow("a:1", peak_reserved=20 * MIB, range={"peak_reserved": (20 * MIB, 20 * MIB + 512)})
    assert "The orders of addresses differ by less than is shown." in view(WhatIf(0, CHECK, (row, LONG))).notes


def test_what_is_missing_is_not_a_negative_number() -> None:
    shown = [headroom_text(WhatIfRow("a", headroom=count)) for count in (-1020 * MIB, 0, 110 * MIB, None)]
    assert shown == ["1,020 MiB short", "0 B", "110 MiB", "–"]


def test_a_report_says_the_same_as_the_command(answer: WhatIf) -> None:
    recorder = recorded()
    findings = replace(analyze(recorder.snapshot(), whatif=False), whatif=(answer,))
    first, second, *rest = answer.rows
    answer = replace(answer, rows=(first, replace(second, oom=False, failed_allocation=None), *rest))
    findings = replace(findings, whatif=(answer,))
    changed, unchanged = changing(answer)
    assert len(changed.rows) > 1
    text, markdown = render_text(findings), render_markdown(findings)
    for row in view(changed).rows:
        for shown in (row.setting, *(cell.text for cell in row.cells)):
            assert shown in text
            assert shown in markdown
    for setting in unchanged:
        assert setting in " ".join(text.split())
        assert setting in markdown
    assert view(changed).check in " ".join(text.split())


def test_the_page_has_the_same_headings_cells_and_notes(answer: WhatIf) -> None:
    findings = replace(analyze(recorded().snapshot(), whatif=False), whatif=(answer,))
    page = render_html(findings)
    section = re.sub(r"<sup>.*?</sup>", "", page[page.index('id="h-whatif"') : page.index('id="when"')])
    cells = [unescape(re.sub("<[^>]+>", "", cell)) for cell in re.findall(r"<t[hd][ >].*?</t[hd]>", section)]
    shown = view(answer)
    expected = []
    changed, rest = split_rows(answer, shown)
    tables = [changed] if len(changed) > 1 else []
    for rows in [*tables, shown.rows] if rest or not tables else tables:
        expected += [heading.capitalize() for heading in HEADINGS]
        for row in rows:
            expected += [row.setting, *(cell.text for cell in row.cells)]
    assert cells == expected
    text = unescape(section)
    for sentence in (*shown.notes, shown.common, EXPLAINED, CONDITIONS):
        assert sentence in text
    assert f'title="{answer.rows[0].peak_reserved:,} bytes"' in section


def test_a_reason_that_the_check_gives_is_not_repeated() -> None:
    rows = (
        WhatIfRow("recorded", notes=(note("whatif.from_the_trace", why=DEPARTS.reason),)),
        WhatIfRow("a:1", notes=(note("whatif.not_answered", why=DEPARTS.reason),)),
        WhatIfRow("b:1", notes=(note("whatif.not_answered", why=note("whatif.steps_unknown")),)),
    )
    shown = view(WhatIf(0, DEPARTS, rows))
    other = "Not answered: the steps of the program are not known."
    assert shown.notes == ("From the trace, not replayed.", "Not answered.", other)
    assert shown.check == f"Self-check failed: {reason_text(DEPARTS)}."


def test_a_hostile_setting_moves_no_cursor() -> None:
    answer = WhatIf(
        0, CHECK, (WhatIfRow("\x1b[31m\u202e", notes=(note("whatif.rest_as_recorded", conf="\x1b]0;\x07"),)),)
    )
    for text in (to_text(answer), to_markdown(answer)):
        assert not {"\x1b", "\u202e", "\x07"} & set(text)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "oom.json"
    recorder = recorded()
    recorder.snapshot()
    document = builders.snapshot(recorder.segments(), [recorder.entries], allocator_settings=recorder.settings())
    path.write_text(json.dumps(document))
    return path


def test_the_command_prints_the_answer(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--setting", "expandable_segments:True", "--limit", "64MiB", "--format", "json"]
    assert run(["whatif", str(file), *asked]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [row["setting"] for row in document["whatif"]] == ["recorded", "expandable_segments:True"]
    assert document["whatif"][1]["limit"] == 64 * MIB


def test_the_command_writes_a_file_once(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "out.md"
    asked = ["whatif", str(file), "-f", "md", "-o", str(target)]
    assert run(asked) == 0
    assert target.read_text().startswith("### What if")
    assert run(asked) == 1
    assert "Error: " in capsys.readouterr().err
    assert run([*asked, "--force"]) == 0


@pytest.mark.parametrize(
    ("asked", "code", "message"),
    [
        (["--setting", "expandable_segments:yes"], 2, "expandable_segments is True or False, not 'yes'"),
        (["--setting", "max_split_size_mb"], 2, "--setting 'max_split_size_mb': max_split_size_mb needs a value"),
        (["--setting", " "], 2, "--setting is empty"),
        (["--limit", "much"], 2, "--limit 'much' is not a size"),
        (
            ["--limit", "4"],
            2,
            "--limit '4' is 4 B, less than the smallest segment (2.00 MiB); write it with a unit, such as 4GiB",
        ),
        (["--limit", "2097151"], 2, "less than the smallest segment"),
        (["--limit", "2048TiB"], 2, "more than any device has"),
        (["--limit", "16GiB", "--limit", "8GiB"], 2, "--limit was given 2 times; give it once"),
        (["--gpu", "80"], 2, "such as 80GiB"),
        (["--gpu", "Voodoo"], 2, "neither a size such as 24GiB nor a known device"),
        (["--gpu", "H100", "--gpu", "H100"], 2, "--gpu was given 2 times; give it once"),
        (["--scale", "model.py:3"], 2, "--scale 'model.py:3' is not SITE=FACTOR"),
        (["--scale", "model.py:3=-1"], 2, "is not SITE=FACTOR"),
        (["--scale", "=2"], 2, "'' is not a place in the code"),
        (["--without", ""], 2, "--without '' is not a place in the code"),
        (["--free-each-step", " "], 2, "is not a place in the code"),
        (["--device", "7"], 1, "nothing about device 7; it has 0"),
        (["--without", "nowhere.py:3"], 1, "no recorded allocation comes from nowhere.py:3"),
        (["--scale", "nowhere.py:3=2"], 1, "no recorded allocation comes from nowhere.py:3"),
    ],
)
def test_what_cannot_be_served_is_one_line(
    file: Path, asked: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["whatif", str(file), *asked]) == code
    error = capsys.readouterr().err
    assert message in error
    assert error.startswith("Error: ")
    assert error.count("\n") == 1


def test_wrong_usage_is_seen_before_the_file_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["whatif", "missing.pickle", "--limit", "4"]) == 2
    assert run(["whatif", "missing.pickle", "--limit", "2MiB"]) == 1
    assert "no such file" in capsys.readouterr().err


def test_a_snapshot_without_a_trace_cannot_be_served(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "empty.json"
    path.write_text(json.dumps(builders.snapshot([builders.segment(1 << 40, [builders.block(2 * MIB)])])))
    assert run(["whatif", str(path)]) == 1
    assert "nothing to replay" in capsys.readouterr().err


def _answer(*rows: WhatIfRow) -> WhatIf:
    return WhatIf(0, SelfCheck(10, 10, 0, None), rows)


@pytest.mark.parametrize(
    ("row", "changes"),
    [
        (WhatIfRow("other", peak_reserved=990, oom=False), True),
        (WhatIfRow("other", peak_reserved=991, oom=False), False),
        (WhatIfRow("other", peak_reserved=1000, oom=True), True),
        (WhatIfRow("other", peak_reserved=1000, oom=None), True),
    ],
)
def test_a_report_shows_the_settings_that_change_something(row: WhatIfRow, changes: bool) -> None:
    recorded = WhatIfRow("recorded", peak_reserved=1000, oom=False)
    shown, left_out = changing(_answer(recorded, row))
    assert [one.setting for one in shown.rows] == ["recorded", *(["other"] if changes else [])]
    assert left_out == (() if changes else ("other",))


def test_of_two_failures_the_peak_is_no_difference_but_a_served_request_is() -> None:
    recorded = WhatIfRow("recorded", peak_reserved=1000, oom=True, served={9: False})
    worse = WhatIfRow("worse", peak_reserved=500, oom=True, served={9: False})
    later = WhatIfRow("later", peak_reserved=1000, oom=True, served={9: True})
    assert changing(_answer(recorded, worse, later))[1] == ("worse",)

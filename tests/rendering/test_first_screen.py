"""What the page opens with agrees with the findings: parts add up, the line is the culprit's, effects are right."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from oomscope.analysis import Findings, analyze
from oomscope.analysis.findings import DeviceFindings
from oomscope.analysis.records import Location
from oomscope.analysis.verdict.records import Advice
from oomscope.model import Snapshot, note
from oomscope.reading import load
from oomscope.rendering import render_html
from oomscope.rendering.common.sources import Sources
from oomscope.rendering.html import failures, palette
from oomscope.rendering.html import live_parts as module
from oomscope.rendering.html.culprit import culprit
from oomscope.rendering.html.first_screen import first_screen, fixes, quoted
from oomscope.rendering.html.holder_rows import beyond_holders, holder_rows
from oomscope.rendering.html.live_parts import live_parts
from oomscope.rendering.html.memory_bars import memory_bar
from oomscope.rendering.html.part_rows import made_of
from oomscope.rendering.html.small_timeline import draw_strip
from oomscope.rendering.html.svg import StyleSheet
from oomscope.units import format_bytes
from oomscope.wording.page import ENOUGH_SO_FAR, bill_note, effect_text, else_text, growth_note, missing, stored_note
from oomscope.wording.paths import shortener
from oomscope.wording.places import holder_name
from oomscope.wording.verdict_text import advice_text
from tests.rendering.hostile import hostile_findings
from tests.samples import SAMPLES, bundled_path, sample_findings

PROGRAMS = Path(__file__).resolve().parents[1] / "captures" / "programs"
FIXTURES = Path(__file__).resolve().parents[1] / "recording" / "fixtures"
GIB = 1 << 30


def holding(filename: str, first: int, *text: str) -> Snapshot:
    """A snapshot that carries lines of one file."""
    source = {"filename": filename, "line": first, "first": first, "text": list(text)}
    context = {"schema_version": 1, "sources": [source]}
    return replace(sample_findings("train_ok").snapshot, context=context)


def held_by_a_list() -> Findings:
    return analyze(load(FIXTURES / "leak_total_loss.pickle.xz"), whatif=False)


def every() -> list[Findings]:
    return [hostile_findings(), held_by_a_list(), *map(sample_findings, SAMPLES)]


def test_parts_sum_to_what_is_allocated_and_the_bar_to_what_pytorch_may_have():
    for findings in every():
        device = findings.main
        assert device is not None
        held = live_parts(device, str)
        assert sum(part.bytes for part in held.parts) == device.at.allocated
        rows = device.history.lifetimes.allocated_at(device.at_entry)
        assert np.array_equal(held.key < len(held.parts), rows)
        shown = first_screen(findings, shortener(findings.snapshot.stacks), Sources(), StyleSheet())
        assert sum(part.bytes for part in shown.parts) >= device.at.reserved
        assert sum(float(part.width) for part in shown.parts) == pytest.approx(100, abs=0.3)


def test_the_holder_of_the_headline_is_the_first_part():
    device = held_by_a_list().main
    assert device is not None
    assert device.oom is not None
    (named,) = [note.values["holder"] for note in device.oom.verdict.headline if "holder" in note.values]
    suspect = next(one for one in device.oom.verdict.suspects if one.holder == named)
    first = live_parts(device, str).parts[0]
    assert first.label == named.rpartition(": ")[2]
    assert first.colour == palette.KEPT
    assert 0.9 * suspect.retained <= first.bytes <= suspect.retained


def test_a_kind_that_fills_the_bar_is_split_by_line(monkeypatch: pytest.MonkeyPatch):
    device = sample_findings("oom_leak_total_loss").main
    assert device is not None
    graphs = [part for part in live_parts(device, str).parts if part.colour == palette.KEPT]
    assert len(graphs) == module.MOST_LINES + 1
    assert "loss_fn" in graphs[0].label
    share = sum(part.bytes for part in graphs) / device.at.allocated
    for at, lines in ((share - 1e-6, len(graphs)), (share + 1e-6, 1)):
        monkeypatch.setattr(module, "SPLIT_SHARE", at)
        assert sum(part.colour == palette.KEPT for part in live_parts(device, str).parts) == lines


def test_what_is_too_small_is_one_part(monkeypatch: pytest.MonkeyPatch):
    device = sample_findings("oom_leak_total_loss").main
    assert device is not None
    kinds = {part.label: part for part in live_parts(device, str).parts}
    least = kinds["parameters"].bytes / device.at.allocated
    monkeypatch.setattr(module, "LEAST_SHARE", least)
    assert "parameters" in {part.label for part in live_parts(device, str).parts}
    monkeypatch.setattr(module, "LEAST_SHARE", least + 1e-6)
    assert "parameters" not in {part.label for part in live_parts(device, str).parts}


@pytest.mark.parametrize(
    ("name", "line", "note"),
    [
        ("oom_leak_total_loss", 206, "called here: 325 MiB more stays every pass"),
        ("oom_fragmentation", 227, "592 blocks made here lie between the free pieces"),
        ("oom_activations", 60, "from here on, more memory than in any pass before"),
        ("train_ok", 64, "834 MiB was allocated here"),
    ],
)
def test_the_line_is_the_culprits(name: str, line: int, note: str):
    findings = sample_findings(name)
    assert findings.main is not None
    found = culprit(findings.main, shortener(findings.snapshot.stacks), Sources())
    assert found is not None
    assert (found.file, found.line, found.note, found.excerpt) == ("workloads.py", line, note, None)


@pytest.mark.parametrize(
    ("name", "line", "note"),
    [
        ("hparam_search", 105, "called here: 4.45 GiB more stays every pass"),
        ("citation_gates", 92, "called here: asks for more than ever before"),
    ],
)
def test_the_line_is_the_culprits_in_programs(name: str, line: int, note: str):
    findings = analyze(load(PROGRAMS / f"{name}.pickle.xz"), whatif=False)
    assert findings.main is not None
    found = culprit(findings.main, shortener(findings.snapshot.stacks), Sources())
    assert found is not None
    assert (found.line, found.note) == (line, note)


@pytest.mark.parametrize(
    ("name", "line", "note"),
    [
        ("recsys_grid", 104, "stored in search.best.optimizer here"),
        ("lesion_seg", 56, "stored in meters.ap.target here, 32.0 MiB more every pass"),
        ("report_coder", 86, "stored in losses here"),
        ("token_index", 64, "64 blocks made here lie between the free pieces"),
    ],
)
def test_the_line_to_change_is_found_through_what_it_stores(name: str, line: int, note: str):
    findings = analyze(load(PROGRAMS / f"{name}.pickle.xz"), whatif=False)
    assert findings.main is not None
    found = culprit(findings.main, shortener(findings.snapshot.stacks), Sources(findings.snapshot))
    assert found is not None
    assert (found.line, found.note, found.to_change) == (line, note, True)


def test_what_an_earlier_training_left_is_a_part_of_its_own():
    findings = analyze(load(PROGRAMS / "recsys_grid.pickle.xz"), whatif=False)
    assert findings.main is not None
    first = live_parts(findings.main, str).parts[0]
    assert first.label == "search.best.optimizer"
    assert first.bytes == next(iter(findings.main.oom.verdict.headline)).values["retained"]  # type: ignore[union-attr]


def test_where_the_request_was_made_stands_beside_its_size_and_what_is_not_sure_at_the_top():
    sure = render_html(analyze(load(PROGRAMS / "lesion_seg.pickle.xz"), whatif=False))
    assert "confidence</a></p>" not in sure
    unsure = render_html(analyze(load(PROGRAMS / "token_index.pickle.xz"), whatif=False))
    assert '<a href="#how">medium confidence</a></p>' in unsure
    assert "</strong> in one piece at encode_shard (token_index.py:84)" in unsure


def test_where_nothing_is_known_to_grow_the_line_that_stores_is_shown_or_else_the_one_that_made_most():
    device = held_by_a_list().main
    assert device is not None
    assert device.oom is not None
    growing = culprit(device, str, Sources())
    assert growing is not None
    assert growing.note.endswith("more stays every pass")
    made = culprit(replace(device, growth=()), str, Sources())
    assert made is not None
    assert made.note.endswith("of it was allocated here")
    (suspect,) = [one for one in device.oom.verdict.suspects if one.holder.endswith("total_loss")]
    told = replace(suspect, at=Location("/proj/train.py", 9, "train"))
    verdict = replace(device.oom.verdict, suspects=(told,))
    known = replace(device, growth=(), oom=replace(device.oom, verdict=verdict))
    source = Sources(holding("/proj/train.py", 7, "def train():", "    loss = step()", "    total_loss += loss"))
    found = culprit(known, str, source)
    assert found is not None
    assert found.line == 9
    assert found.note.startswith(stored_note("total_loss"))


@pytest.mark.parametrize(
    ("name", "line", "note"),
    [
        (
            "oom_leak_in_validation",
            "oom_leak_in_validation.py:12",
            "stored in metric.outputs here, 391 MiB more every pass",
        ),
        ("oom_leak_total_loss", "oom_leak_total_loss.py:25", "stored in total_loss here, 249 MiB more every pass"),
        ("oom_kept_exception", "oom_kept_exception.py:21", "stored in failures here"),
    ],
)
def test_the_line_is_that_of_the_loop_that_the_headline_counts(name: str, line: str, note: str):
    findings = analyze(load(bundled_path(name)), whatif=False)
    assert findings.main is not None
    found = culprit(findings.main, shortener(findings.snapshot.stacks), Sources(findings.snapshot))
    assert found is not None
    assert f"{found.file}:{found.line}" == line
    assert found.note.endswith(note)
    assert found.excerpt is not None
    assert not found.excerpt.text.startswith("print(")


@pytest.mark.parametrize(
    ("name", "to_change"), [("oom_backward", False), ("oom_activations", True), ("oom_kept_exception", True)]
)
def test_only_the_line_to_change_is_marked_as_that(name: str, to_change: bool):
    """A line that calls, allocates or asks is shown, but must not look like the one to edit."""
    findings = analyze(load(bundled_path(name)), whatif=False)
    page = render_html(findings)
    assert ('class="line it"' in page) is to_change
    assert ('class="line it seen"' in page) is not to_change


def test_what_is_made_at_a_line_is_told_from_what_it_calls():
    device = held_by_a_list().main
    assert device is not None
    growth = device.growth[0]
    assert growth.site is not None
    elsewhere = replace(growth.site, line=growth.site.line + 1)
    assert growth_note(growth, growth.site, 1 << 20) == "allocated here: 1.00 MiB more stays every pass"
    assert growth_note(growth, elsewhere, 1 << 20) == "called here: 1.00 MiB more stays every pass"
    timely = replace(growth, kind="time", live_bytes=1 << 20)
    assert growth_note(timely, elsewhere) == "called here: 1.00 MiB that is never freed"


@pytest.mark.parametrize("name", ["oom_leak_in_validation", "oom_kept_exception", "oom_fragmentation"])
def test_a_holder_has_one_number_on_the_page(name: str):
    """In the headline, the bar, both timelines and the table of categories."""
    findings = analyze(load(bundled_path(name)), whatif=False)
    device = findings.main
    assert device is not None
    assert device.oom is not None
    told = next(note.values for note in device.oom.verdict.headline if "holder" in note.values)
    live = live_parts(device, str)
    held = next(part for part in live.parts if part.holder == told["holder"])
    assert format_bytes(held.bytes) == format_bytes(told.get("retained") or told["bytes"])
    remarks = made_of(device, live)
    assert any(held.label in remark for remark in remarks.values())
    rest = [part.label for part in live.parts if part.label.startswith(("other ", "this pass"))]
    assert rest or name == "oom_fragmentation"


def test_a_card_that_is_mostly_free_does_not_fill_the_bar():
    findings = sample_findings("train_ok")
    device = findings.devices[0]
    for share, ends_at_reserved in ((0.69, True), (0.71, False)):
        card = replace(device, device_total=round(device.at.reserved / share), outside=0)
        bar = memory_bar(card)
        assert (sum(part.bytes for part in bar.parts) == device.at.reserved) == ends_at_reserved
        assert (bar.beyond is not None) == ends_at_reserved


@pytest.mark.parametrize(
    ("saves", "enough", "said"),
    [
        (2 * GIB, True, f"saves 2.00 GiB · {ENOUGH_SO_FAR}"),
        (None, True, ENOUGH_SO_FAR),
        (2 * GIB, None, "saves 2.00 GiB · not certain to be enough alone"),
        (None, None, ""),
        (None, False, "not enough alone"),
    ],
)
def test_an_effect_says_what_is_freed_and_whether_it_is_enough(saves: int | None, enough: bool | None, said: str):
    oom = sample_findings("oom_activations").devices[0].oom
    assert oom is not None
    assert effect_text(Advice("smaller_batch", saves_bytes=saves, enough=enough), oom) == said


def test_what_is_enough_for_passes_that_have_fitted_is_enough_alone():
    oom = sample_findings("oom_activations").devices[0].oom
    assert oom is not None
    assert oom.verdict.failing_pass is not None
    fitted = replace(oom.verdict, failing_pass=replace(oom.verdict.failing_pass, completed=3, ratio=1.0))
    advice = Advice("smaller_batch", saves_bytes=2 * GIB, enough=True)
    assert effect_text(advice, replace(oom, verdict=fitted)) == "saves 2.00 GiB · enough alone"


@pytest.mark.parametrize(("spare", "said"), [(0, "enough alone"), (-1, ENOUGH_SO_FAR)])
def test_what_is_enough_for_the_next_step_of_an_optimizer_as_well_is_enough_alone(spare: int, said: str):
    oom = sample_findings("oom_activations").devices[0].oom
    assert oom is not None
    step = note("causes.capacity.first_step", made=GIB, needs=2 * GIB, next=oom.limit.low + 2 * GIB - spare)
    told = replace(oom, verdict=replace(oom.verdict, headline=(step,)))
    advice = Advice("shard_optimizer_state", saves_bytes=2 * GIB, enough=True)
    assert effect_text(advice, told) == f"saves at least 2.00 GiB · {said}"


def test_what_is_not_enough_says_how_much_is_missing():
    oom = sample_findings("oom_activations").devices[0].oom
    assert oom is not None
    short = oom.totals.reserved + oom.alloc_size - oom.limit.low - oom.free.usable
    oom = replace(oom, alloc_size=oom.alloc_size + 3 * GIB)
    advice = Advice("smaller_batch", saves_bytes=GIB, enough=False)
    assert missing(advice, oom) == short + 2 * GIB
    assert effect_text(advice, oom).startswith("saves 1.00 GiB · not enough alone: still ")
    assert missing(replace(advice, saves_bytes=short + 3 * GIB), oom) is None


def test_other_advice_is_counted():
    found = tuple(Advice("a", refuted=refuted) for refuted in (False, False, False, True))
    assert else_text(found) == "2 other fixes, and 1 ruled out"
    assert else_text(found[:1]) == ""
    assert else_text((found[0], found[3])) == "1 fix ruled out"


def test_code_is_marked_and_nothing_else_gets_through():
    assert quoted("use `x<y>` & `z`") == "use <code>x&lt;y&gt;</code> &amp; <code>z</code>"
    assert quoted("a lone ` stays") == "a lone ` stays"


def test_the_small_timeline_ends_at_the_failure_and_names_the_limit():
    findings = sample_findings("oom_leak_total_loss")
    assert findings.main is not None
    found = draw_strip(findings, findings.main, live_parts(findings.main, str), StyleSheet())
    assert found is not None
    assert found.mark is None  # it is the right end, which says so
    assert found.end == "the OOM"
    assert found.limit is not None
    assert found.limit[0] == "limit 11.9 GiB"
    assert found.shaded == "shaded: every other pass"
    assert found.earlier == ()


def test_the_line_of_a_larger_call_is_the_readers_where_a_librarys_wrapper_made_it():
    device = analyze(load(PROGRAMS / "clause_search.pickle.xz")).main
    assert device is not None
    found = culprit(device, str, Sources(device.study.snapshot))
    assert found is not None
    assert (found.file, found.line) == ("/workspace/clause_search.py", 64)


def test_earlier_failures_are_labelled_and_those_close_together_at_once(monkeypatch: pytest.MonkeyPatch):
    findings = sample_findings("oom_leak_total_loss")
    device = findings.main
    assert device is not None
    assert device.oom is not None
    last = device.history.entries - 1
    failed = np.array([last // 4, last // 2, last // 2 + 9, device.oom.entry])
    before = draw_strip(findings, device, live_parts(device, str), StyleSheet())
    monkeypatch.setattr(failures, "given_up_failures", lambda _: failed)
    found = draw_strip(findings, device, live_parts(device, str), StyleSheet())
    assert before is not None
    assert found is not None
    assert [word for _, word in found.earlier] == ["an earlier OOM", "2 earlier OOMs"]
    assert [float(place) for place, _ in found.earlier] == pytest.approx([24.7, 49.4], abs=0.1)
    assert found.svg.count("M") > before.svg.count("M")
    assert "<text" not in found.svg


@pytest.mark.parametrize(
    ("most", "kept"),
    [
        (180, [0, 1, 2, 3]),  # all
        (130, [1, 3, 0]),  # without one
        (30, [1, 3]),  # without the newest two
        (129, [1, 3, 0]),  # without one, by the bytes of tensors
        (160, [0, 1, 2]),  # none fits: what has room
    ],
)
def test_the_bar_leaves_out_the_rows_without_which_the_verdict_is_right_to_the_byte(most: int, kept: list[int]):
    lifetimes = SimpleNamespace(born=np.array([3, 1, 4, 2]), requested=np.array([99, 5, 48, -1]))
    history: Any = SimpleNamespace(size=np.array([100, 5, 50, 25]), lifetimes=lifetimes)
    assert module._filled(np.arange(4), history, most).tolist() == kept


def test_a_higher_cap_is_said_to_be_what_it_is():
    oom = sample_findings("oom_activations").devices[0].oom
    kept = analyze(load(bundled_path("oom_kept_exception")), whatif=False).devices[0].oom
    assert oom is not None
    assert kept is not None
    values = {"least": 5 * GIB, "needed": 4.5 * GIB, "cap": 4 * GIB, "low": 4 * GIB, "free": 9 * GIB, "fraction": None}
    plain = Advice("raise_cap", {**values, "grows": None, "passes": None}, None, enough=True)
    assert effect_text(plain, oom) == f"takes 1.00 GiB more · {ENOUGH_SO_FAR}"
    assert effect_text(plain, kept).endswith(ENOUGH_SO_FAR)
    grows = Advice("raise_cap", {**values, "grows": 1 << 20, "passes": 10}, None, enough=True)
    assert effect_text(grows, oom) == f"takes 1.00 GiB more · {ENOUGH_SO_FAR}"
    leak = sample_findings("oom_leak_total_loss").devices[0].oom
    assert leak is not None
    assert effect_text(grows, leak) == "takes 1.00 GiB more · only delays it, by 10 passes"
    words = advice_text(grows)
    assert words.action == "Raise the cap of 4.00 GiB to 5.00 GiB, with some room to spare."
    needed = (
        "Of the new cap, 4.50 GiB is what the program is expected to reserve; the rest is for more holes{}. "
        "The card has 9.00 GiB free."
    )
    assert words.why == needed.format(" and 10 more passes")
    assert advice_text(plain).why == needed.format("")


def test_the_bill_says_that_it_counts_what_is_left_over():
    assert bill_note(analyze(load(bundled_path("oom_kept_exception")), whatif=False).devices[0])
    assert not bill_note(sample_findings("oom_activations").devices[0])
    assert not bill_note(sample_findings("train_ok").devices[0])


def test_the_table_of_holders_adds_up():
    device = held_by_a_list().main
    assert device is not None
    told = live_parts(device, str)
    rows = holder_rows(device, told, Sources())
    kept = sum(row.holder.retained for row in rows)
    assert beyond_holders(device, rows) == max(device.at.allocated - kept, 0)
    assert beyond_holders(device, ()) == device.at.allocated
    assert beyond_holders(device, rows * 50) == 0
    assert "no holder was found</th>" in render_html(held_by_a_list())


@pytest.mark.parametrize("way", ["a tuple that nothing visible holds", "a dict that nothing visible holds[0][k]"])
def test_what_only_c_holds_has_no_name(way: str):
    assert holder_name(way) == "an object without a name"
    assert holder_name("main: a") == "main: a"


def recorded_device(name: str) -> tuple[DeviceFindings, Sources]:
    snapshot = load(PROGRAMS / f"{name}.pickle.xz")
    device = analyze(snapshot, whatif=False).main
    assert device is not None
    return device, Sources(snapshot)


def test_table_and_bar_tell_the_same_of_what_others_keep_as_well():
    """Its loss reaches the graphs of all passes, and keeps none of them alone."""
    device, sources = recorded_device("tides")
    told = live_parts(device, str)
    (row,) = [row for row in holder_rows(device, told, sources) if row.holder.holder == "tides.py: loss"]
    assert row.shared
    assert row.part is not None
    assert row.holder.retained == told.parts[row.part].bytes > device.at.allocated // 2
    device, sources = recorded_device("ncf_ranking")
    assert not any(row.shared for row in holder_rows(device, live_parts(device, str), sources))


@pytest.mark.parametrize(
    ("name", "holder"),
    [
        ("two_stages", "main: stage1"),
        ("search_train", "main: searcher"),
        ("distill", "reference cycle: Trainer.callbacks[0] → LossPrinter.trainer → Trainer"),
    ],
)
def test_headline_bar_and_table_count_what_is_finished_with_alike(name: str, holder: str):
    """A variable that is not read again stands for all that it leads to, and no object within it stands beside it."""
    device, sources = recorded_device(name)
    assert device.oom is not None
    told = live_parts(device, str)
    rows = [row for row in holder_rows(device, told, sources) if row.holder.holder == holder]
    (part,) = [part for part in told.parts if part.holder == holder]
    assert [row.holder.retained for row in rows] == [part.bytes] == [device.oom.verdict.headline[0].values["retained"]]
    variable = holder.rpartition(": ")[2]
    assert not [one for one in device.holders if one.holder.startswith(variable)]


def test_where_an_object_keeps_most_the_line_that_stores_it_is_shown():
    device, sources = recorded_device("slide_viewer")
    found = culprit(device, str, sources)
    assert found is not None
    assert (found.note, found.excerpt and found.excerpt.text) == (
        "stored in cache.tiles here",
        "self.tiles[key] = self.load(key)",
    )


def test_long_code_may_break_behind_a_dot():
    assert quoted("`torch.cuda.set_per_process_memory_fraction(0.03)`") == (
        "<code>torch.<wbr>cuda.<wbr>set_per_process_memory_fraction(0.03)</code>"
    )
    assert quoted("`torch.no_grad()`") == "<code>torch.no_grad()</code>"


def test_a_line_in_another_method_is_the_one_to_look_at_and_to_change():
    """As recordings tell it of an attribute that a method of its class fills."""
    device = analyze(load(bundled_path("oom_leak_in_validation")), whatif=False).main
    assert device is not None
    assert device.oom is not None
    filled = Location("/workspace/train/metrics.py", 11, "update")
    told = tuple(
        replace(one, stores=(filled,)) if one.holder == "main: metric.outputs" else one
        for one in device.oom.verdict.suspects
    )
    known = replace(device, oom=replace(device.oom, verdict=replace(device.oom.verdict, suspects=told)))
    found = culprit(known, str, Sources())
    assert found is not None
    assert (found.line, found.function) == (11, "update")
    assert found.note == "stored in metric.outputs here, 391 MiB more every pass"
    assert fixes(known, Sources())[0].at == filled


def shown(name: str) -> Any:
    findings = analyze(load(PROGRAMS / f"{name}.pickle.xz"), whatif=False)
    return first_screen(findings, str, Sources(findings.snapshot), StyleSheet())


@pytest.mark.parametrize(("name", "second"), [("unet_volumes", None), ("sweep_status", "raise_cap")])
def test_what_only_delays_the_failure_is_no_second_fix(name: str, second: str | None):
    screen = shown(name)
    assert (screen.second.advice.slug if screen.second else None) == second
    if second is None:
        assert screen.others.startswith("1 other fix")


@pytest.mark.parametrize(("name", "largest"), [("unet_volumes", "27.0 MiB"), ("split_step", None)])
def test_where_enough_was_free_the_largest_piece_says_why_the_request_failed(name: str, largest: str | None):
    screen = shown(name)
    assert (screen.largest and format_bytes(screen.largest)) == largest
    assert screen.largest is None or screen.largest < screen.asked


def test_what_this_pass_has_made_is_not_called_kept():
    device = analyze(load(PROGRAMS / "yolo_val.pickle.xz"), whatif=False).main
    assert device is not None
    live = live_parts(device, str)
    number = next(number for number, part in enumerate(live.parts) if part.label == "this pass so far")
    born = device.history.lifetimes.born
    assert (born[live.key == number] >= device.rounds.boundaries[-1]).all()
    kept = [number for number, part in enumerate(live.parts) if part.label.startswith("other kept")]
    assert not (born[np.isin(live.key, kept)] >= device.rounds.boundaries[-1]).any()

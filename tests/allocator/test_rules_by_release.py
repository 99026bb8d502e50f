"""Settings and rules of newer releases: what is not known hides nothing, and a departure is named."""

from __future__ import annotations

import pytest

from oomscope.allocator import AllocatorConfig
from oomscope.allocator.rules import RULES
from oomscope.allocator.torch_releases import LATEST, possible_releases
from oomscope.analysis.whatif import whatif
from oomscope.wording import say
from oomscope.wording.allocator_rules import rule_text
from tests.builders import block, entry, loaded, segment

MIB = 1 << 20


@pytest.mark.parametrize(
    "unknown",
    ["a_setting_of_2_17:True", "expandable_segments_reserve_by_class:[serving:0.25,ads:8G]", "odd:[1,2:3]", "bare"],
)
def test_an_unknown_key_of_a_conf_hides_none_of_its_neighbours(unknown):
    conf = f"large_segment_size_mb:40,{unknown},per_process_memory_fraction:0.5"
    config = AllocatorConfig.from_settings({"PYTORCH_CUDA_ALLOC_CONF": conf})
    assert (config.large_segment_size, config.per_process_memory_fraction) == (40 * MIB, 0.5)


def test_a_conf_that_a_user_asks_about_is_still_refused_where_torch_would():
    with pytest.raises(ValueError, match="no setting"):
        AllocatorConfig.parse("a_setting_of_2_17:True")
    assert AllocatorConfig.parse("expandable_segments_reserve:0.5") == AllocatorConfig()


@pytest.mark.parametrize(
    ("recorded", "schema", "versions"),
    [
        ("2.11.0+cu130", "2.10-2.11", [(2, 11)]),
        (None, "2.10-2.11", [(2, 10)]),
        (None, "2.12-2.13", [(2, 12), (2, 13)]),
        (None, "2.5-2.7", [(2, 5)]),
        (None, "2.14-2.15", [(2, 14)]),
        (None, "unknown", [LATEST.version]),
        ("9" * 5000, "2.9", [(2, 9)]),
    ],
)
def test_a_replay_tries_the_releases_whose_rules_differ(recorded, schema, versions):
    assert [one.version for one in possible_releases(recorded, schema)] == versions


def test_every_rule_has_words():
    assert all(rule_text(slug) for slug in RULES)


def departs(change: str, **extra):
    """A recording in which one thing is not as torch 2.13 does it."""
    at, size = 1 << 40, 20 * MIB
    entries = [entry("segment_alloc", at, size), entry("alloc", at, 4 * MIB), entry("alloc", at + 4 * MIB, 4 * MIB)]
    blocks = [block(4 * MIB), block(4 * MIB), block(12 * MIB, "inactive")]
    if change == "free_block":
        entries[2]["addr"] = at + 8 * MIB
        blocks = [block(4 * MIB), block(4 * MIB, "inactive"), block(4 * MIB), block(8 * MIB, "inactive")]
    if change == "segment_size":
        entries[0]["size"] = 24 * MIB
        blocks[-1]["size"] = 16 * MIB
    for row in entries:
        row.update(extra)
    return whatif(loaded([segment(at, blocks)], [entries], release="2.14"), 0)


@pytest.mark.parametrize("rule", ["free_block", "segment_size"])
def test_a_failed_self_check_names_the_rule(rule):
    check = departs(rule).self_check
    assert check.rule == rule
    assert check.reason is not None
    told = say(check.reason)
    assert RULES[rule].functions[0] in told
    assert "the file is of torch 2.14, and the rules are those of 2.13" in told


def test_what_is_known_not_to_be_modelled_goes_first():
    assert departs("free_block", internal_metadata="mallocWithAddress").self_check.rule == "chosen_address"


def test_nothing_is_named_where_nothing_departs():
    check = departs("nothing").self_check
    assert (check.exact, check.rule) == (True, None)

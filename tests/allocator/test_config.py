"""Settings are read and checked as torch does."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomscope.allocator import AllocatorConfig
from oomscope.allocator.conf_string import OPTIONS
from oomscope.allocator.torch_releases import release_of

MIB = 1 << 20

ACCEPTED = [
    "",
    "max_split_size_mb:20",
    "max_split_size_mb:20.5",
    "max_split_size_mb:-1",
    "max_split_size_mb:18446744073709551615",
    "garbage_collection_threshold:0.6",
    "garbage_collection_threshold:.5e0",
    "roundup_power2_divisions:4",
    "roundup_power2_divisions:1",
    "roundup_power2_divisions:[256:1,512:2,1024:4,>:8]",
    "roundup_power2_divisions:[>:4]",
    "roundup_power2_divisions:[256:1,]",
    "roundup_power2_divisions:[]",
    "roundup_power2_divisions:[131072:2]",
    "expandable_segments:True",
    "expandable_segments:True,",
    ",expandable_segments:True",
    " expandable_segments : True , max_split_size_mb : 64",
    "expandable_segments:False,expandable_segments:True",
]
REFUSED = [
    "max_split_size_mb:10",
    "max_split_size_mb:abc",
    "max_split_size_mb",
    "max_split_size_mb:",
    "max_split_size_mb=64",
    "max_split_size_mb:99999999999999999999999",
    "max_split_size_mb:0x40",
    "garbage_collection_threshold:0",
    "garbage_collection_threshold:1",
    "garbage_collection_threshold:x",
    "garbage_collection_threshold:inf",
    "roundup_power2_divisions:0",
    "roundup_power2_divisions:3",
    "roundup_power2_divisions:[256:1,512:3]",
    "roundup_power2_divisions:[300:1]",
    "roundup_power2_divisions:[256:1",
    "expandable_segments:true",
    "expandable_segments:1",
    "expandable_segments:[True]",
    "expandable_segments:True;max_split_size_mb:64",
    "max_non_split_rounding_mb:10",
]


@pytest.mark.parametrize("text", ACCEPTED)
def test_what_torch_accepts_is_accepted(text: str) -> None:
    assert isinstance(AllocatorConfig.parse(text), AllocatorConfig)


@pytest.mark.parametrize("text", REFUSED)
def test_what_torch_refuses_is_refused_with_one_sentence(text: str) -> None:
    with pytest.raises(ValueError, match=r"^\S.*\S$") as caught:
        AllocatorConfig.parse(text)
    assert "\n" not in str(caught.value)


@pytest.mark.torch
@pytest.mark.parametrize(("texts", "accepts"), [(ACCEPTED, True), (REFUSED, False)])
def test_the_two_lists_are_what_the_installed_torch_says(texts: list[str], accepts: bool) -> None:
    torch = pytest.importorskip("torch")
    apply = getattr(torch._C, "_accelerator_setAllocatorSettings", None)
    if apply is None:
        pytest.skip("this torch has no allocator settings to set on a machine without an accelerator")
    for text in texts:
        try:
            apply(text)
        except Exception:
            assert not accepts, text
        else:
            assert accepts, text
    apply("")


def test_large_segments_bound_the_other_sizes_from_below() -> None:
    assert AllocatorConfig.parse("large_segment_size_mb:64,max_split_size_mb:64").max_split_size == 64 * MIB
    for text in ("large_segment_size_mb:64,max_split_size_mb:32", "max_split_size_mb:32,large_segment_size_mb:64"):
        with pytest.raises(ValueError, match="at least 64"):
            AllocatorConfig.parse(text)
    with pytest.raises(ValueError, match="above 10"):
        AllocatorConfig.parse("large_segment_size_mb:10")


def test_a_key_that_is_unknown_or_of_another_allocator_is_refused() -> None:
    with pytest.raises(ValueError, match="'foo' is no setting"):
        AllocatorConfig.parse("foo:1")
    with pytest.raises(ValueError, match="another allocator"):
        AllocatorConfig.parse("backend:cudaMallocAsync")


def test_keys_without_effect_on_device_memory_are_accepted() -> None:
    inert = [key for key, option in OPTIONS.items() if not option.field and key != "backend"]
    assert AllocatorConfig.parse(",".join(f"{key}:True" for key in inert)) == AllocatorConfig()


def test_the_first_interval_counts_for_smaller_sizes_and_the_bracket_for_larger_ones() -> None:
    text = "roundup_power2_divisions:[4:8,16:2,>:4]"
    assert AllocatorConfig.parse(text).roundup_power2_divisions == (8, 8, 8, 0, 2, *(4,) * 11)
    # Up to torch 2.8 the rest began with the last interval named.
    old = AllocatorConfig.parse(text, release=release_of("2.8"))
    assert old.roundup_power2_divisions == (8, 8, 8, 0, 4, *(4,) * 11)


def test_base_holds_where_the_text_is_silent() -> None:
    base = AllocatorConfig.parse("roundup_power2_divisions:8")
    both = AllocatorConfig.parse("expandable_segments:True", base)
    assert both.expandable_segments
    assert both.roundup_power2_divisions == (8,) * 16


def test_the_settings_of_a_snapshot_are_read_with_what_only_the_conf_string_says() -> None:
    settings = {
        "PYTORCH_CUDA_ALLOC_CONF": "large_segment_size_mb:40,max_non_split_rounding_mb:60",
        "max_split_size": 200 * MIB,
        "garbage_collection_threshold": 0.8,
        "expandable_segments": False,
        "roundup_power2_divisions": {str(1 << power): 4 for power in range(16)},
    }
    config = AllocatorConfig.from_settings(settings, expandable=True)
    assert config == AllocatorConfig(False, 200 * MIB, 60 * MIB, 0.8, (4,) * 16, 40 * MIB)
    assert config.max_non_split_rounding_size == 60 * MIB


def test_a_file_without_settings_is_as_expandable_as_its_segments() -> None:
    assert AllocatorConfig.from_settings(None, expandable=True) == AllocatorConfig(expandable_segments=True)
    assert AllocatorConfig.from_settings(None) == AllocatorConfig()


def test_a_conf_string_that_is_beyond_us_does_not_stop_the_reading() -> None:
    settings = {"PYTORCH_CUDA_ALLOC_CONF": "of_the_future:7", "max_split_size": -1, "expandable_segments": True}
    assert AllocatorConfig.from_settings(settings) == AllocatorConfig(expandable_segments=True)


configs = st.builds(
    AllocatorConfig,
    expandable_segments=st.booleans(),
    max_split_size=st.none() | st.integers(40, 4096).map(lambda size: size * MIB),
    max_non_split_rounding=st.none() | st.integers(40, 100).map(lambda size: size * MIB),
    garbage_collection_threshold=st.sampled_from([0.0, 0.25, 0.6, 0.9]),
    roundup_power2_divisions=st.lists(st.sampled_from([0, 1, 2, 4, 8]), min_size=16, max_size=16).map(tuple),
    large_segment_size=st.sampled_from([20 * MIB, 40 * MIB]),
)


@given(configs)
def test_the_text_of_a_config_means_that_config(config: AllocatorConfig) -> None:
    assert AllocatorConfig.parse(config.text) == config


def test_settings_of_other_types_count_as_torchs_defaults():
    strange = {"max_split_size": "none", "garbage_collection_threshold": [], "roundup_power2_divisions": {"1": "x"}}
    assert AllocatorConfig.from_settings(strange) == AllocatorConfig()
    assert AllocatorConfig.from_settings({"max_split_size": math.nan}) == AllocatorConfig()

"""What is asked: devices by name, places in the code."""

from __future__ import annotations

import pytest

from oomscope.allocator.torch_releases import release_of
from oomscope.analysis.whatif.changes import parse_scaling, parse_site
from oomscope.analysis.whatif.gpus import TOTAL_GIB, capacity
from oomscope.errors import RequestError
from oomscope.model import Frame

GIB = 1 << 30


@pytest.mark.parametrize(
    ("text", "gib"),
    [
        ("H200", 139.80),
        ("NVIDIA H200", 139.80),
        ("a100-40", 39.39),
        ("A100", 39.39),
        ("A100-80GB", 79.14),
        ("NVIDIA GeForce RTX 4090", 23.52),
        ("tesla t4", 14.56),
        ("NVIDIA H100 80GB HBM3", 79.11),
        ("NVIDIA A100-SXM4-80GB", 79.14),
        ("Tesla V100-SXM2-16GB", 15.77),
        ("NVIDIA H100 PCIe", 79.11),
        ("NVIDIA RTX A6000", 47.40),
        ("rtx 4090", 23.52),
    ],
)
def test_a_card_goes_by_its_name(text: str, gib: float) -> None:
    assert capacity(text) == int(gib * GIB)


def test_a_card_goes_by_its_size() -> None:
    assert capacity("24GiB") == 24 * GIB
    assert capacity("80 GB") == 80 * 10**9


@pytest.mark.parametrize("text", ["", "H999", "24 apples"])
def test_an_unknown_card_is_refused_with_those_that_are_known(text: str) -> None:
    with pytest.raises(RequestError, match="known are T4"):
        capacity(text)


@pytest.mark.parametrize("text", ["4", "0", "2097151"])
def test_a_card_below_one_segment_is_refused(text: str) -> None:
    with pytest.raises(RequestError, match=r"smallest segment \(2.00 MiB\)"):
        capacity(text)


def test_every_card_has_less_than_its_name_promises() -> None:
    for name, gib in TOTAL_GIB.items():
        promised = name.rpartition("-")[2]
        if promised.isdigit() and int(promised) < 100:
            assert 0.9 * int(promised) < gib < int(promised)


@pytest.mark.parametrize(
    ("text", "frame", "matches"),
    [
        ("metrics.py:17", Frame("/workspace/train/metrics.py", 17, "log"), True),
        ("metrics.py:17", Frame("/workspace/train/metrics.py", 18, "log"), False),
        ("metrics.py:17", Frame("/workspace/train/my_metrics.py", 17, "log"), False),
        ("train/metrics.py", Frame("/workspace/train/metrics.py", 99, "log"), True),
        ("metrics.py:17 (log)", Frame("metrics.py", 17, "log"), True),
        ("metrics.py:17 log", Frame("metrics.py", 17, "other"), False),
        (r"train\metrics.py:17", Frame(r"C:\workspace\train\metrics.py", 17, "log"), True),
        ("C:/workspace/metrics.py:17", Frame(r"C:\workspace\metrics.py", 17, "log"), True),
    ],
)
def test_a_place_is_a_file_a_line_and_perhaps_a_function(text: str, frame: Frame, matches: bool) -> None:
    assert parse_site(text).matches(frame) is matches


def test_the_factor_stands_behind_the_last_equals_sign() -> None:
    scaling = parse_scaling("a=b.py:3=0.25")
    assert (scaling.site.file, scaling.site.line, scaling.factor) == ("a=b.py", 3, 0.25)


def test_a_layout_stands_for_its_oldest_release() -> None:
    assert release_of("2.10-2.11").version == (2, 10)
    assert not release_of("2.3-2.4").knows("large_segment_size")
    assert release_of("2.12-2.13").knows("large_segment_size")
    assert release_of("unknown").version >= (2, 13)


def test_a_graphs_pool_captures_and_a_users_pool_did_until_2_12() -> None:
    old, new = release_of("2.10-2.11"), release_of("2.14-2.15")
    assert not old.captures((0, 0))
    assert old.captures((3, 0))
    assert new.captures((3, 0))
    assert old.captures((0, 1))
    assert not new.captures((0, 1))

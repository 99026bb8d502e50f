"""Programs of the nineteenth to the twenty-fourth round: whole parts of a batch, pairs, scores, evaluations."""

from __future__ import annotations

import time

import pytest

from oomscope.analysis.plan import plan_of
from oomscope.analysis.plan.growth.divided import divisor_of
from oomscope.analysis.plan.growth.polynomials import Evidence, Hint
from oomscope.analysis.plan.subsequences import common
from tests.plan.peaks import Round, study

pytestmark = pytest.mark.thorough


@pytest.mark.parametrize(
    ("of", "program", "others", "allocated", "reserved"),
    [
        # An evaluation of ``batch // 2`` images, of which three and four are of batches of six and nine.
        ("twenty_first", "fcos", ("b9",), 0.003, 0.01),
        ("twenty_first", "fcos", ("b9", "s896"), 0.002, 0.006),
        # Pairs, and scores of triples, where the length and the channels are powers of two.
        ("twenty_first", "fold_trunk", (), 0.02, 0.05),
        # From the base alone: scores beside layers that make something as large, and an evaluation of half of a batch.
        ("nineteenth", "roberta", (), 0.0003, 0.0001),
        ("twentieth", "adapters", (), 0.0002, 0.001),
        ("twenty_first", "bart", (), 0.0002, 0.001),
        ("twenty_second", "bert_twice", (), 0.0001, 0.0001),
        ("twenty_fourth", "translation", (), 0.0006, 0.0001),
        ("twenty_third", "gemma", (), 0.003, 0.003),
        # Scores between pixels that no name tells, also of fewer keys, from the base alone.
        ("twenty_second", "vqgan", (), 0.003, 0.06),
        ("twenty_fourth", "segformer", (), 0.002, 0.05),
        ("twenty_fifth", "segformer_mm", (), 0.002, 0.02),
        ("twenty_sixth", "segformer_ade", (), 0.003, 0.05),
        ("twenty_ninth", "cfm_unet", (), 0.003, 0.06),
    ],
)
def test_shapes(of: str, program: str, others: tuple[str, ...], allocated: float, reserved: float):
    Round(of).check(program, others, allocated, reserved)


def test_what_each_two_samples_of_a_batch_share_grows_with_its_square():
    of, base = Round("thirteenth"), {"batch": 8192, "history": 64}
    for batch, most in ((4096, 0.01), (12288, 0.01), (28672, 0.04)):
        (found,) = plan_of([("towers", study("towers"))], at=[base], wanted=[{**base, "batch": batch}]).predictions
        assert found.peak_allocated.bytes == pytest.approx(of.truth("towers", f"b{batch}")["allocated"], rel=most)


def test_what_the_data_decides_in_an_evaluation_is_in_proportion_to_what_was_varied():
    """Edges of graphs: 34,192 of 12 graphs, 45,385 of 16."""
    of = Round("twenty_eighth")
    found = of.predicted("painn_oc20", ("b32", "s88"))
    for shape in ("b12", "b80"):
        assert found[shape].peak_allocated.bytes == pytest.approx(of.truth("painn_oc20", shape)["allocated"], rel=0.01)


def test_an_evaluation_of_nearly_half_the_edges_is_one_of_half_the_batch():
    of, base = Round("twenty_eighth"), {"batch": 24, "atoms": 64}
    (found,) = plan_of([("painn_oc20", study("painn_oc20"))], at=[base], wanted=[{**base, "batch": 12}]).predictions
    assert found.peak_allocated.bytes == pytest.approx(of.truth("painn_oc20", "b12")["allocated"], rel=0.05)


def test_a_recurrent_program_of_another_length_is_aligned_in_seconds():
    begin = time.monotonic()
    Round("twenty_fourth").check("world_model", ("l90",), 0.01, 0.04)
    assert time.monotonic() - begin < 60


def test_as_many_pairs_as_there_are_where_tokens_repeat():
    one, other = [7, *[1, 2, 3] * 150, 8], [7, *[1, 2, 3] * 210, 8]
    pairs = common(one, other)
    assert len(pairs) == len(one)
    assert all(one[here] == other[there] for here, there in pairs)
    assert pairs == sorted(pairs)
    assert common([1, 2, 3], [2, 3, 4]) == [(1, 0), (2, 1)]


@pytest.mark.parametrize(
    ("batches", "sizes", "found"),
    [
        ((6, 9), (3, 4), (0, 2)),
        ((6, 9), (6, 9), None),
        ((6, 9), (2, 3), None),
        ((6, 9), (1, 2), (0, 4)),
        ((6, 9), (3, 5), None),
        # What does not grow at all is no part of a batch.
        ((6, 7), (3, 3), None),
        ((4, 5), (1, 1), None),
    ],
)
def test_two_batches_tell_a_divisor_that_divides_neither(
    batches: tuple[int, int], sizes: tuple[int, int], found: tuple[int, int] | None
):
    points = tuple((float(batch), 128.0) for batch in batches)
    hint = Hint((1, 1), (1, 1), (1, 1))
    one = Evidence(points, (sizes[0] << 20, sizes[1] << 20), hint, at_once=False, of_rows=False, usual=(1, 1))
    assert divisor_of(one, [0]) == found

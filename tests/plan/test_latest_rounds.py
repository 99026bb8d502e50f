"""Programs of the nineteenth to the twenty-fourth round: whole parts of a batch, pairs, scores, evaluations."""

from __future__ import annotations

import time

import pytest

from oomscope.analysis.plan.divided import divisor_of
from oomscope.analysis.plan.polynomials import Evidence, Hint
from oomscope.analysis.plan.subsequences import common
from tests.plan.peaks import Round


@pytest.mark.parametrize(
    ("of", "program", "others", "allocated", "reserved"),
    [
        # An evaluation of ``batch // 2`` images, of which three and four are of batches of six and nine.
        ("twenty_first", "fcos", ("b9",), 0.003, 0.01),
        ("twenty_first", "fcos", ("b9", "s896"), 0.001, 0.005),
        # Pairs, and scores of triples, where the length and the channels are powers of two.
        ("twenty_first", "fold_trunk", (), 0.01, 0.02),
        # From the base alone: scores beside layers that make something as large, and an evaluation of half of a batch.
        ("nineteenth", "roberta", (), 0.0003, 0.0001),
        ("twentieth", "adapters", (), 0.0002, 0.001),
        ("twenty_first", "bart", (), 0.0002, 0.001),
        ("twenty_second", "bert_twice", (), 0.0001, 0.0001),
        ("twenty_fourth", "translation", (), 0.0003, 0.0001),
        ("twenty_third", "gemma", (), 0.003, 0.003),
    ],
)
def test_shapes(of: str, program: str, others: tuple[str, ...], allocated: float, reserved: float):
    Round(of).check(program, others, allocated, reserved)


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

"""Edits of a program whose tensors are all known."""

from __future__ import annotations

import numpy as np
import pytest

from oomscope.allocator.program import Op
from oomscope.allocator.replay import replay
from oomscope.analysis.ledger import EDITS, ledger_of, parse_remedy
from oomscope.analysis.ledger.draft import NEVER, SPACING, Draft
from oomscope.analysis.ledger.records import Ledger
from oomscope.analysis.ledger.run import Run
from oomscope.analysis.study import DeviceStudy
from oomscope.errors import RequestError
from oomscope.units import MIB
from oomscope.wording.ledger import WORDS
from tests.plan.programs import Program, study

BATCH, LENGTH = 8, 256
PROGRAM = Program()


@pytest.fixture(scope="module")
def recorded() -> DeviceStudy:
    return study(PROGRAM.run([(BATCH, LENGTH)] * 3))


def asked(recorded: DeviceStudy, slug: str, value: int | None = None) -> Ledger:
    return ledger_of(recorded, [(slug, value)])


def weights() -> int:
    return sum(PROGRAM.weights())


def test_the_draft_of_a_run_is_the_run(recorded: DeviceStudy):
    run = Run(recorded)
    program = run.draft.to_program()
    assert np.array_equal(program.op, run.recording.program.op)
    assert np.array_equal(program.argument, run.recording.program.argument)
    peak = replay(program, recorded.history.config).peak_allocated
    assert peak == recorded.history.curves.allocated.max()


def test_what_is_dropped_shortened_and_added_is_asked_for_accordingly(recorded: DeviceStudy):
    draft = Run(recorded).draft
    first = np.array([0], np.int64)
    shorter = draft.lasting(first, end=draft.begin[first] + SPACING)
    assert (shorter.to_program().op == Op.FREE).sum() == (draft.to_program().op == Op.FREE).sum() + 1
    dropped = np.zeros(len(draft), np.bool_)
    dropped[0] = True
    assert (draft.without(dropped).to_program().op == Op.MALLOC).sum() == (draft.begin < NEVER).sum() - 1
    more = draft.added(np.array([5 * MIB]), np.array([1], np.int64), np.array([NEVER], np.int64))
    assert more.to_program().size[-1] == 5 * MIB


@pytest.mark.parametrize("slug", ["sgd", "offload_state"])
def test_an_optimizer_without_state_saves_all_of_it(recorded: DeviceStudy, slug: str):
    row = asked(recorded, slug).rows[0]
    assert row.saves_bytes == pytest.approx(2 * weights(), rel=0.05)
    truth = study(_without_state().run([(BATCH, LENGTH)] * 3)).history.curves.allocated.max()
    assert row.peak_allocated.bytes == pytest.approx(int(truth), rel=0.02)


def _without_state() -> Program:
    class Plain(Program):
        """The same program under plain SGD."""

        @staticmethod
        def _make(device, names, size, frames):
            if any("optim" in frame["filename"] for frame in frames):
                size = 512
            return Program._make(device, names, size, frames)

    return Plain()


def test_momentum_keeps_one_state_a_parameter(recorded: DeviceStudy):
    assert asked(recorded, "sgd_momentum").rows[0].saves_bytes == pytest.approx(weights(), rel=0.1)


def test_eight_bits_keep_a_quarter(recorded: DeviceStudy):
    assert asked(recorded, "adam_8bit").rows[0].saves_bytes == pytest.approx(1.5 * weights(), rel=0.1)


@pytest.mark.parametrize("slug", ["zero1", "zero2", "zero3", "fsdp"])
def test_sharding_saves_more_over_more_ranks(recorded: DeviceStudy, slug: str):
    few, many = (asked(recorded, slug, ranks).rows[0].peak_allocated.bytes for ranks in (2, 16))
    assert many < few


def test_accumulation_halves_what_grows_with_the_batch_and_adds_gradients(recorded: DeviceStudy):
    row = asked(recorded, "accumulate", 2).rows[0]
    half = study(PROGRAM.run([(BATCH // 2, LENGTH)] * 3)).history.curves.allocated.max()
    assert row.peak_allocated.bytes == pytest.approx(int(half) + weights(), rel=0.05)
    assert row.value == 2


def test_checkpointing_drops_what_blocks_save(recorded: DeviceStudy):
    row = asked(recorded, "checkpoint").rows[0]
    hidden = BATCH * LENGTH * PROGRAM.width * 4
    scores = BATCH * PROGRAM.heads * LENGTH * LENGTH * 4
    block = 6 * hidden + 2 * scores
    assert row.saves_bytes <= PROGRAM.blocks * block * 1.05  # what is not split off goes with it
    assert row.saves_bytes >= (PROGRAM.blocks - 1) * block * 0.8


def test_fused_attention_drops_the_scores():
    written_out = study(Program(heads=16).run([(BATCH, LENGTH)] * 3))
    fused = study(Program(scores=False).run([(BATCH, LENGTH)] * 3))
    row = asked(written_out, "sdpa").rows[0]
    assert row.peak_allocated.bytes == pytest.approx(int(fused.history.curves.allocated.max()), rel=0.03)


def test_a_loss_in_pieces_saves_logits(recorded: DeviceStudy):
    row = asked(recorded, "fused_loss", 8).rows[0]
    logits = BATCH * (LENGTH - 1) * PROGRAM.vocabulary * 4
    assert row.saves_bytes > 0.8 * logits


def test_what_leaves_nothing_to_do_is_skipped_and_said(recorded: DeviceStudy):
    assert asked(recorded, "set_to_none").skipped == ("set_to_none",)
    assert asked(recorded, "bound_holder").rows == ()


def test_rows_come_with_most_saved_first_and_ranges_hold_the_middle(recorded: DeviceStudy):
    ledger = ledger_of(recorded)
    assert ledger.peak_allocated == recorded.history.curves.allocated.max()
    assert [row.saves_bytes for row in ledger.rows] == sorted((row.saves_bytes for row in ledger.rows), reverse=True)
    for row in ledger.rows:
        assert row.peak_allocated.low <= row.peak_allocated.bytes <= row.peak_allocated.high
        assert row.peak_allocated.high - row.peak_allocated.low <= 0.2 * ledger.peak_allocated
        assert row.enough is None  # nothing failed


def test_every_remedy_has_words():
    assert set(WORDS) == {*EDITS, "raise_cap"}


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("checkpoint", ("checkpoint", None)),
        ("accumulate", ("accumulate", 2)),
        ("accumulate=4", ("accumulate", 4)),
        ("zero1 = 16", ("zero1", 16)),
        ("expandable_segments:True", ("expandable_segments:True", None)),
    ],
)
def test_remedies_are_read_as_they_are_written(text: str, meaning: tuple[str, int | None]):
    assert parse_remedy(text) == meaning


@pytest.mark.parametrize("text", ["prayer", "accumulate=1", "accumulate=x", "checkpoint=2", "accumulate=", ""])
def test_what_is_no_remedy_is_refused(text: str):
    with pytest.raises(RequestError):
        parse_remedy(text)


def test_gradients_that_stay_can_go():
    kept = study(_keeping_gradients().run([(BATCH, LENGTH)] * 3))
    row = asked(kept, "set_to_none").rows[0]
    truth = study(PROGRAM.run([(BATCH, LENGTH)] * 3)).history.curves.allocated.max()
    assert row.peak_allocated.bytes == pytest.approx(int(truth), rel=0.03)
    assert row.saves_bytes > 0.5 * weights()


def _keeping_gradients() -> Program:
    class Keeping(Program):
        """The same program with ``zero_grad(set_to_none=False)``: what a later backward makes is added and dropped."""

        def _step(self, device, names, batch, length):
            made = super()._step(device, names, batch, length)
            if getattr(device, "has_gradients", False):
                for name in made:
                    device.free(name)
            device.has_gradients = True
            return []

    return Keeping()


def test_the_draft_refuses_nothing_that_was_refused(recorded: DeviceStudy):
    assert not Draft.of(Run(recorded).recording.program).tried.any()

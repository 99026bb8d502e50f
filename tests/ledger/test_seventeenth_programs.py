"""A network before the model that a function runs, copies of weights in a validation, and forces by two backwards."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.kinds import ACTIVATION
from oomscope.analysis.labels.phases import BACKWARD, FORWARD
from oomscope.analysis.ledger.draft import NEVER
from oomscope.analysis.ledger.dtypes.convolutions import HALF, in_half
from oomscope.analysis.ledger.graphs.double_backward import begins_of_first, derived
from oomscope.analysis.ledger.graphs.untrained import untrained
from oomscope.analysis.ledger.passes import forwards
from tests.ledger.rounds import run

MIB = 1 << 20


def test_what_a_function_makes_beside_the_calls_of_a_network_is_of_it():
    """``encode`` pads, convolves and takes a norm itself, and its middle is too small to be told alone."""
    streams = run("streams")
    part = untrained(streams)
    assert part is not None
    for rows in forwards(streams):
        own = rows[part.forward[rows] & streams.saved[rows]]
        assert streams.size[own].sum() > 0.6 * streams.size[rows[streams.saved[rows]]].sum()
        kept = rows[streams.saved[rows]]
        until = kept[kept <= own[-1]]
        assert part.forward[until].mean() > 0.95, "nothing but the network comes before its end"


def test_what_a_validation_keeps_is_not_taken_for_copies_of_weights_of_its_size():
    boxes = run("boxes")
    last = int(boxes.step.max())
    of_blocks = np.array(
        [
            any(frame.name == "batch_norm" for frame in boxes.study.snapshot.stacks[one])
            for one in range(len(boxes.study.snapshot.stacks))
        ]
        + [False]
    )
    kept = boxes.during(FORWARD) & (boxes.step == last) & of_blocks[boxes.stack] & (boxes.size >= 4 * MIB)
    kept &= boxes.end > boxes.begin + 1_000
    assert kept.sum() > 150
    assert boxes.of(ACTIVATION)[kept].all()


def test_a_backward_that_goes_through_another_one_is_told():
    forces = run("forces")
    made = derived(forces)
    assert forces.during(BACKWARD)[made].all()
    assert forces.size[made].sum() > 1 << 30
    begins = begins_of_first(forces)
    saved = forces.saved & forces.during(FORWARD) & (forces.step == 1) & (begins < NEVER)
    assert saved.any()
    assert (begins[saved] > forces.begin[saved]).all()
    assert (begins[saved] < forces.end[saved]).mean() > 0.5
    for one in ("boxes", "streams", "spans"):
        assert not derived(run(one)).any()


def test_a_kernel_that_wants_far_more_than_the_one_beside_it_is_not_there_in_16_bits():
    rollouts = run("rollouts")
    factor = in_half(rollouts)
    assert set(np.unique(factor[factor >= HALF]).tolist()) <= {HALF, 1.0}
    large = rollouts.size > 2_000 * MIB
    assert large.any()
    assert (factor[large] * rollouts.size[large] < 200 * MIB).all()

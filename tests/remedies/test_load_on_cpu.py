"""A request that fails in the load of a checkpoint, beside the model that it is to fill: load it on the CPU."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from oomscope.analysis.passes.loaded_copies import find_loaded_copies, find_loading
from oomscope.analysis.remedies import load_on_cpu
from oomscope.analysis.study import SnapshotStudy
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.failed_requests import failed_requests
from oomscope.analysis.verdict.records import Advice
from oomscope.model import Snapshot
from oomscope.model.stacks import StackTable
from oomscope.reading import load
from oomscope.wording.verdict_text import advice_text
from tests.verdict.known import programs


@cache
def snapshot() -> Snapshot:
    """A run that resumes: model, average and optimizer are there as the checkpoint is loaded onto the card."""
    return load(programs()["resume_load"].path)


def proposed(of: Snapshot) -> list[Advice]:
    (study,) = SnapshotStudy(of).devices
    return list(load_on_cpu.propose(Circumstances(study, failed_requests(study)[-1])))


def test_the_line_that_loads_is_named_with_what_it_has_put_there():
    (advice,) = proposed(snapshot())
    assert advice.enough is True
    assert advice.at is not None
    assert advice.saves_bytes == 1_611_013_632
    assert f"Load the checkpoint at {advice.at.function} " in advice_text(advice).action
    assert 'map_location="cpu"' in advice_text(advice).action


def test_while_it_is_being_loaded_it_is_no_checkpoint_that_is_left_over():
    (study,) = SnapshotStudy(snapshot()).devices
    entry = failed_requests(study)[-1].entry
    assert find_loading(study, entry) is not None
    assert find_loaded_copies(study, entry) is None
    assert find_loading(study, entry // 4) is None


def test_what_another_function_reads_is_no_checkpoint():
    of = snapshot()
    frames = [
        one._replace(name="read") if one.name in ("load", "_load", "restore_location") else one
        for one in of.stacks.frames
    ]
    stacks = StackTable(frames, of.stacks.offsets, of.stacks.members)
    assert proposed(replace(of, stacks=stacks)) == []

"""When a variable that no running code reads again is why a request failed, and how sure that is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from oomscope import analyze, load
from oomscope.analysis.records import Location
from oomscope.analysis.remedies import release_variable
from oomscope.analysis.study import study_device
from oomscope.analysis.verdict import piled
from oomscope.analysis.verdict.causes import retained
from oomscope.analysis.verdict.judge import confidence_with
from oomscope.analysis.verdict.piled import LoopFacts, Piled, find_piled
from oomscope.analysis.verdict.records import Asked, Suspect
from oomscope.analysis.verdict.suspects import held_rows
from oomscope.analysis.verdict.unread import (
    CACHE,
    FROZEN,
    FROZEN_STATES,
    find_unread,
    is_at_another_statement,
    is_being_assigned,
    said_reads,
)
from oomscope.model import Frame
from oomscope.wording import say
from oomscope.wording.remedies import REMEDIES
from oomscope.wording.verdict_text import advice_text
from tests.analysis.programs import MIB
from tests.verdict.known import PROGRAMS
from tests.verdict.stand_ins import circumstances, outcome, suspect
from tests.verdict.test_piled_edges import holding

LIVE = 10_000
EDGE = int(piled.WORTH_RELEASING * LIVE)
MUCH = int(retained.MUCH * LIVE)
MORE = int(retained.MORE * LIVE)
WORTH_TELLING = int(retained.WORTH_TELLING * LIVE)


def unread(kept: int, how: str = "proven", **more: object) -> Suspect:
    return suspect("train: checkpoint", "dict", retained=kept, unread=how, **more)


def confidence(*kept: Suspect, **more: object) -> str:
    total = sum(one.retained for one in kept)
    known = circumstances(size=500, piled=Piled(retained=total, debris=kept), retained=total, **more)
    return confidence_with(retained.doubt(known, outcome("retained")))


@pytest.mark.parametrize(("kept", "found"), [(EDGE, EDGE), (EDGE - 1, 0)])
def test_what_variables_keep_together_must_be_worth_it(kept: int, found: int) -> None:
    assert find_piled((), (unread(kept),), (), LoopFacts()).retained == found


def test_small_ones_count_together() -> None:
    half = EDGE // 2
    assert find_piled((), (unread(half), unread(half)), (), LoopFacts()).retained == EDGE


@pytest.mark.parametrize(("kept", "sure"), [(MUCH, "high"), (MUCH - 1, "medium")])
@pytest.mark.parametrize("phase", ["backward", "optimizer"])
def test_late_in_a_first_pass_it_is_sure_where_it_is_much(kept: int, sure: str, phase: str) -> None:
    assert confidence(unread(kept), asked=Asked(phase)) == sure


@pytest.mark.parametrize(("kept", "sure"), [(MORE, "high"), (MORE - 1, "medium")])
def test_in_a_first_forward_it_must_be_more(kept: int, sure: str) -> None:
    assert confidence(unread(kept)) == sure


@pytest.mark.parametrize(("needs", "sure"), [(3000, "high"), (3001, "medium")])
def test_the_rest_of_an_optimizers_state_must_have_room(needs: int, sure: str) -> None:
    known = {"asked": Asked("optimizer"), "state_to_come": (1000, 1000 + needs)}
    assert confidence(unread(3000), **known) == sure


@pytest.mark.parametrize(("still", "sure"), [(2000, "high"), (2001, "medium")])
def test_later_it_is_sure_where_the_pass_could_go_on(still: int, sure: str) -> None:
    assert confidence(unread(2000), still_to_come=still) == sure


def test_what_a_script_may_still_read_is_not_sure() -> None:
    assert confidence(unread(3000, "likely")) == "medium"


def test_what_is_sure_need_not_be_all_of_it() -> None:
    assert confidence(unread(3000), unread(3000, "likely")) == "high"


@pytest.mark.parametrize("kind", ["deferred", "history"])
def test_what_later_code_may_read_is_not_sure(kind: str) -> None:
    assert confidence(suspect("Timer(rescue).args", kind, retained=3000)) == "medium"


def test_the_parts_that_are_read_are_told_as_the_program_writes_them() -> None:
    assert said_reads(unread(1, reads=("['epoch']",))) == ("checkpoint['epoch']",)


@pytest.mark.parametrize(
    ("kind", "what", "slug"),
    [
        (FROZEN, "gradients of", "release_variable.frozen"),
        (FROZEN_STATES, "optimizer state of", "release_variable.frozen_states"),
    ],
)
def test_what_was_frozen_is_named_by_its_module_and_may_be_read(kind: str, what: str, slug: str) -> None:
    kept = suspect(f"{what} self.tower", kind, retained=3000, unread="likely")
    known = circumstances(size=500, piled=Piled(retained=3000, debris=(kept,)), retained=3000)
    assert f"{what} `self.tower`" in say(retained.headline(known, outcome("retained"))[0])
    (advice,) = release_variable.propose(known)
    assert (advice.slug, advice.values["module"]) == (slug, "self.tower")
    doubt = retained.doubt(known, outcome("retained"))
    assert doubt is not None
    assert doubt.code == "doubts.may_be_read"


@pytest.mark.parametrize(("kept", "is_told"), [(WORTH_TELLING, True), (WORTH_TELLING - 1, False)])
def test_what_keeps_more_beside_the_first_is_told_where_it_is_worth_a_sentence(kept: int, is_told: bool) -> None:
    both = (unread(3000, "likely"), suspect("train: old", "dict", retained=kept, unread="likely"))
    known = circumstances(size=500, piled=Piled(retained=3000 + kept, debris=both), retained=3000 + kept)
    codes = [one.code for one in retained.headline(known, outcome("retained"))]
    assert ("causes.retained.also" in codes) is is_told


@pytest.mark.parametrize(("more", "is_told"), [(WORTH_TELLING, True), (WORTH_TELLING - 1, False)])
def test_what_further_ones_keep_is_told_where_it_is_worth_a_sentence(more: int, is_told: bool) -> None:
    kept = (3000, WORTH_TELLING, more)
    held = tuple(suspect(f"train: old{at}", "dict", retained=bytes_, unread="likely") for at, bytes_ in enumerate(kept))
    known = circumstances(size=500, piled=Piled(retained=sum(kept), debris=held), retained=sum(kept))
    (also,) = (one for one in retained.headline(known, outcome("retained")) if one.code == "causes.retained.also")
    assert (also.values.get("others"), also.values.get("more")) == ((1, more) if is_told else (None, None))


def test_an_attribute_is_let_go_of_where_it_is_stored() -> None:
    stored = Location("/workspace/train.py", 54, "on_epoch_end")
    kept = unread(3000, "likely", stores=(stored,))
    (advice,) = release_variable.propose(circumstances(size=500, piled=Piled(retained=3000, debris=(kept,))))
    assert advice.values["stored"] == stored
    assert advice.at == kept.at
    action = REMEDIES["release_variable"].action
    assert callable(action)
    assert "where it is stored, at on_epoch_end (train.py:54)" in action(advice.values)


@pytest.mark.parametrize(
    ("more", "slug", "said"),
    [
        ({"by_hooks": 1500}, "release_variable.hooks", "Remove the hooks from `old` (in main)"),
        ({"by_hooks": 1499}, "release_variable", "Let go of `old` (in main)"),
        ({"kind": CACHE}, "release_variable.cache", "Call `old.cache_clear()`"),
    ],
)
def test_what_keeps_it_is_told_by_the_way_to_let_go_of_it(more: dict[str, Any], slug: str, said: str) -> None:
    values = {"kind": "attribute", **more}
    kept = suspect("main: old", retained=3000, unread="likely", **values)
    known = circumstances(size=500, piled=Piled(retained=3000, debris=(kept,)), retained=3000)
    (advice,) = release_variable.propose(known)
    assert advice.slug == slug
    assert advice_text(advice).action.startswith(said)
    codes = [one.code for one in retained.headline(known, outcome("retained"))]
    assert ("causes.retained.by_hooks" in codes) is (slug == "release_variable.hooks")


def test_a_function_that_remembers_what_it_returned_is_a_cache() -> None:
    told = {"device": 0, "address": 1 << 40, "bytes": 10 * MIB, "unread": "job.py: build"}
    row = {"holder": "job.py: build", "place": "global", "since": "before", "device": 0, "cache": True}
    study = study_device(holding(tensors=(told,), unread=[row]), 0)
    (one,) = find_unread(study, study.history.entries - 1, paths=3)
    assert one.kind == CACHE


def test_a_variable_that_keeps_tensors_on_two_cards_is_told_once_of_each() -> None:
    told = {"device": 0, "address": 1 << 40, "bytes": 10 * MIB, "unread": "main: old"}
    rows = [{"holder": "main: old", "place": "local", "since": "before", "device": card} for card in (0, 1)]
    study = study_device(holding(tensors=(told,), unread=rows), 0)
    (one,) = find_unread(study, study.history.entries - 1, paths=3)
    assert (one.holder, one.retained) == ("main: old", 10 * MIB)


@pytest.mark.parametrize(("second", "found"), [("before", 1), ("pass", 0)])
def test_a_variable_of_calls_in_progress_at_once_is_told_once(second: str, found: int) -> None:
    told = {"device": 0, "address": 1 << 40, "bytes": 10 * MIB, "unread": "serve: scores"}
    row = {"holder": "serve: scores", "place": "local", "device": 0}
    study = study_device(holding(tensors=(told,), unread=[{**row, "since": one} for one in ("before", second)]), 0)
    kept = list(find_unread(study, study.history.entries - 1, paths=3))
    assert [one.retained for one in kept] == [10 * MIB] * found


def test_holders_in_calls_in_progress_keep_no_more_than_there_is() -> None:
    device = analyze(load(PROGRAMS / "speech_transducer_gateway.pickle.xz")).main
    assert device is not None
    names = [one.holder for one in device.holders]
    assert "Gateway.transcribe: lattice" in names
    assert len(set(names)) == len(names)
    assert sum(one.retained for one in device.holders) <= device.at.allocated


def test_a_tensor_whose_place_is_not_known_is_no_part_of_what_a_variable_keeps() -> None:
    known = {"device": 0, "address": 1 << 40, "bytes": 10 * MIB, "unread": "main: old"}
    nowhere = {"device": 0, "bytes": 10 * MIB, "unread": "main: old"}
    row = {"holder": "main: old", "place": "local", "since": "before", "device": 0}
    study = study_device(holding(tensors=(known, nowhere), unread=[row]), 0)
    (one,) = find_unread(study, study.history.entries - 1, paths=3)
    assert (one.retained, one.tensors) == (10 * MIB, 1)
    rows = held_rows(study, study.history.entries - 1, "main: old")
    assert study.history.size[rows].tolist() == [10 * MIB]


@pytest.mark.parametrize(("place", "stores"), [("attribute", True), ("local", False)])
def test_an_attribute_is_stored_where_the_recording_says(place: str, stores: bool) -> None:
    told = {"device": 0, "address": 1 << 40, "bytes": 10 * MIB, "unread": "self.old"}
    at = {"filename": "/workspace/train.py", "line": 54, "name": "fit"}
    row = {"holder": "self.old", "place": place, "since": "before", "device": 0, "at": at}
    study = study_device(holding(tensors=(told,), unread=[row]), 0)
    (one,) = find_unread(study, study.history.entries - 1, paths=3)
    assert one.at is not None
    assert one.stores == ((one.at,) if stores else ())


def asking(frames: list[Frame], text: tuple[str, ...], *, threads: bool) -> Any:
    """A study of one request with these frames, whose dump has the `text` of train.py from line 8 on."""
    source = SimpleNamespace(filename="train.py", first=8, text=text)
    return SimpleNamespace(
        history=SimpleNamespace(trace=SimpleNamespace(stack=np.array([0]))),
        loops=SimpleNamespace(is_thread=lambda _: threads),
        snapshot=SimpleNamespace(stacks=[frames], recorded=SimpleNamespace(sources=[source])),
    )


@pytest.mark.parametrize("threads", [False, True])
@pytest.mark.parametrize(
    ("text", "holder", "is_told"),
    [
        ("        trainer = Trainer(table)", "main: trainer", True),
        ("        trainer: Trainer = Trainer(table)", "main: trainer", True),
        ("        trainer = trainer.next()", "main: trainer", False),  # the old one has been read, and is in use
        ("        trainers = [Trainer(table)]", "main: trainer", False),
        ("        if trainer == Trainer(table):", "main: trainer", False),
        ("        self.trainer = Trainer(table)", "main: trainer", False),
        ("        trainer = Trainer(table)", "other: trainer", False),
        ("        trainer = Trainer(table)", "main: trainer.model", False),
    ],
)
def test_a_variable_that_the_statement_underway_assigns_anew_is_of_an_earlier_pass(
    text: str, holder: str, is_told: bool, threads: bool
) -> None:
    frames = [Frame("train.py", 20, "__init__"), Frame("train.py", 9, "main")]
    study = asking(frames, ("    for number in range(9):", text, ""), threads=threads)
    assert is_being_assigned(study, 0, holder) is (is_told and not threads)
    without: Any = SimpleNamespace(history=SimpleNamespace(trace=SimpleNamespace(stack=np.array([-1]))))
    assert not is_being_assigned(without, 0, holder)


@pytest.mark.parametrize("threads", [False, True])
@pytest.mark.parametrize(
    ("text", "holder", "is_told"),
    [
        ("    weight = torch.zeros_like(field)", "main: volume", True),
        ("    weight = torch.zeros_like(field)", "main: volume.first", True),
        ("    weight = torch.zeros_like(volume)", "main: volume", False),  # it may be what the statement goes on with
        ("    weight = torch.zeros_like(field)", "fuse: volume", False),  # may have been handed to the call underway
        ("    weight = torch.zeros_like(volumes)", "main: volume", True),
    ],
)
def test_a_function_that_is_at_another_statement_has_given_its_variables_to_no_call(
    text: str, holder: str, is_told: bool, threads: bool
) -> None:
    frames = [Frame("/venv/lib/python3.12/site-packages/torch/nn/init.py", 20, "zeros_"), Frame("train.py", 9, "main")]
    study = asking(frames, ("", text, ""), threads=threads)
    assert is_at_another_statement(study, 0, holder) is (is_told and not threads)
    without = asking(frames, (), threads=threads)
    assert not is_at_another_statement(without, 0, holder)

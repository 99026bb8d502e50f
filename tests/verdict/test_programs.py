"""What is said of recorded programs whose mistake is known; see tests/captures/README.md."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

import pytest

from oomscope.analysis.records import CAUSES
from oomscope.analysis.verdict.records import Advice
from tests.verdict.known import UNKNOWABLE_BARE, Known, found, known_holders, names, programs, said

PROGRAMS = programs()
BOTH = pytest.mark.parametrize("with_key", [True, False], ids=["recorded", "bare"])

WRONG = {
    ("nowcast_float64", False): "whether frames from before the training are read again is not in a bare snapshot",
    ("hot_reload_server", True): "the model that a bound method keeps is named; the method may be called again",
    ("downscale_era", False): "what an exception keeps is not in a bare snapshot",
    ("probe_callbacks", False): "what hooks keep is not in a bare snapshot",
    ("hot_swap_engine", False): "what a cycle keeps is not in a bare snapshot",
    ("plane_sweep_tsdf", False): "which variables are read again is not in a bare snapshot",
    ("gp_ladder", False): "what an exception keeps is not in a bare snapshot",
    ("cryo_refine", False): "what a cycle keeps is not in a bare snapshot",
    ("adapter_summaries", False): "whether a cache is read again is not in a bare snapshot",
    ("sdxl_embeddings", False): "which models are still in use is not in a bare snapshot",
    ("wildlife_cam", False): "what hooks keep is not in a bare snapshot, and earlier passes had failed as well",
    ("distill_then_tune", False): "which models are still in use is not in a bare snapshot",
    ("molecule_trainer", False): "what an exception keeps is not in a bare snapshot",
    ("patch_bank", False): "a bare snapshot does not hold the cap, and the least that it may be leaves little",
    ("ranker", False): "which parameters are frozen is not in a bare snapshot",
    ("fit_batch_size", False): "whether what a call that failed has left is read again is not in a bare snapshot",
    ("superres_preview", False): "whether what a preview has left is read again is not in a bare snapshot",
    ("distill_then_finetune", False): "which models are still in use is not in a bare snapshot",
    ("style_mix", True): "features that a method asks for once may be asked for again",
    ("mlm_training", False): "which variables are read again is not in a bare snapshot",
    ("two_tower_retrieval", False): "who reads a tensor, and whether with gradients, is not in a bare snapshot",
    ("embed_plain", False): "who reads a tensor, and whether with gradients, is not in a bare snapshot",
    ("feature_matching", False): "the limit is known to within one request only",
    ("offloaded_pipeline", True): "the model that is left on the card is named; the next prompt needs it again",
    ("offloaded_pipeline", False): "which models run is not in a bare snapshot",
    ("curvature_schedule", True): "the gradients that keep a graph are named; a later backward may be for them",
    ("curvature_schedule", False): "who keeps a graph is not in a bare snapshot",
    ("lr_range_test", False): "which variables are read again is not in a bare snapshot",
    ("sae_on_activations", False): "which variables are read again is not in a bare snapshot",
    ("frame_matching", False): "the limit is known to within one request only",
    ("scene_halves", True): "a list that is as long as it was meant to be looks like one that grows",
    ("scene_halves", False): "a list that is as long as it was meant to be looks like one that grows",
    ("dreambooth_sd3", False): "which models are still in use is not in a bare snapshot",
    ("orbit_render", True): "a generator that is suspended may go on, so that what it holds is only named",
    ("orbit_render", False): "a generator that is suspended may go on",
    ("lab_console", False): "who keeps what an error left is not in a bare snapshot",
    ("lidar_merge", False): "the cap is inferred too low by what the request lacked",
    ("peek_loader", True): "recorded before the recorder knew that a queue is bounded",
    ("peek_loader", False): "a loader's thread that has run ahead, and stopped, looks like one that goes on",
    ("quant_calib", True): "a list that a forward asks for only while it calibrates counts as asked for",
    ("gp_search", False): "who keeps what a failed call left is not in a bare snapshot",
    ("lm_suite", False): "whether the result of the pass before is read again is not in a bare snapshot",
    ("index_builder", False): "whether what a call has left is read again is not in a bare snapshot",
    ("lr_range_fit", False): "whether what a call has left is read again is not in a bare snapshot",
    ("dpo_config", False): "whether a second model is read again is not in a bare snapshot",
    ("recsys_sanity", False): "whether a suspended generator goes on is not in a bare snapshot",
    ("prefetch_train", False): "threads that nobody reads from look like those of a pool",
    ("nerf_bake", False): "what of a tensor is shown is not in a bare snapshot",
    ("paged_engine", True): "pages of requests that are served look like a store that grows",
    ("paged_engine", False): "pages of requests that are served look like a store that grows",
    ("prompt_edit", True): "a store that is filled on purpose looks like one that grows",
    ("prompt_edit", False): "a store that is filled on purpose looks like one that grows",
    ("lanczos_modes", True): "a basis that each pass goes through looks like a list that grows",
    ("lanczos_modes", False): "a basis that each pass goes through looks like a list that grows",
    ("serve_upscaler", False): "results that nobody takes look like a list that is as long as it was meant to be",
    ("ccd_diis", False): "how many items a window has room for is not in a bare snapshot",
    ("recurrent_sr_model", True): "the output of the pass before is named; without it the next pass may not fit either",
    ("recurrent_sr_model", False): "whether the output of the pass before is read again is not in a bare snapshot",
    ("patent_years_index", True): "indexes that are searched later look like a list that grows",
    ("patent_years_index", False): "indexes that are searched later look like a list that grows",
    ("essay_batch_scorer", False): "whether what a layer has left is read again is not in a bare snapshot",
    ("token_image_sampler", False): "whether a suspended generator goes on is not in a bare snapshot",
    ("batch_decoder", True): "caches of requests that are in a list already look like a store that grows",
    ("batch_decoder", False): "caches of requests that are in a list already look like a store that grows",
    ("planet_tags_kernel", False): "whether a table is read again is not in a bare snapshot",
    ("tabnet_random_search", False): "whether a model that was trained is read again is not in a bare snapshot",
    ("poster_pipeline", False): "which models are still in use is not in a bare snapshot",
    ("sasrec_quickstart", False): "the limit is known to within one request only",
    ("yolo_callbacks", False): "what makes each pass need more is not in a bare snapshot",
    ("dreambooth_latents", True): "the model that is left over is named; a training step may use it",
    ("dreambooth_latents", False): "which models are still in use is not in a bare snapshot",
    ("fed_recommender", False): "which variables are read again is not in a bare snapshot",
    ("tgnwarm", True): "graphs of few passes before any backward may be gathered for one",
    ("maml_unroll", False): "which backward is to come is not in a bare snapshot",
    ("kernelgp", False): "the cap is inferred too low by what the request lacked",
    ("kv_scheduler", False): "requests that nobody ends look like those that are served",
    ("serve_async", False): "whose results are read again is not in a bare snapshot",
    ("slide_mil", False): "threads that nobody reads from look like those of a pool",
    ("repl_session", False): "who keeps what an error left is not in a bare snapshot",
    ("rag_service", False): "whether what a call has left is read again is not in a bare snapshot",
    ("cli_index", False): "what only C holds is not in a bare snapshot",
    ("pbt_agents", False): "models that replaced ones keep look like a former model and its successor",
    ("phase_field", False): "what an exception keeps is not in a bare snapshot",
    ("demand_backtest", False): "whether a table is read again is not in a bare snapshot",
    ("distill_lm", False): "what a cache keeps is not in a bare snapshot",
    ("road_segmentation_autobatch", False): "what an exception keeps is not in a bare snapshot",
    ("muzero_learner", False): "whether a replay memory is read again is not in a bare snapshot",
    (
        "plain_net",
        False,
    ): "layers as plain functions, in the first forward: by the trace, a loop that fills a list",
}
"""Captures that get another cause today; none of them with high confidence."""

UNNAMED = {
    "federated_lora": "the parameters of each pass are told by their loop, and not by their names",
    "pretrain_then_tag": "only C holds the method, so that no name leads to it",
    "phases": "the recorder calls the orphan `self`, as the running object is called",
    "repl_session": "the error that the console showed last is named, and not the variable that it keeps",
    "tgnwarm": "it is called capacity: the graphs may be gathered for a backward",
}
"""Captures whose headline does not name the holder, though the recording knows it."""

GROWS_BY_DESIGN = {
    "hot_swap_engine": "the layers of an engine that is being loaded are gathered",
    "shard_keeper": "an index of shards is filled",
    "sae_on_activations": "a buffer of activations is filled before each round of training",
    "peek_loader": "a loader's thread runs ahead until its queue is full",
    "micro_sum": "the losses of micro-batches are gathered for one backward",
    "plain_net": "the rounds of a loop through layers, which are plain functions",
    "two_lanes": "results are kept in a list, as they should be, and are not what failed",
    "scene_halves": "a list of seven volumes is filled",
    "dump_features": "a list of shards is filled",
    "eeg_preprocess": "a list of recordings is filled",
    "batch_decoder": "the caches of the requests in a list are filled",
    "ccd_diis": "a solver's window of eight steps is filled",
    "patent_years_index": "a list of indexes is filled",
    "phase_field": "a solver's basis is filled",
    "speech_transducer_gateway": "the errors of calls that failed keep what they had, until the futures are read",
    "citation_shards": "a dict of shards is filled",
    "slide_viewer": "the tiles of one large view are put together, after many small ones",
}
"""Captures with rows of growth though nothing is wrong with what grows."""

NO_ROWS = {
    "federated_lora": "the parameters of each pass are kept, told as such and not by site",
    "sweep_classifier": "whole models are kept, told as models and not by site",
    "wildlife_cam": "hooks keep what the newest pass made; told as hooks",
    "probe_callbacks": "hooks keep what the newest pass made; told as hooks",
    "yolo_callbacks": "hooks keep what the newest pass made; told as hooks, and by how much passes need more",
    "state_view": "recorded without a trace",
    "mlm_domain_eval": "told as a tensor that is joined to, and not by site",
    "sweep": "whole models are kept, told as models and not by site",
    "prefetch_train": "what a thread's queue keeps is told by the queue, not by site",
    "daily_retrain": "whole models are kept, told as models and not by site",
    "pbt_agents": "whole models are kept, told as models and not by site",
    "pbt_population": "whole models are kept, told as models and not by site",
    "kv_scheduler": "few caches grow while many are served",
    "serve_async": "calls that are underway are no passes",
    "slide_mil": "calls that are underway are no passes",
}
"""Captures that grow without a row of growth."""


def cases(chosen: Iterable[str], known: Mapping[str, str] = MappingProxyType({})) -> list[object]:
    """Names of captures; those of `known` are expected to fail."""
    names = sorted(chosen)
    assert set(known) <= set(names)
    return [
        pytest.param(name, marks=pytest.mark.xfail(reason=known[name], strict=True)) if name in known else name
        for name in names
    ]


def those(wanted: Callable[[Known], object]) -> list[str]:
    """Names of the captures of which something is so."""
    return [name for name, one in PROGRAMS.items() if wanted(one)]


def test_every_kind_is_among_the_programs() -> None:
    assert {one.cause for one in PROGRAMS.values()} == {*CAUSES, None}


def check_cause(one: Known, *, with_key: bool) -> None:
    verdict = said(one.path, with_key=with_key)
    if not with_key and one.cause in UNKNOWABLE_BARE:
        oom = found(one.path, with_key=False).oom
        assert oom is not None
        assert any(unknown.code == "verdict.unknown.card" for unknown in oom.verdict.cannot_know)
    else:
        assert one.admits(verdict.cause), verdict.headline


@pytest.mark.parametrize(
    ("name", "with_key"),
    [
        pytest.param(name, key, marks=pytest.mark.xfail(reason=WRONG[name, key], strict=True))
        if (name, key) in WRONG
        else (name, key)
        for name, one in PROGRAMS.items()
        for key in (True, False)
        if not one.arguable
    ],
)
def test_the_cause_is_right(name: str, with_key: bool) -> None:
    check_cause(PROGRAMS[name], with_key=with_key)


@BOTH
@pytest.mark.parametrize("name", [name for name, one in PROGRAMS.items() if not one.arguable])
def test_nothing_wrong_is_said_with_high_confidence(name: str, with_key: bool) -> None:
    verdict = said(PROGRAMS[name].path, with_key=with_key)
    assert PROGRAMS[name].admits(verdict.cause) or verdict.confidence != "high", verdict.headline


@BOTH
@pytest.mark.parametrize("name", [name for name, one in PROGRAMS.items() if one.arguable])
def test_of_a_program_that_went_on_it_is_said_that_it_did(name: str, with_key: bool) -> None:
    oom = found(PROGRAMS[name].path, with_key=with_key).oom
    assert oom is not None
    assert oom.recovered
    assert any(unknown.code == "verdict.unknown.recovered" for unknown in oom.verdict.cannot_know)


NAMED = those(lambda one: next(known_holders(one), None))
"""Captures whose recording knows the object that keeps the memory."""


@pytest.mark.parametrize("name", cases(NAMED, UNNAMED))
def test_the_holder_stands_in_the_headline_where_the_recording_knows_it(name: str) -> None:
    headline = said(PROGRAMS[name].path, with_key=True).headline
    assert any(names(identifier, headline) for identifier in known_holders(PROGRAMS[name])), headline


def test_most_holders_are_known_to_the_recordings() -> None:
    assert len(NAMED) >= 0.7 * len(those(lambda one: one.holders))


@BOTH
@pytest.mark.parametrize("name", cases(those(lambda one: one.grows is False), GROWS_BY_DESIGN))
def test_no_growth_is_shown_where_nothing_grows(name: str, with_key: bool) -> None:
    assert found(PROGRAMS[name].path, with_key=with_key).growth == ()


@BOTH
@pytest.mark.parametrize("name", cases(those(lambda one: one.grows), NO_ROWS))
def test_growth_is_shown_where_memory_grows(name: str, with_key: bool) -> None:
    assert found(PROGRAMS[name].path, with_key=with_key).growth


FAILED = those(lambda one: one.cause or one.arguable)


@BOTH
@pytest.mark.parametrize("name", FAILED)
def test_the_first_advice_lets_the_request_through_wherever_any_does(name: str, with_key: bool) -> None:
    advice = advised(name, with_key=with_key)
    if not advice[0].enough:  # holes leave it open, and only a replay tells
        advice = advised(name, with_key=with_key, whatif=True)
    assert any(one.enough for one in advice)
    assert advice[0].enough, [(one.slug, one.enough) for one in advice]


def advised(name: str, *, with_key: bool, whatif: bool = False) -> list[Advice]:
    oom = found(PROGRAMS[name].path, with_key=with_key, whatif=whatif).oom
    assert oom is not None
    return [one for one in oom.verdict.advice if not one.refuted]

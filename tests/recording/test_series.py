"""A row a step, for weeks: what is in it, how it stays small, and where it goes while the job runs."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomscope.model.recorded_parsing import parse_context
from oomscope.recording.step_rows import StepRows, merged

torch = pytest.importorskip("torch", reason="recording needs torch")
pytestmark = pytest.mark.torch

import oomscope  # noqa: E402
from oomscope.recording.trackers import JsonLines, Trackers, scalars  # noqa: E402


def row(number: int, peak: int | None = None, **more):
    return {
        "name": str(number),
        "begin_us": 10 * number,
        "end_us": 10 * number + 9,
        "peak_allocated": [peak],
        "peak_reserved": [None],
        "allocated": [number],
        "reserved": [2 * number],
        "retries": 1,
        **more,
    }


def test_a_row_has_what_the_step_left_and_what_it_raised(fake, dumps):
    with oomscope.record(on="exit") as recording:
        with recording.step(batch=8):
            fake.allocated, fake.retries = 3 << 30, 2
        with recording.step(batch=8):
            pass
    first, second = dumps()[0]["oomscope"]["steps"]
    assert first["peak_allocated"] == first["allocated"] == [3 << 30]
    assert first["peak_reserved"] == first["reserved"] == [6 << 30]
    assert (first["retries"], first["shape"]) == (2, {"batch": 8})
    # It raised no peak: torch's statistics, which are never reset, cannot tell its own.
    assert (second["peak_allocated"], second["peak_reserved"], second["retries"]) == ([None], [None], 0)


def test_counts_that_the_program_reset_are_unknown(fake, dumps):
    with oomscope.record(on="exit") as recording:
        fake.retries = 5
        with recording.step():
            fake.retries = 0
    assert dumps()[0]["oomscope"]["steps"][0]["retries"] is None


def test_two_rows_become_one_that_says_no_more_than_both():
    one, other = row(0, peak=7, shape={"batch": 8}), row(1, peak=5, shape={"batch": 8})
    assert merged(one, other) == {
        **row(1, peak=7, shape={"batch": 8}),
        "name": "0",
        "begin_us": 0,
        "count": 2,
        "retries": 2,
    }
    unknown = merged(one, row(1, shape={"batch": 9}))
    assert unknown["peak_allocated"] == [None]
    assert "shape" not in unknown


@given(st.integers(0, 700))
def test_rows_are_bounded_and_lose_no_step(count: int):
    rows = StepRows(most_recent=16, most_earlier=20)
    for number in range(count):
        rows.append(row(number))
    every = [*rows.earlier, *rows.recent]
    assert len(rows.recent) <= 16
    assert len(rows.earlier) <= 20
    assert len({one["count"] for one in rows.earlier[:-1]}) <= 1, "some part of the run is told in less detail"
    assert sum(one.get("count", 1) for one in every) == count
    assert sum(one["retries"] for one in every) == count
    assert all(one.get("count", 1) == 1 for one in rows.recent)
    if every:
        assert every[0]["begin_us"] == 0
        assert every[-1] == row(count - 1)
    for one, other in pairwise(every):
        assert one["end_us"] < other["begin_us"] == one["end_us"] + 1


def test_older_rows_are_in_the_dump_and_read_again(fake, dumps, monkeypatch):
    monkeypatch.setattr("oomscope.recording.step_log.StepRows", lambda: StepRows(4, 4))
    with oomscope.record(on="exit") as recording:
        for _ in range(20):
            with recording.step():
                pass
    key = dumps()[0]["oomscope"]
    assert [one["name"] for one in key["steps"]] == ["16", "17", "18", "19"]
    assert sum(one.get("count", 1) for one in key["steps_before"]) == 16
    recorded = parse_context(key)
    assert [one.name for one in recorded.steps] == ["16", "17", "18", "19"]
    assert sum(one.count for one in recorded.steps_before) == 16
    assert recorded.malformed == 0


def test_json_lines_are_there_while_the_job_runs(fake, tmp_path):
    with oomscope.record(series="jsonl", series_interval=0) as recording:
        for batch in (8, 16):
            with recording.step(batch=batch):
                fake.allocated += 1 << 20
            (path,) = tmp_path.glob("steps_*_rank0_*.jsonl")
            last = json.loads(path.read_text().splitlines()[-1])
            assert (last["allocated"], last["shape"]) == ([fake.allocated], {"batch": batch})
    assert [json.loads(line)["step"] for line in path.read_text().splitlines()] == [0, 1]


def test_between_two_rows_steps_are_merged(fake, tmp_path):
    with oomscope.record(series="jsonl", series_interval=600) as recording:
        for _ in range(5):
            with recording.step():
                pass
    (path,) = tmp_path.glob("steps_*.jsonl")
    lines = list(map(json.loads, path.read_text().splitlines()))
    assert [(one["step"], one.get("count", 1)) for one in lines] == [(0, 1), (4, 4)]


def test_a_tracker_that_fails_ends_and_the_others_go_on(tmp_path, capfd):
    (tmp_path / "taken").write_text("")
    trackers = Trackers(("jsonl",), tmp_path, 0)
    broken = JsonLines(tmp_path / "taken")
    trackers._trackers.insert(0, broken)
    for number in range(3):
        trackers.add(row(number), number)
    trackers.close()
    assert len(next(tmp_path.glob("steps_*.jsonl")).read_text().splitlines()) == 3
    assert capfd.readouterr().err.count("steps are no longer written to JsonLines") == 1


def test_scalars_leave_out_what_is_not_known():
    assert scalars(row(3)) == {
        "oomscope/cuda0/allocated_bytes": 3.0,
        "oomscope/cuda0/reserved_bytes": 6.0,
        "oomscope/retries": 1.0,
    }


def train(recording) -> None:
    for _ in range(3):
        with recording.step():
            pass


def test_tensorboard_has_the_scalars(fake, tmp_path):
    pytest.importorskip("tensorboard", reason="needs TensorBoard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with oomscope.record(series="tensorboard", series_interval=0) as recording:
        train(recording)
    events = EventAccumulator(str(tmp_path / "tensorboard" / "rank0"))
    events.Reload()
    found = [(one.step, one.value) for one in events.Scalars("oomscope/cuda0/allocated_bytes")]
    assert found == [(number, float(1 << 30)) for number in range(3)]


def test_mlflow_has_the_metrics_of_the_programs_own_run(fake, tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow", reason="needs MLflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri(f"file://{tmp_path}/mlruns")
    with mlflow.start_run() as run, oomscope.record(series="mlflow", series_interval=0) as recording:
        train(recording)
    mlflow.flush_async_logging()
    history = mlflow.MlflowClient().get_metric_history(run.info.run_id, "oomscope/cuda0/allocated_bytes")
    # It logs in threads of its own.
    assert sorted((one.step, one.value) for one in history) == [(number, float(1 << 30)) for number in range(3)]


def test_wandb_gets_the_figures_without_a_step_of_its_own(fake, tmp_path, monkeypatch):
    wandb = pytest.importorskip("wandb", reason="needs Weights & Biases")
    monkeypatch.setenv("WANDB_SILENT", "true")
    run = wandb.init(mode="offline", dir=str(tmp_path), project="oomscope")
    try:
        with oomscope.record(series="wandb", series_interval=0) as recording:
            for number in range(3):
                with recording.step():
                    pass
                run.log({"loss": number})
        assert run.step == 3
        assert run.summary["oomscope/cuda0/allocated_bytes"] == float(1 << 30)
    finally:
        run.finish()


def test_an_unknown_tracker_is_an_error():
    with pytest.raises(ValueError, match="series takes 'jsonl'"):
        oomscope.record(series="disk")

"""What is said not to have helped is nothing that a replay shows to help."""

from __future__ import annotations

from pathlib import Path

import pytest

from oomscope.analysis import Findings, analyze
from oomscope.reading import load
from tests.samples import SAMPLES, sample_path

CAPTURES = sorted((Path(__file__).parents[1] / "captures").glob("*.pickle.xz"))
SNAPSHOTS = [*map(sample_path, SAMPLES), *CAPTURES]
MOST_ENTRIES = 20_000
"""So many are replayed under all settings in a second or two."""


def refuted_settings(findings: Findings) -> set[str]:
    """The names of the settings that the report says would not have helped."""
    found = set()
    for device in findings.devices:
        for advice in device.oom.verdict.advice if device.oom else ():
            if advice.slug == "refuted.setting.replayed":
                for group in str(advice.values["settings"]).split("; "):
                    name, _, values = group.partition(":")
                    found |= {f"{name}:{value}" for value in values.split(", ")}
            elif advice.slug.startswith("refuted.expandable"):
                found.add("expandable_segments:True")
            elif advice.slug == "refuted.empty_cache":
                found |= {"empty_cache after each step", "empty_cache before the peak step"}
    return found


@pytest.mark.parametrize("path", SNAPSHOTS, ids=lambda path: path.name.partition(".")[0])
def test_nothing_under_which_the_run_survives_is_refuted(path: Path) -> None:
    snapshot = load(path)
    if snapshot.entries > MOST_ENTRIES:
        pytest.skip("too long to replay under every setting here")
    findings = analyze(snapshot, whatif_seconds=60)
    surviving = {row.setting for answer in findings.whatif for row in answer.rows if row.oom is False}
    assert not refuted_settings(findings) & surviving

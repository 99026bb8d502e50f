"""Nothing private survives redaction, in any format; and the numbers stay the same."""

from __future__ import annotations

import io
import json
import re

import pytest

from oomscope.analysis import analyze
from oomscope.model import Snapshot
from oomscope.reading import load
from oomscope.rendering import memory_viz, render_html
from oomscope.rendering.aliases import Aliases
from oomscope.rendering.json_report import render_json
from oomscope.rendering.markdown import render_markdown
from oomscope.rendering.redact import redact
from oomscope.rendering.terminal import render_text
from tests.rendering.hostile import hostile_snapshot
from tests.samples import SAMPLES, sample

WELL_KNOWN = re.compile(r"site-packages/(?:torch|numpy|transformers)/|/lib/python3[\d.]*/(?!site-packages)|\A<|\A\?*\Z")
PUBLIC_WORDS = {"forward", "backward", "<module>"}


def secrets(snapshot: Snapshot) -> set[str]:
    """Files and functions that are nobody's business."""
    own = [frame for frame in snapshot.stacks.frames if not WELL_KNOWN.search(frame.filename)]
    files = {frame.filename for frame in own}
    names = {name for file in files for name in (file, file.rsplit("/", 1)[-1])}
    return names | {frame.name for frame in own if frame.name not in PUBLIC_WORDS}


def every_format(snapshot: Snapshot) -> dict[str, str]:
    findings = analyze(snapshot, whatif=False)
    exported = load(io.BytesIO(memory_viz.to_pickle(snapshot)))
    return {
        "html": render_html(findings),
        "md": render_markdown(findings),
        "json": render_json(findings),
        "text": render_text(findings),
        "memory-viz": memory_viz.to_json(exported),
    }


@pytest.mark.parametrize("name", SAMPLES)
def test_no_name_of_ones_own_survives(name: str):
    original = sample(name)
    private = secrets(original)
    assert private
    copy, _ = redact(original)
    for form, text in every_format(copy).items():
        # A plain search first: it is a hundred times as fast, and usually the last.
        found = {s for s in private if s in text and re.search(rf"(?<![\w-]){re.escape(s)}(?![\w-])", text)}
        # Ordinary words, which the report uses itself: they are no trace of the program.
        assert {word for word in found if not re.fullmatch(r"[a-z]+", word)} == set(), form
        assert not {word for word in found if f'"{word}"' in text or f"{word} (" in text}, form


def test_users_hosts_arguments_environment_and_names_of_tensors_go():
    copy, key = redact(hostile_snapshot())
    for form, text in every_format(copy).items():
        assert "alice" not in text, form
        assert "secret" not in text.lower(), form
        assert "octocat" not in text, form
    assert "secret_model" in key.values()
    assert "NVIDIA H200" in json.dumps(copy.context)


@pytest.mark.parametrize("name", SAMPLES)
def test_numbers_stay(name: str):
    before = analyze(sample(name), whatif=False)
    after = analyze(redact(sample(name))[0], whatif=False)
    for one, other in zip(before.devices, after.devices, strict=True):
        assert [site.bytes for site in one.sites] == [site.bytes for site in other.sites]
        assert one.categories == other.categories
        assert one.phases == other.phases
        assert (one.oom and one.oom.verdict.cause) == (other.oom and other.oom.verdict.cause)


def test_the_key_gives_every_name_back():
    copy, key = redact(sample("oom_fragmentation"))
    aliased = {frame.name for frame in copy.stacks.frames} - {
        frame.name for frame in sample("oom_fragmentation").stacks.frames
    }
    assert aliased
    assert {key[alias] for alias in aliased} <= {frame.name for frame in sample("oom_fragmentation").stacks.frames}


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        (
            "/home/alice/.venv/lib/python3.12/site-packages/torch/nn/modules/linear.py",
            "/lib/python3.12/site-packages/torch/nn/modules/linear.py",
        ),
        (
            r"C:\Users\alice\venv\Lib\site-packages\torch\nn\modules\linear.py",
            "/Lib/site-packages/torch/nn/modules/linear.py",
        ),
        ("/home/alice/lib/python3.12/threading.py", "/lib/python3.12/threading.py"),
        (
            "/home/alice/lib/python3.12/site-packages/acme/core.py",
            "/lib/python3.12/site-packages/package_1/module_1.py",
        ),
        ("/home/alice/run/train.py", "/project/module_1.py"),
        ("/tmp/torchinductor_alice/ab/cabcd.py", "/tmp/torchinductor_user/module_1.py"),
        ("<ipython-input-3-8fdd>", "<ipython-input-3>"),
        ("<frozen runpy>", "<frozen runpy>"),
        ("??", "??"),
    ],
)
def test_paths(path: str, shown: str):
    assert Aliases().code(path, "f", 1)[0] == shown


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Optimizer.step#AdamW.step", "Optimizer.step#AdamW.step"),
        ("Optimizer.step#AcmeOpt.step", "Optimizer.step#Optimizer_1.step"),
        ("nccl:all_gather", "nccl:all_gather"),
        ("ProfilerStep#12", "ProfilerStep#12"),
        ("acme phase 7", "range_1 7"),
    ],
)
def test_ranges_keep_what_tells_steps_apart(name: str, shown: str):
    assert Aliases().range_name(name) == shown


def test_the_same_name_gets_the_same_alias():
    aliases = Aliases()
    assert aliases.function("fit") == aliases.function("fit") != aliases.function("tune")
    assert aliases.name("model.layers.0.weight") == aliases.name("model.layers.0.weight")
    assert aliases.name("fit: xs[2]").startswith(aliases.function("fit"))

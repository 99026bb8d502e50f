"""Nothing private survives redaction, in any format; and the numbers stay the same."""

from __future__ import annotations

import io
import json
import re
import zipfile
from pathlib import Path

import pytest

from oomscope.analysis import analyze
from oomscope.commands.common.bundle import bundle
from oomscope.commands.common.errors import run
from oomscope.export import memory_viz
from oomscope.model import Snapshot
from oomscope.reading import load
from oomscope.redaction.aliases import Aliases
from oomscope.redaction.context import redact_context
from oomscope.redaction.snapshot import redact
from oomscope.rendering import render_html
from oomscope.rendering.html.notebook import findings_html, snapshot_html
from oomscope.rendering.json_report import render_json
from oomscope.rendering.markdown import render_markdown
from oomscope.rendering.text.terminal import render_text
from oomscope.rendering.whatif import to_json, to_text
from tests.builders import loaded
from tests.rendering.hostile import hostile_snapshot
from tests.rendering.secrets import SECRET, secret_snapshot
from tests.samples import SAMPLES, sample, sample_path

WELL_KNOWN = re.compile(r"site-packages/(?:torch|numpy|transformers)/|/lib/python3[\d.]*/(?!site-packages)|\A<|\A\?*\Z")
PUBLIC_WORDS = {"forward", "backward", "<module>"}


def secrets(snapshot: Snapshot) -> set[str]:
    """Files and functions that are nobody's business."""
    own = [frame for frame in snapshot.stacks.frames if not WELL_KNOWN.search(frame.filename)]
    files = {frame.filename for frame in own}
    names = {name for file in files for name in (file, file.rsplit("/", 1)[-1])}
    return names | {frame.name for frame in own if frame.name not in PUBLIC_WORDS}


def every_format(snapshot: Snapshot, *, whatif: bool = False) -> dict[str, str]:
    findings = analyze(snapshot, whatif=whatif)
    exported = load(io.BytesIO(memory_viz.to_pickle(snapshot)))
    with zipfile.ZipFile(io.BytesIO(bundle(findings))) as archive:
        packed = {f"bundle: {name}": archive.read(name).decode("utf-8", "replace") for name in archive.namelist()}
    answers = {f"whatif: {form.__name__}": "".join(map(form, findings.whatif)) for form in (to_json, to_text)}
    return {
        **packed,
        **answers,
        "names in the bundle": "\n".join(packed),
        "pickle": memory_viz.to_pickle(snapshot).decode("utf-8", "replace"),
        "notebook": f"{findings_html(findings)} {snapshot_html(snapshot)}",
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


def test_no_text_of_a_file_survives_wherever_it_stands():
    original = secret_snapshot()
    copy, key = redact(original)
    assert len(SECRET.findall(render_json(analyze(original, whatif=False)))) > 100
    for form, text in every_format(copy, whatif=True).items():
        assert set(SECRET.findall(text)) == set(), form
        assert "é" not in text, form
    assert len(SECRET.findall(json.dumps(key))) > 100


def test_what_the_recorder_says_itself_stays():
    context = {
        "holders": [
            {"holder": "train.py: errors", "kind": "exception", "place": "global", "finished": True, "length": 3},
            {"path": ["train.py: errors[0].__traceback__ → forward: hidden[1]"], "kind": "deque", "maxlen": 8},
            {"holder": "the OutOfMemoryError being handled"},
            {"holder": "reference cycle: Sample.owner → Sample"},
            {"holder": "model.hook (closure) captured"},
        ],
        "stacks": {"threads": [{"name": "MainThread"}, {"name": "Thread-3 (serve)"}, {"name": "loader"}]},
        "autograd": {"node": "MmBackward0", "gradients_of": ["model.head.weight"]},
        "tensors": [{"saved_for": "AddmmBackward0 (mat1)"}, {"saved_for": "SecretBackward (x)"}],
    }
    copy = redact_context(context, Aliases())
    assert copy["holders"] == [
        {"holder": "module_1.py: name_1", "kind": "exception", "place": "global", "finished": True, "length": 3},
        {"path": ["module_1.py: name_1[0].__traceback__ → forward: name_2[1]"], "kind": "deque", "maxlen": 8},
        {"holder": "the OutOfMemoryError being handled"},
        {"holder": "reference cycle: name_3.name_4 → name_3"},
        {"holder": "name_5.name_6 (closure) name_7"},
    ]
    assert [row["name"] for row in copy["stacks"]["threads"]] == ["MainThread", "Thread-3thread_1", "thread_2"]
    assert copy["autograd"] == {"node": "MmBackward0", "gradients_of": ["name_5.name_8.weight"]}
    assert [row["saved_for"] for row in copy["tensors"]] == ["AddmmBackward0 (mat1)", "name_9 (name_10)"]


def test_lines_of_source_go():
    source = {"filename": "train.py", "line": 2, "first": 1, "text": ["key = 'alice'", "train()", ""]}
    copy, _ = redact(loaded(oomscope={"torch": "2.11.0", "sources": [source]}))
    assert copy.recorded.torch == "2.11.0"
    assert copy.recorded.sources == ()
    assert "alice" not in memory_viz.to_json(copy)


def test_every_alias_has_its_name_in_the_key():
    copy, key = redact(secret_snapshot())
    kinds = {re.sub(r"_\d+\Z", "", alias) for alias in key}
    assert kinds >= {"function", "symbol", "name", "module", "package", "text", "range", "host", "process"}
    found = re.findall(rf"(?<![A-Za-z])(?:{'|'.join(kinds)})_\d+(?!\w)", memory_viz.to_json(copy))
    assert found
    assert set(found) <= set(key)
    assert len(set(key.values())) > 0.9 * len(key)


def test_a_report_from_a_file_with_a_secret_name_does_not_tell_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "zq1xv.pickle.xz"
    path.write_bytes(sample_path("oom_fragmentation").read_bytes())
    for arguments in (["report", str(path), "--no-whatif", "-o", "r.html"], ["report", str(path), "--bundle", "r.zip"]):
        assert run([*arguments, "--redact"]) == 0
    with zipfile.ZipFile("r.zip") as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]
    for name, content in [("r.html", (tmp_path / "r.html").read_bytes()), *members]:
        assert b"zq1xv" not in content + name.encode(), name


@pytest.mark.parametrize(
    ("symbol", "shown"),
    [
        ("at::native::foo<acme::SecretKernel>(at::Tensor const&)", "at::native::foo<1::2>(at::Tensor const&)"),
        ("std::vector<Secret, std::allocator<Secret> >::push_back(Secret&&)", None),
        (
            "at::native::(anonymous namespace)::f<Mine>()::{lambda(Mine)#1}::operator()(Mine*) const",
            "at::native::(anonymous namespace)::f<1>()::{lambda(1)#1}::operator()(1*) const",
        ),
        ("acme::at::f(int)", "1::2::3(int)"),
        ("void acme::k<4ul>(float*)", "void 1::2<4ul>(float*)"),
        ("c10::Dispatcher::callBoxed(c10::OperatorHandle const&) const [clone .isra.0]", "same"),
        ("THPVariable_dealloc(_object*)", "same"),
        ("_PyEval_EvalFrameDefault", "same"),
        ("PySecret_run", "1"),
        ("customer_kernel", "1"),
        ("_ZN2at6native6SecretEv", "1"),
    ],
)
def test_of_a_native_symbol_what_is_pytorchs_stays(symbol: str, shown: str | None):
    aliases = Aliases()
    made = aliases.function(symbol, "??")
    assert "acme" not in made
    assert "Secret" not in made
    if shown is not None:
        assert made.replace("symbol_", "") == (symbol if shown == "same" else shown)


def test_one_word_has_one_alias_in_code_in_names_and_in_symbols():
    aliases = Aliases()
    word = aliases.function("acme")
    assert aliases.name("acme.CACHE").startswith(f"{word}.")
    assert aliases.function("at::f<acme::T>()", "??") == f"at::f<{word}::{aliases.name('T')}>()"
    assert aliases.code("/opt/site-packages/acme/x.py", "f", 1)[0].startswith(f"/site-packages/{word}/")


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


def test_a_module_has_one_alias_in_frames_and_in_texts():
    aliases = Aliases()
    path, _, function = aliases.code("/home/alice/run/metrics.py", "update", 3)
    shown = path.rpartition("/")[2]
    assert aliases.name("metrics.py: outputs[3]").startswith(f"{shown}: ")
    assert aliases.name("update (metrics.py:3)") == f"{function} ({shown}:3)"
    other = aliases.name("elsewhere.py: cache")
    assert other == aliases.name("elsewhere.py: cache")
    assert re.fullmatch(r"module_\d+\.py: \w+_\d+", other)
    assert other.partition(":")[0] != shown


def test_a_file_of_a_well_known_package_stays_in_texts():
    aliases = Aliases()
    aliases.code("/venv/lib/python3.12/site-packages/transformers/modeling_llama.py", "forward", 175)
    assert aliases.name("forward (modeling_llama.py:175)") == "forward (modeling_llama.py:175)"
    # One's own file of that name is one's own.
    own = Aliases()
    own.code("/home/alice/modeling_llama.py", "forward", 175)
    assert "modeling_llama" not in own.name("forward (modeling_llama.py:175)")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("TransformerEncoder.forward: output", "TransformerEncoder.forward: name_1"),
        ("cross_entropy: input", "cross_entropy: name_1"),
        ("AdamW.acme", "AdamW.name_1"),
        ("acme.__closure__[0].__traceback__", "name_1.__closure__[0].__traceback__"),
        ("acme.__secret__", "name_1.name_2"),
    ],
)
def test_names_of_torch_and_of_python_stay(text: str, shown: str):
    assert Aliases().name(text) == shown


def test_an_exception_being_handled_stays_one_on_the_way_to_what_it_keeps():
    path = "the OutOfMemoryError being handled.__traceback__ → GPT.forward: x"
    copy = redact_context({"holders": [{"path": [path]}]}, Aliases())
    assert copy["holders"][0]["path"] == ["the OutOfMemoryError being handled.__traceback__ → name_1.forward: name_2"]


@pytest.mark.parametrize("command", ["whatif", "summary"])
def test_commands_that_print_names_can_redact_and_keep_the_key(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    key = tmp_path / "key.json"
    assert run([command, str(sample_path("oom_fragmentation")), "--redact", "--redact-key", str(key)]) == 0
    assert "fill_cache" not in capsys.readouterr().out
    assert "fill_cache" in json.loads(key.read_text(encoding="utf-8")).values()
    assert run([command, str(sample_path("oom_fragmentation")), "--redact-key", str(key)]) == 2


def test_what_only_c_code_holds_keeps_its_words_and_loses_its_name():
    way = "Engine.close (a method that nothing visible holds)"
    copy = redact_context({"holders": [{"holder": way, "kind": "deferred"}]}, Aliases())
    assert copy["holders"][0]["holder"] == "name_1.name_2 (a method that nothing visible holds)"

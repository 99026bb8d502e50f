"""The plugin of pytest, in sessions of its own: with a fake GPU, without one, and for tests that do not ask."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from oomscope.recording import backend, history, observer, session

pytest_plugins = "pytester"
PLUGIN = "oomscope.testing.pytest_plugin"
INSTALLED = any(one.value == PLUGIN for one in metadata.entry_points(group="pytest11"))
ARGUMENTS = ["-p", "no:cacheprovider", "-p", "no:randomly", *([] if INSTALLED else ["-p", PLUGIN])]

GPU = """
    import pytest
    from oomscope.recording import backend
    from tests.testing.fake_gpu import alloc, free, step

    MIB = 1 << 20
"""


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch):
    """A fake GPU in this process; asked for before `pytester`, which forgets what is imported after it."""
    pytest.importorskip("torch", reason="the fake GPU is made of torch's CPU tensors")
    from oomscope.testing import gpu_memory
    from tests.testing.fake_gpu import FakeGpu

    assert gpu_memory.why_no_gpu

    made = FakeGpu()
    _forget()
    backend.use(made)
    yield made
    backend.use(None)
    _forget()


def _forget() -> None:
    history.forget()
    observer._active.clear()
    observer._attached_to = None
    session._waiting_for = None


def run(pytester: pytest.Pytester, source: str, *arguments: str) -> pytest.RunResult:
    import textwrap

    pytester.makeini("[pytest]")  # else a setup.py that somebody left in /tmp makes that the root
    pytester.makepyfile(test_it=textwrap.dedent(GPU) + textwrap.dedent(source))
    return pytester.runpytest_inprocess(*ARGUMENTS, "--strict-markers", *arguments)


@pytest.mark.torch
def test_a_test_within_its_budget_passes_and_one_beyond_fails_with_the_line(gpu, pytester: pytest.Pytester):
    result = run(
        pytester,
        """
        @pytest.mark.gpu_memory(max_peak="8 MiB")
        def test_within():
            free(alloc(8 * MIB, "small"))

        @pytest.mark.gpu_memory(max_peak="8 MiB")
        def test_beyond():
            kept = alloc(6 * MIB, "large")
            free(alloc(4 * MIB, "small"))
            free(kept)
        """,
    )
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*GPU memory: 1 of 1 budget broken.*",
            "*Peak allocated: 10.0 MiB, +2.00 MiB over 8.00 MiB; most by 6.00 MiB large (*",
            "*6.00 MiB  large (*",
            "*4.00 MiB  small (*",
        ]
    )


@pytest.mark.torch
def test_what_was_there_before_does_not_count(gpu, pytester: pytest.Pytester):
    result = run(
        pytester,
        """
        def test_leaves_much_behind():
            alloc(500 * MIB, "before")

        @pytest.mark.gpu_memory(max_peak="4 MiB", max_site={"before": "1 MiB"})
        def test_within():
            free(alloc(4 * MIB, "small"))
        """,
    )
    result.assert_outcomes(passed=2)


@pytest.mark.torch
def test_growth_is_that_of_a_pass(gpu, pytester: pytest.Pytester):
    result = run(
        pytester,
        """
        @pytest.mark.gpu_memory(max_growth="1 MiB/pass")
        def test_leaks():
            for _ in range(8):
                step(keep=3 * MIB)

        @pytest.mark.gpu_memory(max_growth="1 MiB/pass")
        def test_does_not():
            for _ in range(8):
                step(keep=0)
        """,
    )
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        ["*Left behind every pass: 3.00 MiB, +2.00 MiB over 1.00 MiB; most by 3.00 MiB keep (*"]
    )


@pytest.mark.torch
def test_the_fixture_answers_while_the_test_runs(gpu, pytester: pytest.Pytester):
    result = run(
        pytester,
        """
        def test_asks(gpu_memory):
            assert gpu_memory.peak == 0
            free(alloc(6 * MIB, "large"))
            assert gpu_memory.peak == 6 * MIB
            alloc(2 * MIB, "small")
            figures = gpu_memory.figures()
            assert figures.peak_allocated == 6 * MIB
            assert [one.site.function for one in figures.sites] == ["large"]

        @pytest.mark.gpu_memory(max_peak="2 MiB")
        def test_both(gpu_memory):
            alloc(2 * MIB, "small")
            assert gpu_memory.peak == 2 * MIB
        """,
    )
    result.assert_outcomes(passed=2)
    assert gpu.calls.count("stop") == 2


@pytest.mark.torch
def test_a_baseline_is_saved_and_then_kept(gpu, pytester: pytest.Pytester):
    source = """
        @pytest.mark.gpu_memory(baseline="memory.json", tolerance="2%")
        def test_it():
            free(alloc({size} * MIB, "large"))
    """
    run(pytester, source.format(size=8), "--save-gpu-memory-baselines").assert_outcomes(passed=1)
    assert (pytester.path / "memory.json").stat().st_size < 2000
    run(pytester, source.format(size=8)).assert_outcomes(passed=1)
    result = run(pytester, source.format(size=9))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*Peak allocated: 9.00 MiB*by the baseline; most by +1.00 MiB large (*"])


@pytest.mark.torch
def test_a_test_that_fails_by_itself_fails_as_it_did(gpu, pytester: pytest.Pytester):
    result = run(
        pytester,
        """
        @pytest.mark.gpu_memory(max_peak="1 MiB")
        def test_it():
            alloc(6 * MIB, "large")
            raise ValueError("its own")
        """,
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*ValueError: its own*"])
    result.stdout.no_fnmatch_line("*GPU memory*")


@pytest.mark.torch
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ('max_peek="1 MiB"', "max_peek"),
        ('"1 MiB"', "1 MiB"),
        ('max_peak="much"', "much"),
        ('baseline="nowhere.json"', "nowhere.json"),
    ],
)
def test_a_marker_that_is_wrong_is_no_pass(gpu, pytester: pytest.Pytester, arguments: str, words: str):
    result = run(
        pytester,
        f"""
        @pytest.mark.gpu_memory({arguments})
        def test_it():
            pass
        """,
    )
    assert result.ret != 0
    assert "passed" not in result.parseoutcomes()
    assert words in result.stdout.str() + result.stderr.str()


@pytest.mark.torch
def test_without_a_gpu_it_is_skipped_with_the_reason_before_any_fixture(gpu, pytester: pytest.Pytester):
    gpu.never = "no CUDA device is visible"
    result = run(
        pytester,
        """
        @pytest.fixture
        def model():
            raise RuntimeError("asks for a GPU")

        @pytest.mark.gpu_memory(max_peak="1 MiB")
        def test_marked(model):
            pass

        def test_asks(gpu_memory):
            pass

        def test_other():
            pass
        """,
        "-rs",
    )
    result.assert_outcomes(passed=1, skipped=2)
    result.stdout.fnmatch_lines(["*gpu_memory: no CUDA device is visible*"])


@pytest.mark.torch
def test_tests_that_do_not_ask_are_not_recorded(gpu, pytester: pytest.Pytester):
    run(pytester, "def test_it():\n    alloc(8 * MIB, 'large')\n").assert_outcomes(passed=1)
    assert gpu.calls == []


def test_other_peoples_sessions_load_nothing_heavy(tmp_path: Path):
    (tmp_path / "test_it.py").write_text(
        "import sys\n"
        "def test_it():\n"
        "    heavy = {'torch', 'numpy', 'matplotlib', 'click', 'rich', 'jinja2', 'oomscope.recording',"
        " 'oomscope.analysis', 'oomscope.testing.gpu_memory'}\n"
        "    assert not heavy & set(sys.modules)\n"
        "    assert 'oomscope.testing.pytest_plugin' in sys.modules\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", *ARGUMENTS, "-p", "no:hypothesispytest", "-p", "no:xdist", "."]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_without_torch_it_is_skipped(tmp_path: Path):
    (tmp_path / "torch.py").write_text("raise ImportError('none here')\n")
    (tmp_path / "test_it.py").write_text(
        "import pytest\n@pytest.mark.gpu_memory(max_peak='1 MiB')\ndef test_it():\n    pass\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-rs", *ARGUMENTS, "."]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "1 skipped" in done.stdout, done.stdout + done.stderr
    assert "torch is not installed" in done.stdout

"""What people install works: the wheel and the sdist carry the templates and the samples."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
NEEDED = (
    "rendering/report.schema.json",
    "py.typed",
    "sample_snapshots/oom_fragmentation.pickle.xz",
    "sample_snapshots/README.md",
)

pytestmark = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("build", "hatchling")), reason="build and hatchling are needed"
)


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the sdist, built from the checkout without a network."""
    target = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--sdist", "--outdir", str(target)]
    done = subprocess.run([*command, str(REPOSITORY)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return target


def test_the_wheel_carries_templates_samples_and_the_schema(dist: Path):
    names = zipfile.ZipFile(next(dist.glob("*.whl"))).namelist()
    assert {f"oomscope/{name}" for name in NEEDED} <= set(names)
    assert any(name.startswith("oomscope/templates/") and name.endswith(".html") for name in names)
    assert not any(name.startswith("tests/") for name in names)


def test_the_sdist_carries_all_that_a_packager_needs(dist: Path):
    with tarfile.open(next(dist.glob("*.tar.gz"))) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    assert {"README.md", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", "pyproject.toml", "Makefile"} <= names
    assert {"sample_snapshots/oom_fragmentation.pickle.xz", "oomscope/rendering/report.schema.json"} <= names
    assert any(name.startswith("templates/") for name in names)


def test_samples_are_small_enough_to_travel():
    assert sum(path.stat().st_size for path in (REPOSITORY / "sample_snapshots").iterdir()) <= 1 << 20


def test_the_installed_wheel_runs_the_demo_from_anywhere(dist: Path, tmp_path: Path):
    home = tmp_path / "venv"
    venv.create(home, with_pip=False)
    binaries = home / ("Scripts" if os.name == "nt" else "bin")
    python = binaries / ("python.exe" if os.name == "nt" else "python")
    ours = Path(_purelib(python))
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--no-deps", "--no-index"]
    subprocess.run([*pip, str(next(dist.glob("*.whl")))], capture_output=True, text=True, check=True)
    # The dependencies are those of the running environment; none of its .pth files is read, so not its oomscope either.
    (ours / "dependencies.pth").write_text(f"{_purelib(Path(sys.executable))}\n", encoding="utf-8")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    script = binaries / ("oomscope.exe" if os.name == "nt" else "oomscope")
    command = [str(script), "demo", "oom_fragmentation"]
    done = subprocess.run(command, cwd=elsewhere, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "The memory was there, in pieces" in done.stdout
    assert (elsewhere / "oom_fragmentation.html").stat().st_size > 10_000
    where = [str(python), "-c", "import oomscope; print(oomscope.__file__)"]
    found = subprocess.run(where, cwd=elsewhere, env=environment, capture_output=True, text=True, check=True)
    assert Path(found.stdout.strip()).is_relative_to(ours)


def _purelib(python: Path) -> str:
    command = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

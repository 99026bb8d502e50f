"""What people install works: wheel and sdist carry all they need, anywhere, and write nothing where they lie."""

from __future__ import annotations

import importlib.util
import os
import shutil
import stat
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
NEEDED = (
    "rendering/report.schema.json",
    "rendering/diff.schema.json",
    "rendering/check.schema.json",
    "rendering/ranks.schema.json",
    "rendering/triage.schema.json",
    "py.typed",
    "docs/snapshot-format.md",
    "reading/README.md",
    "sample_snapshots/oom_fragmentation.pickle.xz",
    "sample_snapshots/README.md",
)
ONLY_IN_GIT = (".ci/", ".github/", ".gitattributes", ".gitignore", ".pre-commit-config.yaml")
"""What serves work on the repository itself; a packager has no use for it."""

REQUESTED = "Out of memory · cuda:0 · 1.17 GiB"
"""How the demo begins."""

AWKWARD = "ein Häuschen"
"""A folder that breaks what is not quoted, and what is not read as UTF-8."""

pytestmark = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("build", "hatchling")), reason="build and hatchling are needed"
)


def run(command: list[str], cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `command` in `cwd`, where this checkout is not on the path."""
    kept = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "MAKEFLAGS", "MAKELEVEL")}
    done = subprocess.run(command, cwd=cwd, env=kept | environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and with the wheel that was built from it; made without a network."""
    target = tmp_path_factory.mktemp("dist")
    run([sys.executable, "-m", "build", "--no-isolation", "--outdir", str(target), str(REPOSITORY)], target)
    return target


@pytest.fixture(scope="module")
def unpacked(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist's own folder, unpacked at an awkward place."""
    folder = tmp_path_factory.mktemp("sources") / AWKWARD
    with tarfile.open(next(dist.glob("*.tar.gz"))) as archive:
        # The argument came with fixes of security to older releases of Python as well, but not to all of them.
        archive.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    return next(folder.iterdir())


def environment_at(home: Path) -> Path:
    """A fresh virtual environment that sees the running one's packages, but not its oomscope; its interpreter."""
    venv.create(home, with_pip=False)
    python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    # None of the .pth files there is read in turn, so an editable install is not found through it.
    (purelib(python) / "dependencies.pth").write_text(f"{purelib(Path(sys.executable))}\n", encoding="utf-8")
    return python


def purelib(python: Path) -> Path:
    command = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    return Path(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())


@pytest.fixture(scope="module", params=["*.whl", "*.tar.gz"], ids=["wheel", "sdist"])
def installed(request: pytest.FixtureRequest, dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a fresh environment in which the wheel, or the sdist, was installed; the place is awkward."""
    python = environment_at(tmp_path_factory.mktemp("installed") / AWKWARD)
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--no-deps", "--no-index"]
    run([*pip, "--no-build-isolation", str(next(dist.glob(request.param)))], python.parent)
    return python


def listed(folder: Path) -> Mapping[str, tuple[int, int]]:
    """Every file below `folder`, with its size and when it was written."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in files}


def tracked() -> list[str]:
    """The files of the repository as git knows them."""
    if not (REPOSITORY / ".git").exists() or shutil.which("git") is None:
        pytest.skip("this is no git checkout")
    names = run(["git", "-c", "core.quotepath=off", "ls-files"], REPOSITORY).stdout.splitlines()
    return [name for name in names if (REPOSITORY / name).exists()]


def test_the_wheel_carries_templates_samples_documents_and_the_schema(dist: Path):
    names = zipfile.ZipFile(next(dist.glob("*.whl"))).namelist()
    assert {f"oomscope/{name}" for name in NEEDED} <= set(names)
    assert any(name.startswith("oomscope/templates/") and name.endswith(".html") for name in names)
    assert not any(name.startswith("tests/") for name in names)


def test_the_wheel_carries_the_whole_package(dist: Path):
    names = set(zipfile.ZipFile(next(dist.glob("*.whl"))).namelist())
    assert {name for name in tracked() if name.startswith("oomscope/")} <= names


def test_the_sdist_carries_all_that_is_in_the_repository(unpacked: Path):
    names = {path.relative_to(unpacked).as_posix() for path in unpacked.rglob("*")}
    assert {name for name in tracked() if not name.startswith(ONLY_IN_GIT)} <= names


def test_the_sdist_carries_what_people_look_for(unpacked: Path):
    names = {path.name for path in unpacked.iterdir()}
    assert {"README.md", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "Makefile", "tests"} <= names


def test_whoever_builds_it_gets_the_same_bytes(dist: Path, unpacked: Path, tmp_path: Path):
    """From the sdist, elsewhere, at another time, by a user with other habits, in another language."""
    copy, target = tmp_path / "elsewhere", tmp_path / "dist"
    shutil.copytree(unpacked, copy)
    for number, path in enumerate(sorted(copy.rglob("*"))):
        os.utime(path, (1_000_000_000 + number, 1_000_000_000 + number))
    before = os.umask(0o077)
    try:
        command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(target), str(copy)]
        run(command, tmp_path, TZ="Asia/Tokyo", LC_ALL="C.UTF-8", PYTHONHASHSEED="7")
    finally:
        os.umask(before)
    assert {path.name for path in target.iterdir()} == {path.name for path in dist.iterdir()}
    for path in target.iterdir():
        assert path.read_bytes() == (dist / path.name).read_bytes(), f"{path.name} differs"


def test_samples_are_small_enough_to_travel():
    assert sum(path.stat().st_size for path in (REPOSITORY / "sample_snapshots").iterdir()) <= 1 << 20


def test_what_is_installed_runs_the_demo_from_anywhere(installed: Path, tmp_path: Path):
    script = installed.with_name("oomscope.exe" if os.name == "nt" else "oomscope")
    done = run([str(script), "demo", "oom_fragmentation"], tmp_path)
    assert REQUESTED in done.stdout
    assert (tmp_path / "oom_fragmentation.html").stat().st_size > 10_000
    where = run([str(installed), "-c", "import oomscope; print(oomscope.__file__)"], tmp_path)
    assert Path(where.stdout.strip()).is_relative_to(purelib(installed))


def test_what_is_installed_needs_no_folder_that_it_can_write_but_the_current_one(installed: Path, tmp_path: Path):
    package = purelib(installed) / "oomscope"
    before = listed(purelib(installed))
    folders = [package, *(path for path in package.rglob("*") if path.is_dir())]
    modes = {folder: folder.stat().st_mode for folder in folders}
    try:
        for folder, mode in modes.items():  # binds everyone but root, who is watched by the list of files
            folder.chmod(mode & ~(stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))
        # Nobody, not even root, can make a folder below a device.
        homeless = {
            "HOME": "/dev/null/home",
            "XDG_CACHE_HOME": "/dev/null/cache",
            "XDG_CONFIG_HOME": "/dev/null/config",
        }
        run([str(installed), "-m", "oomscope", "demo", "oom_fragmentation"], tmp_path, **homeless)
        run([str(installed), "-m", "oomscope", "summary", sample(package)], tmp_path, **homeless)
    finally:
        for folder, mode in modes.items():
            folder.chmod(mode)
    assert listed(purelib(installed)) == before
    assert [path.name for path in tmp_path.iterdir()] == ["oom_fragmentation.html"]


def sample(package: Path) -> str:
    return str(package / "sample_snapshots" / "oom_fragmentation.pickle.xz")


@pytest.mark.thorough
@pytest.mark.skipif(shutil.which("make") is None, reason="make is needed")
def test_make_works_at_an_awkward_place(unpacked: Path):
    """The targets of the Makefile, in the unpacked sdist, with an environment in which all is there already."""
    environment_at(unpacked / ".venv")
    for stamp in (".demo", ".test"):
        (unpacked / ".venv" / stamp).touch()
    assert REQUESTED in run(["make", "demo"], unpacked).stdout
    assert (unpacked / "oom_fragmentation.html").stat().st_size > 10_000
    chosen = "-p no:cacheprovider -n 0 tests/test_units.py tests/test_layers.py tests/reading/test_source.py"
    assert " passed" in run(["make", "test", f"ARGS={chosen}"], unpacked).stdout
    assert "tests collected" in run(["make", "test", "ARGS=-n 0 -q --collect-only"], unpacked).stdout

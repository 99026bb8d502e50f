"""A real Chromium, and reports for it to open."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from oomscope.analysis import Findings, analyze
from oomscope.reading import load
from oomscope.rendering import write_report
from tests.browser.pages import COMPARED
from tests.rendering.hostile import hostile_findings
from tests.rendering.many import many_sites_findings
from tests.samples import SAMPLES, sample_findings

PAGES = (*SAMPLES, "hostile", "many_sites", "two_devices", "leak_total_loss")

RECORDED = Path(__file__).resolve().parents[1] / "recording" / "fixtures"
"""Captures by oomscope itself, which name tensors and holders."""

NARROW, PHONE, WIDE, VAST = 360, 390, 1280, 3840


def findings_of(name: str) -> Findings:
    made = {"hostile": hostile_findings, "many_sites": many_sites_findings}
    if name in made:
        return made[name]()
    return sample_findings(name) if name in SAMPLES else analyze(load(RECORDED / f"{name}.pickle.xz"), whatif=False)


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The report of a sample, written once a session."""
    folder = tmp_path_factory.mktemp("reports")

    def made(name: str) -> Path:
        path = folder / f"{name}.html"
        return path if path.exists() else write_report(findings_of(name), path)

    return made


@pytest.fixture(scope="session")
def page(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A page of a comparison or of ranks, written once a session."""
    folder = tmp_path_factory.mktemp("pages")

    def made(name: str) -> Path:
        path = folder / f"{name}.html"
        if not path.exists():
            path.write_bytes(COMPARED[name]().encode("utf-8", "backslashreplace"))
        return path

    return made


AXE = Path(__file__).parent / "vendor" / "axe.min.js"


class Browser:
    """A headless Chromium that notes every request and every message of the console."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def axe(self) -> list[str]:
        """What axe finds wrong with the page that is open."""
        self.run(AXE.read_text(encoding="utf-8"))
        found: list[str] = self.driver.execute_async_script(
            "const done = arguments[0];"
            "axe.run(document, {resultTypes: ['violations']}).then(r => done(r.violations.map("
            "v => v.id + ': ' + v.nodes.length + ' × ' + v.nodes[0].html.slice(0, 160)"
            " + ' ' + v.nodes[0].failureSummary)))"
        )
        return found

    def open(
        self, path: Path, *, width: int = WIDE, scheme: str = "light", script: bool = True, media: str = ""
    ) -> None:
        command = self.driver.execute_cdp_cmd
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        command("Emulation.setDeviceMetricsOverride", size)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        command("Emulation.setEmulatedMedia", {"media": media, "features": features})
        command("Emulation.setScriptExecutionDisabled", {"value": not script})
        self.driver.get("about:blank")
        self.messages()
        self.driver.get_log("performance")
        self.driver.get(path.as_uri())
        if script:
            self._wait_until_ready()

    def _wait_until_ready(self) -> None:
        """What the page embeds of its timelines is unpacked while the rest of it is there already."""
        self.driver.execute_async_script(
            "const done = arguments[0], root = document.documentElement;"
            "const look = () => (root.dataset.ready ? done() : setTimeout(look, 5)); look()"
        )

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def find(self, selector: str) -> Any:
        return self.driver.find_element("css selector", selector)

    def all(self, selector: str) -> list[Any]:
        return self.driver.find_elements("css selector", selector)

    def messages(self) -> list[str]:
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Addresses asked for since the page was opened, without the page itself and data: URLs."""
        found = []
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                found.append(message["params"]["request"]["url"])
        return [url for url in found if not url.startswith(("data:", "about:")) and not url.endswith(".html")]


@contextmanager
def chromium() -> Iterator[Browser | None]:
    """A headless Chromium; None where it, its driver or selenium is missing."""
    try:
        from selenium import webdriver
    except ImportError:
        yield None
        return
    binary = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    chromedriver = shutil.which("chromedriver")
    if binary is None or chromedriver is None:
        yield None
        return
    options = webdriver.ChromeOptions()
    for flag in ("headless=new", "no-sandbox", "disable-gpu", "disable-background-networking", "disable-dev-shm-usage"):
        options.add_argument(f"--{flag}")
    options.binary_location = binary
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(chromedriver))
    try:
        yield Browser(driver)
    finally:
        driver.quit()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        if found is None:
            pytest.skip("no Chromium with its driver (apt-get install chromium chromium-driver), or no selenium")
        yield found

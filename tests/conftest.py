"""What all tests share."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes says more about the machine than about the code; `make bench` measures time.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What is asked of one capture, or of one round of programs, is asked in one process, which reads it once."""
    if not config.pluginmanager.hasplugin("xdist"):
        return
    for item in items:
        asked = getattr(item, "callspec", None)
        if asked is not None and (about := _about(asked.params)):
            item.add_marker(pytest.mark.xdist_group(about))


def _about(params: dict[str, Any]) -> str:
    """The round or the capture that a test is given; "" where it is given none."""
    one = params.get("one")
    return str(getattr(one, "name", "") or params.get("name", ""))

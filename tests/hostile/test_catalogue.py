"""Every attack of the catalogue ends in a report or in one clear sentence.

In CI the light ones, and one in ten of the documents; ``python -m tests.hostile.measure`` takes all, each in a process
with limits, and says what they cost.
"""

from __future__ import annotations

import io
import os
import pickle
import time
import zlib
from pathlib import Path

import pytest

from oomscope.errors import SnapshotError
from oomscope.reading import load
from tests.hostile.catalogue import attacks, documents
from tests.hostile.outcomes import outcome

ATTACKS = dict(attacks(heavy=False))
SHARE = int(os.environ.get("OOMSCOPE_DOCUMENTS", "10"))
"""One in so many documents is tried."""


@pytest.mark.parametrize("name", ATTACKS)
def test_attacks(name: str) -> None:
    start = time.process_time()
    outcome(ATTACKS[name], formats=("text",))
    assert time.process_time() - start < 5
    assert not Path("/tmp/oomscope-was-here").exists()


@pytest.mark.thorough
def test_documents() -> None:
    tried = 0
    for name, document in documents():
        if zlib.crc32(name.encode()) % SHARE == 0:
            try:
                data = pickle.dumps(document, 4)
            except UnicodeEncodeError:
                data = pickle.dumps(document, 0)
            outcome(data)
            tried += 1
    assert tried > 1800 // SHARE // 2


def test_limits_are_said_and_lifted() -> None:
    bomb = zlib.compressobj(9, zlib.DEFLATED, 31)
    data = bomb.compress(b"\x80\x04" + b"N0" * (40 << 20) + b"]\x94.") + bomb.flush()
    with pytest.raises(SnapshotError, match=r"unpacks to more than 64.0 MiB.*--no-limits"):
        load(io.BytesIO(data))
    assert load(io.BytesIO(data), limits=False).devices == ()

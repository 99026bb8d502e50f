"""A log is a stranger's text: nothing in it may break the terminal or the page, take long, or take much memory."""

from __future__ import annotations

import json
import time
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomscope.messages import FIGURES, KINDS, anchors, read_log
from oomscope.messages.anchors import MOST_PLACES
from oomscope.messages.families import ANCHORS, WORDINGS
from oomscope.messages.read import LONGEST_TEXT
from oomscope.rendering.explain import to_json, to_markdown, to_text
from tests.messages.comparing import read
from tests.messages.public import SETS, messages
from tests.messages.test_logs import MESSAGE


@pytest.mark.parametrize("form", [to_text, to_json, to_markdown])
def test_controls_in_a_message_never_reach_the_reader(form):
    hostile = MESSAGE.replace("Tried", "\x1b]0;title\x07\x1b[2J\u202eTried").replace("GPU 1", "GPU 1\x9b31m")
    log = read(f'  File "\x1b[31m`rm -rf`; $(x)\u202e.py", line 1, in <module>\n{hostile}\n')
    out = form(log)
    assert all(character.isprintable() or character == "\n" for character in out)
    assert "rm -rf" not in out


def test_markup_in_a_message_is_text():
    log = read("<img src=x onerror=alert(1)> frobnicator: out of memory ``` @everyone [a](http://b)\n")
    out = to_markdown(log)
    assert out.count("```") == 2


@given(st.binary(max_size=4000))
def test_any_bytes_are_a_log(content: bytes):
    log = read(content)
    assert all(message.kind in KINDS for message in log.messages)
    json.loads(to_json(log))


_PIECES = st.sampled_from(
    [
        *(anchor.decode() for anchor in ANCHORS),
        MESSAGE[:200],
        MESSAGE,
        "[rank3]: ",
        "\n",
        "9" * 400,
        "\\n",
        "(",
        "1e999 GiB",
    ]
)


@given(st.lists(_PIECES, max_size=30))
def test_any_mixture_of_pieces_of_messages_is_a_log(pieces: list[str]):
    for message in read(" ".join(pieces)).messages:
        assert len(message.text) <= LONGEST_TEXT
        assert all(figure.low <= figure.value <= figure.high for figure in message.reading.figures.values())
        assert set(message.reading.figures) <= set(FIGURES)


def test_every_message_has_an_anchor_and_every_wording_what_it_needs():
    """Else it would be found only by chance, beside another one."""
    for name in SETS:
        for one in messages(name):
            lowered = one["text"].lower()
            assert not one["kind"] or any(anchor.decode() in lowered for anchor in ANCHORS), one["source"]
    assert all(need and need == need.replace(" ", "").lower() for word in WORDINGS for need in word.needs.split("|"))
    assert all(anchor == anchor.lower() for anchor in ANCHORS)


@pytest.mark.parametrize(
    "line",
    [
        "out of memory " * 2_000,
        "out of memory" + "(" * 20_000,
        "CUDA error: out of memory: " * 500,
        "Process 1 has 1.00 GiB memory in use. " * 500 + "CUDA out of memory. Tried to allocate 1.00 GiB. ",
        "CUDA out of memory. Tried to allocate " + "9" * 50_000 + " GiB",
        "cudaMalloc " * 3_000 + "out of memory",
        "\\" * 50_000 + "n out of memory",
        "[" * 50_000 + "out of memory",
        "[1;2;" * 20_000 + "out of memory",
        "1234: " * 10_000 + "out of memory",
        "a" * 200_000 + " out of memory " + "b" * 200_000,
    ],
    ids=range(11),
)
def test_no_line_takes_long(line: str):
    started = time.process_time()
    read(f"{line}\n" * 5)
    assert time.process_time() - started < 5


def test_many_messages_are_bounded_and_counted():
    """The rest is counted, and said; the first of all is read in any case."""
    text = "".join(f"{MESSAGE.replace('3.25', f'3.{n % 90 + 10}')}\nstep {n}\n" for n in range(3 * MOST_PLACES))
    log = read(text)
    assert log.messages[0].line == 1
    assert 0 < len(log.messages) <= 2 * MOST_PLACES
    assert log.unread >= MOST_PLACES
    assert "were not read" in to_text(log)
    assert len(to_text(log).splitlines()) < 60


class Endless:
    """A stream of a gigabyte that is never there as a whole."""

    def __init__(self, size: int):
        self.left = size

    def read(self, size: int, /) -> bytes:
        size = min(size, self.left)
        self.left -= size
        return b"x" * size


def test_memory_does_not_grow_with_the_log():
    tracemalloc.start()
    try:
        log = read_log(Endless(200 << 20))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert log.size == 200 << 20
    assert peak < 64 << 20


def test_a_hundred_megabytes_take_seconds():
    """A bound far beyond what it takes; `tests.benchmarks.bench_explain` measures."""
    line = "2026-01-02 03:04:05 INFO epoch {} loss 0.1375 lr 1e-4 memory: 10237 allocated on device, eta 1:23:45\n"
    block = "".join(line.format(n) + (f"{MESSAGE}\n" if n % 2_000 == 0 else "") for n in range(100_000)).encode()
    log = block * (100_000_000 // len(block) + 1)
    started = time.process_time()
    assert read(log).messages
    assert time.process_time() - started < 20


@given(st.lists(_PIECES, max_size=60), st.integers(0, 400), st.integers(0, 400))
def test_both_ways_to_look_for_anchors_find_the_same(pieces: list[str], before: int, after: int):
    """Between any two places, also where an anchor lies across one of them."""
    text = " ".join(pieces).lower().encode()
    start, end = min(before, len(text)), max(0, len(text) - after)
    one, other = (sorted(search(text, start, end)) for search in (anchors._few, anchors._many))
    assert one == other
    assert {anchor for anchor, _ in anchors._few(text, 0, len(text))} == {one for one in ANCHORS if one in text}

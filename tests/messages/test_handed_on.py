"""What only repeats, serves or passes on is no failure of its own; what is shown is no finer than it is known."""

from __future__ import annotations

import pytest

from oomscope.rendering.explain import to_text
from oomscope.units import GIB, MIB, Rounded, format_size
from oomscope.wording import say
from tests.messages.comparing import read
from tests.messages.test_proofs import message, proven, worth
from tests.messages.test_surroundings import gaps, only

NPU = (
    "NPU out of memory. Tried to allocate 9.05 GiB (NPU 0; 60.95 GiB total capacity; 42.32 GiB already allocated;"
    " 42.32 GiB current active; 2.10 GiB free; 52.58 GiB reserved in total by PyTorch)"
)


def test_what_a_server_reports_of_its_engine_is_no_second_failure():
    log = (
        f"[Stage-0] ERROR 03-23 04:09:00 [stage.py:138] RuntimeError: Diffusion generation failed: {NPU}\n"
        "(APIServer pid=107) ERROR 03-23 04:09:00 [async.py:520] Stage 0 error on request x:"
        f" Diffusion generation failed: {NPU}\n"
    )
    assert len(read(log).messages) == 1


def test_ranks_that_fail_alike_are_several_failures():
    text = (
        "CUDA out of memory. Tried to allocate 9.05 GiB. GPU 0 has a total capacity of 60.95 GiB of which 2.10 GiB is"
        " free. Of the allocated memory 42.32 GiB is allocated by PyTorch, and 1.00 GiB is reserved by PyTorch but"
        " unallocated."
    )
    log = "".join(f"[rank{rank}]: torch.OutOfMemoryError: {text}\n" for rank in (0, 8))
    assert len(read(log).messages) == 2


def test_what_was_served_is_told_only_where_nothing_failed():
    served = "tcmalloc: large alloc 5175050240 bytes == 0x43ca2000 @ 0x7f4c\n"
    refused = "W bfc_allocator.cc:479] Allocator (GPU_0_bfc) ran out of memory trying to allocate 384.00MiB\n"
    assert proven(only(served)) == {"only_a_warning"}
    assert only(served + refused).kind == "tensorflow"


def test_devices_of_messages_that_say_the_same_are_all_named():
    old = "RuntimeError: CUDA out of memory. Tried to allocate {} GiB (GPU {}; 39.59 GiB total capacity; {} GiB {})\n"
    log = old.format("27.45", 1, "18.75", "already allocated; 19.56 GiB free")
    log += old.format("2.31", 0, "37.57", "already allocated; 997.19 MiB free")
    assert "devices in order: 1, 0," in " ".join(to_text(read(log)).split())


@pytest.mark.parametrize(
    ("count", "off_by", "shown"),
    [
        (round(0.67 * GIB), 16 * MIB, "0.67 GiB"),
        (round(5.3 * GIB), 54 * MIB, "5.3 GiB"),
        (120 * MIB, MIB // 2, "120 MiB"),
        (round(23.65 * GIB), 5368710, "23.65 GiB"),
        (0, 11 * MIB, "0.00 GiB"),
        (512, 0, "512 bytes"),
    ],
)
def test_a_size_is_shown_no_finer_than_it_is_known(count: int, off_by: int, shown: str):
    assert format_size(Rounded(count, off_by)) == shown


def test_who_holds_most_of_the_card_is_told_even_where_the_card_shows_room():
    held = message("2.00 MiB", total="39.59 GiB", free="3.19 MiB", allocated="98.78 MiB", unallocated="17.22 MiB")
    assert "39.47 GiB of the card's 39.59 GiB is held outside this allocator." in map(say, held.proves)
    assert "mostly_outside" not in proven(message("2.00 MiB", free="3.19 MiB"))


def test_the_rest_of_the_card_is_asked_about_where_it_alone_would_not_have_served():
    held = message("4.00 GiB", total="16.00 GiB", free="0 bytes", allocated="10.29 GiB", unallocated="3.03 GiB")
    assert {"whose_rest"} == {gap for gap in gaps(held) if gap.startswith("whose")}
    assert worth(held) == ["cannot_help"]


def test_php_has_a_limit_of_its_own():
    found = only("PHP Fatal error: Allowed memory size of 536870912 bytes exhausted (tried to allocate 72 bytes)\n")
    assert (found.kind, found.figure("requested").value, found.figure("allowed").value) == ("other", 72, 536870912)
    assert "This is PHP's own message, not PyTorch's." in map(say, found.proves)


def test_xla_wants_a_programs_temporaries_in_one_piece():
    found = only(
        "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 13771167248"
        " bytes.\nBufferAssignment OOM Debugging.\nBufferAssignment stats:\n  parameter allocation:  444.12MiB\n"
        "  preallocated temp allocation:   12.83GiB\n"
    )
    assert (proven(found), gaps(found)) == ({"jax_temporaries"}, ["which_buffers"])

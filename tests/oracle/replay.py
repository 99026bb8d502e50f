"""A slow and obvious replay: a dictionary of blocks, one entry at a time."""

from __future__ import annotations

from collections.abc import Iterator

from tests.oracle.toy import PENDING, USED, State, Toy


def replay(toy: Toy) -> Iterator[State]:
    """What is true before the first entry, then after each: by the entries and the real sizes of blocks."""
    blocks, reserved = dict(toy.before.blocks), toy.before.reserved
    yield _state(blocks, reserved)
    for entry, then in zip(toy.entries, toy.states, strict=True):
        action, address, size = entry["action"], entry.get("addr"), entry["size"]
        if action == "alloc":
            # An entry says what was asked for, not how large the block is.
            real, stack, _ = then.blocks[address]
            blocks[address] = real, stack, USED
        elif action == "free_requested":
            real, stack, _ = blocks[address]
            blocks[address] = real, stack, PENDING
        elif action == "free_completed":
            del blocks[address]
        elif action in ("segment_alloc", "segment_map"):
            reserved += size
        elif action in ("segment_free", "segment_unmap"):
            reserved -= size
        yield _state(blocks, reserved)


def _state(blocks: dict[int, tuple[int, int, str]], reserved: int) -> State:
    return State(
        allocated=sum(size for size, _, state in blocks.values() if state == USED),
        active=sum(size for size, _, _ in blocks.values()),
        reserved=reserved,
        blocks=dict(blocks),
    )

"""A process's own memory is never taken for another's, whatever numbers NVML gives in a container."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from oomscope.model.recorded_parsing import parse_context
from oomscope.recording import neighbours
from oomscope.recording.nvml import Nvml

GIB = 1 << 30
OWN = frozenset({7, 2461})
MARGIN = neighbours._MOST_BESIDE


def marks(*rows, reserved=10 * GIB, knows=False):
    found = [{"pid": pid, "bytes": used} for pid, used in rows]
    return [row["this"] for row in neighbours.mark_own(found, reserved, OWN, knows_numbers=knows)]


def test_outside_a_container_the_number_decides():
    assert marks((2461, 11 * GIB), (9, 11 * GIB), knows=True) == [True, False]
    assert marks((8, 11 * GIB), (9, 3 * GIB), knows=True) == [False, False]


def test_a_number_of_this_namespace_decides_in_a_container_too():
    assert marks((7, 11 * GIB), (9, 11 * GIB)) == [True, False]
    assert marks((7, None), (9, None)) == [True, False]


def test_a_number_that_happens_to_be_the_same_but_uses_less_than_is_reserved_is_another():
    assert marks((7, 3 * GIB), (40_000, 11 * GIB)) == [False, True]


def test_in_a_container_the_bytes_decide():
    assert marks((40_000, 11 * GIB), (40_001, 3 * GIB), (40_002, 90 * GIB)) == [True, False, False]


@pytest.mark.parametrize(
    ("used", "this"),
    [
        (10 * GIB - 1, False),
        (10 * GIB, True),
        (10 * GIB + MARGIN, True),
        (10 * GIB + MARGIN + 1, None),
    ],
)
def test_the_bytes_are_what_is_reserved_and_little_more(used, this):
    assert marks((40_000, used)) == [this]


def test_where_two_may_be_it_none_is_said_to_be_another():
    assert marks((40_000, 11 * GIB), (40_001, 12 * GIB), (40_002, GIB)) == [None, None, False]
    assert marks((40_000, None), (40_001, None)) == [None, None]
    assert marks((40_000, 11 * GIB), reserved=None) == [None]


def test_the_numbers_of_all_namespaces_in_sight_are_ones_own():
    status = "Name:\tpython\nNSpid:\t40000\t7\nNSpgid:\t1\n"
    assert neighbours.own_numbers(status) == {40_000, 7, os.getpid()}
    assert neighbours.own_numbers("") == {os.getpid()}


class Library:
    """As pynvml, in a container whose processes have numbers of the host."""

    def nvmlDeviceGetHandleByUUID(self, uuid):
        return uuid

    def nvmlDeviceGetComputeRunningProcesses(self, _handle):
        return [SimpleNamespace(pid=1 << 30, usedGpuMemory=11 * GIB), SimpleNamespace(pid=1, usedGpuMemory=GIB)]


@pytest.mark.parametrize("knows", [True, False])
def test_a_name_is_given_where_the_number_is_known(monkeypatch, knows):
    monkeypatch.setattr(neighbours, "sees_host_numbers", lambda: knows)
    nvml = Nvml()
    nvml._library = Library()
    own, other = nvml.processes("GPU-1", 10 * GIB)
    assert (own["this"], other["this"]) == (not knows, False)
    assert (own["name"] is not None) == (not knows)
    assert (other["name"] is not None) == knows


def others(processes, reserved):
    device = {"device": 0, "memory_stats": {"reserved_bytes.all.current": reserved}, "processes": processes}
    return [process.pid for process in parse_context({"devices": [device]}).device(0).other_processes()]


def test_readers_list_only_what_certainly_is_another_process():
    this = {"pid": 1, "bytes": 11 * GIB, "this": True}
    assert others([this, {"pid": 2, "bytes": 30 * GIB, "this": False}], 10 * GIB) == [2]
    assert others([{"pid": 1, "bytes": 11 * GIB, "this": None}, {"pid": 2, "bytes": GIB, "this": False}], 10 * GIB) == [
        2
    ]


def test_an_old_recording_in_a_container_does_not_blame_itself():
    wrong = [{"pid": 1, "bytes": 11 * GIB, "this": False}, {"pid": 2, "bytes": 10 * GIB - 1, "this": False}]
    assert others(wrong, 10 * GIB) == [2]

"""Where many files are read: in this process, in several, or by the workers of a scheduler elsewhere."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Executor, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import TypeVar

from oomscope.errors import RequestError

MOST_PROCESSES = 8
_FEW = 2
"""Files that are not worth a process each."""
_PATIENCE = "20s"

_Result = TypeVar("_Result")
Work = Callable[[str], _Result]


class LostWorkerError(Exception):
    """The process that read a file is gone, and has not said why."""


def run_all(
    work: Work[_Result], files: Sequence[str], *, scheduler: str | None = None, processes: int | None = None
) -> Iterator[tuple[int, _Result | Exception]]:
    """`work` for each of `files`, as they are done: the file's place, and what came of it.

    Args:
        work: a function of a module, so that another process finds it.
        files: what it is called with.
        scheduler: the address of a Dask scheduler; None is this machine.
        processes: how many on this machine; None is one a core, up to 8.

    Raises:
        RequestError: the scheduler cannot be used.
    """
    if scheduler is not None:
        with dask_executor(scheduler) as executor:
            yield from results(executor, work, files)
        return
    count = min(len(files), processes or min(os.cpu_count() or 1, MOST_PROCESSES))
    if count <= 1 or (processes is None and len(files) <= _FEW):
        for at, file in enumerate(files):
            yield at, work(file)
        return
    with _OwnProcesses() as own, ThreadPoolExecutor(count) as threads:
        yield from results(threads, lambda file: own.call(work, file), files)


def results(executor: Executor, work: Work[_Result], files: Sequence[str]) -> Iterator[tuple[int, _Result | Exception]]:
    """`work` for each of `files` by any executor; an error in the place of a result where it could not be had."""
    places = {executor.submit(work, file): at for at, file in enumerate(files)}
    try:
        for future in as_completed(list(places)):
            # Let go of it: what it holds is a result, of which there may be thousands.
            at = places.pop(future)
            try:
                yield at, future.result()
            except (Exception, CancelledError) as error:
                yield at, error if isinstance(error, Exception) else LostWorkerError("cancelled")
    finally:
        for future in places:
            future.cancel()


class _OwnProcesses:
    """A process for each thread that calls: if one is ended by the kernel, it is clear of which file."""

    def __init__(self) -> None:
        self._local = threading.local()
        self._pools: list[ProcessPoolExecutor] = []
        # Not forked: a process with threads, as numpy's libraries start, may not be.
        self._context = multiprocessing.get_context("spawn")

    def __enter__(self) -> _OwnProcesses:
        return self

    def __exit__(self, *_: object) -> None:
        for pool in self._pools:
            pool.shutdown(cancel_futures=True)

    def call(self, work: Work[_Result], file: str) -> _Result:
        """`work` in this thread's process."""
        pool = getattr(self._local, "pool", None)
        if pool is None:
            pool = self._local.pool = ProcessPoolExecutor(1, mp_context=self._context)
            self._pools.append(pool)
        try:
            return pool.submit(work, file).result()
        except BrokenProcessPool:
            self._local.pool = None
            raise LostWorkerError("the process that read it was ended, perhaps for want of main memory") from None


@contextmanager
def dask_executor(address: str) -> Iterator[Executor]:
    """The workers of a Dask scheduler as an executor.

    What a worker that goes away had to do is done by another. Each worker needs oomscope, and sees the same files.

    Raises:
        RequestError: Dask is not installed, nobody answers, or there is no worker.
    """
    try:
        import distributed
    except ImportError:
        raise RequestError("--scheduler needs Dask; pip install 'oomscope[dask]'") from None
    try:
        client = distributed.Client(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, TimeoutError, ValueError, TypeError) as error:
        words = f"{address}: no Dask scheduler answers there ({type(error).__name__}); is it running?"
        raise RequestError(words) from None
    with client:
        if not client.nthreads():
            raise RequestError(f"{address}: the scheduler has no workers; start some with: dask worker {address}")
        yield client.get_executor(pure=False)

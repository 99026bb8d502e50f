"""One stretch of recording: from entry to exit, with its limits on dumps and the files it wrote."""

from __future__ import annotations

import contextlib
import math
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from oomscope.recording import (
    announcing,
    backend,
    dump,
    exceptions,
    history,
    observer,
    peers,
    process,
    signals,
    writing,
)
from oomscope.recording.oom_dumps import OomDumps
from oomscope.recording.options import Options, plain
from oomscope.recording.other_backends import instead_of_cuda
from oomscope.recording.saying import say, say_once
from oomscope.recording.step_log import StepLog, now_us
from oomscope.recording.trackers import Trackers

backend.prefer(instead_of_cuda)
_dumping = threading.RLock()
_beginning = threading.RLock()
_sequence = 0


def next_sequence() -> int:
    """A number that no other dump of this process has."""
    global _sequence
    _sequence += 1
    return _sequence


class Session:
    """What one ``record`` block, or one call of a decorated function, does."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.files: list[Path] = []
        self.ooms = 0
        self._pid = os.getpid()
        self._backend: backend.Backend | None = None
        self._step_log: StepLog | None = None
        self._tracked: dict[str, Callable[[], Any]] = {}
        self._undo: list[Callable[[], None]] = []
        self._facts: dict[str, Any] = {}
        self._is_recording = self._has_history = False
        self._is_asked = False
        self._oom_dumps = OomDumps(options)
        self._latest: Path | None = None  # the dump of the last OOM, whoever made it
        self._undumped = 0  # OOMs since then
        self._request: dict[str, int] | None = None  # what the last of them asked for
        self._handled: int | None = None  # id of the exception that was dumped
        self._last_words_at = -math.inf  # when this rank's dump for the other ranks was made

    # Begin and end

    def enter(self) -> None:
        """Begin, as soon as CUDA is up. Whatever is in the way is said once, and the job goes on."""
        with _guarded("recording could not start"):
            found = _usable_backend(self.options)
            if found is None:
                return
            self._backend = found
            trackers = Trackers(self.options.series, self.options.output_dir, self.options.series_interval)
            self._step_log = StepLog(found, trackers if self.options.series else None)
            self._undo.append(self._step_log.close)
            observer.add(self)
            self._listen()
            with contextlib.suppress(AttributeError):
                self._undo.append(found.after_optimizer_steps(self._after_optimizer_step))
            begin_when_up(found)

    def _listen(self) -> None:
        asked = self.options.signal
        if "peers" in self.options.on:
            self._undo.append(peers.watch(self.options.peer_signals, _dump_for_peers, self.options.grace))
            asked = None if asked in self.options.peer_signals else asked
        self._undo.append(signals.install(asked, self.ask))

    def begin(self) -> None:
        """CUDA is up: record and observe, unless that is done. In whichever thread initialised CUDA."""
        if self._backend is None or self._is_recording:
            return
        reason = self._backend.why_not_now()
        if reason is not None:
            say_once("not now", reason)
            self._backend = None
            observer.remove(self)
            return
        self._backend.prepare()
        dump.prepare(self.options)
        if not self._backend.keeps_history():
            say_once("no history", self._backend.without_history())
            self._is_recording = True
            self._facts = {"history": None, "started_us": now_us(), "joined": False, "observer": False}
            return
        joined = history.join(self._backend, self.options)
        self._is_recording = self._has_history = True
        observed = observer.attach(self._backend)
        named = ("history", "max_entries", "stacks", "context")
        self._facts = {name: getattr(self.options, name) for name in named}
        self._facts |= {"started_us": now_us(), "joined": joined, "observer": observed}

    def leave(self, error: BaseException | None) -> None:
        """End: dump what is due, then stop the recording, for torch forgets it at once."""
        if os.getpid() != self._pid:
            return
        self.serve()
        if self._backend is not None and self._is_recording:
            with _guarded("the dump at the end failed"):
                self._dump_at_end(self._backend, error)
        for undo in self._undo:
            with _guarded("the recording's end went wrong"):
                undo()
        self._undo.clear()
        observer.remove(self)
        if self._backend is not None and self._has_history:
            with _guarded("the recording could not be stopped"):
                history.part(self._backend)
        self._is_recording = self._has_history = False
        self._backend = None

    # OOMs

    def hears_of(self, request: dict[str, int], place: int) -> bool:
        """Count an OOM; returns whether this session wants it dumped.

        Args:
            request: what was asked for.
            place: of the program that asked, a number.
        """
        devices = self.options.devices
        if devices is not None and request["device"] not in devices:
            return False
        self.ooms += 1
        self._undumped += 1
        self._request = request
        return "oom" in self.options.on and self._is_recording and self._oom_dumps.is_due(place)

    def dump_oom(self, request: dict[str, int], place: int) -> None:
        """Dump the OOM that the observer reports, of `place` in the program."""
        if not _dumping.acquire(blocking=False):
            return  # another thread is dumping: its snapshot shows this one's blocks too
        try:
            self._dump_an_oom("observer", request=request)
            self._oom_dumps.saw(place)
        finally:
            _dumping.release()

    def _dump_an_oom(self, captured_at: str, **more: Any) -> None:
        made = self._dump("oom", captured_at, **more)
        dropped = self._oom_dumps.add(made)
        for session in observer.active():
            session.learn(made.path)
        if dropped is not None:
            self.files.remove(dropped)
            say(f"{self.options.max_dumps} dumps of OOMs are kept: {dropped.name} made room")
        announcing.tell_oom(made, self.options)
        if self.options.report and made.path is not None:
            announcing.start_report(made.path)

    def learn(self, path: Path | None) -> None:
        """The last OOM was dumped, by this session or by one inside or around it."""
        self._latest = path
        self._undumped = 0

    def _dump_at_end(self, found: backend.Backend, error: BaseException | None) -> None:
        dumped = False
        if isinstance(error, Exception) and self._handled != id(error):
            for session in observer.active():
                session._handled = id(error)
            dumped = self._dump_for(error, found)
        if "exit" in self.options.on and not dumped:
            self._dump_late("exit", error if isinstance(error, Exception) else None)

    def _dump_for(self, error: Exception, found: backend.Backend) -> bool:
        """Dump because `error` leaves, where that is a reason; whether there is a dump of it."""
        if exceptions.is_oom(error, found):
            return self._end_with_oom(error)
        if self._undumped and "oom" in self.options.on:
            # Caught inside and given up on, with words that no longer say so.
            self._dump_late("oom", error)
        elif "peers" in self.options.on and exceptions.is_of_peers(error, found):
            self._dump_late("peers", error)
            _note_last_words()
        elif "exception" in self.options.on:
            self._dump_late("exception", error)
        else:
            return False
        return True

    def _end_with_oom(self, error: Exception) -> bool:
        worker = exceptions.worker_of(error)
        if worker is not None:
            say(f"the OOM was in {worker}, another process: no dump of this one would explain it")
            return False
        if self._latest is not None and not self._undumped and exceptions.is_from_allocator(error):
            writing.fill_message(self._latest, str(error))
        elif self.options.on & {"oom", "exception"}:
            self._dump_late("oom", error)
        if self._latest is not None and hasattr(error, "add_note"):
            error.add_note(f"oomscope: {self._latest}")
        return self._latest is not None

    def _dump_late(self, reason: str, error: BaseException | None) -> None:
        with _dumping, observer.undisturbed():
            captured_at = "call" if error is None else "except"
            if reason == "oom":
                self._dump_an_oom(captured_at, error=error, request=self._request if self._undumped else None)
            else:
                made = self._dump(reason, captured_at, error=error)
                dump.tell_problems(made)
                announcing.tell_file(made)

    def dump_for_peers(self) -> None:
        """Dump because this rank is being ended. If another thread is making a dump, that one is enough.

        So is the one that its collective's failure has led to: the launcher's signal follows that.
        """
        if _dumping.acquire(blocking=False):
            try:
                if monotonic() - self._last_words_at < self.options.grace:
                    return
                with observer.undisturbed():
                    made = self._dump("peers", "call")
                    _note_last_words()
                    dump.tell_problems(made)
                    announcing.tell_file(made)
            finally:
                _dumping.release()
        elif _dumping.acquire(timeout=self.options.grace):
            _dumping.release()

    # What the program asks for

    def snapshot(self, path: str | os.PathLike[str] | None = None, reason: str = "request") -> Path | None:
        """A dump at will; returns where it went, None where there is nothing to dump."""
        if self._backend is None or not self._backend.is_up():
            return None
        with _dumping, observer.undisturbed():
            made = self._dump(reason, "call", target=None if path is None else Path(path))
            dump.tell_problems(made)
            return made.path

    def ask(self) -> None:
        """Ask for a snapshot at the next safe point: now, unless a dump is underway in this very thread."""
        self._is_asked = True
        self.serve()

    def serve(self) -> None:
        """Make the snapshot that was asked for, if one was and nothing of the kind is underway."""
        if not self._is_asked:
            return
        with observer.undisturbed() as is_free, _guarded("the snapshot that was asked for failed"):
            if is_free:
                self._is_asked = False
                path = self.snapshot(reason="signal")
                say(f"snapshot: {path}" if path else "there is nothing to take a snapshot of yet")

    def track(self, objects: dict[str, Any]) -> None:
        """Remember how the program calls these objects, without keeping them alive."""
        for name, item in objects.items():
            try:
                self._tracked[name] = weakref.ref(item)
            except TypeError:
                say_once(f"track {name}", f"{name} is a {type(item).__name__}, which cannot be tracked")

    def _ask_for_more(self) -> None:
        if self._backend is not None and self._has_history:
            with _guarded("torch could not be asked for more"):
                history.ask_for_more(self._backend)

    @property
    def step_log(self) -> StepLog | None:
        """Where steps and marks are noted; None where nothing is recorded."""
        self._ask_for_more()
        self.serve()
        return self._step_log

    def _after_optimizer_step(self, *_: Any) -> None:
        if self._backend is None or self._step_log is None or self._backend.is_compiling():
            return
        with _guarded("a step could not be noted"):
            self._step_log.optimizer_stepped()
        self._ask_for_more()
        self.serve()

    # Dumping

    def _dump(self, reason: str, captured_at: str, *, target: Path | None = None, **more: Any) -> dump.Dump:
        assert self._backend is not None
        local_rank = process.local_rank()
        if self.options.stagger and local_rank and reason != "peers":
            sleep(self.options.stagger * local_rank)
        if target is None:
            name = writing.file_name(self.options.filename, reason, next_sequence())
            target = self.options.output_dir / name
        tracked = {name: item for name, ref in self._tracked.items() if (item := ref()) is not None}
        job = dump.Job(reason, captured_at, target, tracked=tracked, own=self._own_facts(), **more)
        options = self.options
        if reason == "peers":
            options = replace(options, walk_budget=min(options.walk_budget, options.grace / 4))
        made = dump.make(job, options, self._backend)
        if made.path is not None:
            self.files.append(made.path)
        return made

    def _own_facts(self) -> dict[str, Any]:
        rows = self._step_log.rows() if self._step_log is not None else {}
        asked = [] if self._backend is None else self._backend.asked(self.options)
        facts = {**self._facts, "ooms": self.ooms, "asked": [] if self._facts.get("joined") else asked}
        return {"recording": facts, **rows, "metadata": plain(self.options.metadata)}


@contextlib.contextmanager
def _guarded(words: str) -> Iterator[None]:
    """The job goes on as it would have, whatever happens inside."""
    try:
        yield
    except Exception as problem:
        say(f"{words}: {type(problem).__name__}: {problem}")


def _usable_backend(options: Options) -> backend.Backend | None:
    """torch, if this rank is to record and there can be something to record; says what it cannot do."""
    if options.ranks is not None and (process.rank() or 0) not in options.ranks:
        return None
    found = backend.current()
    reason = "torch is not installed; pip install 'oomscope[record]'" if found is None else found.why_never()
    if reason is not None:
        say_once("never", f"nothing is recorded: {reason}")
        return None
    unwritable = writing.why_not_writable(options.output_dir)
    if unwritable is not None:
        say_once(unwritable, f"dumps cannot be written: {unwritable}")
    return found


def _dump_for_peers() -> None:
    """The innermost session that wants it dumps."""
    wanting = [session for session in observer.active() if "peers" in session.options.on and session._is_recording]
    if wanting:
        with _guarded("the dump for the other ranks failed"):
            wanting[-1].dump_for_peers()


def _note_last_words() -> None:
    for session in observer.active():
        session._last_words_at = monotonic()


_waiting_for: Any = None


def begin_when_up(found: backend.Backend) -> None:
    """Begin every session once CUDA is up. torch keeps what waits for that, so only one thing ever waits."""
    global _waiting_for
    if found.is_up():
        _begin_all()
    elif _waiting_for is not found:
        _waiting_for = found
        found.when_up(_begin_all)


def _begin_all() -> None:
    with _beginning:
        for session in observer.active():
            with _guarded("recording could not start"):
                session.begin()


def _after_fork() -> None:
    global _beginning, _dumping, _waiting_for
    _beginning, _dumping = threading.RLock(), threading.RLock()
    _waiting_for = None
    history.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)

"""Jobs of a cluster made from real captures: the same mistake on other machines, in other releases, at other sizes.

What varies is what varies between two people who make one mistake: lines moved (more was written above them), files
renamed, other folders, another Python, another release of the libraries, tensors and card some times as large, a
shorter ring, another day, host and job. Nothing of what the analysis looks for is added.
"""

from __future__ import annotations

import io
import lzma
import pickle
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from oomscope.model import Snapshot
from oomscope.reading import load

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = {"samples": ROOT / "sample_snapshots", "captures": ROOT / "tests" / "captures"}

KINDS = {
    "samples/oom_activations": 11,
    "samples/oom_cuda_graphs": 8,
    "samples/oom_fragmentation": 9,
    "samples/oom_kept_exception": 12,
    "samples/oom_leak_in_validation": 3,
    "samples/oom_leak_total_loss": 8,
    "samples/oom_optimizer_step": 9,
    "samples/oom_thread_pool": 10,
    "captures/big_vocab": 12,
    "captures/oversized": 8,
    "captures/side_stream": 6,
    "captures/eval_grad": 4,
}
"""Of a hundred jobs, how many make which mistake."""
OTHER_KINDS = (
    "samples/oom_backward", "captures/adam_first", "captures/duplicate", "captures/kv_cat", "captures/kv_prealloc",
    "captures/naive_attention", "captures/teacher_student", "captures/convs_multiscale", "captures/eval_collect",
    "captures/hf_llama", "captures/checkpointed", "captures/retry_caught",
)  # fmt: skip
"""On which nothing was tuned."""

_LIBRARY = re.compile(r".*/(?:site|dist)-packages/|.*/lib/python3\.\d+/")
_BYTES = frozenset({
    "address", "addr", "total_size", "allocated_size", "active_size", "requested_size", "size", "device_free",
    "alloc_size", "limit_or_total", "total", "free", "cap", "bytes", "retained", "peak_allocated", "peak_reserved",
    "allocated", "reserved", "left_out_bytes",
})  # fmt: skip
_TIMES = frozenset({"time_us", "begin_us", "end_us", "started_us"})


def job(kind: str, number: int) -> Snapshot:
    """Job `number` that makes this mistake; number 0 is the capture as it is."""
    folder, _, name = kind.partition("/")
    payload = pickle.loads(lzma.decompress((FOLDERS[folder] / f"{name}.pickle.xz").read_bytes()))
    if number:
        _vary(payload, random.Random(f"{kind} {number}"))
    return load(io.BytesIO(pickle.dumps(payload)))


def _vary(payload: dict[str, Any], chance: random.Random) -> None:
    _shorten(payload, chance.choice((0.0, 0.0, 0.05, 0.12)))
    _Edit(chance).apply(payload)


def _shorten(payload: dict[str, Any], share: float) -> None:
    """Drop the oldest entries, as a smaller ring does."""
    payload["device_traces"] = [trace[int(share * len(trace)) :] for trace in payload["device_traces"]]


class _Edit:
    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._root = f"/home/{chance.choice(('anna', 'ben', 'chen'))}/{chance.choice(('exp', 'runs/a', 'src'))}"
        self._python = f"/opt/{chance.choice(('conda', 'venv'))}/lib/python3.{chance.randint(9, 13)}/"
        self._factor = chance.choice((1, 2, 3, 5))
        self._days = chance.randint(0, 60)
        self._files: dict[str, tuple[str, list[tuple[int, int]]]] = {}

    def apply(self, payload: dict[str, Any]) -> None:
        done: set[int] = set()
        for item in _mappings(payload):
            if id(item) in done:
                continue
            done.add(id(item))
            self._move(item)
            self._scale(item)
        process = payload.get("oomscope", {}).get("process")
        if process:
            process |= {"host": f"node{self._chance.randint(0, 99)}", "pid": self._chance.randint(2, 1 << 15)}
            process["environment"] = {**process["environment"], "SLURM_JOB_ID": str(self._chance.randint(1, 10**6))}

    def _move(self, item: dict[str, Any]) -> None:
        if not isinstance(item.get("filename"), str) or "line" not in item:
            return
        file, line = item["filename"], item["line"]
        name, shifts = self._files.setdefault(file, self._moved(file))
        item["filename"] = name
        item["line"] = line + sum(by for above, by in shifts if line > above)
        if "first" in item:  # an excerpt of the source
            item["first"] += item["line"] - line

    def _moved(self, file: str) -> tuple[str, list[tuple[int, int]]]:
        shifts = [(self._chance.randint(0, 60), self._chance.randint(0, 30)) for _ in range(3)]
        if not file.startswith("/"):
            return file, []  # C++, or code that has no file
        if found := _LIBRARY.match(file):
            packages = "site-packages/" if "-packages/" in found[0] else ""
            return f"{self._python}{packages}{file[found.end() :]}", shifts
        stem = Path(file).stem
        if self._chance.random() < 0.4:
            stem = self._chance.choice((f"{stem}_v2", f"my_{stem}", "finetune_" + stem, f"{stem}_old"))
        return f"{self._root}/{stem}{Path(file).suffix}", shifts

    def _scale(self, item: dict[str, Any]) -> None:
        for key, value in item.items():
            if key in _BYTES or (isinstance(key, str) and "_bytes." in key):
                item[key] = self._times(value)
            elif key in _TIMES and isinstance(value, int):
                item[key] = value + self._days * 86_400_000_000

    def _times(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._times(one) if isinstance(one, int) else one for one in value]
        return value * self._factor if isinstance(value, int) and not isinstance(value, bool) else value


def _mappings(item: Any) -> Iterator[dict[str, Any]]:
    if isinstance(item, dict):
        yield item
        for value in item.values():
            yield from _mappings(value)
    elif isinstance(item, (list, tuple)):
        for value in item:
            yield from _mappings(value)

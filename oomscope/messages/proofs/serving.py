"""What an engine's own check of its budget proves."""

from __future__ import annotations

from oomscope.messages.families.serving import FIT
from oomscope.messages.proofs.judgement import Judgement
from oomscope.messages.records import OomMessage
from oomscope.model.note import Note, note


def judge(message: OomMessage) -> Judgement:
    """What the figures of `message` prove."""
    judgement = Judgement()
    by_wording = {
        "vllm.startup": _startup,
        "vllm.startup_host": _startup_on_host,
        "vllm.kv_cache": _cache,
        "vllm.length": _length,
        "cache.tokens": _tokens,
        "vllm.no_blocks": _no_room,
        "ollama.system": _system,
        "ollama.layers": _reckoned,
        "engine.estimate": _reckoned,
        "tgi.prefill": _warm_up,
        FIT: _reckoned,
    }
    judge_one = by_wording.get(message.reading.wording)
    if judge_one is not None:
        judge_one(message, judgement)
    else:
        judgement.proves.append(_budget(message))
    if not judgement.cannot_tell:
        judgement.cannot_tell.append(note("message_gaps.budget"))
    return judgement


def _budget(message: OomMessage) -> Note:
    """That the engine's own check refused, and what it compared, where both are printed."""
    wanted, left = message.figure("requested"), message.figure("free")
    if wanted is not None and left is not None and wanted.exceeds(left):
        return note("message_proofs.budget_sized", wanted=wanted.value, left=left.value)
    return note("message_proofs.budget")


def _warm_up(message: OomMessage, judgement: Judgement) -> None:
    """TGI runs a batch of that many tokens, and says so of whatever fails in it."""
    del message
    judgement.proves.append(note("message_proofs.warm_up"))
    judgement.cannot_tell.append(note("message_gaps.driver_or_engine"))


def _startup(message: OomMessage, judgement: Judgement) -> None:
    _compared_at_start(message, judgement, "message_proofs.startup", "message_advice.utilization")
    judgement.cannot_tell.append(note("message_gaps.who_on_card"))


def _startup_on_host(message: OomMessage, judgement: Judgement) -> None:
    """On processors: a node is one of the machine's memory, and the setting is named after a card all the same."""
    _compared_at_start(message, judgement, "message_proofs.startup_host", "message_advice.utilization_host")
    judgement.cannot_tell.append(note("message_gaps.host"))


def _compared_at_start(message: OomMessage, judgement: Judgement, proof: str, advice: str) -> None:
    total, free, wanted = (message.figure(name) for name in ("total", "free", "requested"))
    if total is None or free is None or wanted is None:
        return
    used = total - free
    if used.low > 0:
        judgement.proves.append(note(proof, used=used.value, total=total.value, wanted=wanted.value))
    judgement.advice.append(note(advice, **_share(free.low, total.high)))


def _share(free: int, total: int) -> dict[str, str]:
    """The largest utilization with two digits that is certainly below the free share."""
    return {"share": f"{max(0, free * 100 // total) / 100:.2f}"}


def _cache(message: OomMessage, judgement: Judgement) -> None:
    needed, left = message.figure("requested"), message.figure("free")
    length, fits = message.reading.values.get("length"), message.reading.values.get("fits")
    if needed is None or left is None:
        return
    judgement.proves.append(
        note("message_proofs.kv_cache", needed=needed.value, left=left.value, length=int(str(length)[:12]))
    )
    if fits:
        judgement.advice.append(note("message_advice.shorter", fits=int(str(fits)[:12])))
    judgement.advice.append(note("message_advice.more_cache", missing=(needed - left).value))
    judgement.cannot_tell.append(note("message_gaps.rest_of_card"))


def _length(message: OomMessage, judgement: Judgement) -> None:
    values = message.reading.values
    length, fits = int(str(values["length"])[:12]), int(str(values["fits"])[:12])
    judgement.proves.append(note("message_proofs.length", length=length, fits=fits))
    judgement.advice.append(note("message_advice.shorter", fits=fits))
    judgement.cannot_tell.append(note("message_gaps.rest_of_card"))


def _tokens(message: OomMessage, judgement: Judgement) -> None:
    left, tokens = (int(str(message.reading.values[name])[:12]) for name in ("left", "tokens"))
    judgement.proves.append(note("message_proofs.cache_tokens", left=left, tokens=tokens))


def _no_room(_: OomMessage, judgement: Judgement) -> None:
    judgement.proves.append(note("message_proofs.no_blocks"))
    judgement.advice.append(note("message_advice.raise_utilization"))
    judgement.cannot_tell.append(note("message_gaps.rest_of_card"))


def _reckoned(_: OomMessage, judgement: Judgement) -> None:
    """An estimate before anything was loaded; engines go on without the card, or with less of it."""
    judgement.proves.append(note("message_proofs.reckoned"))


def _system(message: OomMessage, judgement: Judgement) -> None:
    judgement.cannot_tell.append(note("message_gaps.host"))
    needed, left = message.figure("requested"), message.figure("free")
    if needed is None or left is None:
        judgement.proves.append(note("message_proofs.budget"))
    elif needed.value > left.value:
        judgement.proves.append(note("message_proofs.system_memory", needed=needed.value, left=left.value))

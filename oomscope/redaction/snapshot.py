"""A copy of a snapshot without what is private, for sharing.

The copy is made before the analysis, so that every sentence and every format is written from it and nothing has to be
searched for afterwards. What stays: sizes, times, addresses, the allocator's settings, versions of software, the
model of the card, and the names of well-known packages with the files and functions in them. The same name gets the
same alias everywhere.
"""

from __future__ import annotations

from dataclasses import replace

from oomscope.model import Annotation, Device, Frame, Snapshot, StackTable, Trace
from oomscope.redaction.aliases import Aliases
from oomscope.redaction.context import redact_context
from oomscope.redaction.settings import redact_settings


def redact(snapshot: Snapshot, aliases: Aliases | None = None) -> tuple[Snapshot, dict[str, str]]:
    """A copy of `snapshot` with aliases for whatever tells of people, machines and programs.

    Args:
        snapshot: the snapshot.
        aliases: those of another one that this is shown with, where the same name is to have the same alias.

    Returns:
        The copy, and what each alias stands for.
    """
    aliases = Aliases() if aliases is None else aliases
    stacks = _stacks(snapshot.stacks, aliases)
    copy = replace(
        snapshot,
        stacks=stacks,
        devices=tuple(_device(device, aliases) for device in snapshot.devices),
        host=_device(snapshot.host, aliases) if snapshot.host else None,
        annotations=tuple(_annotation(annotation, aliases) for annotation in snapshot.annotations),
        context=redact_context(snapshot.context, aliases) if snapshot.context is not None else None,
        settings=redact_settings(snapshot.settings, aliases) if snapshot.settings is not None else None,
        notes=tuple(aliases.note(note) for note in snapshot.notes),
    )
    return copy, aliases.key()


def _stacks(stacks: StackTable, aliases: Aliases) -> StackTable:
    frames = [
        Frame(*aliases.code(frame.filename, frame.name, frame.line), _extra(frame, aliases)) for frame in stacks.frames
    ]
    return StackTable(frames, stacks.offsets, stacks.members)


def _extra(frame: Frame, aliases: Aliases) -> tuple[tuple[str, str], ...]:
    """Of what torch adds to a frame, the lines that generated code was made from, without their source."""
    return tuple(
        (key, "\n".join(filter(None, map(aliases.traceback_line, text.splitlines()))))
        for key, text in frame.extra
        if key == "fx_original_trace"
    )


def _device(device: Device, aliases: Aliases) -> Device:
    trace = device.trace
    copy: Trace = replace(
        trace,
        texts=tuple(aliases.text(text) for text in trace.texts),
        forward_stacks={
            entry: tuple(filter(None, map(aliases.traceback_line, lines)))
            for entry, lines in trace.forward_stacks.items()
        },
    )
    return replace(device, trace=copy)


def _annotation(annotation: Annotation, aliases: Aliases) -> Annotation:
    stage = annotation.stage if annotation.stage in ("START", "END") else aliases.alias("text", annotation.stage)
    return annotation._replace(stage=stage, name=aliases.range_name(annotation.name))

"""What a snapshot is: numpy columns and small frozen records. Knows no file, no HTML and no torch."""

from oomscope.model.actions import Action
from oomscope.model.arrays import BoolArray, IntArray, UInt8Array, address_text
from oomscope.model.cut import Cut
from oomscope.model.frames import FrameKind, frame_kind, package_path, standard_path
from oomscope.model.layout import Blocks, BlockState, Layout, Segments
from oomscope.model.note import Note, note
from oomscope.model.recorded import RecordedContext
from oomscope.model.recorded_machine import RecordedDevice
from oomscope.model.snapshot import Annotation, Device, PoolId, Snapshot
from oomscope.model.stacks import NO_STACK, Frame, StackTable
from oomscope.model.trace import Trace
from oomscope.model.window import WindowPart

__all__ = [
    "NO_STACK",
    "Action",
    "Annotation",
    "BlockState",
    "Blocks",
    "BoolArray",
    "Cut",
    "Device",
    "Frame",
    "FrameKind",
    "IntArray",
    "Layout",
    "Note",
    "PoolId",
    "RecordedContext",
    "RecordedDevice",
    "Segments",
    "Snapshot",
    "StackTable",
    "Trace",
    "UInt8Array",
    "WindowPart",
    "address_text",
    "frame_kind",
    "note",
    "package_path",
    "standard_path",
]

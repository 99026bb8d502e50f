"""The one family of errors that oomscope raises on purpose.

Whatever is wrong with a file or a request becomes one of these where it is first understood, with a message of
one sentence that says what is wrong, where, and what to do. The command line prints that sentence and nothing else.
"""

from __future__ import annotations


class OomscopeError(Exception):
    """Something a user can act on: the message is a sentence for them, not for us."""


class SnapshotError(OomscopeError):
    """The file is not a snapshot that can be read."""


class UnsafePickleError(SnapshotError):
    """The file asked to run code while it was read; nothing was run."""


class RequestError(OomscopeError):
    """The file is fine, but what was asked of it cannot be served."""


class OutputError(OomscopeError):
    """The result could not be written where it was asked for."""


class ReplayError(OomscopeError):
    """The model of the allocator does not reproduce this recording, so it must not answer for it."""

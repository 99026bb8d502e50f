"""What long work is doing."""

from __future__ import annotations

STAGES = {
    "reading": "Reading",
    "redacting": "Redacting",
    "history": "Following the allocations",
    "preparing": "Replaying the recorded setting",
    "replaying": "Replaying",
    "findings": "Explaining",
    "rendering": "Writing the report",
    "writing": "Writing",
}

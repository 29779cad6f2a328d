"""Files that come from anywhere, read no further than they may be long."""

from __future__ import annotations

from pathlib import Path


def text_of(path: Path, most: int) -> str | None:
    """The text of a file of at most `most` bytes, None for a longer one; also of a device, whose size nobody knows before.
    Raises OSError, and ValueError for what is no UTF-8."""
    with path.open("rb") as file:
        read = file.read(most + 1)
    return read.decode("utf-8") if len(read) <= most else None

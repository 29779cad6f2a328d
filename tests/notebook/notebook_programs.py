"""Notebooks as lists of cells. Under `%%jit` each leaves what it leaves without."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np


class Box:
    """An object of the user's."""

    def __init__(self, w: Any) -> None:
        self.w = w

    def grow(self, by: Any) -> Any:
        self.w = self.w * by
        return self.w


def namespace() -> dict[str, Any]:
    x = np.arange(12.0).reshape(3, 4)
    return {
        "np": np, "x": x, "y": x[1:], "z": x, "v": np.arange(5.0), "i8": np.arange(4), "k": 3, "r": 0.5, "s": "text",
        "params": [np.ones((2, 2)), np.zeros(2)], "state": {"w": np.arange(3.0), "step": 1},
        "box": Box(np.arange(3.0)), "Box": Box,
    }  # fmt: skip


def read(path: Path) -> dict[str, list[str]]:
    """Notebooks of a text file: `=== name` above each, `---` between cells."""
    books = path.read_text(encoding="utf-8").split("=== ")[1:]
    return {book.split("\n", 1)[0]: book.split("\n", 1)[1].rstrip("\n").split("\n---\n") for book in books}


NOTEBOOKS = read(Path(__file__).with_name("notebooks.txt"))

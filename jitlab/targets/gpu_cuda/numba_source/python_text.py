"""PythonText: a Python function, written line by line, each line with the operations it came from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from jitlab.ir import UNKNOWN, Origins
from jitlab.targets.llvm.function_text import FunctionText

INDENT = "    "


class PythonText(FunctionText):
    """The lines of a function's body. What is computed has a name of its own, `v0` and on."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.lines: list[tuple[str, Origins]] = []
        self.depth = 1
        self.at = UNKNOWN  # where what is written now comes from

    def instr(self, text: str) -> str:
        name = f"v{self._counter}"
        self._counter += 1
        self.emit(f"{name} = {text}")
        return name

    def emit(self, text: str) -> None:
        self.lines.append((INDENT * self.depth + text, self.at))

    @contextmanager
    def inside(self, head: str) -> Iterator[None]:
        """What is written inside stands in a block below `head`."""
        self.emit(head)
        self.depth += 1
        count = len(self.lines)
        yield
        if len(self.lines) == count:
            self.emit("pass")
        self.depth -= 1

    @contextmanager
    def of(self, origins: Origins) -> Iterator[None]:
        """What is written inside came from these operations; from those around where there are none."""
        before = self.at
        self.at = origins or before
        yield
        self.at = before

"""Room on Python's stack for deep expressions: a sum of 500 terms, as programs write them, is a tree 500 levels deep.

Python compiles it; what walks the tree in Python needs several frames a level.
"""

from __future__ import annotations

import ast
import sys
from typing import Self
from weakref import WeakSet

from jitlab.support import locks
from jitlab.support.trees import children

#: Frames that copying, converting and compiling take for each level, and levels that always have room.
FRAMES, ALWAYS = 8, 60


class room_for:  # noqa: N801 - it is written as a function
    """While it is open, a walk through the trees does not reach Python's limit of recursion. `needed`: what another one for
    the same trees has found."""

    def __init__(self, *trees: ast.AST, needed: int = 0) -> None:
        deep = max((_depth(tree) for tree in trees), default=0)
        self.needed = needed if deep <= ALWAYS else FRAMES * deep

    def __enter__(self) -> Self:
        if self.needed:
            with locks.Released(_lock), _lock:
                _open.add(self)
                _set_limit()
        return self

    def __exit__(self, *_: object) -> None:
        if self.needed:
            with locks.Released(_lock), _lock:
                _open.discard(self)
                _set_limit()


def _set_limit() -> None:
    """The program's own limit, and what the deepest walk under way needs."""
    global _added
    own = sys.getrecursionlimit() - _added
    wanted = max((room.needed for room in list(_open)), default=0)
    _added = wanted  # no interrupt comes between the two
    sys.setrecursionlimit(own + wanted)


def _depth(tree: ast.AST) -> int:
    """Levels of a tree, with that of contexts and operators."""
    deepest, level = 1, [tree]
    while level:
        deepest += 1
        level = [child for node in level for child in children(node)]
    return deepest


_open: WeakSet[room_for] = WeakSet()  # one that an interrupt left open is gone when the next one is opened
_added = 0  # to the program's own limit
_lock = locks.shared("room")

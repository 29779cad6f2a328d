"""Room on Python's stack for deep expressions: a sum of 500 terms, as programs write them, is a tree 500 levels deep.

Python compiles it; what walks the tree in Python needs several frames a level.
"""

from __future__ import annotations

import ast
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

#: Frames that copying, converting and compiling take for each level, and levels that always have room.
FRAMES, ALWAYS = 8, 60


@contextmanager
def room_for(*trees: ast.AST) -> Iterator[None]:
    """While it is open, a walk through the trees does not reach Python's limit of recursion."""
    global _open, _before
    deep = max((_depth(tree) for tree in trees), default=0)
    if deep <= ALWAYS:
        yield
        return
    with _lock:
        if not _open:
            _before = sys.getrecursionlimit()
        _open += 1
        sys.setrecursionlimit(max(sys.getrecursionlimit(), _before + FRAMES * deep))
    try:
        yield
    finally:
        with _lock:
            _open -= 1
            if not _open:
                sys.setrecursionlimit(_before)


def _depth(tree: ast.AST) -> int:
    """Levels of a tree."""
    deepest, level = 0, [tree]
    while level:
        deepest += 1
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return deepest


_open, _before = 0, 0
_lock = threading.Lock()

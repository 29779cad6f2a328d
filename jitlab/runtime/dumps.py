"""Graph dumps that `TF_XLA_FLAGS` or `XLA_FLAGS` ask for, with the contract's file names and console line (semantics §6.2)."""

from __future__ import annotations

import itertools
import os
import re
import stat
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

from jitlab import events
from jitlab.errors import ForeignFileError
from jitlab.flags import VARIABLES, read_flags
from jitlab.ir import Cluster, Node
from jitlab.ir.dot import nodes_dot, text_dot

MARKER = "// written by jitlab: it removes this file when it writes the next one of this name"


def dump_cluster(cluster: Cluster, stages: Sequence[tuple[str, str | Sequence[Node]]], pipeline: str = "CPU") -> list[Path]:
    """Write a graph for each (stage, DOT text or other text or nodes) when a flag asks for this cluster; tell each file.

    The flags are read again at each call. A stage is "pipeline start, before inline", "after inline, before fuse", ...
    """
    pattern, folder = wanted()
    name = computation_name(cluster)
    if pattern is None or not pattern.search(name):
        return []
    written = []
    for stage, content in stages:
        title = f"computation {name} [{pipeline}: {stage}]"
        with _lock:
            path = folder / f"hlo_graph_{next(_numbers)}.dot"
        write_dump(path, _dot(title, content))
        print(f"{title}: {path}", flush=True)
        if events.active():
            events.send(events.DumpWritten(cell=events.current_cell(), path=str(path)))
        written.append(path)
    return written


def wanted() -> tuple[re.Pattern[str] | None, Path]:
    """The pattern of `--xla_generate_hlo_graph` (None: not asked for) and the folder of `--xla_hlo_graph_path`."""
    flags = read_flags()
    return flags.xla_generate_hlo_graph, Path(flags.xla_hlo_graph_path or tempfile.gettempdir())


def computation_name(cluster: Cluster) -> str:
    """`cluster_0[_XlaCompiledKernel=true,_XlaNumConstantArgs=1].v82`: the version numbers this process's dumped clusters."""
    with _lock:
        version = _versions.get(cluster.name)
        if version is None:
            version = _versions[cluster.name] = next(_next_version)
    constants = sum(bool(getattr(node.op, "axes", None) or getattr(node.op, "axis", None)) for node in cluster.nodes)
    return f"{cluster.name}[_XlaCompiledKernel=true,_XlaNumConstantArgs={constants}].v{version}"


def _dot(title: str, content: str | Sequence[Node]) -> str:
    if not isinstance(content, str):
        return nodes_dot(title, content, MARKER)
    if content.lstrip().startswith("digraph"):
        return f"{MARKER}\n{content}"
    return text_dot(title, content, MARKER)


def write_dump(path: Path, text: str) -> None:
    """Make the file new: nothing that jitlab did not write is overwritten or followed."""
    _remove_own(path)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        descriptor = os.open(path, flags, 0o666)
    except FileExistsError:
        raise _foreign(path, "something was put there just now") from None
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)


def _remove_own(path: Path) -> None:
    """Remove an old dump of ours: a regular file, owned by us, whose first line carries our marker."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)  # a pipe there must not block
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISREG(found.st_mode):
        raise _foreign(path, "it is not a regular file")
    if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
        raise _foreign(path, "it belongs to another user")
    try:
        descriptor = os.open(path, flags)
    except OSError as error:
        raise _foreign(path, f"it can't be read ({error.strerror})") from None
    with os.fdopen(descriptor, "rb") as file:
        opened = os.fstat(descriptor)
        first = file.readline(len(MARKER) + 2)
    if (opened.st_dev, opened.st_ino) != (found.st_dev, found.st_ino) or first.rstrip(b"\r\n") != MARKER.encode():
        raise _foreign(path, "jitlab did not write it")
    os.unlink(path)


def _foreign(path: Path, why: str) -> ForeignFileError:
    return ForeignFileError(
        f"a file stands where a graph dump should go: {path}", where=f"asked for by {' or '.join(VARIABLES)}", why=why,
        hint="move the file away, or choose another folder with --xla_hlo_graph_path=FOLDER",
    )  # fmt: skip


_lock = threading.Lock()
_numbers = itertools.count()
_next_version = itertools.count(1)
_versions: dict[str, int] = {}

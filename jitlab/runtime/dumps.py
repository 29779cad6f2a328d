"""Graph dumps that `TF_XLA_FLAGS` or `XLA_FLAGS` ask for, with the contract's file names and console line."""

from __future__ import annotations

import itertools
import os
import stat
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from jitlab import events
from jitlab.errors import ForeignFileError
from jitlab.flags import VARIABLES, Flags, read_flags
from jitlab.ir import Cluster, Node, is_operation
from jitlab.ir.graphs.dot import nodes_dot, text_dot
from jitlab.messages.escape import clean
from jitlab.support import locks
from jitlab.support.later import Later

if TYPE_CHECKING:
    from pathlib import Path

pathlib, tempfile = Later("pathlib"), Later("tempfile")

LONGEST_HEAD = 100  # of the first line of DOT text, before the marker
MARKER = "// written by jitlab: it removes this file when it writes the next one of this name"


#: What a stage shows: operations, a text, or what makes the text when it is asked for.
Content = str | Sequence[Node] | Callable[[], str]

#: Fields of operations whose values a kernel has in it: TensorFlow's operations have inputs for them, which must be constant.
CONSTANTS = ("axes", "axis", "shape", "map", "kth")


def dump_cluster(cluster: Cluster, stages: Sequence[tuple[str, Content]]) -> list[Path]:
    """Write each (stage, content) as DOT when a flag asks for this cluster, and tell each file; give the files written.

    The flags are read again at each call. A stage is "pipeline start, before inline", "after inline, before fuse", ...
    `--xla_dump_to` is the newer way to ask: the first stage and the last one as text or DOT, without a line on the console.
    """
    flags = read_flags()
    name = computation_name(cluster)
    pipeline = "GPU" if "GPU" in cluster.device.upper() else "CPU"
    written = []
    if flags.xla_generate_hlo_graph is not None and flags.xla_generate_hlo_graph.search(name):
        folder = pathlib.Path(flags.xla_hlo_graph_path or tempfile.gettempdir())
        for stage, content in stages:
            title = f"computation {name} [{pipeline}: {stage}]"
            path = folder / f"hlo_graph_{next(_numbers)}.dot"
            write_dump(path, _dot(title, content))
            print(f"{title}: {path}", flush=True)
            written.append(path)
    if flags.xla_dump_to:
        written += _dump_module(cluster, name, pipeline, stages, flags)
    if events.active():
        for path in written:
            events.send(events.DumpWritten(path=str(path)))
    return written


def _dump_module(cluster: Cluster, name: str, pipeline: str, stages: Sequence[tuple[str, Content]], flags: Flags) -> list[Path]:
    """`module_0001.cluster_0.before_optimizations.txt` and `module_0001.cluster_0.cpu_after_optimizations.txt`, or `.dot`."""
    folder = pathlib.Path(flags.xla_dump_to)
    folder.mkdir(parents=True, exist_ok=True)
    ends = zip(("before_optimizations", f"{pipeline.lower()}_after_optimizations"), (stages[0], stages[-1]), strict=True)
    written = []
    for which, (stage, content) in ends:
        path = folder / f"module_{_version(cluster):04}.{cluster.name}.{which}"
        title = f"computation {name} [{pipeline}: {stage}]"
        if flags.xla_dump_hlo_as_text or not flags.xla_dump_hlo_as_dot:
            written.append(path.with_name(path.name + ".txt"))
            write_dump(written[-1], f"{MARKER}\n// {title}\n{_text(content)}")
        if flags.xla_dump_hlo_as_dot:
            written.append(path.with_name(path.name + ".dot"))
            write_dump(written[-1], _dot(title, content))
    return written


def computation_name(cluster: Cluster) -> str:
    """`cluster_0[_XlaCompiledKernel=true,_XlaNumConstantArgs=1].v82`: the version numbers this process's dumped clusters."""
    return f"{cluster.name}[_XlaCompiledKernel=true,_XlaNumConstantArgs={constant_arguments(cluster)}].v{_version(cluster)}"


def constant_arguments(cluster: Cluster) -> int:
    """The axes, shapes and index maps that must be known when the cluster is compiled; equal ones are one argument."""
    found: set[tuple[str, object]] = set()
    for node in cluster.nodes:
        if is_operation(node):
            given = [(field, repr(getattr(node.op, field))) for field in CONSTANTS if getattr(node.op, field, None) is not None]
            found |= {("map", tuple(given))} if "map" in dict(given) else set(given)
    return len(found)


def _version(cluster: Cluster) -> int:
    with locks.Released(_lock), _lock:
        if cluster.name not in _versions:
            if len(_versions) >= MOST_VERSIONS:
                del _versions[next(iter(_versions))]
            _versions[cluster.name] = next(_next_version)
        return _versions[cluster.name]


def _text(content: Content) -> str:
    """One operation a line, as in the text of a graph; what is text already stays."""
    if callable(content):
        content = content()
    if isinstance(content, str):
        return content.rstrip() + "\n"
    lines = []
    for node in content:
        inputs = ", ".join(source.name for source in node.inputs)
        lines.append(f"{node.name} = {node.op.name}({inputs}): {node.type.describe()}")
    return "".join(f"{clean(line)}\n" for line in lines)


def _dot(title: str, content: Content) -> str:
    if callable(content):
        content = content()
    if not isinstance(content, str):
        return marked(nodes_dot(title, content))
    return marked(content.lstrip() if content.lstrip().startswith("digraph") else text_dot(title, content))


def marked(dot: str) -> str:
    """DOT text with our marker at the end of its first line: a file of it begins with `digraph`."""
    first, _, rest = dot.partition("\n")
    return f"{first}  {MARKER}\n{rest}"


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
        first = file.readline(len(MARKER) + LONGEST_HEAD).rstrip(b"\r\n")
    is_ours = first == MARKER.encode() or (first.startswith(b"digraph") and first.endswith(f"  {MARKER}".encode()))
    if (opened.st_dev, opened.st_ino) != (found.st_dev, found.st_ino) or not is_ours:
        raise _foreign(path, "jitlab did not write it")
    os.unlink(path)


def _foreign(path: Path, why: str) -> ForeignFileError:
    return ForeignFileError(
        f"a file stands where a graph dump should go: {path}", where=f"asked for by {' or '.join(VARIABLES)}", why=why,
        hint="move the file away, or choose another folder with --xla_hlo_graph_path=FOLDER or --xla_dump_to=FOLDER",
    )  # fmt: skip


_lock = locks.shared("dumps")
_numbers = itertools.count()
_next_version = itertools.count(1)
_versions: dict[str, int] = {}
MOST_VERSIONS = 1000  # an older cluster that is dumped again is another version

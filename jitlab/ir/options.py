"""What decides how a graph is compiled, as plain data: the options of clustering, and those of all stages."""

from __future__ import annotations

from jitlab.support.lazy_dataclass import dataclass

LARGEST = 2**31 - 1
ENDLESS = 2**63 - 1


@dataclass(frozen=True)
class ClusteringOptions:
    """The level, the sizes, the lists, and in the last four fields the policy of the caller.

    In functions and cells (the defaults) library calls (`slow` ones among them) are kernels of our clusters; bodies may be
    nested as deep as they like; a number is no operation but is written into whatever reads it; and what has an effect stays
    in program order, where a Session knows data and control edges only.
    """

    level: str = "ON"  # or "OFF": what no scope marks is not compiled
    level_on_one_gpu: str | None = None  # for graphs with one GPU in them; None: `level`
    min_size: int = 1
    max_size: int = LARGEST
    fuel: int = ENDLESS
    listed: frozenset[str] | None = None  # operations that may be compiled; None: all
    fusible: bool = False  # the list is the one of operations that share loops
    excluded: frozenset[str] = frozenset()
    check_variables: bool = True  # a variable is not read in the cluster that has assigned it
    slow: bool = True
    deepest: int | None = None  # bodies inside one another
    constants_count: bool = False  # a constant is an operation: it joins, and may be a cluster
    effects_in_order: bool = True
    errors_in_order: bool = False  # no effect comes before what may raise before it


@dataclass(frozen=True)
class Options:
    """What decides how a trace is compiled."""

    jit_compile: bool | None = None
    level: str = "O1"
    exec_order: str = ""  # "bfs" or "dfs"; "": program order
    replays: bool = False  # a call that fails is begun anew as Python: until then nothing may have happened that can be seen
    clustering: ClusteringOptions | None = None  # None: as jl.config and the flags have it when a trace is compiled
    scopes: bool = True  # False: as if the program had no jit_scope
    devices: frozenset[str] = frozenset()  # what is placed on one of these is a cluster by itself, with copies at its border
    device: str = ""  # where operations are placed that name no device: "/device:GPU:0"; "": on the default one

    def __str__(self) -> str:
        return f"jit_compile={self.jit_compile}"

"""Graph (operations on arrays), Program (scalars in loops) and what they are made of: plain data, printed and checked."""

from . import program
from .extents import Extent, Poly, bind_extents, evaluate_extent, plain, poly
from .graph import Graph, Node, NodeDef, Op, Scope, current_graph, interpret, node_def, positions
from .plan import (
    Apart,
    Cluster,
    Clustering,
    Edge,
    Joined,
    KernelInfo,
    NotFused,
    Plan,
    Reason,
    Stays,
    is_operation,
    line_numbers,
)
from .types import NOWHERE, TRACED_DTYPES, ArrayType, Source, Sources, short_dtype
from .verify import verify

__all__ = [
    "Apart",
    "Cluster",
    "Clustering",
    "Edge",
    "Joined",
    "KernelInfo",
    "NotFused",
    "Plan",
    "Reason",
    "Stays",
    "is_operation",
    "line_numbers",
    "NOWHERE",
    "TRACED_DTYPES",
    "ArrayType",
    "Extent",
    "Graph",
    "Node",
    "NodeDef",
    "Op",
    "Poly",
    "Scope",
    "Source",
    "Sources",
    "bind_extents",
    "current_graph",
    "evaluate_extent",
    "interpret",
    "node_def",
    "plain",
    "poly",
    "positions",
    "program",
    "short_dtype",
    "verify",
]

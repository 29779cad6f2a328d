"""Groups of operations that `tf_xla_ops_to_cluster` and `fusible` name: those that share loops with others."""

from __future__ import annotations

from collections.abc import Iterable

from jitlab.errors import InvalidArgumentError
from jitlab.ops import operations
from jitlab.ops.base import Elementwise, Generated, Operation, Reduction
from jitlab.ops.control_flow import Branch, Define, Loop
from jitlab.ops.host_operations import HostCall, Item
from jitlab.ops.layout import concatenation, creation, moving_subscripts, views, windows
from jitlab.ops.layout.indexing import Gather, Scatter, Take
from jitlab.ops.linear_algebra.matrix_products import Product

FUSIBLE = "FUSIBLE"
GROUPS = ("PW", "RED", "PWRED", "REDUCEWINDOW", "REDUCEWINDOWPW", "BN", "SORT", "SMALL")

#: Operations whose group is not that of their family, by the contract's names.
NAMED = {
    "PWRED": ("ArgMax", "ArgMin", "Softmax", "LogSoftmax", "DiagPart"),
    "REDUCEWINDOW": ("MaxPool", "AvgPool", "MaxPool3D", "AvgPool3D"),
    "REDUCEWINDOWPW": ("LRN",),
    "BN": ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"),
    "SORT": ("Sort", "ArgSort", "Argsort", "Partition", "ArgPartition", "TopKV2"),
    "SMALL": ("Const", "Size", "Rank", "Shape", "ShapeN", "NoOp"),
}

#: The names that a View goes by.
VIEWS = ("StridedSlice", "Slice", "BroadcastTo", "ExpandDims", "Transpose")

#: Where the operations stand that make arrays, or put elements elsewhere by numbers of the program.
SMALL_MODULES = {part.__name__ for part in (concatenation, creation, moving_subscripts, views, windows)}

#: What is never fusible: products, variables, and what moves elements by an array of indices.
NEVER = (Product, Take, Gather, Scatter, Loop, Branch, Define, HostCall, Item)
VARIABLES = ("VarHandleOp", "ReadVariableOp", "AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp")


def group_of(kind: type[Operation]) -> str | None:
    """The group of a class of operations; None when it shares loops with no other."""
    name = kind.tf_name or kind.__name__
    for group, names in NAMED.items():
        if name in names:
            return group
    if name in VARIABLES or kind.is_parameter or issubclass(kind, NEVER):
        return None
    if issubclass(kind, Elementwise):
        return "PW"
    if issubclass(kind, Reduction):
        return "RED"
    if issubclass(kind, Generated) or kind.__module__ in SMALL_MODULES:
        return "SMALL"
    return None


def operations_named(names: Iterable[str]) -> frozenset[str]:
    """The operations that a list of operations and groups names. InvalidArgumentError for what is neither."""
    known = _known()
    found: set[str] = set()
    for name in names:
        if name == FUSIBLE:
            found.update(op for op, group in known.items() if group)
        elif name in GROUPS:
            found.update(op for op, group in known.items() if group == name)
        elif name in known:
            found.add(name)
        else:
            raise InvalidArgumentError(
                f"The operation '{name}' passed to --tf_xla_ops_to_cluster is not supported by XLA.",
                hint=f"an operation's name as reports have it (AddV2, MatMul), or one of {', '.join(GROUPS)}, {FUSIBLE}",
            )
    return frozenset(found)


def _known() -> dict[str, str | None]:
    """Operation -> its group."""
    return {**dict.fromkeys(VIEWS, "SMALL"), **{kind.tf_name or kind.__name__: group_of(kind) for kind in operations()}}

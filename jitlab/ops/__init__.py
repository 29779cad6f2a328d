"""Operations: one class holds all that jitlab knows of each, and the table from NumPy's functions to them.

Parts, in the order of the data: base, emitter, registry, build_nodes, leaf_operations, layout, elementwise, reducing,
linear_algebra, neural, control_flow, graph_state, library_operations, python_math, host_operations, runtime_checks,
numpy_api, table.
"""

import pkgutil
from collections.abc import Iterator
from importlib import import_module

from .base import Cost, Elementwise, Generated, Operation, Reduction, Unsupported
from .build_nodes import apply, as_node, cast, constant

for _module in pkgutil.walk_packages(__path__, f"{__name__}."):
    if _module.name != f"{__name__}.table":  # it reads what all others have written down
        import_module(_module.name)


def operations(kind: type[Operation] = Operation) -> Iterator[type[Operation]]:
    """Each class that is an operation, families left out."""
    for sub in kind.__subclasses__():
        yield from operations(sub)
        if not sub.is_family and sub.__module__.startswith(__name__):
            yield sub


__all__ = [
    "Cost",
    "Elementwise",
    "Generated",
    "Operation",
    "Reduction",
    "Unsupported",
    "apply",
    "as_node",
    "cast",
    "constant",
    "operations",
]

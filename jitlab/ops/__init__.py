"""Operations: one class holds all that jitlab knows of each, and the table from NumPy's functions to them.

Parts, in the order of the data: base, emitter, registry, rule_index, build_nodes, leaf_operations, layout, elementwise,
reducing, linear_algebra, neural, control_flow, graph_state, library_operations, python_math, random_draws,
host_operations, runtime_checks, numpy_api, table.
"""

from collections.abc import Iterator

from jitlab.support.later import Later, load

from .base import Cost, Elementwise, Generated, Operation, Reduction, Unsupported
from .build_nodes import apply, as_node, cast, constant

pkgutil = Later("pkgutil")


def load_all() -> None:
    """Load every module of operations and rules: else one is loaded when a rule of it is looked up."""
    for module in pkgutil.walk_packages(__path__, f"{__name__}."):
        load(module.name)


def operations(kind: type[Operation] = Operation) -> Iterator[type[Operation]]:
    """Each class that is an operation, families left out."""
    load_all()
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
    "load_all",
    "operations",
]

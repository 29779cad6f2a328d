"""Operations: one class holds all that jitlab knows of each, and the table from NumPy's functions to them."""

import pkgutil
from collections.abc import Iterator
from importlib import import_module

from .base import Cost, Elementwise, Generated, Operation, Reduction, Unsupported
from .build import apply, as_node, cast, constant

for _module in pkgutil.iter_modules(__path__):
    if _module.name != "table":  # it reads what all others have written down
        import_module(f"{__name__}.{_module.name}")


def operations(kind: type[Operation] = Operation) -> Iterator[type[Operation]]:
    """Each class that is an operation, families left out."""
    for sub in kind.__subclasses__():
        yield from operations(sub)
        if "__dataclass_fields__" in vars(sub) and sub is not Reduction and sub.__module__.startswith(__name__):
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

"""Running: code kept by Program text, clusters and host operations in order.

Parts, in the order of the data: size_checks, donation, held, compiled, executable, predicted, other_sizes, data_sizes,
kept_plans, clustering_dumps, dumps.
"""

from .compiled import compiled, forget_compiled
from .executable import Executable, executable_of, is_watched, plan_numbered, plan_of, watching

__all__ = [
    "Executable",
    "compiled",
    "executable_of",
    "forget_compiled",
    "is_watched",
    "plan_numbered",
    "plan_of",
    "watching",
]

"""From a graph to the operations that the compiler owns: `jit_scope` marks, auto-clustering, and a reason for each decision."""

from .cluster import cluster, clustered_anew, reset_names
from .flipping import flipped
from .flips import Advisor
from .options import for_functions, for_session
from .scope import jit_scope
from .unmet import warn_of_unmet

__all__ = [
    "Advisor", "cluster", "clustered_anew", "flipped", "for_functions", "for_session", "jit_scope", "reset_names",
    "warn_of_unmet",
]  # fmt: skip

"""From a graph to the operations that the compiler owns: `jit_scope` marks, auto-clustering, and a reason for each decision."""

from .cluster import cluster, reset_names
from .options import ClusteringOptions
from .scope import jit_scope
from .unmet import warn_of_unmet

__all__ = ["ClusteringOptions", "cluster", "jit_scope", "reset_names", "warn_of_unmet"]

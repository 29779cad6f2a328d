"""From a graph to the operations that the compiler owns: `jit_scope` marks, auto-clustering, and a reason for each decision.

Parts, in the order of the data: scope, cluster_options, candidates, contraction, partition, variables, cluster, decided,
operation_groups, unmet, flip_search, flip_application.
"""

from typing import TYPE_CHECKING

from jitlab.support.later import names_of

from .cluster import cluster, clustered_anew, reset_names
from .cluster_options import for_functions, for_session
from .scope import jit_scope, without_scopes
from .unmet import warn_of_unmet

if TYPE_CHECKING:
    from .flip_application import flipped
    from .flip_search import Advisor
else:  # for what-if
    __getattr__ = names_of(__name__, {"flip_application": "flipped", "flip_search": "Advisor"})

__all__ = [
    "Advisor", "cluster", "clustered_anew", "flipped", "for_functions", "for_session", "jit_scope", "reset_names",
    "warn_of_unmet", "without_scopes",
]  # fmt: skip

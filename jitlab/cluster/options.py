"""What decides about clusters, as one value: the level, the sizes, the lists, and the policy of whoever asks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from jitlab.config import config
from jitlab.flags import Flags

from .groups import FUSIBLE, operations_named

LARGEST = 2**31 - 1
ENDLESS = 2**63 - 1


@dataclass(frozen=True)
class ClusteringOptions:
    """`for_functions` is the policy of functions and cells, `for_session` the contract's.

    The policies differ in the last four fields. Library calls (`slow` ones among them) are kernels of our clusters; bodies may
    be nested as deep as they like; a number is no operation but is written into whatever reads it; and what has an effect
    stays in program order, where a Session knows data and control edges only.
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

    @classmethod
    def for_functions(cls, flags: Flags, **settings: Any) -> ClusteringOptions:
        """Of jl.config; a flag that is set wins."""
        return cls(
            level=config.global_jit_level,
            min_size=flags.or_given("tf_xla_min_cluster_size", config.min_cluster_size),
            max_size=flags.or_given("tf_xla_max_cluster_size", config.max_cluster_size),
        )._with(flags, settings)

    @classmethod
    def for_session(cls, flags: Flags, level: int | str = 0, **settings: Any) -> ClusteringOptions:
        """Of a session's `global_jit_level`: 0 and -1 (DEFAULT, OFF), 1 and 2 (ON_1, ON_2)."""
        return cls(
            level=level if isinstance(level, str) else "ON" if level > 0 else "OFF",
            min_size=flags.tf_xla_min_cluster_size, max_size=flags.tf_xla_max_cluster_size,
            slow=False, deepest=10, constants_count=True, effects_in_order=False,
        )._with(flags, settings)  # fmt: skip

    def _with(self, flags: Flags, settings: dict[str, Any]) -> ClusteringOptions:
        auto = flags.tf_xla_auto_jit
        names = flags.tf_xla_ops_to_cluster
        fusible = auto.fusible or flags.tf_xla_fusion_only
        if fusible:
            names = (*names, FUSIBLE)
        changes: dict[str, Any] = {
            "fuel": flags.tf_xla_clustering_fuel,
            "listed": operations_named(names) if names else None,
            "fusible": fusible,
            "excluded": frozenset(flags.tf_xla_cluster_exclude_ops),
            "check_variables": not flags.tf_xla_disable_resource_variable_safety_checks_for_debugging,
        }
        if auto.level:
            changes["level_on_one_gpu" if auto.single_gpu else "level"] = "ON" if auto.level > 0 else "OFF"
        return replace(self, **{**changes, **settings})

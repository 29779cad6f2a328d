"""The options of clustering as jl.config, the flags and a session's configuration have them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from jitlab.config import config
from jitlab.flags import Flags
from jitlab.ir import ClusteringOptions
from jitlab.support.later import Later

if TYPE_CHECKING:
    from . import operation_groups
else:  # only flags name operations
    operation_groups = Later(f"{__package__}.operation_groups")


def for_functions(flags: Flags, **settings: Any) -> ClusteringOptions:
    """The policy of functions and cells, of jl.config; a flag that is set wins."""
    made = ClusteringOptions(
        level=config.global_jit_level,
        min_size=flags.or_given("tf_xla_min_cluster_size", config.min_cluster_size),
        max_size=flags.or_given("tf_xla_max_cluster_size", config.max_cluster_size),
    )
    return _with(made, flags, settings)


def for_session(flags: Flags, level: int | str = 0, **settings: Any) -> ClusteringOptions:
    """The contract's policy, of a session's `global_jit_level`: 0 and -1 (DEFAULT, OFF), 1 and 2 (ON_1, ON_2)."""
    made = ClusteringOptions(
        level=level if isinstance(level, str) else "ON" if level > 0 else "OFF",
        min_size=flags.tf_xla_min_cluster_size, max_size=flags.tf_xla_max_cluster_size,
        slow=False, deepest=10, constants_count=True, effects_in_order=False,
    )  # fmt: skip
    return _with(made, flags, settings)


def _with(options: ClusteringOptions, flags: Flags, settings: dict[str, Any]) -> ClusteringOptions:
    auto = flags.tf_xla_auto_jit
    names = flags.tf_xla_ops_to_cluster
    fusible = auto.fusible or flags.tf_xla_fusion_only
    if fusible:
        names = (*names, operation_groups.FUSIBLE)
    changes: dict[str, Any] = {
        "fuel": flags.tf_xla_clustering_fuel,
        "listed": operation_groups.operations_named(names) if names else None,
        "fusible": fusible,
        "excluded": frozenset(flags.tf_xla_cluster_exclude_ops),
        "check_variables": not flags.tf_xla_disable_resource_variable_safety_checks_for_debugging,
    }
    if auto.level:
        changes["level_on_one_gpu" if auto.single_gpu else "level"] = "ON" if auto.level > 0 else "OFF"
    return replace(options, **{**changes, **settings})

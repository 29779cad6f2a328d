"""What a Session is told: the levels and options of the contract, as plain objects."""

from __future__ import annotations

from dataclasses import field
from typing import Any, ClassVar

from jitlab.cluster import for_session
from jitlab.flags import read_flags
from jitlab.ir import ClusteringOptions
from jitlab.support.lazy_dataclass import dataclass


class _Fields:
    """Plain fields, and no others."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in type(self).__dataclass_fields__:  # type: ignore[attr-defined]
            raise AttributeError(f"Assignment not allowed (no field {name!r} in {type(self).__name__}).")
        object.__setattr__(self, name, value)


@dataclass
class OptimizerOptions(_Fields):
    """`global_jit_level`: DEFAULT and OFF compile what a scope marks, ON_1 and ON_2 whatever can be."""

    DEFAULT: ClassVar[int] = 0
    OFF: ClassVar[int] = -1
    ON_1: ClassVar[int] = 1
    ON_2: ClassVar[int] = 2
    L0: ClassVar[int] = -1
    L1: ClassVar[int] = 0

    global_jit_level: int = 0
    opt_level: int = 0
    do_common_subexpression_elimination: bool = False
    do_constant_folding: bool = False
    do_function_inlining: bool = False
    cpu_global_jit: bool = False

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "global_jit_level":
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"global_jit_level = {value!r}: it is OptimizerOptions.DEFAULT, OFF, ON_1 or ON_2")
            if value not in (-1, 0, 1, 2):
                raise ValueError(f"global_jit_level = {value!r}: it is OptimizerOptions.DEFAULT, OFF, ON_1 or ON_2")
        super().__setattr__(name, value)


@dataclass
class GraphOptions(_Fields):
    """Options of how graphs run."""

    optimizer_options: OptimizerOptions = field(default_factory=OptimizerOptions)


@dataclass
class GPUOptions:
    """Accepted: memory is taken as it is needed."""

    allow_growth: bool = False
    per_process_gpu_memory_fraction: float = 0.0
    visible_device_list: str = ""


@dataclass
class ConfigProto(_Fields):
    """The configuration of a Session. `global_jit_level` decides what is compiled; the others have no effect here."""

    graph_options: GraphOptions = field(default_factory=GraphOptions)
    gpu_options: GPUOptions = field(default_factory=GPUOptions)
    allow_soft_placement: bool = False
    log_device_placement: bool = False
    intra_op_parallelism_threads: int = 0
    inter_op_parallelism_threads: int = 0
    device_count: dict[str, int] = field(default_factory=dict)


@dataclass
class RunOptions:
    """How much of a run is recorded: FULL_TRACE keeps a timeline in the RunMetadata."""

    NO_TRACE: ClassVar[int] = 0
    SOFTWARE_TRACE: ClassVar[int] = 1
    HARDWARE_TRACE: ClassVar[int] = 2
    FULL_TRACE: ClassVar[int] = 3

    trace_level: int = 0
    timeout_in_ms: int = 0
    output_partition_graphs: bool = False


@dataclass
class RunMetadata:
    """What a run with FULL_TRACE leaves: `step_stats` is the report of the run."""

    step_stats: Any = None


def clustering_options(config: ConfigProto) -> ClusteringOptions:
    """How a Session with this config clusters; the flags are read now."""
    return for_session(read_flags(), config.graph_options.optimizer_options.global_jit_level)


__all__ = ["ConfigProto", "GPUOptions", "GraphOptions", "OptimizerOptions", "RunMetadata", "RunOptions", "clustering_options"]

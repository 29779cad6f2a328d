"""`experimental_get_compiler_ir`: what the compiler made of a trace, stage by stage, as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitlab.ir import plain
from jitlab.ir.graphs.dot import nodes_dot
from jitlab.runtime import Executable
from jitlab.specs import TensorSpec

from .concrete import ConcreteFunction

STAGES = ("hlo", "hlo_serialized", "optimized_hlo", "optimized_hlo_serialized", "optimized_hlo_dot")


class CompilerIR:
    """Called with a stage: "hlo" is the graph as it was recorded, "optimized_hlo" the Programs of its clusters."""

    def __init__(self, concrete: ConcreteFunction, arguments: Sequence[Any]) -> None:
        specs = [isinstance(x, TensorSpec) for x in arguments if hasattr(x, "dtype")]
        if any(specs) and not all(specs):
            raise ValueError(
                "experimental_get_compiler_ir takes TensorSpecs or arrays, not both: "
                f"{sum(specs)} of {len(specs)} arguments are TensorSpecs"
            )
        self._concrete = concrete

    def __call__(self, stage: str = "hlo") -> str | bytes:
        if stage not in STAGES:
            raise ValueError(f"Got an invalid stage {stage!r}; it has to be one of {', '.join(STAGES)}")
        trace = self._concrete._recording().trace
        if stage == "hlo":
            return str(trace.graph)
        if stage == "hlo_serialized":
            return str(trace.graph).encode()
        executable = trace.executable
        assert isinstance(executable, Executable), "it compiles nothing"
        if stage == "optimized_hlo_dot":
            return nodes_dot(self._concrete.name, executable.graph.nodes)
        executable.prepare([np.zeros(plain(node.shape), node.dtype) for node in executable.graph.parameters])
        text = "\n\n".join(executable.plan.texts[c.name, "program"] for c in executable.clustering.clusters)
        return text if stage == "optimized_hlo" else text.encode()

"""A cluster as a Program: what lowering hands to a target and to whoever runs it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from jitlab.ir.graphs.graph import Node
from jitlab.ir.programs.program import Program

from .plan import Cluster, Copy, Edge, KernelInfo, Temporary


@dataclass
class Lowered:
    """A cluster's Program and how its inputs reach it. `strides` names the symbols that are an input's stride (in elements)."""

    cluster: Cluster
    program: Program
    inputs: list[Node]  # one for each Program input, constants that are arrays among them
    outputs: list[Node]  # one for each Program output
    constants: list[Any]  # the Constants whose values are the Program's scalars, in order
    symbol_values: dict[str, int]
    strides: dict[str, tuple[int, int]]  # symbol -> (input, axis)
    kernels: list[KernelInfo] = field(default_factory=list)
    boundaries: list[Edge] = field(default_factory=list)
    copies: list[Node] = field(default_factory=list)  # inputs to be made contiguous first
    kept: list[Copy] = field(default_factory=list)  # what the Program copies although NumPy changes it in place
    in_place: dict[Node, Node] = field(default_factory=dict)  # outputs of the cluster that are inputs it has overwritten
    temporaries: list[Temporary] = field(default_factory=list)
    scratch_bytes: int = 0  # that a call needs, each piece from a multiple of ALIGNMENT on

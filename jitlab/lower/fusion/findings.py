"""What a decision of fusion says of what was in the way."""

from __future__ import annotations

from dataclasses import field

from jitlab.ir import Node, NotFused
from jitlab.support.lazy_dataclass import dataclass


@dataclass(frozen=True)
class Obstacle:
    """One thing that keeps a stage out of a nest, or for which a value is stored: a code, and the operation that it is about.
    `evidence`: what was counted, and last the limit that it met."""

    code: NotFused
    node: Node
    evidence: tuple[float, ...] = field(default=(), compare=False)

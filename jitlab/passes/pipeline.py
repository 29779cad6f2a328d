"""The pipeline: one list of passes, run once from first to last, each on the bodies of loops and branches too."""

from __future__ import annotations

import time
from collections.abc import Callable

from jitlab.ir import Graph

from .each_body import drop_unused_inputs, with_bodies
from .hoisting import hoist_products
from .replays import join_replays
from .simplify import (
    compose_views,
    drop_what_does_nothing,
    fold_constants,
    forward_updates,
    merge_equal,
    read_whole_updates,
    reduce_strength,
    remove_dead,
    reshape_by_views,
)

Pass = Callable[[Graph], Graph]
Observer = Callable[[str, Graph, Graph, int, int], None]

PASSES: tuple[Pass, ...] = (
    join_replays,
    remove_dead,
    drop_unused_inputs,
    fold_constants,
    reduce_strength,
    reshape_by_views,
    read_whole_updates,
    compose_views,
    forward_updates,
    drop_what_does_nothing,
    merge_equal,
    hoist_products,
    compose_views,
    remove_dead,
    drop_unused_inputs,
    remove_dead,  # what only the inputs dropped here were made of
)


def run_passes(graph: Graph, observe: Observer | None = None) -> Graph:
    """Simplify a graph without changing a bit of its results; `graph` itself stays as it is.

    `observe(name, before, after, start_ns, duration_ns)` is called after each pass.
    """
    for one in PASSES:
        start = time.perf_counter_ns()
        after = with_bodies(one)(graph)
        if observe is not None:
            observe(one.__name__, graph, after, start, time.perf_counter_ns() - start)
        graph = after
    return graph

"""The graph face: operations are put into a Graph, and a Session runs them (docs/internals/graph.md).

Parts, in the order of the data: session_graph, graph_tensor, building, device_scopes, graph_operations, graph_capture,
run_capture, session_options, session.
"""

from .building import (
    constant,
    control_dependencies,
    device,
    global_variables,
    global_variables_initializer,
    group,
    identity,
    name_scope,
    no_op,
    placeholder,
    placeholder_with_default,
    trainable_variables,
    variables_initializer,
)
from .graph_tensor import GraphTensor
from .session import Session, default_session
from .session_graph import (
    Graph,
    current_graph,
    default_graph,
    disable_eager_execution,
    enable_eager_execution,
    executing_eagerly,
    reset_default_graph,
)
from .session_options import ConfigProto, GPUOptions, GraphOptions, OptimizerOptions, RunMetadata, RunOptions

__all__ = [
    "ConfigProto", "GPUOptions", "Graph", "GraphOptions", "GraphTensor", "OptimizerOptions", "RunMetadata", "RunOptions",
    "Session", "constant", "control_dependencies", "current_graph", "default_graph", "default_session", "device",
    "disable_eager_execution", "enable_eager_execution", "executing_eagerly", "global_variables",
    "global_variables_initializer", "group", "identity", "name_scope", "no_op", "placeholder", "placeholder_with_default",
    "reset_default_graph", "trainable_variables", "variables_initializer",
]  # fmt: skip

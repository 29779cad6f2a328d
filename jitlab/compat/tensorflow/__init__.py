"""TensorFlow's names for what jitlab does, so that examples run with the import changed. Names only: no engine.

Values are NumPy's: `constant` gives an ndarray (a NumPy scalar for one value), and results print as NumPy prints them. Python
integers become int32 and floats float32, as they do there. In a graph `constant` gives the graph's tensor.

Parts, in the order of the data: tensors, operations, conditionals, random, network, train, tf_session.
"""

# ruff: noqa: F401  (every import is a name that this module hands out)

from __future__ import annotations

import builtins
import sys
from types import ModuleType
from typing import Any

import numpy as np

from jitlab import errors as _errors
from jitlab import graph as _graph
from jitlab.api import ConcreteFunction, functions_run_eagerly, numpy_function, print_, py_func, run_functions_eagerly
from jitlab.autograph import Feature, TensorArray, do_not_convert, set_loop_options
from jitlab.cluster import jit_scope
from jitlab.graph import (
    ConfigProto,
    GPUOptions,
    Graph,
    GraphOptions,
    OptimizerOptions,
    RunMetadata,
    RunOptions,
    control_dependencies,
    device,
    disable_eager_execution,
    enable_eager_execution,
    executing_eagerly,
    global_variables,
    global_variables_initializer,
    group,
    identity,
    name_scope,
    no_op,
    placeholder_with_default,
    reset_default_graph,
    trainable_variables,
    variables_initializer,
)
from jitlab.graph import default_graph as get_default_graph
from jitlab.graph import default_session as get_default_session
from jitlab.ir import OperationView as Operation
from jitlab.specs import TensorShape, TensorSpec

from . import conditionals as _control
from . import network as _nn
from . import random as _random
from .conditionals import Assert, case, cond, switch_case, while_loop
from .operations import NAMES as _OPERATIONS
from .operations import elementwise as _elementwise
from .tensors import DTYPES, GenericFunction, Module, Tensor, Variable, constant, convert_to_tensor, function
from .tf_session import InteractiveSession, Session, Timeline, placeholder
from .train import GradientDescentOptimizer, GradientTape, gradients

newaxis = np.newaxis
py_function = numpy_function
print = print_  # noqa: A001
globals().update(DTYPES)
globals().update(_OPERATIONS)


def _module(name: str, /, **names: Any) -> ModuleType:
    """A part of TensorFlow as a module, so that it can be imported by its own name too."""
    made = ModuleType(f"{__name__}.{name}", f"`tf.{name}`: names for what jitlab does.")
    made.__dict__.update(names)
    sys.modules[made.__name__] = made
    return made


def _some(*names: str) -> dict[str, Any]:
    return {name: _OPERATIONS[name] for name in names}


def _list_logical_devices(device_type: str | None = None) -> list[Any]:
    """The devices that operations can be placed on."""
    return _graph.device_scopes.device_attributes()


math = _module(
    "math",
    **{name: made for name, made in _OPERATIONS.items() if name not in ("shape", "reshape", "size", "rank", "concat")},
    softplus=_nn.NAMES["softplus"],
)
nn = _module("nn", **_nn.NAMES, **_some("tanh", "sigmoid"))
random = _module(
    "random", **_random.NAMES, set_seed=_random.set_seed
)
linalg = _module(
    "linalg", **_some("matmul", "norm", "einsum", "tensordot", "eye"),
    **{name: _elementwise(name, target) for name, target in (
        ("inv", np.linalg.inv), ("det", np.linalg.det), ("solve", np.linalg.solve), ("cholesky", np.linalg.cholesky),
        ("eigh", np.linalg.eigh), ("qr", np.linalg.qr), ("trace", np.trace), ("diag_part", np.diagonal), ("diag", np.diag),
    )},
)  # fmt: skip
strings = _module("strings", join=_control.join)
debugging = _module("debugging", Assert=Assert, check_numerics=_OPERATIONS["check_numerics"], **_control.CHECKS)
autograph = _module(
    "autograph",
    experimental=_module(
        "autograph.experimental", Feature=Feature, do_not_convert=do_not_convert, set_loop_options=set_loop_options
    ),
)
types = _module(
    "types",
    experimental=_module(
        "types.experimental", GenericFunction=GenericFunction, PolymorphicFunction=GenericFunction,
        ConcreteFunction=ConcreteFunction,
    ),
)  # fmt: skip
config = _module(
    "config", run_functions_eagerly=run_functions_eagerly, functions_run_eagerly=functions_run_eagerly,
    list_logical_devices=_list_logical_devices,
)  # fmt: skip
errors = _module(
    "errors", InvalidArgumentError=_errors.InvalidArgumentError, FailedPreconditionError=_errors.FailedPreconditionError,
    OperatorNotAllowedInGraphError=_errors.OperatorNotAllowedInGraphError, OpError=_errors.JitlabError,
    InaccessibleTensorError=_errors.InaccessibleTensorError,
)  # fmt: skip
xla = _module("xla", experimental=_module("xla.experimental", jit_scope=jit_scope))
contrib = _module(
    "contrib", compiler=_module("contrib.compiler", jit=_module("contrib.compiler.jit", experimental_jit_scope=jit_scope))
)
train = _module("train", GradientDescentOptimizer=GradientDescentOptimizer)
python = _module(
    "python", client=_module("python.client", timeline=_module("python.client.timeline", Timeline=Timeline))
)
initializers = _module("initializers", global_variables=global_variables_initializer)
CheckNumerics = _OPERATIONS["check_numerics"]
assert_equal = _control.CHECKS["assert_equal"]
random_uniform, random_normal = _random.NAMES["uniform"], _random.NAMES["normal"]
truncated_normal, set_random_seed = _random.NAMES["truncated_normal"], _random.set_seed


def get_variable(
    name: str, shape: Any = None, dtype: Any = np.float32, initializer: Any = None, trainable: builtins.bool = True
) -> Any:
    """A Variable of that name: `initializer` is its value, or a function of the shape."""
    value = np.zeros(tuple(shape or ()), dtype) if initializer is None else initializer
    if callable(value):
        value = value(shape, dtype)
    return Variable(value, trainable, name=name, dtype=dtype)


def assign(ref: Any, value: Any) -> Any:
    """`ref.assign(value)`, as it was first written."""
    return ref.assign(value)


def assign_add(ref: Any, value: Any) -> Any:
    """`ref.assign_add(value)`."""
    return ref.assign_add(value)


def assign_sub(ref: Any, value: Any) -> Any:
    """`ref.assign_sub(value)`."""
    return ref.assign_sub(value)


_FILES = {"operations", "tensors", "tf_session", "conditionals", "network"}
_OTHERS = {"annotations", "builtins", "np", "sys", "ModuleType", "Any"} | _FILES
__all__ = sorted(name for name in globals() if not name.startswith(("_", "@")) and name not in _OTHERS)  # "@": pytest's

v1 = _module("compat.v1", **{name: globals()[name] for name in __all__})
v1.__dict__.update(__all__=__all__)
compat = _module("compat", v1=v1, as_str=str)

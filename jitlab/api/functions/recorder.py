"""One run of a function's body under capture: its inputs, its graph, and the form of its result."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import FunctionType as PythonFunction
from types import MethodType
from typing import TYPE_CHECKING, Any

import numpy as np

from jitlab.capture import HOOKS, Capture, NotReplayable, Tensor, Trace, call_user, finish, substitute
from jitlab.capture.control.traced_checks import raises_behind_checks
from jitlab.capture.drivers.trace import Stored, for_calls
from jitlab.capture.effect_log import Memory, Quiet
from jitlab.capture.guards.signature import Copy, is_variable, paths_of
from jitlab.capture.guards.tracetypes import FunctionType, TensorType, VariableType, fill
from jitlab.capture.numpy_calls.explanations import is_our_fault, said_of
from jitlab.capture.numpy_calls.host_fallback import is_numpy
from jitlab.capture.refusals import line_of
from jitlab.capture.state import Creation
from jitlab.capture.tracers.arrays import Policy
from jitlab.errors import JitlabError, Signal
from jitlab.ir import Extent
from jitlab.ops.host_operations import HostCall
from jitlab.specs import TensorSpec
from jitlab.support.containers import CONTAINERS, of_items
from jitlab.support.later import Later
from jitlab.support.lazy_dataclass import dataclass

from .binding import Binder
from .concrete import outputs_of
from .failures import in_user_code

if TYPE_CHECKING:
    from jitlab.capture.drivers import passed
else:  # few functions are passed lists or dicts
    passed = Later("jitlab.capture.drivers.passed")

#: Sizes and ranks that stand for unknown ones while a body is recorded without arrays, in the order they are tried.
SIZES, RANKS = (5, 17, 64, 2, 1), (2, 1, 3, 0, 4)


@dataclass
class Recorded:
    """A trace that is not compiled yet, and what a user can ask of it."""

    trace: Trace
    outputs: Any
    has_symbolic_sizes: bool
    variables: list[Any]

    @property
    def is_for_any_values(self) -> bool:
        """Nothing in it was decided by the values of its first arguments."""
        return not self.trace.guards and not any(isinstance(node.op, HostCall) for node in self.trace.graph.nodes)


def _with_dtypes(value: Any, to_array: Callable[..., Any]) -> Any:
    """A result whose Python numbers, traced ones too, have the dtypes that `to_array` gives them."""
    if isinstance(value, CONTAINERS):
        return of_items(partial(_with_dtypes, to_array=to_array), value)
    if type(value) in (bool, int, float, complex):
        return to_array(value)
    if isinstance(value, Tensor) and value.weak not in (None, bool):
        return value.astype(to_array(value.weak(0)).dtype)
    return value


class _Arguments:
    """What a body is called with while it is recorded: tensors for the arrays of a call, all else as it is."""

    def __init__(
        self, capture: Capture, binder: Binder, kinds: Sequence[Any], values: Sequence[Any], leaves: Sequence[Any]
    ) -> None:
        self.tensors: list[tuple[Tensor, Any]] = []
        #: Of each input of the capture its place among the leaves: an array that comes twice is one input.
        self.positions: list[int] = []
        self._copies: list[Copy] = []
        stand_ins = dict[int, Any]()
        for n, (leaf, path, kind) in enumerate(zip(leaves, paths_of(binder.names, values), kinds, strict=True)):
            array = leaf
            if isinstance(kind, VariableType):
                array = stand_ins[kind.group] if kind.group in stand_ins else leaf.view()
                stand_ins[kind.group] = array
            known = capture.captured.get(id(array)) if isinstance(array, np.ndarray) else None
            if known is None:
                self.positions.append(n)
            self.tensors.append((capture.add_input(array, path) if known is None else known.tensor, array))
        order = iter(self.tensors)
        variables: dict[int, Any] = {}

        def replaced(value: Any) -> Any:
            tensor, array = next(order)
            if not is_variable(value):
                return tensor
            return variables.setdefault(id(array), value.__jitlab_stand_in__(array))

        self.args, self.kwargs = binder.call_form(substitute(values, replaced, self._copies))
        capture.passed = {id(known.of): known.copy for known in self._copies}
        capture.note_outside((self.args, self.kwargs))

    def changes(self, capture: Capture, name: str, bind: Any) -> tuple[passed.Changes, list[Stored]] | None:
        """What the body has changed of the lists, dicts and objects of the caller's: it changed copies."""
        if not self._copies:
            return None
        try:
            return passed.changes_of(capture, self._copies, bind)
        except passed.Unchangeable:
            raise ValueError(
                f"{name} should not modify its Python input arguments: a list, dict or object that was passed has changed"
            ) from None


def record(
    body: Callable[..., Any], name: str, binder: Binder, type: FunctionType, values: Sequence[Any], leaves: Sequence[Any],
    number: int, memory: Memory, creation: Creation, *, strict: bool, autograph: bool, is_sample: bool = False,
) -> Recorded:  # fmt: skip
    """Run `body` on tensors for the arrays in `values`. `type` is the trace's, which may leave sizes open."""
    capture = Capture(name, strict=strict)
    capture.memory, capture.creation = memory, creation
    kinds = type.tensors()
    is_open = any(kind.shape is None or None in kind.shape for kind in kinds)  # its sizes are symbols
    capture.policy = Policy(sees_stores=autograph or is_open)
    with capture.recording():
        arguments = _Arguments(capture, binder, kinds, values, leaves)
        if is_sample:
            creation.samples = [input.node for input in capture.inputs]
        opened, unknown_rank, has_symbolic_sizes = _symbols(kinds, [tensor for tensor, _ in arguments.tensors])
        try:
            result = _result(capture, body, arguments, autograph)
            if binder.to_array is not np.asarray:
                result = _with_dtypes(result, binder.to_array)
            changes = arguments.changes(capture, name, binder.bind if binder.keeps_objects else None)
            trace = finish(capture, result if changes is None else (result, changes[1]), number)
            trace.changes = changes[0] if changes is not None else None
            fixed = frozenset(s for x in capture.inputs for n in x.node.shape for s in _symbols_of(n)) - opened
            outputs = outputs_of(result, fixed, unknown_rank)
        except NotReplayable:
            raise
        except Signal as signal:  # nobody has answered it where it should have been: the call is Python's
            code = getattr(signal, "code", "internal")
            raise NotReplayable(code, said_of(signal), source=line_of(signal)) from None
        except Exception as error:
            if not isinstance(error, JitlabError) and is_our_fault(error):  # the call is Python's, and the report says so
                raise NotReplayable("internal", said_of(error), source=line_of(error)) from None
            raised = in_user_code(error) if autograph else error
            if raised is error:
                raise
            raise raised  # noqa: B904 - it is the same error, told with its lines
        finally:
            capture.close()
            if isinstance(memory, Quiet):
                memory.undo()
            memory.frozen.trim()
    return Recorded(trace, outputs, has_symbolic_sizes, _without_values(capture, trace, arguments.positions))


def _result(capture: Capture, body: Any, arguments: _Arguments, autograph: bool) -> Any:
    """What the body gives; None where it raises an error that a check of the trace raises before."""
    result = None
    try:
        result = call(capture, body, arguments.args, arguments.kwargs, autograph)
    except Exception as error:
        if not raises_behind_checks(capture, error):
            raise
    if capture.refused is not None:  # the function caught it
        raise capture.refused
    return result


def _without_values(capture: Capture, trace: Trace, positions: list[int]) -> list[Any]:
    """A trace knows its arguments by their places, and keeps none of the first ones alive. The Variables that it captured."""
    for_calls(trace, capture, positions)
    captured = {id(input.value) for input in trace.inputs[len(positions) :]}
    return [variable for at, variable in capture.variables.items() if at in captured]


def call(capture: Capture, body: Any, args: tuple[Any, ...], kwargs: dict[str, Any], autograph: bool) -> Any:
    """The body, converted when `autograph` says so and it is no function of NumPy's."""
    if autograph and isinstance(body, (PythonFunction, MethodType)) and not is_numpy(body):
        return call_user(capture, body, args, kwargs)
    if is_numpy(body):
        args, kwargs = _without_defaults(body, args, kwargs)
    return HOOKS.call(body, *args, **kwargs) if autograph else body(*args, **kwargs)


def _without_defaults(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What was given to one of NumPy's functions: its defaults, which binding filled in, are its own affair."""
    parameters = inspect.signature(function).parameters
    kwargs = {key: value for key, value in kwargs.items() if key not in parameters or value is not parameters[key].default}
    places = list(parameters.values())
    if any(p.kind is p.VAR_POSITIONAL for p in places):
        return args, kwargs
    while args and args[-1] is places[len(args) - 1].default:
        args = args[:-1]
    return args, kwargs


def samples(type: FunctionType) -> Iterator[Callable[[TensorType | VariableType], Any]]:
    """Ways to make an array for each tensor of a type, one after another until the body likes it."""
    tensors = type.tensors()
    ranks: Sequence[int | None] = RANKS if any(t.shape is None for t in tensors) else (None,)
    sizes = SIZES if not type.is_exact else SIZES[:1]
    for size in sizes:
        for rank in ranks:
            yield lambda t, size=size, rank=rank: sample(t, size, rank)  # type: ignore[misc]


def sample(type: Any, size: int, rank: int | None) -> np.ndarray[Any, Any]:
    """An array of that type; sizes that are open are `size`."""
    open_shape = (None,) * (rank or 0) if type.shape is None else type.shape
    shape = tuple(size if n is None else n for n in open_shape)
    if np.prod(shape, dtype=float) > 1e6:
        return np.zeros(shape, type.dtype)  # memory that nobody touches
    array = np.ones(shape, type.dtype)
    if array.ndim > 1 and array.dtype.kind in "fc":  # so that a solver finds it regular
        array[..., range(min(shape[-2:])), range(min(shape[-2:]))] = 3
    return array


def with_arrays(value: Any, make: Callable[[TensorType], Any]) -> Any:
    """The value with an array for each TensorSpec in it."""
    if isinstance(value, TensorSpec):
        return make(TensorType(value.dtype, value.shape.dims, value.name))
    return of_items(partial(with_arrays, make=make), value) if isinstance(value, CONTAINERS) and _has_specs(value) else value


def _has_specs(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_has_specs, value))
    return any(map(_has_specs, value.values())) if isinstance(value, dict) else isinstance(value, TensorSpec)


def has_specs(values: Sequence[Any]) -> bool:
    """Is there a TensorSpec among them?"""
    return any(map(_has_specs, values))


def values_of(type: FunctionType, make: Callable[[TensorType | VariableType], Any]) -> tuple[Any, ...]:
    """Values of a type, with `make(t)` for each tensor."""
    return tuple(fill(parameter, make) for parameter in type.parameters)


def _symbols(kinds: Sequence[Any], tensors: Sequence[Tensor]) -> tuple[frozenset[str], frozenset[str], bool]:
    """The symbols of sizes that the trace's type leaves open; those of arguments of unknown rank; has each such size one?"""
    opened: set[str] = set()
    unknown: set[str] = set()
    has_symbolic_sizes = True
    for kind, tensor in zip(kinds, tensors, strict=True):
        for axis, n in enumerate(tensor.shape):
            is_open = kind.shape is None or kind.shape[axis] is None
            if is_open:
                has_symbolic_sizes = has_symbolic_sizes and isinstance(n, Extent)
                (unknown if kind.shape is None else opened).update(_symbols_of(n))
        if kind.shape is None and not tensor.shape:
            has_symbolic_sizes = False
    return frozenset(opened | unknown), frozenset(unknown), has_symbolic_sizes


def _symbols_of(n: int) -> tuple[str, ...]:
    return n.expr.symbols if isinstance(n, Extent) else ()

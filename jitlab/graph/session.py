"""Session: runs operations of a Graph for what they are fed with; each kind of run is compiled once."""

from __future__ import annotations

import itertools
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, ClassVar

import numpy as np

from jitlab import events
from jitlab.api import Options, compile_trace
from jitlab.capture import Change, NotReplayable, Trace
from jitlab.capture.drivers.run_events import emit_call, emit_trace
from jitlab.capture.guards.signature import key_of
from jitlab.config import config
from jitlab.errors import FailedPreconditionError, InvalidArgumentError
from jitlab.ir import OperationView
from jitlab.messages import by_contract
from jitlab.ops.random_draws import set_random_states
from jitlab.specs import TensorShape
from jitlab.support import locks
from jitlab.support.containers import leaves, mapped
from jitlab.support.lazy_dataclass import dataclass
from jitlab.targets.devices import default_target

from .device_scopes import check_devices, compiling_devices
from .graph_capture import Step, tensors_in
from .graph_tensor import GraphTensor
from .run_capture import needed, record
from .session_graph import Graph, current_graph, default_graph
from .session_options import ConfigProto, clustering_options

_numbers = itertools.count(1)


@dataclass(eq=False)
class Run:
    """What one kind of run needs: fetches and feeds decide it."""

    steps: list[Step]
    defaults: list[Step]  # placeholders that are not fed and have a value of their own
    traces: dict[Any, list[Trace]]


class Session:
    """What runs a Graph. Variables of the graph have a value of their own in each Session.

    The level is OFF unless the config (or TF_XLA_FLAGS) says otherwise, and a cluster has at least two operations.

    Args:
        graph: a Graph; None: the default one.
        config: a ConfigProto of `jitlab.compat.tensorflow`; None: its default values.
        target: accepted, and of no effect: it runs in this process.

    Raises:
        TypeError: `config` is no ConfigProto, or `graph` no Graph.
        FailedPreconditionError: a run reads a Variable whose initializer has not run.
        InvalidArgumentError: a run needs a placeholder that is not fed.
        RuntimeError: it is run after `close()`.

    Example:
        >>> graph = jl.Graph()
        >>> with graph.as_default():
        ...     x = jl.placeholder(np.float64, [None])
        ...     y = np.exp(x).sum()
        >>> with jl.Session(graph) as session:
        ...     session.run(y, {x: np.zeros(3)})
        np.float64(3.0)
    """

    LOCKS: ClassVar[dict[str, Any]] = {"_lock": threading.RLock}
    _lock: Any

    def __init__(self, graph: Graph | None = None, config: ConfigProto | None = None, target: str = "") -> None:
        if config is not None and not isinstance(config, ConfigProto):
            raise TypeError(f"config must be a ConfigProto, but got {type(config).__name__}")
        if graph is not None and not hasattr(graph, "capture"):  # a function's graph is run by calls
            raise TypeError(f"graph must be a jl.Graph, but got {type(graph).__name__}")
        self.graph = graph if graph is not None else default_graph()
        self._config = config if config is not None else ConfigProto()
        self.options = Options(clustering=clustering_options(self._config), replays=True, devices=compiling_devices())
        self.sess_str = target
        default_target().prepare("jitlab.api.practice")
        self.name = f"session_{next(_numbers)}"
        self._arrays: dict[int, tuple[Any, np.ndarray[Any, Any]]] = {}  # by the id of a Variable of the graph: it, its value
        self._initialized: set[int] = set()  # the ids of arrays that a run has written
        self._runs: OrderedDict[Any, Run] = OrderedDict()
        self._count = 0
        locks.own(self)
        self._closed = False
        self._entered: list[Any] = []

    # ---- running
    def run(
        self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None, options: Any = None, run_metadata: Any = None
    ) -> Any:
        """The values of operations of the graph.

        Args:
            fetches: a tensor, an operation (it gives None), a Variable or a name, or a list, tuple, namedtuple or dict of them.
            feed_dict: values for placeholders, or in the place of any other tensor: a dict from tensor to array.
            options: RunOptions of `jitlab.compat.tensorflow`; with FULL_TRACE the run is recorded.
            run_metadata: RunMetadata that takes the timeline of a recorded run.

        Returns:
            Arrays, in the form of `fetches`.

        Raises:
            TypeError: a fetch is no part of a graph, or a feed is no array of the tensor's dtype.
            ValueError: a fetch is part of another graph, or a feed has another shape.
            InvalidArgumentError: a placeholder is not fed.
            FailedPreconditionError: a Variable's initializer has not run.
            RuntimeError: the session is closed.
        """
        if self._closed:
            raise RuntimeError("Attempted to use a closed Session.")
        started = time.perf_counter_ns()
        form = mapped(self._element, fetches)
        elements = leaves(form)
        feeds = self._feeds(feed_dict or {})
        with locks.Released(self._lock), self._lock:
            run = self._run_for(elements, list(feeds))
            for step in run.defaults:
                feeds[step.feed] = step.default  # type: ignore[index]
            trace, found = self._performed(run, feeds, elements)
            self._initialized.update(id(trace.inputs[number].value) for number, _ in trace.writes)
        emit_call(trace.name, trace.number, started)
        values = dict(zip(_tensors(elements), found, strict=True))
        return mapped(values.get, form)

    def _performed(self, run: Run, feeds: dict[GraphTensor, Any], elements: list[Any]) -> tuple[Trace, list[Any]]:
        """Run once. Where the data give another shape than when the steps were recorded, they are recorded anew; until then
        nothing has changed."""
        trace, values = self._trace(run, feeds, elements)
        states = trace.states(())
        try:
            return trace, trace.answer((), trace.collect(values), ())
        except NotReplayable:
            set_random_states(states)
            for traces in run.traces.values():
                traces[:] = [known for known in traces if known is not trace]
        trace, values = self._trace(run, feeds, elements)
        return trace, trace.answer((), trace.collect(values), ())

    def _run_for(self, elements: list[Any], feeds: list[GraphTensor]) -> Run:
        key = tuple(map(_identity, elements)), tuple(map(id, feeds)), len(self.graph.capture.all_steps)
        run = self._runs.get(key)
        if run is None:
            run = self._runs[key] = self._planned(elements, feeds)
            while len(self._runs) > config.max_traces:
                self._runs.popitem(last=False)
        self._runs.move_to_end(key)
        return run

    def _planned(self, elements: list[Any], feeds: list[GraphTensor]) -> Run:
        steps, given = needed(self.graph.capture, elements, feeds), set(feeds)
        if any(step.looks_back for step in steps):  # a gradient is one of the whole way, also through what is fed
            whole = needed(self.graph.capture, elements, feeds, whole=True)
            if not any(step.default is None for step in _unfed(whole, given)):
                steps = whole
        defaults = _unfed(steps, given)
        for step in defaults:
            if step.default is None:
                tensor: Any = step.feed
                raise InvalidArgumentError(
                    f"You must feed a value for placeholder tensor '{tensor.op.name}' with dtype {tensor.dtype.name}"
                    + (f" and shape {list(tensor.shape)}" if tensor.shape.rank else ""),
                    why="what is fetched depends on it", hint=f"sess.run(fetches, feed_dict={{{tensor.op.name}: value}})",
                )  # fmt: skip
        check_devices(steps, soft=self._config.allow_soft_placement)
        return Run(steps, defaults, {})

    def check_initialized(self, variable: Any) -> None:
        """A FailedPreconditionError where a Variable of the graph has no value in this Session."""
        if variable._graph is not None and id(self.array_of(variable)) not in self._initialized:
            raise FailedPreconditionError(
                f"Attempting to use uninitialized value {variable.name.partition(':')[0]}",
                why="a Variable of a graph gets its value when its initializer runs in the Session",
                hint="sess.run(jl.global_variables_initializer())",
            )

    def _trace(self, run: Run, feeds: dict[GraphTensor, Any], elements: list[Any]) -> tuple[Trace, list[Any]]:
        """The compiled steps for arrays of these shapes."""
        values = list(feeds.values())
        key, _ = key_of(tuple(values))
        for trace in run.traces.get(key, ()):
            if trace.fits(values):
                return trace, values
        started = time.perf_counter_ns()
        self._count += 1
        made = record(self, self._count, run.steps, feeds, _tensors(elements))
        made.run = compile_trace(made, self.options)
        run.traces.setdefault(key, []).append(made)
        cause = events.Cause.SHAPE if sum(map(len, run.traces.values())) > 1 else events.Cause.FIRST_CALL
        emit_trace(made.name, made.number, Change(cause), [cause], len(made.graph.nodes), started)
        return made, values

    def array_of(self, variable: Any) -> np.ndarray[Any, Any]:
        """Where a Variable is kept."""
        if variable._graph is None:
            return variable.__jitlab_array__()  # type: ignore[no-any-return]
        if id(variable) not in self._arrays:
            self._arrays[id(variable)] = variable, np.zeros(variable.shape, variable.dtype)
        return self._arrays[id(variable)][1]

    # ---- fetches and feeds
    def _element(self, fetch: Any) -> Any:
        if getattr(type(fetch), "__jitlab_variable__", False) is True:
            with self.graph.as_default():
                return _value_of(self.graph, fetch)
        try:
            return self.graph.as_graph_element(fetch)
        except TypeError:
            raise TypeError(
                f"Fetch argument {fetch!r} has invalid type {type(fetch).__name__}, must be a string or Tensor."
                f" (Can not convert a {type(fetch).__name__} into a Tensor or Operation.)"
            ) from None
        except (KeyError, ValueError) as error:
            reason = error.args[0] if error.args else error
            raise ValueError(f"Fetch argument {fetch!r} cannot be interpreted as a Tensor. ({reason})") from None

    def _feeds(self, feed_dict: Mapping[Any, Any]) -> dict[GraphTensor, Any]:
        found: dict[GraphTensor, Any] = {}
        for key, value in feed_dict.items():
            try:
                tensor = self.graph.as_graph_element(key, allow_operation=False)
            except TypeError as error:
                raise TypeError(f"Cannot interpret feed_dict key as Tensor: {error}") from None
            except (KeyError, ValueError) as error:
                raise ValueError(f"Cannot interpret feed_dict key as Tensor: {error.args[0]}") from None
            found[tensor] = _fed(tensor, value)
        return dict(sorted(found.items(), key=lambda item: id(item[0])))

    # ---- blocks
    @contextmanager
    def as_default(self) -> Iterator[Session]:
        """`with sess.as_default():` tensors' `eval()` and operations' `run()` use this Session inside."""
        _stack.sessions.append(self)
        try:
            yield self
        finally:
            _stack.sessions.remove(self)

    def __enter__(self) -> Session:
        blocks = ExitStack()
        if current_graph() is not self.graph:
            blocks.enter_context(self.graph.as_default())
        blocks.enter_context(self.as_default())
        self._entered.append(blocks)
        return self

    def __exit__(self, *error: Any) -> None:
        self._entered.pop().__exit__(*error)
        self.close()

    def close(self) -> None:
        """Its Variables' values and its compiled runs are let go; it cannot run any more."""
        self._closed = True
        self._runs.clear()
        self._arrays.clear()

    def list_devices(self) -> list[Any]:
        """The devices operations can be placed on."""
        from .device_scopes import device_attributes

        return device_attributes()


class _Stack(threading.local):
    def __init__(self) -> None:
        self.sessions: list[Session] = []


_stack = _Stack()


def default_session() -> Session | None:
    """The Session of the block this stands in."""
    return _stack.sessions[-1] if _stack.sessions else None


def _identity(element: Any) -> int:
    return id(element._node) if isinstance(element, OperationView) else id(element)


def _tensors(elements: list[Any]) -> list[GraphTensor]:
    return [*dict.fromkeys(tensors_in(elements))]


def _unfed(steps: list[Step], given: set[GraphTensor]) -> list[Step]:
    """The placeholders among steps that are not fed."""
    return [step for step in steps if step.feed is not None and step.feed not in given]


def _value_of(graph: Graph, variable: Any) -> Any:
    """The tensor that reads a Variable when it is fetched: made once for each graph."""
    known = graph.capture.fetched.get(id(variable))
    if known is not None:
        return known[1]
    finalized, graph.is_finalized = graph.is_finalized, False  # to read is not to modify
    try:
        with graph.name_scope(None):
            tensor = variable.read_value()
    finally:
        graph.is_finalized = finalized
    graph.capture.fetched[id(variable)] = variable, tensor
    return tensor


def _fed(tensor: GraphTensor, value: Any) -> Any:
    """The array for a tensor; what it cannot be is a TypeError or a ValueError."""
    name = tensor.name
    if isinstance(value, GraphTensor) or type(value).__name__ == "Tensor" and hasattr(value, "_cell"):
        raise TypeError(
            f"The value of a feed cannot be a {by_contract('tf.Tensor')} object. Acceptable feed values include Python scalars,"
            " strings, lists, numpy ndarrays, or TensorHandles."
        )
    if getattr(type(value), "__jitlab_variable__", False) is True:
        value = value.numpy()
    if isinstance(value, int) and not isinstance(value, bool) and not _fits(value, tensor.dtype):
        raise TypeError(
            f"Type of feed value {value} with type {type(value)} is not compatible with Tensor type {tensor.dtype.name}."
            " Try explicitly setting the type of the feed tensor to a larger type (e.g. int64)."
        )
    array = np.asarray(value, tensor.dtype)
    dims, shape = tensor.static_shape, array.shape
    if dims is not None and (len(dims) != len(shape) or any(n not in (None, m) for n, m in zip(dims, shape, strict=True))):
        shown = TensorShape(dims)
        raise ValueError(f"Cannot feed value of shape {array.shape!r} for Tensor {name!r}, which has shape {str(shown)!r}")
    return array


def _fits(value: int, dtype: np.dtype[Any]) -> bool:
    try:
        return bool(dtype.type(value) == value)
    except OverflowError:
        return False


__all__ = ["Session", "default_session"]

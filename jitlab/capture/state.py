"""Capture: a recording under way. What converted code loads, stores and calls, and how a recording is taken back."""

from __future__ import annotations

import functools
import types
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import field
from typing import Any

import numpy as np

from jitlab import events
from jitlab.errors import CaptureError, Unfit
from jitlab.ir import Moving, Node, building_nothing, called_at, called_by_nobody, positions, proving, size_facts
from jitlab.ir.size_facts import noting
from jitlab.ops.build_nodes import constant
from jitlab.ops.random_draws import Address
from jitlab.support.address_space import ask_for
from jitlab.support.lazy_dataclass import dataclass
from jitlab.support.transactions import contextmanager

from .control.purity import is_pure
from .control.python_values import python_values
from .drivers.leaving import Given, plain_value
from .effect_log import Memory
from .numpy_calls.draws import begin, is_generator
from .numpy_calls.index_grids import of_grid
from .positions import call_site, describe, here, spans
from .tracers.arrays import Arrays, Input, Place
from .tracers.tensor import Cell, Tensor, current, current_capture, no_value


@contextmanager
def not_recording() -> Iterator[None]:
    """What runs inside runs now, on real arrays."""
    token = current.set(None)
    try:
        with building_nothing():
            yield
    finally:
        current.reset(token)


@dataclass
class Creation:
    """May this recording make Variables? Only the first call of a `function` may."""

    allowed: bool
    refusal: str = ""  # what a user is told when not
    made: list[Any] = field(default_factory=list)
    samples: list[Any] = field(default_factory=list)  # nodes of arguments that have no value yet: they came as TensorSpecs


#: What Python takes for a recording, about: room for its objects.
RECORDING_BYTES = 2 << 20


class _Begun:
    """How many recordings this process has begun, about: threads may count one together."""

    count = 0


begun = _Begun()

#: What `Capture.stored` gives where there is nothing.
NOTHING_STORED: Any = type("NothingStored", (), {})()


class Capture(Arrays):
    """A recording of a program: its arrays, and the names and objects that it finds them by."""

    def __init__(self, name: str, *, strict: bool = False) -> None:
        ask_for(RECORDING_BYTES, f"recording {name}")
        super().__init__(name, strict=strict)
        self.generators: dict[int, tuple[Any, Any]] = {}  # id of a random generator -> itself, the copy that capture draws from
        self.calls_back = False  # it has calls of functions of the user's, as operations
        self.made_calls: list[Any] = []  # those that were made while it was recorded
        self.given = Given()
        self.mine: dict[int, Any] = {}  # containers that the program made: what it puts into them stays inside
        self.instances: dict[int, Any] = {}  # objects that it made
        self.outside: dict[int, Any] = {}  # containers that it found
        self.passed: dict[int, Any] = {}  # by the ids of a call's lists, dicts and objects what stands for them
        self.meets_passed = False  # it found one of them by a name, too
        self.functions: list[Any] = []  # whose converted bodies run, innermost last
        self.memory: Memory | None = None  # of a trace of `function`: what is done to Python once a trace
        self.must_compile = ""  # the function with jit_compile=True that is being recorded, when it is not the whole
        self.creation: Creation | None = None  # of `function`: may Variables be made?
        self.assigned_at: list[tuple[Cell, int, Node]] = []  # Variables assigned: before which node, and their value until then
        self.variables: dict[int, Any] = {}  # the Variables it read or wrote, by the id of their array

    @contextmanager
    def recording(self) -> Iterator[Capture]:
        """Tensor operations inside are added to this capture's graph."""
        token = current.set(self)
        begun.count += 1
        try:
            with (
                events.busy, self.graph.building(), positions(here), proving(self.bounds),
                called_by_nobody(self.root.deciding), noting(size_facts.here.facts),
            ):  # fmt: skip
                yield self
        except Exception as error:
            self.given.raised(error)
            if self.made_calls:
                vars(error)["_jitlab_made"] = tuple(self.made_calls)  # its class may refuse attributes
            raise
        finally:
            self.given.settle(self.outside.values())
            for known in (self.mine, self.instances, self.outside):
                known.clear()
            current.reset(token)

    def close(self) -> None:
        """From now on its Tensors are out of scope."""
        self.is_open = False
        self.values.clear()

    # ---- loads and stores of converted code
    @contextmanager
    def inside(self, function: Any) -> Iterator[None]:
        """The function whose converted body runs: where its names are found."""
        site = call_site() if self.functions or self.policy.begins_in_text else None
        self.functions.append(function)
        self.given.entered(function)
        try:
            with called_at(site), nullcontext() if self.memory is None else self.memory.entering(function):
                yield
        finally:
            self.functions.pop()

    def load_name(self, value: Any, name: str) -> Any:
        """A global or closure name was read."""
        if self.memory is not None and self.functions:
            value = self.memory.name(self.functions[-1], name, value)
        if not isinstance(value, (np.ndarray, np.generic)):
            self.note_outside(value)
            return value
        return self.value(value, name, self.name_binding(name))

    def name_binding(self, name: str) -> Place | None:
        if not self.functions:
            return None
        function = self.functions[-1]
        if name in function.__code__.co_freevars:
            cell = function.__closure__[function.__code__.co_freevars.index(name)]
            return Place(name, lambda: cell.cell_contents, "closure")
        namespace = function.__globals__
        return Place(name, lambda: namespace.get(name), "global")

    def load_attribute(self, value: Any, owner: Any, name: str) -> Any:
        found = value
        if self.memory is not None:
            value = self.memory.attribute(owner, name, value)
        if not isinstance(value, (np.ndarray, np.generic)):
            if id(owner) not in self.instances:
                self.note_outside(value)
            return value
        text = f"{type(owner).__name__}.{name}"
        is_passed = self.passed and any(owner is x for x in self.passed.values())
        if is_passed or getattr(owner, name, None) is not found:  # nothing that could be bound anew
            return self.value(value, text)
        return self.value(value, text, Place(text, _attribute_reader(owner, name), "attribute"))

    def load_property(self, getter: Any, owner: Any, name: str) -> Any:
        """An attribute that a function of the user's gives: an array may be another one at each access."""
        value = getattr(owner, name)
        if self.memory is not None and isinstance(value, (np.ndarray, np.generic)):
            return self.value(value, f"{type(owner).__name__}.{name}")
        if self.memory is not None and self.memory.has_stored(owner):
            return value
        return self.load_attribute(value, owner, name)

    def load_item(self, owner: Any, key: Any) -> Any:
        if type(owner) is np.ndarray:
            owner = self.value(owner)
        found = of_grid(self, owner, key)
        if found is not NotImplemented:
            return found
        check_key(owner, key)
        value = owner[key]
        if self.memory is not None:
            self.memory.item(owner, value)
        return self.value(value)

    def iterate(self, iterable: Any) -> Iterator[Any]:
        return map(self.deep_value, iterable)

    def place(self, owner: Any) -> Any:
        """What stores into a Python object go through."""
        return Stores(self, owner)

    def unload(self, value: Any) -> Any:
        """What is stored into a Python object for a value of the program: an input's own object for its Tensor."""
        if isinstance(value, Tensor) and value._cell.input is not None and not value._path and value._cell.capture is self:
            return value._cell.input.value
        return self.given.value(value)

    def found_in(self, table: Mapping[str, Any], name: str, value: Any, text: str) -> None:
        """A function, class, flag or text was found under a name of the module (or class) that `text` says."""

    def callable_found(self, value: Any, owner: Any, name: str) -> Any:
        """What can be called was found under a name of a module, class or object; what it is inside the capture."""
        return value

    def lacks(self, owner: Any, name: str) -> None:
        """An attribute was looked for that is not there."""

    def before_handler(self, error: Exception) -> None:
        """The program may catch what was raised."""

    def before_text(self, x: Any) -> None:
        """Text is about to be made of an object."""

    def before_compare(self, sign: str, left: Any, right: Any) -> None:
        """Two objects are about to be compared."""

    def parts_of(self, function: functools.partial[Any]) -> tuple[Sequence[Any], Mapping[str, Any]]:
        """What a partial function was given."""
        return function.args, function.keywords

    def with_defaults(
        self, function: types.FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a call of converted code, with those defaults that it must not find by itself."""
        return args, kwargs

    def lookup(self, name: str) -> Any:
        raise NameError(f"name {name!r} is not defined")

    def variable(self, name: str) -> Any:
        """What a name of a cell holds that a loop binds."""
        raise NameError(f"name {name!r} is not defined")

    def bind(self, name: str, value: Any) -> None:
        """A loop of a cell has bound a name."""
        raise NameError(f"name {name!r} is not defined")

    def made(self, container: Any) -> Any:
        """The program made a list, dict or set."""
        self.mine[id(container)] = container
        return container

    def new_object(self, kind: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """An object of a class of the program's, made by code that is recorded; None: its class is called as it is."""
        return None

    def note_outside(self, value: Any) -> None:
        """A container from outside, and those in it."""
        self.meets_passed = self.meets_passed or id(value) in self.passed
        if isinstance(value, (list, tuple, dict, set, deque)) and id(value) not in self.outside:
            self.outside[id(value)] = value
            for item in value.values() if isinstance(value, dict) else value:
                self.note_outside(item)

    def is_own(self, owner: Any) -> bool:
        if id(owner) in self.mine or id(owner) in self.instances:
            return True
        return isinstance(owner, (list, dict, set)) and id(owner) not in self.outside

    # ---- calls of converted code
    def before_call(self, function: Any) -> None:
        """A function of the user's comes next, converted."""
        self.effects.before_assigning(self, function, self.memory)

    def before_own_call(self, function: Any) -> None:
        """A function that the program made comes next."""
        self.effects.before_assigning(self, function, self.memory)

    def loop_refused(self, count: int, why: Unfit) -> None:
        """A loop over a Python range cannot be rolled; when this returns, its iterations are recorded one by one."""

    def before_inline(self, function: Any) -> None:
        """A `jl.function` is called while this is recorded."""

    def naming(self, name: str | None) -> AbstractContextManager[Any]:
        """The next action's operation is called so, in a graph of the user's."""
        return nullcontext()

    def gradient_scope(self, name: str) -> AbstractContextManager[str]:
        """What the scopes of a `gradients` call are called after."""
        return nullcontext(name)

    def differentiable(self, x: Any) -> Any:
        """What is differentiated with respect to: a Tensor, for a Variable the one that all its reads come from."""
        return self.handle_tensor(x) if getattr(type(x), "__jitlab_variable__", False) is True else self.value(x)

    def constant_tensor(self, array: np.ndarray[Any, Any]) -> Tensor:
        """An array of the program as a value of the graph."""
        return Tensor(Cell(self, constant(array)), is_scalar=not array.ndim)

    def known(self, x: Tensor) -> Any:
        """The value of a tensor that is made of sizes and constants alone, None for others. A recording holds for its sizes."""
        found: dict[Node, Any] = {}

        def value(node: Node) -> Any:
            if node not in found:
                if node.op.is_parameter or node.op.has_effects or hasattr(node.op, "graphs") or hasattr(node.op, "symbol"):
                    return None
                if any(isinstance(n, Moving) for n in (*node.shape, getattr(node.op, "extent", 0))):
                    return None
                inputs = [value(source) for source in node.inputs]
                found[node] = None if any(item is None for item in inputs) else node.op.numpy(*inputs)
            return found[node]

        return value(x.node())

    def guessed_results(self, dtypes: Sequence[np.dtype[Any]]) -> list[Any] | None:
        """Arrays that stand for the results of a Python function, where it is not called while it is recorded."""
        return None

    def cannot_keep(self, what: str) -> Exception:
        """What ends a recording whose result would be `what`."""
        return CaptureError(
            f"{self.name} gives {what}, which means nothing when its recording has ended.", where=describe(here()),
            why="what a call gives back is made from the recorded operations' results", hint="return a number or an array",
        )  # fmt: skip

    def before_write(self, cell: Cell) -> None:
        super().before_write(cell)
        if cell.input is not None and self.graph is self.root and id(cell.input.value) in self.variables:
            self.assigned_at.append((cell, len(self.root.nodes), cell.node))

    def last_operation(self) -> Any:
        """What an operation that is run for its effect gives."""
        return None

    # ---- Variables
    def make_variable(self, variable: Any, initial_value: Any, dtype: Any) -> bool:
        """A Variable is made: True where this holds its value, and not the Variable itself."""
        return False

    def is_known_shape(self, value: Any) -> bool:
        """Is the shape of a value what every run will find?"""
        return True

    def handle_tensor(self, variable: Any) -> Any:
        """The tensor of a Variable's array, that all its reads come from."""
        if variable._graph is not None:
            raise CaptureError(
                f"{variable.name} is a Variable of a graph, and has a value in a Session only.",
                where=describe(here()), hint="make the Variable outside of the graph",
            )  # fmt: skip
        array = variable.__jitlab_array__()
        self.variables.setdefault(id(array), variable)
        return self.value(array, variable.name)

    def read_variable(self, variable: Any) -> Any:
        """The value of a Variable here."""
        tensor = self.handle_tensor(variable)
        return Tensor(Cell(self, tensor.node()), is_scalar=tensor.ndim == 0)

    def assign_variable(self, variable: Any, value: Any) -> Any:
        """Give a Variable a value of its shape; what it holds then is given back."""
        self.handle_tensor(variable)[...] = value
        return self.read_variable(variable)

    def receiver(self, name: str) -> Any:
        """A container under a name that is not local, to which the program gives something."""

    def check_passed(self, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """A call comes next, while containers that only get something are among the arguments of the program."""

    def is_given(self, x: list[Any]) -> None:
        """A list of the program's own is given to code that may keep it."""

    def rows_of(self, x: list[Any]) -> list[Any]:
        """What was appended to a list of the program's own, and is not yet in it."""
        return []

    def listed(self, x: Any) -> Any:
        """A list that the program has made, where it looks into it."""
        return x

    def gives_out(self, what: tuple[Any, ...], builtins: tuple[Any, ...], receiver: Any) -> Any:
        """Who may put a statement off that only gives something out; None: it is done now, as any other."""
        return None

    @contextmanager
    def putting_nothing_off(self) -> Iterator[None]:
        """What prints or stores inside does not wait."""
        self.at_once += 1
        try:
            yield
        finally:
            self.at_once -= 1

    def stored(self, owner: Any, name: str) -> Any:
        """What the program has put under an attribute, where that is done later."""
        return NOTHING_STORED

    def effect(self, function: Any, owner: Any) -> None:
        """A call that may have effects on Python objects comes next. While a function is traced it happens now, once."""

    def handed(
        self, function: Any, owner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a call of code that is not captured, which may keep them."""
        module = getattr(function, "__module__", None) or type(owner).__module__
        if id(owner) in self.mine or is_pure(function, owner) or module.split(".")[0] == "jitlab":
            return args, kwargs
        return self.given.call(args, kwargs)

    def before_iteration(self, x: Any) -> None:
        """Python is about to iterate over an object, unless it is a number."""

    def before_builtin(self, builtin: Any, args: Sequence[Any]) -> None:
        """A builtin without effects of its own comes next."""

    def number(self, kind: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """float(x), int(x), ... in the program."""
        return kind(*args, **kwargs)

    def python_values(self, x: Tensor, method: str, *args: Any) -> Any:
        """Numbers that only a run knows, where the program may have those."""
        found = python_values(x, method, *args) if self.is_open else NotImplemented
        return super().python_values(x, method, *args) if found is NotImplemented else found

    def pure_number(self, function: Any, args: Sequence[Any]) -> Any:
        """A function without effects of such numbers."""
        return function(*args)

    def call_on_values(self, function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """A NumPy function of Python values alone; it may call functions of the user's with them."""
        args, kwargs = self.given.call(args, kwargs)
        result = function(*args, **kwargs)
        if is_generator(result):
            return begin(self, result, function, args, kwargs)
        return result

    def address(self, generator: Any) -> Tensor | None:
        """The address of a random generator, that draws from it take and give; None where they are NumPy's, each by itself."""
        return None

    def has_input(self, generator: Any) -> bool:
        """Is a random generator one of those that each run finds anew?"""
        return any(type(x.value) is Address and x.value.generator is generator for x in self.inputs)

    def note_frozen(self, what: str) -> None:
        """NumPy work on no traced array ran now, once."""
        if events.active() and not (self.memory is not None and self.memory.silent):
            events.send(events.ValueFrozen(function=self.name, what=what, lines=spans(here())))

    def text(self, x: Tensor) -> str:
        if self.memory is None:
            return self.shown(x)
        shape = tuple(map(int, x.shape))  # as the contract's examples show it
        return f'Tensor("{x._cell.node.name}:0", shape={shape}, dtype={x.dtype.name})'

    # ---- rollback
    def mark(self) -> Any:
        """A point to roll back to."""
        graph = self.graph
        ends = len(graph.nodes), len(self.inputs), len(self.journal), len(self.guards), len(self.loops), len(self.root.deciding)
        return ends, self.bounds.state(), (dict(graph._names), list(graph.scopes), graph.scope_count)

    def rollback(self, mark: Any) -> None:
        """Forget everything since `mark`: nodes, inputs, writes."""
        graph, ((nodes, inputs, journal, guards, loops, deciding), bounds, names) = self.graph, mark
        while len(self.journal) > journal:
            put_back, *before = self.journal.pop()
            put_back(*before)
        del self.guards[guards:]
        gone = set(graph.nodes[nodes:])
        del graph.nodes[nodes:]
        for input in self.inputs[inputs:]:
            self.root.parameters.remove(input.node)
            gone.add(input.node)
            if self.captured.get(id(input.value)) is input:
                del self.captured[id(input.value)]
        del self.inputs[inputs:]
        self.assigned_at = [entry for entry in self.assigned_at if entry[1] <= nodes]
        for block in self.blocks:
            for node in gone & block.graph.captures.keys():
                del block.graph.captures[node]
        for node in [node for node in self.values if node in gone]:
            del self.values[node]
        self.bounds.restore(bounds)
        del self.loops[loops:], self.root.deciding[deciding:]
        graph._names, graph.scopes, graph.scope_count = names


def check_key(owner: Any, key: Any) -> None:
    """A dict finds by value, and a traced array has none."""
    if isinstance(owner, dict):
        for part in _parts(key):
            if isinstance(part, Tensor):
                raise no_value(part, "a use as the key of a dict")


def _parts(key: Any) -> Any:
    return key if isinstance(key, tuple) else (key,)


class Stores:
    """A Python object while the program stores into it: what it holds comes out as Tensors, inputs go back as themselves."""

    __slots__ = ("_capture", "_owner")

    def __init__(self, capture: Capture, owner: Any) -> None:
        object.__setattr__(self, "_capture", capture)
        object.__setattr__(self, "_owner", owner)

    def __getattr__(self, name: str) -> Any:
        found = self._capture.load_attribute(getattr(self._owner, name), self._owner, name)
        self._capture.effects.before_filling(self._capture, found)  # only `owner.name op= v` reads here
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        self._before_store(name)
        setattr(self._owner, name, self._capture.unload(value))

    def __delattr__(self, name: str) -> None:
        self._before_store(name)
        delattr(self._owner, name)

    def _before_store(self, name: str) -> None:
        self._capture.effects.before_store(self._capture, self._owner, name, is_item=False)
        if self._capture.memory is not None:
            self._capture.memory.before_store(self._owner, name)

    def __getitem__(self, key: Any) -> Any:
        found = self._capture.load_item(self._owner, key)
        self._capture.effects.before_filling(self._capture, found)
        return found

    def __setitem__(self, key: Any, value: Any) -> None:
        self._capture.effects.before_store(self._capture, self._owner, key, is_item=True)
        if id(self._owner) in self._capture.mine:
            self._owner[key] = value
        else:
            self._owner[plain_value(key)] = self._capture.unload(value)

    def __delitem__(self, key: Any) -> None:
        self._capture.effects.before_store(self._capture, self._owner, key, is_item=True)
        del self._owner[key]


def _attribute_reader(owner: Any, name: str) -> Callable[[], Any]:
    """Reads an attribute without keeping its owner alive."""
    try:
        reference = weakref.ref(owner)
    except TypeError:
        return lambda: getattr(owner, name, None)
    return lambda: getattr(reference(), name, None)


__all__ = ["Capture", "Creation", "Input", "Stores", "current_capture", "not_recording"]

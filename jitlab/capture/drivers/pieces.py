"""Pieces: consecutive statements of a cell captured together, what they read and assign, and what makes them end."""

from __future__ import annotations

import builtins
import sys
import types
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from jitlab.capture.control.blocks import Again
from jitlab.capture.control.iterables import Counting
from jitlab.capture.control.purity import (
    BY_VALUE,
    ITERABLES,
    PLAIN_OPERANDS,
    assigns_outside,
    calls_back,
    fills,
    is_of_objects,
    is_of_state,
    is_pure,
)
from jitlab.capture.effect_log import restored
from jitlab.capture.effort import ITEM_NS, TOO_MUCH, here
from jitlab.capture.guards.changes import Leaf, number_of
from jitlab.capture.guards.gathering import Absent, Attributes
from jitlab.capture.guards.leaves import UNDEFINED
from jitlab.capture.guards.objects import ObjectsOfTheUser, only_plain
from jitlab.capture.hooks import HOOKS, call_user, has_tensor
from jitlab.capture.numpy_calls.explanations import is_our_fault, said_of
from jitlab.capture.numpy_calls.host_fallback import NotReplayable, effect_of
from jitlab.capture.numpy_calls.index_grids import of_grid
from jitlab.capture.numpy_calls.numpy_traits import ReflectedUfunc, a_kind, full_name, lender
from jitlab.capture.positions import uncaptured_frame
from jitlab.capture.refusals import line_of
from jitlab.capture.rewrite.flow_rewrite import EFFECT, GIVEN, HOOK, LOOP
from jitlab.capture.rewrite.handlers import refused_in
from jitlab.capture.rewrite.staleness import may_be_reloaded
from jitlab.capture.state import NOTHING_STORED, check_key
from jitlab.capture.tracers.arrays import Input, Place, Policy
from jitlab.capture.tracers.flat import Flat
from jitlab.capture.tracers.indices import has_number, index_now, index_text
from jitlab.capture.tracers.number import Number, as_known, derived
from jitlab.capture.tracers.tensor import Cell, Tensor, current
from jitlab.errors import JitlabError, ShapeError, Signal
from jitlab.ir import TRACED_DTYPES, Extent, Source
from jitlab.ops.random_draws import is_state
from jitlab.support.containers import CONTAINERS, of_items
from jitlab.support.later import Later
from jitlab.support.transactions import contextmanager

from .piece_traces import (
    RECEIVING,
    CellStructure,
    EndPiece,
    MovingView,
    Namespace,
    PieceTrace,
    Receiver,
    StaticNeeded,
    StoresOutside,
    under,
)
from .trace import Run, Trace

if TYPE_CHECKING:
    from jitlab.capture.rewrite.piece_statements import Statement
    from jitlab.capture.tracers import filled_lists

    from . import put_off
else:  # for programs that print or store
    put_off, filled_lists = Later(f"{__package__}.put_off"), Later("jitlab.capture.tracers.filled_lists")

Executor = Callable[[Trace], Run]

#: Traces of one piece, or of calls of one kind, after which it runs as Python: it changes more often than it repeats.
MOST_TRACES = 16

_ADDED = frozenset({LOOP, EFFECT, GIVEN})

#: The modules that run what is captured: what is above them on the stack is not.
_DRIVERS = frozenset(f"jitlab.capture.drivers.{name}" for name in ("driver", "cells", "function_body", "calls", "pieces"))

MISSING: Any = type("Missing", (), {"__repr__": lambda self: "<nothing>"})()


class CellCapture(ObjectsOfTheUser):
    """A capture whose names are looked up in the user's namespace and in what the piece has assigned so far."""

    policy = Policy(
        "--strict", "a traced array", may_draw=False, wants_bools=False, keeps_kinds=True, keeps_scalars=True,
        records_handlers=False, begins_in_text=True,
    )  # fmt: skip
    trace_class: type[PieceTrace] = PieceTrace
    own_functions = 0  # that run around each statement

    def __init__(self, name: str, namespace: Namespace, *, strict: bool, static: bool) -> None:
        super().__init__(name, strict=strict)
        self.namespace = namespace
        self.static = static
        self.assigned: dict[str, Any] = {}
        self.attributes: dict[str, Attributes] = {}  # what modules and classes gave, by their names
        self.defaults: dict[types.FunctionType, tuple[Any, Any]] = {}  # of functions that were called
        self.function_names: dict[Any, str] = {}
        self.number_guards: dict[str, Number] = {}
        self.computed: dict[int, Number] = {}  # id of an input -> the number it takes at a run
        self.scalars: dict[tuple[str, np.dtype[Any]], Tensor] = {}
        self.moving: dict[str, MovingView] = {}
        self.made_now: dict[int, Any] = {}  # containers that this statement made: it may change them
        self.helper: Any = None  # a function that a statement called, in which what was captured last ended
        self.effort = here.effort
        self.putting: put_off.PutOff | None = None  # what is given out when it has run
        self.loop: Statement | None = None  # of a cell, of which a run may be gone through once more
        self.errors = np.geterr()  # as they are around it
        self.is_simple = True  # what is captured is a statement without others in it, or a whole call

    def spend(self, ns: int) -> None:
        if self.effort is not None:
            self.effort.left -= ns
            if self.effort.is_spent:
                self.refused = NotReplayable(*TOO_MUCH)  # the program may catch it
                raise self.refused

    @contextmanager
    def inside(self, function: Any) -> Iterator[None]:
        with super().inside(function):
            try:
                yield
            except Again:  # nothing has ended
                raise
            except Exception:
                if len(self.functions) == self.own_functions + 1:
                    self.helper = function
                raise

    def structure(self) -> CellStructure:
        """What gives the piece's results their form."""
        return CellStructure(self)

    def shown(self, x: Tensor) -> str:
        if self.is_open and current.get() is self:
            raise EndPiece("value", "makes_text", what="an array")
        return super().shown(x)

    def finished(self, trace: PieceTrace, structure: CellStructure) -> None:
        """The trace of this capture was made."""

    def forget(self) -> None:
        """The capture has ended, and its trace keeps it: nothing of a caller's stays alive."""
        for place in (*self.places.values(), *(read.place for read in self.reads.values())):
            place.forget()
        containers = self.mirrors, self.found_at, self.copied, self.made_now, self.places
        if self.putting is not None:
            self.putting.rollback(None)
        self.effects.undo.clear()
        for kept in (self.keep, self.found, self.reads, self.assigned, *containers):
            kept.clear()

    def cannot_keep(self, what: str) -> Exception:
        return EndPiece("value", "keeps", what=what)

    def foreign(self, x: Any) -> Exception:
        return EndPiece("foreign_type", "works_on", kind=full_name(type(x)))

    # ---- names
    def lookup(self, name: str) -> Any:
        """A name of the cell."""
        if name in self.assigned:
            return self.assigned[name]
        if name in self.namespace:
            return self.read(self.namespace, name, lambda: self.namespace[name])
        if hasattr(builtins, name):
            self.means_builtin(self.namespace, name)
            return getattr(builtins, name)
        raise NameError(f"name {name!r} is not defined")

    def variable(self, name: str) -> Any:
        """What a name of the cell holds that a loop binds; UNDEFINED for nothing."""
        return self.lookup(name) if name in self.assigned or name in self.namespace else UNDEFINED

    def bind(self, name: str, value: Any) -> None:
        if value is UNDEFINED:
            raise EndPiece("effect", "deletes", name=name)
        self.assigned[name] = value

    def load_name(self, value: Any, name: str) -> Any:
        function = self.functions[-1] if self.functions else None
        if function is None:
            return self.lookup(name)
        if name in function.__code__.co_freevars:
            cell = function.__closure__[function.__code__.co_freevars.index(name)]
            return self.read(cell, name, lambda: cell.cell_contents, "closure")
        if function.__globals__ is self.namespace:
            return self.lookup(name)
        table = function.__globals__
        if name in table:
            return self.read(table, name, lambda: table[name])
        self.means_builtin(table, name)
        return value

    def load_attribute(self, value: Any, owner: Any, name: str) -> Any:
        is_known = isinstance(value, (Tensor, Number, Extent, types.ModuleType))
        if is_known or isinstance(owner, (Tensor, Number)):
            if id(owner) in self.instances:
                self.found_in_class(owner, name)
            return value
        if callable(value):
            return self.callable_found(value, owner, name)
        if id(owner) in self.instances and (base := self.found_in_class(owner, name)) is not None:
            return self.load_attribute(value, base, name)
        if id(owner) in self.made_now or (isinstance(owner, tuple) and hasattr(owner, "_fields")):
            return value
        if is_state(owner, name):
            raise EndPiece("effect", "reads_state")
        text = f"{getattr(owner, '__name__', type(owner).__name__)}.{name}"
        return self.read(owner, name, lambda: getattr(owner, name), "attribute", text)

    def found_in_class(self, owner: Any, name: str) -> type | None:
        """The class that gives an object of the program's own an attribute; None where it is the object's."""
        kind = type(owner)
        base = class_that_has(kind, name)
        is_own = name in getattr(owner, "__dict__", ())
        for nearer in kind.__mro__[: -1 if base is None or is_own else kind.__mro__.index(base)]:
            if name not in vars(nearer):
                self.inherits(nearer, name)
        if base is None or is_own or hasattr(vars(base)[name], "__set__"):
            if base is not None:
                self.found_in(vars(base), name, vars(base)[name], f"{base.__module__}.{base.__qualname__}")
            return None
        return base

    def found_in(self, table: Mapping[str, Any], name: str, value: Any, text: str) -> None:
        if table.get(name) is value:
            self.attributes.setdefault(text, Attributes(table, {}, text)).values[name] = value

    def lacks(self, owner: Any, name: str) -> None:
        if id(owner) in self.instances:
            for base in type(owner).__mro__[:-1]:
                self.inherits(base, name)
        else:
            super().lacks(owner, name)

    def means_builtin(self, table: Mapping[str, Any], name: str) -> None:
        """A name of the program's stands for Python's own, as long as nothing else is assigned to it."""
        self.keep.append(table)
        self.attributes.setdefault(f"names {id(table)}", Attributes(table, {}, "")).values[name] = Absent.NAME

    def inherits(self, kind: type, name: str) -> None:
        """A class has a name of another one's, or none, as long as it gets none of its own."""
        self.keep.append(kind)
        self.attributes.setdefault(f"names {id(kind)}", Attributes(vars(kind), {}, "")).values[name] = Absent.NAME

    def callable_found(self, value: Any, owner: Any, name: str) -> Any:
        is_made, is_object = id(owner) in self.made_now, id(owner) in self.instances
        if isinstance(owner, (Tensor, Number)) or (is_made and not is_object):
            return value
        if isinstance(owner, types.ModuleType):
            self.found_in(vars(owner), name, value, owner.__name__)
            return value
        own = None if isinstance(owner, type) else getattr(owner, "__dict__", None)
        text = f"{getattr(owner, '__name__', type(owner).__name__)}.{name}"
        if own and name in own:
            if is_object:
                self.found_in_class(owner, name)
                return value
            return self.read(owner, name, lambda: getattr(owner, name), "attribute", text)
        kind = owner if isinstance(owner, type) else type(owner)
        base = class_that_has(kind, name)
        if base is not None:
            for derived in kind.__mro__[: kind.__mro__.index(base)]:
                self.inherits(derived, name)
            self.found_in(vars(base), name, vars(base)[name], f"{base.__module__}.{base.__qualname__}")
            if own is not None and (place := self.place_of(owner)) is not None and not hasattr(vars(base)[name], "__set__"):
                self.keep.append(owner)  # it may get one of its own
                self._depend((id(owner), f"own {name}"), Leaf(text, "object", "its class's"), place, "not own", (name,))
        return value

    def load_item(self, owner: Any, key: Any) -> Any:
        if isinstance(owner, (Tensor, Flat)) or (self.has_lists and isinstance(owner, filled_lists.FilledList)):
            return owner[key]
        self.spend(ITEM_NS)
        if type(owner) is np.ndarray or hasattr(owner, "__jitlab_tensor__"):
            return self.value(owner)[key]
        found = of_grid(self, owner, key)
        if found is not NotImplemented:
            return found
        if isinstance(key, Number):
            key = key.known()
        if not isinstance(owner, (list, tuple, dict, str, bytes, range)):
            raise EndPiece("foreign_type", "subscripted", owner=a_kind(owner))
        check_key(owner, key)
        return self.value(owner[key])

    # ---- what is only given out
    def receiver(self, name: str) -> Any:
        function = self.functions[-1] if self.functions else None
        if function is not None and name in function.__code__.co_freevars:
            table: Any = function.__closure__[function.__code__.co_freevars.index(name)]
            value, code = table.cell_contents, f"{self.constants.name(table)}.cell_contents"
        else:
            table = self.namespace if function is None else function.__globals__
            if table is self.namespace and name in self.assigned:
                return self.assigned[name]
            value, code = table.get(name), self.code_in(table, name)
        if type(value) not in RECEIVING:
            return self.lookup(name) if function is None else self.load_name(value, name)
        return self.received_under((id(table), f"receiver {name}"), Receiver(value, Place(code, lambda: value), name))

    def received_under(self, key: tuple[int, str], receiver: Receiver) -> Receiver:
        """A container that gets something: the trace holds for others of its type."""
        self.keep.append(receiver.value)
        kind = type(receiver.value)
        leaf = Leaf(receiver.text, "object", f"{kind.__name__} object", value=kind)
        self._depend(key, leaf, receiver.place, "typed", (kind,))
        return receiver

    def gives_out(self, what: tuple[Any, ...], builtins_found: tuple[Any, ...], receiver: Any) -> Any:
        told = put_off.Told(*what)
        means_builtins = all(x is getattr(builtins, name) for x, name in zip(builtins_found, told.builtins, strict=True))
        may = not (self.at_once or self.in_numpy or self.calls_back) and means_builtins
        if told.own and type(receiver) in (list, dict) and self.is_own_list(receiver, is_returned=told.own[0]):
            return self.gives_own(told, receiver, may)
        in_helper = len(self.functions) > self.own_functions
        may_go = self.is_simple or in_helper or (self.loop is not None and told.kind != "attribute")
        if may and may_go:
            self.putting = self.putting or put_off.PutOff(self)
            token = self.putting.token(told, receiver)
            if token is not None:
                return token
        if isinstance(receiver, Receiver):
            self.effects.before_call(self, list.append, receiver.value)
            raise EndPiece("effect", "stores", owner=a_kind(receiver.value))
        return None

    def gives_own(self, told: put_off.Told, receiver: Any, may: bool) -> Any:
        """The same for a list or dict that the call makes."""
        if may and (self.blocks or self.is_filled(receiver)):
            self.putting = self.putting or put_off.PutOff(self)
            if (token := self.putting.of_own_list(told, receiver)) is not None:
                return token
        if self.is_filled(receiver):
            raise EndPiece("effect", "reads_given", owner=a_kind(receiver))
        found = under(receiver, told.keys)  # a turn may be traced again, in a loop
        self.effects.undo.append(partial(_shorten, found, len(found)) if type(found) is list else restored(receiver))
        return None

    def is_own_list(self, x: list[Any], *, is_returned: bool) -> bool:
        """Is it a list that a function has made, outside of loops and branches, the outermost one where that gives it?"""
        return False

    def is_filled(self, x: list[Any]) -> bool:
        return self.putting is not None and id(x) in self.putting.filled

    def rows_of(self, x: list[Any]) -> list[Any]:
        """What loops have appended to a list, and who came after them."""
        return [] if self.putting is None else self.putting.rows_of(x)

    def listed(self, x: Any) -> Any:
        if type(x) is not list or not self.is_own_list(x, is_returned=False):
            return x
        self.has_lists = True
        return filled_lists.FilledList(self, x)

    def before_leaving(self, x: Any) -> None:
        if self.putting is not None:
            self.putting.before_leaving(x)

    def stored(self, owner: Any, name: str) -> Any:
        return NOTHING_STORED if self.putting is None else self.putting.value_of(owner, name)

    def read_container(self, key: tuple[int, str], text: str, place: Place, value: Any) -> Any:
        if self.putting is not None:
            self.putting.before_reading(value)
        return super().read_container(key, text, place, value)

    # ---- stores and effects
    def place(self, owner: Any) -> Any:
        if id(owner) in self.made_now:
            return super().place(owner)
        raise StoresOutside("effect", "stores", owner=a_kind(owner))

    def made(self, container: Any) -> Any:
        self.made_now[id(container)] = container
        return container

    def is_own(self, owner: Any) -> bool:
        return id(owner) in self.made_now

    def effect(self, function: Any, owner: Any) -> None:
        if id(owner) in self.made_now or is_pure(function, owner):
            return
        name = getattr(function, "__qualname__", type(function).__name__)
        raise EndPiece("effect", effect_of(name))

    def handed(
        self, function: Any, owner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """What keeps arguments ends the piece, and what asks objects for something, or one that holds more than it is told."""
        if not any(map(has_tensor, (*args, *kwargs.values()))) and is_of_state(function, owner):
            raise EndPiece("effect", effect_of(getattr(function, "__qualname__", type(function).__name__)))
        if fills(function, owner):
            for x in args:
                self.before_iteration(x)
        if is_of_objects(function, owner):
            name = getattr(function, "__name__", type(function).__name__)
            for x in (*args, *kwargs.values()):
                if not only_plain(x):
                    raise EndPiece("effect", "pythons", name=name, of=a_kind(x))
        return args, kwargs

    def before_call(self, function: Any) -> None:
        """A function of the user's is about to run converted: it may assign no global or outer name."""
        self.before_own_call(function)
        row, line = refused_in(function)
        if row:
            source = Source(function.__code__.co_filename, line, -1, line, -1)
            raise EndPiece("statement", "has_try", source, name=function.__name__, line=line)
        if function.__defaults__ or function.__kwdefaults__:
            self.defaults[function] = function.__defaults__, dict(function.__kwdefaults__ or {}) or None
        if may_be_reloaded(function) and "<locals>" not in function.__qualname__:
            self._depend_on_code(function)

    def before_own_call(self, function: Any) -> None:
        """A name that it shares with others would be read as it was when the piece first met it."""
        code = function.__code__
        name, line = assigns_outside(code)
        if name:
            source = Source(code.co_filename, line, -1, line, -1)
            raise EndPiece("effect", "function_assigns", source, function=function.__name__, name=name)

    def _depend_on_code(self, function: types.FunctionType) -> None:
        """A module that is loaded again has another function under the name, or gives this one another code."""
        table, name, code = function.__globals__, function.__name__, function.__code__
        is_named = table.get(name) is function  # else a method: only its code can change
        key = (id(table if is_named else function), name)
        if key not in self.reads:
            self.keep.append(table)
            place = Place(self.code_in(table, name) if is_named else self.constants.name(function), partial(_itself, function))
            leaf = Leaf(f"{function.__module__}.{function.__qualname__}", "object", "function object", value=number_of(code))
            self._depend(key, leaf, place, "same", (function, code))

    def before_handler(self, error: Exception) -> None:
        """No handler is recorded, and none catches what ends the piece."""
        if isinstance(error, (Signal, RecursionError, MemoryError)) or is_our_fault(error):
            raise error
        if isinstance(error, JitlabError) and not isinstance(error, ShapeError):
            raise error
        raise EndPiece("error", "in_try", line_of(error), what=said_of(error)) from error

    def unload(self, value: Any) -> Any:
        return value

    def before_inline(self, function: Any) -> None:
        raise EndPiece("compiled_function", "by_itself", name=function.name)

    def iterate(self, iterable: Any) -> Iterator[Any]:
        if not isinstance(iterable, ITERABLES):
            raise EndPiece("effect", "iterates", what=f"a {type(iterable).__name__}")
        return super().iterate(iterable)

    def load_property(self, getter: Any, owner: Any, name: str) -> Any:
        if getattr(getter, "__name__", "") == "__getattr__":
            if name in getattr(owner, "__dict__", ()):
                return self.load_attribute(getattr(owner, name), owner, name)
            raise EndPiece("effect", "makes_attributes", owner=a_kind(owner))
        return call_user(self, getter, (owner,), {})

    def before_builtin(self, builtin: Any, args: Sequence[Any]) -> None:
        for x in args:
            as_text = builtin in (str, repr, format)
            plain = (Tensor, Number, Extent, *PLAIN_OPERANDS, *([] if builtin is next else [Counting]))
            if builtin is callable or (only_plain(x) if as_text else isinstance(x, plain)):
                if builtin in (id, hash) and not isinstance(x, BY_VALUE):
                    raise EndPiece("value", "asks_for", name=builtin.__name__)
            else:
                raise EndPiece("effect", "pythons", name=builtin.__name__, of=f"a {type(x).__name__}")

    def before_operator(self) -> None:
        self._only_captured_code()

    def before_read(self, cell: Cell) -> None:
        super().before_read(cell)
        self._only_captured_code()
        if self.moving and cell.input is not None:
            self._check_apart(cell.input, writing=False)

    def _only_captured_code(self) -> None:
        """Code of the user's that is not captured (an operator of a class, say) may do more than work on arrays."""
        frame = uncaptured_frame(sys._getframe(2), _DRIVERS)
        if frame is not None:
            raise EndPiece("effect", "uncaptured_code", name=frame.f_code.co_name, line=frame.f_lineno)

    def before_host(self, function: Any, operands: Sequence[Any]) -> None:
        if calls_back(function, operands):
            name = getattr(function, "__name__", type(function).__name__)
            raise EndPiece("effect", "does_more", name=f"np.{name}")

    # ---- numbers
    def function_name(self, function: Any) -> str:
        """What generated code calls a function; one name for each, so that equal texts are equal numbers."""
        key = function.key if isinstance(function, _Caster) else function
        if key not in self.function_names:
            self.function_names[key] = self.constants.name(function)
        return self.function_names[key]

    def guard_number(self, number: Number) -> None:
        self.number_guards.setdefault(number.text, number)

    def number(self, kind: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and isinstance(args[0], Number) and not kwargs:
            return bool(args[0]) if kind is bool else derived(self, kind, args[0])
        return super().number(kind, *args, **kwargs)

    def resolved(self, function: Any, args: Sequence[Any]) -> Sequence[Any]:
        """Numbers that meet arrays elementwise are inputs; every other use wants their value."""
        if not any(isinstance(x, Number) for x in args):
            return args
        name = getattr(function, "__name__", "")
        if isinstance(function, np.ufunc) or name in ("where", "clip") or isinstance(function, ReflectedUfunc):
            operands = args[1:] if name == "where" else args
            arrays = [x.dtype for x in operands if isinstance(x, Tensor)]
            if arrays and name != "power":
                return [self._promoted(x, arrays) if isinstance(x, Number) else x for x in args]
        return [*map(as_known, args)]

    def _promoted(self, number: Number, arrays: list[np.dtype[Any]]) -> Any:
        """The 0-d input for a Python number among arrays of these dtypes (NEP 50: it is weak)."""
        try:
            return self.number_node(number, np.result_type(*arrays, number.value))
        except (OverflowError, ValueError):
            return number.known()

    def pure_number(self, function: Any, args: Sequence[Any]) -> Any:
        """`math.sqrt(n)`: computed by Python at each run."""
        result = derived(self, function, *args)
        if type(result.value) in (int, float, bool):
            return result
        return function(*map(as_known, args))

    def call_on_values(self, function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """`np.sqrt(n)` of Python numbers: a 0-d input that Python computes at each run."""
        if isinstance(function, np.ufunc) and not kwargs and any(isinstance(x, Number) for x in args):
            result = derived(self, function, *args)
            if isinstance(result.value, np.generic) and result.value.dtype in TRACED_DTYPES:
                known = self.scalars.get((result.text, result.value.dtype))
                if known is None:
                    known = self.add_input(result.value, "number", captured=True)
                    self.scalars[result.text, result.value.dtype] = known
                    assert known._cell.input is not None
                    self.computed[id(known._cell.input)] = result
                return known
        self.before_host(function, (*args, *kwargs.values()))
        result = function(*self._known(args), **self._known(kwargs))
        if function is np.errstate:
            return result
        if lender(result) is not None:
            raise EndPiece("effect", "lends", name=function.__name__, owner=a_kind(lender(result)))
        if not isinstance(result, (np.ndarray, np.generic, bool, int, float, complex, str, tuple, list, np.dtype, type(None))):
            raise EndPiece("effect", "call_makes", name=function.__name__, kind=type(result).__name__)
        return result

    def _known(self, x: Any) -> Any:
        return of_items(self._known, x) if isinstance(x, CONTAINERS) else as_known(x)

    def is_moving(self, input: Input) -> bool:
        return any(m.input is input for m in self.moving.values())

    def value_to_write(self, value: Any, dtype: np.dtype[Any] | None = None) -> Any:
        if isinstance(value, Number) and dtype is not None:
            return self._promoted_to(value, dtype)
        return super().value_to_write(value, dtype)

    def _promoted_to(self, number: Number, dtype: np.dtype[Any]) -> Any:
        try:
            node = self.number_node(number, dtype)
        except (OverflowError, ValueError, TypeError):
            return number.known()
        return node.node()

    def number_node(self, number: Number, dtype: np.dtype[Any]) -> Tensor:
        """The 0-d input of `dtype` that takes the number's value at each run."""
        key = (number.text, dtype)
        known = self.scalars.get(key)
        if known is None:
            real = dtype.type(number.value)
            known = self.scalars[key] = self.add_input(real, number.label, captured=True)
            input = known._cell.input
            assert input is not None
            self.computed[id(input)] = derived(self, _Caster(dtype), number)
        return known

    # ---- moving views
    def moving_view(self, x: Tensor, index: Any) -> Tensor | None:
        """`x[index]` with Numbers in the index, of an outer array that the piece has not written: an input of its own."""
        base = x._cell.input
        if not has_number(index) or self.static or base is None or id(base) in self.computed:
            return None
        if x._path or x._cell.written or x.is_scalar:
            return None
        key = f"{self.inputs.index(base)}:{index_text(index)}"
        known = self.moving.get(key)
        if known is None:
            real = base.value[index_now(index)]
            if not isinstance(real, (np.ndarray, np.generic)):
                return None
            tensor = self.add_input(real, f"{base.path}_part", captured=True)
            input = tensor._cell.input
            assert input is not None
            self.captured.pop(id(real), None)
            known = self.moving[key] = MovingView(input, base, index, key)
            self.keep.append(real)
        return known.input.tensor

    def before_write(self, cell: Cell) -> None:
        super().before_write(cell)
        if self.putting is not None and (self.putting.copied or self.putting.field_reads):
            self.putting.before_write(cell)
        if any(part() is not None for part in cell.parts):
            raise EndPiece("effect", "writes_viewed")
        if self.moving and cell.input is not None:
            self._check_apart(cell.input, writing=True)

    def _check_apart(self, input: Input, writing: bool) -> None:
        """A moving view that is written is the only way to its base from then on."""
        mine = next((m for m in self.moving.values() if m.input is input), None)
        base = mine.base if mine is not None else input
        family = [m for m in self.moving.values() if m.base is base]
        if not family:
            return
        if mine is None:
            if any(m.input.tensor._cell.written for m in family):
                raise StaticNeeded
            return
        if base.tensor._cell.written:
            raise StaticNeeded
        if any(m is not mine and m.input.tensor._cell.written for m in family):
            raise StaticNeeded

    # ---- rollback
    def mark(self) -> Any:
        state = (
            dict(self.assigned), dict(self.reads), dict(self.found), dict(self.mirrors), dict(self.places), self.number_reads,
            dict(self.number_guards), dict(self.computed), dict(self.scalars), dict(self.moving),
            None if self.putting is None else self.putting.mark(),
        )  # fmt: skip
        return super().mark(), state

    def rollback(self, mark: Any) -> None:
        super().rollback(mark[0])
        (
            self.assigned, self.reads, self.found, self.mirrors, self.places, self.number_reads, self.number_guards,
            self.computed, self.scalars, self.moving, putting,
        ) = mark[1]  # fmt: skip
        if self.putting is not None:
            self.putting.rollback(putting)


def class_that_has(kind: type, name: str) -> type | None:
    """The class that gives objects of a class an attribute."""
    return next((base for base in kind.__mro__ if name in vars(base)), None)


class Names(MutableMapping[str, Any]):
    """The local names of a converted statement: stores go to what the piece has assigned."""

    def __init__(self, capture: CellCapture) -> None:
        self.capture = capture
        self.added: dict[str, Any] = {}  # names that conversion added

    def __getitem__(self, name: str) -> Any:
        if name == HOOK:
            return HOOKS
        if name in self.added:
            return self.added[name]
        capture = self.capture
        if not capture.is_open:  # a traceback is shown
            return capture.assigned[name] if name in capture.assigned else capture.namespace[name]
        try:
            return capture.lookup(name)
        except NameError:
            raise KeyError(name) from None  # what a mapping raises; Python makes a NameError of it

    def __setitem__(self, name: str, value: Any) -> None:
        if name in _ADDED:
            self.added[name] = value
        else:
            self.capture.assigned[name] = value

    def __delitem__(self, name: str) -> None:
        raise EndPiece("effect", "deletes", name=name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.capture.assigned)

    def __len__(self) -> int:
        return len(self.capture.assigned)


class _Caster:
    """dtype.type, with a name that tells it apart."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype
        self.key = dtype
        self.__name__ = str(dtype)

    def __call__(self, value: Any) -> Any:
        return self.dtype.type(value)


def _shorten(x: list[Any], length: int) -> None:
    del x[length:]


def _itself(value: Any) -> Any:
    return value

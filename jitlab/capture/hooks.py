"""What converted code calls: `__jl__.call`, `.name`, `.attribute`, `.item`, `.iterate`, `.unpack`, `.augmented`, `.place`.

Outside a capture each of them is what Python does without it, so that converted functions may be kept and called later.
"""

from __future__ import annotations

import functools
import inspect
import operator
import sys
import types
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from jitlab.errors import CaptureError, Signal
from jitlab.ir import TRACED_DTYPES, Extent, NotRolled, Symbolic
from jitlab.ops.table import FUNCTIONS, VIEWS
from jitlab.support.later import Later
from jitlab.support.lazy import Kept, OfEach

from .control import conditions
from .control.conditions import Body, is_traced, left, run
from .control.jumps import BREAK, CONTINUE, Mixed, Outcome, Returned
from .control.number_kinds import as_one, check_identity, check_owner, check_position, is_mixed, of_each_kind
from .control.purity import ITERABLES, is_of_numbers
from .control.python_values import math_of_traced, round_of_traced
from .effort import CALL_NS
from .guards.leaves import UNDEFINED
from .numpy_calls.draws import draw, is_generator, is_seed
from .numpy_calls.functions import call_function
from .numpy_calls.host_fallback import is_numpy
from .numpy_calls.numpy_source import is_from_source
from .numpy_calls.numpy_traits import CREATION, WORLD, lender, lends
from .positions import is_added, is_converted, is_user_file
from .rewrite.convert import converted
from .rewrite.staleness import may_have_changed
from .state import NOTHING_STORED, Capture, Stores, current_capture
from .tracers.array_methods import method
from .tracers.flat import Flat
from .tracers.number import Number
from .tracers.symbolic import SymbolicRange, call_builtin
from .tracers.tensor import Tensor, no_value

if TYPE_CHECKING:
    from .control import iterables, looping, rolling, staging
    from .numpy_calls import counterparts, piecewise
    from .tracers import filled_lists
else:  # most functions have neither branches nor loops of traced values
    iterables, looping = Later(f"{__package__}.control.iterables"), Later(f"{__package__}.control.looping")
    rolling, staging = Later(f"{__package__}.control.rolling"), Later(f"{__package__}.control.staging")
    piecewise = Later(f"{__package__}.numpy_calls.piecewise")
    counterparts = Later(f"{__package__}.numpy_calls.counterparts")
    filled_lists = Later(f"{__package__}.tracers.filled_lists")

Names = tuple[str, ...]


class Hooks:
    """The object that converted code knows as `__jl__`."""

    __slots__ = ()

    def name(self, value: Any, name: str) -> Any:
        """A name that is not local was read."""
        capture = current_capture()
        return value if capture is None else capture.load_name(value, name)

    def attribute(self, owner: Any, name: str) -> Any:
        stored = _put_off(owner, name)
        if stored is not NOTHING_STORED:
            return stored
        getter = _python_property(type(owner), name)
        if getter is not None:
            capture = current_capture()
            if capture is not None:
                return capture.load_property(getter, owner, name)
        check_owner(owner, name)
        value = _found(owner, name)
        capture = current_capture()
        if name == "__class__" and capture is not None:
            return call_library(capture, type, (owner,), {}, None)
        if type(value) in _NEVER_ARRAYS and type(owner) is types.ModuleType:
            if capture is not None:
                capture.found_in(vars(owner), name, value, owner.__name__)
            return value
        return value if capture is None else capture.load_attribute(value, owner, name)

    def matched(self, subject: Any) -> Any:
        """What a `match` with patterns of classes looks into: Python asks for the class of what stands for an array."""
        capture = current_capture()
        if capture is not None and has_tensor(subject):
            raise refuse_pattern(subject)
        return subject

    def function(self, owner: Any, name: str) -> Any:
        """What `owner.name(...)` calls."""
        stored = _put_off(owner, name)
        if stored is not NOTHING_STORED:
            return stored
        check_owner(owner, name)
        value = _found(owner, name)
        capture = current_capture()
        is_its_own = type(value) is types.BuiltinMethodType and value.__self__ is owner  # a container's, say
        if capture is None or (is_its_own and type(owner) is not types.ModuleType):
            return value
        return capture.callable_found(value, owner, name)

    def lookup(self, name: str) -> Any:
        """A name of a cell was read."""
        capture = current_capture()
        assert capture is not None, "a statement of a cell runs outside its capture"
        return capture.lookup(name)

    def generated(
        self, function: Any, items: Any, spread: bool, test: Callable[..., Any] | None, element: Callable[..., Any],
        generator: Callable[[Any], Any],
    ) -> Any:  # fmt: skip
        """`any(element for item in items if test)`."""
        capture = current_capture()
        if capture is not None and not capture.in_numpy and _in(function, rolling.REDUCING):
            result = rolling.reduced(capture, function, items, spread, test, element)
            if result is not NotImplemented:
                return result
        return self.call(function, generator(items))

    def made(self, container: Any) -> Any:
        """A list, dict or set was made."""
        capture = current_capture()
        if capture is None:
            return container
        if capture.blocks:
            capture.blocks[-1].made[id(container)] = container
        return capture.made(container)

    def item(self, owner: Any, key: Any) -> Any:
        capture = current_capture()
        if capture is None:
            return owner[key]
        return capture.load_item(owner, key)

    def text(self, value: Any) -> Any:
        """What stands in an f-string."""
        capture = current_capture()
        if capture is not None and type(value) is not str:
            capture.before_text(value)
        return value

    def shown(self, function: Any, value: Any) -> Any:
        """What stands in an f-string for `print`: what that shows of a tensor has no digits to choose."""
        if function is print and isinstance(value, Tensor) and value.capture.policy.wants_bools:
            return _Shown(value)
        return self.text(value)

    def iterate(self, iterable: Any) -> Any:
        capture = current_capture()
        if capture is None or isinstance(iterable, (Tensor, range, str, iterables.Counting)):
            return iterable
        return capture.iterate(iterable)

    def unpack(self, value: Any) -> Any:
        capture = current_capture()
        if capture is None or isinstance(value, Tensor):
            return value
        return capture.deep_value(value) if isinstance(value, ITERABLES) else capture.iterate(value)

    def spread(self, value: Any) -> Any:
        """What stands behind a star."""
        capture = current_capture()
        if capture is None or isinstance(value, ITERABLES):
            return value
        value = capture.value(value)
        return value if isinstance(value, Tensor) else capture.iterate(value)

    def filling(self, value: Any, filled: Any = None) -> Any:
        """What Python iterates over where it stands: `{**v}`, `f(**v)`, `items += v`, `items[a:b] = v`, `1 in v`. `filled`:
        what `name op= v` changes."""
        capture = current_capture()
        if capture is not None:
            capture.effects.before_filling(capture, filled)
            capture.before_iteration(value)
        return value

    def augmented(self, operator_name: str, value: Any, operand: Any) -> Any:
        """`name op= operand` of a global or nonlocal name."""
        capture = current_capture()
        if capture is not None:
            capture.effects.before_filling(capture, value)
            capture.before_iteration(operand)
        result = _AUGMENTED[operator_name](value, operand)
        return result if capture is None else capture.unload(result)

    def stepped(self, given: Any, operator_name: str, value: Any, operand: Any) -> Any:
        """`owner.name op= operand`, of a statement that is put off: what is stored."""
        given.loaded = value
        return self.augmented(operator_name, value, operand)

    def place(self, owner: Any) -> Any:
        """The object of a store `owner[...] = v` or `owner.name = v`."""
        capture = current_capture()
        if capture is None or isinstance(owner, (Tensor, Flat)):
            return owner
        if type(owner) is np.ndarray and owner.dtype in TRACED_DTYPES:
            return capture.value(owner)
        found = capture.place(owner)
        return OwnStores(capture, owner) if _stores_by_itself.of(type(owner), _has_own_stores, type(owner)) else found

    # ---- statements that only give something out (rewrite/effect_statements.py)
    def receiver(self, name: str) -> Any:
        """What is under a name that is not local, to get something."""
        capture = current_capture()
        return None if capture is None else capture.receiver(name)

    def listed(self, value: Any) -> Any:
        """A list of the function's own, where it looks into it."""
        capture = current_capture()
        return value if capture is None else capture.listed(value)

    def gives_out(self, what: tuple[Any, ...], builtins: tuple[Any, ...], receiver: Any) -> Any:
        """Who may put such a statement off, None for nobody."""
        capture = current_capture()
        return None if capture is None else capture.gives_out(what, builtins, receiver)

    def put_off(self, given: Any, effect: types.FunctionType, *values: Any) -> None:
        """What it gives out is `effect` of these values."""
        frame: types.FrameType | None = sys._getframe(1)
        while frame is not None and (is_added(frame.f_code) or not is_converted(frame.f_code)):
            frame = frame.f_back  # a body's function is called from the user's
        assert frame is not None, "a statement is put off outside of converted code"
        given.put_off(effect, values, frame.f_code)

    # ---- control flow: what Python does, unless a test or an iterable is traced
    BREAK, CONTINUE, MISSING = BREAK, CONTINUE, UNDEFINED

    def loop(self, function: Callable[..., Any], names: Names) -> None:
        """A loop of a cell, whose names are the variables of `function`."""
        capture = current_capture()
        assert capture is not None, "a statement of a cell runs outside its capture"
        before = {name: capture.variable(name) for name in names}
        for name, getter in zip(names, run(function, *before.values()), strict=True):
            try:
                value = getter()
            except NameError:
                value = UNDEFINED
            if value is not before[name]:
                capture.bind(name, value)

    def returned(self, value: Any) -> Returned:
        return Returned(value)

    def value_of(self, outcome: Outcome) -> Any:
        """What a function returns that was left so."""
        if outcome is None:
            return None
        return outcome.value if isinstance(outcome, Returned) else staging.returned_value(outcome)

    def jumped(self, outcome: Outcome) -> bool:
        """Does the program go on elsewhere?"""
        return outcome is not None and (not isinstance(outcome, Mixed) or staging.refuse_mixed(outcome))

    def follow(self, outcome: Outcome, rest: Body, assigned: Names, leave: Names) -> Outcome:
        """What comes after a statement that may have jumped."""
        if outcome is None:
            return left(rest)
        return staging.follow(outcome, rest, assigned, leave) if isinstance(outcome, Mixed) else outcome

    def if_(self, test: Any, then: Body, orelse: Body | None, assigned: Names, live: Names) -> None:
        if type(test) in _TESTABLE or not is_traced(test):
            if test:
                run(then)
            elif orelse is not None:
                run(orelse)
        else:
            staging.if_(test, then, orelse, assigned, live)

    def if_jump(
        self, test: Any, then: Body, orelse: Body | None, rest: Body | None, assigned: Names, live: Names, leave: Names
    ) -> Outcome:
        if type(test) not in _TESTABLE and is_traced(test):
            return staging.if_jump(test, then, orelse, rest, assigned, live, leave)
        side = then if test else orelse
        outcome = None if side is None else run(side)
        return self.follow(outcome, rest, assigned, leave) if rest is not None else outcome

    def while_(
        self, test: Callable[[], Any], body: Body, orelse: Body | None, assigned: Names, after: Names, head: Names,
        reads: Names,
    ) -> Outcome:  # fmt: skip
        return rolling.while_(test, body, orelse, looping.Names(assigned, after, head, reads))

    def for_(
        self, iterable: Any, body: Callable[[Any], Outcome], orelse: Body | None, targets: Names, assigned: Names,
        after: Names, head: Names, reads: Names,
    ) -> Outcome:  # fmt: skip
        if current_capture() is not None:
            return rolling.for_(iterable, body, orelse, looping.Names(assigned, after, head, reads, targets))
        for item in iterable:
            outcome = run(body, item)
            if outcome is not None and outcome is not CONTINUE:
                return None if outcome is BREAK else outcome
        return None if orelse is None else run(orelse)

    def counted(self, function: Any, *args: Any) -> Any:
        """`range(...)` in the head of a `for`, or another library's of the same meaning."""
        capture = current_capture()
        as_range = getattr(type(function), "__jitlab_range__", None)
        if capture is not None and as_range is not None:
            function, args = as_range(function, capture, args)
        if capture is not None and function is range:
            if capture.has_kinds:
                check_position(capture, args)
            found = iterables.counted(capture, args)
            if found is not None:
                return found
        return self.call(function, *args)

    def choose(self, test: Any, then: Callable[[], Any], orelse: Callable[[], Any]) -> Any:
        """`a if test else b`."""
        if type(test) in _TESTABLE or not is_traced(test):
            return then() if test else orelse()
        return staging.choose(test, then, orelse)

    def and_(self, value: Any, *others: Callable[[], Any]) -> Any:
        for number, other in enumerate(others):
            if type(value) not in _TESTABLE and is_traced(value):
                return staging.both(value, functools.partial(_going_on, self.and_, others[number:]))
            if not value:
                return value
            value = other()
        return value

    def or_(self, value: Any, *others: Callable[[], Any]) -> Any:
        for number, other in enumerate(others):
            if type(value) not in _TESTABLE and is_traced(value):
                return staging.either(value, functools.partial(_going_on, self.or_, others[number:]))
            if value:
                return value
            value = other()
        return value

    def not_(self, value: Any) -> Any:
        if type(value) in _TESTABLE or not is_traced(value):
            return not value
        return staging.negated(value)

    def equal(self, left: Any, sign: str, right: Any) -> Any:
        """`a == b`, `a != b`, `flag is True`."""
        if sign in ("Is", "IsNot"):
            return compared(sign, left, right)
        capture = current_capture()
        if capture is not None:
            capture.before_compare(sign, left, right)
        return left == right if sign == "Eq" else left != right

    def compare(self, left: Any, signs: tuple[str, ...], *others: Callable[[], Any]) -> Any:
        """`a < b <= c`, `a in b`."""
        right = others[0]()
        capture = current_capture()
        if capture is not None:
            capture.before_compare(signs[0], left, right)
        result = compared(signs[0], left, right)
        if len(signs) == 1:
            return result
        return self.and_(result, lambda: self.compare(right, signs[1:], *others[1:]))

    @contextmanager
    def trying(self) -> Iterator[None]:
        """The body of a `try`: what raises in it may be caught."""
        capture = current_capture()
        counts = capture is not None and capture.policy.records_handlers
        with self.inside_try():
            if capture is not None:
                capture.guarded += counts
            try:
                yield
            finally:
                if capture is not None:
                    capture.guarded -= counts

    @contextmanager
    def inside_try(self) -> Iterator[None]:
        """What raises in it is not the end of the function: something follows."""
        capture = current_capture()
        with nullcontext() if capture is None else capture.putting_nothing_off():
            yield

    def caught(self, kinds: Any = BaseException) -> Any:
        """What an `except` catches; asked when something was raised."""
        capture, error = current_capture(), sys.exception()
        if capture is not None and isinstance(error, Exception):
            capture.before_handler(error)
        return kinds

    def checked(self, test: Any, message: Callable[[], Any] | None) -> bool:
        """Does an `assert` hold, as far as it is known now?"""
        if type(test) in _TESTABLE or not is_traced(test):
            return bool(test)
        return staging.check(test, message)

    def call(self, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        capture = current_capture()
        if capture is None:
            return function(*args, **kwargs)
        return call(capture, function, args, kwargs)


class _Shown:
    """A tensor as a printed text shows it, whatever its format says."""

    def __init__(self, x: Tensor) -> None:
        self.x = x

    def __repr__(self) -> str:
        return repr(self.x)

    def __str__(self) -> str:
        return str(self.x)

    def __format__(self, spec: str) -> str:
        return str(self.x)


HOOKS = Hooks()


class OwnStores(Stores):
    """An object whose class has code of the user's for stores: it is captured, as any function of theirs."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        return HOOKS.attribute(self._owner, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setter = _setter(self._owner, name)
        if setter is not None and _is_captured(setter[0]):
            call_user(self._capture, setter[0], (*setter[1:], value), {})
        else:
            super().__setattr__(name, value)

    def __setitem__(self, key: Any, value: Any) -> None:
        setter = type(self._owner).__setitem__
        if _is_user_function(setter) and _is_captured(setter):
            call_user(self._capture, setter, (self._owner, key, value), {})
        else:
            super().__setitem__(key, value)


def _is_captured(function: types.FunctionType) -> bool:
    """Can its source be read? (That of a frozen dataclass's `__setattr__` cannot.)"""
    return is_converted(function.__code__) or converted(function, HOOKS) is not None


def _setter(owner: Any, name: str) -> tuple[Any, ...] | None:
    """The user's function behind `owner.name = v`, and its first arguments."""
    kind = type(owner)
    if _is_user_function(kind.__setattr__):
        return kind.__setattr__, owner, name
    found = next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)
    if isinstance(found, property):
        return (found.fset, owner) if _is_user_function(found.fset) else None
    setter = getattr(type(found), "__set__", None)
    return (setter, found, owner) if _is_user_function(setter) else None


def _has_own_stores(kind: type) -> bool:
    for base in kind.__mro__:
        for name, value in vars(base).items():
            if name in ("__setattr__", "__setitem__") and _is_user_function(value):
                return True
            if _is_user_function(value.fset if isinstance(value, property) else getattr(type(value), "__set__", None)):
                return True
    return False


_stores_by_itself: OfEach[bool] = OfEach()


def _put_off(owner: Any, name: str) -> Any:
    """What the program has put under an attribute, where that is done later."""
    capture = current_capture()
    return NOTHING_STORED if capture is None else capture.stored(owner, name)


def _found(owner: Any, name: str) -> Any:
    try:
        return getattr(owner, name)
    except AttributeError:
        capture = current_capture()
        if capture is not None:
            capture.lacks(owner, name)
        raise


_AUGMENTED: dict[str, Callable[[Any, Any], Any]] = {
    "Add": operator.iadd, "Sub": operator.isub, "Mult": operator.imul, "MatMult": operator.imatmul, "Div": operator.itruediv,
    "FloorDiv": operator.ifloordiv, "Mod": operator.imod, "Pow": operator.ipow, "LShift": operator.ilshift,
    "RShift": operator.irshift, "BitAnd": operator.iand, "BitOr": operator.ior, "BitXor": operator.ixor,
}  # fmt: skip

def _going_on(operation: Callable[..., Any], others: Sequence[Callable[[], Any]]) -> Any:
    """`b and c` of `a and b and c`."""
    return operation(others[0](), *others[1:])


_TESTABLE = frozenset({bool, int, float, str, type(None), list, tuple, dict})

_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "Lt": operator.lt, "LtE": operator.le, "Gt": operator.gt, "GtE": operator.ge, "Eq": operator.eq, "NotEq": operator.ne,
    "Is": operator.is_, "IsNot": operator.is_not,
}  # fmt: skip


def compared(sign: str, left: Any, right: Any) -> Any:
    if sign in ("In", "NotIn"):
        if is_traced(left) or is_traced(right):
            found = staging.contains(right, left)
            return HOOKS.not_(found) if sign == "NotIn" else found
        return left in right if sign == "In" else left not in right
    if sign in ("Is", "IsNot") and isinstance(left, Tensor) and isinstance(right, Tensor):
        for x in (left, right):
            x.capture.before_leaving(x)
        same = staging.is_same_array(left, right)
        return HOOKS.not_(same) if sign == "IsNot" else same
    if sign in ("Is", "IsNot"):
        check_identity(left, right)
        capture = current_capture()
        if capture is not None and capture.passed:
            left, right = capture.passed.get(id(left), left), capture.passed.get(id(right), right)
    return _COMPARISONS[sign](left, right)


_NEVER_ARRAYS = frozenset(
    {types.ModuleType, types.FunctionType, types.BuiltinFunctionType, type, np.ufunc, str, type(None), bool}
)


def call(capture: Capture, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call in the user's program, decided by who is called."""
    capture.spend(CALL_NS)
    if capture.has_receivers:
        capture.check_passed(function, args, kwargs)
    if capture.has_lists and any(isinstance(x, filled_lists.FilledList) for x in args):
        found, args = filled_lists.given_to(function, args, kwargs)
        if found is not NotImplemented:
            return found
    owner = getattr(function, "__self__", None)
    if type(owner) is np.ndarray and owner.dtype in TRACED_DTYPES:
        function = getattr(capture.value(owner), function.__name__)
        owner = None
        return function(*args, **kwargs)
    if isinstance(function, functools.partial):
        if function.func is method:  # of a Tensor
            return function(*args, **kwargs)
        first, named = capture.parts_of(function)
        return call(capture, function.func, (*first, *args), {**named, **kwargs})
    if isinstance(owner, Tensor):
        return function(*args, **kwargs)
    inline = getattr(type(function), "__jitlab_inline__", None)
    if inline is not None:
        return inline(function, capture, args, kwargs)
    if args and isinstance(args[0], (Tensor, Symbolic)) and capture.policy.wants_bools:
        chosen = _dispatched(capture, function, args[0])
        if chosen is not None:
            return call(capture, chosen, args, kwargs)
    if _is_user_function(function):
        return call_user(capture, function, args, kwargs)
    if isinstance(function, type) and (made := capture.new_object(function, args, kwargs)) is not None:
        return made
    try:
        return call_library(capture, function, args, kwargs, owner)
    except (Signal, CaptureError) as error:
        counterparts.note_cut(error, function)
        raise


def _dispatched(capture: Capture, function: Any, first: Any) -> Any:
    """What functools.singledispatch calls for the class that the program knows an array by; None for other functions."""
    method = getattr(getattr(function, "register", None), "__self__", None)
    if hasattr(function, "registry") and hasattr(function, "dispatch"):
        return function.dispatch(BUILTINS[type](capture, first))
    if not isinstance(method, functools.singledispatchmethod):
        return None
    names = getattr(getattr(function, "__code__", None), "co_freevars", ())
    bound = {name: cell.cell_contents for name, cell in zip(names, getattr(function, "__closure__", None) or (), strict=True)}
    owner, kind = (bound.get(name, getattr(function, f"_{name}", None)) for name in ("obj", "cls"))
    return method.dispatcher.dispatch(BUILTINS[type](capture, first)).__get__(owner, kind)


def call_user(capture: Capture, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function of the user's program: its converted copy runs."""
    if getattr(function, "__jitlab_do_not_convert__", False):
        args, kwargs = capture.given.call(args, kwargs)
        return function(*args, **kwargs)
    args = tuple(capture.value(x) for x in args)  # what a list holds is converted where it is read: it stays the same list
    kwargs = {key: capture.value(x) for key, x in kwargs.items()}
    if isinstance(function, types.MethodType):
        args, function = (function.__self__, *args), function.__func__
    elif capture.memory is not None and capture.functions:
        function = capture.memory.called(function)
    twin = function if is_converted(function.__code__) else converted(function, HOOKS)
    if twin is None:
        if capture.policy.wants_bools:
            warn_as_is(function)
        capture.effects.before_call(capture, function, None)
        capture.effect(function, None)
        args, kwargs = capture.given.call(args, kwargs)
    elif twin is not function:
        capture.before_call(function)
        args, kwargs = capture.with_defaults(function, args, kwargs)
    else:
        capture.before_own_call(function)
    with capture.inside(function):
        return (twin or function)(*args, **kwargs)


def warn_as_is(function: Any) -> None:
    """A function without source that can be read, or a generator, runs as it is; said once."""
    code = function.__code__
    if code in _told:
        return
    _told.add(code)
    why = (
        "it is a generator" if code.co_flags & inspect.CO_GENERATOR
        else "its file was edited since it was loaded" if may_have_changed(code)
        else "its source cannot be read"
    )  # fmt: skip
    name = getattr(function, "__qualname__", "a function")
    warnings.warn(
        f"AutoGraph could not transform {name} ({code.co_filename}, line {code.co_firstlineno}) and will run it as-is: {why}."
        " jitlab.autograph.do_not_convert says that this is meant.",
        stacklevel=2,
    )


_told: weakref.WeakSet[types.CodeType] = weakref.WeakSet()


def call_library(capture: Capture, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], owner: Any) -> Any:
    """A NumPy function, a builtin, or another library's code."""
    known = BUILTINS.get(function) if _hashable(function) else None
    if _in(function, iterables.ITERATORS):
        result = iterables.call_iterable(capture, function, args, kwargs)
        if result is not NotImplemented:
            return result
    if known is not None:
        if capture.has_kinds and any(map(is_mixed, args)):
            if function in _OF_A_TYPE:
                return of_each_kind(capture, lambda found: call_library(capture, function, found, kwargs, owner), args)
            if function in _NUMBERS:
                args = tuple(map(as_one, args))
            elif function is range:
                check_position(capture, args)
        if function in _TAKING and args and isinstance(args[0], Flat) and args[0].iterator is None:
            args = (args[0].taken(), *args[1:])
        if function in (max, min) and len(args) == 1 and type(args[0]) in (list, tuple) and len(args[0]) > 1:
            if any(isinstance(x, Tensor) for x in args[0]):
                args = tuple(args[0])  # one of them, as Python compares them
        if function in (any, all) and len(args) == 1 and type(args[0]) in (list, tuple) and any(map(is_traced, args[0])):
            return conditions.any_or_all(function, args[0])
        if any(isinstance(x, (Tensor, Symbolic, SymbolicRange)) for x in args) and not kwargs:
            result = call_builtin(capture, function, args)
            if result is not NotImplemented:
                return result
        if len(args) == 1 and isinstance(args[0], Tensor) and not kwargs:
            result = _of_traced(function, args[0])
            if result is not NotImplemented:
                return result
        if function is round and 1 <= len(args) <= 2 and isinstance(args[0], Tensor) and not kwargs:
            result = round_of_traced(capture, *args)
            if result is not NotImplemented:
                return result
        if function is next and capture.blocks:
            capture.effects.before_call(capture, next, args[0] if args else None)
        if function in FUNCTIONS and any(isinstance(x, Tensor) for x in args):
            return capture.perform(call_function, function, args, kwargs)
        result = known(capture, *args, **kwargs)
        if function is sum:
            rolling.check_sum(result)
        return result
    if not kwargs and getattr(function, "__module__", "") == "math":
        result = math_of_traced(capture, function, args)
        if result is not NotImplemented:
            return result
    if is_seed(function):
        owner = np.random.mtrand._rand
        function = owner.seed
    if is_generator(owner):
        return draw(capture, owner, function, args, kwargs)
    if type(function) is types.MethodDescriptorType and function.__objclass__ is np.ndarray and args:
        return call(capture, getattr(capture.value(args[0]), function.__name__), args[1:], kwargs)
    if is_numpy(function):
        return _call_numpy(capture, function, args, kwargs)
    if not _says_no_effect(function, args, kwargs):
        capture.effects.before_call(capture, function, owner)
    capture.effect(function, owner)
    args, kwargs = capture.handed(function, owner, args, kwargs)
    if any(isinstance(x, Number) for x in args) and not kwargs and is_of_numbers(function, args):
        return capture.pure_number(function, args)
    if (getattr(function, "__module__", None) or "").split(".")[0] == "scipy":
        deep_args = [capture.deep_value(x) for x in args]
        if any(map(has_tensor, (*deep_args, *kwargs.values()))):
            return capture.perform(call_function, function, deep_args, kwargs)
        args, kwargs = capture.given.call(args, kwargs)
    result = function(*args, **kwargs)
    if isinstance(function, type) and hasattr(result, "__dict__"):
        capture.instances[id(result)] = result
    return capture.deep_value(result)


def _says_no_effect(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """What a call with these arguments returns counts and marks nothing: a loop around it is rolled as it is without."""
    says = getattr(function, "__jitlab_no_effect__", None) if isinstance(function, types.FunctionType) else None
    return says is not None and bool(says(*args, **kwargs))


def _call_numpy(capture: Capture, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if _in(function, WORLD):
        if not (function is np.errstate and not args and all(value == "ignore" for value in kwargs.values())):
            capture.effect(function, None)  # but for silence, which compiled code keeps anyway
        return function(*args, **kwargs)
    deep_args = [capture.operand(x) for x in args]
    deep_kwargs = {key: capture.operand(x) for key, x in kwargs.items()}
    if function is np.piecewise and any(map(has_tensor, deep_args)):
        return piecewise.piecewise(capture, call, *deep_args, **deep_kwargs)
    operands = (*deep_args, *deep_kwargs.values())
    if any(map(has_tensor, operands)) or (_in(function, CREATION) and not any(map(lends, operands))):
        return capture.perform(call_function, function, deep_args, deep_kwargs)
    result = capture.call_on_values(function, args, kwargs)
    if not (any(_in(function, known) for known in (FUNCTIONS, VIEWS)) or is_from_source(function)) and has_array(result):
        capture.note_frozen(f"np.{function.__name__}")
    made = capture.deep_value(result)
    return made if lender(result) is not None else _own(capture, made)


def _own(capture: Capture, made: Any) -> Any:
    """What NumPy made now, once, is an array of its own at each call: a write into it does not outlive the call."""
    if isinstance(made, Tensor):
        return made if made.is_scalar else capture.fresh(made.node())
    if type(made) in (list, tuple):
        return type(made)(_own(capture, item) for item in made)
    return made


# ---- builtins


def _isinstance(capture: Capture, x: Any, classes: Any) -> bool:
    if not isinstance(x, Tensor):
        return isinstance(x.value if isinstance(x, Number) else x, classes)
    real = x.dtype.type if x.is_scalar else np.ndarray
    options = classes if isinstance(classes, tuple) else (classes,)
    return any(issubclass(real, c) if isinstance(c, type) else isinstance(x, c) for c in options)


def _type(capture: Capture, x: Any, *rest: Any) -> Any:
    if rest or not isinstance(x, Tensor):
        return int if isinstance(x, Extent) else type(x.value if isinstance(x, Number) else x, *rest)
    return x.dtype.type if x.is_scalar else np.ndarray


def _of_traced(function: Any, x: Tensor) -> Any:
    """int, float and bool of a traced number; sum, any and all of an array, along its first axis as Python goes."""
    if function in (int, float, bool):
        return conditions.python_number(function, x)
    if function is sum and x.ndim and x.capture.policy.keeps_kinds and not int(x.type.shape[0]):
        return 0
    if function is sum and x.ndim:
        return 0 + np.sum(x, axis=0, dtype=np.int64 if x.dtype.kind == "b" else x.dtype)
    if function in (max, min) and x.ndim == 1:
        return rolling.reduced(x.capture, function, x, False, None, _itself)  # type: ignore[arg-type]  # it is a Capture
    if function in (any, all) and x.ndim == 1:
        return conditions.python_number(bool, x.any() if function is any else x.all())
    return NotImplemented


def _itself(x: Any) -> Any:
    return x


def _getattr(capture: Capture, x: Any, name: str, *default: Any) -> Any:
    """`getattr(x, name)` is `x.name`: the user's function behind a property is captured."""
    try:
        return HOOKS.attribute(x, name)
    except AttributeError:
        if not default:
            raise
    return default[0]


def _hasattr(capture: Capture, x: Any, name: str) -> bool:
    try:
        HOOKS.attribute(x, name)
    except AttributeError:
        return False
    return True


def _vars(capture: Capture, x: Any) -> Any:
    return HOOKS.attribute(x, "__dict__")


def _higher_order(builtin: Callable[..., Any]) -> Callable[..., Any]:
    """map, filter, sorted, min, max: the function among their arguments is called through the hook."""

    def routed(capture: Capture, *args: Any, **kwargs: Any) -> Any:
        for x in args:
            if not callable(x):
                capture.before_iteration(x)
        args = tuple(_routed(x) for x in args)
        return builtin(*map(capture.deep_value, args), **{key: _routed(x) for key, x in kwargs.items()})

    return routed


def _routed(x: Any) -> Any:
    return functools.partial(HOOKS.call, x) if isinstance(x, (types.FunctionType, types.MethodType)) else x


def _without_effects(builtin: Callable[..., Any]) -> Callable[..., Any]:
    """A builtin that works on Tensors as it does on arrays."""

    def called(capture: Capture, *args: Any, **kwargs: Any) -> Any:
        capture.before_builtin(builtin, args)
        result = builtin(*map(capture.deep_value, args), **kwargs)
        return capture.made(result) if isinstance(result, (list, dict, set)) else result

    return called


def _print(capture: Capture, *args: Any, **kwargs: Any) -> None:
    capture.effects.before_call(capture, print, None)
    capture.effect(print, None)
    if not capture.effects.reruns and (capture.memory is None or not capture.memory.silent):
        print(*args, **kwargs)


def _number(builtin: Callable[..., Any]) -> Callable[..., Any]:
    def called(capture: Capture, *args: Any, **kwargs: Any) -> Any:
        return capture.number(builtin, *args, **kwargs)

    return called


_WITHOUT_EFFECTS = (
    len, abs, sum, list, tuple, zip, enumerate, reversed, all, any, round, divmod, pow, iter, next, range, slice, dict, set,
    frozenset, str, repr, format, hash, id, callable, issubclass, dir,
)  # fmt: skip

_NUMBERS = (float, int, bool, complex)
#: What takes all elements of an iterator.
_TAKING = frozenset({any, all, sum, max, min, sorted})
#: What asks for the type of its argument.
_OF_A_TYPE = (isinstance, type, callable, issubclass)

BUILTINS: dict[Any, Callable[..., Any]] = {
    isinstance: _isinstance, type: _type, getattr: _getattr, hasattr: _hasattr, vars: _vars, print: _print,
    **{f: _number(f) for f in _NUMBERS},
    **{f: _higher_order(f) for f in (map, filter, sorted, min, max, functools.reduce)},
    **{f: _without_effects(f) for f in _WITHOUT_EFFECTS},
}  # fmt: skip


def has_tensor(x: Any) -> bool:
    """Is it, or does it hold, anything that has no value while this is recorded?"""
    if isinstance(x, (Tensor, Symbolic)):
        return True
    if isinstance(x, (list, tuple)):
        return any(map(has_tensor, x))
    return isinstance(x, dict) and any(map(has_tensor, x.values()))


def refuse_pattern(x: Any) -> Exception:
    """The error for a `match` on what has no value."""
    while not isinstance(x, (Tensor, Symbolic)):
        x = next(filter(has_tensor, x.values() if isinstance(x, dict) else x))
    if isinstance(x, Tensor):
        return no_value(x, "a pattern of `match`")
    return NotRolled("index_value", "pattern")


def has_array(x: Any) -> bool:
    if isinstance(x, np.ndarray):
        return True
    return isinstance(x, (list, tuple)) and any(map(has_array, x))


def _python_property(kind: type, name: str) -> Any:
    """The user's function behind a property, or behind attributes that are made up; None for what is simply there."""
    return _getter(kind, name) if _properties.of(kind, Kept, 100).of(name, _has_getter, kind, name) else None


def _has_getter(kind: type, name: str) -> bool:
    return _getter(kind, name) is not None


def _getter(kind: type, name: str) -> Any:
    found = next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)
    getter = found.fget if isinstance(found, property) else getattr(kind, "__getattr__", None) if found is None else None
    return getter if getter is not None and _is_user_function(getter) else None


#: By name. Nothing here refers to a class or to its functions, which go when the user's last reference goes.
_properties: OfEach[Kept[str, bool]] = OfEach()


def _is_user_function(function: Any) -> bool:
    if isinstance(function, types.MethodType):
        function = function.__func__
    if not isinstance(function, types.FunctionType):  # compiled code may look like a function: Cython's does
        return False
    return is_converted(function.__code__) or is_user_file(function.__code__.co_filename)


def _in(function: Any, table: Any) -> bool:
    return _hashable(function) and function in table


def _hashable(x: Any) -> bool:
    try:
        hash(x)
    except TypeError:
        return False
    return True


__all__ = ["HOOKS", "call", "call_user", "has_tensor"]

"""A call captured whole: the body of a function as one trace, with guards on all it reads.

The arguments of a call are `a[0]`, `a[1]`, ... to the generated guards. Arrays and NumPy scalars are inputs, Python floats
are Numbers (kernel parameters), other Python values are guarded by value, objects by identity. What the body reads from
globals, closures, attributes and containers is read again at each call. Whatever may have an effect on Python objects ends
the capture: the call is then made of pieces (bodies.py), so effects happen on every call.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np

from jitlab.capture.control.conditions import FEW
from jitlab.capture.control.purity import is_plain_class
from jitlab.capture.effort import CAPTURE_NS
from jitlab.capture.guards.changes import CAUSES, Leaf
from jitlab.capture.guards.objects import KEPT
from jitlab.capture.guards.signature import TooDeep
from jitlab.capture.hooks import HOOKS, call_user
from jitlab.capture.numpy_calls.draws import begin, makes_generator
from jitlab.capture.numpy_calls.numpy_traits import a_kind, full_name, is_foreign
from jitlab.capture.refusals import Refusal
from jitlab.capture.rewrite.convert import find_definition
from jitlab.capture.rewrite.flow_rewrite import frame_call
from jitlab.capture.rewrite.handlers import recorded, refused_try
from jitlab.capture.rewrite.piece_statements import RESULT, is_scope
from jitlab.capture.tracers.arrays import Place
from jitlab.capture.tracers.number import Number
from jitlab.capture.tracers.tensor import Tensor
from jitlab.errors import Unfit
from jitlab.ir import TRACED_DTYPES, Source
from jitlab.messages import Message
from jitlab.support import trees
from jitlab.support.later import Later
from jitlab.support.lazy import OfEach
from jitlab.support.lazy_dataclass import dataclass

from .piece_traces import RECEIVING, CellStructure, EndPiece, PieceTrace, Receiver, check_stream, finish_piece, may_receive
from .pieces import CellCapture
from .trace import NOTHING, Build

if TYPE_CHECKING:
    from jitlab.capture.rewrite import effect_statements
    from jitlab.capture.rewrite.effect_statements import Received
else:  # for calls that are passed containers
    effect_statements = Later("jitlab.capture.rewrite.effect_statements")


@dataclass
class CallTrace(PieceTrace):
    """A trace of a whole call."""

    stays_compiled: bool = False  # its calls are not tried as Python any more
    is_regular: bool | None = None  # it may serve other sizes; None: nobody has asked
    of_other_size: bool = False  # another trace's machine code serves it
    is_bare: bool = False  # its result needs neither numbers nor the caller's own objects

    def answer(self, args: Sequence[Any], inputs: Sequence[Any], numbers: tuple[Any, ...]) -> Any:
        """Run, write into the caller's arrays, give the result its form; with it what was put off, where there is any."""
        assert self.run is not None
        if self.prints:
            check_stream()
        if self.writes:
            self.check_piece(inputs)
        outputs = self.run(inputs)
        if not self.effects:
            return self.answered(outputs, args, inputs, numbers)
        if self.shared or self.rows or self.writes:
            self.store(inputs, numbers, outputs)
        room = outputs if self.is_bare else [*outputs, args, numbers, [None] * self.slots]
        return self.build(room, inputs), self.given(room, inputs)

    def answered(self, outputs: list[Any], args: Sequence[Any], inputs: Sequence[Any], numbers: tuple[Any, ...]) -> Any:
        """What a call gives, of the graph's outputs; the inputs that it changes are written."""
        if self.shared or self.rows or self.writes:
            self.store(inputs, numbers, outputs)
        if self.is_bare:
            return self.build(outputs, inputs)
        return self.build([*outputs, args, numbers, [None] * self.slots], inputs)


class CallCapture(CellCapture):
    """A capture of a function's call: names are found as the function finds them."""

    policy = replace(CellCapture.policy, strict_name="fullgraph=True", begins_in_text=False)
    trace_class: type[PieceTrace] = CallTrace

    def __init__(self, name: str, *, strict: bool, static: bool = True) -> None:
        super().__init__(name, {}, strict=strict, static=static)
        self.current_argument = ""
        self.received: Received = {}  # parameters that only get something
        self.lists_of_others: dict[int, Any] = {}  # that it made, and gave to code that may keep them
        self.begun: dict[int, Any] = {}  # generators that the call makes: nobody else may get hold of them

    def structure(self) -> CellStructure:
        return CallStructure(self)

    def is_own_list(self, x: list[Any], *, is_returned: bool) -> bool:
        is_inside = type(self) is CallCapture and (not is_returned or len(self.functions) == 1)
        is_own = is_inside and id(x) in self.made_now and id(x) not in self.lists_of_others
        return is_own and not any(id(x) in made.made for made in self.blocks)

    def is_given(self, x: list[Any]) -> None:
        self.lists_of_others[id(x)] = x

    def new_object(self, kind: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """It is no part of what the call gives: structure, of which each call makes another one in Python."""
        if not is_plain_class(kind):
            return None
        made = HOOKS.made(object.__new__(kind))
        self.instances[id(made)] = made
        for name in ("__init__", "__new__", "__setattr__", "__getattribute__"):
            self.callable_found(getattr(kind, name), kind, name)
        init = getattr(kind, "__init__")  # noqa: B009 - mypy takes the class for an object
        if call_user(self, init, (made, *args), kwargs) is not None:
            raise EndPiece("effect", "does_more", name=f"{kind.__name__}.__init__")
        return made

    def call_on_values(self, function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """A generator that the function makes for itself is one object, which begins anew at each call."""
        if not makes_generator(function) or self.strict:
            return super().call_on_values(function, args, kwargs)
        known, options = self._known(tuple(args)), self._known(kwargs)
        made = begin(self, function(*known, **options), function, known, options)
        self.begun[id(made)] = made
        return made

    def finished(self, trace: PieceTrace, structure: CellStructure) -> None:
        """The trace of this capture was made."""
        if isinstance(trace, CallTrace) and isinstance(structure, CallStructure):
            kinds = {read.leaf.path: read.place.kind for read in self.reads.values()}
            trace.read_leaves = tuple(
                replace(leaf, origin=kinds[leaf.path]) if kinds.get(leaf.path) in CAUSES else leaf for leaf in trace.read_leaves
            )
            trace.is_bare = structure.is_bare and not structure.slots
            trace.build = trace.outputs[0][1]

    def loop_refused(self, count: int, why: Unfit) -> None:
        """A long one is Python's, around its body, which is captured once: the call goes in pieces."""
        if count > FEW and not self.strict and not self.blocks:
            raise EndPiece(why.code, "long_loop", count=count, why=why.said)

    def argument(self, n: int, name: str, value: Any) -> Any:
        """What an argument is inside the capture."""
        self.keep.append(value)
        self.current_argument = name
        if name in self.received and may_receive(value, self.received[name]):
            self.has_receivers = True
            return self.received_under((-1, name), Receiver(value, Place(f"a[{n}]", lambda: value, "argument"), name))
        return self._seen((-1, name), name, Place(f"a[{n}]", lambda: value, "argument"), value)

    def _seen(self, key: tuple[int, str], text: str, place: Place, value: Any) -> Any:
        kind = type(value)
        if (kind is int and place.kind == "argument") or kind in _BY_VALUE or isinstance(value, np.dtype):
            self._depend(key, Leaf(text, "value", repr(value), value=value), place, "equal", (kind, value))
            if kind is not int:
                self.keep.append(value)
                self.found_at.setdefault(id(value), place)
            return value
        return super()._seen(key, text, place, value)

    def _depend(
        self, key: tuple[int, str], leaf: Leaf, place: Place, kind: str, want: tuple[Any, ...], **number: int
    ) -> None:
        if kind == "same" and not isinstance(want[0], KEPT):
            known = self.places.get(id(want[0]))
            if known is not None and known is not place:
                kind, want = "alias", (known.code,)
        super()._depend(key, leaf, place, kind, want, **number)

    def check_passed(self, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """A container that only gets something is passed to a function that only gives it something."""
        code = function.__code__ if type(function) is types.FunctionType else None
        names = () if code is None else code.co_varnames[: code.co_argcount]
        for name, x in (*zip_longest(names, args[: len(names)]), *kwargs.items(), *(("", x) for x in args[len(names) :])):
            if isinstance(x, Receiver) and (name not in (uses := received(function)) or not may_receive(x.value, uses[name])):
                raise EndPiece("effect", "reads_given", owner=a_kind(x.value))

    def effect(self, function: Any, owner: Any) -> None:
        if function is not np.errstate:  # the syntax has been seen: it only asks for silence
            super().effect(function, owner)

    def before_call(self, function: Any) -> None:
        refuse_syntax(function)
        super().before_call(function)

    def before_inline(self, function: Any) -> None:
        """A compiled function is called: its body is part of this call, where the code that calls it is captured."""
        self._only_captured_code()


_BY_VALUE = (range, frozenset, type(...))


class CallStructure(CellStructure):
    """The result of a call: the caller's own objects stay those objects."""

    def __init__(self, capture: CallCapture) -> None:
        super().__init__(capture)
        self.call = capture
        self.is_bare = True

    def of(self, x: Any) -> Build:
        if isinstance(x, Number):
            self.is_bare = False
        elif not isinstance(x, (Tensor, np.ndarray, np.generic, *_PLAIN)):
            if id(x) in self.call.begun:
                raise EndPiece("effect", "generator_kept")
            if is_foreign(x):
                raise EndPiece("foreign_type", "gives_a", kind=full_name(type(x)))
        return super().of(x)

    def found_again(self, place: Place) -> Build:
        self.is_bare = False
        return super().found_again(place)


_PLAIN = (bool, int, float, complex, str, bytes, type(None))


def record_call(
    capture: CallCapture, function: Any, names: Sequence[str], values: Sequence[Any],
    call_form: Callable[[Sequence[Any]], tuple[tuple[Any, ...], dict[str, Any]]], number: int,
) -> CallTrace:  # fmt: skip
    """The trace of `function` called with these values for its parameters. Raises what ends the capture."""
    with capture.recording():
        try:
            capture.spend(CAPTURE_NS)
            if any(type(value) in RECEIVING for value in values):
                capture.received = received(function)
            try:
                seen = [capture.argument(n, name, value) for n, (name, value) in enumerate(zip(names, values, strict=True))]
            except EndPiece as end:
                end.source = first_use(function, capture.current_argument)
                raise
            args, kwargs = call_form(seen)
            result = call_user(capture, function, args, kwargs)
            capture.check_copies()
            if capture.putting is not None:
                capture.putting.check()
            if capture.refused is not None:
                raise capture.refused
            capture.assigned[RESULT] = result
            trace = finish_piece(capture, 0, number)
            assert isinstance(trace, CallTrace)
            return trace
        finally:
            capture.close()
            capture.forget()


# ---- what is not captured, by its syntax

_scanned: OfEach[Refusal | None] = OfEach()

#: Nodes whose meaning would be lost or done at capture only, by the message that says why.
_REFUSED: dict[str, tuple[type[ast.AST], ...]] = {
    "class_anew": (ast.ClassDef,),
    "waits_inside": (ast.AsyncFor, ast.AsyncWith, ast.AsyncFunctionDef, ast.Await),
    "generator": (ast.Yield, ast.YieldFrom),
    "imports": (ast.Import, ast.ImportFrom),
    "match_looks": (ast.Match,),
}
_WHY_REFUSED = {kind: row for row, kinds in _REFUSED.items() for kind in kinds}
_LOOKED_AT = frozenset({*_WHY_REFUSED, ast.With, ast.Try, getattr(ast, "TryStar", ast.Try), ast.Call})
_FRAME_CALLS = frozenset({"locals", "vars", "dir", "eval", "exec", "globals", "breakpoint", "input", "__import__"})


def refused_syntax(root: ast.AST, filename: str, line: int) -> Refusal | None:
    """Why a recording cannot hold the first node under `root` that it cannot; `line`: of one that has none."""
    for node in recorded(root):
        if type(node) not in _LOOKED_AT:
            continue
        row, kind, name = _WHY_REFUSED.get(type(node)), "statement", type(node).__name__
        if isinstance(node, ast.expr):
            kind = "expression"
        if isinstance(node, ast.With) and not is_scope(node) and not _only_ignores(node):
            row = "context_manager"
        elif tried := refused_try(node):
            row = tried
        elif called := frame_call(node, _FRAME_CALLS):
            row, kind, name = "looks_at_frame", "call", called
        if row is not None:
            line = getattr(node, "lineno", line)
            said = Message(f"refused.{row}", {"kind": kind, "name": name, "line": line})
            return Refusal("statement", said, Source(filename, line, getattr(node, "col_offset", -1), line, -1))
    return None


_received: OfEach[Any] = OfEach()
#: So many functions, each called by the one before, are looked at for what becomes of an argument.
MOST_PASSED = 4


def received(function: Any) -> Received:
    """The parameters of a function that it only gives something to, by its text."""
    function = getattr(function, "__func__", function)
    return _received.of(function.__code__, _only_received, function) if isinstance(function, types.FunctionType) else {}


def _only_received(function: types.FunctionType, callers: tuple[types.CodeType, ...] = ()) -> Received:
    found = find_definition(function)
    if found is None or not isinstance(found[0], ast.FunctionDef):
        return {}
    return effect_statements.only_received(found[0].body, partial(_passed_on, function, (*callers, function.__code__)))


def _passed_on(
    function: types.FunctionType, callers: tuple[types.CodeType, ...], call: ast.Call
) -> Iterator[tuple[str, Sequence[Any]]]:
    """The names that a call in a function passes to one that only gives them something, and what that does with each."""
    if not isinstance(call.func, ast.Name) or any(isinstance(x, ast.Starred) for x in call.args) or len(callers) > MOST_PASSED:
        return
    callee = function.__globals__.get(call.func.id)
    if type(callee) is not types.FunctionType or callee.__code__ in callers:
        return
    uses, code = _only_received(callee, callers), callee.__code__
    given = [*zip(code.co_varnames[: code.co_argcount], call.args, strict=False)]
    given += [(keyword.arg or "", keyword.value) for keyword in call.keywords]
    for name, value in given:
        if name in uses and isinstance(value, ast.Name):
            yield value.id, uses[name]


def first_use(function: Any, name: str) -> Source | None:
    """Where a function first uses one of its parameters."""
    function = getattr(function, "__func__", function)
    found = find_definition(function) if isinstance(function, types.FunctionType) else None
    if found is None:
        return None
    for node in trees.walk(found[0]):
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
            end = node.end_lineno or node.lineno, node.end_col_offset or -1
            return Source(function.__code__.co_filename, node.lineno, node.col_offset, *end)
    return None


def _only_ignores(node: ast.With) -> bool:
    """`with np.errstate(all="ignore"):`, which compiled code does anyway."""
    return all(
        isinstance(item.context_expr, ast.Call)
        and item.optional_vars is None
        and getattr(item.context_expr.func, "attr", getattr(item.context_expr.func, "id", "")) == "errstate"
        and not item.context_expr.args
        and all(isinstance(k.value, ast.Constant) and k.value.value in ("ignore", "warn") for k in item.context_expr.keywords)
        for item in node.items
    )


def refuse_syntax(function: Any) -> None:
    """Raise when a function's body cannot be recorded, by its syntax."""
    code = getattr(function, "__code__", None)
    if code is None:
        return
    refusal = _scanned.of(code, _scan, function)
    if refusal is not None:
        raise EndPiece(refusal.code, refusal.said, source=refusal.source)


def _scan(function: types.FunctionType) -> Refusal | None:
    filename, line = function.__code__.co_filename, function.__code__.co_firstlineno
    found = find_definition(function)
    if found is None:
        said = Message("refused.no_source", {"name": function.__name__})
        return Refusal("source", said, Source(filename, line, -1, line, -1))
    return refused_syntax(found[0], filename, line)


# ---- which trace may fit


def signature_key(
    values: Sequence[Any], received: Mapping[int, Any] = NOTHING
) -> tuple[Any, Sequence[Any]]:  # fmt: skip
    """A hashable key of a call's values, and what lookups of its traces are given: traces of other keys do not fit. Floats
    count by type alone, and so do containers at the places of those that only get something. Raises TooDeep."""
    try:
        if received:
            by_type = (n in received and may_receive(x, received[n]) for n, x in enumerate(values))
            return tuple(type(x) if of_type else _key(x) for x, of_type in zip(values, by_type, strict=True)), values
        return tuple(map(_key, values)), values
    except RecursionError:
        raise TooDeep from None


def form_of(key: Any) -> Any:
    """A key without ints, and without what lists, tuples and dicts hold."""
    return tuple(map(_form, key)) if type(key) is tuple else key


def _form(part: Any) -> Any:
    is_kind = type(part) is tuple and any(part[0] is kind for kind in (list, tuple, dict, int))
    return part[0] if is_kind else part


def _key(value: Any) -> Any:
    kind = type(value)
    if kind is np.ndarray:
        return value.dtype, value.shape
    if kind in (int, bool, str, bytes, type(None)):
        return kind, value
    if isinstance(value, np.generic) and value.dtype in TRACED_DTYPES:
        return value.dtype
    if isinstance(value, (list, tuple)):
        return kind, tuple(map(_key, value)) if len(value) <= 1000 else len(value)
    if isinstance(value, dict):
        return kind, tuple((key, _key(item)) for key, item in value.items()) if len(value) <= 1000 else len(value)
    return kind


__all__ = ["CallCapture", "CallTrace", "form_of", "received", "record_call", "refuse_syntax", "refused_syntax", "signature_key"]

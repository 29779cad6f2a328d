"""Collecting a piece's inputs: one Python function is written for each trace, because it runs at every iteration of a loop.

It reads the names, checks what the trace depends on, and gives (inputs, numbers); None when the trace does not fit. Of the
same lines another function is written, once a call finds no trace: it says which of the checks failed, and on what.
"""

from __future__ import annotations

import enum
import re
import types
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from operator import itemgetter
from typing import Any

import numpy as np

from jitlab.capture.numpy_calls.layouts import Layout
from jitlab.capture.tracers.arrays import Input, Place
from jitlab.ir import TRACED_DTYPES, Extent
from jitlab.messages import Message
from jitlab.ops.random_draws import Address
from jitlab.support import trees
from jitlab.support.lazy_dataclass import dataclass

from .changes import Change, Leaf, change_of, layout_change, leaves_of
from .equal_code import Defined, Exchange, exchanged
from .signature import exact

#: Of so few objects that are to be several each pair is compared: that needs no call.
FEW = 4


@dataclass(eq=False)
class Read:
    """Something outside that a piece depends on: where it is found, and what it has to be."""

    leaf: Leaf
    place: Place
    kind: str  # "array", "number", "equal" (a value), "same" (an object; "weak": held weakly), "alias", "sized" (a container),
    # "lacks" (an attribute), "not own" (an attribute that its class has), "generator" (of random numbers)
    # "typed" (a container that only gets something), "steps" (one of which what it holds changes where it stands)
    # (type, dtype, shape), (type,), (type, value), (object,) or a reference, (code,), (type, size, keys), (name,), (type, type)
    want: tuple[Any, ...]
    # "same" of a module's function: (function, its code)
    slot: int = -1  # of a number: its place among the numbers
    input: int = -1  # of an array, or of a generator that draws: its place among the inputs


class Absent(enum.Enum):
    """The kind of NAME, which stands for what is not there."""

    NAME = "Python's own"


@dataclass(frozen=True)
class Attributes:
    """What was found under names of a module or class, compared in one step, by identity first; or names that stand for
    builtins, as the module has nothing under them (`Absent.NAME`)."""

    table: Mapping[str, Any]
    values: dict[str, Any]
    text: str  # what the module or class is called; "" for the program's own names

    def unfit(self, constants: Constants) -> str:
        """The condition under which one of them is another by now."""
        table, names = constants.name(self.table), list(self.values)
        if not self.text:
            return " or ".join(f"{name!r} in {table}" for name in names)
        if len(names) == 1:
            return f"{table}[{names[0]!r}] is not {constants.name(self.values[names[0]])}"
        return f"{constants.name(itemgetter(*names))}({table}) != {constants.name(tuple(self.values.values()))}"

    def change(self) -> Change:
        """The first that is another by now."""
        gone = Absent.NAME
        for name, known in self.values.items():
            value = self.table.get(name, gone)
            if value is not known:
                path = f"{self.text}.{name}".lstrip(".")
                fix = Message("fix.leave_assigned", {"path": path})
                after = "absent" if value is gone else shown_value(value)
                is_object = value is not gone and not is_plain(value)
                before = gone.value if known is gone else shown_value(known)
                return Change("global", path, before, f"another {after}" if is_object else after, fix)
        return Change("unknown", after="what it reads changed while it was looked up")


@dataclass(frozen=True)
class Moving:
    """An input that is the view `base[index]`; `index` is Python text over the numbers. `copied`: its base is written, too."""

    input: int
    base: int
    index: str
    shape: tuple[int, ...]
    copied: bool


class Constants:
    """Objects that generated code names: k0, k1, ..."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}  # by name; the globals of all small functions

    def name(self, value: Any) -> str:
        name = f"k{len(self.values)}"  # the length grows with each, and by the builtins that `eval` adds
        self.values[name] = value
        return name

    def text(self, value: Any) -> str:
        """Code for a value: itself where its text is exact."""
        if isinstance(value, Extent):
            value = int(value)
        if type(value) in (int, bool, str, type(None), type(Ellipsis)) or (type(value) is float and value - value == 0):
            return f"({value!r})" if value is not ... else "(...)"
        return self.name(value)

    def function(self, text: str) -> Callable[[Sequence[Any]], Any]:
        """`text` as a function of the numbers: there may be thousands of them, of which it reads a few."""
        read = sorted(set(map(int, re.findall(r"\bv(\d+)\b", text))))
        names, values = ", ".join(f"v{n}" for n in read), ", ".join(f"v[{n}]" for n in read)
        return eval(f"lambda v: (lambda {names}: {text})({values})", self.values)  # type: ignore[no-any-return]

    def function_of_arguments(self, code: str) -> Callable[[Sequence[Any]], Any]:
        """A place as a function of a call's arguments."""
        return eval(f"lambda a: {code}", self.values)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Guard:
    """A comparison of a lookup: the code that is true where the trace does not fit, and what a miss says of it.

    `told(*operands)` makes the Change, of what `operands` is at the time; `path` and `before` serve where reading it raises."""

    unfit: str
    operands: str
    told: Callable[..., Change]
    path: str
    before: str

    def telling(self, told: Callable[..., Change]) -> Guard:
        """The same, of which another thing is said."""
        return Guard(self.unfit, self.operands, told, self.path, self.before)


class Lookup:
    """What a lookup does, line by line: a line of code, or a Guard. Two functions are made of it: one that gathers for a call
    or gives None, and, once somebody asks, one that gives the Change that keeps a call from the trace."""

    def __init__(self, constants: Constants) -> None:
        self.constants = constants
        self.steps: list[str | Guard] = []
        self.arrays: list[tuple[int, str, tuple[int, ...]]] = []  # (input, the code that finds it, its shape)
        self.functions: list[tuple[str, Defined]] = []  # the user's, with the code that finds each
        self._why: Any = None
        self._is_of_functions: bool | None = None
        self.reads: Sequence[Read] = ()
        self.attributes: Sequence[Attributes] = ()
        self.defaults: Mapping[Any, tuple[Any, Any]] = {}  # of functions, by position and by name
        self.computed: Mapping[int, str] = {}  # the text of inputs that are made of numbers
        self.looks_at_numbers = False  # their values decide
        self.does_more = False  # than to read, and to look at what was read

    def function(self) -> Any:
        """What gathers for a call: gives its inputs and numbers, or None."""
        lines = [step if isinstance(step, str) else f"if {step.unfit}: return None" for step in self.steps]
        body = "\n".join(f"        {line}" for line in lines)
        return self._made(f"def gather(a=()):\n    try:\n{body}\n    except Exception:\n        return None\n", "gather")

    def why(self, a: Any = ()) -> Change:
        """What keeps a call with these arguments, or the names as they are now, from the trace: the guard that fails."""
        if self._why is None:
            lines: list[str] = []
            for n, step in enumerate(self.steps):
                lines.append(f"at[0] = {n}")
                lines.append(step if isinstance(step, str) else f"if {step.unfit}: return told[{n}].told({step.operands})")
            lines[-1] = "return None"
            body = "\n".join(f"    {line}" for line in lines)
            self._why = self._made(f"def why(a, at, told):\n{body}\n", "why")
        at = [0]
        try:
            found: Change | None = self._why(a, at, self.steps)
        except Exception as error:
            later = next((step for step in self.steps[at[0] :] if isinstance(step, Guard)), None)
            if later is None or not isinstance(error, (LookupError, AttributeError, ValueError, NameError)):
                return Change("unknown", after=f"what it reads gave a {type(error).__name__} while it was looked up")
            return Change("structure", later.path, later.before, "absent")
        return found or Change("unknown", after="what it reads changed while it was looked up")

    def _made(self, source: str, name: str) -> Any:
        namespace = dict(self.constants.values)
        exec(trees.code_of(source, "<jitlab gather>", "exec"), namespace)
        return namespace[name]

    @property
    def is_of_functions(self) -> bool:
        """It keeps nothing alive but functions, modules, and what no program makes."""
        if self._is_of_functions is None:
            self._is_of_functions = all(map(_is_there_anyway, self.constants.values.values()))
        return self._is_of_functions

    def renewed(self, a: Any, given: Exchange) -> tuple[Lookup, Exchange] | None:
        """The same lookup where functions of equal code are found now in the place of others, and what it names for what, with
        what is given; None where there are none, or where one is of other code."""
        exchange = dict(given)
        for code, known in self.functions:
            pairs = known.exchange(self._found(code, a))
            if pairs is None:
                return None
            exchange |= pairs
        if not exchange:
            return None
        constants = Constants()
        constants.values = {name: exchanged(value, exchange) for name, value in self.constants.values.items()}
        made = Lookup(constants)
        made.arrays, made._is_of_functions = self.arrays, self._is_of_functions  # what is exchanged is of functions
        made.steps = [step if isinstance(step, str) else _renewed_guard(step, exchange) for step in self.steps]
        for code, known in self.functions:
            now = Defined.of(made._found(code, a), exchange.get(id(known.reference)))
            if now is None:
                return None
            made.functions.append((code, now))
            exchange[known.number] = now.number
        return made, exchange

    def _found(self, code: str, a: Any) -> Any:
        try:
            return self.constants.values[code] if code in self.constants.values else eval(code, self.constants.values, {"a": a})
        except Exception:  # it is gone
            return None


class _Writer:
    """Writes the steps of one lookup; a later step may name what an earlier one has found."""

    def __init__(self, constants: Constants, inputs: Sequence[Input]) -> None:
        self.lookup, self.constants, self.inputs = Lookup(constants), constants, inputs
        #: Names in the code of what was read, with their paths: none may be another one.
        self.arrays: dict[str, str] = {}
        self.containers: dict[str, str] = {}
        self.generators: dict[str, str] = {}
        self.slots = 0

    def code(self, line: str) -> None:
        self.lookup.steps.append(line)

    def guard(self, unfit: str, operands: str, told: Callable[..., Change], path: str = "", before: str = "") -> None:
        self.lookup.steps.append(Guard(unfit, operands, told, path, before))

    def attributes(self, found_in: Attributes) -> None:
        for name, value in found_in.values.items():
            if type(value) is types.FunctionType:
                self.function(f"{self.constants.name(found_in.table)}[{name!r}]", value)
        self.guard(found_in.unfit(self.constants), "", found_in.change, found_in.text, "there")

    def function(self, code: str, value: Any, reference: Any = None) -> None:
        """A function of the user's, if it is one, may be another of equal code."""
        known = Defined.of(value, reference)
        if known is not None and known.is_users:
            self.lookup.functions.append((code, known))

    def defaults(self, function: Any, values: tuple[Any, Any]) -> None:
        code, name = self.constants.name(function), function.__name__
        found = f"({code}.__defaults__, {code}.__kwdefaults__)"
        told = partial(_defaults_change, name, values)
        self.guard(_other_defaults(code, values, self.constants), found, told, f"defaults of {name}")

    def read(self, read: Read) -> None:
        """Find it, and check that it is what it was."""
        path, before, found = read.leaf.path, read.leaf.text, read.place.code
        first = self.arrays.get(f"i{read.input}")
        if read.kind == "array" and first is not None:
            told = partial(Change, "aliasing", path, f"the array that `{first}` is, too", "another array")
            self.guard(f"{found} is not i{read.input}", "", told, path, before)
            return
        if read.kind in ("same", "weak"):
            is_weak = read.kind == "weak"
            self.function(found, read.want[0]() if is_weak else read.want[0], read.want[0] if is_weak else None)
        name = f"i{read.input}" if read.input >= 0 else f"v{read.slot}" if read.slot >= 0 else "found"
        if read.kind == "sized" and read.want[0] is not tuple:
            name = f"c{len(self.containers)}"
            self.containers[name] = path
        self.slots += read.slot >= 0
        if read.kind == "generator":
            name = f"g{len(self.generators)}"
            self.generators[f"{name}._bit_generator"] = path
        self.code(f"{name} = {found}")
        self.guard(_unfit(read, name, self.constants), name, partial(_read_change, read), path, before)
        if read.kind == "generator" and read.input >= 0:
            self.code(f"i{read.input} = {self.constants.name(Address)}({name})")
        if read.kind == "array" and read.want[0] is np.ndarray:
            self.arrays[name] = path
            self.lookup.arrays.append((read.input, found, read.want[2]))

    def distinct(self, objects: Mapping[str, str], kind: str) -> None:
        """What was several objects is several still."""
        if len(objects) < 2:
            return
        unfit = " or ".join(f"{a} is {b}" for a, b in combinations(objects, 2))
        if len(objects) > FEW:
            unfit = f"len({{{', '.join(f'id({name})' for name in objects)}}}) != {len(objects)}"
        self.guard(unfit, ", ".join(objects), partial(_one_change, tuple(objects.values()), kind))

    def number(self, text: str, expected: Any, label: str) -> None:
        self.code(f"found = {text}")
        unfit = f"type(found) is not {self.constants.name(type(expected))} or {_other('found', expected, self.constants)}"
        self.guard(unfit, "found", partial(_number_change, label, expected), label, repr(expected))

    def value(self, n: int, value: Any) -> None:
        """An input's value, an int or a tuple of them, was taken for granted."""
        self.code(f"found = {f'tuple(map(int, i{n}))' if isinstance(value, tuple) else f'int(i{n})'}")
        path = self.inputs[n].path
        self.guard(f"found != {value}", "found", partial(_number_change, path, value), path, str(value))

    def moving(self, part: Moving) -> None:
        self.code(f"i{part.input} = i{part.base}[{part.index}]")
        path = f"a part of {self.inputs[part.base].path}"
        shape = f"i{part.input}.shape"
        self.guard(f"{shape} != {part.shape!r}", shape, partial(_shape_change, path, part.shape), path)
        if part.copied:
            self.code(f"i{part.input} = {self.constants.name(np.array)}(i{part.input})[()]")

    def layout(self, layout: Layout) -> None:
        other = "" if layout.exact else f" and not {self.constants.name(layout)}.fits(i{layout.input})"
        told = partial(layout_change, layout, self.inputs[layout.input].path)
        strides = self.constants.name(layout.strides)
        self.guard(f"i{layout.input}.strides != {strides}{other}", f"i{layout.input}", told)


def lookup_of(
    reads: Sequence[Read],
    inputs: Sequence[Input],
    constants: Constants,
    *,
    fixed: Mapping[int, Any],
    number_guards: Sequence[tuple[str, Any, str]],
    value_guards: Sequence[tuple[int, Any]],
    moving: Sequence[Moving],
    computed: Mapping[int, str],
    layouts: Sequence[Layout],
    attributes: Sequence[Attributes],
    defaults: Mapping[Any, tuple[Any, Any]],
    apart: Sequence[tuple[str, str]] = (),
) -> Lookup:
    """The lookup of one trace; it takes the call's arguments where there is a call."""
    writer = _Writer(constants, inputs)
    lookup = writer.lookup
    lookup.reads, lookup.attributes, lookup.computed = reads, attributes, computed
    lookup.looks_at_numbers = bool(number_guards)
    lookup.defaults = defaults
    lookup.does_more = bool(fixed or value_guards or moving)
    for n, value in fixed.items():
        writer.code(f"i{n} = {constants.name(value)}")
    for found_in in attributes:
        writer.attributes(found_in)
    for function, values in defaults.items():
        writer.defaults(function, values)
    for read in reads:
        writer.read(read)
    writer.distinct(writer.arrays, "array")
    writer.distinct(writer.containers, "object")
    writer.distinct(writer.generators, "object")
    for together, path in apart:
        writer.guard(together, "", partial(Change, "aliasing", path, "an object of its own", "another one, too"))
    for number_guard in number_guards:
        writer.number(*number_guard)
    for value_guard in value_guards:
        writer.value(*value_guard)
    for part in moving:
        writer.moving(part)
    for n, text in computed.items():
        writer.code(f"i{n} = {text}")
    for layout in layouts:
        writer.layout(layout)
    gathered = ", ".join(f"i{n}" for n in range(len(inputs)))
    writer.code(f"return [{gathered}], ({''.join(f'v{n}, ' for n in range(writer.slots))})")
    return lookup


def _read_change(read: Read, found: Any) -> Change:
    """What was read is not what it has to be: both in the same words."""
    old, path = read.leaf, read.leaf.path
    if read.kind == "alias":
        return Change("aliasing", path, old.text, "an object of its own")
    if read.kind == "lacks":
        return Change("structure", path, "absent", "there", Message("fix.attribute_first"))
    if read.kind == "not own":
        return Change("structure", path, old.text, "an attribute of its own")
    if read.kind == "number":
        fix = Message("fix.same_kind", {"path": path})
        return Change("argument_type", path, old.text, type(found).__name__, fix)
    if read.kind == "sized" and isinstance(found, (dict, set)) and type(found) is read.want[0]:
        what = "keys" if isinstance(found, dict) else "items"
        each = (", ".join(map(repr, names)) for names in (read.want[2], found))
        before, after = (f"{read.want[0].__name__} with {what} {names}" for names in each)
        return Change("structure", path, before, after, Message("fix.same_order", {"what": what}))
    change = change_of(old, leaves_of([path], [found])[0])
    if read.kind == "same" and len(read.want) > 1 and found is read.want[0]:
        return replace(change, after="the same with other code")
    return change


def _one_change(paths: Sequence[str], kind: str, *objects: Any) -> Change:
    """Arrays, or containers, that were several are one."""
    known: dict[int, str] = {}
    for path, x in zip(paths, objects, strict=True):
        other = known.setdefault(id(x), path)
        if other != path:
            what = kind if kind == "array" else type(x).__name__
            own = f"{'an' if what[0] in 'aeiou' else 'a'} {what} of its own"
            return Change("aliasing", path, own, f"the {what} that `{other}` is, too")
    return Change("unknown", after="what it reads changed while it was looked up")


def _number_change(label: str, before: Any, found: Any) -> Change:
    return Change("python_value", label, repr(before), repr(found))


_ANYWAY = (
    bool, int, float, complex, str, bytes, type(None), type(...), np.dtype, itemgetter, weakref.ref, types.ModuleType,
    types.FunctionType, types.BuiltinFunctionType, types.CodeType, np.ufunc, type(np.where),
)  # fmt: skip


def _is_there_anyway(value: Any) -> bool:
    """A constant of a lookup that is no class, object or container of the user's."""
    if type(value) in _ANYWAY:
        return True
    if isinstance(value, (tuple, frozenset)):
        return all(map(_is_there_anyway, value))
    if isinstance(value, type):
        return value.__module__.partition(".")[0] in ("builtins", "numpy", "jitlab")
    if type(value) is dict:
        return "__name__" in value or "__builtins__" in value  # the names of a module
    return isinstance(value, _ANYWAY) or type(value).__module__.startswith("jitlab.capture.")


def _renewed_guard(guard: Guard, exchange: Exchange) -> Guard:
    """What a miss says of functions in the place of those that the guard named."""
    told = guard.told
    if isinstance(told, types.MethodType) and isinstance(told.__self__, Attributes):
        known = told.__self__
        values = {name: exchanged(value, exchange) for name, value in known.values.items()}
        if any(values[name] is not value for name, value in known.values.items()):
            return guard.telling(Attributes(known.table, values, known.text).change)
    if isinstance(told, partial) and told.func is _read_change:
        read = told.args[0]
        if (want := exchanged(read.want, exchange)) is not read.want:
            return guard.telling(partial(_read_change, Read(read.leaf, read.place, read.kind, want, read.slot, read.input)))
    return guard


def _shape_change(path: str, before: tuple[int, ...], found: tuple[int, ...]) -> Change:
    old, new = (f"[{', '.join(map(str, shape))}]" for shape in (before, found))
    return Change("shape", path, old, new)


def _defaults_change(name: str, before: tuple[Any, Any], found: tuple[Any, Any]) -> Change:
    shown = [", ".join([*map(shown_value, args or ()), *(f"{k}={shown_value(v)}" for k, v in (named or {}).items())])
             for args, named in (before, found)]  # fmt: skip
    fix = Message("fix.by_name", {"name": name})
    return Change("global", f"defaults of {name}", f"({shown[0]})", f"({shown[1]})", fix)


def is_plain(value: Any) -> bool:
    """A value whose text says all of it."""
    return isinstance(value, (bool, int, float, complex, str, type(None)))


def shown_value(value: Any) -> str:
    return repr(value) if is_plain(value) else f"{type(value).__name__} object"


def _unfit(read: Read, name: str, constants: Constants) -> str:
    """The condition under which what was found is not what the trace was made for."""
    want = read.want
    if read.kind == "lacks":
        return f"hasattr({name}, {want[0]!r})"
    if read.kind == "not own":
        return f"{want[0]!r} in {name}.__dict__"
    kind = "" if read.kind in ("same", "weak", "alias") else f"type({name}) is not {constants.name(want[0])}"
    if read.kind == "array":
        return f"{kind} or {name}.dtype != {constants.name(want[1])} or {name}.shape != {constants.name(want[2])}"
    if read.kind in ("number", "typed"):  # the names of a module are no container of the user's
        return f'{kind} or "__builtins__" in {name}' if want[0] is dict else kind
    if read.kind == "steps":
        return f"{kind} or not {constants.name(holds_only)}({name}, {want[1]!r}, {constants.name(want[2])})"
    if read.kind == "generator":
        return f"{kind} or type({name}._bit_generator) is not {constants.name(want[1])}"
    if read.kind == "equal":
        return f"{kind} or {_other(name, want[1], constants)}"
    if read.kind == "same":
        code = "".join(f" or {name}.__code__ is not {constants.name(code)}" for code in want[1:])
        return f"{name} is not {constants.name(want[0])}{code}"
    if read.kind == "weak":  # of an object that is gone the reference gives None
        return f"{name} is None or {name} is not {constants.name(want[0])}()"
    if read.kind == "alias":
        return f"{name} is not {want[0]}"
    keys = ""
    if want[2] is not None:
        keys = f" or tuple({name}) != {constants.name(want[2])}"
        kinds = tuple(map(type, want[2]))
        if any(issubclass(kind, (float, complex, np.inexact, tuple, frozenset)) for kind in kinds):
            keys = f" or {_other(f'tuple({name})', want[2], constants)}"
        elif set(kinds) - {str}:  # 1 is equal to True
            keys += f" or tuple({constants.name(map)}({constants.name(type)}, {name})) != {constants.name(kinds)}"
    return f"{kind} or len({name}) != {want[1]}{keys}"


#: What stands in a container that changes where it stands, without anybody's code.
_STEPPED: dict[str, frozenset[type]] = {
    "numbers": frozenset({bool, int, float, complex, str, *(dtype.type for dtype in TRACED_DTYPES)}),
    "list": frozenset({list}), "set": frozenset({set}),
}  # fmt: skip
#: Of so many values each is looked at.
MOST_LOOKED_AT = 1000


def holds_only(x: Any, step: str, slot: tuple[Any, ...] | None) -> bool:
    """Is what a list or dict holds (under this key, if one is given, or nothing) such?"""
    return (slot is not None or len(x) <= MOST_LOOKED_AT) and _STEPPED[step].issuperset(map(type, held_by(x, slot)))


def held_by(x: Any, slot: tuple[Any, ...] | None) -> Sequence[Any]:
    """What it holds, under this key if one is given."""
    if slot is None:
        return list(x.values() if type(x) is dict else x)
    try:
        return [x[slot[0]]]
    except (LookupError, TypeError):
        return ()


def holds(x: dict[Any, Any], value: Any) -> bool:
    """Does it hold this very object?"""
    return any(found is value for found in x.values())


def _other(found: str, value: Any, constants: Constants) -> str:
    """The condition under which what was found, of the value's type, is another value: `==` alone takes -0.0 for 0.0, and nan
    for another one each time."""
    if isinstance(value, (float, complex)) and (value != value or not (value.real and (value.imag or type(value) is float))):
        return f"repr({found}) != {repr(value)!r}"
    if type(value) in (tuple, frozenset):
        other = f"{constants.name(exact)}({found}) != {constants.name(exact(value))}"
        return f"({found} is not {constants.name(value)} and {other})"
    return f"{found} != {constants.text(value)}"


def _other_defaults(function: str, values: tuple[Any, Any], constants: Constants) -> str:
    """The condition under which a function's defaults are other objects."""
    positional, named = values
    code = f"{function}.__defaults__ is not {constants.name(positional)}"
    if named is None:
        return f"{code} or {function}.__kwdefaults__"
    each = "".join(f" or {function}.__kwdefaults__[{key!r}] is not {constants.name(value)}" for key, value in named.items())
    return f"{code} or len({function}.__kwdefaults__) != {len(named)}{each}"

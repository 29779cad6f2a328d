"""Collecting a piece's inputs: one Python function is written for each trace, because it runs at every iteration of a loop.

It reads the names, checks what the trace depends on, and gives (inputs, numbers); None when the trace does not fit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np

from jitlab import trees
from jitlab.ir import Extent

from .changes import Leaf
from .layouts import Layout


class Place:
    """Where something is found at each call, as code over the call's arguments `a`; during the capture also what is there."""

    __slots__ = ("_get", "code", "is_argument")

    def __init__(self, code: str, get: Callable[[], Any], *, is_argument: bool = False) -> None:
        self.code = code
        self._get = get
        self.is_argument = is_argument

    def __call__(self) -> Any:
        return self._get()

    def item(self, name: Any, key: str) -> Place:
        """What it holds under `name`, which is `key` in code."""
        get = self._get
        return Place(f"{self.code}[{key}]", lambda: get()[name], is_argument=self.is_argument)

    def forget(self) -> None:
        """The capture has ended: keep nothing alive."""
        self._get = _nothing


def _nothing() -> Any:
    return None


@dataclass(eq=False)
class Read:
    """Something outside that a piece depends on: where it is found, and what it has to be."""

    leaf: Leaf
    fetch: Callable[[], Any]
    kind: str  # "array", "number", "equal" (a value), "same" (an object; "weak": held weakly), "alias", "sized" (a container)
    want: tuple[Any, ...]  # (type, dtype, shape), (type,), (type, value), (object,) or a reference, (code,), (type, size, keys)
    # "same" of a module's function: (function, its code)
    table: dict[str, Any] | None = None  # the namespace in which `name` stands
    name: str = ""
    slot: int = -1  # of a number: its place among the numbers
    input: int = -1  # of an array: its place among the inputs


@dataclass(frozen=True)
class Attributes:
    """What was found under names of a module or class; compared in one step, by identity first."""

    table: Mapping[str, Any]
    values: dict[str, Any]
    text: str  # what the module or class is called

    def unfit(self, constants: Constants) -> str:
        """The condition under which one of them is another by now."""
        table, names = constants.name(self.table), list(self.values)
        if len(names) == 1:
            return f"{table}[{names[0]!r}] is not {constants.name(self.values[names[0]])}"
        return f"{constants.name(itemgetter(*names))}({table}) != {constants.name(tuple(self.values.values()))}"


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


def gather_function(
    reads: Sequence[Read],
    inputs: int,
    constants: Constants,
    *,
    fixed: Mapping[int, Any],
    number_guards: Sequence[tuple[str, Any]],
    value_guards: Sequence[tuple[int, int | tuple[int, ...]]],
    moving: Sequence[Moving],
    computed: Mapping[int, str],
    layouts: Sequence[Layout],
    attributes: Sequence[Attributes],
    defaults: Mapping[Any, tuple[Any, Any]],
) -> Callable[..., tuple[list[Any], tuple[Any, ...]] | None]:
    """The function that gathers for one trace; it takes the call's arguments where there is a call."""
    lines: list[str] = []
    tables: dict[int, str] = {}
    arrays: list[str] = []
    for n, value in fixed.items():
        lines.append(f"i{n} = {constants.name(value)}")
    for found_in in attributes:
        lines.append(f"if {found_in.unfit(constants)}: return None")
    for function, values in defaults.items():
        getter = constants.name(attrgetter("__defaults__", "__kwdefaults__"))
        lines.append(f"if {getter}({constants.name(function)}) != {constants.name(values)}: return None")
    slots = 0
    for read in reads:
        if isinstance(read.fetch, Place):
            found = read.fetch.code
        elif read.table is None:
            found = f"{constants.name(read.fetch)}()"
        else:
            if id(read.table) not in tables:
                tables[id(read.table)] = constants.name(read.table)
            found = f"{tables[id(read.table)]}[{read.name!r}]"
        if read.kind == "array" and f"i{read.input}" in arrays:
            lines.append(f"if {found} is not i{read.input}: return None")
            continue
        name = f"i{read.input}" if read.input >= 0 else f"v{read.slot}" if read.slot >= 0 else "found"
        slots += read.slot >= 0
        lines.append(f"{name} = {found}")
        lines.append(f"if {_unfit(read, name, constants)}: return None")
        if read.kind == "array" and read.want[0] is np.ndarray:
            arrays.append(name)
    if len(arrays) > 1:
        lines.append(f"if len({{{', '.join(f'id({name})' for name in arrays)}}}) != {len(arrays)}: return None")
    for text, expected in number_guards:
        lines.append(f"found = {text}")
        kind = constants.name(type(expected))
        lines.append(f"if type(found) is not {kind} or found != {constants.text(expected)}: return None")
    for n, value in value_guards:
        found = f"tuple(map(int, i{n}))" if isinstance(value, tuple) else f"int(i{n})"
        lines.append(f"if {found} != {value}: return None")
    for part in moving:
        lines.append(f"i{part.input} = i{part.base}[{part.index}]")
        lines.append(f"if i{part.input}.shape != {part.shape!r}: return None")
        if part.copied:
            lines.append(f"i{part.input} = {constants.name(np.array)}(i{part.input})[()]")
    for n, text in computed.items():
        lines.append(f"i{n} = {text}")
    for layout in layouts:
        other = "" if layout.exact else f" and not {constants.name(layout)}.fits(i{layout.input})"
        lines.append(f"if i{layout.input}.strides != {layout.strides!r}{other}: return None")
    lines.append(f"return [{', '.join(f'i{n}' for n in range(inputs))}], ({''.join(f'v{n}, ' for n in range(slots))})")
    body = "\n".join(f"        {line}" for line in lines)
    source = f"def gather(a=()):\n    try:\n{body}\n    except Exception:\n        return None\n"
    namespace = dict(constants.values)
    exec(trees.code_of(source, "<jitlab gather>", "exec"), namespace)
    return namespace["gather"]  # type: ignore[no-any-return]


def _unfit(read: Read, name: str, constants: Constants) -> str:
    """The condition under which what was found is not what the trace was made for."""
    want = read.want
    kind = "" if read.kind in ("same", "weak", "alias") else f"type({name}) is not {constants.name(want[0])}"
    if read.kind == "array":
        return f"{kind} or {name}.dtype != {constants.name(want[1])} or {name}.shape != {want[2]!r}"
    if read.kind == "number":
        return kind
    if read.kind == "equal":
        return f"{kind} or {name} != {constants.text(want[1])}"
    if read.kind == "same":
        code = "".join(f" or {name}.__code__ is not {constants.name(code)}" for code in want[1:])
        return f"{name} is not {constants.name(want[0])}{code}"
    if read.kind == "weak":
        return f"{name} is not {constants.name(want[0])}()"
    if read.kind == "alias":
        return f"{name} is not {want[0]}"
    keys = "" if want[2] is None else f" or tuple({name}) != {constants.name(want[2])}"
    return f"{kind} or len({name}) != {want[1]}{keys}"

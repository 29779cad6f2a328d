"""What a piece reads of the user's names and objects: arrays, numbers, what containers hold, absent attributes, defaults."""

from __future__ import annotations

import enum
import io
import types
import weakref
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from keyword import iskeyword
from typing import Any

import numpy as np

from jitlab.capture.control.purity import (
    PLAIN_OPERANDS,
    has_python_operators,
    holds_items,
    is_fixed,
    is_iterable,
    is_plain_key,
)
from jitlab.capture.drivers.piece_traces import EndPiece
from jitlab.capture.effort import GUARD_NS
from jitlab.capture.numpy_calls.draws import copy_of
from jitlab.capture.numpy_calls.numpy_traits import a_kind, full_name, is_foreign
from jitlab.capture.rewrite.splitting import TEMPORARY
from jitlab.capture.rewrite.staleness import may_be_reloaded
from jitlab.capture.state import Capture
from jitlab.capture.tracers.arrays import Place
from jitlab.capture.tracers.number import Number
from jitlab.capture.tracers.tensor import Tensor
from jitlab.ir import TRACED_DTYPES, Extent, Moving, Symbolic
from jitlab.ops.random_draws import Address, has_address

from .changes import Leaf, array_text, number_of
from .gathering import Constants, Read

#: What outlives its traces anyway, and is known by itself.
KEPT = (types.ModuleType, types.FunctionType, types.BuiltinFunctionType, type, np.ufunc)
#: What a recording has a copy of, whose items are guarded one by one.
COPIED = frozenset({list, tuple, dict, set, OrderedDict, Counter})


class ObjectsOfTheUser(Capture):
    """A capture that guards what it reads of objects from outside."""

    def __init__(self, name: str, *, strict: bool) -> None:
        super().__init__(name, strict=strict)
        self.reads: dict[tuple[int, str], Read] = {}
        self.number_reads = 0
        self.found: dict[tuple[int, str], Any] = {}  # what a read is inside the capture
        self.mirrors: dict[int, tuple[Any, Any, Place, str]] = {}  # by id of a copy: it, original, where that is, path
        self.copy_of: dict[int, int] = {}  # id of a container -> that of its copy; of what was taken back, too
        self.copied: dict[int, tuple[Any, ...]] = {}  # id of a container's copy -> its items, of a dict keys and values in turn
        self.found_at: dict[int, Place] = {}  # id of an object that is not copied -> where it is
        self.places: dict[int, Place] = {}  # id of an object, copied or not -> where a guard finds it
        self.constants = Constants()
        self.tables: dict[int, str] = {}  # id of a namespace -> what generated code calls it
        self.keep: list[Any] = []

    # ---- what names and attributes give
    def read(self, owner: Any, name: str, get: Callable[[], Any], kind: str = "global", text: str = "") -> Any:
        """An outer object as the piece sees it; its type or value becomes a guard."""
        key = (id(owner), name)
        if key in self.found:
            return self.found[key]
        self.keep.append(owner)
        if kind == "closure":
            code = f"{self.constants.name(owner)}.cell_contents"
        elif kind == "attribute":
            known = self.places.get(id(owner))
            code = self.constants.name(owner) if known is None else known.code
            is_written = name.isidentifier() and not iskeyword(name)
            code = f"{code}.{name}" if is_written else f"getattr({code}, {name!r})"
        else:
            code = self.code_in(owner, name)
        seen = self.found[key] = self._seen(key, text or name, Place(code, get, kind), get())
        return seen

    def code_in(self, table: Any, name: str) -> str:
        """What generated code finds a name of a namespace by."""
        known = self.tables.get(id(table))
        if known is None:
            known = self.tables[id(table)] = self.constants.name(table)
        return f"{known}[{name!r}]"

    def _seen(self, key: tuple[int, str], text: str, place: Place, value: Any) -> Any:
        kind = type(value)
        said = "a part of it" if text.startswith(TEMPORARY) else text  # of a statement that is run in steps
        is_array = kind is np.ndarray or hasattr(kind, "__jitlab_plain__")  # a subclass that computes as arrays do
        if is_array or (isinstance(value, np.generic) and value.dtype in TRACED_DTYPES):
            if value.dtype not in TRACED_DTYPES:
                raise EndPiece("dtype", "is_array_of", name=said, dtype=value.dtype)
            return self._read_array(key, text, place, value)
        if kind in (int, float):
            slot, self.number_reads = self.number_reads, self.number_reads + 1
            self._depend(key, Leaf(text, "value", kind.__name__, value=kind), place, "number", (kind,), slot=slot)
            return Number(self, value, f"v{slot}", text)  # type: ignore[arg-type]  # every one is a CellCapture
        if kind in (bool, str, bytes, complex, type(None)):
            self._depend(key, Leaf(text, "value", repr(value), value=value), place, "equal", (kind, value))
            return value
        if kind in COPIED or (isinstance(value, tuple) and hasattr(value, "_fields")):
            self.places.setdefault(id(value), place)
            return self.read_container(key, text, place, value)
        if isinstance(value, np.generic) or is_foreign(value):
            raise EndPiece("foreign_type", "is_a", name=said, kind=full_name(kind))
        if has_address(value):
            return self._read_generator(key, text, place, value)
        if hasattr(kind, "__next__"):
            raise EndPiece("effect", "is_file" if isinstance(value, io.IOBase) else "is_iterator", name=said)
        if holds_items(value):
            raise EndPiece("value", "holds_of_run", name=said, kind=a_kind(value))
        if has_python_operators(kind):
            raise EndPiece("effect", "own_operators", name=said, kind=kind.__qualname__)
        self.keep.append(value)
        self.found_at.setdefault(id(value), place)
        self.places.setdefault(id(value), place)
        want = (value, value.__code__) if kind is types.FunctionType and may_be_reloaded(value) else (value,)
        self._depend(key, Leaf(text, "object", f"{kind.__name__} object", value=number_of(want[-1])), place, "same", want)
        return value

    def _depend(
        self, key: tuple[int, str], leaf: Leaf, place: Place, kind: str, want: tuple[Any, ...], **number: int
    ) -> None:
        """The trace holds while what is found at `place` is as wanted; it keeps no object of the user's alive."""
        self.spend(GUARD_NS)
        if kind == "same" and not isinstance(want[0], KEPT):
            try:
                kind, want = "weak", (weakref.ref(want[0]),)
            except TypeError:
                pass
        self.reads[key] = Read(leaf, place, kind, want, **number)

    def _read_array(self, key: tuple[int, str], text: str, place: Place, value: Any) -> Tensor:
        kind, dtype, shape = type(value), value.dtype, value.shape
        is_array = isinstance(value, np.ndarray)
        known = self.captured.get(id(value)) if is_array else None
        tensor = known.tensor if known is not None else self.add_input(value, text, captured=True)
        input = tensor._cell.input
        assert input is not None
        leaf = Leaf(text, "array", array_text(value), dtype, shape)
        self._depend(key, leaf, place, "array", (kind, dtype, shape), input=self.inputs.index(input))
        return tensor

    # ---- random generators
    def _read_generator(self, key: tuple[int, str], text: str, place: Place, value: Any) -> Any:
        """Any of its kind will do: what it draws is the run's."""
        known = self.places.setdefault(id(value), place)
        self.keep.append(value)
        self.found_at.setdefault(id(value), place)
        leaf = Leaf(text, "object", f"{type(value).__name__} over {type(value._bit_generator).__name__}")
        want = (type(value), type(value._bit_generator))
        self._depend(key, leaf, place, *(("generator", want) if known is place else ("alias", (known.code,))))
        return value

    def address(self, generator: Any) -> Tensor | None:
        if not has_address(generator):
            return None
        found = Address(generator)
        for input in self.inputs:
            if type(input.value) is Address and input.value == found:
                if input.value.generator is not generator:
                    raise EndPiece("effect", "shares_state", name=input.path)
                return input.tensor
        place = self.places.get(id(generator))
        key = next((key for key, read in self.reads.items() if read.kind == "generator" and read.place is place), None)
        if key is None:  # it is the one of a method that was found, or made by the program
            key = (id(generator), "generator")
            name = type(generator).__name__
            self._read_generator(key, name, Place(self.constants.name(generator), partial(_itself, generator)), generator)
        read = self.reads[key]
        tensor = self.add_input(found, read.leaf.path, captured=True)
        self.reads[key] = replace(read, input=len(self.inputs) - 1)
        self.values[tensor._cell.node] = Address(copy_of(self, generator))
        return tensor

    # ---- what they hold
    def read_container(self, key: tuple[int, str], text: str, place: Place, value: Any) -> Any:
        """A copy of a list, tuple, dict or set with Tensors in it; its structure becomes a guard."""
        known = self.mirrors.get(self.copy_of.get(id(value), 0))
        if known is not None and known[1] is value:
            what = f"the {type(value).__name__} that `{known[3]}` is, too"
            self._depend(key, Leaf(text, "shared", what), place, "same", (value,))
            return known[0]
        kind = type(value)
        size = len(value)
        keys = tuple(value) if isinstance(value, (dict, set)) else None
        if size > 1000:
            raise EndPiece("value", "holds_many", name=text, size=size)

        self._depend(key, Leaf(text, "container", f"{kind.__name__} of {size}"), place, "sized", (kind, size, keys))
        self.keep.append(value)
        mirror = self._copy_of_set(text, value) if kind is set else self._copy_of_items(text, place, value)
        self.mirrors[id(mirror)] = (mirror, value, place, text)
        self.copy_of[id(value)] = id(mirror)
        self.copied[id(mirror)] = _items(mirror)
        return mirror

    def _copy_of_set(self, text: str, value: set[Any]) -> set[Any]:
        copy = value.copy()
        if not all(map(is_plain_key, value)) or tuple(copy) != tuple(value):
            raise EndPiece("value", "pythons_set", name=text)
        return copy

    def _copy_of_items(self, text: str, place: Place, value: Any) -> Any:
        items = {}
        for name in list(value) if isinstance(value, dict) else range(len(value)):
            quoted = f'"{name}"' if isinstance(name, str) else repr(name)
            part = (id(value), f"[{quoted}]")
            items[name] = self._item(part, f"{text}[{quoted}]", place.item(name, self.constants.text(name)), value[name])
        kind = type(value)
        if hasattr(value, "_fields"):
            return kind(*items.values())
        return kind(items if isinstance(value, dict) else items.values())

    def place_of(self, x: Any) -> Place | None:
        """Where an object of the user's is found again."""
        mirror = self.mirrors.get(id(x))
        return self.found_at.get(id(x)) if mirror is None else mirror[2]

    def check_copies(self) -> None:
        """A statement has run. It changed no list or dict of the user's where nobody saw it: `same = names; same += [1]`."""
        for key, (mirror, original, _, _) in self.mirrors.items():
            before = self.copied[key]
            now = _items(mirror)
            if len(now) != len(before) or any(a is not b for a, b in zip(now, before, strict=True)):
                mirror.clear()
                (mirror.extend if isinstance(mirror, list) else mirror.update)(
                    dict(zip(before[::2], before[1::2], strict=True)) if isinstance(mirror, dict) else before
                )
                raise EndPiece("effect", "changes_outside", what=a_kind(original))

    def _item(self, part: tuple[int, str], text: str, place: Place, value: Any) -> Any:
        if part not in self.found:
            self.found[part] = self._seen(part, text, place, value)
        return self.found[part]

    # ---- what is asked of them
    def lacks(self, owner: Any, name: str) -> None:
        """It becomes a guard, where others may give the object the attribute."""
        changes = isinstance(owner, (types.FunctionType, types.ModuleType, type)) or not only_plain(owner)
        if not changes or id(owner) in self.instances:
            return
        place = self.place_of(owner)
        if place is None:
            raise EndPiece("value", "asks", owner=a_kind(owner), name=name)
        path = f"{getattr(owner, '__name__', type(owner).__name__)}.{name}"
        self.keep.append(owner)
        self._depend((id(owner), f"lacks {name}"), Leaf(path, "object", "absent"), place, "lacks", (name,))

    def before_text(self, x: Any) -> None:
        if not only_plain(x):
            raise EndPiece("value", "makes_text", what=a_kind(x))

    def before_iteration(self, x: Any) -> None:
        """What an object of the user's gives is asked at each call."""
        if not isinstance(x, (Tensor, Number, *PLAIN_OPERANDS)) and is_iterable(type(x)):
            raise EndPiece("effect", "iterates", what=a_kind(x))

    def before_compare(self, sign: str, left: Any, right: Any) -> None:
        """What a class's own `==` reads is Python's."""
        if sign in ("Is", "IsNot"):
            return
        if sign in ("In", "NotIn"):
            self.before_iteration(right)
        for x in (left, right.keys() if isinstance(right, dict) and sign in ("In", "NotIn") else right):
            if not only_plain(x, object.__eq__):
                raise EndPiece("value", "compares", what=a_kind(x))

    def parts_of(self, function: partial[Any]) -> tuple[Sequence[Any], Mapping[str, Any]]:
        if self.place_of(function) is None:
            return function.args, function.keywords
        args, named = function.args, function.keywords
        if not all(map(is_fixed, args)):
            seen = self.read(function, "args", lambda: function.args, "attribute", "partial.args")
            args = tuple(x if is_fixed(x) else y for x, y in zip(args, seen, strict=True))
        if named:  # a dict that anybody may change
            named = self.read(function, "keywords", lambda: function.keywords, "attribute", "partial.keywords")
        return args, named

    def with_defaults(
        self, function: types.FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """A list, dict or object that is a default is what it holds at each call."""
        code, values, named = function.__code__, function.__defaults__ or (), function.__kwdefaults__ or {}
        names, text = code.co_varnames[: code.co_argcount], f"defaults of {function.__name__}"
        by_number = enumerate(values, len(names) - len(values))
        missing = {n: value for n, value in by_number if n >= len(args) and names[n] not in kwargs}
        if not all(map(is_fixed, missing.values())):
            seen = self.read(function, "__defaults__", lambda: function.__defaults__, "attribute", text)
            for n, value in missing.items():
                given = value if is_fixed(value) else seen[n - len(names)]
                if n < code.co_posonlyargcount:
                    args = (*args, given)
                else:
                    kwargs = {**kwargs, names[n]: given}
        others = [name for name, value in named.items() if name not in kwargs and not is_fixed(value)]
        if others:
            seen = self.read(function, "__kwdefaults__", lambda: function.__kwdefaults__, "attribute", text)
            kwargs = {**kwargs, **{name: seen[name] for name in others}}
        return args, kwargs



def _itself(value: Any) -> Any:
    return value


def only_plain(x: Any, equal: Any = None) -> bool:
    """Is it, with all it holds, read without code that is not recorded? `equal`: the `==` of objects that have none."""
    if isinstance(x, (list, tuple, set)):
        return all(only_plain(item, equal) for item in x)
    if isinstance(x, dict):
        return all(only_plain(item, equal) for item in x.values())
    if isinstance(x, (Tensor, Number, Symbolic, Extent, Moving, *PLAIN_OPERANDS, enum.Enum, BaseException)):
        return True
    return equal is not None and type(x).__eq__ is equal


def _items(container: Any) -> tuple[Any, ...]:
    if isinstance(container, dict):
        return tuple(part for item in container.items() for part in item)
    return tuple(container)

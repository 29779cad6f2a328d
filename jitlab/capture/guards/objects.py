"""What a piece reads of the user's objects: what containers hold, absent attributes, texts, comparisons, defaults."""

from __future__ import annotations

import enum
import types
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from jitlab.capture.control.purity import PLAIN_OPERANDS, is_fixed, is_iterable, is_plain_key
from jitlab.capture.drivers.piece_traces import EndPiece
from jitlab.capture.numpy_calls.numpy_traits import a_kind
from jitlab.capture.state import Capture
from jitlab.capture.tracers.number import Number
from jitlab.capture.tracers.tensor import Tensor
from jitlab.ir import Extent, Moving, Symbolic

from .changes import Leaf
from .gathering import Constants, Place

#: What a recording has a copy of, whose items are guarded one by one.
COPIED = frozenset({list, tuple, dict, set, OrderedDict, Counter})



class ObjectsOfTheUser(Capture):
    """A capture that guards what it reads of objects from outside."""

    mirrors: dict[int, tuple[Any, Any, Callable[[], Any], str]]  # by id of a copy: it, original, fetch, path
    outside: dict[int, Callable[[], Any]]  # id of an object that is not copied -> what gives it
    copied: dict[int, tuple[Any, ...]]  # id of a container's copy -> its items, of a dict keys and values in turn
    found: dict[tuple[int, str], Any]  # what a read is inside the capture
    constants: Constants
    keep: list[Any]

    def read(self, place: Any, name: str, fetch: Callable[[], Any], kind: str = "global", text: str = "") -> Any:
        """An outer object as the piece sees it; its type or value becomes a guard."""
        raise NotImplementedError

    def _seen(self, key: tuple[int, str], text: str, fetch: Callable[[], Any], value: Any) -> Any:
        raise NotImplementedError

    def _depend(
        self, key: tuple[int, str], leaf: Leaf, fetch: Callable[[], Any], kind: str, want: tuple[Any, ...], **place: int
    ) -> None:
        """The trace holds while what `fetch` gives is as wanted."""
        raise NotImplementedError

    # ---- what they hold
    def read_container(self, key: tuple[int, str], text: str, fetch: Callable[[], Any], value: Any) -> Any:
        """A copy of a list, tuple, dict or set with Tensors in it; its structure becomes a guard."""
        for known, original, _, path in self.mirrors.values():
            if original is value:
                what = f"the {type(value).__name__} that `{path}` is, too"
                self._depend(key, Leaf(text, "shared", what), fetch, "same", (value,))
                return known
        kind = type(value)
        size = len(value)
        keys = tuple(value) if isinstance(value, (dict, set)) else None
        if size > 1000:
            raise EndPiece("value", f"{text} holds {size} items")

        self._depend(key, Leaf(text, "container", f"{kind.__name__} of {size}"), fetch, "sized", (kind, size, keys))
        self.keep.append(value)
        mirror = self._copy_of_set(text, value) if kind is set else self._copy_of_items(text, fetch, value)
        self.mirrors[id(mirror)] = (mirror, value, fetch, text)
        self.copied[id(mirror)] = _items(mirror)
        return mirror

    def _copy_of_set(self, text: str, value: set[Any]) -> set[Any]:
        copy = value.copy()
        if not all(map(is_plain_key, value)) or tuple(copy) != tuple(value):
            raise EndPiece("value", f"{text} is a set of which only Python knows the items and their order")
        return copy

    def _copy_of_items(self, text: str, fetch: Callable[[], Any], value: Any) -> Any:
        items = {}
        for name in list(value) if isinstance(value, dict) else range(len(value)):
            quoted = f'"{name}"' if isinstance(name, str) else repr(name)
            part = (id(value), f"[{quoted}]")
            items[name] = self._item(part, f"{text}[{quoted}]", self._item_place(fetch, name), value[name])
        kind = type(value)
        if hasattr(value, "_fields"):
            return kind(*items.values())
        return kind(items if isinstance(value, dict) else items.values())

    def fetch_of(self, x: Any) -> Callable[[], Any] | None:
        """What gives an object of the user's again."""
        mirror = self.mirrors.get(id(x))
        return self.outside.get(id(x)) if mirror is None else mirror[2]

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
                raise EndPiece("effect", f"it changes {a_kind(original)}")

    def _item_place(self, fetch: Callable[[], Any], name: Any) -> Callable[[], Any]:
        return fetch.item(name, self.constants.text(name)) if isinstance(fetch, Place) else lambda: fetch()[name]

    def _item(self, part: tuple[int, str], text: str, fetch: Callable[[], Any], value: Any) -> Any:
        if part not in self.found:
            self.found[part] = self._seen(part, text, fetch, value)
        return self.found[part]

    # ---- what is asked of them
    def lacks(self, owner: Any, name: str) -> None:
        """It becomes a guard, where others may give the object the attribute."""
        changes = isinstance(owner, (types.FunctionType, types.ModuleType, type)) or not only_plain(owner)
        if not changes or id(owner) in self.instances:
            return
        fetch = self.fetch_of(owner)
        if fetch is None:
            raise EndPiece("value", f"it asks {a_kind(owner)} for {name}")
        path = f"{getattr(owner, '__name__', type(owner).__name__)}.{name}"
        self.keep.append(owner)
        self._depend((id(owner), f"lacks {name}"), Leaf(path, "object", "absent"), fetch, "lacks", (name,))

    def before_text(self, x: Any) -> None:
        if not only_plain(x):
            raise EndPiece("value", f"it makes text of {a_kind(x)}")

    def before_iteration(self, x: Any) -> None:
        """What an object of the user's gives is asked at each call."""
        if not isinstance(x, (Tensor, Number, *PLAIN_OPERANDS)) and is_iterable(type(x)):
            raise EndPiece("effect", f"it iterates over {a_kind(x)}")

    def before_compare(self, sign: str, left: Any, right: Any) -> None:
        """What a class's own `==` reads is Python's."""
        if sign in ("Is", "IsNot"):
            return
        if sign in ("In", "NotIn"):
            self.before_iteration(right)
        for x in (left, right.keys() if isinstance(right, dict) and sign in ("In", "NotIn") else right):
            if not only_plain(x, object.__eq__):
                raise EndPiece("value", f"it compares {a_kind(x)}")

    def parts_of(self, function: partial[Any]) -> tuple[Sequence[Any], Mapping[str, Any]]:
        if self.fetch_of(function) is None:
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

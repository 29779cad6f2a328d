"""Functions that are defined again with equal code: a cell that runs again, a module that is loaded again, makes other objects
that do the same. A trace whose guards name one of them may name the other in its place."""

from __future__ import annotations

import types
import weakref
from operator import attrgetter
from typing import Any

from jitlab.capture.positions import is_user_file
from jitlab.support.lazy_dataclass import dataclass

from .changes import number_of
from .signature import exact

#: Of what guards name, by id, what they name in its place; also of what leaves call them, the number.
Exchange = dict[int, Any]

_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(...))


@dataclass(frozen=True, eq=False)
class Defined:
    """A function as a trace met it. `options`: what it was decorated with, where `reference` is to what the decorator gave."""

    function: types.FunctionType
    code: types.CodeType
    defaults: tuple[Any, ...] | None
    named: dict[str, Any] | None
    number: int  # of the object that a name gave
    options: str = ""
    reference: Any = None

    @classmethod
    def of(cls, value: Any, reference: Any = None) -> Defined | None:
        """What is known of a function, or of a decorated one; None for other objects."""
        function, options = value, ""
        if type(value) is not types.FunctionType:
            if (definition := getattr(type(value), "__jitlab_definition__", None)) is None:
                return None
            function, options = definition(value)
            if type(function) is not types.FunctionType:
                return None
        defaults, named = function.__defaults__, function.__kwdefaults__
        return cls(function, function.__code__, defaults, named and dict(named), number_of(value), options, reference)

    @property
    def is_users(self) -> bool:
        return is_user_file(self.code.co_filename)

    def exchange(self, other: Any) -> Exchange | None:
        """What guards name in the place of this one where `other` does the same; None where it does not."""
        found = Defined.of(other)
        if found is None or found.options != self.options:
            return None
        old, new = self.function, found.function
        made: Exchange = {}
        if self.reference is not None and self.reference() is not other:
            made[id(self.reference)] = weakref.ref(other)
        if old is new:
            return made if self.code is found.code else None
        if not _is_bare(old) or not _is_bare(new) or old.__globals__ is not new.__globals__:
            return None
        if _names(old) != _names(new) or not is_same_code(self.code, found.code):
            return None
        if not _is_same_value(self.defaults, found.defaults):
            return None
        if (self.named or {}).keys() != (found.named or {}).keys():
            return None
        pairs = [(value, (found.named or {})[name]) for name, value in (self.named or {}).items()]
        if not all(_is_same_value(*pair) for pair in pairs):
            return None
        pairs += [(old, new), (self.code, found.code), (self.defaults, found.defaults)]
        numbers = {number_of(mine): number_of(theirs) for mine, theirs in pairs[-3:-1]}
        return made | numbers | {id(mine): theirs for mine, theirs in pairs if mine is not theirs}


def exchanged(value: Any, exchange: Exchange) -> Any:
    """What a guard names in the place of what it named, also inside a tuple."""
    if id(value) in exchange:
        return exchange[id(value)]
    if type(value) is tuple and value and not exchange.keys().isdisjoint(map(id, value)):
        return tuple(exchange.get(id(item), item) for item in value)
    return value


def is_same_code(a: types.CodeType, b: types.CodeType) -> bool:
    """Equal code of the same lines of the same file."""
    if a is b:
        return True
    if a != b or _left_out(a) != _left_out(b):
        return False
    pairs = [pair for pair in zip(a.co_consts, b.co_consts, strict=True) if type(pair[0]) is types.CodeType]
    return all([is_same_code(*pair) for pair in pairs])


#: What equality of code objects leaves out.
_left_out = attrgetter("co_filename", "co_qualname", "co_linetable", "co_exceptiontable", "co_flags")


def _is_bare(function: types.FunctionType) -> bool:
    """Nothing but its code, its defaults and its globals decides what it does."""
    return not function.__closure__ and not function.__dict__


def _names(function: types.FunctionType) -> tuple[Any, ...]:
    return function.__name__, function.__qualname__, function.__module__


def _is_same_value(a: Any, b: Any) -> bool:
    """Nobody can tell the two apart, but by their places in memory where they are plain."""
    return a is b or (_is_plain(a) and _is_plain(b) and bool(exact(a) == exact(b)))


def _is_plain(x: Any) -> bool:
    return type(x) in _PLAIN or (type(x) in (tuple, frozenset) and all(map(_is_plain, x)))

"""The `dataclass` of the standard library, whose methods are made later: `__init__` when it is first called, the others as
closures, which need no compiler. A program uses one in twelve of them, and making all took half of `import jitlab`.

Fields, `replace`, `asdict` and `fields` are the library's own. It does not know that a class of here is frozen, so what derives
from one takes this decorator, too.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, eq=True, **options):
        """As `dataclasses.dataclass`; `order`, `unsafe_hash` and `InitVar` are not for here."""
        if cls is None:
            return lambda cls: dataclass(cls, frozen=frozen, eq=eq, **options)
        own = {"__eq__", "__hash__"} & vars(cls).keys()  # a class that has __eq__ alone has the __hash__ None
        hashed = "__hash__" in own and not ("__eq__" in own and vars(cls)["__hash__"] is None)
        cls = dataclasses.dataclass(cls, init=False, repr=False, eq=False, **options)
        methods = {"__init__": Constructor(cls, frozen), "__repr__": _repr}
        if eq:
            methods["__eq__"], hashing = _comparing([field.name for field in dataclasses.fields(cls) if field.compare])
            if not hashed:
                cls.__hash__ = hashing if frozen else None
        if frozen:
            methods |= _frozen(cls, {field.name for field in dataclasses.fields(cls)})
        for name, method in methods.items():
            if name not in vars(cls):
                setattr(cls, name, method)
        return cls


class _Factory:
    """Stands for an argument that was not given, of a field that has a factory; a signature shows it as dataclasses' own."""

    def __repr__(self) -> str:
        return "<factory>"


MADE = _Factory()


class Constructor:
    """The `__init__` of a class until it is first asked for; then a function is in its place."""

    def __init__(self, cls: type, frozen: bool) -> None:
        self.cls = cls
        self.frozen = frozen

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        made = self.cls.__dict__["__init__"]
        if made is self:
            made = _constructor(self.cls, self.frozen)
            self.cls.__init__ = made
        return made.__get__(instance, owner)


def _constructor(cls: type, frozen: bool) -> Callable[..., None]:
    """`__init__`, compiled: its parameters are the fields, and it ends with `__post_init__`."""
    names: dict[str, Any] = {"_set": object.__setattr__, "_MADE": MADE}
    parameters: dict[Any, list[str]] = {False: [], True: []}
    body = []
    annotations = {}
    for field in dataclasses.fields(cls):
        name = value = field.name
        if field.default_factory is not dataclasses.MISSING:
            names[f"_make_{name}"] = field.default_factory
            value = f"_make_{name}() if {name} is _MADE else {name}" if field.init else f"_make_{name}()"
        if field.init:
            annotations[name] = field.type
            default = ""
            if field.default_factory is not dataclasses.MISSING:
                default = "=_MADE"
            elif field.default is not dataclasses.MISSING:
                names[f"_default_{name}"] = field.default
                default = f"=_default_{name}"
            parameters[field.kw_only].append(name + default)
        elif field.default_factory is dataclasses.MISSING:
            continue  # its default stands in the class, or somebody else gives it
        body.append(f" _set(self, {name!r}, {value})" if frozen else f" self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        body.append(" self.__post_init__()")
    by_name = ["*", *parameters[True]] if parameters[True] else []
    source = f"def __init__({', '.join(['self', *parameters[False], *by_name])}):\n" + ("\n".join(body) or " pass")
    try:
        exec(source, names)
    except MemoryError:
        raise MemoryError(f"no room for the {len(source)} bytes of the text of {cls.__qualname__}.__init__") from None
    made: Callable[..., None] = names["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    made.__module__ = cls.__module__
    made.__annotations__ = {**annotations, "return": None}
    return made


@recursive_repr()
def _repr(self: Any) -> str:
    shown = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in dataclasses.fields(self) if field.repr)
    return f"{type(self).__qualname__}({shown})"


def _comparing(names: Sequence[str]) -> tuple[Callable[[Any, Any], Any], Callable[[Any], int]]:
    """`__eq__` and `__hash__` by the fields of these names; of one field as of a tuple of it, in which nan is nan."""
    if len(names) == 1:
        value = attrgetter(names[0])

        def __eq__(self: Any, other: Any) -> Any:
            return (value(self),) == (value(other),) if other.__class__ is self.__class__ else NotImplemented

        def __hash__(self: Any) -> int:
            return hash((value(self),))

    else:
        values = attrgetter(*names) if names else lambda instance: ()

        def __eq__(self: Any, other: Any) -> Any:
            return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

        def __hash__(self: Any) -> int:
            return hash(values(self))

    return __eq__, __hash__


def _frozen(cls: Any, names: set[str]) -> dict[str, Callable[..., None]]:
    """What refuses to change a field, and how an object is copied all the same."""

    def __setattr__(self: Any, name: str, value: Any) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return {"__setattr__": __setattr__, "__delattr__": __delattr__, "__setstate__": _restored}


def _restored(self: Any, state: Any) -> None:
    """What a copy of a frozen object takes over; of an object of slots it is a pair."""
    for part in state if isinstance(state, tuple) else (state,):
        for name, value in (part or {}).items():
            object.__setattr__(self, name, value)

"""The `dataclass` of the standard library, whose methods and fields are made later: when they are first asked for. A program
uses one class in twelve of them, and making all took half of `import jitlab`. Constructors are not compiled either: classes
with as many fields of the same kinds share their code (`constructors.py`).

Fields, `replace`, `asdict` and `fields` are the library's own. It does not know that a class of here is frozen, so what derives
from one takes this decorator, too.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from functools import partial
from operator import attrgetter
from reprlib import recursive_repr
from types import FunctionType
from typing import TYPE_CHECKING, Any

from . import constructors

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, eq=True, slots=False, kw_only=False):
        """As `dataclasses.dataclass`; `order`, `unsafe_hash` and `InitVar` are not for here."""
        if cls is None:
            return lambda cls: dataclass(cls, frozen=frozen, eq=eq, slots=slots, kw_only=kw_only)
        own = {"__eq__", "__hash__"} & vars(cls).keys()  # a class that has __eq__ alone has the __hash__ None
        hashed = "__hash__" in own and not ("__eq__" in own and vars(cls)["__hash__"] is None)
        given = _take_fields(cls)
        if slots:
            given, cls = _with_slots(cls, given)
        makers = {
            "__init__": partial(_constructor, frozen=frozen),
            "__dataclass_fields__": partial(_fields, given=given, kw_only=kw_only),
            "__match_args__": _match_args,
        }
        methods = {"__repr__": _repr, "__replace__": dataclasses.replace, "__dataclass_params__": _One.__dataclass_params__}
        if eq:
            makers["__eq__"] = _equality
            if not hashed:
                cls.__hash__ = Late(cls, "__hash__", _hashing) if frozen else None
        if frozen:
            methods |= _frozen(cls)
        for name, method in (methods | {name: Late(cls, name, make) for name, make in makers.items()}).items():
            if name not in vars(cls):
                setattr(cls, name, method)
        return cls


class Late:
    """A method or table of a class until it is first asked for; then what `make(cls)` gives is in its place."""

    def __init__(self, cls: type, name: str, make: Callable[[type], Any]) -> None:
        self.cls = cls
        self.name = name
        self.make = make

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        made = self.cls.__dict__[self.name]
        if made is self:
            made = self.make(self.cls)
            setattr(self.cls, self.name, made)
        return made.__get__(instance, owner) if hasattr(made, "__get__") else made


def _take_fields(cls: Any) -> dict[str, Any]:
    """What the body of a class gave by `field()`; their defaults are in its place, as the standard library leaves them."""
    given = {name: value for name, value in vars(cls).items() if isinstance(value, dataclasses.Field)}
    for name, value in given.items():
        if value.default is dataclasses.MISSING:
            delattr(cls, name)
        else:
            setattr(cls, name, value.default)
    return given


def _with_slots(cls: Any, given: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
    """The defaults of all fields, and the class anew with slots in their place."""
    names = [name for name, kind in inspect.get_annotations(cls).items() if "ClassVar" not in str(kind)]
    inherited = {name for base in cls.__mro__[1:-1] for name in vars(base).get("__slots__", ())}
    body = {name: value for name, value in vars(cls).items() if name not in ("__dict__", "__weakref__", *names)}
    body["__qualname__"] = cls.__qualname__
    body["__slots__"] = tuple(name for name in names if name not in inherited)
    defaults = {name: value for name, value in vars(cls).items() if name in names}
    return {**defaults, **given}, type(cls)(cls.__name__, cls.__bases__, body)


def _fields(cls: type, given: Mapping[str, Any], kw_only: bool) -> dict[str, Any]:
    """`__dataclass_fields__`: those of the bases, then its own."""
    fields: dict[str, Any] = {}
    for base in cls.__mro__[-1:0:-1]:
        fields |= getattr(base, "__dataclass_fields__", {})
    for name, kind, default in _own(cls, given):
        field: Any = default if isinstance(default, dataclasses.Field) else dataclasses.field(default=default)
        field.name, field.type, field._field_type = name, kind, _FIELD
        if field.kw_only is dataclasses.MISSING:
            field.kw_only = kw_only
        fields[name] = field
    return fields


@dataclasses.dataclass(init=False, repr=False, eq=False)
class _One:
    field: int


_FIELD: Any = _One.__dataclass_fields__["field"]._field_type  # type: ignore[attr-defined]  # how the library marks a field


def _match_args(cls: Any) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(cls) if field.init and not field.kw_only)


class _Factory:
    """Stands for an argument that was not given, of a field that has a factory; a signature shows it as dataclasses' own."""

    def __repr__(self) -> str:
        return "<factory>"


MADE = _Factory()


def _constructor(cls: Any, frozen: bool) -> Callable[..., None]:
    """`__init__`: its parameters are the fields, and it ends with `__post_init__`. It has the code of another class that has as
    many fields of the same kinds, with the names of this one."""
    own, names, kinds = {}, {"put": object.__setattr__, "MADE": MADE}, ""
    optional, by_name, annotations = [], {}, {}
    for name, (kind, default, annotation, _) in _described(cls).items():
        if not kind:
            continue
        own[f"a{len(kinds)}"] = name
        if kind in "mlf":
            own[f"make_a{len(kinds)}"] = f"make_{name}"
            names[f"make_{name}"], default = default, MADE
        kinds += kind
        if kind != "f":
            annotations[name] = annotation
            if default is not dataclasses.MISSING and kind in "pm":
                optional.append(default)
            elif default is not dataclasses.MISSING:
                by_name[name] = default
    shape = shape_of(cls, kinds, frozen)
    model = (getattr(constructors, shape, None) or compiled(shape)).__code__
    code = model.replace(
        co_varnames=_renamed(model.co_varnames, own), co_names=_renamed(model.co_names, own),
        co_consts=_renamed(model.co_consts, own) if frozen else model.co_consts,
        co_name="__init__", co_qualname=f"{cls.__qualname__}.__init__",
    )  # fmt: skip
    made = FunctionType(code, names, "__init__")
    made.__defaults__, made.__kwdefaults__ = tuple(optional) or None, by_name or None
    made.__module__ = cls.__module__
    annotations["return"] = None
    made.__annotations__ = annotations
    return made


def _renamed(names: tuple[Any, ...], own: Mapping[str, str]) -> tuple[Any, ...]:
    """Names and constants of a model as those of a class."""
    return tuple([own.get(name, name) for name in names])


def _described(cls: type) -> dict[str, tuple[str, Any, Any, bool]]:
    """Of each field its kind, its default or factory, its annotation, and whether it is compared; sooner than its Field."""
    found: dict[str, tuple[str, Any, Any, bool]] = {}
    for base in cls.__mro__[-2::-1]:
        fields = vars(base).get("__dataclass_fields__")
        if isinstance(fields, Late):
            given, kw_only = fields.make.keywords["given"], fields.make.keywords["kw_only"]  # type: ignore[attr-defined]
            plain_kind = "k" if kw_only else "p"
            for name, annotation, default in _own(base, given):
                if default.__class__ is dataclasses.Field:
                    if default.kw_only is dataclasses.MISSING:
                        default.kw_only = kw_only
                    found[name] = kind_of(default), _default(default), annotation, bool(default.compare)
                else:
                    found[name] = plain_kind, default, annotation, True
        elif fields is not None:
            found |= {f.name: (kind_of(f), _default(f), f.type, f.compare) for f in dataclasses.fields(base)}
    return found


def _own(cls: type, given: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    """The fields that a class adds, each with its annotation and its default, a Field where the class gave one."""
    there: Mapping[str, Any] = vars(cls)
    annotations = there.get("__annotations__")  # sooner than `get_annotations`, which copies it
    slots = there.get("__slots__", ())
    return [
        (name, kind, given.get(name, dataclasses.MISSING if name in slots else there.get(name, dataclasses.MISSING)))
        for name, kind in (inspect.get_annotations(cls) if annotations is None else annotations).items()
        if "ClassVar" not in (kind if kind.__class__ is str else str(kind))
    ]


def _default(field: Any) -> Any:
    """Its default, or what makes it."""
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory


def kind_of(field: Any) -> str:
    """Of a field that `__init__` sets: p a parameter, m one with a factory, k and l those that are given by name alone, f made
    by a factory whoever calls. "": its default stands in the class, or somebody else gives it."""
    has_factory = field.default_factory is not dataclasses.MISSING
    if not field.init:
        return "f" if has_factory else ""
    return ("kl" if field.kw_only else "pm")[has_factory]


def shape_of(cls: Any, kinds: str, frozen: bool) -> str:
    """The name of the code, of the kinds of the fields."""
    ends = "_post" if hasattr(cls, "__post_init__") else ""
    return f"{'frozen' if frozen else 'open'}_{kinds}{ends}"


def source_of(shape: str) -> str:
    """The code as a text, of fields that are called a0, a1, ..."""
    how, kinds, *ends = shape.split("_")
    names = [f"a{number}" for number in range(len(kinds))]
    by_name = [name for name, kind in zip(names, kinds, strict=True) if kind in "kl"]
    parameters = ["self", *(name for name, kind in zip(names, kinds, strict=True) if kind in "pm")]
    steps = []
    for name, kind in zip(names, kinds, strict=True):
        value = {"f": f"make_{name}()", "m": f"make_{name}() if {name} is MADE else {name}"}.get(kind.replace("l", "m"), name)
        steps.append(f'put(self, "{name}", {value})' if how == "frozen" else f"self.{name} = {value}")
    steps += ["self.__post_init__()" for _ in ends]
    return f"def {shape}({', '.join(parameters + ['*'] * bool(by_name) + by_name)}): {'; '.join(steps or ['pass'])}\n"


def compiled(shape: str) -> Any:
    """The code of a shape that no class of the package has."""
    source, names = source_of(shape), dict[str, Any]()
    try:
        exec(source, names)
    except MemoryError:
        raise MemoryError(f"no room for the {len(source)} bytes of the text of {shape}") from None
    return names[shape]


@recursive_repr()
def _repr(self: Any) -> str:
    shown = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in dataclasses.fields(self) if field.repr)
    return f"{type(self).__qualname__}({shown})"


def _value(cls: Any) -> Callable[[Any], tuple[Any, ...]]:
    """The tuple of what is compared of an object; of one field too, in which nan is nan."""
    names = [name for name, (*_, is_compared) in _described(cls).items() if is_compared]
    if not names:
        return lambda instance: ()
    value: Callable[[Any], Any] = attrgetter(*names)
    return value if len(names) > 1 else lambda instance: (value(instance),)


def _equality(cls: Any) -> Callable[[Any, Any], Any]:
    value = _value(cls)

    def __eq__(self: Any, other: Any) -> Any:
        return value(self) == value(other) if other.__class__ is self.__class__ else NotImplemented

    return __eq__


def _hashing(cls: Any) -> Callable[[Any], int]:
    value = _value(cls)

    def __hash__(self: Any) -> int:
        return hash(value(self))

    return __hash__


def _frozen(cls: Any) -> dict[str, Callable[..., None]]:
    """What refuses to change a field, and how an object is copied all the same."""

    def __setattr__(self: Any, name: str, value: Any) -> None:
        if type(self) is cls or name in cls.__dataclass_fields__:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:
        if type(self) is cls or name in cls.__dataclass_fields__:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return {"__setattr__": __setattr__, "__delattr__": __delattr__, "__setstate__": _restored}


def _restored(self: Any, state: Any) -> None:
    """What a copy of a frozen object takes over; of an object of slots it is a pair."""
    for part in state if isinstance(state, tuple) else (state,):
        for name, value in (part or {}).items():
            object.__setattr__(self, name, value)

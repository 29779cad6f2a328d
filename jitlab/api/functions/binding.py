"""How a call's arguments become a function's parameters: defaults, input_signature, hints, conversions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from jitlab.capture import HOOKS, Signature, Tensor, current_capture
from jitlab.capture.guards.signature import is_variable
from jitlab.capture.guards.tracetypes import (
    FunctionType,
    LiteralType,
    ReferenceType,
    StructureType,
    TensorType,
    TraceType,
    VariableType,
    fill,
    type_of,
)
from jitlab.errors import BindingError
from jitlab.ir import TRACED_DTYPES, plain
from jitlab.messages import by_contract
from jitlab.specs import TensorSpec, is_subshape
from jitlab.support.containers import CONTAINERS, like, of_items

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
PREFIX = "Binding inputs to tf.function failed due to"


class Binder(Signature):
    """How a `function` reads its arguments.

    `specs`: an input_signature, or None. `hinted`: arguments annotated as Tensors become arrays. `pure`: Python numbers and
    Variables become arrays (experimental_implements). `to_array(value, dtype)` makes the arrays.
    """

    def __init__(
        self, function: Callable[..., Any], specs: Any = None, *, hinted: bool = False, pure: bool = False,
        to_array: Callable[..., Any] = np.asarray,
    ) -> None:  # fmt: skip
        super().__init__(function)
        self.to_array = to_array
        self.pure = pure
        self.types: dict[str, TraceType] | None = None
        self.input_signature: tuple[Any, ...] | None = None
        if specs is not None:
            self.types = self._checked(specs)
            self.input_signature = tuple(specs)
        self.hinted = _hinted(function, self.signature) if hinted and specs is None else frozenset()
        self._is_plain = self.types is None and not self.hinted and not pure

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """One value for each parameter, defaults filled in, converted where a spec or a hint says so."""
        if self._is_plain and not kwargs and self.is_simple and len(args) == self.count:
            return args
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise BindingError(f"{by_contract(PREFIX)} `{error}`", hint=f"pass what it takes: {self._taken()}") from None
        if self.hinted:
            for name in self.hinted & set(bound.arguments):
                bound.arguments[name] = self._as_hinted(name, bound.arguments[name])
        bound.apply_defaults()
        if self.pure:
            return tuple(self._as_pure(value) for value in bound.arguments.values())
        if self.types is None:
            return tuple(bound.arguments.values())
        return tuple(self._fitted(name, bound.arguments[name]) for name in self.names)

    @property
    def keeps_objects(self) -> bool:
        """Are the values those of the call, with nothing converted?"""
        return self._is_plain and self.to_array is np.asarray

    def bind_spec(self) -> tuple[Any, ...]:
        """What a call without arguments stands for: the input_signature itself."""
        assert self.types is not None
        return tuple(fill(self.types[name], _spec_of) for name in self.names)

    def function_type(self) -> FunctionType | None:
        """The one type of all calls when there is an input_signature."""
        return None if self.types is None else FunctionType(tuple(self.types[name] for name in self.names))

    def _taken(self) -> str:
        """The parameters as a call has them: `(x, k=…, *rest)`; what defaults are may be long."""
        known: list[str] = []
        for parameter in self.signature.parameters.values():
            if parameter.kind is parameter.KEYWORD_ONLY and not any(text.startswith("*") for text in known):
                known.append("*")
            named = str(parameter.replace(default=parameter.empty, annotation=parameter.empty))  # with its stars
            known.append(named if parameter.default is parameter.empty else f"{named}=…")
        return f"({', '.join(known)})"

    # ---- input_signature
    def _checked(self, specs: Any) -> dict[str, TraceType]:
        if not isinstance(specs, (tuple, list)):
            raise TypeError(f"input_signature must be either a tuple or a list, got {type(specs).__name__}")
        for leaf in _leaves(specs):
            if not isinstance(leaf, TensorSpec):
                raise TypeError(
                    f"input_signature must be a possibly nested sequence of TensorSpec objects, got {leaf!r}; give each tensor"
                    " argument a jl.TensorSpec(shape, dtype)"
                )
        waiting = list(specs)
        types: dict[str, TraceType] = {}
        for n, parameter in enumerate(self.signature.parameters.values()):
            name = parameter.name
            if n == 0 and name == "self":
                types[name] = _Anything()
            elif parameter.kind is parameter.VAR_POSITIONAL:
                types[name] = StructureType(tuple, None, tuple(_type_of_spec(spec) for spec in waiting))
                waiting = []
            elif parameter.kind is parameter.VAR_KEYWORD:
                types[name] = StructureType(dict, (), ())
            elif parameter.kind in _POSITIONAL and waiting:
                types[name] = _type_of_spec(waiting.pop(0))
            elif parameter.default is not parameter.empty:
                types[name] = type_of(parameter.default, {})
            elif parameter.kind is parameter.KEYWORD_ONLY:
                raise TypeError(
                    f"keyword-only parameter {name} must have a default value: an input_signature lists positional parameters"
                )
            else:
                raise TypeError(f"input_signature missing type constraint for {name}")
        if waiting:
            raise TypeError(f"input_signature contains {len(waiting)} extra type constraints, for which it has no parameter")
        return types

    def _fitted(self, name: str, value: Any) -> Any:
        assert self.types is not None
        try:
            return cast(value, self.types[name], self.to_array)
        except CannotCast as refusal:
            raise BindingError(
                f"{by_contract(PREFIX)} `{refusal}`",
                why=f"the input_signature has {self.types[name]} for {name}",
                hint="pass what the input_signature says, or widen it: None stands for any size",
            ) from None

    # ---- other conversions
    def _as_hinted(self, name: str, value: Any) -> Any:
        kind = self.signature.parameters[name].kind
        if kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            return of_items(self._array_of, value)
        return self._array_of(value)

    def _as_pure(self, value: Any) -> Any:
        if isinstance(value, CONTAINERS):
            return of_items(self._as_pure, value)
        if is_variable(value):
            return value.read_value()
        return self._array_of(value) if isinstance(value, (bool, int, float, complex)) else value

    def _array_of(self, value: Any) -> Any:
        if isinstance(value, (Tensor, np.ndarray, np.generic, TensorSpec)) or is_variable(value):
            return value
        try:
            return _made(value, None, self.to_array)
        except (TypeError, ValueError):
            return value


class CannotCast(TypeError):
    """A value does not fit a type."""

    def __init__(self, value: Any, type: TraceType) -> None:
        super().__init__(f"Can not cast {_text(value)} to {type}")


def cast(value: Any, type: TraceType, to_array: Callable[..., Any] = np.asarray) -> Any:
    """The value as one of `type`: Python numbers, lists and arrays of the same kind take the dtype; Tensors fit or do not."""
    if isinstance(type, _Anything):
        return value
    if isinstance(type, TensorType):
        return _cast_tensor(value, type, to_array)
    if isinstance(type, VariableType):
        if is_variable(value) and value.dtype == type.dtype and tuple(value.shape) == type.shape:
            return value
        raise CannotCast(value, type)
    if isinstance(type, (LiteralType, ReferenceType)):
        try:
            found = type_of(value, {})
        except TypeError:
            raise CannotCast(value, type) from None
        if found != type:
            raise CannotCast(value, type)
        return value
    assert isinstance(type, StructureType)
    if issubclass(type.kind, dict):
        if not isinstance(value, dict) or tuple(sorted(value, key=repr)) != type.labels:
            raise CannotCast(value, type)
        parts = dict(zip(type.labels, type.items, strict=True))
        items = {name: cast(value[name], parts[name], to_array) for name in value}
        return value if all(items[name] is value[name] for name in value) else items
    if not isinstance(value, (list, tuple)) or len(value) != len(type.items):
        raise CannotCast(value, type)
    made = [cast(item, t, to_array) for item, t in zip(value, type.items, strict=True)]
    if isinstance(value, type.kind) and all(a is b for a, b in zip(made, value, strict=True)):
        return value
    return like(type.kind, made)


def _cast_tensor(value: Any, type: TensorType, to_array: Callable[..., Any]) -> Any:
    if isinstance(value, TensorSpec):
        if value.dtype != type.dtype or not is_subshape(value.shape.dims, type.shape):
            raise CannotCast(value, type)
        return TensorSpec(value.shape, value.dtype, type.name)  # the name is the signature's
    if is_variable(value):
        value = value.read_value()
    if isinstance(value, Tensor):
        if value.dtype != type.dtype or not is_subshape(plain(value.shape), type.shape):
            raise CannotCast(value, type)
        return value
    if isinstance(value, (np.ndarray, np.generic)):
        if value.dtype == type.dtype:
            found = value
        elif value.dtype.kind == type.dtype.kind and value.dtype in TRACED_DTYPES:
            found = value.astype(type.dtype)
        else:  # arrays stand for tensors, too: those are never made another kind of number silently
            raise CannotCast(value, type)
    else:
        try:
            found = _made(value, type.dtype, to_array)
        except (TypeError, ValueError, OverflowError):
            raise CannotCast(value, type) from None
    if not is_subshape(plain(found.shape), type.shape):
        raise CannotCast(value, type)
    return found


def _made(value: Any, dtype: Any, to_array: Callable[..., Any]) -> Any:
    """An array of Python values; inside a recording a constant of it."""
    natural = np.asarray(value) if not _has_tensors(value) else None
    if natural is not None:
        if natural.dtype not in TRACED_DTYPES:
            raise TypeError(f"{value!r} is no array of numbers")
        if dtype is not None and not _may_become(natural.dtype, np.dtype(dtype)):
            raise TypeError(f"{natural.dtype} does not become {dtype}")
    if current_capture() is not None:
        made = value if _has_tensors(value) else to_array(value)
        return HOOKS.call(np.array, made) if dtype is None else HOOKS.call(np.array, made, dtype)
    return to_array(value) if dtype is None else to_array(value, dtype)


def _may_become(found: np.dtype[Any], wanted: np.dtype[Any]) -> bool:
    """Numbers may be widened to floats; a bool is no number, and a float no integer."""
    if "b" in (found.kind, wanted.kind):
        return found.kind == wanted.kind
    order = {"u": 0, "i": 0, "f": 1, "c": 2}
    return order[found.kind] <= order[wanted.kind]


def _has_tensors(value: Any) -> bool:
    return isinstance(value, Tensor) or (isinstance(value, (list, tuple)) and any(map(_has_tensors, value)))


class _Anything(TraceType):
    """The type of a `self` in front of an input_signature."""

    is_exact = False

    def contains(self, other: TraceType) -> bool:
        return True

    def __str__(self) -> str:
        return "self"


def _leaves(specs: Any) -> Iterator[Any]:
    if isinstance(specs, (list, tuple)):
        for item in specs:
            yield from _leaves(item)
    elif isinstance(specs, dict):
        for item in specs.values():
            yield from _leaves(item)
    else:
        yield specs


def _type_of_spec(spec: Any) -> TraceType:
    return type_of(spec, {})


def _spec_of(type: TensorType | VariableType) -> TensorSpec:
    if isinstance(type, TensorType):
        return TensorSpec(type.shape, type.dtype, type.name)
    raise TypeError("get_concrete_function of a method needs its object: call it on the bound method")


def _hinted(function: Callable[..., Any], signature: inspect.Signature) -> frozenset[str]:
    """Parameters whose annotation is exactly Tensor (or a compat module's class of that name)."""
    try:
        signature = inspect.signature(function, eval_str=True)
    except Exception:  # an annotation that means nothing here is no hint
        pass
    annotations = {name: p.annotation for name, p in signature.parameters.items()}
    return frozenset(name for name, a in annotations.items() if a is Tensor or getattr(a, "__jitlab_hint__", False) is True)


def _text(value: Any) -> str:
    if isinstance(value, (np.ndarray, np.generic, Tensor)):
        return str(TensorType(value.dtype, plain(value.shape)))
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def bound_names(types: Sequence[TraceType], names: Sequence[str]) -> list[str]:
    """A name for each tensor among the parameters: its spec's, else its parameter's, with _1, _2, ... for further ones."""
    result: list[str] = []
    for name, type in zip(names, types, strict=True):
        for n, tensor in enumerate(type.tensors()):
            own = getattr(tensor, "name", None)
            result.append(own or (name if n == 0 else f"{name}_{n}"))
    return result

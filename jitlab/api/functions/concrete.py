"""ConcreteFunction: one trace of a `function`, with its type, called by its structure or flat."""

from __future__ import annotations

import inspect
import itertools
import weakref
from collections.abc import Iterator
from dataclasses import field
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from jitlab.capture import Capture, Tensor, Trace, current_capture, only_users
from jitlab.capture.effect_log import Frozen
from jitlab.capture.guards.tracetypes import (
    FunctionType,
    LiteralType,
    ReferenceType,
    TensorType,
    TraceType,
    VariableType,
    fill,
    type_of,
)
from jitlab.errors import BindingError, InvalidArgumentError
from jitlab.ir import Extent, Graph, Node, plain
from jitlab.messages import by_contract
from jitlab.specs import Shape, TensorSpec, is_subshape
from jitlab.support.containers import CONTAINERS, of_items
from jitlab.support.lazy_dataclass import dataclass

from .binding import PREFIX, CannotCast, bound_names, cast

if TYPE_CHECKING:
    from .traces import Traces

_numbers = itertools.count()


@dataclass(eq=False)
class Recording:
    """One exact recording of a trace: sizes, layouts and aliasing are those of one kind of call."""

    concrete: ConcreteFunction
    key: Any
    trace: Trace
    outputs: Any  # the result with TensorSpecs for tensors
    has_symbolic_sizes: bool  # the sizes that the trace leaves open are seen in `outputs`
    variables: list[Any] = field(default_factory=list)  # that it reached through names


class AttrValue:
    """An attribute of a function's definition, read as `.b`, `.i`, `.f` or `.s`."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.b = value if isinstance(value, bool) else False
        self.i = value if isinstance(value, int) else 0
        self.f = value if isinstance(value, float) else 0.0
        self.s = value.encode() if isinstance(value, str) else value if isinstance(value, bytes) else b""

    def __repr__(self) -> str:
        return f"AttrValue({self.value!r})"


class ConcreteFunction:
    """One trace of a `function`: what `get_concrete_function` gives. It is called with arguments of the type it was traced for.

    Args:
        owner: the traces that it is one of.
        type: the types of its arguments.

    Raises:
        TypeError: a call's arguments are not of that type.

    Example:
        >>> halved = jl.function(lambda x: x / 2).get_concrete_function(jl.TensorSpec([None], np.float64))
        >>> halved(np.ones(3)), halved.structured_outputs
        (array([0.5, 0.5, 0.5]), TensorSpec(shape=(None,), dtype=float64, name=None))
    """

    TABLES = ("_recordings", "_first")

    def __init__(self, owner: Traces, type: FunctionType) -> None:
        self._reference = weakref.ref(owner)  # which keeps this: it goes with its last name
        self._held: Traces | None = None
        self._type = type
        self._frozen = Frozen()
        self._recordings: dict[Any, list[Recording]] = {}
        self._first: Recording | None = None
        name = "".join(c if c.isalnum() or c == "_" else "_" for c in owner.name)
        self.name = f"__inference_{name}_{next(_numbers)}"

    @property
    def _owner(self) -> Traces:
        owner = self._reference()
        assert owner is not None
        return owner

    def handed_out(self) -> ConcreteFunction:
        """Its function, which lives as long as this does."""
        self._held = self._owner
        return self

    # ---- what it is
    @property
    def graph(self) -> Graph:
        """What was recorded."""
        return self._recording().trace.graph

    @property
    def inputs(self) -> list[Node]:
        """The graph's parameters: a tensor for each argument, then one for each captured array."""
        return list(self.graph.parameters)

    @property
    def outputs(self) -> list[Node]:
        """The graph's results."""
        return list(self.graph.outputs)

    @property
    def captured_inputs(self) -> list[Any]:
        """The arrays and Variables that were reached through names; what they hold is read at each call."""
        recording = self._recording()
        variables = {id(v.__jitlab_array__()): v for v in recording.variables}
        trace = recording.trace
        return [variables.get(id(x.value), x.value) for x in trace.inputs[len(trace.leaves) :]]

    @property
    def variables(self) -> tuple[Any, ...]:
        """The Variables among the captured inputs."""
        return tuple(self._recording().variables)

    @property
    def trainable_variables(self) -> tuple[Any, ...]:
        return tuple(v for v in self.variables if v.trainable)

    @property
    def structured_input_signature(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """((positional parameters), {keyword-only ones}): a TensorSpec for each tensor, named as its argument."""
        named = zip(self._parameters, self._type.parameters, strict=True)
        specs = [fill(type, partial(_spec, parameter.name, itertools.count())) for parameter, type in named]
        return self._owner._signature.call_form(specs)

    @property
    def structured_outputs(self) -> Any:
        """What a call gives, with a TensorSpec for each tensor."""
        return self._recording(symbolic=True).outputs

    @property
    def function_def(self) -> Any:
        """`.attr`: the attributes of the function; `.signature.name`: its name."""
        attr = {name: AttrValue(value) for name, value in self._owner.attributes.items()}
        return SimpleNamespace(attr=attr, signature=SimpleNamespace(name=self.name))

    @property
    def function_type(self) -> FunctionType:
        return self._type

    def pretty_printed_signature(self, verbose: bool = True) -> str:
        """The types of arguments and results as text; `verbose` False: on one line."""
        outputs = _output_text(self.structured_outputs)
        named = list(zip(self._parameters, self._type.parameters, strict=True))
        if not verbose:
            return f"({_parameter_list(named)}) -> {outputs}"
        lines = ["Input Parameters:"]
        lines += [f"  {parameter.name} ({parameter.kind.name}): {type}" for parameter, type in named] or ["  None"]
        lines += ["Output Type:", f"  {outputs}", "Captures:"]
        captures = [f"  {id(x)}: {type_of(x, {})}" for x in self.captured_inputs]
        return "\n".join(lines + (captures or ["  None"]))

    def __repr__(self) -> str:
        return f"<ConcreteFunction {self.pretty_printed_signature(verbose=False)} at {id(self):#x}>"

    # ---- calls
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            values = self._bind(args, kwargs)
            capture = current_capture()
            if capture is not None:
                return self._owner._inline_concrete(capture, self, values)
            return self._owner._call_concrete(self, values)
        except Exception as error:
            only_users(error)
            raise

    def __jitlab_inline__(self, capture: Capture, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Called while another function is recorded: its body is recorded there."""
        return self._owner._inline_concrete(capture, self, self._bind(args, kwargs))

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        try:
            return self._structured(args, kwargs)
        except TypeError as structured:
            try:
                return self._flat(args, kwargs)
            except TypeError as flat:
                takes = _parameter_list(list(zip(self._parameters, self._type.parameters, strict=True)))
                raise BindingError(
                    f"{by_contract(PREFIX)} `{structured}`. Fallback to flat signature also failed due to: {flat}",
                    why=f"this trace takes ({takes})",
                    hint="pass these, or call the function itself, which has a trace for each type",
                ) from None

    def _structured(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """As the function is called; a parameter that was traced with a Python value may be left out."""
        bound = self._owner._signature.signature.bind_partial(*args, **kwargs).arguments
        values = []
        for parameter, type in zip(self._parameters, self._type.parameters, strict=True):
            if parameter.name in bound:
                values.append(cast(bound[parameter.name], type, self._owner.to_array))
            elif isinstance(type, (LiteralType, ReferenceType)):
                values.append(type.value)
            elif parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                values.append(cast(() if parameter.kind is parameter.VAR_POSITIONAL else {}, type))
            elif not type.tensors():
                values.append(_filled(type, iter(())))
            else:
                raise TypeError(f"missing a required argument: {parameter.name!r}")
        return tuple(values)

    def _flat(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """One tensor for each tensor of the type, in order, or by the names of their specs and arguments."""
        types = self._type.tensors()
        names = bound_names(self._type.parameters, [p.name for p in self._parameters])
        if len(args) > len(names):
            raise TypeError(f"{self.name}(...) takes {len(names)} tensors, got {len(args)}")
        given = dict(zip(names, args, strict=False))
        for name, value in kwargs.items():
            if name not in names:
                raise TypeError(f"{self.name}(...) got an unexpected keyword argument {name!r}: its tensors are {names}")
            if name in given:
                raise TypeError(f"{self.name}(...) got two values for {name!r}")
            given[name] = value
        missing = [name for name in names if name not in given]
        if missing:
            raise TypeError(f"{self.name}(...) missing required arguments: {', '.join(missing)}")
        values = []
        for number, (name, type) in enumerate(zip(names, types, strict=True)):
            value = given[name]
            if not isinstance(value, (np.ndarray, np.generic, Tensor)):
                try:
                    values.append(cast(value, type, self._owner.to_array))
                    continue
                except CannotCast as refusal:
                    raise TypeError(f"{refusal}: all inputs of a flat call are tensors") from None
            if value.dtype != type.dtype and value.dtype.kind != type.dtype.kind:
                raise InvalidArgumentError(
                    f"cannot compute {self.name} as input #{number}(zero-based) was expected to be a"
                    f" {_tensor_word(type.dtype)} tensor but is a {_tensor_word(value.dtype)} tensor",
                    hint=f"{name} = {name}.astype(np.{type.dtype})",
                )
            if not is_subshape(plain(value.shape), type.shape):
                raise InvalidArgumentError(
                    f"cannot compute {self.name} as input #{number}(zero-based) was expected to have shape {type.shape} but has"
                    f" shape {plain(value.shape)}",
                    hint="call the function itself: it traces again where it has to",
                )
            values.append(cast(value, type, self._owner.to_array))
        order = iter(values)
        return tuple(_filled(type, order) for type in self._type.parameters)

    # ---- recordings
    @property
    def _parameters(self) -> list[inspect.Parameter]:
        return list(self._owner._signature.signature.parameters.values())

    def _recording(self, symbolic: bool = False) -> Recording:
        """A recording to look at; `symbolic`: one whose sizes say what they depend on."""
        found = self._first
        if found is None or (symbolic and not found.has_symbolic_sizes):
            found = self._first = self._owner._sample_recording(self)
        return found


def _filled(type: TraceType, order: Any) -> Any:
    return fill(type, lambda _: next(order))


def _spec(name: str, numbers: Iterator[int], type: TensorType | VariableType) -> Any:
    if isinstance(type, VariableType):
        return type
    n = next(numbers)
    return TensorSpec(type.shape, type.dtype, type.name or (name if n == 0 else f"{name}_{n}"))


def outputs_of(result: Any, known: frozenset[str], unknown_rank: frozenset[str]) -> Any:
    """The form of a result. Sizes that depend on other symbols than the `known` are None; a shape that depends on an
    argument of unknown rank is unknown."""
    if isinstance(result, Tensor):
        return TensorSpec(_open_shape(result.type.shape, known, unknown_rank), result.dtype)
    if isinstance(result, (np.ndarray, np.generic)):
        return TensorSpec(result.shape, result.dtype)
    if getattr(type(result), "__jitlab_variable__", False) is True:
        return TensorSpec(result.shape, result.dtype)
    if isinstance(result, (bool, int, float, complex)):
        return TensorSpec((), np.asarray(result).dtype)
    of_item = partial(outputs_of, known=known, unknown_rank=unknown_rank)
    return of_items(of_item, result) if isinstance(result, CONTAINERS) else result


def _open_shape(shape: tuple[int, ...], known: frozenset[str], unknown_rank: frozenset[str]) -> Shape:
    symbols = [frozenset(n.expr.symbols) if isinstance(n, Extent) else frozenset() for n in shape]
    if any(own & unknown_rank for own in symbols):
        return None
    return tuple(int(n) if own <= known else None for n, own in zip(shape, symbols, strict=True))


def _output_text(outputs: Any) -> str:
    return "None" if outputs is None else str(type_of(outputs, {}))


def _parameter_list(named: list[tuple[inspect.Parameter, TraceType]]) -> str:
    parts: list[str] = []
    has_star = False
    for n, (parameter, type) in enumerate(named):
        if parameter.kind is parameter.KEYWORD_ONLY and not has_star:
            parts.append("*")
            has_star = True
        stars = "*" if parameter.kind is parameter.VAR_POSITIONAL else "**" if parameter.kind is parameter.VAR_KEYWORD else ""
        has_star = has_star or stars == "*"
        parts.append(f"{stars}{parameter.name}: {type}")
        if parameter.kind is parameter.POSITIONAL_ONLY and (
            n + 1 == len(named) or named[n + 1][0].kind is not parameter.POSITIONAL_ONLY
        ):
            parts.append("/")
    return ", ".join(parts)


def _tensor_word(dtype: np.dtype[Any]) -> str:
    """float for float32, as the contract calls them."""
    return {"float32": "float", "float64": "double", "float16": "half"}.get(dtype.name, dtype.name)

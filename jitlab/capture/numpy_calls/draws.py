"""Random numbers: drawn by NumPy at each run, in program order, from the generators that the program uses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from jitlab.capture.tracers.subscripts import assign
from jitlab.capture.tracers.tensor import Tensor
from jitlab.messages import Message
from jitlab.ops.build_nodes import weak
from jitlab.ops.host_operations import Input, filled
from jitlab.ops.random_draws import Address, generator_at, random_state, set_random_state
from jitlab.support.later import Later

from .host_fallback import Template, add_host_call, evaluate, must_compile, no_array, rehearsing
from .numpy_traits import OnCopy

if TYPE_CHECKING:
    from jitlab.capture.state import Capture

    from . import native_draws
else:
    native_draws = Later(f"{__package__}.native_draws")

REASON = Message("stays.draws")

#: What the contract calls such an operation.
LABELS = {
    "uniform": "RandomUniform", "random": "RandomUniform", "random_sample": "RandomUniform", "normal": "RandomStandardNormal",
    "standard_normal": "RandomStandardNormal", "integers": "RandomUniformInt", "randint": "RandomUniformInt",
    "shuffle": "RandomShuffle", "permutation": "RandomShuffle",
}  # fmt: skip


def is_generator(x: Any) -> bool:
    """One of np.random, which is loaded by a program that uses it: it takes time."""
    random = vars(np).get("random")
    return random is not None and isinstance(x, (random.Generator, random.RandomState))


def makes_generator(function: Any) -> bool:
    random = vars(np).get("random")
    return random is not None and function in (random.default_rng, random.RandomState)


def is_seed(function: Any) -> bool:
    """`np.random.seed`: a function, not a method like the others."""
    random = vars(np).get("random")
    return random is not None and function is random.seed


def draw(capture: Capture, generator: Any, function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """A method of a generator. Capture itself draws from a copy, to learn the result's type."""
    name = function.__name__
    drawn = native_draws.drawn_natively(capture, generator, name, args, kwargs)
    if drawn is not None:
        return drawn
    if capture.strict and not capture.policy.may_draw:
        raise must_compile(capture, name, REASON)
    copy = copy_of(capture, generator)
    if capture.blocks:  # how often a body runs is not for its tracing to say: the sequence goes on behind it as it would
        copy = _copied(copy)
    call = _Drawing(generator, name)
    if name == "shuffle" and args and isinstance(args[0], Tensor):
        return _shuffle(capture, call, copy, args[0], kwargs)
    template = Template(capture)
    made_args, made_kwargs = template.of(tuple(args)), template.of(dict(kwargs))
    real = [evaluate(capture, node) for node in template.nodes]
    result = numpys(copy, name)(*filled(made_args, real), **filled(made_kwargs, real))
    number = type(result) in (int, float)  # as `rng.random()` gives: Python's own, weak in promotion
    if name == "seed":
        result = np.True_
    elif isinstance(result, (int, float)):
        result = np.asarray(result)[()]
    elif not isinstance(result, (np.ndarray, np.generic)):
        raise no_array(name, result)
    drawn = _host_draw(capture, call, copy, (made_args, made_kwargs), template, result)
    if number:
        weak(drawn._cell.node)
    return drawn


def begin(capture: Capture, generator: Any, function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """`np.random.default_rng(seed)` in the program: the generator begins anew at each run."""
    if capture.strict and not capture.policy.may_draw:
        raise must_compile(capture, function.__name__, REASON)
    if all(generator is not x for x in (*args, *kwargs.values())):  # `default_rng(rng)` is that one
        call = _Beginning(generator, function, args, kwargs)
        _host_draw(capture, call, copy_of(capture, generator), ((), {}), Template(capture), np.True_)
    return generator


def _host_draw(
    capture: Capture, call: Any, copy: Any, made: tuple[tuple[Any, ...], dict[str, Any]], template: Template, result: Any
) -> Any:
    """The operation of a draw that NumPy makes. From a generator that each run finds anew it takes the address, and gives it
    to what draws next. `copy`: what the capture draws from."""
    (args, kwargs), nodes = made, template.nodes
    address = capture.address(call.generator)
    if address is None:
        return add_host_call(capture, call, args, kwargs, nodes, result, "stateful_random", REASON, effects=True)
    args, nodes, result = (Input(len(nodes)), *args), [*nodes, address.node()], (result, Address(copy))
    drawn, following = add_host_call(
        capture, _FromAddress(call), args, kwargs, nodes, result, "stateful_random", REASON, effects=True
    )
    address._cell.move_on((), following.node())
    return drawn


def _shuffle(capture: Capture, call: _Drawing, copy: Any, x: Tensor, kwargs: dict[str, Any]) -> None:
    """`rng.shuffle(x)`: a shuffled copy, assigned."""
    template = Template(capture)
    made = template.of((x,))
    shuffled = np.array(evaluate(capture, template.nodes[0]))
    numpys(copy, "shuffle")(shuffled, **kwargs)
    result = _host_draw(capture, _OnCopy(call), copy, (made, kwargs), template, shuffled)
    assign(capture, x, result, "unsafe")


class _Drawing:
    """One method of a random generator, called at each run."""

    def __init__(self, generator: Any, name: str) -> None:
        self.generator = generator
        self.__name__ = name
        self.label = LABELS.get(name, "")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Drawing) and (self.generator is other.generator and self.__name__ == other.__name__)

    def __hash__(self) -> int:
        return hash((id(self.generator), self.__name__))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.on(_of_run(self.generator), *args, **kwargs)

    def on(self, generator: Any, *args: Any, **kwargs: Any) -> Any:
        result = numpys(generator, self.__name__)(*args, **kwargs)
        if result is None:
            return np.True_
        return np.asarray(result)[()] if isinstance(result, (int, float)) else result


class _OnCopy(OnCopy):
    """One that writes into its first argument."""

    def __init__(self, call: _Drawing) -> None:
        super().__init__(call)
        self.generator = call.generator

    def on(self, generator: Any, *args: Any, **kwargs: Any) -> Any:
        return OnCopy(partial(self.function.on, generator))(*args, **kwargs)


class _Beginning:
    """Sets a generator that the program makes back to how it is made, at each run."""

    def __init__(self, generator: Any, function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        self.generator = generator
        self.make: Callable[[], Any] = lambda: function(*args, **kwargs)
        self.__name__ = function.__name__

    def __call__(self) -> Any:
        return self.on(_of_run(self.generator))

    def on(self, generator: Any) -> Any:
        set_random_state(generator, random_state(self.make()))
        return np.True_


class _FromAddress:
    """A draw from the generator at an address, which it gives, too."""

    generator = None  # none of its own

    def __init__(self, call: _Drawing | _OnCopy | _Beginning) -> None:
        self.call = call
        self.__name__ = call.__name__
        self.label = getattr(call, "label", "")
        self._is_of = type(call), self.__name__, call if isinstance(call, _Beginning) else None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _FromAddress) and self._is_of == other._is_of

    def __hash__(self) -> int:
        return hash(self._is_of)

    def __call__(self, address: Any, *args: Any, **kwargs: Any) -> Any:
        return self.call.on(generator_at(address), *args, **kwargs), address


def numpys(generator: Any, name: str) -> Callable[..., Any]:
    """NumPy's method of a generator, which a class of the user's may call from a method of its own of that name."""
    kind = np.random.RandomState if isinstance(generator, np.random.RandomState) else np.random.Generator
    return partial(getattr(kind, name), generator)


def _of_run(generator: Any) -> Any:
    """The generator itself, or while a program is recorded its copy."""
    capture: Any = rehearsing.get()
    return generator if capture is None else copy_of(capture, generator)


def copy_of(capture: Capture, generator: Any) -> Any:
    """What the capture draws from instead."""
    return capture.generators.setdefault(id(generator), (generator, _copied(generator)))[1]


def _copied(generator: Any) -> Any:
    if isinstance(generator, np.random.RandomState):
        copy = np.random.RandomState()
        set_random_state(copy, random_state(generator))
        return copy
    return deepcopy(generator)

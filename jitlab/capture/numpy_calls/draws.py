"""Random numbers: drawn by NumPy at each run, in program order, from the generators that the program uses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np

from jitlab.capture.tracers.subscripts import assign
from jitlab.capture.tracers.tensor import Tensor
from jitlab.messages import Message
from jitlab.ops.build_nodes import weak
from jitlab.ops.host_operations import filled

from .host_fallback import Template, add_host_call, evaluate, must_compile, no_array, rehearsing
from .numpy_traits import OnCopy

if TYPE_CHECKING:
    from jitlab.capture.state import Capture

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
    if capture.strict and not capture.policy.may_draw:
        raise must_compile(capture, name, REASON)
    copy = _copy_of(capture, generator)
    if capture.blocks:  # how often a body runs is not for its tracing to say: the sequence goes on behind it as it would
        copy = _copied(copy)
    call = _Drawing(generator, name)
    if name == "shuffle" and args and isinstance(args[0], Tensor):
        return _shuffle(capture, call, copy, args[0], kwargs)
    template = Template(capture)
    made_args, made_kwargs = template.of(tuple(args)), template.of(dict(kwargs))
    real = [evaluate(capture, node) for node in template.nodes]
    result = getattr(copy, name)(*filled(made_args, real), **filled(made_kwargs, real))
    number = type(result) in (int, float)  # as `rng.random()` gives: Python's own, weak in promotion
    if name == "seed":
        result = np.True_
    elif isinstance(result, (int, float)):
        result = np.asarray(result)[()]
    elif not isinstance(result, (np.ndarray, np.generic)):
        raise no_array(name, result)
    drawn = add_host_call(
        capture, call, made_args, made_kwargs, template.nodes, result, "stateful_random", REASON, effects=True
    )
    if number:
        weak(drawn._cell.node)
    return drawn


def begin(capture: Capture, generator: Any, function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """`np.random.default_rng(seed)` in the program: the generator begins anew at each run."""
    if capture.strict and not capture.policy.may_draw:
        raise must_compile(capture, function.__name__, REASON)
    call = _Beginning(generator, function, args, kwargs)
    add_host_call(capture, call, (), {}, [], np.True_, "stateful_random", REASON, effects=True)
    return generator


def _shuffle(capture: Capture, call: _Drawing, copy: Any, x: Tensor, kwargs: dict[str, Any]) -> None:
    """`rng.shuffle(x)`: a shuffled copy, assigned."""
    template = Template(capture)
    made = template.of((x,))
    shuffled = np.array(evaluate(capture, template.nodes[0]))
    copy.shuffle(shuffled, **kwargs)
    result = add_host_call(
        capture, OnCopy(call), made, kwargs, template.nodes, shuffled, "stateful_random", REASON, effects=True
    )
    assign(capture, x, result, "unsafe")


class _Drawing:
    """One method of a random generator, called at each run."""

    def __init__(self, generator: Any, name: str) -> None:
        self.generator = generator
        self.__name__ = name
        self.label = LABELS.get(name, "")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        capture: Any = rehearsing.get()
        generator = self.generator if capture is None else _copy_of(capture, self.generator)
        result = getattr(generator, self.__name__)(*args, **kwargs)
        if result is None:
            return np.True_
        return np.asarray(result)[()] if isinstance(result, (int, float)) else result


class _Beginning:
    """Sets a generator that the program makes back to how it is made, at each run."""

    def __init__(self, generator: Any, function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        self.generator = generator
        self.make: Callable[[], Any] = lambda: function(*args, **kwargs)
        self.__name__ = function.__name__

    def __call__(self) -> Any:
        capture: Any = rehearsing.get()
        set_random_state(self.generator if capture is None else _copy_of(capture, self.generator), random_state(self.make()))
        return np.True_


def random_state(generator: Any) -> Any:
    """What a random generator will draw depends on this alone."""
    if isinstance(generator, np.random.RandomState):
        return generator.get_state(legacy=False)
    return deepcopy(generator.bit_generator.state)


def set_random_state(generator: Any, state: Any) -> None:
    if isinstance(generator, np.random.RandomState):
        generator.set_state(state)
    else:
        generator.bit_generator.state = state


def random_states(generators: Iterable[Any]) -> list[tuple[Any, Any]]:
    """Each generator with what it will draw."""
    return [(generator, random_state(generator)) for generator in generators]


def set_random_states(states: Iterable[tuple[Any, Any]]) -> None:
    """Put back what a run has drawn that was given up."""
    for generator, state in states:
        set_random_state(generator, state)


def _copy_of(capture: Capture, generator: Any) -> Any:
    """What the capture draws from instead."""
    return capture.generators.setdefault(id(generator), (generator, _copied(generator)))[1]


def _copied(generator: Any) -> Any:
    if isinstance(generator, np.random.RandomState):
        copy = np.random.RandomState()
        set_random_state(copy, random_state(generator))
        return copy
    return deepcopy(generator)

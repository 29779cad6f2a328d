"""Draws of random numbers as operations: by the C interface of NumPy's bit generators in machine code, by the generator's own
method where NumPy runs them.

A graph has a generator as the address of its C interface, an int64. A draw takes it and gives it back: what draws next takes
that, so that draws from one generator keep their order.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from copy import deepcopy
from functools import cache, partial
from typing import Any, ClassVar

import numpy as np

from jitlab.ir import ArrayType, plain
from jitlab.support.lazy_dataclass import dataclass
from jitlab.support.transactions import contextmanager

from .base import Cost
from .library_operations import Library

ADDRESS = ArrayType((), np.dtype("i8"))

#: NumPy's own bit generators, whose state is all behind their C interface.
BIT_GENERATORS = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")


class Address(np.int64):
    """Where the C interface of a generator lies, that generator, and the bit generator whose memory it is."""

    generator: Any
    bits: Any

    def __new__(cls, generator: Any) -> Address:
        bits = generator._bit_generator
        made = super().__new__(cls, bits.ctypes.bit_generator.value)
        made.generator, made.bits = generator, bits
        return made

    def __copy__(self) -> Address:
        return self

    def __deepcopy__(self, memo: Any) -> Address:
        return self


def has_address(x: Any) -> bool:
    """Is it a generator of NumPy's own, whose lock its thread may take again while it holds it (as NumPy 2.4's)?"""
    random = vars(np).get("random")  # it is loaded by a program that uses it: it takes time
    if random is None or type(x) not in (random.Generator, random.RandomState):
        return False
    bits = x._bit_generator
    names = BIT_GENERATORS if type(x) is random.Generator else BIT_GENERATORS[:1]  # the state of others cannot be set there
    return any(type(bits) is getattr(random, name, None) for name in names) and type(bits.lock) is _LOCK


def is_state(owner: Any, name: str) -> bool:
    """Is an attribute what a bit generator will draw, which each draw changes?"""
    random = vars(np).get("random")
    return name == "state" and random is not None and isinstance(owner, random.BitGenerator)


_LOCK = type(threading.RLock())


# ---- the generators of a run


class _Running(threading.local):
    """The generators that runs of this thread draw from, by their address."""

    def __init__(self) -> None:
        self.generators: dict[int, Any] = {}


_running = _Running()


def generators_of(arguments: Iterable[Any]) -> list[Any]:
    """The generators among what a graph is given."""
    return [address.generator for address in addresses_in(arguments)]


def addresses_in(arguments: Iterable[Any]) -> list[Address]:
    """The addresses of generators among what a graph is given."""
    return [x for x in arguments if type(x) is Address]


@contextmanager
def drawing_from(addresses: Sequence[Address]) -> Iterator[None]:
    """Inside, operations find the generators by these addresses, and no other thread draws from them."""
    before = _running.generators
    with ExitStack() as held:
        for address in sorted(addresses):  # two threads: in one order
            held.enter_context(address.bits.lock)
        try:
            _running.generators = {**before, **{int(address): address.generator for address in addresses}}
            yield
        finally:
            _running.generators = before


def generator_at(address: Any) -> Any:
    """The generator that an address stands for."""
    return address.generator if type(address) is Address else _running.generators[int(address)]


def states_now() -> States:
    """The generators that this thread's runs draw from, each with what it will draw."""
    return random_states(_running.generators.values())


# ---- their states

#: Generators of random numbers, each with a state.
States = Sequence[tuple[Any, Any]]


def random_state(generator: Any) -> Any:
    """What a random generator will draw depends on this alone."""
    if isinstance(generator, np.random.RandomState):
        return generator.get_state(legacy=False)
    state = generator.bit_generator.state
    return state if has_address(generator) else deepcopy(state)  # NumPy's own make it anew each time


def set_random_state(generator: Any, state: Any) -> None:
    if isinstance(generator, np.random.RandomState):
        generator.set_state(state)
    else:
        generator.bit_generator.state = state


def random_states(generators: Iterable[Any]) -> States:
    """Each generator with what it will draw."""
    return [(generator, random_state(generator)) for generator in generators]


def set_random_states(states: States) -> None:
    """Put back what a run has drawn that was given up."""
    for generator, state in states:
        set_random_state(generator, state)


# ---- what is drawn


@dataclass(frozen=True)
class Method:
    """What a method of a generator gives, and the C function behind it: `function` of NumPy's, "" for the bit generator's own
    `next_double`; `fill`: that for an array, "" where it is called for each element; `refused`: for which operands the method
    raises, as the machine code asks for it."""

    dtype: np.dtype[Any]
    operands: tuple[np.dtype[Any], ...] = ()
    function: str = ""
    fill: str = ""
    refused: str = ""  # "scale": the last is negative; "range": high - low is not finite, or "ordered": negative; "empty"


_F, _I = np.dtype("f8"), np.dtype("i8")

_BOUNDED = "random_bounded_uint64_fill"

#: The methods of a `Generator` and of a `RandomState` that draw numbers one by one, by the name of the class and their own.
METHODS: Mapping[tuple[str, str], Method] = {
    ("Generator", "random"): Method(_F, (), "", "random_standard_uniform_fill"),
    ("Generator", "uniform"): Method(_F, (_F, _F), "random_uniform", "", "ordered"),
    ("Generator", "standard_normal"): Method(_F, (), "random_standard_normal", "random_standard_normal_fill"),
    ("Generator", "normal"): Method(_F, (_F, _F), "random_normal", "", "scale"),
    ("Generator", "standard_exponential"): Method(
        _F, (), "random_standard_exponential", "random_standard_exponential_fill"
    ),
    ("Generator", "exponential"): Method(_F, (_F,), "random_exponential", "", "scale"),
    ("Generator", "integers"): Method(_I, (_I, _I), _BOUNDED, _BOUNDED, "empty"),
    ("RandomState", "random_sample"): Method(_F, (), "", "random_standard_uniform_fill"),
    ("RandomState", "uniform"): Method(_F, (_F, _F), "random_uniform", "", "range"),
    ("RandomState", "randint"): Method(_I, (_I, _I), _BOUNDED, _BOUNDED, "empty"),
}


@cache
def c_function(name: str) -> int:
    """The address of a function of NumPy's; 0 where its module does not give it out."""
    try:
        library = ctypes.CDLL(np.random._generator.__file__)
        return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
    except (AttributeError, OSError):
        return 0


class Draw(Library):
    """A number or an array of numbers, and the generator's address: `kind` is the class of the generator, `method` what is
    called, `shape` that of an array. The operands are those of the method, integers with both ends. `sure`: NumPy takes them,
    whatever a run finds."""

    kind: str
    method: str
    sure: bool = False
    shape: tuple[int, ...] | None = None
    has_effects: ClassVar[bool] = True  # the next number is another one
    exact: ClassVar[bool] = True
    flops_per_element: ClassVar[float] = 8

    @property
    def how(self) -> Method:
        return METHODS[self.kind, self.method]

    @property
    def word(self) -> str:
        return f"rng.{self.method}"

    @property
    def function(self) -> str:
        """The C function that it calls, of NumPy's."""
        return self.how.fill or self.how.function if self.shape is not None else self.how.function

    @property
    def may_fail(self) -> bool:  # type: ignore[override]
        return bool(self.how.refused) and not self.sure

    def results(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        assert types[0] == ADDRESS and tuple(t.dtype for t in types[1:]) == self.how.operands, f"a draw of {types}"
        return ArrayType(self.shape or (), self.how.dtype), ADDRESS

    def numpy(self, *arrays: Any) -> Any:
        address, *operands = arrays
        draw = partial(getattr(generator_at(address), self.method), *(x.item() for x in operands))
        return self.how.dtype.type(draw()) if self.shape is None else draw(size=plain(self.shape)), address

    def cost(self, out: ArrayType, *types: ArrayType) -> Cost:
        count = ArrayType(self.shape or (), self.how.dtype).count
        return Cost(int(self.flops_per_element * count), 8 * len(types), 8 * count)

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        for number, ((kind, method), how) in enumerate(METHODS.items()):
            generator = np.random.default_rng(number) if kind == "Generator" else np.random.RandomState(number)
            operands = [dtype.type(n + 1) for n, dtype in enumerate(how.operands)]
            yield cls(kind, method), Address(generator), *operands
            yield cls(kind, method, False, (2, 3)), Address(generator), *operands

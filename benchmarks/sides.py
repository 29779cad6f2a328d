"""The peers that a program is timed beside: each makes of it what is called, and has its arguments as it likes them best."""

from __future__ import annotations

import importlib
import os
import types
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

PEERS = ("numpy", "numexpr", "numba", "jax", "torch")


class Skipped(Exception):
    """A side that can't take part, and why."""


def imported(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise Skipped("not installed") from None


def numpy_side(program: Any, is_parallel: bool) -> Callable[..., Any]:
    return program.program


def numexpr_side(program: Any, is_parallel: bool) -> Callable[..., Any]:
    numexpr = imported("numexpr")
    numexpr.set_num_threads(len(os.sched_getaffinity(0)) if is_parallel else 1)
    if not hasattr(program, "for_numexpr"):
        raise Skipped("it can't express the program")
    return program.for_numexpr(numexpr)


def numba_side(program: Any, is_parallel: bool) -> Callable[..., Any]:
    """Loops by hand, or the very NumPy function where Numba compiles it. The program gets `njit` as it is wanted: with
    `parallel=True` on all cores, where its `prange` is a parallel loop."""
    numba = imported("numba")
    kit = types.SimpleNamespace(njit=partial(numba.njit, parallel=True) if is_parallel else numba.njit, prange=numba.prange)
    return program.for_numba(kit) if hasattr(program, "for_numba") else kit.njit(program.program)


def jax_side(program: Any, is_parallel: bool) -> Callable[..., Any]:
    """The NumPy function with `np` standing for jax.numpy, but where that cannot be."""
    jax = imported("jax")
    jax.config.update("jax_enable_x64", True)

    def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
        made = jax.jit(function)
        return lambda *arrays: jax.block_until_ready(made(*arrays))

    if hasattr(program, "for_jax"):
        return program.for_jax(jax, compiled)
    source = program.program
    return compiled(type(source)(source.__code__, {**source.__globals__, "np": jax.numpy}, source.__name__))


def torch_side(program: Any, is_parallel: bool) -> Callable[..., Any]:
    """`torch.compile` of the NumPy function, which it reads as operations of its own."""
    torch = imported("torch")
    if not is_parallel:
        torch.set_num_threads(1)
    return torch.compile(program.program)


def jitlab_side(program: Any, is_parallel: bool) -> Callable[..., Any]:
    import jitlab as jl

    return jl.function(program.program)


SIDES = {
    "numpy": numpy_side, "numexpr": numexpr_side, "numba": numba_side, "jax": jax_side, "torch": torch_side,
    "jitlab": jitlab_side,
}  # fmt: skip


def make(side: str, program: Any, is_parallel: bool = False) -> Callable[..., Any]:
    """What is called. Skipped: the side can't take part, and why."""
    reason = getattr(program, "UNSUPPORTED", {}).get(side)
    if reason:
        raise Skipped(reason)
    return SIDES[side](program, is_parallel)


def given_to(side: str, arrays: Sequence[np.ndarray]) -> Sequence[Any]:
    """The inputs as a side likes them best: JAX has copies on its device, where no call converts them."""
    if side != "jax":
        return arrays
    import jax

    return [jax.block_until_ready(jax.numpy.array(array, copy=True)) for array in arrays]

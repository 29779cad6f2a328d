"""Vectors of integers divided by one number: Python's quotients and remainders, whatever the signs and the size."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from one_kernel import call, lanes  # noqa: E402

from jitlab.targets.cpu_llvm import machine  # noqa: E402
from jitlab.targets.llvm.function_text import FunctionText, module_text  # noqa: E402
from jitlab.targets.llvm.vector_emitter import VectorEmitter  # noqa: E402

INTS = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")
TIERS = ("quick", "good")


def text_of(dtype, width):
    """quotient[i], rest[i] = divmod(x[i], y[0]) for whole vectors of x."""
    fn = FunctionText("k", [("ptr", "x"), ("ptr", "y"), ("ptr", "quotient"), ("ptr", "rest"), ("i64", "n")])
    e = VectorEmitter(fn, width, machine.features())
    y = e.load("%y", dtype, lanes=0)
    head, inside, done = fn.label("head"), fn.label("inside"), fn.label("done")
    fn.branch(head)
    fn.block(head)
    i = fn.phi("i64", [(0, "entry")])
    fn.branch_if(fn.instr(f"icmp slt i64 {i}, %n"), inside, done)
    fn.block(inside)
    offset = fn.instr(f"mul i64 {i}, {dtype.itemsize}")
    x = e.load(fn.instr(f"getelementptr i8, ptr %x, i64 {offset}"), dtype)
    for name, value in (("quotient", e.floor_divide(x, y)), ("rest", e.remainder(x, y))):
        e.store(fn.instr(f"getelementptr i8, ptr %{name}, i64 {offset}"), value)
    i.add_incoming(fn.instr(f"add i64 {i}, {width}"), fn.current)
    fn.branch(head)
    fn.block(done)
    fn.ret()
    return module_text([fn])


def divmod_of(x, y, tier, registers=2):
    width = registers * lanes(x.dtype)
    n = -(-x.size // width) * width
    padded = np.concatenate([x, np.zeros(n - x.size, x.dtype)])
    quotient, rest = np.empty_like(padded), np.empty_like(padded)
    call(text_of(x.dtype, width), padded, np.array([y], x.dtype), quotient, rest, n, tier=tier)
    return quotient[: x.size], rest[: x.size]


def numbers(dtype, seed):
    """Those at which something changes, their neighbours, and random ones of every size."""
    info = np.iinfo(dtype)
    edges = [0, info.min, info.max, *(1 << k for k in range(info.bits))]
    near = [k * edge + d for edge in edges for d in range(-3, 4) for k in (1, -1)]
    rng = np.random.default_rng(seed)
    wide = [int(rng.integers(1 << 62)) >> int(rng.integers(62)) for _ in range(60)]
    return np.unique(np.array([v for v in (*near, *wide, *(-w for w in wide)) if info.min <= v <= info.max], dtype))


def check(x, y, tier):
    with np.errstate(all="ignore"):
        wanted = np.divmod(x, np.full_like(x, y))
    for got, want in zip(divmod_of(x, y, tier), wanted, strict=True):
        wrong = np.flatnonzero(got != want)
        assert not wrong.size, f"{x[wrong[:3]]} by {y}: {got[wrong[:3]]} instead of {want[wrong[:3]]}"


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("dtype", ["i1", "u1"])
def test_every_pair_of_bytes(dtype, tier):
    info = np.iinfo(dtype)
    x = np.arange(info.min, info.max + 1).astype(dtype)
    for y in x:
        check(x, y, tier)


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("dtype", INTS)
def test_numbers_at_which_something_changes(dtype, tier):
    x = numbers(np.dtype(dtype), 1)
    for y in x:
        check(x, y, tier)
        some = [int(y) * k + d for k in (-1023, -3, -2, 2, 3, 255, 4097) for d in (-1, 0, 1)]  # multiples, and beside them
        info = np.iinfo(dtype)
        found = np.array([v for v in some if info.min <= v <= info.max], dtype)
        if found.size:
            check(found, y, tier)


@pytest.mark.parametrize("dtype", ["i2", "u2"])
@pytest.mark.parametrize("y", [-32768, -32767, -7, -3, -2, -1, 0, 1, 2, 3, 7, 10, 255, 256, 257, 32767])
def test_every_short_integer(dtype, y):
    info = np.iinfo(dtype)
    if y >= info.min:
        check(np.arange(info.min, info.max + 1).astype(dtype), y, "good")

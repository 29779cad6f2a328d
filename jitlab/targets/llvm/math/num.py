"""Num: floats of the emitter with their format and bits, and what runs on the few lanes that need it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jitlab.ops.elementwise.scalars import Scalar, where

from . import coefficients as table


class Format:
    """What the code must know of float32 or float64."""

    def __init__(self, itemsize: int, mantissa: int) -> None:
        self.itemsize = itemsize
        self.mantissa = mantissa  # stored bits
        self.bias = (1 << (8 * itemsize - mantissa - 2)) - 1
        self.one = self.bias << mantissa  # the bits of 1.0
        self.sign = -(1 << (8 * itemsize - 1))
        self.least_normal = 2.0 ** (1 - self.bias)
        self.tiny = 2.0 ** -(mantissa + 3)  # x + x**2 is x
        # added to a small x, it rounds x to an integer and leaves that in the low bits
        self.magic = 1.5 * 2.0**mantissa
        self.magic_bits = ((self.bias + mantissa) << mantissa) + (1 << (mantissa - 1))
        self.sqrt_half_bits = 0x3FE6A09E667F3BCD if itemsize == 8 else 0x3F3504F3


FORMATS = {8: Format(8, 52), 4: Format(4, 23)}


class Num(Scalar):
    """A float of the LLVM emitter, with its format and its bits."""

    __slots__ = ()

    @property
    def format(self) -> Format:
        return FORMATS[self.v.dtype.itemsize]

    def constants(self, name: str) -> tuple[float, ...]:
        values: tuple[float, ...] = getattr(table, name)[self.v.dtype.itemsize]
        return values

    def __lshift__(self, count: int) -> Num:
        return Num(self.e, self.e.plain("shl", self.v, self.of(count)))

    def __rshift__(self, count: int) -> Num:
        """Shifts zeros in."""
        return Num(self.e, self.e.plain("lshr", self.v, self.of(count)))

    def bits(self) -> Num:
        return self.call("bits")

    def unbits(self) -> Num:
        return self.call("unbits")


def fast_two_sum(x: Num, y: Num | float) -> tuple[Num, Num]:
    """The same where |x| >= |y|."""
    s = x + y
    return s, y - (s - x)


def rarely(condition: Num, slow: Callable[[], Num], fast: Num) -> Num:
    """`slow()` on the lanes where `condition` holds, behind a branch that is taken only if there are any."""
    e = condition.e
    usual, cold, after = e.fn.current, e.fn.label("rare"), e.fn.label("usual")
    lanes = max(condition.v.lanes, fast.v.lanes)
    e.fn.branch_if(e.any(condition.v), cold, after, likely=False)
    e.fn.block(cold)
    mixed = where(condition, slow(), fast)
    assert mixed.v.lanes == lanes
    cold_end = e.fn.current
    e.fn.branch(after)
    e.fn.block(after)
    phi = e.fn.phi(e.type(fast.v.dtype, lanes), [(e.operand(fast.v), usual), (e.operand(mixed.v), cold_end)])
    return Num(e, e.value(phi, fast.v.dtype, lanes))


def lane_by_lane(name: str, condition: Num, body: Callable[..., Num], otherwise: Num, *xs: Num) -> Num:
    """`body` of one lane of `xs` after the other where `condition` holds, `otherwise` elsewhere. It is a function of scalars of
    its own, so that what calls it needs no registers for it. Lanes are chosen by comparing, which needs no memory."""
    e, lanes = condition.e, condition.v.lanes

    def called(*values: Num) -> Num:
        return Num(e, e.called(name, lambda inside, *vs: body(*(Num(inside, v) for v in vs)).v, *(x.v for x in values)))

    if lanes <= 1:
        return called(*xs)
    vector = e.type(otherwise.v.dtype, lanes)
    before, head, work, following, done = e.fn.current, *map(e.fn.label, ("lane", "lane.work", "lane.next", "lanes.done"))
    e.fn.branch(head)
    e.fn.block(head)
    lane, result = e.fn.phi("i64", [("0", before)]), e.fn.phi(vector, [(e.operand(otherwise.v), before)])
    chosen = [e.fn.instr(f"icmp eq i64 {lane}, {k}") for k in range(1, lanes)]

    def one(x: Num) -> Num:
        value = e.extract(x.v, 0)
        if x.v.lanes <= 1:
            return Num(e, value)
        for k, here in enumerate(chosen, 1):
            value = e.select(e.value(here, np.bool_), e.extract(x.v, k), value)
        return Num(e, value)

    e.fn.branch_if(one(condition).v.text, work, following)
    e.fn.block(work)
    index = e.value(f"<{', '.join(f'i64 {k}' for k in range(lanes))}>", np.int64, lanes)
    here = e.eq(index, e.value(lane, np.int64))
    mixed = e.select(here, called(*map(one, xs)).v, e.value(result, otherwise.v.dtype, lanes))
    worked = e.fn.current
    e.fn.branch(following)
    e.fn.block(following)
    last = e.fn.phi(vector, [(result, head), (e.operand(mixed), worked)])
    more = e.fn.instr(f"add i64 {lane}, 1")
    lane.add_incoming(more, following)
    result.add_incoming(last, following)
    e.fn.branch_if(e.fn.instr(f"icmp ult i64 {more}, {lanes}"), head, done)
    e.fn.block(done)
    return Num(e, e.value(last, otherwise.v.dtype, lanes))

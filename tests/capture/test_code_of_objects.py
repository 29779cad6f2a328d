"""Code of a class that runs behind a builtin (a property behind getattr, __len__, __contains__): captured, or Python's."""

from collections import defaultdict
from math import exp

import numpy as np
import pytest

import jitlab as jl
from tests.left import assert_plain


@jl.jit
def doubled_sum(x):
    return x.sum() * 2


class Filter:
    """Computes what it is asked for once, and keeps it."""

    def __init__(self):
        self.y = np.ones(2)
        self.kept = self.likelihood_kept = None
        self.log = defaultdict(list)

    def keep(self):
        if self.kept is None:
            self.kept = doubled_sum(self.y)
        return self.kept

    @property
    def total(self):
        return self.keep()

    @property
    def likelihood(self):
        if self.likelihood_kept is None:
            self.likelihood_kept = exp(-self.total)
        return self.likelihood_kept

    def __call__(self):
        return self.keep()

    def __len__(self):
        return int(self.keep())

    def __getitem__(self, k):
        return self.keep() + k

    def __iter__(self):
        return iter([self.keep()])

    def __contains__(self, k):
        return self.keep() > k

    def __bool__(self):
        return bool(self.keep() > 0)

    def __float__(self):
        return float(self.keep())

    def __repr__(self):
        return f"Filter {self.keep()}"

    def key(self, x):
        return -x * self.keep()


EXPRESSIONS = {
    "getattr in a loop": lambda k: [getattr(k, name) for name in ("likelihood", "total")],
    "getattr": lambda k: getattr(k, "likelihood"),  # noqa: B009
    "getattr with a default": lambda k: (getattr(k, "nothing", 3), getattr(k, "total", 3)),
    "hasattr": lambda k: (hasattr(k, "total"), hasattr(k, "nothing"), k.kept),
    "len": lambda k: len(k), "call": lambda k: k(), "item": lambda k: k[1], "list": lambda k: list(k), "in": lambda k: 0 in k,
    "any": lambda k: any(k), "float": lambda k: float(k), "bool": lambda k: bool(k), "str": lambda k: str(k),
    "text": lambda k: f"{k}", "choice": lambda k: 1 if k else 2, "sorted": lambda k: sorted([1, 2], key=k.key),
    "append": lambda k: k.log["total"].append(k.total), "callable": lambda k: callable(k),
}  # fmt: skip


class Holder:
    def __init__(self):
        self.filter = Filter()


def of_argument(expression):
    def compiled(holder, k):
        y = k.y * 2
        for _ in range(2):
            found = expression(k)
        return found, y

    return compiled


def of_attribute(expression):
    def compiled(holder, k):
        return expression(holder.filter), 0

    return compiled


@pytest.mark.parametrize("way", [of_argument, of_attribute])
@pytest.mark.parametrize("expression", EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_code_of_a_class_leaves_its_values_in_the_object(expression, way):
    compiled = way(expression)
    traced, mine, pythons = jl.jit(compiled), Holder(), Holder()
    for _ in range(3):
        assert repr(traced(mine, mine.filter)) == repr(compiled(pythons, pythons.filter))
        assert_plain(vars(mine.filter))
        assert repr(vars(mine.filter)) == repr(vars(pythons.filter))
        for k in (mine.filter, pythons.filter):
            k.kept = k.likelihood_kept = None
            k.y = k.y + 1

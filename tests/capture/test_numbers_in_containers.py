"""Python numbers that a program puts into containers: each call happens once, with whatever the container is."""

import math
import operator
from collections import Counter, OrderedDict, defaultdict, deque

import numpy as np
import pytest

import jitlab as jl


def appended(d, p):
    new = []
    new.append(p)
    new.append(p * 2)
    return new, len(new)


def made_in_several_ways(d, p):
    new = list(d)
    operator.delitem(new, 0)
    new.insert(0, p)
    new.extend([p, p])
    return new, d, new.index(p), new.count(p), new.pop(), new


def sets_and_dicts(d, p):
    s, q = set(), {}
    s.add(p)
    s.update([p])
    q.setdefault(p, []).append(p)
    q[p].append(p)
    return s, q, q.get(p), q.pop(p), q


def collections_of_python(d, p):
    queue, lists, ordered = deque(maxlen=3), defaultdict(list), OrderedDict()
    queue.append(p)
    queue.appendleft(p)
    lists[1].append(p)
    ordered["a"] = p
    ordered.move_to_end("a")
    return list(queue), dict(lists), Counter([p, p, 1]), list(ordered), p + 1


def in_a_loop(d, p):
    kept = []
    while p > 0:
        for i in range(2):
            kept.append(d[i] * p)
            kept.append(math.floor(p))
        p = p // 2
    return kept, sum(kept), sorted(kept)


def written_by_functions_of_operator(d, p):
    operator.setitem(d, 0, p)
    d = operator.iadd(d, [p])
    return d, operator.iadd(p, 1), operator.add(p, 1), math.hypot(p, 3)


def deleted_by_a_function_of_operator(d, p):
    operator.delitem(d, 0)
    return d, p


def methods_of_numbers_and_texts(d, p):
    return "x".ljust(int(p) + 3), (1, p).index(p), range(int(p) + 1).index(1), p.is_integer(), p.as_integer_ratio()


@pytest.mark.parametrize("p", [2.0, 4, np.float64(2.0)], ids=repr)
@pytest.mark.parametrize("function", [
    appended, made_in_several_ways, sets_and_dicts, collections_of_python, in_a_loop, written_by_functions_of_operator,
    deleted_by_a_function_of_operator, methods_of_numbers_and_texts,
], ids=lambda f: f.__name__)  # fmt: skip
def test_a_number_is_put_into_a_container_once(function, p):
    if isinstance(p, int) and function is methods_of_numbers_and_texts:
        p = float(p)  # ints have no is_integer before Python 3.12
    traced = jl.jit(function)
    for _ in range(3):
        mine, pythons = [5.0, 6.0], [5.0, 6.0]
        assert repr(traced(mine, p)) == repr(function(pythons, p))
        assert mine == pythons

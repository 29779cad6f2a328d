"""Lists and dicts that hold themselves, as arguments: such calls run as Python does them, in pieces where that can be."""

import numpy as np
import pytest

import jitlab as jl


def holding_itself():
    held = [np.ones(3)]
    held.append(held)
    return held


def by_name():
    held = {0: np.ones(3)}
    held["self"] = [held]
    return held


def in_a_tuple():
    held = holding_itself()
    return held[0], held


def many_times():
    held = [np.ones(3)]
    held += [held, held, held]
    return held


def deep():
    held = [np.ones(3)]
    for _ in range(5_000):
        held = [held[0], held]
    return held


WAYS = {"jit": jl.jit, "trace": lambda f: jl.jit(f, capture_mode="trace"), "function": jl.function}


@pytest.mark.parametrize("made", (holding_itself, by_name, in_a_tuple, many_times, deep))
@pytest.mark.parametrize("way", WAYS)
def test_a_container_that_holds_itself_is_an_argument(made, way):
    def written(held, k):
        held[0][1] = k
        total = held[0].sum()
        print(end="")
        return float(total) * len(held)

    compiled = WAYS[way](written)
    for k in range(4):
        ours, theirs = made(), made()
        assert compiled(ours, k) == written(theirs, k)
        assert ours[0].tolist() == theirs[0].tolist()


def test_it_is_said():
    doubled = jl.jit(lambda held: held[0] * 2)
    assert "contains itself" in str(doubled.explain_key(holding_itself()))


def test_what_must_be_compiled_says_why_it_is_not():
    with pytest.raises(jl.errors.InvalidArgumentError, match="contains itself"):
        jl.function(lambda held: held[0] * 2, jit_compile=True)(holding_itself())

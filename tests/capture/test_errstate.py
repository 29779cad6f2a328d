"""What a program asks NumPy to do about floating-point errors happens in compiled functions, too: NumPy runs what is inside."""

import contextlib
import linecache
import warnings

import numpy as np
import pytest

import jitlab as jl
from tests.cell_runs import run_cell

HEAD = """
import contextlib
import warnings
import numpy as np

def inverse(x):
    return 1 / x

@np.errstate(all="raise")
def strictly_inverse(x):
    return 1 / x

def be_strict(*values):
    np.seterr(divide="raise")

class Strict:
    def __init__(self):
        be_strict()

set_errors = np.seterr

@contextlib.contextmanager
def strict():
    with np.errstate(all="raise"):
        yield
"""
PROGRAMS = {
    "raise": 'with np.errstate(divide="raise"):\n    y = 1 / x',
    "two statements": 'with np.errstate(divide="raise"):\n    y = x + 1\n    y = y / x',
    "call": 'log = []\nwith np.errstate(all="call", call=lambda error, flag: log.append(error)):\n    y = 1 / x\ny = log, y',
    "seterr": 'before = np.seterr(divide="raise")\ntry:\n    y = 1 / x\nfinally:\n    np.seterr(**before)',
    "caught": 'try:\n    with np.errstate(all="raise"):\n        y = 1 / x\nexcept FloatingPointError as e:\n    y = str(e)',
    "in a loop": 'y = 0\nwith np.errstate(all="raise"):\n    for v in x:\n        y = y + 1 / v',
    "around a helper": 'with np.errstate(all="raise"):\n    y = inverse(x)',
    "a helper's decorator": "y = strictly_inverse(x)",
    "in a context manager of the program's": "with strict():\n    y = inverse(x)",
    "ignored inside": 'with np.errstate(all="raise"):\n    with np.errstate(all="ignore"):\n        y = 1 / x\n    y = y * 0',
    "a helper asks": "be_strict()\ny = 1 / x",
    "an object's constructor asks": "Strict()\ny = 1 / x",
    "under another name": 'set_errors(divide="raise")\ny = 1 / x',
    "by name": 'getattr(np, "seterr")(divide="raise")\ny = 1 / x',
    "a helper asks in a condition": "if be_strict() is None:\n    y = x + 1\ny = 1 / x",
    "a helper asks in a comprehension": "[be_strict() for _ in range(1)]\ny = 1 / x",
    "a helper asks in a loop": "for _ in range(2):\n    be_strict()\ny = 1 / x",
    "a helper that a builtin calls asks": "sorted([3], key=be_strict)\ny = 1 / x",
    "a helper asks beside work": "y = x + 1\nbe_strict()\ny = y / x",
    "on a stack": 'with contextlib.ExitStack() as s:\n    s.enter_context(np.errstate(divide="raise"))\n    y = 1 / x',
    "warnings as errors": 'with warnings.catch_warnings():\n    warnings.simplefilter("error")\n    y = 1 / x\n    y = y + 1',
    "warnings as errors, caught": (
        'try:\n    with warnings.catch_warnings():\n        warnings.filterwarnings("error", "divide")\n        y = 1 / x\n'
        "except RuntimeWarning as e:\n    y = str(e)"
    ),
    "some warnings as errors": (
        'with warnings.catch_warnings():\n    warnings.filterwarnings("error", category=RuntimeWarning)\n'
        "    for v in x:\n        y = 1 / v"
    ),
    "warnings as errors around a helper": (
        'with warnings.catch_warnings():\n    warnings.simplefilter("error")\n    y = inverse(x)'
    ),
    "warnings as errors no more": (
        'with warnings.catch_warnings():\n    warnings.simplefilter("error")\n    y = x + 1\ny = 1 / (y - 1)'
    ),
    "warnings as errors without a block": (
        "before = warnings.filters[:]\nwarnings.simplefilter('error')\ntry:\n    y = 1 / x\n"
        "finally:\n    warnings.filters[:] = before\n    warnings._filters_mutated()"
    ),
    "warnings on record": (
        "with warnings.catch_warnings(record=True) as told:\n    warnings.simplefilter('always')\n    y = 1 / x\n"
        "y = y, [str(one.message) for one in told]"
    ),
    "not any more": 'with np.errstate(divide="raise"):\n    y = x + 1\ny = y / x',
    "ignored": 'with np.errstate(all="ignore"):\n    y = 1 / x',
}


def outcomes(call):
    """Of calls with and without a zero, the second and third of a trace that is there."""
    found = []
    for x in (np.arange(3.0) + 1, np.arange(4.0), np.arange(3.0) + 1, np.arange(4.0)):
        try:
            with np.errstate(divide="warn"), contextlib.nullcontext():
                found.append(repr(call(x)))
        except (FloatingPointError, RuntimeWarning) as error:
            found.append(str(error))
    return found


def as_function(name, body, how):
    file = f"<errstate, {name}>"
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    source = f"{HEAD}\ndef program(x):\n{lines}    return y\n"
    linecache.cache[file] = len(source), None, source.splitlines(True), file
    space = {"__name__": "errstate"}
    exec(compile(source, file, "exec"), space)
    return how(space["program"])


def as_cell(name, body):
    space = {}
    exec(HEAD, space)

    def call(x):
        space["x"] = x
        run_cell(body, space, f"<errstate, {name}>")
        return space["y"]

    return call


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("way", ["jit", "cell"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_floating_point_errors_are_told_as_the_program_asks(name, way):
    body = PROGRAMS[name]
    wanted = outcomes(as_function(name, body, lambda f: f))
    assert outcomes(as_cell(name, body) if way == "cell" else as_function(name, body, jl.jit)) == wanted
    assert len(set(wanted)) > 1


def test_a_stitched_function_looks_at_filters_of_warnings():
    """After many calls the pieces run in line; each call finds what Python finds."""

    def program(x, kept):
        with warnings.catch_warnings():
            warnings.simplefilter("error" if kept else "ignore")
            y = 1 / x
        kept.append(0)
        return y + 1

    compiled = jl.jit(program)
    for turn in range(60):
        x, kept = np.arange(3.0) + (turn % 3 > 0), [1] * (turn % 2)
        if turn % 3 == 0 and turn % 2:
            with pytest.raises(RuntimeWarning, match="divide by zero"):
                compiled(x, kept)
        else:
            with np.errstate(divide="ignore"):
                wanted = 1 / x + 1
            assert compiled(x, kept).tolist() == wanted.tolist()

"""What a random function leaves behind under Python and under jitlab, and the least function that still differs."""

from __future__ import annotations

import ast
import contextlib
import copy
import io
import random
import re
import traceback
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import jitlab as jl
from jitlab.api import settling
from jitlab.api.functions import jit as jit_module
from tests.left import described

from .functions import Program

#: Calls of a program: the size of its arguments, what their values are drawn from, and whether a global was written to before.
CALLS = ((0, 0, False), (0, 50, False), (1, 1, False), (0, 0, True))
WAYS: dict[str, Callable[[Any], Any]] = {
    "jit": jl.jit,
    "jit O0": lambda f: jl.jit(f, jit_level="O0"),
    "function": jl.function,
    "jit measure": jl.jit,
    "jit model": jl.jit,
}
#: `jl.config.settle` of the ways in which calls are decided about, and how often each of CALLS is made there in succession.
SETTLES, TIMES = {"jit measure": "measure", "jit model": "model"}, 8
#: What a call takes there, in nanoseconds: of each program one is drawn for each way, so that decisions fall both ways.
TAKES = (1_000, 1_500, 40_000, 30_000_000)
#: Smaller programs that are tried of one that fails.
MOST_TRIALS = 150
#: What is known to differ: what the least program has in it, and why that is wrong.
KNOWN = {
    "[n % ": "two views of one row that a number of the arguments finds are one object where the call goes in pieces",
}
STATE = ("TABLE", "COUNT", "LOG", "STORE", "BOX")


def ways_of(program: Program) -> list[str]:
    """A `function` does to Python once a trace what the body does, divides numbers of its arguments as NumPy does, and gives
    numbers of one dtype: it is asked for programs without such effects, divisions, and numbers of several kinds."""
    of_others = program.has_effects or "// int(" in program.function or re.search(r"\bk\d", program.function)
    return [way for way in WAYS if way != "function" or not of_others]


@contextlib.contextmanager
def settled(mode: str, seed: int) -> Iterator[None]:
    """Inside, calls are decided about by this mode, and by times that are drawn."""
    draw, now, before = random.Random(f"times {seed}"), [0], settling.tried
    takes = {way: draw.choice(TAKES) for way in (settling.COMPILED, settling.PYTHON)}

    def tried(trial: settling.Trial, ways: dict[str, Callable[[], Any]], is_ready: Callable[[], bool]) -> Any:
        def timed(way: str) -> Any:
            result = ways[way]()
            now[0] += takes[way] + draw.randrange(300)
            return result

        return before(trial, {way: partial(timed, way) for way in ways}, is_ready)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jl.config, "settle", mode)
        patch.setattr(jit_module, "_is_measurable", lambda: True)
        patch.setattr(settling, "tried", tried)
        for clock in ("clock", "busy_clock"):
            patch.setattr(settling, clock, lambda: now[0])
        yield


def calls(program: Program, transform: Callable[[Any], Any], times: int = 1) -> list[Any]:
    """Of each call what it gave, or raised, printed, and left in its arguments and globals; then all results once more."""
    names = program.names()
    f = transform(names["f"])
    found, results = [], []
    for which, seed, is_changed in [call for call in CALLS for _ in range(times)]:
        if is_changed:
            names["TABLE"] *= 2
        values = program.values(which, program.seed + seed)
        printed, result, error = io.StringIO(), None, None
        with warnings.catch_warnings(), np.errstate(all="ignore"), contextlib.redirect_stdout(printed):
            warnings.simplefilter("ignore")
            try:
                result = f(*values.values())
            except Exception as raised:
                error = raised
        if isinstance(error, jl.errors.JitlabError):
            raise error
        left = described({"result": result, **values, **{name: names[name] for name in STATE}})
        found.append((type(error).__name__, copy.deepcopy(left), printed.getvalue()))
        results.append(result)
    return [*found, described({"results": results})]


def failure(program: Program, way: str) -> str:
    """"" where jitlab does what Python does, else what differs. A `function` may refuse what a graph cannot say."""
    times = TIMES if way in SETTLES else 1
    want = calls(program, lambda f: f, times)
    try:
        with settled(SETTLES[way], program.seed) if way in SETTLES else contextlib.nullcontext():
            mine = calls(program, WAYS[way], times)
    except jl.errors.JitlabError as error:
        return "" if way == "function" else "".join(traceback.format_exception(error)[-4:])
    except AssertionError as ours:  # found by the walk through what was left
        return f"{way}: left {ours}"
    except Exception as error:
        return "".join(traceback.format_exception(error)[-6:])
    for number, (theirs, own) in enumerate(zip(want, mine, strict=True)):
        if way == "function":
            theirs, own = of_a_function(theirs), of_a_function(own)
        if theirs != own:
            return f"{way}, call {number}: {difference(theirs, own)}"
    return ""


def of_a_function(left: Any) -> Any:
    """What `function` promises: Python numbers come back as NumPy's; a call that raised says nothing of its arguments."""
    if isinstance(left, tuple) and len(left) == 3 and left[0] not in ("NoneType", "array"):
        return left[0]
    if isinstance(left, tuple) and len(left) == 2 and isinstance(left[1], str):
        kinds = {"bool_": "bool", "int64": "int", "float64": "float"}
        return kinds.get(left[0], left[0]), left[1]
    if isinstance(left, (list, tuple)):
        return type(left)(of_a_function(x) for x in left)
    return {name: of_a_function(x) for name, x in left.items()} if isinstance(left, dict) else left


def difference(theirs: Any, own: Any) -> str:
    """The first place at which two forms differ."""
    if type(theirs) is type(own) and isinstance(own, dict) and list(own) == list(theirs):
        return next(f"{name}: {difference(theirs[name], own[name])}" for name in own if own[name] != theirs[name])
    if type(theirs) is type(own) and isinstance(own, (list, tuple)) and len(own) == len(theirs):
        return next(difference(a, b) for a, b in zip(theirs, own, strict=True) if a != b)
    return f"{own!r:.300}, not {theirs!r:.300}"


def least(program: Program, way: str, wrong: Callable[[Program, str], str] = failure) -> Program:
    """The failing program without what its failure does not need; no name becomes unbound."""
    best, was_unbound, tried = program, is_unbound(program), 0
    while True:
        for text in smaller(best.function):
            trial, tried = Program(best.arguments, best.numbers, body_of(text), best.seed), tried + 1
            if (was_unbound or not is_unbound(trial)) and wrong(trial, way):
                best = trial
                break
            if tried > MOST_TRIALS:
                return best
        else:
            return best


def judge(text: str, least: str) -> None:
    """Ends a test whose program differs: as a failure that is expected, where its reason is known."""
    for part, reason in KNOWN.items():
        if part in least:
            pytest.xfail(reason)
    pytest.fail(f"{text}\n{least}", pytrace=False)


def is_unbound(program: Program) -> bool:
    """Does Python find a name without a value?"""
    return any(ended[0] in ("NameError", "UnboundLocalError") for ended in calls(program, lambda f: f)[:-1])


def smaller(function: str) -> Iterator[str]:
    """Texts of a function with a value returned or a statement less, or with a block in place of its statement."""
    tree = ast.parse(function)
    for node in ast.walk(tree):
        value = getattr(node, "value", None) if isinstance(node, ast.Return) else None
        parts = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
        for number in range(len(parts) if len(parts) > 1 else 0):
            kept = parts.pop(number)
            yield ast.unparse(tree) + "\n"
            parts.insert(number, kept)
    for block, number in reversed([*_blocks(tree.body[0])]):
        statement = block[number]
        inner = statement.body if isinstance(statement, (ast.If, ast.For, ast.While, ast.Try)) else []
        for instead in ([], inner) if inner else ([],):
            if isinstance(statement, (ast.Return, ast.Pass)):
                continue
            put = instead or ([ast.Pass()] if len(block) == 1 else [])
            block[number : number + 1] = put
            yield ast.unparse(ast.fix_missing_locations(tree)) + "\n"
            block[number : number + len(put)] = [statement]


def _blocks(node: ast.AST) -> Iterator[tuple[list[ast.stmt], int]]:
    """Every statement inside a node as its block and its number there; what ends a `while` stays in it."""
    if isinstance(node, ast.While):
        return
    for name in ("body", "orelse", "finalbody", "handlers"):
        block = getattr(node, name, None) or []
        for number, inner in enumerate(block):
            if isinstance(inner, ast.stmt):
                yield block, number
            yield from _blocks(inner)


def body_of(function: str) -> list[str]:
    return [line[4:] for line in function.splitlines()[1:]]

"""Random cells with statements of many kinds leave the same names, twice in a row, as plain Python does."""

from __future__ import annotations

import contextlib
import io
import random
import textwrap

import numpy as np
import pytest
from notebook_programs import Box
from test_same_as_plain import described

from tests.cell_runs import run_cell
from tests.fuzz import cells
from tests.fuzz.outcomes import judge
from tests.left import assert_plain

NAMES = ["v", "w", "a", "b", "k"]


class Writer:
    """Writes random programs; equal seeds, equal programs."""

    def __init__(self, seed: int) -> None:
        self.pick = random.Random(seed)

    def expression(self, depth: int = 2) -> str:
        if depth == 0:
            return self.pick.choice([*NAMES, "2", "0.5", "-1", "k"])
        x, y = self.expression(depth - 1), self.expression(depth - 1)
        return self.pick.choice(
            [
                f"({x} + {y})", f"({x} * {y})", f"({x} - {y})", f"np.abs({x})", f"np.sum({x})", f"np.maximum({x}, {y})",
                f"-({x})",
                f"double({x})", f"({x} if np.sum({y}) > 1 else {y})", f"float(np.sum({x}))", f"v[:2].sum() * {x}", f"grow({x})",
                f"len(out) + {x}", f"items[0] * {x}", f"box.w * {y}", f"(t := {x}) + 1", f"[{x}, {y}][0]", f"next_one() * {x}",
                f"(k - grow({x}))", f"(k * next_one() + {y})",
            ]
        )  # fmt: skip

    def statement(self, depth: int = 2) -> str:
        e, f, name = self.expression(), self.expression(1), self.pick.choice(NAMES)
        if depth == 0 or self.pick.random() < 0.6:
            return self.pick.choice(
                [
                    f"{name} = {e}", f"{name} += {f}", f"v[1] = np.sum({f})", "v[:2] *= 0.5", f"out.append({e})",
                    f"box.w = {e}",
                    f"box.w += {f}", f"items[0] = {e}", f"items[1] += {f}", f"print(np.sum({e}))", "rows = [u * 2 for u in v]",
                    f"print(f'{{np.sum({f}):.4f}}', k)", f"assert np.sum({f}) < 1e6", f"{name}, b = {e}, {f}", "w = v[1:]",
                    f"n = items[int(np.sum({f})) % 2]", f"a = b = {e}", "del n", "v = v.copy()", f"a = v[9] + {f}",
                    f"d = {{'x': {e}, 'y': k}}",
                ]
            )  # fmt: skip
        body, other = (textwrap.indent(self.block(depth - 1), "    ") for _ in range(2))
        jump = self.pick.choice(["", "    if np.sum(v) > 4: break\n", "    if i == 1: continue\n"])
        return self.pick.choice(
            [
                f"if np.sum({f}) > 1:\n{body}\nelse:\n{other}", f"for i in range(3):\n{jump}{body}",
                f"for i in range(2):\n{body}\nelse:\n{other}", f"with contextlib.suppress(IndexError):\n{body}",
                f"try:\n{body}\nexcept (IndexError, NameError, TypeError) as error:\n{other}\nfinally:\n    last = 1",
                f"m = 0\nwhile np.sum(np.abs(v)) < 50 and m < 3:\n    m += 1\n{body}",
            ]
        )  # fmt: skip

    def block(self, depth: int = 2) -> str:
        return "\n".join(self.statement(depth) for _ in range(self.pick.randint(1, 4)))


def start():
    def double(x):
        return x * 2

    names = {"np": np, "contextlib": contextlib, "v": np.arange(3.0), "k": 3, "out": [], "items": [np.ones(3), np.zeros(3)]}
    names |= {"a": np.full(3, 0.25), "b": np.float64(2.0), "box": Box(np.arange(3.0)), "double": double}
    exec(
        "count = 0\ndef next_one():\n    global count\n    count += 1\n    return count\n"
        "def grow(x):\n    global k\n    k = k + 1\n    return x * k",
        names,
    )
    names["w"] = names["v"][1:]
    return names


def ran(run, names):
    printed, errors = io.StringIO(), []
    with contextlib.redirect_stdout(printed), np.errstate(all="ignore"):
        for _ in range(2):
            try:
                run(names)
            except Exception as error:
                errors.append((type(error), str(error).split("\n")[0]))
    names.pop("__builtins__", None)
    assert_plain(names)
    return described(names), printed.getvalue(), errors


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(400))
def test_random_cell_leaves_what_python_leaves(seed):
    source = Writer(seed).block()
    code = compile(source, "<random>", "exec", dont_inherit=True)
    expected = ran(lambda names: exec(code, names), start())
    found = ran(lambda names: run_cell(source, names, "<random>"), start())
    assert found == expected, source


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(100))
def test_a_random_notebook_with_jit_on_leaves_what_it_leaves_without(ip, seed):
    notebook = cells.make(seed)
    text = cells.failure(notebook, ip)
    if text:
        judge(text, str(cells.least(notebook, lambda smaller: cells.failure(smaller, ip))))

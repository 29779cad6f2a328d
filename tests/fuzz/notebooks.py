"""Random notebooks about sizes: numbers made of shapes are kept, cross cells, and come back as shapes, slices and counts.

    python -m tests.fuzz sizes --count 1000 --seed 1      prints each notebook that differs from plain Python
"""

from __future__ import annotations

import contextlib
import io
import random
import warnings
from typing import Any

import numpy as np

from jitlab.api import Options, compile_trace
from tests.cell_runs import run_cell
from tests.left import ours_in

SHAPES = [(8, 11), (6, 6), (17, 5), (40, 3), (2, 2)]
LEVELS = ("O1", "O0")


class Box:
    """An object of the user's."""


class Notebook:
    """Cells of text; equal seeds, equal notebooks. `ints` and `arrays` are names that cells have made."""

    def __init__(self, seed: int) -> None:
        self.pick = random.Random(seed)
        self.shape = self.pick.choice(SHAPES)
        self.ints, self.one, self.two, self.count = ["k"], ["v"], ["A", "B"], 0
        made = ["\n".join(self.statement() for _ in range(self.pick.randint(1, 4))) for _ in range(self.pick.randint(3, 7))]
        self.cells = made + self.pick.sample(made, k=2)

    def named(self, statement: str) -> str:
        """`@h`, `@w` or `@M` of a statement as a new name."""
        for mark, names in (("@h", self.ints), ("@w", self.one), ("@M", self.two)):
            if mark in statement:
                self.count += 1
                names.append(f"{mark[1]}{self.count}")
                statement = statement.replace(mark, names[-1])
        return statement

    def size(self) -> str:
        """A number made of sizes."""
        i, v, a = self.pick.choice(self.ints), self.pick.choice(self.one), self.pick.choice(self.two)
        return self.pick.choice(
            [
                f"{a}.shape[{self.pick.randrange(2)}] - {i}", f"len({v}) // 2", f"max({a}.shape[0] - {i} + 1, 1)",
                f"{a}.size - len({v})", f"min({i}, {a}.shape[1])", f"{i} + {a}.shape[0]", f"int({v}[:1].sum()) % 5 + 1",
                f"len({a}) * {i} % 7", f"{v}.size", f"sum({a}.shape)", f"{a}.ndim + {i}", f"int(np.prod({a}.shape)) - {i}",
                f"[{i}, len({v})][1]", f"slice({i}, len({v})).stop", f"{{'n': {a}.shape[1] - {i}}}['n']",
                f"-{i} + {a}.shape[0]", f"np.shape({a})[0]", f"{a}.T.shape[0] * 2 - {i}", f"int(np.argmax({v})) + 1",
                f"round({i} * 1.5)",
            ]
        )  # fmt: skip

    def length(self) -> str:
        return f"min(max({self.pick.choice([*self.ints, self.size()])}, 1), 50)"

    def statement(self) -> str:
        if self.pick.random() < 0.35:
            return self.named(f"@h = {self.size()}")
        n, m, i = self.length(), self.length(), self.pick.choice(self.ints)
        v, a = self.pick.choice(self.one), self.pick.choice(self.two)
        first = self.pick.choice(
            [
                f"np.zeros({n}) + {i}", f"{v}[:{n}] * 2.0", f"{v}[-{n}:] + {i}", f"np.arange({n}) * 0.5",
                f"np.repeat({v}[:2], {n})", f"np.full({n}, {i}) + {v}[0]", f"np.where({v} > 1, {i}, 0.5)",
                f"{v}[slice(0, {n})] - 1", f"np.linspace(0, 1, {n})", f"{a}.reshape(-1)[:{n}] + {i}", f"np.cumsum({v})[::{n}]",
                f"np.where({v} > {i})[0] * 1.0", f"{a}[{a} > 0][:{n}] * 2",
                f"np.ones(({n}, 2)) @ np.ones((2, {m})) @ np.ones({m})", f"{a}[{i} % len({a})] * {i}",
                f"np.array([{i}, {n}, {m}]) / 2", f"np.tile({v}[:3], {n})",
                f"{v} * {i} + len({v})",
            ]
        )  # fmt: skip
        return self.named(self.pick.choice(
            [
                f"@w = {first}", f"@w = {first}",
                f"{v}[:{n}] *= 0.5", f"{v}[{i} % len({v})] += {i}", f"{a}[{n} % len({a}):] -= {i}",
                f"@M = {a} * {i} + 1", f"@M = np.ones(({n}, {m})) * {i}",
                f"@M = {a}[:{n}] + {i}", f"@M = {a}.T.copy().T",
                f"kept.append({self.pick.choice([i, n, f'slice(0, {i})', f'({i}, {n})', f'[{i}]', f'{{{i}: {n}}}', v])})",
                f"named['{self.pick.choice('abc')}'] = {self.pick.choice([i, n, f'slice({i})', a, f'{a}.sum()'])}",
                f"box.n = {self.pick.choice([i, n, f'{a}.max()', f'({i}, {a}.shape)'])}",
                f"s = slice({i} % 3, {n} + 3)\ncut = {v}[s]", f"print({i}, {n}, {a}.shape)", f"print(float({v}.sum()) > {i})",
                f"for q in range({n} % 5):\n    {v}[q % len({v})] += q * {i}",
                f"total = 0.0\nfor q in range({n}):\n    total = total + {v}[q % len({v})] * {i}",
                f"if {i} > {n}:\n    {a}[0] = {i}\nelse:\n    extra = {n} + 1",
                f"def g(x, n={i}):\n    return x[:n] * n + len(x)\ncut = g({v})",
                f"rows = [{v}[q % len({v})] for q in range({n})]",
                f"shape = ({n}, {m})\nflat = np.zeros(shape).ravel() + {i}", f"pair = ({i}, {v}[:{n}], [{a}.shape, {n}])",
                f"assert {n} < 10**6\n@h = {n} + 1", f"del box.n\nbox.n = {i}",
                f"try:\n    @M = {a} @ {a}\nexcept ValueError as error:\n    @M = {a} + {i}",
            ]
        ))  # fmt: skip


def namespace(shape: tuple[int, int]) -> dict[str, Any]:
    size = shape[0] * shape[1]
    return {
        "np": np, "A": np.sin(np.arange(float(size))).reshape(shape), "B": np.cos(np.arange(float(size))).reshape(shape) + 2,
        "v": np.arange(4.0 * max(shape)), "k": 2, "kept": [], "named": {}, "box": Box(),
    }  # fmt: skip


def ran(notebook: Notebook, run: Any) -> tuple[Any, dict[str, Any]]:
    """What the cells printed and raised, and the names that they left."""
    names, said = namespace(notebook.shape), []
    for cell in notebook.cells:
        printed, error = io.StringIO(), None
        with contextlib.redirect_stdout(printed), np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                run(cell, names)
            except Exception as raised:
                error = type(raised).__name__
        said.append((printed.getvalue(), error))
    names.pop("__builtins__", None)
    return said, names


def form(x: Any, depth: int = 0) -> Any:
    """What can be compared of a value: types and numbers, rounded as kernels may round."""
    if isinstance(x, np.ndarray):
        return "array", x.dtype.str, x.shape, [f"{item:.9g}" for item in x.ravel().tolist()]
    if isinstance(x, np.generic):
        return "scalar", x.dtype.str, f"{x.item():.9g}"
    if isinstance(x, float):
        return "float", f"{x:.9g}"
    if isinstance(x, (slice, range)):
        return type(x).__name__, form((x.start, x.stop, x.step))
    if isinstance(x, (list, tuple)) and depth < 6:
        return type(x).__name__, [form(item, depth + 1) for item in x]
    if isinstance(x, dict) and depth < 6:
        return "dict", [(form(key), form(item, depth + 1)) for key, item in x.items()]
    if isinstance(x, Box):
        return "Box", form(vars(x), depth + 1)
    return type(x).__name__, repr(x) if isinstance(x, (bool, int, str, type(None))) else getattr(x, "__name__", "")


def failure(seed: int) -> str:
    """"" when the notebook leaves what plain Python leaves, else what is wrong."""
    notebook = Notebook(seed)
    options = Options(level=LEVELS[seed % len(LEVELS)], replays=True)
    said, names = ran(notebook, lambda cell, names: exec(cell, names))  # noqa: S102
    got, mine = ran(
        notebook, lambda cell, names: run_cell(cell, names, "<cell>", executor=lambda trace: compile_trace(trace, options))
    )
    if got != said:
        return f"printed and raised {got}, not {said}"
    if list(mine) != list(names):
        return f"names {list(mine)}, not {list(names)}"
    left = ours_in(mine)
    if left:
        return f"a recording's own objects left it: {left}"
    for name, value in names.items():
        if form(mine[name]) != form(value):
            return f"{name} is {str(form(mine[name]))[:200]}, not {str(form(value))[:200]}"
    arrays = [name for name, value in names.items() if isinstance(value, np.ndarray)]
    for n, a in enumerate(arrays):
        for b in arrays[n + 1 :]:
            if np.shares_memory(mine[a], mine[b]) != np.shares_memory(names[a], names[b]):
                return f"{a} and {b} share memory only in one of both"
    return ""

"""Random functions of what Python does with arrays: names that may stand for other arrays, views, writes, branches, loops,
containers, objects, helpers, exceptions. Numbers are small multiples of powers of two, so no order of operations rounds.

Each statement was run by Python, for two sizes of the arguments, while the program was made; some programs end with one that
fails. Equal seeds, equal programs.
"""

from __future__ import annotations

import ast
import contextlib
import io
import itertools
import linecache
import random
import re
from typing import Any

import numpy as np

PRELUDE = """
import collections
import itertools
import math

import numpy as np

Pair = collections.namedtuple("Pair", "a b")
TABLE = np.arange(5.0) / 2
STEP = 1.5
COUNT = 0
LOG = []


class Box:
    def __init__(self, x):
        self.x = x

    def double(self):
        self.x *= 2
        return self.x

    def get(self):
        return self.x


STORE, BOX = {"log": []}, Box(None)


def told(u, what):
    print(what, u.shape, f"{u.sum():.2f}")
    LOG.append((what, u))
    return u


def same(u):
    return u


def rest(u):
    return u[1:]


def halve(u):
    u[...] = u // 2


def either(u, w, first):
    return u if first else w


def first_above(u, limit):
    for k in range(len(u)):
        if u[k] > limit:
            return k
    return -1


def put(into, key, u):
    into[key] = u
    return into


def counted(u):
    global COUNT
    COUNT += 1
    return u + COUNT


def checked(u):
    if u.sum() < 0:
        raise ValueError("negative")
    return u
"""
SIZES = ({"N": 5, "M": 3}, {"N": 8, "M": 4})
#: Values are multiples of the first and smaller than the second, so that sums and products of two are exact.
EXACT = {"f8": (2.0**-12, 2.0**12), "f4": (2.0**-4, 2.0**6)}
LAYOUTS = ("C", "C", "C", "C", "F", "strided", "reversed", "transposed", "fixed")
MOST_VALUES = 2000
#: Assigned to, they would be names of the function's own.
GLOBALS = {"TABLE", "STEP", "COUNT", "LOG"}


class Argument:
    """How an argument is made: anew, or of an earlier one."""

    def __init__(self, draw: random.Random, name: str, earlier: list[str]) -> None:
        self.name, self.of, self.how = name, "", ""
        self.dtype = draw.choice(["f8", "f8", "f8", "i8", "i8", "f4", "i4", "?"])
        self.shape = draw.choice([("N",), ("N",), ("N", "M"), ("N", "N"), ("N", "M"), ()])
        self.layout = draw.choice(LAYOUTS)
        if earlier and draw.random() < 0.25:
            self.of, self.how = draw.choice(earlier), draw.choice(["[1:]", "[::-1]", "[...]", "", ".T", "[:-1]"])

    def make(self, made: dict[str, Any], sizes: dict[str, int], rng: np.random.Generator) -> Any:
        if self.of:
            return eval(f"x{self.how}", {"x": made[self.of]}) if made[self.of].ndim else made[self.of]  # noqa: S307
        shape = tuple(sizes[n] for n in self.shape)
        wide = (*shape[:-1], 2 * shape[-1]) if self.layout == "strided" and shape else shape
        x = rng.integers(-6, 7, wide[::-1] if self.layout == "transposed" else wide)
        x = np.asarray(x > 0 if self.dtype == "?" else x / 2 if self.dtype[0] == "f" else x, self.dtype)
        if not shape or self.layout in ("C", "fixed"):
            x.flags.writeable = self.layout != "fixed"
            return x
        if self.layout == "F":
            return np.asfortranarray(x)
        return x[..., ::2] if self.layout == "strided" else x[::-1] if self.layout == "reversed" else x.T


class Program:
    """The text of a function `f` with its helpers, and its arguments."""

    def __init__(self, arguments: list[Argument], numbers: list[str], body: list[str], seed: int) -> None:
        self.arguments, self.numbers, self.body, self.seed = arguments, numbers, body, seed

    @property
    def function(self) -> str:
        names = ", ".join([*(x.name for x in self.arguments), *self.numbers])
        lines = "\n".join(self.body).splitlines() or ["pass"]
        return f"def f({names}):\n" + "".join(f"    {line}\n" for line in lines)

    @property
    def has_effects(self) -> bool:
        """Does it do more than compute from its arguments and write into them?"""
        words = "print(", "LOG", "COUNT", "counted(", "TABLE[", "given", "STORE", "BOX", "told("
        return any(word in self.function for word in words)

    def values(self, which: int, seed: int) -> dict[str, Any]:
        rng, made = np.random.default_rng(seed), {}
        for argument in self.arguments:
            made[argument.name] = argument.make(made, SIZES[which], rng)
        own = {
            "n": 2, "s": 1.5, "ok": bool(seed % 2), "m": np.int64(seed % 3), "r": np.float64(0.5),
            "given": [np.zeros(2), {"k": np.ones(3)}],
        }  # fmt: skip
        return made | {name: own[name] for name in self.numbers}

    def names(self) -> dict[str, Any]:
        """The module of the program, with a source that capture can read."""
        name, text = f"<function {next(_numbers)}>", PRELUDE + "\n\n" + self.function
        linecache.cache[name] = len(text), None, text.splitlines(True), name
        names: dict[str, Any] = {"__name__": "fuzzed"}
        exec(compile(text, name, "exec"), names)  # noqa: S102
        return names

    def __str__(self) -> str:
        made = [f"{x.name}: {x.dtype}{list(x.shape)} {x.layout} {x.of and x.of + x.how}".strip() for x in self.arguments]
        return f"# seed {self.seed}; {'; '.join(made)}\n{self.function}"


_numbers = itertools.count()


class Writer:
    """Grows a program statement by statement, each of which Python has run."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(f"functions {seed}")
        self.arguments: list[Argument] = []
        for name in "abcd"[: self.draw.randint(1, 4)]:
            self.arguments.append(Argument(self.draw, name, [x.name for x in self.arguments]))
        self.numbers = [name for name in ("n", "s", "ok", "m", "r", "given") if self.draw.random() < 0.3]
        self.program = Program(self.arguments, self.numbers, [], seed)
        self.count = 0
        self.begin()

    def begin(self) -> None:
        self.spaces = []
        for which in range(len(SIZES)):
            space = self.program.names() | self.program.values(which, self.program.seed + which)
            self.spaces.append(space)
        for number, statement in enumerate(self.program.body):
            try:
                self.run(statement)
            except Exception:  # what it did hung on what memory held
                del self.program.body[number:]
                return self.begin()

    def run(self, statement: str) -> None:
        code = compile(statement, "<statement>", "exec")
        with np.errstate(all="ignore"), contextlib.redirect_stdout(io.StringIO()):
            for space in self.spaces:
                exec(code, space)  # noqa: S102

    def add(self, statement: str) -> bool:
        """Keep the statement if Python runs it for every size, to numbers that are exact."""
        named = [node for node in ast.walk(ast.parse(statement)) if isinstance(node, ast.Name)]
        if GLOBALS & {node.id for node in named if isinstance(node.ctx, ast.Store)}:
            return False
        try:
            self.run(statement)
            if all(is_exact(value) for space in self.spaces for value in space.values()):
                self.program.body.append(statement)
                return True
        except Exception:  # noqa: S110  (it means nothing here)
            pass
        self.begin()
        return False

    # ---- names
    def arrays(self, ranks: tuple[int, ...] = (1, 2), kinds: str = "fi", *, own: bool = False) -> list[str]:
        def fits(x: Any) -> bool:
            return isinstance(x, np.ndarray) and x.ndim in ranks and x.dtype.kind in kinds

        return [
            name for name, value in self.spaces[0].items()
            if fits(value) and fits(self.spaces[1].get(name)) and name[0] != "_" and not (own and name == "TABLE")
        ]  # fmt: skip

    def pick(self, ranks: tuple[int, ...] = (1, 2), kinds: str = "fi") -> str:
        names = self.arrays(ranks, kinds)
        return self.draw.choice(names + [name for name in names if name != "TABLE"] * 3)

    def like(self, name: str) -> str:
        """An array that has the shape of another one for every size, itself maybe."""
        return self.draw.choice([
            other for other in self.arrays((self.spaces[0][name].ndim,))
            if all(space[other].shape == space[name].shape for space in self.spaces)
        ])  # fmt: skip

    def new(self, letter: str = "v") -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def known(self, kind: type) -> list[str]:
        return [name for name, value in self.spaces[0].items() if type(value) is kind and name[0] != "_" and name.islower()]

    # ---- parts of statements
    def number(self) -> str:
        own = [name for name in self.numbers if name not in ("given", "ok")]
        return self.draw.choice(["2", "3", "0.5", "1", "-1", "STEP", *own])

    def test(self) -> str:
        x, d = self.pick(), self.draw
        return d.choice([
            f"{x}.sum() > {d.choice([0, 1, 3])}", f"{x}.max() > 1", f"np.any({x} > 2)", f"{x}.flat[0] > 0",
            f"{x}.shape[0] > 6", f"not ({x} == 0).all()", f"{x}.min() < -1 or {x}.max() > 2", f"{x}.sum() % 2 == 0",
            f"{x}.shape[0] % 2",
        ])  # fmt: skip

    def value(self, x: str) -> str:
        """Something with the shape of x, or that broadcasts to it."""
        y, d = self.like(x), self.draw
        return d.choice([
            f"{y} * {self.number()}", f"{y} + {self.number()}", f"{x} - {y}", f"{x} + {y}",
            f"np.where({x} > {y}, {x}, {y})", f"np.maximum({x}, {y})", f"{y}[::-1]", f"-{y}", f"abs({y})",
            f"np.where({y} > 0, {y}, {self.number()})", f"{y} // 2", f"{y} * 1", f"np.clip({y}, -2, 2)", self.number(),
            f"{y}.max()", f"{y}.copy()", f"np.roll({y}, 1)", f"np.sort({y}, axis=0)",
        ])  # fmt: skip

    def part(self, x: str) -> str:
        """Some of an array's elements."""
        d = self.draw
        return d.choice([
            f"{x}[...]", f"{x}[1:]", f"{x}[:-1]", f"{x}[::2]", f"{x}[::-1]", f"{x}[0]", f"{x}[-1]", f"{x}[1:3]",
            f"{x}[[0, -1]]", f"{x}[{x} > 0]", f"{x}[{x}.shape[0] // 2:]",
            f"{x}[:, 0]" if self.spaces[0][x].ndim == 2 else f"{x}[2:]", f"{x}[slice(1, {x}.shape[0] - 1)]",
        ])  # fmt: skip

    # ---- statements
    def alias(self) -> str:
        x, d, v = self.pick(), self.draw, self.new()
        y = self.like(x)
        return d.choice([
            f"{v} = {x} if {self.test()} else {x}.copy()", f"{v} = {x} if {self.test()} else {y}",
            f"{v} = either({x}, {y}, {self.test()})", f"if {self.test()}:\n    {v} = {x}\nelse:\n    {v} = {x} * 2",
            f"{v} = {y}\nif {self.test()}:\n    {v} = {x}", f"{v} = {x}", f"{v} = {x}[1:]", f"{v} = {x}[::-1]",
            f"{v} = {x}.T", f"{v} = {x}.reshape(-1)", f"{v} = {x}.ravel()", f"{v} = np.asarray({x})",
            f"{v} = np.ascontiguousarray({x})", f"{v} = np.squeeze({x})", f"{v} = rest({x})", f"{v} = same({x})",
            f"{x}, {y} = {y}, {x}", f"{v} = {x}[0]", f"{v} = {x}.view()", f"{v} = np.atleast_2d({x})",
            f"{v} = {x}.astype({x}.dtype, copy=False)", f"{v} = np.array({x}, copy=None)",
            f"{v} = np.expand_dims({x}, 0)",
        ])  # fmt: skip

    def write(self) -> str:
        x, d = self.pick(), self.draw
        e, y = self.value(x), self.like(x)
        return d.choice([
            f"{x}[...] = {e}", f"{x} += {self.number()}", f"{x} *= 2", f"{x} -= {y}",
            f"{self.part(x)} = {self.number()}", f"{self.part(x)} += 1", f"{x}[1:] = {x}[:-1]", f"{x}[:-1] = {x}[1:]",
            f"{x}[::-1] = {x}", f"np.add({x}, {y}, out={x})", f"np.multiply({x}, 2, out={x}, where={y} > 0)",
            f"np.copyto({x}, {y}, where={x} > 0)", f"{x}.fill(1)", f"{x}.sort(axis=0)", f"halve({x})",
            f"{self.part(x)} *= 2", f"np.subtract({x}, {y}, {x})", f"{x}.flat[0] = 3", f"{x}[{y} < 0] = 0",
            f"{x}[0], {x}[-1] = {x}[-1] * 1, {x}[0] * 1", f"np.put({x}, [0, 1], 2)", f"{x}[1:] += {x}[:-1]",
        ])  # fmt: skip

    def compute(self) -> str:
        x, d, v = self.pick(), self.draw, self.new()
        return d.choice([
            f"{v} = {self.value(x)}", f"{v} = {self.part(x)}", f"{v} = {x}.sum(axis=0)",
            f"{v} = np.concatenate([{x}, {x}])", f"{v} = {x}.sum()", f"{v} = np.zeros_like({x})", f"{v} = {x} > 0",
            f"{v} = np.cumsum({x}, axis=0)", f"{v} = {x}[{x} > 0]",
            f"{v} = {x}.astype(np.{d.choice(['int64', 'float64', 'int32'])})", f"{v} = checked({x})",
            f"{v} = np.argsort({x}, axis=0, kind='stable')", f"{v} = np.stack([{x}, {self.like(x)}])",
            f"{v} = (lambda u: u - u.min())({x})", f"{v} = np.array([q * 2 for q in {x}])",
        ])  # fmt: skip

    def python(self) -> str:
        x, d, v = self.pick(), self.draw, self.new()
        return d.choice([
            f"{v} = {x}.shape[0] - 1", f"{v} = len({x}) // 2", f"{v} = slice(1, {x}.shape[0] - 1)", f"{v} = {x}.shape",
            f"{v} = int({x}.sum())", f"{v} = float({x}.flat[0])", f"{v} = first_above({x}.ravel(), 1)",
            f"{v} = bool({self.test()})", f"{v} = range({x}.shape[0])", f"{v} = {x}.size + {x}.ndim",
            f"{v} = [q for q in range(len({x})) if q % 2]", f"{v} = max({x}.shape), {x}.dtype", f"{v} = {x}.tolist()",
            f"{v} = 'size ' + str({x}.shape[0])", f"{v} = {x}.item(0)",
        ])  # fmt: skip

    def element(self) -> str:
        """Python numbers of elements, and what is made of them: each `k…` may be used further."""
        x, d, k = self.pick((1,)), self.draw, self.new("k")
        e = d.choice([f"{x}[0]", f"{x}[-1]", f"{x}.max()", f"{x}.sum()", f"{x}[{x} > 0].sum()", f"{x}.flat[1]"])
        number = d.choice([f"float({e})", f"int({e})", f"{e}.item()", f"bool({e})", f"{x}.item(1)", f"{x}.tolist()[1]"])
        other = d.choice(["2", "0.5", "-1", "3", f"int({x}[1])", f"float({x}[-1])", f"{x}.tolist()[0]"])
        sign = d.choice(["+", "-", "*", "/", "//", "%", "**", "<", "==", ">="])
        whole = f"range(len({x}))"
        return d.choice([
            f"{k} = {number}", f"{k} = {number} {sign} {other}", f"{k} = {number} {sign} {other}",
            f"{k} = divmod({number}, {other})",
            f"{k} = math.{d.choice(['floor', 'ceil', 'sqrt', 'fabs', 'isnan', 'trunc', 'log2'])}({number})",
            f"{k} = math.{d.choice(['copysign', 'fmod', 'hypot', 'pow'])}({number}, {other})", f"{k} = round({e})",
            f"{k} = round({number}, 1)", f"{k} = abs({number})", f"{k} = max({number}, {other})", f"{k} = {x} * {number}",
            f"{k} = {x}[int({e}) % len({x})]", f"{x}[0] = {number} * 2", f"{k} = {x}.tolist()[:2]", f"{k} = sum({x}.tolist())",
            f"{k} = {number}\nif {k} > 1:\n    {k} = {k} {sign} {other}", f"{k} = [{number}, {{'a': {number}}}]",
            f"{k} = 0\nfor i in {whole}:\n    {k} += {d.choice(['int', 'float', 'bool'])}({x}[i])",
            f"{k} = 0.0\nfor u in {x}.tolist():\n    if u > 0:\n        {k} += u * {other}",
            f"{k}, j = int({e}), 0\nwhile j < 5 and {k} > 1:\n    {k}, j = {k} // 2, j + 1",
            f"{k} = isinstance({number}, float), type({number}).__name__", f"{k} = ({e} > 0) is True, bool({e}) is True",
            f"{k} = np.zeros(abs(int({e})) % 5 + 1)", f"{k} = {x}[: int({e})]", f"{k} = f'{{{number}:.3f}}'",
            f"{k} = {{1: 2, 2: 3}}.get(int({e}), 0)", f"{k} = np.float32({number})", f"{k} = np.sqrt(abs({number}))",
            f"LOG.append({number})",
        ])  # fmt: skip

    def counting(self) -> str:
        """Generators in calls, and loops over what is combined of others."""
        x, y, d, k = self.pick((1,)), self.pick(), self.draw, self.new("k")
        p, q = d.choice(["0", "1", "2", f"len({x})"]), d.choice([0, 1, 2])
        over = d.choice([
            f"itertools.product(range(len({x})), range({p}))", f"itertools.combinations(range(len({x})), 2)",
            f"np.ndindex(len({x}), 3)", f"enumerate(range(len({x})))", f"zip(range(len({x})), range(4))",
            "itertools.permutations(range(3), 2)", "itertools.product(range(3), repeat=2)",
        ])  # fmt: skip
        body = d.choice([
            f"{k} = {k} + {x}[i] * j", f"{x}[i] = {x}[i] + j", f"if {x}[i] > {q}:\n        {k} = {k} + 1",
            f"{k} = max({k}, {x}[i])", f"if {x}[i] > {q}:\n        break",
        ])  # fmt: skip
        plain = f"v in {x}", f"v in {x}.tolist()", f"v in {y}.flat", f"i, v in enumerate({x})"
        each = d.choice([*plain, f"v in {x} if v > {q}"])
        made = d.choice(["v", "v * 2", f"v > {q}", "v * v", "int(v)", "bool(v)"])
        return d.choice([
            f"{k} = 0\nfor i, j in {over}:\n    {body}", f"{k} = 0\nfor i, j in {over}:\n    {body}",
            f"{k} = {d.choice(['any', 'all', 'sum', 'min', 'max'])}({made} for {each})",
            f"{k} = any({x} > {q}), all({x} > {q})",
            f"{k} = any({x}[i] > {x}[i - 1] for i in range(1, len({x})))", f"{k} = max({x}), min({x})",
            f"{k} = 0\nfor at, v in np.ndenumerate({y}):\n    {k} = {k} + v * at[0]", f"{y}.flat[{q}] = {x}[0]",
            f"for i, v in enumerate({y}.flat):\n    {y}.flat[i] = v + i", f"{y}.flat[1:3] = 2", f"{k} = {y}.flat[{q}:4]",
            f"{k} = np.mgrid[0:len({x}), 0:3]", f"{k} = np.ogrid[0:3, 0:len({x})]", f"{k} = list(itertools.chain({x}, [1]))",
            f"{k} = [v for v in itertools.accumulate({x})]", f"{k} = np.r_[{x}, 1]", f"{y}.flat = {p}",
            f"{k} = itertools.product(range(6), range(4))\n{k} = [sum(i for i, j in {k}), len(list({k}))]",
        ])  # fmt: skip

    def sized(self) -> str:
        """A size or a slice that was kept, used later."""
        x, v, d = self.pick(), self.new(), self.draw
        numbers, slices = self.known(int), self.known(slice)
        if slices and d.random() < 0.5:
            kept = d.choice(slices)
            return d.choice([f"{v} = {x}[{kept}]", f"{x}[{kept}] = 1", f"{v} = {x}[{kept}].sum()"])
        k = d.choice(numbers)
        return d.choice([
            f"{v} = {x}[:{k}]", f"{v} = np.zeros(abs({k}) + 1)", f"{v} = {x}[{k} % {x}.shape[0]]", f"{x}[{k}:] = 0",
            f"{v} = {x} * {k}", f"{v} = np.arange({k} % 7)", f"{v} = {k} + 1", f"{v} = {x}[-abs({k}):] + {k}",
        ])  # fmt: skip

    def hold(self) -> str:
        """Containers and objects, made here or given."""
        x, d, v = self.pick(), self.draw, self.new()
        y, key = self.pick(), d.choice(["'k'", "'m'", "0"])
        lists, dicts = self.known(list), self.known(dict)
        boxes = [name for name, value in self.spaces[0].items() if type(value).__name__ == "Box"]
        made = [
            f"{v} = [{x}, {y}]", f"{v} = {{'k': {x}}}", f"{v} = Box({x})", f"{v} = Pair({x}, {y})", f"{v} = []",
            f"{v} = [{x}[q] for q in range(2)]", f"{v} = ({x}, [{y}])", f"{v} = put({{}}, {key}, {x})",
        ]  # fmt: skip
        if lists and d.random() < 0.5:
            known = d.choice(lists)
            made = [
                f"{known}.append({x})", f"{known}[0] = {x}", f"{known}[-1] += 1", f"{v} = {known}[0]",
                f"{known}[-1][...] = 2", f"for q in range(2):\n    {known}.append({x}[q])",
                f"if {self.test()}:\n    {known}.append({x})", f"{v} = {known}.pop()",
                f"if {self.test()}:\n    {known}[0] = {x}\nelse:\n    {known}[0] = {y}", f"{v} = len({known})",
                f"{known} = {known} + [{y}]", f"for q in range(3):\n    if {x}[q] > 0:\n        {known}.append(q)",
            ]  # fmt: skip
        elif dicts and d.random() < 0.5:
            known = d.choice(dicts)
            made = [
                f"{known}[{key}] = {x}", f"{known}['k'] += 1", f"{v} = {known}.get({key})",
                f"for q in range(3):\n    {known}[q] = {x}[q]",
                f"for q in range({x}.shape[0]):\n    {known}['last'] = q",
                f"if {self.test()}:\n    {known}['k'] = {y}", f"{known}.update(k={x})",
                f"{v} = list({known}.values())",
            ]  # fmt: skip
        elif boxes and d.random() < 0.6:
            known = d.choice(boxes)
            made = [
                f"{known}.x = {x}", f"{known}.x += 1", f"{known}.double()", f"{v} = {known}.get()",
                f"{known}.x[0] = 3", f"if {self.test()}:\n    {known}.x = {y}", f"{v} = {known}.double",
                f"for q in range(3):\n    {known}.x = {x}[q]", f"{known}.k = {x}.shape[0]",
            ]  # fmt: skip
        elif "given" in self.numbers and d.random() < 0.5:
            made = [
                f"given.append({x})", f"given[0] = {x}", "given[0] += 1", f"given[1]['k'] = {x}", "given[1]['k'] *= 2",
                f"for q in range(3):\n    given[1][q] = {x}[q]", f"if {self.test()}:\n    given.append({x}.shape[0])",
                f"{v} = given[1]['k']",
            ]  # fmt: skip
        return d.choice(made)

    def kind(self) -> str:
        """A number that is one of Python's own on one way and NumPy's on another, or its use."""
        x, d, k = self.pick((1,)), self.draw, self.new("k")
        mixed = [name for name in self.spaces[0] if re.fullmatch(r"k\d+", name)]
        p = d.choice(["0", "1", "2.5", "True", "-1", "0.5", "False", *[name for name in self.numbers if name != "given"]])
        e = d.choice([f"{x}[0]", f"{x}[-1]", f"{x}.max()", f"{x}.sum()", f"len({x})", p, *mixed])
        if mixed and d.random() < 0.5:
            return self.use(d.choice(mixed), d.choice([p, e]), x)
        over = d.choice([f"range(len({x}))", f"range(len({x}) - len({x}))", f"range(1, len({x}), 2)", f"range(len({x}) * 4)"])
        item = f"{x}[i % len({x})]"
        return d.choice([
            f"{k} = {p}\nif {self.test()}:\n    {k} = {e}", f"{k} = {e} if {self.test()} else {p}", f"{k} = max({e}, {p})",
            f"{k} = min(max({e}, 1), 50)", f"{k} = min({p}, {e}, {x}[1])", f"{k} = {e} or {p}", f"{k} = {e} and {p}",
            f"{k} = {p}\nfor i in {over}:\n    {k} = max({k}, {item})", f"{k} = {p}\nfor i in {over}:\n    {k} = {k} + {item}",
            f"{k} = {p}\nfor i in {over}:\n    if {item} > {d.choice([0, 2])}:\n        {k} = {item}",
            f"{k} = {p}\nfor i in {over}:\n    if {item} > 1:\n        {k} = {k} + 1\n    else:\n        {k} = {e}",
            f"{k} = {p}\nfor i in {over}:\n    if {item} > 2:\n        {k} = {item}\n        break\n    {k} = {e}",
            f"{k}, j = {p}, 0\nwhile j < 3 and {x}[j] > 0:\n    {k}, j = {k} + {x}[j], j + 1",
            f"{k} = sum([{p}, {e}])", f"if {self.test()}:\n    {k} = {p}\nelse:\n    {k} = {d.choice(['0', '1.5', 'True', e])}",
        ])  # fmt: skip

    def use(self, k: str, other: str, x: str) -> str:
        """What is done with such a number."""
        v, d = self.new("k"), self.draw
        return d.choice([
            f"{v} = {k} + {other}", f"{v} = {other} - {k}", f"{v} = {k} * {other}", f"{v} = {k} / 2", f"{v} = {k} // 2",
            f"{v} = {k} % 3", f"{v} = -{k}", f"{v} = abs({k})", f"{v} = {k} ** 2", f"{v} = {k} > {other}", f"{v} = {k} == 1",
            f"{v} = not {k}", f"{v} = [{k}, ({other}, {k})]", f"{v} = {{'a': {k}}}", f"{v} = int({k})", f"{v} = float({k})",
            f"{v} = bool({k})", f"{v} = [isinstance({k}, int), isinstance({k}, float)]", f"{v} = type({k}).__name__",
            f"{v} = {x} * {k}", f"{v} = {k} + {x}", f"{x}[0] = {k}", f"{v} = np.array([{k}, 1])", f"{v} = np.maximum({k}, 1)",
            f"{v} = {x}[int({k}) % len({x})]", f"{v} = round({k})", f"{v} = max({k}, {other})", f"{v} = {k} or {other}",
            f"if {k}:\n    {v} = {k}\nelse:\n    {v} = {other}", f"{v} = {k}\n{v} += {other}", f"{v} = sum([{k}, {other}])",
            f"{v} = np.float64({k})", f"{v} = {x}[:{k}]", f"{v} = str({k})", f"{v} = 1 / {k}", f"{v} = 7 % {k}",
        ])  # fmt: skip

    def effect(self) -> str:
        x, v, d = self.pick(), self.new(), self.draw
        return d.choice([
            f"print({x}.shape, {x}.sum())", f"LOG.append({x}.shape[0])", f"LOG.append({x}.max())",
            f"{v} = counted({x})", "TABLE[1:] += 1", f"if {self.test()}:\n    print('yes')",
            f"for q in range(2):\n    print(q, {x}[q])", f"LOG.append(slice(0, {x}.shape[0]))",
            f"for q in range({x}.shape[0]):\n    LOG.append(q)", *self.given_out(x, v),
        ])  # fmt: skip

    def given_out(self, x: str, v: str) -> list[str]:
        """What is printed and stored, and what reads or changes it behind that."""
        y, d = self.pick(), self.draw
        return [
            f"print(f'{{{x}.sum():.1f}}', {x}.dtype, sep='|')", f"print({x}, {y}.max())", f"LOG.append({x})",
            f"LOG.append(({x}.sum(), 'x', {y}))", f"STORE['k'] = {x}", f"STORE['n', 1] = {x}.shape",
            f"STORE['log'].append({x})",
            f"BOX.x = {x}", f"BOX.n = {x}.sum()", f"BOX.n = {x}.shape[0]", f"{v} = BOX.x", "BOX.x = BOX.get()",
            f"{v} = len(LOG) + {x}", f"{v} = STORE.get('k')", f"{v} = told({x}, {d.choice(['1', repr('a')])})",
            f"{v} = told(told({x}, 1) + 1, 2)", f"LOG.append({x})\n{x}[...] = {d.choice(['1', y])}", f"print({x})\n{x} += 1",
            f"for q in range(3):\n    {x} = {x} + q\n    print(q, {x}.sum())\n    LOG.append({x})", f"LOG[9] = {x}",
            f"try:\n    LOG.append({x})\n    LOG[99] = {y}\nexcept IndexError as e:\n    print(e)",
            f"BOX.n = {x}.shape[0]\nBOX.n += {x}.max()\n{v} = BOX.n + {x}", f"BOX.x = {x} * 1\nBOX.x += {d.choice(['1', x])}",
            f"LOG.extend([{x}, {y}.sum()])", f"LOG.extend({x})", f"STORE.update(k={x}, s={y}.sum())", "LOG.clear()",
            f"STORE.setdefault('d', {x})", f"STORE['c'] = {x}.shape[0]\nSTORE['c'] += {y}.sum()",
            f"BOX.x = {x}\nBOX.double()", f"print('%s %d' % ({x}.shape, {x}.ndim), str({x}.sum()))", f"LOG.append([{x}, {y}])",
        ]  # fmt: skip

    def turn(self, x: str, i: str, own: str) -> str:
        """A statement of a long loop's body or of a branch, which prints or stores, or is around such ones."""
        d, n = self.draw, f"len({x})"
        e = d.choice([f"{x}[{i} % {n}]", f"{x}.sum()", i, "t", f"float({x}[{i} % {n}])", f"{x}.max()", f"{i} * 2"])
        if d.random() < 0.3:
            inner = indented(self.turn(x, i, own))
            return d.choice([
                f"if {e} > {d.choice([1, 4])}:\n{inner}", f"if {i} % 5 == 0:\n{inner}", f"if {x}.sum() > 1:\n{inner}",
                f"if {i} % 3:\n{inner}\nelse:\n{indented(self.turn(x, i, own))}",
                f"for q in range({d.choice([2, 3])}):\n{indented(self.turn(x, 'q', own))}",
            ])  # fmt: skip
        made = d.choice([f"{x} * {i}", f"{x} + t", f"{x}.copy()", f"{x}[::-1] * 1", x, "w", f"[{e}, {i}]", f"({e}, w)"])
        return d.choice([
            f"LOG.append({e})", f"LOG.append(({i}, {e}))", f"print({i}, {e})", f"print({x}, t, w)", f"LOG.append({made})",
            f"STORE[{i}] = {e}", f"STORE['last'] = {made}", f"STORE['log'].append({e})", f"BOX.n = {e}", f"BOX.x = {made}",
            f"print(f'{{{i}}} {{{x}.sum():.1f}}', end=';')", f"w = {made}\nLOG.append(w)", f"w = {x} * {i}", f"t = t + {e}",
            f"if {e} > 6:\n    {d.choice(['break', 'continue'])}", f"{x} = {x} + 1", f"{x}[0] = {i}", f"w[0] = {i}",
            f"{own}.append({e})", f"{own}.append({made})", f"{own}.append(({i}, {e}))", "t = len(LOG)",
            "t = STORE.get('last', 0)", f"told({x}, {i})", f"t = len({own})", f"LOG[{i}] = {e}", f"{x} = {made}",
            f"LOG.append({made})\n{x} = {x} + 1", f"BOX.n += {e}", f"BOX.n = BOX.n * 2 - {e}", "t = t + BOX.n", "BOX.n -= 1",
            f"LOG.extend([{e}, {i}])", f"LOG.extend({x})", f"STORE.update(last={made}, n={e})", f"STORE.setdefault({i}, {e})",
            f"STORE['c'] += {e}", f"{own}.extend([{e}])", f"t = {own}[-1]", f"print({i}, BOX.n)",
        ])  # fmt: skip

    def told_in_turns(self) -> str:
        """A loop that is rolled, or a branch, which prints and stores."""
        x, own, d = self.pick((1,)), self.new(), self.draw
        body = "\n".join(self.turn(x, "i", own) for _ in range(d.randint(1, 4)))
        held = f"BOX.n = {d.choice(['0', '0.5', f'{x}[0]', 'True', f'{x}.shape[0]'])}\nSTORE['c'] = {d.choice(['0', '1.5'])}\n"
        start = f"{held if d.random() < 0.5 else ''}t, w, {own}, i = {d.choice(['0', '0.0', f'{x}[0]'])}, {x} * 1, [], 3\n"
        if d.random() < 0.25:
            otherwise = f"\nelse:\n{indented(self.turn(x, 'i', own))}" if d.random() < 0.5 else ""
            return f"{start}if {self.test()}:\n{indented(body)}{otherwise}"
        if d.random() < 0.25:
            test = d.choice(["i < 23", f"i < 23 and {x}.sum() < 90", "True"])
            body = f"i += 1\nif i > 25:\n    break\n{body}"  # first: the body may go on with the next turn
            return f"{start}while {test}:\n{indented(body)}"
        over = d.choice(["range(18)", f"range(len({x}) * 4)", "range(40, 0, -2)", f"range(3, len({x}) * 3 + 5)"])
        otherwise = "\nelse:\n    print('else', t)" if d.random() < 0.15 else ""
        return f"{start}for i in {over}:\n{indented(body)}{otherwise}"

    def looked_into(self) -> str:
        """A list that a loop appends to, and that is looked into."""
        x, own, v, d = self.pick((1,)), self.new(self.draw.choice(["own", "own", "v"])), self.new(), self.draw
        numbers = [f"{x}[i % len({x})]", f"{x}.sum()", "i", "t", f"float({x}[i % len({x})])", f"{x}[0] > i", "w[0]", "2"]
        arrays = ["w", "w", x, "w.copy()", f"{x} * 1", f"{x} + i", "w[1:]", "w[::-1]", f"np.asarray({x})", "-w"]
        given = [f"{own}.append({e})" for e in d.sample(numbers if d.random() < 0.5 else arrays, 2)]
        given[1] = given[0] if d.random() < 0.6 else given[1]
        first = d.choice(["[]", "[]", "[]", f"[{x}[0]]", "[w]", "[0]", "[1.5, 2.0]"])

        def turn() -> str:
            e = d.choice([*numbers[:5], f"{x}.max()"])
            inner = f"if {e} > {d.choice([0, 1, 2])}:\n    {given[1]}"
            also = d.choice([given[1], inner, f"{inner}\nelse:\n    {given[0]}", f"for q in range(3):\n    {given[1]}"])
            return d.choice([
                f"w = w + 1 - i % 2 * 2\n{given[0]}", f"w = {x} * i\n{given[0]}", given[0], inner, f"{given[0]}\n{also}",
                f"{given[0]}\nif {e} > {d.choice([6, 9])}:\n    break", "w[0] = i", f"{x}[0] = i % 3", f"t = t + {e}",
                f"w = {x}", f"w = {x} + w[0]", f"{x} = w + 0", "w += 1", f"t = len({own})", f"t = {own}[-1]",
                f"{x}[i % len({x})] = w[0]",
            ])  # fmt: skip

        def loop() -> str:
            over = d.choice(["range(20)", "range(18)", f"range(len({x}) * 4)", "range(3)", "range(40, 0, -2)"])
            return f"for i in {over}:\n" + indented("\n".join(turn() for _ in range(d.randint(1, 3))))

        between = ["w[0] = 7", f"{x}[0] = 5", "w += 1", "u = w[1:]\nu[...] = 3", given[0], loop(), "LOG.append(w)"]
        asked = [
            f"np.array({own})", f"np.stack({own})", f"sum({own})", f"len({own})", f"min({own})", f"max({own})", f"{own}[-1]",
            f"{own}[0]", f"np.sum({own}[-3:], axis=0)", f"np.max({own})", f"np.array({own}[2:9])", f"{own}[3]",
            f"np.array({own}) * 2", f"sum({own}) + len({own})", f"f'{{{own}[-1]}} {{len({own})}}'", f"np.vstack({own})",
            f"np.cumsum({own})[-1]", f"told(w, {own}[-1])",
        ]  # fmt: skip
        parts = [f"t, w, i = 0, {x} * 1, 3", f"{own} = {first}", loop(), *d.sample(between, d.choice([0, 0, 1, 1, 2]))]
        return "\n".join([*parts, *(f"{v}{n} = {e}" for n, e in enumerate(d.sample(asked, d.randint(1, 3))))])

    def small(self, x: str, i: str) -> str:
        """A statement of a loop's body."""
        d, last = self.draw, self.spaces[0][x].ndim == 1
        e, o = f"{x}[{i}]", d.choice([f"{x}[{i} - 1]", f"{x}[-{i} - 1]", f"{x}[0]"])
        return d.choice([
            f"{e} = {o} * 1", f"{e} += 1", f"{e} -= {o}", f"t = t + {e}.sum()", f"t += {i}", f"row = {e}",
            f"{x}[{i}:] += 1", f"{x}[:{i}] = 0", f"{x}[{i}:] = {x}[{i}:] * 2" if i == "q" else f"{e} *= 2",
            f"if {e}.sum() > 1:\n    t = {i}", f"{x}[-{i}:] = {x}[:{i}]" if i == "i" else f"{e} = 0",
            f"if {e}.sum() > {d.choice([1, 2])}:\n    break", f"if {i} == 2:\n    continue",
            f"if {o}.sum() < 0:\n    {e} = 0\nelse:\n    {o} = 1", f"w = {x}[{i}:]", "w[...] = 1",
            f"w = {x} if {e}.sum() > 0 else {x}.copy()", f"t = max(t, {i})",
            f"row = {x}[{i}, :{i}]" if not last else f"row = {x}[:{i}]", f"items.append({e})", f"items.append({i})",
            f"items[0] = {e}", f"{x} = {x} + 0", f"{x} = {x}[::-1]",
        ])  # fmt: skip

    def loop(self) -> str:
        x, d = self.pick(), self.draw
        size = f"{x}.shape[0]"
        over = d.choice([
            f"range({size})", f"range(1, {size})", f"range({size} - 1, -1, -1)", "range(3)", f"range(0, {size}, 2)",
            f"range({size} - 2)",
        ])  # fmt: skip
        body = [self.small(x, "i") for _ in range(d.randint(1, 3))]
        if d.random() < 0.3:
            body.append("for q in range(2):\n" + indented(self.small(x, "q")))
        start = "t, row, w, items = 0, None, np.zeros(2), [0]\n"
        otherwise = "\nelse:\n    t = t + 1" if d.random() < 0.15 else ""
        return start + f"for i in {over}:\n" + indented("\n".join(body)) + otherwise

    def other_loop(self) -> str:
        x, d, v = self.pick(), self.draw, self.new()
        return d.choice([
            f"{v} = 0\nfor row in {x}:\n    {v} = {v} + row.sum()",
            f"for row in {x}:\n    row *= 2" if self.spaces[0][x].ndim == 2 else f"for e in {x}:\n    {v} = e",
            f"{v} = 0\nwhile {v} < 4:\n    {x}[{v}] = {v}\n    {v} += 1", f"while {x}.max() > 3:\n    {x} = {x} // 2",
            f"while {x}.max() > 3:\n    {x} //= 2",
            f"{v} = 0\nwhile True:\n    {v} += 1\n    if {x}.sum() + {v} > 3 or {v} > 5:\n        break",
            f"for k, row in enumerate({x}):\n    if row.sum() > 1:\n        {v} = row\n        break\nelse:\n    {v} = k",
            f"for p, q in zip({x}, {x}[::-1]):\n    {v} = p + q",
        ])  # fmt: skip

    def branch(self) -> str:
        inner = [self.draw.choice([self.write, self.alias, self.compute, self.write])() for _ in range(2)]
        otherwise = f"\nelse:\n{indented(inner[1])}" if self.draw.random() < 0.6 else ""
        return f"if {self.test()}:\n{indented(inner[0])}{otherwise}"

    def guarded(self) -> str:
        x, d, v = self.pick(), self.draw, self.new()
        bad = d.choice([
            f"{x}[{x}.shape[0] + 1]", f"{x} + np.zeros({x}.shape[0] + 3)[:, None, None]", "{}['no']",
            f"1 // int({x}.sum() * 0)", f"checked(-abs({x}))", f"{x}.reshape({x}.size + 1)",
        ])  # fmt: skip
        write = f"{x}[0] = 1"
        caught = "except (LookupError, ValueError, ArithmeticError) as e"
        return d.choice([
            f"try:\n    {write}\n    {v} = {bad}\n{caught}:\n    {v} = type(e).__name__",
            f"try:\n    if {self.test()}:\n        {v} = {bad}\n    {v} = {x}\n{caught}:\n    {v} = 0\nfinally:\n    {write}",
            f"try:\n    if {self.test()}:\n        raise KeyError('own')\n    {v} = 1\nexcept KeyError:\n    {v} = {x}",
            f"assert {x}.ndim > 0, 'no'",
        ])  # fmt: skip

    def failing(self) -> str:
        """What raises, always or for some data."""
        x, d = self.pick(), self.draw
        n = f"{x}.shape[0]"
        bad = d.choice([
            f"{x}[{n}] = 1", f"e = {x}[{n} + 1]", f"{x}[1:] = np.zeros({n} + 4)", f"raise ValueError({n})",
            f"assert {x}.sum() > 1, 'small'", f"for i in range({n} + 1):\n    {x}[i] += 1", "e = missing",
            f"e = 1 // ({n} - {n})", f"{x}[0] = 5\ne = {x}.reshape({x}.size + 1)", f"e = np.take({x}, {n} + 2)",
            "e = {}['key']", f"e = {x}.sum(axis=5)", f"e = np.linalg.inv(np.zeros(({n}, {n})))", f"{x}[[0, {n}]] = 1",
            f"for i in range({n}):\n    {x}[i] = 1\n    if i == 2:\n        e = {x}[i + {n}]", f"e = checked({x})",
        ])  # fmt: skip
        return f"if {self.test()}:\n{indented(bad)}" if d.random() < 0.4 else bad

    def result(self) -> str:
        d = self.draw
        names = [n for n in self.spaces[0] if n in ("a", "b", "c", "d", "t", "w", "row") or re.fullmatch(r"[vk]\d+", n)]
        names = [n for n in names if all(n in space for space in self.spaces) and not callable(self.spaces[0][n])]
        kept = [n for n in names if d.random() < 0.7] or names[-1:]
        d.shuffle(kept)
        text = ", ".join(kept)
        pairs = ", ".join(f"'{name}': {name}" for name in kept)
        return "return " + d.choice([f"({text},)", f"({text},)", f"[{text}]", f"{{{pairs}}}", kept[0]])

    def write_program(self, returns: bool) -> Program:
        d = self.draw
        kinds = [self.alias] * 5 + [self.write] * 6 + [self.compute] * 4 + [self.hold] * 4 + [self.loop] * 4 + [self.branch] * 4
        kinds += [self.kind] * 4 + [self.python] * 2 + [self.sized] * 3 + [self.other_loop, self.guarded] * 2
        kinds += [self.effect, self.told_in_turns] * 3 + [self.looked_into] * 3
        kinds += [self.element, self.counting] * 4
        wanted = d.choice((2, 4, 6, 9, 14))
        for _ in range(5 * wanted):
            if len(self.program.body) >= wanted:
                break
            with contextlib.suppress(IndexError):  # of the kind asked for there is nothing
                self.add(d.choice(kinds)())
        body = self.program.body
        if returns and d.random() < 0.1:
            body.append(f"if {self.test()}:\n    return {self.pick()}")
        if d.random() < 0.15:
            body.append(self.failing())
        if returns:
            body.append(self.result())
        return self.program


def make(seed: int, *, returns: bool = True) -> Program:
    """The program of a seed; without `returns` its statements are those of cells."""
    for attempt in itertools.count():
        writer = Writer(seed + 1_000_003 * attempt)
        if writer.arrays(own=True):
            writer.program.seed = seed
            with contextlib.suppress(NameError):  # a statement ran beside what one that failed had left alone
                return writer.write_program(returns)
    raise AssertionError


def is_exact(value: Any) -> bool:
    """Are these numbers whose sums and products of two are exact, and not too many?"""
    if isinstance(value, (list, tuple)):
        return len(value) < MOST_VALUES and all(is_exact(x) for x in value)
    if isinstance(value, int):
        return abs(value) < 1 << 30
    if not isinstance(value, (np.ndarray, np.generic, float)):
        return True
    x = np.asarray(value)
    if x.size > MOST_VALUES or x.dtype.kind not in "fib":
        return x.dtype.kind != "O" and x.size <= MOST_VALUES
    if x.dtype.kind != "f":
        return not x.size or bool(np.max(np.abs(x.astype("i8"))) < 1 << 12)
    step, most = EXACT[x.dtype.str[1:]]
    return bool(np.all(np.isfinite(x) & (np.abs(x) < most) & (x == np.rint(x / step) * step)))


def indented(text: str) -> str:
    return "\n".join("    " + line for line in text.splitlines())

"""Random NumPy programs over the whole table, and what it means that jitlab ran one as NumPy does.

A program is source text: statements that NumPy itself has run while it was made, so that each is valid. Its result is compared
bit by bit where every operation on the way is exact. Where one is not, the program runs a few more times on NumPy with every
operand and result of such operations moved by some units in the last place; what comes out differs by what rounding may do to
this program (Monte Carlo arithmetic: Parker 1997), and jitlab may differ by a small multiple of that.

    python -m tests.fuzz operations --count 20000 --seed 1      a night's run; prints each failing program as code
"""

from __future__ import annotations

import itertools
import linecache
import random
import traceback
import warnings
from dataclasses import dataclass, field

import numpy as np

import jitlab as jl
from tests.left import ours_in

SHAPES = ((), (1,), (3,), (7,), (40,), (0,), (4, 3), (3, 1), (1, 3), (4, 4), (2, 4, 3), (3, 0), (33, 5))
DTYPES = ("f8", "f8", "f8", "f4", "f4", "i8", "i8", "i4", "i2", "u1", "u8", "i1", "u4", "bool", "f2", "c16", "c8")
MOST_ELEMENTS = 4000

#: How a program is run. `strict` may refuse what stays with NumPy; nothing else may.
MODES = ("jit", "jit O0", "function", "function strict", "function off", "graph breaks")


@dataclass
class Statement:
    """Lines that bind `target`; `exact`: its bits are NumPy's."""

    target: str
    lines: list[str]
    reads: tuple[str, ...]
    exact: bool
    name: str


@dataclass
class Program:
    """Statements over the inputs, some in scopes, and the names of what is returned."""

    inputs: dict[str, np.ndarray]
    statements: list[Statement]
    returned: list[str]
    scopes: dict[int, str] = field(default_factory=dict)  # number of a statement -> the scope that it stands in
    mode: str = "jit"
    seed: int = 0

    @property
    def source(self) -> str:
        lines = [f"def program({', '.join(self.inputs)}):"]
        for number, statement in enumerate(self.statements):
            scope = self.scopes.get(number)
            if scope is not None:
                lines.append(f"    with {scope}:")
            lines += [("        " if scope else "    ") + line for line in statement.lines]
        return "\n".join([*lines, f"    return {', '.join(self.returned)},"]) + "\n"

    def __str__(self) -> str:
        """Code that runs by itself."""
        lines = [f"# seed {self.seed}, mode {self.mode!r}", "import numpy as np", "import jitlab as jl", ""]
        for name, array in self.inputs.items():
            data = np.array2string(array.ravel(), threshold=10**6, max_line_width=110, separator=", ", floatmode="unique")
            lines.append(f"{name} = np.array({data}, np.{array.dtype}).reshape({array.shape})".replace("nan", "np.nan").replace(
                "inf", "np.inf"))  # fmt: skip
        return "\n".join([*lines, "", self.source])


# ---- making programs


class Maker:
    """Makes one program: `values` are what NumPy has computed of it so far."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.values: dict[str, np.ndarray] = {}
        self.statements: list[Statement] = []
        self.count = 0

    def pick(self, wanted=lambda x: True) -> str | None:
        """The name of a value; later ones more often."""
        names = [name for name, value in self.values.items() if wanted(value)]
        if not names:
            return None
        return names[-1 - min(int(self.rng.expovariate(0.35)), len(names) - 1)]

    def like(self, x: np.ndarray) -> str | None:
        """A value that broadcasts with x."""

        def fits(y: np.ndarray) -> bool:
            try:
                np.broadcast_shapes(x.shape, y.shape)
            except ValueError:
                return False
            return True

        return self.pick(fits)

    def axis(self, x: np.ndarray) -> int:
        return self.rng.randrange(-x.ndim, x.ndim)

    def new(self) -> str:
        self.count += 1
        return f"v{self.count - 1}"

    def add(self, kind: str, lines: list[str] | str, reads: tuple[str, ...], exact: bool) -> bool:
        """Run the lines on NumPy; False when they mean nothing for these operands."""
        target = self.new()
        lines = [lines] if isinstance(lines, str) else lines
        lines = [line.replace("$", target) for line in lines]
        try:
            result = run_lines(lines, target, self.values)
        except (ValueError, TypeError, IndexError, ArithmeticError, np.linalg.LinAlgError, OverflowError):
            return False
        if not isinstance(result, (np.ndarray, np.generic)) or result.dtype.kind not in "biufc" or result.dtype.itemsize > 16:
            return False
        if result.size > MOST_ELEMENTS or result.dtype.str[1:] in ("c32", "f16") or result.dtype.name == "longdouble":
            return False
        self.values[target] = result
        self.statements.append(Statement(target, lines, reads, exact, kind))
        return True


def run_lines(lines: list[str], target: str, values: dict[str, np.ndarray]):
    """The value that the lines bind, as NumPy computes it; the values they read stay as they are."""
    space = {"np": np, **values}
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec("\n".join(lines), space)  # noqa: S102
    return space[target]


def make_input(rng: random.Random, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Small numbers, some special ones."""
    draw = np.random.default_rng(rng.randrange(1 << 32))
    kind = np.dtype(dtype).kind
    if kind == "b":
        return draw.random(shape) < 0.5
    if kind in "iu":
        info = np.iinfo(dtype)
        x = draw.integers(max(info.min, -9), 10, shape, endpoint=True).astype(dtype)
        if rng.random() < 0.2 and x.size:
            x.flat[draw.integers(x.size)] = rng.choice([info.min, info.max])
        return x
    x = np.asarray(draw.normal(size=shape) * 2)
    if rng.random() < 0.3:
        x = np.rint(x)
    if kind == "c":
        x = x + 1j * draw.normal(size=shape)
    x = np.asarray(x, dtype)
    if rng.random() < 0.2 and x.size:
        x.flat[draw.integers(x.size)] = rng.choice([np.nan, np.inf, -np.inf, -0.0, 0.0])
    return x


def make(seed: int, length: int | None = None) -> Program:
    """The program of a seed."""
    from .catalogue import KINDS

    rng = random.Random(seed)
    maker = Maker(rng)
    shapes = [rng.choice(SHAPES) for _ in range(2)]
    for number in range(rng.randrange(1, 5)):
        shape = rng.choice(shapes) if rng.random() < 0.8 else rng.choice(SHAPES)
        maker.values[f"x{number}"] = make_input(rng, rng.choice(DTYPES), shape)
    inputs = dict(maker.values)
    wanted = length or rng.choice((1, 2, 3, 5, 8, 8, 12, 12, 20, 60))
    weights = [weight for _, weight, _ in KINDS]
    for _ in range(4 * wanted):
        if len(maker.statements) >= wanted:
            break
        name, _, kind = rng.choices(KINDS, weights)[0]
        made = kind(maker)
        if made is not None:
            maker.add(name, *made)
    names = [s.target for s in maker.statements] or list(inputs)
    returned = list(dict.fromkeys([names[-1], *(rng.choice(names) for _ in range(rng.randrange(0, 3)))]))
    program = Program(inputs, maker.statements, returned, mode=rng.choice(MODES), seed=seed)
    for number in range(len(program.statements)):
        if rng.random() < 0.1:
            program.scopes[number] = rng.choice(["jl.jit_scope()", "jl.jit_scope(compile_ops=False)"])
    return program


# ---- what NumPy makes of a program


def reference(program: Program) -> dict[str, np.ndarray]:
    values = dict(program.inputs)
    for s in program.statements:
        values[s.target] = run_lines(s.lines, s.target, values)
    return values


def perturbed(program: Program, rng: np.random.Generator) -> dict[str, np.ndarray] | None:
    """The same with inexact operations' operands and results moved; None when one of them then refuses its operands."""
    values = dict(program.inputs)
    for s in program.statements:
        operands = values if s.exact else {**values, **{name: moved(values[name], rng, 3) for name in s.reads}}
        try:
            result = run_lines(s.lines, s.target, operands)
        except Exception:
            return None
        values[s.target] = result if s.exact else moved(result, rng, 3)
    return values


def moved(x, rng: np.random.Generator, ulps: int):
    """Floats moved by a few units in the last place, often back to where they were; results keep their class."""
    x = np.asarray(x)
    if x.dtype.kind not in "fc":
        return x[()]
    eps = np.finfo(x.dtype).eps
    with np.errstate(all="ignore"):
        if x.dtype.kind == "c":
            re, im = (part * (1 + rng.integers(-ulps, ulps, x.shape, endpoint=True) * eps) for part in (x.real, x.imag))
            made = np.empty(x.shape, x.dtype)
            made.real, made.imag = re, im
            return made[()]
        return np.asarray(x * (1 + rng.integers(-ulps, ulps, x.shape, endpoint=True) * eps), x.dtype)[()]


def tainted(program: Program) -> set[str]:
    """The values that an inexact operation has a part in."""
    found: set[str] = set()
    for s in program.statements:
        if not s.exact or found.intersection(s.reads):
            found.add(s.target)
    return found


# ---- what jitlab makes of it


_numbers = itertools.count()


def compile_source(program: Program):
    """The function of a program, with a source that capture can read."""
    name = f"<fuzz {next(_numbers)}>"
    source = program.source
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    space = {"np": np, "jl": jl}
    exec(compile(source, name, "exec"), space)  # noqa: S102
    return space["program"]


def transformed(program: Program):
    function = compile_source(program)
    return {
        "jit": lambda: jl.jit(function),
        "jit O0": lambda: jl.jit(function, jit_level="O0"),
        "function": lambda: jl.function(function),
        "function strict": lambda: jl.function(function, jit_compile=True),
        "function off": lambda: jl.function(function, jit_compile=False),
        "graph breaks": lambda: jl.jit(function, capture_mode="bytecode"),
    }[program.mode]()


def failure(program: Program) -> str:
    """"" when jitlab runs it as NumPy does, else what is wrong."""
    want = reference(program)
    copies = {name: x.copy() for name, x in program.inputs.items()}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            f = transformed(program)
            results = [f(*copies.values()) for _ in range(2)]
    except jl.errors.InvalidArgumentError as error:
        if program.mode == "function strict" and "Detected unsupported operations" in str(error):
            return ""
        return "".join(traceback.format_exception(error)[-6:])
    except Exception as error:
        return "".join(traceback.format_exception(error)[-6:])
    for name, x in copies.items():
        if not same_bits(x, program.inputs[name]):
            return f"the argument {name} has changed"
    left = ours_in(*results, copies)
    if left:
        return f"a recording's own objects left it: {left}"
    rng = np.random.default_rng(program.seed)
    runs = [run for run in (perturbed(program, rng) for _ in range(8)) if run is not None]
    loose = tainted(program)
    for got in results:
        for name, mine in zip(program.returned, got, strict=True):
            text = difference(mine, want[name], [run[name] for run in runs] if name in loose else None, name)
            if text:
                return text
    return ""


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")


def difference(mine, theirs, runs, name: str) -> str:
    """"" or how a result differs; `runs`: what rounding may make of it, None when it has to be NumPy's bits."""
    if type(mine) is not type(theirs):
        return f"{name} is a {type(mine).__name__}, NumPy's a {type(theirs).__name__}"
    if mine.dtype != theirs.dtype or mine.shape != theirs.shape:
        return f"{name} is {mine.dtype}{mine.shape}, NumPy's {theirs.dtype}{theirs.shape}"
    mine, theirs = np.asarray(mine), np.asarray(theirs)
    if runs is None:
        equal = (mine == theirs) | ((mine != mine) & (theirs != theirs))
        if mine.dtype.kind == "f":
            equal &= np.isnan(mine) | (np.signbit(mine) == np.signbit(theirs))
        return "" if np.all(equal) else _report(name, mine, theirs, ~equal, "it is exact")
    runs = [run for run in runs if np.shape(run) == theirs.shape]
    if not runs:  # rounding decides the shape itself
        return ""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if mine.dtype.kind in "biu":
            settled = np.logical_and.reduce([run == theirs for run in runs])
            wrong = settled & (mine != theirs)
            return _report(name, mine, theirs, wrong, "no rounding moves it") if np.any(wrong) else ""
        wide = np.dtype("c16" if mine.dtype.kind == "c" else "f8")
        reals = [(mine.real, theirs.real), (mine.imag, theirs.imag)] if wide.kind == "c" else [(mine, theirs)]
        spread = np.max([np.abs(run.astype(wide) - theirs.astype(wide)) for run in runs], axis=0)
        settled = np.logical_and.reduce([np.isfinite(run) == np.isfinite(theirs) for run in runs])
        eps = np.finfo(mine.dtype).eps
        for a, b in reals:
            bound = 40 * spread + 64 * eps * np.abs(theirs).astype("f8") + 4 * np.finfo(mine.dtype).tiny
            fine = np.abs(a.astype("f8") - b.astype("f8")) <= bound
            fine |= (a == b) | (np.isnan(a) & np.isnan(b)) | ~np.isfinite(spread) | ~settled
            if not np.all(fine):
                return _report(name, mine, theirs, ~fine, f"rounding moves it by {np.max(spread[~fine]):.3g}")
    return ""


def _report(name: str, mine: np.ndarray, theirs: np.ndarray, wrong: np.ndarray, why: str) -> str:
    at = tuple(int(i[0]) for i in np.nonzero(np.atleast_1d(wrong)))
    place = at if mine.ndim else ()
    share = f"{int(np.sum(wrong))} of {wrong.size} differ"
    return f"{name}{list(place)} is {mine[place]!r}, NumPy's {theirs[place]!r}; {why} ({share})"


def smaller(program: Program, wrong=failure) -> Program:
    """The failing program without the statements that its failure does not need."""
    best = program
    for number in [*reversed(range(len(program.statements)))] * 2:
        if number >= len(best.statements):
            continue
        before = [best.statements[number - 1].target] if number == len(best.statements) - 1 and number else []
        for returned in (before, best.returned):
            left = [s for k, s in enumerate(best.statements) if k != number]
            target = best.statements[number].target
            kept = [r for r in returned if r != target] or ([left[-1].target] if left else [])
            if not kept or any(target in s.reads for s in left):
                continue
            trial = Program(best.inputs, left, kept, {}, best.mode, best.seed)
            if wrong(trial):
                best = trial
                break
    read = {name for s in best.statements for name in s.reads} | set(best.returned)
    inputs = {name: x for name, x in best.inputs.items() if name in read}
    trial = Program(inputs, best.statements, best.returned, {}, best.mode, best.seed)
    return trial if trial.inputs and wrong(trial) else best

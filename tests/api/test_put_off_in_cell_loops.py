"""A loop of a cell's own that prints and stores is one piece: what it gives out comes in order, and the names are Python's also
where that ends half-way."""

import contextlib
import io
import re

import numpy as np
import pytest

from tests.api.test_put_off import Model, after_cell
from tests.cell_runs import CellResult, run_cell
from tests.faults.events import at_event

TRAINS = """\
w = x * 0.0
for epoch in range(30):
    r = w - x
    w = w - 0.5 * r
    loss = float((r * r).mean())
    out.append(loss)
    if epoch % 10 == 0:
        print(epoch, f"{loss:.4f}")
best = w * 2
"""
CELLS = (
    TRAINS,
    "for k in range(20):\n    y = x * k\n    table[k] = y[0]\n    table['last'] = k\n    print(k, y)\n",
    "for k in range(20):\n    y = x * k\n    out.append(y)\n",
    "for k in range(20):\n    y = x * k\n    out.append(y.copy())\nz = y + 1\n",
    "n = 0\nwhile n < 25:\n    n += 1\n    y = x / n\n    if n % 2:\n        out.append(n)\n        continue\n    print(n)\n"
    "else:\n    print('end', y)\n",
    "y = x\nfor k in range(40):\n    y = y * 0.5\n    out.append(y.sum())\n    if y.sum() < 0.1:\n        print('small', k)\n"
    "        break\n",
    "for i in range(17):\n    print(i)\n    for j in range(3):\n        if (i + j) % 2:\n            out.append((i, j))\n"
    "        else:\n            print(i, j)\n",
    "for k in range(20):\n    print(k)\nfor j in range(20):\n    print(j)\nfor k in range(20):\n    out.append(k)\n",
    "for k in range(20):\n    a = x * k\n    out[k - 15] = a[0]\n    b = a\n",
    "for k in range(20):\n    a = x * k\n    out.append(k)\n    out[2 * k] = 1\n    b = a\n",
    "for k in range(30):\n    a = x[k % 4] * k\n    print(f'{a:.2f}')\n    b = x[k]\n",
    "for k in range(30):\n    a = x * k\n    print(f'{a:d}')\n    b = a\n",
    "for k in range(20):\n    model.count = k\n    y = x * k\n    print(k)\n",
    "for k in range(20):\n    model.history.append(x[0] * k)\n    model.log['loss'].append(k)\n    model.log['n'] = k\n",
    "def told(u, k):\n    print('in', k)\n    return u + k\ny = x\nfor k in range(20):\n    y = told(y, k)\n",
    "losses = []\nfor k in range(20):\n    losses.append(float(x[k % 4]))\nfinal = np.mean(losses)\nlosses.clear()\n",
    "for k in range(20):\n    y = x * len(out)\n    out.append(k)\n",
    "for k in range(20):\n    x[k % 4] = k\n    out.append(k)\n    print(x)\n",
    "buffer = x * 1\nfor k in range(20):\n    buffer[k % 4] = k\n    print(k, buffer[0])\n    out.append(buffer.sum())\n",
    "rng = np.random.default_rng(3)\nfor k in range(20):\n    y = rng.random() * x\n    print(k, y)\n",
)  # fmt: skip
ONE_PIECE = (0, 1, 3, 5, 6, 18)


@pytest.mark.parametrize("source", CELLS)
def test_a_cell_with_a_loop_that_gives_something_out(source):
    ways = (lambda source, names: run_cell(source, names, "<put off>")), lambda source, names: exec(plain_code(source), names)
    found, wanted = ([re.sub(r" at 0x\w+", "", text, flags=re.I) for text in after_cell(way, source)] for way in ways)
    assert found == wanted


def plain_code(source):
    return compile(source, "<put off>", "exec")


@pytest.mark.parametrize("number", ONE_PIECE)
def test_the_loop_is_one_piece(number):
    names = {"np": np, "x": np.linspace(0.5, 2, 4), "out": [], "table": {}, "model": Model()}
    for _ in range(2):
        result = CellResult()
        with contextlib.redirect_stdout(io.StringIO()):
            run_cell(CELLS[number], names, "<put off>", result=result)
        assert (result.runs, result.statements) == (result.runs, [])
        assert result.runs <= 2


def plain_names(names):
    return {name: value for name, value in names.items() if name not in ("np", "__builtins__") and name[0] != "_"}


SOURCES = (
    TRAINS,
    "a = x + 1\nfor k in range(20):\n    y = a * k\n    z = k * 2\n    if k % 3 == 0:\n        print(k)\n        u = y[0]\n"
    "    print('turn', y.sum())\n    out.append(z)\n    v = z + 1\nend = 1\n",
    "n = 0\nwhile n < 20:\n    n += 1\n    buffer = x * n\n    buffer[0] = n\n    for j in range(2):\n        print(n, j)\n"
    "        t = n * j\n    print('x')\n",
)  # fmt: skip


class Writer(io.StringIO):
    """A stream that is full after some lines."""

    left = 0

    def write(self, text):
        Writer.left -= text.count("\n")
        if Writer.left < 0:
            raise OSError("full")
        return super().write(text)


Writer.write.__code__ = Writer.write.__code__.replace(co_filename=io.__file__)  # as a library's, not the user's


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("lines", [1, 2, 3, 7, 16, 25, 41])
def test_an_error_of_a_print_leaves_the_names_of_that_turn(source, lines):
    found = []
    for run in (lambda names: run_cell(source, names, "<put off>"), lambda names: exec(compile(source, "<p>", "exec"), names)):
        for times in range(2):
            names = {"np": np, "x": np.linspace(0.5, 2, 4), "out": []}
            Writer.left, text = lines if times else 1000, Writer()
            with contextlib.redirect_stdout(text), contextlib.suppress(OSError):
                run(names)
        found.append(repr((plain_names(names), text.getvalue())))
    assert found[0] == found[1]


def states_of(source):
    """What a trace function sees between the statements of plain Python: all that an interrupt may leave."""
    import sys

    seen, names, text = set(), {"np": np, "x": np.linspace(0.5, 2, 4), "out": []}, io.StringIO()

    def look(frame, event, arg):
        if frame.f_code.co_filename == "<p>":
            seen.add(state_of(names, text))
            return look
        return None

    code = compile(source, "<p>", "exec")
    with contextlib.redirect_stdout(text):
        sys.settrace(look)
        try:
            exec(code, names)
        finally:
            sys.settrace(None)
    seen.add(state_of(names, text))
    return seen


def state_of(names, text):
    return re.sub(r"\s+", " ", repr((plain_names(names), text.getvalue().split("\n")[:-1])))


@pytest.mark.parametrize("source", SOURCES[:2])
def test_an_interrupt_leaves_what_python_leaves_between_two_statements(source):
    known, met, errors = states_of(source), set(), np.geterr()
    names = {"np": np, "x": np.linspace(0.5, 2, 4)}

    def run(interrupted):
        for name in [name for name in names if name not in ("np", "x")]:
            del names[name]
        names["out"], text = [], io.StringIO()
        with contextlib.redirect_stdout(text), contextlib.suppress(KeyboardInterrupt), interrupted as counter:
            run_cell(source, names, "<put off>")
        met.add(state_of(names, text))
        assert met <= known
        assert np.geterr() == errors
        return counter

    def interrupt(number):
        """After runs that have captured all of it anew."""
        for _ in range(2):
            run(contextlib.nullcontext())
        return run(at_event(number)).seen.value

    first, last = 1, interrupt(0)
    while first < last:  # where the first of it is given out
        middle = (first + last) // 2
        interrupt(middle)
        first, last = (first, middle) if names["out"] else (middle + 1, last)
    for number in range(first - 4, first + 200, 4):
        interrupt(number)
    assert len(met) > 8

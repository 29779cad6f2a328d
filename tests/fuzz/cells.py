"""Random notebooks whose cells share names, sizes among them, and are run again after arrays have grown: under `%jit on` each
leaves what it leaves without. The statements are those of random functions."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from tests.left import described
from tests.notebook.shells import new_shell, run_cells

from . import functions
from .outcomes import MOST_TRIALS, difference, smaller

#: What IPython and Python add to the names of a session.
ADDED = ("__warningregistry__",)


class Notebook:
    """Cells over the arguments of a random function, which are names of the session."""

    def __init__(self, program: functions.Program, cells: list[str]) -> None:
        self.program, self.cells = program, cells

    def __str__(self) -> str:
        return str(self.program).partition("\n")[0] + "\n" + "\n# ----\n".join(self.cells[1:])


def make(seed: int) -> Notebook:
    """The notebook of a seed."""
    draw = random.Random(f"notebooks {seed}")
    program = functions.make(seed, returns=False)
    statements, cells = list(program.body), [functions.PRELUDE]
    while statements:
        count = draw.randint(1, 4)
        cells.append("\n".join(statements[:count]))
        del statements[:count]
    again = draw.sample(cells[1:], min(len(cells) - 1, 3))
    grown = draw.choice([argument.name for argument in program.arguments])
    if draw.random() < 0.6:
        cells.append(f"{grown} = np.concatenate([{grown}, {grown}]) if {grown}.ndim else {grown} + 1")
    return Notebook(program, [*cells, *again])


@cache
def session() -> InteractiveShell:
    """A shell with jitlab loaded."""
    return new_shell()


def failure(notebook: Notebook, shell: InteractiveShell | None = None) -> str:
    """"" where the cells leave what they leave without `%jit on`, else what differs."""
    shell = shell or session()
    want = left_by(shell, notebook)
    shell.run_cell("%jit on").raise_error()
    try:
        mine = left_by(shell, notebook)
    except AssertionError as ours:
        return f"left {ours}"
    finally:
        shell.run_cell("%jit off").raise_error()
    return "" if mine == want else difference(want, mine)


def left_by(shell: InteractiveShell, notebook: Notebook) -> Any:
    left = run_cells(shell, notebook.cells, notebook.program.values(0, notebook.program.seed))
    names = {name: value for name, value in left.names.items() if name not in ADDED}
    printed = [line for line in left.printed.splitlines() if line.startswith(("(", "yes", "0 ", "1 "))]
    return [(error, lines) for error, _, lines in left.errors], printed, described(names), described(left.values)


def least(notebook: Notebook, wrong: Callable[[Notebook], str] = failure) -> Notebook:
    """The failing notebook without the cells and statements that its failure does not need."""
    best, tried = notebook, 0
    while True:
        trials = [[*best.cells[:n], *best.cells[n + 1 :]] for n in reversed(range(1, len(best.cells)))]
        for n in range(1, len(best.cells)):
            whole = "def f():\n" + functions.indented(best.cells[n]) + "\n"
            trials += [[*best.cells[:n], _body(text), *best.cells[n + 1 :]] for text in smaller(whole)]
        for cells in trials:
            tried += 1
            if len("".join(cells)) < len("".join(best.cells)) and wrong(Notebook(best.program, cells)):
                best = Notebook(best.program, cells)
                break
            if tried > MOST_TRIALS:
                return best
        else:
            return best


def _body(function: str) -> str:
    return "\n".join(line[4:] for line in function.splitlines()[1:])

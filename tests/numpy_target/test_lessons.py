"""The lessons' programs, made short enough for a target that interprets, leave the same on both targets."""

import re

import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell

from jitlab.notebook.extension import unload_ipython_extension
from tests.notebook.shells import new_shell, run_cells
from tests.notebooks.test_lessons import LESSONS, cells_of, source
from tests.numpy_target.target import Interpreted, on_numpy

#: Sizes and numbers of steps in the lessons' programs, and what stands for them here.
SHORTER = {
    "digits()": "shorter(digits())", "range(200)": "range(2)", "range(1500)": "range(3)", "1_000_000": "2_000",
    "100_000": "1_000", "50_000": "300", "25_000": "200", "12_500": "100", "200_000": "600", "20_000": "300", "10_000": "40",
    "2000": "60", "1000": "50", "n = 300": "n = 12", "200": "24", "500)": "25)", "[:60:2, 100]": "[:24:2, 12]",
    "%timeit -r 3 ": "", "%%time\n": "",
}  # fmt: skip
_PATTERN = re.compile("|".join(rf"(?<![\w.]){re.escape(text)}(?![\w.])" if text[-1].isdigit() else re.escape(text)
                               for text in SHORTER))  # fmt: skip


def shorter(data):
    """Fewer digits, to learn from and to test with."""
    return data._replace(**{name: getattr(data, name)[: 60 if "train" in name else 20] for name in data._fields})


@pytest.fixture
def shell(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("jitlab.notebook.saved_outputs.cache_folder", lambda: tmp_path)
    made = new_shell()
    yield made
    unload_ipython_extension(made)
    InteractiveShell.clear_instance()


def arrays_in(value):
    """The arrays and NumPy scalars of a value, in order."""
    if isinstance(value, (np.ndarray, np.generic)):
        yield value
    elif isinstance(value, (tuple, list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from arrays_in(item)


def left(shell, lesson):
    cells = [_PATTERN.sub(lambda found: SHORTER[found[0]], source(cell)) for cell in cells_of(lesson)]
    found = run_cells(shell, cells, {"shorter": shorter})
    return found.errors, {name: list(arrays_in(value)) for name, value in found.names.items()}


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.stem)
def test_a_lesson_leaves_the_same_on_both_targets(shell, lesson, monkeypatch):
    want_errors, want = left(shell, lesson)
    ran, real = [], Interpreted.run
    monkeypatch.setattr(Interpreted, "run", lambda self, *args: ran.append(1) or real(self, *args))
    with on_numpy():
        errors, got = left(shell, lesson)
    assert ran
    meant = ["raises-exception" in cell["metadata"].get("tags", ()) for cell in cells_of(lesson)]
    assert [error is not None for error, _, _ in errors] == meant
    assert errors == want_errors
    assert got.keys() == want.keys()
    for name, values in want.items():
        for mine, theirs in zip(got[name], values, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-9, err_msg=name)

"""In cells, too, a number is of the kind that Python gives it: one of its own, or NumPy's."""

import inspect
import textwrap

import numpy as np
import pytest

from tests.capture.kinds_of_numbers import COMPILED, DATA, LEFT_TO_PYTHON
from tests.capture.same import assert_like


def as_cell(program):
    """The body of a function as statements of a cell; a call of it where it returns from several places."""
    source = textwrap.dedent(inspect.getsource(program))
    body = textwrap.dedent("\n".join(source.splitlines()[1:]))
    if source.count("return ") == 1:
        return body.replace("return ", "result = ")
    return f"{source}\nresult = {program.__name__}(x)"


@pytest.mark.parametrize("program", [*COMPILED, *LEFT_TO_PYTHON])
def test_a_number_in_a_cell_is_of_the_kind_that_Python_gives_it(ip, program):
    ip.user_ns["np"] = np
    for x in DATA:
        found = []
        for above in ("", "%%jit -q\n"):
            ip.user_ns.update(x=x.copy(), result=None)
            done = ip.run_cell(above + as_cell(program))
            found.append((type(done.error_in_exec), ip.user_ns["result"]))
        assert found[1][0] is found[0][0]
        assert_like(found[1][1], found[0][1])

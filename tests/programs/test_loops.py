"""Programs with loops, unmodified, under `jl.jit`: Python's results, types, and writes into arguments."""

import copy
import sys
from pathlib import Path

import pytest

import jitlab as jl
from tests.programs.alike import same

sys.path.insert(0, str(Path(__file__).parent))
from loops import PROGRAMS  # noqa: E402


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_program_gives_what_python_gives(program):
    compiled = jl.jit(program)
    for _ in range(2):
        arguments = PROGRAMS[program]()
        mine, theirs = copy.deepcopy(arguments), copy.deepcopy(arguments)
        found, wanted = compiled(*mine), program(*theirs)
        same(found, wanted)
        same(mine, theirs)
        for a, b in zip(mine, theirs, strict=True):
            assert (found is a) == (wanted is b)


#: What goes in pieces: a complex number's Python arithmetic, buffers that change their names, a view of a part that is carried.
IN_PIECES = {"escape_times", "swapped_buffers", "damped_parts"}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_program_is_captured_whole(program):
    compiled = jl.jit(program)
    compiled(*PROGRAMS[program]())
    assert ("in pieces" in str(compiled.ledger)) == (program.__name__ in IN_PIECES), compiled.ledger

"""The array programs of the benchmark give what NumPy does, and those that a peer is given say the same."""

import importlib
import json
from importlib.util import find_spec

import numpy as np
import pytest

import jitlab as jl
from benchmarks import array_programs, page, run
from benchmarks.sides import PEERS, make


def module(name):
    return importlib.import_module(f"{array_programs.__name__}.{name}")


@pytest.mark.parametrize("dtype", run.DTYPES)
@pytest.mark.parametrize("name", run.PROGRAMS)
def test_a_program_gives_what_numpy_does(name, dtype):
    program = module(name)
    arrays = program.inputs(program.SMALL, np.dtype(dtype), np.random.default_rng(0))
    kept = [array.copy() for array in arrays]
    wanted = program.program(*arrays)
    found = jl.function(program.program)(*arrays)
    assert run.error_of(wanted, found) <= run.TOLERANCE[dtype]
    assert run.dtypes_of(found) == run.dtypes_of(wanted)
    assert all(map(np.array_equal, kept, arrays)), "the benchmark calls it again with the same arrays"


def sides_there():
    """What a peer that is installed has for a program."""
    installed = [peer for peer in PEERS[1:] if find_spec(peer)]
    return [(peer, name) for peer in installed for name in run.PROGRAMS if peer not in getattr(module(name), "UNSUPPORTED", {})]


@pytest.mark.parametrize(("peer", "name"), sides_there())
def test_a_peer_that_is_installed_gives_the_same(peer, name):
    program = module(name)
    arrays = program.inputs(program.SMALL, np.dtype("float64"), np.random.default_rng(0))
    assert run.error_of(program.program(*arrays), make(peer, program)(*arrays)) <= run.WRONG


def test_each_program_has_three_sizes_that_grow():
    for name in run.PROGRAMS:
        sizes = module(name).SIZES
        assert tuple(sizes) == run.SIZES
        elements = [np.prod(shape) for shape in sizes.values()]
        assert elements == sorted(set(elements)), name


def test_the_page_shows_each_row_and_marks_those_that_a_peer_wins(tmp_path, capsys):
    def times(**sides):
        return {side: {"min": value * 1e-6, "median": value * 1e-6} for side, value in sides.items()} | {"bytes": 8}

    versions = dict.fromkeys(("python", "numpy", "jax", "jitlab"), "1")
    about = {"date": "2026-01-01", "machine": "m", "cores": 1, "core": 0, **versions}
    cases = [
        {"program": "a", "title": "2*a", "dtype": "float64", "size": "small", "times": times(numpy=4, jax=8, jitlab=2)},
        {"program": "b", "title": "b", "dtype": "float64", "size": "large", "times": times(numpy=4, jax=1, jitlab=2)},
    ]
    cases[0]["times"]["jax"] = {"skipped": "it can't"}
    path = tmp_path / "one.json"
    path.write_text(json.dumps({"about": about, "cases": cases, "first_calls": []}))
    assert page.main([str(path)]) == 0
    said = capsys.readouterr().out
    assert "| 2\\*a | float64 | small | 4 |  | 2 | 2.00 |" in said
    assert "| b | float64 | large | 4 | 1 | 2 | **0.50** |" in said
    assert "| all | 2.00 of 2 | 0.50 of 1 | 1.00 of 2 |" in said
    assert "a peer is ahead in 1 of 2:" in run.summary(cases, ["numpy", "jax", "jitlab"])

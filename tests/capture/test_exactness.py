"""Python's own numbers in loops and branches: ints of any size, and ZeroDivisionError, as Python has them."""

import numpy as np
import pytest

import jitlab as jl
from tests.capture.exact_programs import DATA, LEAVES_64_BITS, OF_SMALL_DTYPES, STAYS_WITHIN, halved
from tests.capture.same import assert_like


def outcome(function, x):
    """What a call gives or raises, and leaves in its argument."""
    try:
        return function(x), x
    except (ArithmeticError, ValueError) as error:
        return [type(error), str(error)], x


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("level", ["O1", "O0"])
@pytest.mark.parametrize("program", [*LEAVES_64_BITS, *OF_SMALL_DTYPES, *STAYS_WITHIN, halved])
def test_a_number_of_Python_is_what_Python_has(program, level):
    compiled = jl.jit(program, jit_level=level)
    for x in (*DATA, *DATA):
        assert_like(outcome(compiled, x.copy()), outcome(program, x.copy()))


@pytest.mark.parametrize("program", [f for f in LEAVES_64_BITS if f.__name__ not in ("one_of_two_divided_by", "int_of")])
def test_where_it_fits_it_is_compiled(program):
    compiled = jl.jit(program)
    x = np.array([1.5, 1.5, 1])
    assert_like(outcome(compiled, x.copy()), outcome(program, x.copy()))
    assert compiled.experimental_get_tracing_count() == 1


@pytest.mark.parametrize("program", STAYS_WITHIN)
def test_what_is_known_to_fit_is_not_asked_for(program):
    """Counts, sums of indices, remainders: nothing is checked at a run."""
    report = jl.explain(jl.jit(program), DATA[4])
    assert "Check" not in report.ir(report.clusters[0].name, stage="graph")


@pytest.mark.parametrize("decorate", [jl.jit, jl.function])
@pytest.mark.parametrize("kind", [int, float, bool])
@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_a_number_of_an_array_with_axes_is_what_this_numpy_makes_of_it(decorate, kind, shape):
    def program(x):
        return kind(x)

    x = np.full(shape, 1.5)
    try:
        expected = program(x)
    except TypeError as error:
        with pytest.raises(TypeError, match="0-dimensional"):
            decorate(program)(x)
        assert "0-dimensional" in str(error)
    else:
        assert decorate(program)(x) == expected

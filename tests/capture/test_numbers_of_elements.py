"""Python numbers of elements under `jl.jit` and in cells: `float(x[i])`, `int`, `x.item()`, `x.tolist()`, `round`, `math`. They
are captured, compute as Python's do, and leave the program as Python's; where Python raises, it does so itself."""

import math
import random

import numpy as np
import pytest

import jitlab as jl
from jitlab import events
from tests.capture.same import assert_same

FLOATS = [
    0.5, -0.5, 0.0, -0.0, 1.0, -1.0, 2.75, -3.0, -7.5, 0.125, 2.675, 7.0, 710.0, 1e-310, 1e300, 2.0**53 + 2, 2.0**62, 2.0**63,
    -(2.0**63), 1e19, math.inf, -math.inf, math.nan,
]  # fmt: skip
INTS = [0, 1, -1, 2, 3, -7, 10, 62, 63, 64, 2**31, 2**53 - 1, 2**53 + 1, 2**62 - 1, 2**62, 2**63 - 1, -(2**62), -(2**63)]
PAIRS = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "truediv": lambda a, b: a / b,
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "pow": lambda a, b: a**b if abs(b) < 1000 else 0,
    "divmod": divmod,
    "compare": lambda a, b: (a < b, a <= b, a == b, a != b, a > b, a >= b),
    "extreme": lambda a, b: (max(a, b), min(a, b)),
    "chosen": lambda a, b: a if a < b else b,
    "logic": lambda a, b: (not a, a and b, a or b),
    **{f"math.{name}": getattr(math, name) for name in ("atan2", "copysign", "fmod", "hypot", "log", "pow")},
}
OF_INTS = {
    "bits": lambda a, b: (a & b, a | b, a ^ b, ~a),
    "rshift": lambda a, b: a >> b,
    "lshift": lambda a, b: a << b if b < 100 else 0,
}
SINGLES = {
    "signs": lambda a: (-a, +a, abs(a)),
    "round": round,
    "round_0": lambda a: round(a, 0),
    "round_2": lambda a: round(a, 2),
    "round_7": lambda a: round(a, 7),
    "int": int,
    "float": float,
    "bool": bool,
    **{
        f"math.{name}": getattr(math, name)
        for name in (
            "acos acosh asin asinh atan atanh cbrt ceil cos cosh degrees erf erfc exp exp2 expm1 fabs floor gamma isfinite"
            " isinf isnan lgamma log log10 log1p log2 radians sin sinh sqrt tan tanh trunc"
        ).split()
        if hasattr(math, name)
    },
}


def outcome(function, *args):
    try:
        return function(*(x.copy() for x in args))
    except Exception as error:
        return type(error), str(error)


def assert_close(mine, theirs):
    """The same types and signs, and digits within 16 units in the last place (functions differ by some)."""
    if isinstance(theirs, tuple):
        assert type(mine) is tuple and len(mine) == len(theirs), (mine, theirs)
        for x, y in zip(mine, theirs, strict=True):
            assert_close(x, y)
    elif type(theirs) is float and math.isfinite(theirs):
        assert type(mine) is float and math.copysign(1, mine) == math.copysign(1, theirs), (mine, theirs)
        assert abs(mine - theirs) <= 16 * math.ulp(theirs), (mine, theirs)
    else:
        assert type(mine) is type(theirs) and (mine == theirs or mine != mine and theirs != theirs), (mine, theirs)


def arrays(kind):
    return [np.array([value]) for value in (FLOATS if kind == "f" else INTS)]


@pytest.mark.long
@pytest.mark.parametrize("name", [*PAIRS, *OF_INTS])
@pytest.mark.parametrize("kinds", ["ff", "fi", "if", "ii"])
@pytest.mark.filterwarnings("ignore:invalid value", "ignore:overflow", "ignore:divide by zero")
def test_two_numbers_of_elements_are_computed_as_python_does(name, kinds):
    if name in OF_INTS and kinds != "ii":
        kinds = "ii"
    function = PAIRS.get(name) or OF_INTS[name]

    def program(x, y):
        return function(x[0].item(), y.item(0))

    compiled = jl.jit(program)
    for x in arrays(kinds[0]):
        for y in arrays(kinds[1]):
            assert_close(outcome(compiled, x, y), outcome(program, x, y))


@pytest.mark.long
@pytest.mark.parametrize("name", SINGLES)
@pytest.mark.filterwarnings("ignore:invalid value", "ignore:overflow", "ignore:divide by zero")
def test_a_number_of_an_element_is_computed_as_python_does(name):
    function, numbers = SINGLES[name], random.Random(1)

    def program(x):
        return function(x[0].item())

    compiled = jl.jit(program)
    more = [round(numbers.uniform(-50, 50), numbers.randint(1, 9)) for _ in range(300)] if "round" in name else []
    for x in (*arrays("f"), *arrays("i"), *(np.array([value]) for value in more)):
        assert_close(outcome(compiled, x), outcome(program, x))


# ---- captured whole


def floats_and_ints(x):
    return float(x[0]) * 2 + 1, int(x[1]) + 1, x[1].item(), x.max().item(), x.item(2), bool(x[0] > 1), x[0] > 1


def weak_in_promotion(x):
    return x.astype(np.float32) * float(x[0]), x.astype(np.int16) + int(x[1]), np.sqrt(float(x[3])), np.array([float(x[0]), 1])


def of_math(x):
    return math.sqrt(x[0]), math.exp(x[1]), math.atan2(x[2], 3), math.log(x[3], 2), math.floor(x[2]), math.isnan(x[0])


def roundings(x):
    return round(x[2]), round(float(x[1]) + 0.001, 2), round(x[1], 1), round(int(x[3]), 2), abs(float(x[2]))


def listed(x):
    a, b, *others = x.tolist()
    return [v * 2 for v in x.tolist()], a * b, others, x.reshape(2, 2).tolist(), sum(x.tolist()), max(x.tolist())


def in_a_loop(x):
    total, most = 0.0, 0
    for i in range(len(x)):
        total += math.sqrt(abs(float(x[i]))) / (i + 1)
        most = max(most, int(x[i]))
    for v in x.tolist():
        total += v * v
    return total, most


def decided_by_it(x):
    n, steps = int(x[3]), 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    if float(x[0]) > 0.2:
        return steps, x * float(x[1])
    return steps, x


def is_itself(x):
    flag = bool(x[0] > 0)
    return flag is True, flag is not False, (x[0] > 0) is True, isinstance(x[0].item(), float), type(int(x[0])) is int


def chosen_elements(x):
    return x[int(x[1])], x.reshape(2, 2)[int(x[0]), 1], sum(int(v > 0) for v in (x[0], x[2]))


WHOLE = [
    floats_and_ints, weak_in_promotion, of_math, roundings, listed, in_a_loop, decided_by_it, chosen_elements
]  # fmt: skip
X = np.array([0.5, 2.25, -3.0, 7.0])


def told(function, *args):
    heard = []
    with events.listen(heard.append):
        function(*args)
    return [str(event.said) for event in heard if event.kind == "statement-ran"]


@pytest.mark.parametrize("program", WHOLE)
def test_numbers_of_elements_are_captured(program):
    compiled = jl.jit(fullgraph=True)(program)
    for x in (X, X, X * 1.5, np.float32(X)):
        if program is of_math and x.dtype == np.float32:
            continue
        np.testing.assert_equal(types_of(compiled(x)), types_of(program(x)))
        assert not told(compiled, x)
    assert compiled.experimental_get_tracing_count() <= 2


def types_of(x):
    """Values, rounded, with their types."""
    if isinstance(x, (list, tuple)):
        return [type(x), *map(types_of, x)]
    if isinstance(x, np.ndarray):
        return [x.dtype, x.shape, x.round(10)]
    return [type(x), float(f"{x:.11g}")] if isinstance(x, (float, np.floating)) else [type(x), x]


@pytest.mark.parametrize("dtype", ["bool", "i1", "u1", "u8", "i8", "f2", "f4"])
def test_numbers_of_elements_of_other_dtypes(dtype):
    def program(x):
        return x[0].item(), float(x[1]), int(x[1]), x.tolist(), sum(x.tolist()), math.sqrt(x[1]), x + int(x[0]), math.ceil(x[1])

    x = np.array([1, 3, 0], dtype)
    compiled = jl.jit(fullgraph=True)(program)
    for _ in range(2):
        np.testing.assert_equal(types_of(compiled(x)), types_of(program(x)))


# ---- what needs the number itself


def as_a_size(x):
    return np.zeros(int(x[3])), np.arange(int(x[1])), [0] * int(x[1]), (1,) * int(x[1]), "ab" * int(x[1])


def as_a_bound(x):
    y = x[: int(x[1])] + 1
    x[int(x[2]) :] = 5
    return y, x, [i for i in range(int(x[1]))]


def as_a_key(x):
    return {2: "two", 2.25: 3}[float(x[1])], {7: 1}.get(int(x[3])), [10, 20, 30][int(x[1])], float(x[1]) in {2.25, 1}


def as_a_text(x):
    return f"{float(x[0]):.3f}", str(int(x[3])), repr(x[1].item()), format(int(x[3]), "d")


def by_its_attributes(x):
    number = float(x[0])
    return number.is_integer(), number.hex(), hasattr(number, "shape"), getattr(number, "dtype", None), int(x[3]).bit_length()


def by_its_hash(x):
    return hash(float(x[0])), len({float(x[0]), float(x[1])})


@pytest.mark.parametrize("program", [as_a_size, as_a_bound, as_a_key, as_a_text, by_its_attributes, by_its_hash, is_itself])
def test_what_needs_the_number_itself_gets_it(program):
    compiled = jl.jit(program)
    for x in (X, X, np.array([1.5, 2.25, -2.0, 7.0]), X):
        mine, theirs = x.copy(), x.copy()
        assert_same(outcome(compiled, mine), outcome(program, theirs))
        assert_same(mine, theirs)


def stored_then_raises(x):
    x[0] = 5
    return math.sqrt(x[2])


def divides(x):
    x[1] = 4
    return 1 / int(x[0])


def too_large(x):
    return x + int(x[0] * 1e300), [int(x[3] * 1e30)]


def no_integer(x):
    return int(x[0] * math.inf)


def too_large_for_the_dtype(x):
    return x.astype(np.int8) + int(x[3] * 100)


def too_large_for_the_type(x):
    return np.int8(int(x[3]) * 100)


def no_attribute(x):
    return float(x[0]).shape


def out_of_bounds(x):
    return x[int(x[3])]


@pytest.mark.parametrize(
    "program",
    [
        stored_then_raises, divides, too_large, no_integer, too_large_for_the_dtype, too_large_for_the_type, no_attribute,
        out_of_bounds,
    ],
)  # fmt: skip
@pytest.mark.parametrize("fullgraph", [False, True])
def test_where_python_raises_it_raises_itself(program, fullgraph):
    if fullgraph and program is no_attribute:
        pytest.raises(AttributeError, jl.jit(fullgraph=True)(program), X)
        return
    compiled = jl.jit(program, fullgraph=fullgraph)
    for x in (X, X, X * 10, X):
        mine, theirs = x.copy(), x.copy()
        assert_same(outcome(compiled, mine), outcome(program, theirs))
        assert_same(mine, theirs)


def test_a_check_that_fails_says_what_it_was():
    compiled = jl.jit(lambda x: round(float(x[1]), 1))
    assert told(compiled, X + 1) == ["<lambda>, because a Python number is rounded by its decimal digits"]
    assert told(compiled, X / 7) == []

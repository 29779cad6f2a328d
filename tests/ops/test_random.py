"""Random generators in captured functions: what NumPy draws, call after call, and the generator left as NumPy leaves it."""

import numpy as np
import pytest

import jitlab as jl

P = np.array([0.2, 0.3, 0.5])
COV = np.array([[2.0, 0.5], [0.5, 1.0]])
#: Each method of a Generator that gives arrays, with arguments; x is an array of the caller's.
GENERATOR = {
    "integers": lambda g, x: g.integers(0, 10, size=4),
    "integers, one": lambda g, x: g.integers(5),
    "integers, end": lambda g, x: g.integers(0, 3, size=(2, 2), dtype=np.int32, endpoint=True),
    "random": lambda g, x: g.random((2, 3), dtype=np.float32),
    "random, one": lambda g, x: g.random(),
    "normal": lambda g, x: g.normal(x, 2.0),
    "uniform": lambda g, x: g.uniform(-2.0, x),
    "standard_normal": lambda g, x: g.standard_normal(3),
    "standard_exponential": lambda g, x: g.standard_exponential(3),
    "standard_gamma": lambda g, x: g.standard_gamma(np.abs(x) + 1),
    "standard_cauchy": lambda g, x: g.standard_cauchy(2),
    "standard_t": lambda g, x: g.standard_t(3.0, 2),
    "choice": lambda g, x: g.choice(x, 2, replace=False),
    "choice of a number": lambda g, x: g.choice(5, 3, p=[0.1, 0.2, 0.3, 0.2, 0.2]),
    "permutation": lambda g, x: g.permutation(x),
    "permutation of a number": lambda g, x: g.permutation(5),
    "permuted": lambda g, x: g.permuted(np.outer(x, x), axis=1),
    "multinomial": lambda g, x: g.multinomial(10, P),
    "multivariate_normal": lambda g, x: g.multivariate_normal(np.zeros(2), COV, 3),
    "multivariate_hypergeometric": lambda g, x: g.multivariate_hypergeometric([4, 3, 2], 5),
    "dirichlet": lambda g, x: g.dirichlet(P * 3, 2),
    **{
        name: lambda g, x, name=name, args=args: getattr(g, name)(*args, size=3)
        for name, args in {
            "beta": (1.0, 2.0), "binomial": (9, 0.3), "chisquare": (2.0,), "exponential": (2.0,), "f": (3.0, 4.0),
            "gamma": (2.0, 1.0), "geometric": (0.3,), "gumbel": (), "hypergeometric": (5, 4, 3), "laplace": (),
            "logistic": (), "lognormal": (), "logseries": (0.5,), "negative_binomial": (3, 0.5),
            "noncentral_chisquare": (2.0, 1.0), "noncentral_f": (3.0, 4.0, 1.0), "pareto": (2.0,), "poisson": (3.0,),
            "power": (2.0,), "rayleigh": (), "triangular": (0.0, 1.0, 2.0), "vonmises": (0.0, 1.0), "wald": (1.0, 1.0),
            "weibull": (2.0,), "zipf": (2.0,),
        }.items()
    },
}  # fmt: skip
X = np.array([0.5, -1.5, 2.0, 3.25])


def same(got, want):
    assert type(got) is type(want)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", GENERATOR)
def test_a_generator_draws_what_numpy_draws_and_is_left_as_numpy_leaves_it(name):
    draw = GENERATOR[name]
    ours, theirs = np.random.default_rng(3), np.random.default_rng(3)
    f = jl.jit(lambda x: draw(ours, x) * 2)
    for _ in range(3):  # the first call traces
        same(f(X), draw(theirs, X) * 2)
    assert ours.random() == theirs.random()


def test_a_number_drawn_is_pythons_and_weak_in_promotion():
    ours, theirs = np.random.default_rng(3), np.random.default_rng(3)
    f = jl.jit(lambda x: (x * ours.random(), ours.standard_normal(), x * ours.normal()))
    for _ in range(2):
        single = X.astype("f4")
        wanted = (single * theirs.random(), theirs.standard_normal(), single * theirs.normal())
        for got, want in zip(f(single), wanted, strict=True):
            same(got, want)
            assert np.result_type(got) == np.result_type(want)


def test_every_method_of_a_generator_is_here():
    known = {name.split(",")[0].split(" ")[0] for name in GENERATOR}
    methods = {name for name in dir(np.random.Generator) if not name.startswith("_")}
    assert methods - known == {"bit_generator", "spawn", "bytes", "shuffle"}  # the first three give no arrays


def test_shuffle_writes_into_its_argument():
    for axis in (0, 1):
        ours, theirs = np.random.default_rng(5), np.random.default_rng(5)

        @jl.jit
        def f(x, ours=ours, axis=axis):
            ours.shuffle(x, axis=axis)
            return x * 1

        for _ in range(2):
            x, y = np.arange(12.0).reshape(3, 4), np.arange(12.0).reshape(3, 4)
            got = f(x)
            theirs.shuffle(y, axis=axis)
            same(got, y)
            same(x, y)


def test_bytes_are_pythons():
    ours, theirs = np.random.default_rng(6), np.random.default_rng(6)
    f = jl.jit(lambda x: (ours.bytes(4), x + 1))
    for _ in range(2):
        assert f(X)[0] == theirs.bytes(4)


LEGACY = {
    "rand": lambda r: r.rand(2, 2),
    "randn": lambda r: r.randn(3),
    "randint": lambda r: r.randint(0, 9, 4),
    "random_sample": lambda r: r.random_sample(2),
    "normal": lambda r: r.normal(size=2),
    "choice": lambda r: r.choice(6, 3),
    "permutation": lambda r: r.permutation(5),
    "multinomial": lambda r: r.multinomial(5, P),
    "tomaxint": lambda r: r.tomaxint(2),
}


@pytest.mark.parametrize("name", LEGACY)
def test_a_random_state_draws_what_numpy_draws(name):
    draw = LEGACY[name]
    ours, theirs = np.random.RandomState(3), np.random.RandomState(3)
    f = jl.jit(lambda x: draw(ours) + x)
    for _ in range(2):
        same(f(0), draw(theirs) + 0)
    assert ours.rand() == theirs.rand()


def test_a_draw_is_a_host_operation_with_its_reason():
    rng = np.random.default_rng(0)
    report = jl.explain(jl.jit(lambda x: np.sin(x) + rng.normal(x)), X)
    assert [f.reason.code for f in report.fallbacks] == ["stateful_random"]


def test_numpy_draws_for_a_function_that_must_compile():
    ours, theirs = np.random.default_rng(0), np.random.default_rng(0)
    drawn = jl.function(lambda x: x + ours.normal(size=4), jit_compile=True)
    for _ in range(2):
        np.testing.assert_array_equal(drawn(np.ones(4)), 1 + theirs.normal(size=4))

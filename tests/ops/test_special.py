"""scipy.special: each known function gives SciPy's dtype, shape and values, compiles, and has its slope."""

import numpy as np
import pytest

scipy = pytest.importorskip("scipy", reason="SciPy is optional")
import scipy.special as sp  # noqa: E402

from jitlab.ir import ArrayType, Graph, interpret  # noqa: E402
from jitlab.ir.graphs.verify import verify  # noqa: E402
from jitlab.ops import table  # noqa: E402
from jitlab.ops.elementwise.special import DERIVATIVES, UFUNCS  # noqa: E402
from jitlab.ops.leaf_operations import Parameter  # noqa: E402
from tests.ops.backprop import finite_differences, gradients  # noqa: E402
from tests.runtime.compiling import parameter, run_compiled  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
ONE = [name for name in UFUNCS if getattr(sp, name).nin == 1]
TWO = [name for name in UFUNCS if getattr(sp, name).nin == 2]
#: Where a function is defined on 0..1 alone.
INSIDE = ("logit", "erfinv", "erfcinv", "ndtri")


def arguments(name, dtype):
    x = np.linspace(0.1, 0.9, 7) if name in INSIDE else np.array([0.3, 1.7, 2.5, 4.25, 0.75, 11.0, 6.5])
    y = np.array([0.4, 0.2, 3.5, 1.25, 0.5, 2.0, 5.5])
    signed = name not in INSIDE and UFUNCS[name] is not None and name not in ("xlogy", "xlog1py", "entr", "rel_entr", "kl_div")
    x = np.concatenate([x, -x]) if signed else x
    return [x.astype(dtype), y.astype(dtype)][: getattr(sp, name).nin]


def graph_of(function, *arrays, **options):
    graph = Graph()
    nodes = [graph.add(Parameter(ArrayType(a.shape, a.dtype)), name=f"x{k}") for k, a in enumerate(arrays)]
    with graph.building():
        made = table.FUNCTIONS[function](*nodes, **options)
        graph.outputs = list(made) if isinstance(made, tuple) else [made]
    return verify(graph)


def agree(got, want, ulps=32):
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    eps = np.finfo(want.dtype).eps
    np.testing.assert_allclose(got, want, rtol=ulps * eps, atol=2 * eps if want.dtype != "f8" else 1e-300)


@pytest.mark.parametrize("name", UFUNCS)
def test_a_ufunc_gives_what_scipy_gives(name):
    function = getattr(sp, name)
    for dtype in ("f8", "f4", "f2", "i4", "i1"):
        arrays = arguments(name, dtype)
        (got,) = interpret(graph_of(function, *arrays), arrays)
        agree(got, function(*arrays))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_they_compile_together(dtype):
    for names in (ONE, TWO):
        graph, arrays, want = Graph("special"), [], []
        with graph.building():
            for name in names:
                given = arguments(name, dtype)
                nodes = [parameter(graph, a, f"{name}{k}") for k, a in enumerate(given)]
                graph.outputs.append(table.FUNCTIONS[getattr(sp, name)](*nodes))
                arrays += given
                want.append(getattr(sp, name)(*given))
        for got, value in zip(run_compiled(verify(graph), arrays), want, strict=True):
            agree(got, value, 64)


@pytest.mark.parametrize("name", sorted({n for n, b in UFUNCS.items() if b is not None} | set(DERIVATIVES)))
def test_the_slope_is_the_finite_difference(name):
    arrays = arguments(name, "f8")
    if name not in INSIDE:  # the differences of large values say nothing
        arrays = [np.where(a < -3, -a, a) * 0.3 for a in arrays]
    graph = graph_of(getattr(sp, name), *arrays)
    weights = np.linspace(0.5, 1.5, arrays[0].size)
    want = finite_differences(graph, arrays, weights)
    for mine, theirs in zip(interpret(gradients(graph, weights), arrays), want, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-6)


def test_error_functions_are_within_3_ulp_of_the_true_value():
    mp = pytest.importorskip("mpmath", reason="for tests only")
    x = np.concatenate([np.linspace(-5, 25, 90), np.linspace(0.75, 0.85, 20)])
    graph = Graph("errors")
    with graph.building():
        node = parameter(graph, x, "x")
        graph.outputs = [table.FUNCTIONS[f](node) for f in (sp.erfc, sp.erfcx, sp.ndtr)]
    erfc, erfcx, ndtr = run_compiled(verify(graph), [x])
    with mp.workprec(200):
        for a, *got in zip(x.tolist(), erfc.tolist(), erfcx.tolist(), ndtr.tolist(), strict=True):
            z = mp.mpf(a)
            for value, true in zip(got, (mp.erfc(z), mp.exp(z * z) * mp.erfc(z), mp.erfc(-z / mp.sqrt(2)) / 2), strict=True):
                assert abs(mp.mpf(value) - true) <= 3 * float(np.spacing(value)), (a, value)


def test_erfcx_is_infinite_from_where_it_overflows():
    for dtype, first in (("f8", 26.65), ("f4", 9.42)):
        x = -np.append(np.linspace(first, 28, 300), [1e30, np.inf]).astype(dtype)
        assert (run_compiled(graph_of(sp.erfcx, x), [x])[0] == np.inf).all()


def test_edges_are_scipys():
    x = np.array([0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, 0.5])
    a, b = (v.ravel() for v in np.meshgrid(x, x))
    for name in ("xlogy", "xlog1py", "rel_entr", "kl_div"):
        (got,) = interpret(graph_of(getattr(sp, name), a, b), [a, b])
        np.testing.assert_allclose(got, getattr(sp, name)(a, b), err_msg=name)
    for name in ("entr", "expit", "log_expit", "logit", "erfc", "ndtr", "log_ndtr"):
        (got,) = interpret(graph_of(getattr(sp, name), x), [x])
        np.testing.assert_allclose(got, getattr(sp, name)(x), err_msg=name, rtol=1e-15)


@pytest.mark.parametrize("options", [{}, {"axis": 1}, {"axis": (0, 2)}, {"axis": -1, "keepdims": True}])
def test_logsumexp(options):
    rng = np.random.default_rng(0)
    a = rng.normal(size=(2, 3, 4)) * 50
    a[0, 0] = -np.inf
    for values in (a, a.astype("f4"), np.arange(24).reshape(2, 3, 4)):
        (got,) = interpret(graph_of(sp.logsumexp, values, **options), [values])
        want = sp.logsumexp(values, **options)
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-5 if want.dtype == "f4" else 1e-13)
    weights = rng.normal(size=(3, 4))
    weights[0, 1] = 0
    graph = Graph()
    x, b = (graph.add(Parameter(ArrayType(v.shape, v.dtype)), name=n) for n, v in (("x", a), ("b", weights)))
    with graph.building():
        graph.outputs = list(table.FUNCTIONS[sp.logsumexp](x, b=b, return_sign=True, **options))
    for got, want in zip(interpret(graph, [a, weights]), sp.logsumexp(a, b=weights, return_sign=True, **options), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)


def test_softmax_and_its_logarithm():
    x = np.random.default_rng(1).normal(size=(3, 5)) * 20
    for function in (sp.softmax, sp.log_softmax, sp.softplus):
        for values in (x, x.astype("f4"), np.arange(15).reshape(3, 5)):
            options = {} if function is sp.softplus else {"axis": 1}
            (got,) = interpret(graph_of(function, values, **options), [values])
            want = function(values, **options)
            assert got.dtype == want.dtype
            np.testing.assert_allclose(got, want, rtol=2e-6 if want.dtype == "f4" else 1e-13, atol=1e-30)


def test_the_bessel_function_of_numpy():
    for x in (np.linspace(-20, 20, 9), np.arange(5), np.linspace(-3, 3, 5).astype("f4")):
        (got,) = interpret(graph_of(np.i0, x), [x])
        np.testing.assert_array_equal(got, np.i0(x))
        assert got.dtype == np.i0(x).dtype

"""Convolutions and pooling of jitlab.nn: by their definition, compiled, with slopes, and against JAX where it is there."""

import itertools

import numpy as np
import pytest

import jitlab as jl
from jitlab import nn

rng = np.random.default_rng(0)


def by_definition(x, w, strides, pads, groups=1):
    """A convolution of [N, H, W, C] as six loops."""
    x = np.pad(x, ((0, 0), *pads, (0, 0)))
    rows, columns = ((x.shape[1 + k] - w.shape[k]) // strides[k] + 1 for k in (0, 1))
    result = np.zeros((len(x), rows, columns, w.shape[3]))
    inner, outer = w.shape[2], w.shape[3] // groups
    for i, j, o in itertools.product(range(rows), range(columns), range(w.shape[3])):
        channels = slice(o // outer * inner, (o // outer + 1) * inner)
        window = x[:, i * strides[0] : i * strides[0] + w.shape[0], j * strides[1] : j * strides[1] + w.shape[1], channels]
        result[:, i, j, o] = np.sum(window * w[..., o], axis=(1, 2, 3))
    return result


X, W = rng.normal(size=(2, 6, 5, 4)), rng.normal(size=(3, 2, 4, 6))


def test_a_convolution_is_its_definition():
    np.testing.assert_allclose(nn.conv(X, W, padding="VALID"), by_definition(X, W, (1, 1), ((0, 0), (0, 0))))
    np.testing.assert_allclose(nn.conv(X, W), by_definition(X, W, (1, 1), ((1, 1), (0, 1))))
    np.testing.assert_allclose(nn.conv(X, W, (2, 1), ((2, 0), (1, 1))), by_definition(X, W, (2, 1), ((2, 0), (1, 1))))
    by_groups = by_definition(X, W[:, :, :2], (1, 1), ((0, 0), (0, 0)), groups=2)
    np.testing.assert_allclose(nn.conv(X, W[:, :, :2], padding="VALID", groups=2), by_groups)
    first = nn.conv(X.transpose(0, 3, 1, 2), W.transpose(3, 2, 0, 1), data_format="NCHW")
    np.testing.assert_allclose(first.transpose(0, 2, 3, 1), nn.conv(X, W))


def test_cropping_and_dilation():
    np.testing.assert_allclose(nn.conv(X, W, padding=((-1, 0), (0, -1))), nn.conv(X[:, 1:, :-1], W, padding="VALID"))
    spread = np.zeros((2, 11, 9, 4))
    spread[:, ::2, ::2] = X
    np.testing.assert_allclose(nn.conv(X, W, padding="VALID", lhs_dilation=2), nn.conv(spread, W, padding="VALID"))
    wide = np.zeros((5, 3, 4, 6))
    wide[::2, ::2] = W
    np.testing.assert_allclose(nn.conv(X, W, padding="VALID", rhs_dilation=2), nn.conv(X, wide, padding="VALID"))
    assert nn.conv(X, W[:1, :1], padding=((-6, 0), (0, 0))).shape == (2, 0, 5, 6)


CALLS = {
    "conv": lambda x, w: nn.conv(x, w, (2, 1), "SAME"),
    "dilated": lambda x, w: nn.conv(x, w, 1, ((2, 1), (1, 3)), lhs_dilation=(1, 2), rhs_dilation=(2, 1)),
    "groups": lambda x, w: nn.conv(x, w[:, :, :2], groups=2, padding="VALID"),
    "transpose": lambda x, w: nn.conv_transpose(x, w[..., :4], 2),
    "max": lambda x, w: nn.max_pool(x, 2) * np.sum(w),
    "avg": lambda x, w: nn.avg_pool(x, (2, 3), 1, "SAME") * np.sum(w),
}


@pytest.mark.parametrize("name", CALLS)
def test_compiled_it_is_the_same_and_has_a_slope(name):
    f = CALLS[name]
    np.testing.assert_allclose(jl.function(f, jit_compile=True)(X, W), f(X, W), rtol=1e-12, atol=1e-12)
    weights = rng.normal(size=f(X, W).shape)
    slopes = jl.function(jl.grad(lambda x, w: np.sum(f(x, w) * weights), argnums=(0, 1)))(X, W)
    for k, slope in enumerate(slopes):
        direction = rng.normal(size=slope.shape)
        moved = [[a + step * direction if k == m else a for m, a in enumerate((X, W))] for step in (1e-6, -1e-6)]
        want = np.sum((f(*moved[0]) - f(*moved[1])) * weights) / 2e-6
        np.testing.assert_allclose(np.sum(slope * direction), want, rtol=1e-6, atol=1e-6)


def test_one_and_three_axes():
    x, w = rng.normal(size=(2, 9, 3)), rng.normal(size=(4, 3, 5))
    flat = nn.conv(x[:, :, None], w[:, None], 2)[:, :, 0]
    np.testing.assert_allclose(jl.function(lambda x, w: nn.conv(x, w, 2))(x, w), flat, rtol=1e-12)
    x, w = rng.normal(size=(1, 4, 5, 6, 2)), rng.normal(size=(2, 3, 2, 2, 3))
    got = jl.function(lambda x, w: nn.conv(x, w, padding="VALID", data_format="NDHWC"))(x, w)
    want = sum(nn.conv(x[:, k : k + 3].reshape(3, 5, 6, 2), w[k], padding="VALID") for k in (0, 1))
    np.testing.assert_allclose(got[0], want, rtol=1e-12)


def test_each_is_one_operation():
    report = jl.explain(jl.function(lambda x, w: nn.max_pool(nn.conv(x, w), 2)), X, W)
    assert [op.op for op in report.ops if op.op.startswith(("Conv", "MaxPool"))] == ["Conv2D", "MaxPool"]
    assert all(op.cluster is not None for op in report.ops if op.op in ("Conv2D", "MaxPool"))


def test_of_equal_elements_the_first_takes_the_slope():
    x = np.zeros((1, 2, 2, 1))
    slope = jl.function(jl.grad(lambda x: np.sum(nn.max_pool(x, 2))))(x)
    np.testing.assert_array_equal(slope.ravel(), [1, 0, 0, 0])


def test_activations_are_numpy():
    x, labels = rng.normal(size=(4, 3)) * 5, np.array([0, 2, 1, 1])
    for f in (nn.relu, nn.sigmoid, nn.gelu):
        np.testing.assert_allclose(jl.function(lambda x, f=f: f(x), jit_compile=True)(x), f(x), rtol=1e-12, atol=1e-13)
    loss = nn.softmax_cross_entropy(x, labels)
    np.testing.assert_allclose(loss, nn.softmax_cross_entropy(x, nn.one_hot(labels, 3, float)))
    np.testing.assert_allclose(jl.function(nn.softmax_cross_entropy, jit_compile=True)(x, labels), loss, rtol=1e-12)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda f: f(nn.conv, X[0, 0], W), "spatial axes"),
        (lambda f: f(nn.conv, X, W[0]), "axes"),
        (lambda f: f(nn.conv, X, W[:, :, :3]), "channels"),
        (lambda f: f(nn.conv, X, W, padding="ALL"), "padding"),
        (lambda f: f(nn.conv, X, W, strides=0), "strides"),
        (lambda f: f(nn.conv, X, W, data_format="NCW"), "data_format"),
        (lambda f: f(nn.max_pool, X, (2, 2, 2)), "window"),
    ],
)
def test_what_does_not_fit_is_a_value_error_in_words(call, words):
    with pytest.raises(ValueError, match=words):
        call(lambda f, *args, **options: f(*args, **options))
    with pytest.raises(ValueError, match=words):
        call(lambda f, *args, **options: jl.function(lambda *a: f(*a, **options))(*args))


def test_against_jax():
    lax = pytest.importorskip("jax.lax", reason="JAX is for tests only")
    x, w = X.astype("f4"), W.astype("f4")
    for strides, padding, spread, apart in (((1, 1), "SAME", (1, 1), (1, 1)), ((2, 2), ((0, 0), (1, 2)), (2, 1), (1, 2))):
        want = lax.conv_general_dilated(
            x, w, strides, padding, spread, apart, dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        np.testing.assert_allclose(nn.conv(x, w, strides, padding, spread, apart), want, rtol=2e-5, atol=2e-5)

"""Every operation with a loop body, compiled on its samples, equals its own meaning in NumPy."""

import numpy as np
import pytest

import jitlab.ops
from jitlab.ir import ArrayType
from jitlab.ops import Operation, Reduction
from jitlab.ops.linear_algebra.matrix_products import Product
from jitlab.ops.random_draws import Draw

from .compiling import assert_equal, graph_of, reference, run_compiled


def np_type(a):
    return ArrayType(np.shape(a), np.asarray(a).dtype)


def classes(base=Operation):
    for cls in base.__subclasses__():
        yield cls
        yield from classes(cls)


def samples():
    for cls in dict.fromkeys(classes()):
        if not cls.__module__.startswith("jitlab.ops") or cls.__subclasses__():
            continue
        if cls is Draw:  # what is drawn next is another number: test_native_draws.py
            continue
        for number, (op, *arrays) in enumerate(cls.samples()):
            if type(op) is cls and not op.is_parameter and op.why_not_compiled(*map(np_type, arrays)) is None:
                yield pytest.param(op, arrays, id=f"{cls.__name__}-{number}")


def layouts(arrays):
    """The same values in other memory: Fortran order, every other element, reversed."""
    yield arrays
    if any(np.ndim(a) > 0 for a in arrays):
        yield [np.asfortranarray(a) if np.ndim(a) else a for a in arrays]
        yield [np.repeat(a, 2, axis=-1)[..., ::2] if np.ndim(a) else a for a in arrays]
        yield [np.ascontiguousarray(a[..., ::-1])[..., ::-1] if np.ndim(a) else a for a in arrays]


@pytest.mark.parametrize(("op", "arrays"), list(samples()))
def test_compiled_equals_numpy(op, arrays):
    graph = graph_of(op, *arrays)
    for given in layouts(arrays):
        for got, want in zip(run_compiled(graph, given), reference(graph, given), strict=True):
            if isinstance(op, (Reduction, Product)):
                terms = max(np.size(arrays[0]), 1)
                magnitude = np.sum(np.abs(arrays[0])) * (np.max(np.abs(arrays[1]), initial=0) if len(arrays) > 1 else 1)
                assert_equal(got, want, terms=terms, magnitude=magnitude)
            else:
                assert_equal(got, want, functions=is_function(op, arrays))


def is_function(op, arrays):
    """Within the bounds of docs/reference/numerics.md; the length of a complex number is a hypotenuse, its root a function."""
    return not op.exact or (type(op).__name__ in ("Abs", "Sign", "Sqrt") and any(np.iscomplexobj(a) for a in arrays))


def test_there_are_operations():
    assert len(list(samples())) > 60
    assert jitlab.ops.elementwise.arithmetic.Add in set(classes())

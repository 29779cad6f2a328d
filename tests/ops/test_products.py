"""Products of arrays and einsum through the table: values, dtypes and errors as NumPy has them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jitlab.ir import ArrayType, Graph
from jitlab.ops.leaf_operations import Parameter
from jitlab.ops.library_operations import Library
from jitlab.ops.linear_algebra.matrix_products import BatchMatMul, MatMul
from jitlab.ops.reducing.axis_reductions import Sum
from tests.ops.calling import F, agrees

random = np.random.default_rng(8)
SIZES = {"i": 2, "j": 3, "k": 4, "l": 5}


def array(*shape, dtype="f8"):
    dtype = np.dtype(dtype)
    x = random.normal(size=shape) * 3
    return (x + 1j * random.normal(size=shape) if dtype.kind == "c" else x).astype(dtype)


PAIRS = [
    (array(3), array(3)),
    (array(2, 3), array(3)),
    (array(2, 3), array(2, 3, dtype="c16")),
    (array(5, 1, 3), array(2, 3)),
    (array(3, dtype="i4"), array(3, dtype="i2")),
    (array(3) > 0, array(3) > 0),
    (array(3), array(4)),
    (array(2, 3), array(3, 4)),
    (array(4, 2, 3), array(4, 3, 2, dtype="f4")),
    (array(2, 2, dtype="i4"), array(2, dtype="c8")),
    (array(), array(3)),
    (array(2), array(3, 2, 2)),
    (array(0, 3), array(3)),
]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda p: f"{p[0].dtype}{p[0].shape}-{p[1].dtype}{p[1].shape}")
def test_products_of_two_arrays(pair):
    lin = np.linalg
    for function in (np.dot, np.matmul, lin.matmul, np.outer, lin.outer, np.inner, np.vdot, np.kron):
        agrees(function, *pair, messages=function not in (np.dot, np.vdot))
    for function in (np.vecdot, lin.vecdot, np.matvec, np.vecmat):
        agrees(function, *pair, messages=False)  # where several things are wrong NumPy names one
    if 2 not in (pair[0].shape[-1:] + pair[1].shape[-1:]):
        agrees(np.cross, *pair, messages=False)
        agrees(lin.cross, *pair, messages=False)


def test_axes_of_products():
    agrees(np.vecdot, array(3, 2), array(3, 2), axis=0)
    agrees(np.vecdot, array(3, 2), array(3, 2), axis=0, keepdims=True)
    agrees(np.linalg.vecdot, array(3, 2, dtype="c8"), array(3, 2), axis=0)
    agrees(np.cross, array(3, 4), array(3, 4), axis=0)
    agrees(np.cross, array(3, 4), array(4, 3), axisa=0, axisc=0)
    agrees(np.linalg.cross, array(3, 4), array(3, 4), axis=0)
    for axes in (0, 1, 2, ((1,), (0,)), ([0, 1], [0, 1])):
        agrees(np.linalg.tensordot, array(2, 3, 4), array(3, 4, 5), axes=axes)
    agrees(np.trace, array(2, 3, 4), 1, -2, -1)
    agrees(np.trace, array(3, 4, dtype="i4"), dtype="f4")
    agrees(np.trace, array(3))


@pytest.mark.parametrize(
    "shapes",
    [
        *(((2, 3), (3, 4)), ((2, 3), (3, 4), (4, 5)), ((2, 3), (3, 4), (4, 1)), ((5, 3), (3, 4), (4, 2), (2, 6))),
        *(((3,), (3, 4), (4, 2)), ((3,), (3, 4), (4,)), ((2, 3), (3, 4), (4, 5), (5,)), ((2, 3),), ((2, 3), (3, 4, 1), (4, 5))),
    ],
)
def test_products_of_several_matrices(shapes):
    agrees(np.linalg.multi_dot, [array(*shape) for shape in shapes])


TEXTS = (
    *("ij,jk->ik", "ij,jk", "ij,j", "ij,ij", "ij,ij->", "ii", "ij->ji", "ij->", "ij->j", "i,j", "i,i", "ij,ik->ijk", "ijk,ijk"),
    *("ij,jk,kl", "ij,jk,kl->il", "ij,kj,lj->ikl", "ijk,ijk->ik", "ijk,ik->ij", "ijk,ikl->ijl", "ij,ij,ij->i", "ij,jk,k->"),
    *("ij,kl", "ji,ik->jk", " ij , jk -> k i", "i,j,k->kji", "ijj", "iij->ij", "ij->ij", "i,i->i", "kji,k->ij"),
    "ij,jk,kl,li->",
)
WRONG = ("->", "i->ii", "ij->k", "ij,jk", "i.j", "ij,", "ij->ijj", "ij..", "i-j", "ijk", "i", "i,j,k", "i1")


@pytest.mark.parametrize("dtype", ["f8", "f4", "c8", "i1", "?"])
def test_einsum_of_labelled_axes(dtype):
    for text in TEXTS:
        inputs = text.replace(" ", "").partition("->")[0].split(",")
        sizes = {c: 3 for c in SIZES} if any(len(set(part)) < len(part) for part in inputs) else SIZES
        agrees(np.einsum, text, *(array(*(sizes[c] for c in part), dtype=dtype) for part in inputs))


def test_einsum_says_what_numpy_says_about_subscripts_that_are_wrong():
    for text in WRONG:
        agrees(np.einsum, text, array(2, 3))
    agrees(np.einsum, "ij,jk", array(2, 3), array(4, 5))
    agrees(np.einsum, "ii->i", array(3, 1))
    agrees(np.einsum, "ij,jk", array(2, 3), array(3, 5), dtype="f4")
    agrees(np.einsum, "...i->i", array(2, 3))


def test_other_forms_of_einsum():
    x, y, z = array(2, 3), array(3, 4), array(4, 2)
    agrees(np.einsum, x, [0, 1], y, [1, 2], [0, 2])
    agrees(np.einsum, x, [7, 1], y, [1, 30])
    agrees(np.einsum, x, [Ellipsis, 1], [1, Ellipsis])
    for text in ("...ij,...jk->...ik", "...ij,...jk", "i...,i...", "...,...", "...ij->...ji", "i...->...", "...i,...i->..."):
        count = text.partition("->")[0].count(",") + 1
        agrees(np.einsum, text, *[array(3, 3), array(2, 3, 3)][:count])
    agrees(np.einsum, "...i,...i->...", array(4, 1, 3), array(5, 3))
    agrees(np.einsum, "ij,ij->ij", array(1, 3), array(2, 3))
    agrees(np.einsum, "ij,jk", array(2, 1), array(3, 4))
    agrees(np.einsum, "ij,ij->i", array(2, 1), array(2, 3))
    agrees(np.einsum, "ij,jk", x.astype("f4"), y, dtype="f8")
    agrees(np.einsum, "ij,jk", x.astype("f4"), y.astype("i4"))
    for optimize in (True, "greedy", "optimal", ["einsum_path", (1, 2), (0, 1)], ["einsum_path", (0, 1, 2)]):
        agrees(np.einsum, "ij,jk,kl->il", x, y, z, optimize=optimize)


@st.composite
def contractions(draw):
    """Subscripts of one to three operands over four labels, with an output, and arrays that fit."""
    parts = draw(st.lists(st.text("ijkl", max_size=3), min_size=1, max_size=3))
    used = sorted({c for part in parts for c in part})
    output = draw(st.permutations(used))[: draw(st.integers(0, len(used)))]
    extents = {c: draw(st.integers(0, 3)) for c in "ijkl"}
    dtypes = draw(st.lists(st.sampled_from(("f8", "f4", "i4", "c16")), min_size=3, max_size=3))
    arrays = [array(*(extents[c] for c in part), dtype=d) for part, d in zip(parts, dtypes, strict=False)]
    return f"{','.join(parts)}->{''.join(output)}", arrays


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(contractions())
def test_any_einsum(case):
    text, arrays = case
    agrees(np.einsum, text, *arrays)


def operations(text, *shapes):
    graph = Graph()
    nodes = [graph.add(Parameter(ArrayType(s, np.dtype("f8"))), name=f"x{k}") for k, s in enumerate(shapes)]
    with graph.building():
        graph.outputs = [F[np.einsum](text, *nodes)]
    return [type(node.op) for node in graph.nodes if isinstance(node.op, (MatMul, BatchMatMul, Sum, Library))]


def test_einsum_is_made_of_products_that_compile():
    assert operations("ij,jk->ik", (2, 3), (3, 4)) == [MatMul]
    assert operations("bij,bjk->bik", (5, 2, 3), (5, 3, 4)) == [BatchMatMul]
    assert operations("bij,bj->bi", (5, 2, 3), (5, 3)) == [Sum]  # a product of vectors in a stack: one pass over memory
    assert operations("ijk,jkl->il", (2, 3, 4), (3, 4, 5)) == [MatMul]
    assert operations("ij,jk,k->i", (2, 3), (3, 4), (4,)) == [MatMul, MatMul]
    assert operations("ij->ji", (2, 3)) == []

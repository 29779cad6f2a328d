"""Linear systems, inverses and determinants: `np.linalg`'s own LAPACK calls, one kernel each.

The other operations of `np.linalg` are in the files beside this one; products of arrays, which are made of MatMul and Sum, in
`tensor_products.py`. Matrices are the last two axes, the others are a stack. Dtypes are NumPy's: float32, float64 and their
complex kin stay, integers and bools become float64, float16 is refused as NumPy refuses it.

Gradients: M. Giles, "An extended collection of matrix derivative results for forward and reverse mode algorithmic
differentiation", Oxford 2008. Transposes there are conjugate transposes here, since a cotangent g of y stands for the
differential Re sum(conj(g) dy).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache, reduce
from typing import Any, ClassVar

import numpy as np

from jitlab.errors import NoGradientError
from jitlab.ir import ArrayType, Node, at_least, plain, same_extent
from jitlab.ops.base import Cost, broadcast_shapes
from jitlab.ops.build_nodes import apply, cast, constant
from jitlab.ops.elementwise.arithmetic import (
    Imag,
    add,
    conj,
    divide,
    equal,
    multiply,
    negative,
    real_dtype,
    select,
    subtract,
    zero_like,
)
from jitlab.ops.layout.views import expand_dims, reshape, squeeze, transpose
from jitlab.ops.library_operations import Copying, InC, Library, Lying, Place, UfuncLoop, call, in_double, results_of
from jitlab.ops.numpy_api.arguments import node
from jitlab.ops.registry import rule

from .matrix_products import matmul, swap_last

A = np.array([[4.0, 1.0, -0.5], [0.5, 3.0, 1.0], [-1.0, 0.25, 5.0]])
B = np.array([[1.0, -2.0], [0.5, 3.0], [2.0, 1.0]])
SYMMETRIC = A @ A.T
HERMITIAN = (A + 0.5j * B @ B.T[:, ::-1]) @ np.conj(A + 0.5j * B @ B.T[:, ::-1]).T
FLOAT64 = np.dtype("f8")

#: Where NumPy has its loops over matrices.
LAPACK = "numpy.linalg._umath_linalg"


class MatrixLibrary(Library, family=True):
    """A call of LAPACK on each matrix of a stack; `flops` of one matrix with m rows and n columns."""

    library: ClassVar[str] = "LAPACK"
    may_raise: ClassVar[bool] = True  # LinAlgError

    def loop(self) -> tuple[str, str] | None:
        """The ufunc of NumPy's that is the whole operation, and its signature."""
        return None

    def in_c(self, outs: Sequence[Lying], ins: Sequence[Lying]) -> InC | None:
        loop = self.loop()
        return None if loop is None else by_lapack([loop], outs, ins, says_invalid=self.may_raise)

    def flops(self, m: int, n: int) -> float:
        return 2 / 3 * m * n * min(m, n)

    def cost(self, out: ArrayType, *types: ArrayType) -> Cost:
        x = types[0]
        stack = int(x.size) // max(int(x.shape[-1]) * int(x.shape[-2]), 1)
        work = (4 if x.dtype.kind == "c" else 1) * stack * self.flops(int(x.shape[-2]), int(x.shape[-1]))
        written = sum(t.nbytes for t in self.results(*types))
        return Cost(int(work), sum(t.nbytes for t in types), written)


def by_lapack(
    loops: Sequence[tuple[str, str]], outs: Sequence[Lying], ins: Sequence[Lying], *, says_invalid: bool = True
) -> InC:
    """The loops one after the other, of the operands and the results, which NumPy has in double precision whatever they are."""
    before: list[Copying] = []
    after: list[Copying] = []
    temps: list[Lying] = []
    places: list[Place] = []
    for kind, arrays in (("in", ins), ("out", outs)):
        for number, (dtype, extents) in enumerate(arrays):
            if dtype == in_double(dtype):
                places.append((kind, number))
                continue
            places.append(("temp", len(temps)))
            temps.append((in_double(dtype), extents))
            if kind == "in":
                before.append(Copying(places[-1], (kind, number)))
            else:
                after.append(Copying((kind, number), places[-1]))
    steps = [UfuncLoop(LAPACK, name, signature, tuple(places), says_invalid) for name, signature in loops]
    return InC((*before, *steps, *after), tuple(temps))


class Solve(MatrixLibrary):
    """x with a @ x = b: a[..., m, m], b[..., m, k] -> [..., m, k]. Raises LinAlgError for a singular matrix at run time.

    Gradient: Giles (2008), 2.3.1.
    """

    tf_name: ClassVar[str | None] = "MatrixSolve"
    operands = (
        (A, B), (A.astype("f4"), B.astype("f4")), (np.stack([A, A.T]), B), (A + 0.5j * A[::-1], B - 1j),
        (np.empty((0, 2, 2)), np.empty((0, 2, 3))),
    )

    def numpy(self, *arrays: Any) -> Any:
        return np.linalg.solve(*arrays)

    def loop(self) -> tuple[str, str]:
        return "solve", "(m,m),(m,n)->(m,n)"

    def results(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        a, b = types
        return (ArrayType((*broadcast_shapes(a.shape[:-2], b.shape[:-2]), b.shape[-2], b.shape[-1]), a.dtype),)

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        a, _ = inputs
        of_b = solved(adjoint(a), g)
        return [negative(matmul(of_b, adjoint(out))), of_b]


class Inv(MatrixLibrary):
    """The inverse of each matrix. A singular one raises LinAlgError at run time, or gives NaNs if `quiet`.

    Gradient: Giles (2008), 2.2.3.
    """

    quiet: bool = False
    tf_name: ClassVar[str | None] = "MatrixInverse"

    @property
    def may_raise(self) -> bool:  # type: ignore[override]
        return not self.quiet

    def numpy(self, a: Any) -> Any:
        try:
            return np.linalg.inv(a)
        except np.linalg.LinAlgError:
            if not self.quiet:
                raise
        if a.ndim == 2:
            return np.full_like(a, np.nan)
        return np.stack([self.numpy(one) for one in a])

    def loop(self) -> tuple[str, str]:
        return "inv", "(m,m)->(m,m)"

    def in_c(self, outs: Sequence[Lying], ins: Sequence[Lying]) -> InC | None:
        return by_lapack([self.loop()], outs, ins)

    def flops(self, m: int, n: int) -> float:
        return 2 * m * m * n

    def results(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        return types

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        turned = adjoint(out)
        return [negative(matmul(matmul(turned, g), turned))]

    @classmethod
    def samples(cls) -> Iterator[tuple[Any, ...]]:
        yield cls(), A
        yield cls(), np.stack([A, A.T]).astype("f4")
        yield cls(), A + 0.5j * A[::-1]
        yield cls(), np.empty((2, 0, 0))
        yield cls(quiet=True), np.stack([A, np.ones((3, 3))])


class Det(MatrixLibrary):
    """The determinant of each matrix.

    Gradient: conj(det) times the inverse's adjoint, Giles (2008), 2.2.4; of a singular matrix it raises LinAlgError.
    """

    may_raise: ClassVar[bool] = False
    tf_name: ClassVar[str | None] = "MatrixDeterminant"
    operands = (A,), (np.stack([A, A.T]).astype("f4"),), (A + 0.5j * A[::-1],), (np.empty((2, 0, 0)),)

    def numpy(self, a: Any) -> Any:
        return np.linalg.det(a)

    def loop(self) -> tuple[str, str]:
        return "det", "(m,m)->()"

    def results(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        (a,) = types
        return (ArrayType(a.shape[:-2], a.dtype),)

    def gradient(self, g: Node, out: Node, *inputs: Node) -> Sequence[Node | None]:
        (a,) = inputs
        return [multiply(_as_matrix(multiply(g, conj(out))), adjoint(apply(Inv(), a)))]


class SlogDet(MatrixLibrary):
    """Sign (of a complex matrix: a number on the unit circle) and logarithm of the absolute value of each determinant.

    Gradient: d log|det| = Re t and d sign = i sign Im t with t = trace(a^-1 da), from Giles (2008), 2.2.4.
    """

    may_raise: ClassVar[bool] = False
    tf_name: ClassVar[str | None] = "LogMatrixDeterminant"
    operands = (A,), (np.stack([A, -A.T]).astype("f4"),), (A + 0.5j * A[::-1],), (np.empty((2, 0, 0)),)

    def numpy(self, a: Any) -> Any:
        return tuple(np.linalg.slogdet(a))

    def loop(self) -> tuple[str, str]:
        return "slogdet", "(m,m)->(),()"

    def results(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        (a,) = types
        return ArrayType(a.shape[:-2], a.dtype), ArrayType(a.shape[:-2], real_dtype(a.dtype))

    def gradient(self, g: Any, out: Node, *inputs: Node) -> Sequence[Node | None]:
        (a,) = inputs
        of_sign, of_log = g
        weight = None if of_log is None else cast(of_log, a.dtype)
        if of_sign is not None and a.dtype.kind == "c":
            sign, _ = results_of(out)
            turning = apply(Imag(), multiply(of_sign, conj(sign)))  # Re(conj(g) i sign) of what Im t weighs
            turned = multiply(cast(turning, a.dtype), 1j)
            weight = total(weight, turned)
        if weight is None:
            return [None]
        return [multiply(_as_matrix(weight), adjoint(apply(Inv(), a)))]


# rules


@rule(np.linalg.solve)
def solve(a: Any, b: Any) -> Node:
    x, y = node(a), node(b)
    check_square(x)
    dtype = linalg_dtype(x.dtype, y.dtype)
    x, y = cast(x, dtype), cast(y, dtype)
    vector = y.ndim == 1
    if y.ndim == 0 or not same_extent(x.shape[-1], y.shape[-1 if vector else -2]):
        numpys_error(np.linalg.solve, x.type, y.type)
    result = apply(Solve(), x, expand_dims(y, (1,)) if vector else y)
    return squeeze(result, (result.ndim - 1,)) if vector else result


@rule(np.linalg.inv)
def inv(a: Any) -> Node:
    return apply(Inv(), square(a))


@rule(np.linalg.det)
def det(a: Any) -> Node:
    return apply(Det(), square(a))


@rule(np.linalg.slogdet)
def slogdet(a: Any) -> Any:
    return named(np.linalg.slogdet, call(SlogDet(), square(a)))


@rule(np.linalg.tensorsolve)
def tensorsolve(a: Any, b: Any, axes: Any = None) -> Node:
    x, y = node(a), node(b)
    if axes is not None:
        order = list(range(x.ndim))
        for axis in axes:
            order.remove(axis)
            order.insert(x.ndim, axis)
        x = transpose(x, order)
    unknown = x.shape[-(x.ndim - y.ndim) :]
    count = math.prod(unknown)
    if not same_extent(x.type.size, count * count):
        requirement = "prod(a.shape[b.ndim:]) == prod(a.shape[:b.ndim])"
        raise np.linalg.LinAlgError("Input arrays must satisfy the requirement " + " " * 12 + requirement)
    return reshape(solve(reshape(x, (count, count)), reshape(y, (y.type.size,))), unknown)


# helpers for this family


def adjoint(x: Node) -> Node:
    """The conjugate transpose of each matrix."""
    return swap_last(conj(x))


def solved(a: Node, b: Node) -> Node:
    """a^-1 @ b of stacks of matrices."""
    return apply(Solve(), a, b)


def hermitian_part(x: Node) -> Node:
    """(x + x^H) / 2."""
    return multiply(add(x, adjoint(x)), 0.5)


def linalg_dtype(*dtypes: np.dtype) -> np.dtype:
    """The dtype in which `np.linalg` answers: single only where all are. Raises TypeError for those it refuses."""
    for dtype in dtypes:
        if dtype == np.dtype("f2"):
            raise TypeError(f"array type {dtype.name} is unsupported in linalg")
    single = all(dtype.str[1:] in ("f4", "c8") for dtype in dtypes)
    if any(dtype.kind == "c" for dtype in dtypes):
        return np.dtype("c8" if single else "c16")
    return np.dtype("f4" if single else "f8")


def matrices(a: Any) -> Node:
    """A stack of matrices in a dtype of `np.linalg`."""
    x = node(a)
    check_matrices(x)
    return cast(x, linalg_dtype(x.dtype))


def square(a: Any) -> Node:
    """A stack of square matrices in a dtype of `np.linalg`."""
    x = node(a)
    check_square(x)
    return cast(x, linalg_dtype(x.dtype))


def check_matrices(x: Node) -> None:
    """Raises NumPy's LinAlgError for less than two axes."""
    if x.ndim < 2:
        raise np.linalg.LinAlgError(f"{x.ndim}-dimensional array given. Array must be at least two-dimensional")


def check_square(x: Node) -> None:
    """Raises NumPy's LinAlgError unless these are square matrices."""
    check_matrices(x)
    if not same_extent(x.shape[-1], x.shape[-2]):
        raise np.linalg.LinAlgError("Last 2 dimensions of the array must be square")


def least(m: int, n: int) -> int:
    """The smaller extent, with its polynomial."""
    return n if at_least(m - n, 0) else m


def numpys_error(function: Callable[..., Any], *types: ArrayType, **options: Any) -> None:
    """Raise what NumPy raises for operands of these types: it looks at the shapes before it computes."""
    function(*(np.broadcast_to(np.ones((), t.dtype), plain(t.shape)) for t in types), **options)
    raise AssertionError(f"{function.__name__} takes {types}")


def named(function: Callable[..., Any], parts: Any) -> Any:
    """The results in the named tuple that NumPy's function gives."""
    return _kind_of_result(function)(*parts)


@cache
def _kind_of_result(function: Callable[..., Any]) -> Any:
    return type(function(np.eye(1)))


def inverse_differences(x: Node) -> Node:
    """1 / (x[..., j] - x[..., i]) at [..., i, j], 0 where they are equal."""
    apart = subtract(expand_dims(x, (x.ndim - 1,)), expand_dims(x, (x.ndim,)))
    nothing = equal(apart, 0)
    return select(nothing, zero_like(apart), divide(1, select(nothing, constant(1, apart.dtype), apart)))


def total(*parts: Node | None) -> Node | None:
    """The sum of those that there are."""
    given = [part for part in parts if part is not None]
    return reduce(add, given) if given else None


def no_gradient(out: Node, what: str, why: str, hint: str) -> NoGradientError:
    """For operations that have a gradient in some of their results or forms only."""
    where = "; ".join(source.place for source in sorted(out.sources))
    return NoGradientError(what, where=where, why=why, hint=hint)


def _as_matrix(x: Node) -> Node:
    return expand_dims(x, (x.ndim, x.ndim + 1))

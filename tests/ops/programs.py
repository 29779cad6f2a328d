"""NumPy calls as data: each can be run by NumPy and built into a graph, so that any way of running the graph can be tested.

`Program.expected()` is what NumPy gives; `Program.graph()` the graph and the arrays for its parameters; `same` compares.
`every_program()` lists the calls of all entries of the table; `strategies` below make more of them with hypothesis.
"""

from __future__ import annotations

import itertools
from collections import ChainMap
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from jitlab.capture.numpy_calls.functions import call_function
from jitlab.capture.numpy_calls.numpy_source import FFT_FROM_SOURCE, FROM_SOURCE
from jitlab.capture.state import Capture
from jitlab.capture.tracers.arrays import current
from jitlab.ir import ArrayType, Extent, Graph, Node, current_graph
from jitlab.ops import apply, as_node, table
from jitlab.ops.layout.indexing import basic_index, is_basic
from jitlab.ops.leaf_operations import Parameter

DTYPES = ("bool", "i1", "i4", "i8", "u1", "u8", "f2", "f4", "f8", "c8", "c16")
FLOATS, REALS = ("f4", "f8"), ("bool", "i4", "u1", "i8", "f4", "f8")


def sourced(function: Any) -> Any:
    """What stands for the rule of a function whose own source is recorded: it adds nodes to the graph that is being built."""

    def build(*args: Any, **options: Any) -> Any:
        capture = Capture(function.__name__)
        capture.graph = capture.root = current_graph()
        capture.in_numpy = True  # errors are NumPy's, not yet explained

        def tensor(x: Any) -> Any:
            return capture.fresh(x, is_scalar=True) if isinstance(x, Node) else x

        token = current.set(capture)
        try:
            result = capture.perform(call_function, function, _replaced(args, tensor), _replaced(options, tensor))
            return tuple(map(capture.lower, result)) if isinstance(result, (list, tuple)) else as_node(capture.lower(result))
        finally:
            current.reset(token)

    return build


#: The rules of the table, and what stands for those of functions whose own source is recorded.
SOURCED = FROM_SOURCE | {getattr(np.fft, name) for name in FFT_FROM_SOURCE}
F = ChainMap({function: sourced(function) for function in SOURCED}, table.FUNCTIONS)


@dataclass(frozen=True)
class Written:
    """An argument that stays in the program; other arrays and NumPy scalars are inputs of the graph."""

    value: Any


@dataclass
class Program:
    """One call: of a function, of a method, attribute or operator (by name) of the first argument."""

    what: Any  # the callee, or the name
    args: tuple[Any, ...]
    options: dict[str, Any] = field(default_factory=dict)
    kind: str = "function"  # "method", "attribute", "operator" (the first argument is an array), "update" (writes into it)
    exact: bool = True  # bit for bit; else within the bound of docs/reference/numerics.md

    def __str__(self) -> str:
        name = self.what if isinstance(self.what, str) else getattr(self.what, "__name__", str(self.what))
        if isinstance(self.what, np.ufunc) or hasattr(self.what, "__self__"):
            name = getattr(getattr(self.what, "__self__", None), "__name__", "") + "." + name
        texts = [_text(a) for a in self.args] + [f"{k}={_text(v)}" for k, v in self.options.items()]
        return f"{name.lstrip('.')}({', '.join(texts)})"

    def expected(self) -> Any:
        """What NumPy gives. The arguments are copied, so nothing is written into them."""
        args = _replaced(self.args, lambda a: a.copy() if isinstance(a, np.ndarray) else a)
        options = _replaced(self.options, lambda a: a)
        first, rest = (args[0], args[1:]) if args else (None, ())
        with np.errstate(all="ignore"):
            match self.kind:
                case "function":
                    return self.what(*args, **options)
                case "attribute":
                    return getattr(first, self.what)
                case "update":
                    if isinstance(self.what, str):
                        getattr(first, self.what)(*rest, **options)
                    else:
                        self.what(*args, **options)
                    return first
            result = getattr(first, self.what)(*rest, **options)
            if result is NotImplemented:
                raise TypeError("unsupported operand")
            return result

    def graph(self, symbolic: bool = True) -> tuple[Graph, list[Any]]:
        """The graph of the call and the arrays for its parameters; `symbolic`: extents carry symbols."""
        graph, arrays = Graph(), []

        def parameter(a: Any) -> Any:
            if not isinstance(a, (np.ndarray, np.generic)):
                return a
            name = f"x{len(arrays)}"
            arrays.append(a)
            shape = tuple(Extent.symbol(f"{name}n{axis}", n) if symbolic else n for axis, n in enumerate(np.shape(a)))
            return graph.add(Parameter(ArrayType(shape, a.dtype)), name=name)

        args, options = _replaced(self.args, parameter), _replaced(self.options, parameter)
        with graph.building():
            graph.outputs = _flat(self.build(args, options))
        return graph, arrays

    def build(self, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Look the call up as capture does: views first."""
        first, rest = (args[0], args[1:]) if args else (None, ())
        by_kind = {
            "function": (table.VIEWS, F),
            "method": (table.VIEW_METHODS, table.METHODS),
            "attribute": (table.VIEW_ATTRIBUTES, table.ATTRIBUTES),
            "operator": ({}, table.OPERATORS),
            "update": ({}, table.UPDATE_METHODS if isinstance(self.what, str) else table.UPDATES),
        }
        views, values = by_kind[self.kind]
        if self.what == "__getitem__" and is_basic(rest[0]):
            return apply(basic_index(first.type, rest[0]), first)
        if self.what in views and isinstance(first, Node):
            steps = views[self.what](first.type, *rest, **options)
            if steps is not None:
                if steps and isinstance(steps[0], list):
                    return [_applied(some, first) for some in steps]
                return _applied(steps, first) if steps or self.what not in _LISTS else []
        return values[self.what](*args, **options)


_LISTS = (np.array_split,)


def same(got: Any, want: Any, exact: bool = True) -> None:
    """AssertionError unless dtype, shape and values agree: bit for bit (NaN = NaN, signs of zero kept), or closely."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.dtype == want.dtype, f"dtype {got.dtype}, NumPy has {want.dtype}"
    assert got.shape == want.shape, f"shape {got.shape}, NumPy has {want.shape}"
    if not exact and got.dtype.kind in "fc":
        eps = float(np.finfo(got.dtype).eps)
        scale = np.max(np.abs(want), initial=0, where=np.isfinite(want))
        np.testing.assert_allclose(got, want, rtol=64 * eps, atol=16 * eps * float(scale))
        return
    if got.dtype.kind == "c":
        same(got.real, want.real)
        same(got.imag, want.imag)
        return
    equal = got == want
    if got.dtype.kind == "f":
        equal = (equal & (np.signbit(got) == np.signbit(want))) | (np.isnan(got) & np.isnan(want))
    assert np.all(equal), f"{got!r}, NumPy has {want!r}"


def sample(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> np.ndarray:
    """An array of ordinary numbers: no NaN, no overflow, both signs."""
    random = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return random.random(shape) > 0.5
    if dtype.kind in "iu":
        return random.integers(0 if dtype.kind == "u" else -9, 10, shape).astype(dtype)
    x = np.round(random.normal(size=shape) * 2, 3)
    if dtype.kind == "c":
        return (x + 1j * np.round(random.normal(size=shape), 3)).astype(dtype)
    return x.astype(dtype)


def layouts(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> Iterator[np.ndarray]:
    """The same shape contiguous, strided, backwards and transposed."""
    yield sample(shape, dtype, seed)
    if shape:
        wide = sample((*shape[:-1], 2 * shape[-1]), dtype, seed)
        yield wide[..., ::2]
        yield sample(shape, dtype, seed)[::-1]
        yield sample(shape[::-1], dtype, seed).T


def elementwise_programs() -> Iterator[Program]:
    shapes = [(), (0,), (5,), (2, 3)]
    ours = {u for u in vars(np).values() if isinstance(u, np.ufunc)}  # the table learns SciPy's when a program uses them
    for ufunc in sorted(ours.intersection(table.FUNCTIONS), key=lambda u: u.__name__):
        exact = ufunc not in (np.deg2rad, np.rad2deg, np.radians, np.degrees, np.power, np.float_power)
        if ufunc.signature is not None:
            continue
        if ufunc.nin == 1:
            for dtype in DTYPES:
                certain = exact and not (ufunc is np.square and dtype[0] == "c")  # NumPy's own bits vary with alignment
                for shape in shapes:
                    yield Program(ufunc, (sample(shape, dtype),), exact=certain)
            for x in layouts((3, 4), "f8"):
                yield Program(ufunc, (x,), exact=exact)
            yield Program(ufunc, (sample((4,), "f8"),), {"dtype": Written(np.dtype("f4"))}, exact=exact)
            yield Program(ufunc, (np.array([np.nan, np.inf, -np.inf, 0.0, -0.0]),), exact=exact)
            yield Program(ufunc, ([1.5, 2.0],), exact=exact)
        else:
            for left, right in itertools.product(DTYPES, DTYPES):
                yield Program(ufunc, (sample((2, 3), left), _exponent(ufunc, sample((3,), right, 1))), exact=exact)
            for number in (True, 3, 2.5, 1.5 - 2j):
                for dtype in DTYPES:
                    yield Program(ufunc, (sample((4,), dtype), number), exact=exact)
                    yield Program(ufunc, (number, _exponent(ufunc, sample((4,), dtype))), exact=exact)
                yield Program(ufunc, (np.float32(1.5), number), exact=exact)
            for x in layouts((3, 4), "f8"):
                yield Program(ufunc, (x, sample((3, 1), "f8", 2)), exact=exact)
            yield Program(ufunc, (sample((0, 3), "f4"), sample((1, 3), "f4")), exact=exact)
            yield Program(ufunc, (sample((3,), "f8"), [1.5, 2.0, -1.0]), exact=exact)
            yield Program(ufunc, (sample((3,), "f4"), sample((3,), "f4", 1)), {"dtype": Written(np.dtype("f8"))}, exact=exact)
            yield Program(ufunc, (sample((3,), "f8"), sample((4,), "f8")))  # shapes that do not broadcast
            special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0])
            yield Program(ufunc, (special[:, None], special), exact=exact)
            if ufunc is not np.divmod:
                yield Program(ufunc.outer, (sample((3,), "f8"), sample((2, 2), "f8", 1)), exact=exact)
    x, y = sample((2, 3), "f8"), sample((3,), "f8", 1)
    for c in (x > 0, x, sample((2, 3), "i4"), np.bool_(True)):
        yield Program(np.where, (c, x, y))
        yield Program(np.where, (c, x, 0))
        yield Program(np.where, (c, sample((3,), "u1"), -1))
        yield Program(np.where, (c, 1000, sample((3,), "i1")))
        yield Program(np.where, (c, 1, 2.5))
        yield Program(np.where, (c, sample((3,), "f4"), 1.5))
        yield Program(np.where, (c, sample((3,), "i1"), np.float32(2)))
    yield Program(np.where, (x > 0, x, sample((4,), "f8")))
    yield Program(np.select, ([x > 1, x > 0], [x, 2 * x], 7.5))
    yield Program(np.select, ([x > 1, x > 0], [1, y]))
    for low, high in ((None, None), (-1, 1), (None, 0.5), (-1, None), (y, 2.0), (-0.0, 0.0), (0.5, -0.5)):
        for dtype in ("f4", "f8", "i4"):
            yield Program(np.clip, (sample((2, 3), dtype), low, high))
        yield Program("clip", (sample((4,), "f8"), *((low, high) if low is not y else (0.0, high))), kind="method")
    yield Program(np.clip, (np.array([np.nan, -0.0, 0.0, np.inf]), -0.0, 1.0))
    yield Program(np.clip, (sample((3,), "u1"), -1, 5))
    for decimals, dtype in itertools.product((0, 1, 3, -1), ("f4", "f8", "i8")):
        if dtype != "i8" or decimals >= 0:
            yield Program(np.round, (100 * sample((5,), dtype), decimals))
    yield Program(np.around, (sample((5,), "f8"),), {"decimals": 2})
    yield Program("round", (sample((5,), "f8"), 1), kind="method")
    yield Program(np.fix, (3 * sample((5,), "f8"),))
    for dtype in ("f4", "i4", "c8", "c16"):
        for function in (np.real, np.imag, np.conj, np.angle):
            yield Program(function, (sample((2, 3), dtype),))
        for name in ("real", "imag"):
            yield Program(name, (sample((2, 3), dtype),), kind="attribute")
        for name in ("conj", "conjugate"):
            yield Program(name, (sample((2, 3), dtype),), kind="method")
    yield Program(np.angle, (sample((4,), "c16"), True), exact=False)
    special = np.array([1.0, np.nan, np.inf, -np.inf, 2.0])
    yield Program(np.isclose, (special, np.array([1.0 + 1e-9, np.nan, np.inf, np.inf, 2.1])))
    yield Program(np.isclose, (special, special), {"equal_nan": True})
    yield Program(np.nan_to_num, (special,))
    yield Program(np.nan_to_num, (special.astype("f4"),), {"nan": 1.0, "posinf": 5.0})
    for dtype in DTYPES:
        for scalar in (np.float64, np.float32, np.int32, np.bool_, np.complex64, np.uint8):
            yield Program(scalar, (np.abs(sample((3,), dtype)),))
        yield Program("astype", (np.abs(sample((2, 2), dtype)), Written(np.dtype("f4"))), kind="method")
        yield Program("astype", (np.abs(sample((2, 2), dtype)), int), kind="method")
        yield Program("copy", (sample((2, 2), dtype),), kind="method")
    yield Program("astype", (sample((2,), "f8"), "i4"), {"casting": "safe"}, kind="method")
    yield Program(abs, (sample((3,), "f8"),))
    yield Program(max, (np.float64(2), 3.0))
    yield Program(min, (np.float64(2), 1.0, np.float64(-1)))
    yield Program(max, (np.float64(np.nan), np.float64(1)))
    yield Program(max, (np.float64(1), np.float64(np.nan)))
    yield Program(round, (np.float64(2.345), 2))
    yield Program(divmod, (sample((3,), "f8"), 0.75))
    yield Program(np.divmod, (sample((3,), "i4"), 4))


def _exponent(ufunc: np.ufunc, y: np.ndarray) -> np.ndarray:
    """Exponents of integers are not negative."""
    return np.abs(y) if ufunc is np.power and y.dtype.kind == "i" else y


def operator_programs() -> Iterator[Program]:
    binary = "add sub mul truediv floordiv mod pow and or xor lshift rshift divmod matmul".split()
    for name in binary:
        for dtype in ("bool", "i4", "f4", "f8", "c16"):
            x, y = sample((3, 3), dtype), sample((3, 3), dtype, 1)
            if name in ("pow", "lshift", "rshift") and dtype != "c16":
                y = np.abs(y)
            yield Program(f"__{name}__", (x, y), kind="operator", exact=name != "pow")
            if name not in ("matmul",):
                for number in (2, 2.0, True):
                    yield Program(f"__{name}__", (x, number), kind="operator", exact=name != "pow")
                    yield Program(f"__r{name}__", (y, number), kind="operator", exact=name != "pow")
    for dtype in ("bool", "i1", "u8", "f4", "f8", "c16"):
        x, y = sample((4,), dtype), sample((4,), dtype, 1)
        for name in ("lt", "le", "gt", "ge", "eq", "ne"):
            for other in (y, 1, 0.5, 300, -1, 2**70):
                yield Program(f"__{name}__", (x, other), kind="operator")
        for name in ("neg", "pos", "abs", "invert"):
            yield Program(f"__{name}__", (x,), kind="operator")
    base = np.array([0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan])
    for exponent in (0, 1, 2, 3, -1, -2, 0.5, -0.5, 1.0, 2.0, 3.5, -1.0, 0.0):
        for x in (base, base.astype("f4"), np.array([1, 2, -3]), np.array([True, False]), np.float64(1.5)):
            yield Program("__pow__", (x, exponent), kind="operator", exact=False)
            yield Program(np.power, (x, exponent), exact=False)


AXES = (None, 0, -1, 1, (0, 1), (), (1, 0), 3, (0, 0))


def reduction_programs() -> Iterator[Program]:
    names = "sum prod max min any all argmax argmin mean var std count_nonzero ptp".split()
    for name in names:
        exact = name not in ("var", "std")
        function = getattr(np, name)
        for dtype in DTYPES:
            yield Program(function, (sample((3, 4), dtype),), exact=exact)
            yield Program(function, (sample((3, 4), dtype),), {"axis": 0, "keepdims": True}, exact=exact)
            yield Program(function, (sample((), dtype),), exact=exact)
        for axis in AXES:
            yield Program(function, (sample((2, 3, 2), "f8"),), {"axis": axis}, exact=exact)
            if name not in ("count_nonzero", "ptp"):
                yield Program(name, (sample((2, 3), "f4"),), {"axis": axis, "keepdims": True}, kind="method", exact=exact)
        for shape, axis in (((0,), None), ((0, 3), 0), ((0, 3), 1), ((3, 0), 1), ((), 0), ((), -1), ((), 1)):
            yield Program(function, (sample(shape, "f8"),), {"axis": axis}, exact=exact)
        for x in layouts((5, 4), "f8"):
            yield Program(function, (x,), {"axis": 1}, exact=exact)
        nan = sample((3, 4), "f8")
        nan[0, 1] = nan[2, 2] = np.nan
        yield Program(function, (nan,), {"axis": 0}, exact=exact)
        yield Program(function, (np.array([[3, 7, 7], [7, 7, 3]]),), {"axis": 1}, exact=exact)
        yield Program(function, ([[1.5, 2.0], [0.0, 4.0]],), exact=exact)
    for name in ("sum", "prod", "mean"):
        for dtype, wanted in itertools.product(("bool", "i4", "f4", "f8"), ("i1", "f4", "f8", "c16")):
            if name != "mean" or wanted[0] in "fc":
                program = Program(getattr(np, name), (sample((3, 4), dtype),), {"dtype": Written(np.dtype(wanted)), "axis": 0})
                program.exact = False
                yield program
    for name in ("var", "std"):
        for ddof in (1, 2, 12, 0.5):
            yield Program(getattr(np, name), (sample((3, 4), "f8"),), {"ddof": ddof}, exact=False)
        yield Program(getattr(np, name), (sample((3, 4), "f8"),), {"correction": 1, "axis": 1}, exact=False)
    for reduce in (np.add.reduce, np.multiply.reduce, np.maximum.reduce, np.minimum.reduce, np.logical_or.reduce):
        yield Program(reduce, (sample((3, 4), "f8"),))
        yield Program(reduce, (sample((3, 4), "f8"), 1), {"keepdims": True})
    yield Program(np.logical_and.reduce, (sample((3, 4), "f8"), None))
    yield Program(np.average, (sample((3, 4), "f8"), 1))
    yield Program(np.trace, (sample((3, 4), "f8"),))
    yield Program(np.trace, (sample((3, 4, 2), "i4"), 1, 2, 0))
    for x in (sample((4,), "f8"), sample((3, 2), "i1"), sample((3,), "bool"), [np.float64(1.5), 2, np.float64(3)]):
        yield Program(sum, (x,), exact=False)
    yield Program(sum, (sample((4,), "f8"), 2.5), exact=False)
    for options in ({}, {"axis": 0}, {"axis": 1, "keepdims": True}, {"ord": 2, "axis": 1}):
        for dtype in ("f8", "f4", "i4", "c16"):
            yield Program(np.linalg.norm, (sample((3, 4), dtype),), options, exact=False)


def creation_programs() -> Iterator[Program]:
    for function in (np.zeros, np.ones):
        for shape in (3, (2, 3), (), (0, 2), [2, 2], -1, (2, -3)):
            yield Program(function, (shape,))
        yield Program(function, ((2, 3), int))
        yield Program(function, ((2, 3),), {"dtype": "complex64"})
    x = sample((2, 3), "f4")
    for function in (np.zeros_like, np.ones_like):
        yield Program(function, (x,))
        yield Program(function, (x,), {"dtype": bool, "shape": (4,)})
    for value in (3, 2.5, True, np.float32(2), sample((3,), "i4")):
        yield Program(np.full, ((2, 3), value))
        yield Program(np.full, ((2, 3), value, "f8"))
        yield Program(np.full_like, (x, value))
    yield Program(np.full, ((2, 3), 300, "i1"))
    yield Program(np.full, ((2, 3), sample((2,), "f8")))
    yield Program(np.full, ((2, 3), sample((1, 1, 3), "f8")))
    yield Program(np.insert, (sample((5,), "f8"), Written([1, 2, 2]), sample((1, 3), "f8")))
    bounds = ((5,), (2, 7), (7, 2), (0, 10, 3), (10, 0, -3), (0.5,), (0, 1, 0.1), (1, 0, -0.3), (0.1, 0.9, 0.2), (3, 3), (0,))
    bounds += ((0, 1, np.inf), (0, -1, -np.inf), (0, 1, -np.inf), (5, 5, np.inf), (0, 5e-324, 2.0), (0, -5e-324, 2.0))
    for args in bounds:
        yield Program(np.arange, args)
        yield Program(np.arange, args, {"dtype": "f4"})
        yield Program(np.arange, args, {"dtype": "f2"})
    yield Program(np.arange, (5,), {"dtype": "u1"})
    for written in ([2**63 + 1, 3], [[2**64 - 1], [1]], (2**53 + 1, 2), [300, 1], [-1, 2.5], [], [[1, 2], [3]], [True, 0.25]):
        yield Program(np.array, (written,), {"dtype": "u8"})
        yield Program(np.asarray, (written, "i1"))
        yield Program(np.array, (written,), {"dtype": "f4"})
    yield Program(np.arange, (0, 5, 0))
    yield Program(np.arange, (5, None, 2))
    ends = ((0, 1), (0, 1, 5), (3, -2, 7), (0.1, 0.7, 4, False), (2, 2, 3), (0, 1, 1), (0, 1, 0), (0, 1, -1), (0, 1, 1, False))
    for args in ends:
        yield Program(np.linspace, args)
        yield Program(np.linspace, args, {"dtype": "i4"})
        yield Program(np.linspace, args, {"dtype": "f4"})
    yield Program(np.linspace, (np.float32(0.1), np.float32(0.7), 5))
    yield Program(np.linspace, (0, np.float64(5e-324), 4))
    for args in ((3,), (3, 4), (3, 4, 1), (4, 3, -2), (3, None, 5), (0,)):
        yield Program(np.eye, args)
        yield Program(np.tri, args)
    yield Program(np.eye, (3,), {"dtype": "i4"})
    yield Program(np.identity, (3,))
    for function, k in itertools.product((np.tril, np.triu), (0, 1, -1)):
        yield Program(function, (sample((3, 4), "f8"), k))
        yield Program(function, (sample((2, 3, 3), "i4"), k))
        yield Program(function, (sample((3,), "f8"), k))
    for k in (0, 1, -2, 5):
        yield Program(np.diag, (sample((3,), "f8"), k))
        yield Program(np.diag, (sample((3, 4), "i4"), k))
    for value in (1, 2.5, [1, 2], [[1, 2], [3.5, 4]], [np.float64(1), 2], [np.float32(1), 2], [[np.int8(1), 2], [3, True]], []):
        yield Program(np.array, (value,))
        yield Program(np.asarray, (value,))
        yield Program(np.array, (value,), {"dtype": "f4"})
    yield Program(np.array, ([sample((3,), "f8"), sample((3,), "f4"), [1, 2, 3]],))
    yield Program(np.array, ([sample((3,), "f8"), 2.0],))
    yield Program(np.array, (sample((3,), "f8"),), {"ndmin": 3})
    yield Program(np.asarray, (sample((3,), "f8"), "f4"))
    yield Program(np.asarray, (sample((3,), "f8"),))
    yield Program(np.ascontiguousarray, (sample((3, 2), "f8").T,))
    yield Program(np.copy, (sample((3, 2), "f8"),))
    for options in ({}, {"indexing": "ij"}, {"sparse": True}):
        yield Program(np.meshgrid, (sample((3,), "f8"), sample((2,), "i4"), sample((4,), "f4")), options)
        yield Program(np.meshgrid, (sample((3,), "f8"), np.float64(1)), options)
    yield Program(np.broadcast_arrays, (sample((3,), "f8"), sample((2, 1), "i4"), 2.5))
    yield Program(np.indices, ((2, 3),))
    yield Program(np.indices, ((2, 3), float), {"sparse": True})


def joining_programs() -> Iterator[Program]:
    x, y, v, w = sample((2, 3), "f8"), sample((2, 3), "f4", 1), sample((3,), "i4"), sample((3,), "f8")
    for axis in (0, 1, -1, None, 2):
        yield Program(np.concatenate, ([x, y],), {"axis": axis})
        yield Program(np.stack, ([x, y],), {"axis": 0 if axis is None else axis})
    yield Program(np.concatenate, ((v, w, [1, 2]),))
    yield Program(np.concatenate, ([x, sample((2, 0), "f8")], 1))
    yield Program(np.concatenate, ([v, w],), {"dtype": "c8"})
    yield Program(np.concatenate, ([w, v],), {"dtype": "i4"})
    yield Program(np.concatenate, ([x, v],))
    yield Program(np.concatenate, ([x, sample((2, 4), "f8")],))
    yield Program(np.concatenate, ([np.float64(1), np.float64(2)],))
    f4, i1 = np.float32(1), np.int8(1)
    for several in ([f4, 1.0], [np.array([i1]), 300], [i1, 2.5], [np.array([f4]), 3, True], [1, 2.5], [[1.0], f4]):
        yield Program(np.concatenate, (several,), {"axis": None})
        yield Program(np.choose, ([0, 1, 0], several[:2]))
    yield Program(np.concatenate, ([],))
    yield Program(np.stack, ([x, v],))
    yield Program(np.stack, ([np.float64(1), 2, 3.5],))
    for function in (np.vstack, np.hstack, np.dstack, np.column_stack):
        for parts in ([x, y], [v, w], [np.float64(1), np.float64(2)], [x, v]):
            yield Program(function, (parts,))
    yield Program(np.append, (x, y))
    yield Program(np.append, (x, y), {"axis": 0})
    yield Program(np.append, (v, 2.5))
    for width in (0, 1, (1, 2), ((1, 0), (0, 2)), ((1, 2),), (2,), -1, ((1, 2), (3, 4), (5, 6))):
        yield Program(np.pad, (x, width))
        yield Program(np.pad, (x, width), {"constant_values": 7})
    yield Program(np.pad, (x, 2), {"constant_values": ((1, 2), (3, 4))})
    yield Program(np.pad, (v, (1, 2), "constant"), {"constant_values": (5, 6)})
    for count, axis in itertools.product((0, 1, 3), (None, 0, 1, -1, 2)):
        yield Program(np.repeat, (x, count, axis))
    yield Program("repeat", (x, 2), {"axis": 1}, kind="method")
    yield Program(np.repeat, (x, -1))
    for counts in (2, (2, 3), (2, 1, 3), (0,), ()):
        yield Program(np.tile, (x, counts))
        yield Program(np.tile, (v, counts))
    for shift, axis in itertools.product((0, 1, -1, 5, -7), (None, 0, 1, 2)):
        yield Program(np.roll, (x, shift, axis))
    yield Program(np.roll, (x, (1, 2), (0, 1)))
    yield Program(np.roll, (sample((0,), "f8"), 1))
    for n, axis in itertools.product((0, 1, 2, -1), (0, 1, -1)):
        yield Program(np.diff, (x, n, axis))
    yield Program(np.diff, (sample((5,), "bool"),))
    yield Program(np.diff, (sample((1,), "f8"), 2))
    yield Program("flatten", (x,), kind="method")
    yield Program("flatten", (x, "F"), kind="method")


def linear_programs() -> Iterator[Program]:
    shapes = [(3,), (4,), (2, 3), (3, 4), (5, 2, 3), (5, 3, 4), (1, 3, 2), (), (0, 3), (3, 0)]
    for left, right in itertools.product(shapes, shapes):
        x, y = sample(left, "f8"), sample(right, "f8", 1)
        yield Program(np.matmul, (x, y), exact=False)
        yield Program(np.dot, (x, y), exact=False)
    for left, right in itertools.product(DTYPES, ("bool", "i4", "f4", "c16")):
        x, y = sample((2, 3), left), sample((3, 4), right, 1)
        yield Program("__matmul__", (x, y), kind="operator", exact=False)
        yield Program("dot", (x, y), kind="method", exact=False)
    v, w, m, t = sample((3,), "f8"), sample((3,), "c16", 1), sample((3, 3), "f8"), sample((2, 3, 4), "f8")
    yield Program("__rmatmul__", (m, v), kind="operator", exact=False)
    for a, b in ((v, w), (w, v), (m, v), (m, m), (np.float64(2), v), (v, 3), (m, sample((4,), "f8"))):
        yield Program(np.inner, (a, b), exact=False)
        yield Program(np.outer, (a, b))
    yield Program(np.vdot, (w, v), exact=False)
    yield Program(np.vdot, (m, m), exact=False)
    yield Program(np.inner, (t, sample((5, 4), "f8")), exact=False)
    for axes in (0, 1, ((1,), (0,)), ([0, 1], [0, 1]), ((2, 1), (0, 1)), (2, 0), 3):
        yield Program(np.tensordot, (t, sample((4, 3, 2), "f8"), axes), exact=False)
        yield Program(np.tensordot, (t, sample((2, 3, 4), "f8"), axes), exact=False)


def view_programs() -> Iterator[Program]:
    x, v, s = sample((2, 3, 4), "f8"), sample((4,), "i4"), sample((), "f8")
    arrays = (x, v, s, sample((2, 1, 3, 1), "f4"), sample((0, 3), "f8"), sample((3, 3), "c16"))
    for a in arrays:
        for function in (np.transpose, np.squeeze, np.ravel, np.flip, np.flipud, np.fliplr, np.matrix_transpose):
            yield Program(function, (a,))
        for function in (np.atleast_1d, np.atleast_2d, np.atleast_3d, np.diagonal, np.real, np.rot90, np.asarray):
            yield Program(function, (a,))
        for name in ("T", "mT", "real"):
            if a.ndim >= 2 or name != "mT":
                yield Program(name, (a,), kind="attribute")
        for name in ("transpose", "squeeze", "ravel", "diagonal"):
            yield Program(name, (a,), kind="method")
        for axis in (0, 1, -1, 2, (0, 1), (0, -1), 5, (0, 0)):
            yield Program(np.expand_dims, (a, axis))
            yield Program(np.squeeze, (a, axis))
            yield Program(np.flip, (a, axis))
        for shape in ((-1,), -1, (2, -1), (4, 6), (-1, -1), (0, -1), a.shape[::-1], (5,), (1, *a.shape, 1)):
            yield Program(np.reshape, (a, shape))
            yield Program("reshape", (a, shape), kind="method")
            yield Program(np.reshape, (a, shape), {"order": "F"})
        yield Program(np.ravel, (a, "F"))
        for shape in ((2, *a.shape), a.shape, (7,), (2, 3, 4), (3, 4)):
            yield Program(np.broadcast_to, (a, shape))
    for axes in ((2, 0, 1), (-1, 0, 1), (0, 1), (0, 0, 1), (0, 1, 3)):
        yield Program(np.transpose, (x, axes))
        yield Program("transpose", (x, *axes), kind="method")
        yield Program("transpose", (x, axes), kind="method")
    for a, b in ((0, 1), (0, -1), (1, 1), (0, 3)):
        yield Program(np.swapaxes, (x, a, b))
        yield Program("swapaxes", (x, a, b), kind="method")
        yield Program(np.moveaxis, (x, a, b))
        yield Program(np.rollaxis, (x, a, b))
    yield Program(np.moveaxis, (x, (0, 1), (-1, 0)))
    yield Program(np.moveaxis, (x, (0, 1), (-1,)))
    for k, axes in itertools.product((0, 1, 2, 3, -1), ((0, 1), (1, 2), (2, 0), (1, 1))):
        yield Program(np.rot90, (x, k, axes))
    for offset, (a, b) in itertools.product((0, 1, -1, 9), ((0, 1), (2, 0), (-1, 1), (1, 1))):
        yield Program(np.diagonal, (x, offset, a, b))
    for sections in (2, 3, [1, 3], [0, 2, 9], [3, 1], 0):
        yield Program(np.array_split, (x, sections, 2))
        yield Program(np.split, (x, sections), {"axis": -1})
        yield Program(np.hsplit, (sample((2, 6), "f8"), sections))
        yield Program(np.vsplit, (sample((6, 2), "f8"), sections))
        yield Program(np.dsplit, (sample((2, 2, 6), "f8"), sections))
        yield Program(np.hsplit, (sample((6,), "f8"), sections))
    yield Program(np.unstack, (x,))
    yield Program(np.unstack, (x,), {"axis": 1})


SUBSCRIPTS: tuple[Any, ...] = (
    *(0, -1, 2, 5, -7, slice(None), slice(1, None), slice(None, -1), slice(-2, None), slice(5, 9), slice(None, None, -1)),
    *(slice(None, None, 2), slice(3, 0, -2), slice(-1, -9, -1), slice(2, 1), slice(None, None, -3), slice(0, 3, 2)),
    *((0, 1), (Ellipsis, 0), (slice(None), 1), (None, 0), (0, None, slice(1, 3)), Ellipsis, None, (Ellipsis, None)),
    *((slice(1, 3), slice(None, None, -1), 2), (slice(None), None, slice(1, -1)), (0, 1, 2), (0, 1, 2, 0), (0, Ellipsis, 1)),
    *((Ellipsis, 0, Ellipsis), (), np.int64(1), (slice(None, None, 0),), slice(np.int64(1), None)),
)


def index_programs() -> Iterator[Program]:
    x = sample((4, 3, 5), "f8")
    for index in SUBSCRIPTS:
        yield Program("__getitem__", (x, Written(index)), kind="method")
        yield Program("__getitem__", (sample((4, 3), "f8").T, Written(index)), kind="method")
        yield Program("__setitem__", (x, Written(index), 7), kind="update")
    i, j, k = np.array([2, 0, -1, 2]), np.array([[1], [-3]]), np.array([0, 1, 1, 2], np.int8)
    fancy: tuple[Any, ...] = (
        *(i, (i,), (slice(None), j), (Ellipsis, i), (i, k), (slice(None), k, i), (i, slice(None), k), (0, slice(None), i)),
        *((slice(None), 0, i), (i, None), (None, i), (slice(1, 3), i[:3]), (i, Ellipsis), (i, Ellipsis, k), (j, k)),
        *((slice(None), j, 0), (np.int64(1),), (np.int64(1), i), (slice(None), np.int8(2)), [0, 2], ([0, 1], [1, 2])),
        *((slice(None), [True, False, True]), (i, i), np.array([9]), (slice(None), np.array([-4])), np.array([], int)),
        *((i, np.array([0, 1])), np.array([1.5]), (slice(None, None, -1), slice(None), i), (i, slice(0, 2), None, k)),
        *((slice(None), k, Ellipsis, i), (i, 0, k), np.array([[0, 1], [2, 3]], np.uint8), (None, k, slice(None), i)),
    )
    for index in fancy:
        yield Program("__getitem__", (x, index), kind="method")
        yield Program("__setitem__", (x, index, 7), kind="update")
        yield Program("__setitem__", (x, index, sample((5,), "f8", 3)), kind="update")
        yield Program(np.add.at, (x, index, 1.5), kind="update", exact=False)
    for axis in (None, 0, 1, -1, 3):
        yield Program(np.take, (x, np.array([[0, 1], [2, -1]]), axis))
        yield Program(np.take, (x, 1, axis))
        yield Program("take", (x, [0, 2]), {"axis": axis}, kind="method")
    yield Program(np.take, (x, np.array([7]), 1))
    yield Program(np.take, (x, np.array([0.5])))
    best = np.argmax(x, axis=2)
    yield Program(np.take_along_axis, (x, best[..., None], 2))
    yield Program(np.take_along_axis, (x, np.argsort(x, 0), 0))
    yield Program(np.take_along_axis, (x, np.array([3, 1]), None))
    yield Program(np.take_along_axis, (x, best, 2))
    y = sample((4, 3), "f8")
    for mask, value in ((x > 0, 7), (x > 0, np.float64(2)), (y > 0, 1.5), (y > 0, sample((5,), "f8", 3)), (y[:, :2] > 0, 1)):
        yield Program("__setitem__", (x, mask, value), kind="update")
    for dtype, value in (("i4", 2.7), ("i1", 300), ("f4", 1e300), ("bool", 3), ("f8", sample((7,), "f8"))):
        yield Program("__setitem__", (sample((3, 4), dtype), Written(slice(1, None)), value), kind="update")
    yield Program("fill", (x, 2.5), kind="update")
    yield Program(np.copyto, (x, sample((5,), "f4")), kind="update")
    yield Program(np.copyto, (x, sample((1, 1, 5), "f8")), kind="update")
    yield Program(np.copyto, (x, sample((1, 4), "f8")), kind="update")
    yield Program(np.copyto, (x, sample((3, 5), "c16")), kind="update")
    yield Program(np.copyto, (x, 3), kind="update")
    yield Program(np.copyto, (x, 3.5), {"where": x > 0}, kind="update")
    yield Program(np.fill_diagonal, (sample((4, 3), "f8"), 9), kind="update")


def every_program() -> Iterator[Program]:
    """All of them, some twelve thousand."""
    yield from elementwise_programs()
    yield from operator_programs()
    yield from reduction_programs()
    yield from creation_programs()
    yield from joining_programs()
    yield from linear_programs()
    yield from view_programs()
    yield from index_programs()


@st.composite
def an_array(draw: Any, shape: Any = None, dtypes: tuple[str, ...] = DTYPES) -> np.ndarray:
    """An array of small numbers, contiguous or seen through steps and transposes."""
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5)) if shape is None else shape
    dtype = np.dtype(draw(st.sampled_from(dtypes)))
    wide = sample(tuple(n * 2 for n in shape), dtype, draw(st.integers(0, 99)))
    steps = tuple(draw(st.sampled_from((slice(None, None, 2), slice(None, None, -2), slice(0, n)))) for n in shape)
    x = np.asarray(wide[steps])
    return np.asarray(np.transpose(x, draw(st.permutations(range(x.ndim))))) if draw(st.booleans()) else x


@st.composite
def elementwise_calls(draw: Any, ufuncs: Any = None) -> Program:
    """A ufunc of arrays that broadcast, or of an array and a number."""
    known = [u for u in table.FUNCTIONS if isinstance(u, np.ufunc) and u.nout == 1 and u.signature is None]
    ufunc = draw(st.sampled_from(sorted(ufuncs or known, key=lambda u: u.__name__)))
    if ufunc.nin == 1:
        return Program(ufunc, (draw(an_array()),), exact=False)
    if draw(st.booleans()):
        pair = [draw(an_array()), draw(st.sampled_from((0, 1, 2, 2.5, True, 1j)))]
        args = tuple(pair[::-1] if draw(st.booleans()) else pair)
    else:
        shapes = draw(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=4)).input_shapes
        args = tuple(draw(an_array(shape=shape)) for shape in shapes)
    return Program(ufunc, tuple(np.abs(a) if ufunc is np.power and _is_int(a) else a for a in args), exact=False)


@st.composite
def reduction_calls(draw: Any) -> Program:
    """A reduction along any axes."""
    name = draw(st.sampled_from("sum prod max min any all argmax argmin mean var std count_nonzero ptp".split()))
    x = draw(an_array())
    axis = draw(st.one_of(st.none(), st.integers(-x.ndim, x.ndim - 1) if x.ndim else st.none()))
    if axis is not None and not name.startswith("arg") and draw(st.booleans()):
        axis = tuple(draw(hnp.valid_tuple_axes(x.ndim)))
    return Program(getattr(np, name), (x,), {"axis": axis, "keepdims": draw(st.booleans())}, exact=False)


@st.composite
def subscript_calls(draw: Any) -> Program:
    """Reading or writing through a basic subscript, or one with integer arrays."""
    x = draw(an_array(draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=5))))
    if draw(st.booleans()):
        index = draw(hnp.basic_indices(x.shape, allow_newaxis=True))
        if draw(st.booleans()):
            return Program("__getitem__", (x, Written(index)), kind="method")
        return Program("__setitem__", (x, Written(index), draw(an_array(shape=()))), kind="update")
    index = draw(hnp.integer_array_indices(x.shape, dtype=np.dtype(draw(st.sampled_from(("i8", "i2"))))))
    if x.ndim > 1 and draw(st.booleans()):
        parts = [draw(st.sampled_from((part, slice(None), slice(1, None), 0))) for part in index]
        index = tuple(parts) if any(isinstance(part, np.ndarray) for part in parts) else index
    if draw(st.booleans()):
        return Program("__getitem__", (x, index), kind="method")
    return Program("__setitem__", (x, index, draw(an_array(shape=()))), kind="update")


@st.composite
def product_calls(draw: Any) -> Program:
    """`matmul` of stacks of matrices and vectors that fit."""
    signature = draw(hnp.mutually_broadcastable_shapes(signature=np.matmul.signature, max_dims=2, max_side=4))
    args = tuple(draw(an_array(shape=shape)) for shape in signature.input_shapes)
    return Program(np.matmul, args, exact=False)


def _is_int(a: Any) -> bool:
    return np.asarray(a).dtype.kind == "i"


def _applied(steps: list[Any], x: Node) -> Node:
    for step in steps:
        x = apply(step, x)
    return x


def _flat(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (list, tuple)) else [result]


def _replaced(value: Any, change: Any) -> Any:
    """The value with `change` of each leaf; what is Written stays as it is."""
    if isinstance(value, Written):
        return value.value
    if isinstance(value, (list, tuple)):
        return type(value)(_replaced(part, change) for part in value)
    if isinstance(value, dict):
        return {key: _replaced(part, change) for key, part in value.items()}
    return change(value)


def _text(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype.str[1:]}{list(value.shape)}"
    if isinstance(value, Written):
        return str(value.value).replace("slice", "")
    if isinstance(value, (list, tuple)):
        inside = ", ".join(map(_text, value))
        return f"[{inside}]" if isinstance(value, list) else f"({inside})"
    return getattr(value, "__name__", None) or str(value)

"""The table of NumPy's parameters: against `inspect` where NumPy can be asked, and by calls with arguments by position."""

import importlib.util
import inspect
import warnings
from pathlib import Path

import numpy as np
import pytest

import jitlab as jl
from jitlab.ops import table
from jitlab.ops.numpy_api import call_binding, signatures

ROOT = Path(__file__).parents[2]
SIGNATURES = signatures.FUNCTIONS
VERSION = signatures.VERSION
X = np.array([[3.0, 1.0, 2.0], [0.5, 2.0, 1.0]])
Y = np.array([[1.0, 2.0, 3.0], [2.0, 3.0, 4.0]])
I = np.array([[1, 0, 1], [0, 1, 0]])  # noqa: E741

#: What a call needs, where that is not one array.
OPERANDS = {
    "choose": (I, [X, Y]), "clip": (X,), "compress": ([True, False], X), "concatenate": ([X, Y],), "dot": (X, Y.T),
    "linalg.multi_dot": ([X, Y.T],), "nanpercentile": (X, 30), "nanquantile": (X, 0.3),
    "ndarray.compress": (X, [True, False]), "ndarray.dot": (X, Y.T), "ndarray.take": (X, [1, 0]), "outer": (X, Y),
    "percentile": (X, 30), "quantile": (X, 0.3), "stack": ([X, Y],), "take": (X, [1, 0]), "ufunc.reduceat": (X, [0, 1]),
}  # fmt: skip
#: What stands between those and `out`.
OPTIONS = {
    "a_max": 3, "a_min": 1, "axes": None, "axis": 0, "axis1": 0, "axis2": 1, "decimals": 0, "dtype": None, "max": 3, "min": 1,
    "mode": "raise", "n": None, "norm": None, "offset": 0, "s": None,
}  # fmt: skip
DATES = ("busday_count", "busday_offset", "is_busday")


def function_of(name):
    if name.startswith("ufunc."):
        return getattr(np.add, name.removeprefix("ufunc."))
    owner = np
    for part in name.split("."):
        owner = getattr(owner, part, None)
    return owner


def with_out():
    """(name, function, all arguments that stand before `out`) of what takes it by position."""
    for name in SIGNATURES:
        function = function_of(name)
        parameters = None if function is None or name in DATES else call_binding.parameters_of(function)
        if parameters is None or "out" not in parameters.places:
            continue
        operands = OPERANDS.get(name, (X,))
        first = len(operands) - name.startswith("ndarray.")
        between = parameters.places[first : parameters.places.index("out")]
        yield pytest.param(function, (*operands, *(OPTIONS[option] for option in between)), id=name)


def outcome(program, out):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return program(out), out
        except (TypeError, ValueError) as error:
            return type(error)


def script():
    spec = importlib.util.spec_from_file_location("signatures", ROOT / "scripts" / "signatures.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_table_is_what_the_script_makes_of_this_numpy():
    if np.__version__.split(".")[:2] != VERSION.split(".")[:2]:
        pytest.skip(f"the table was made with NumPy {VERSION}")
    written = Path(signatures.__file__).read_text(encoding="utf-8")
    assert script().content() == written, "python scripts/signatures.py writes it anew"


def test_what_inspect_knows_stands_in_the_table():
    """Also of another NumPy than the one that the table was made with: what both know by position stands in the same order."""
    read_in_c = script().IN_C
    for name, text in SIGNATURES.items():
        if name in read_in_c or name.startswith("ndarray."):
            continue
        try:
            parameters = inspect.signature(function_of(name)).parameters.values()
        except (TypeError, ValueError):
            continue
        told = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        mine = [part.rstrip("=") for part in text.split(" *")[0].split() if part != "/"]
        both = [n for n in told if n in mine]
        assert both == [n for n in mine if n in told], name
        assert told[: len(both)] == both or np.__version__ != VERSION, name


def test_every_rule_knows_its_parameters_by_the_names_of_the_table():
    """Or leaves them to NumPy on purpose, which these do."""
    left = {"all": {"dtype"}, "any": {"dtype"}}
    tables = (table.FUNCTIONS, table.VIEWS, table.UPDATES), (table.METHODS, table.VIEW_METHODS, table.UPDATE_METHODS)
    rules = [(function, rule) for part in tables[0] for function, rule in part.items()]
    rules += [(getattr(np.ndarray, name, None), rule) for part in tables[1] for name, rule in part.items()]
    for function, rule in rules:
        parameters = call_binding.parameters_of(function)
        if parameters is None:
            continue
        takes = inspect.signature(rule).parameters.values()
        if any(p.kind is p.VAR_KEYWORD for p in takes):
            continue  # it refuses what it does not know
        known = {p.name for p in takes} | {"out"}
        missing = {n for n in (*parameters.places[parameters.only :], *parameters.named) if n in parameters.optional} - known
        assert missing <= left.get(function.__name__, set()), f"{function}: {missing}"


@pytest.mark.parametrize("transform", [jl.jit, jl.function], ids=["jit", "function"])
@pytest.mark.parametrize(("function", "arguments"), list(with_out()))
def test_out_by_position_is_written_into(function, arguments, transform):
    """Of the result's dtype and of others, of its shape and of a larger one: written, cast and refused as NumPy does."""
    want = function(*arguments)

    def program(out):
        return function(*arguments, out)

    for dtype in {want.dtype, np.dtype("f8"), np.dtype("f4"), np.dtype("i8")}:
        for shape in (want.shape, (2, *want.shape)):
            plain = outcome(program, np.full(shape, 7, dtype))
            mine = outcome(transform(program), np.full(shape, 7, dtype))
            if isinstance(plain, type):
                assert isinstance(mine, type) and issubclass(plain, mine), f"{dtype} {shape}: {mine} instead of {plain}"
                continue
            np.testing.assert_allclose(mine[1], plain[1], rtol=1e-6, err_msg=f"{dtype} {shape}")
            np.testing.assert_allclose(mine[0], plain[0], rtol=1e-6, err_msg=f"{dtype} {shape}")
            assert mine[0].dtype == plain[0].dtype
            if transform is jl.jit and plain[0] is plain[1]:
                assert mine[0] is mine[1]


NAMED = [
    lambda x, y: np.dot(b=y.T, a=x),
    lambda x, y: np.sum(a=x, axis=1),
    lambda x, y: np.clip(x, max=2, min=1),
    lambda x, y: x.take(indices=[1], axis=0),
    lambda x, y: x.dot(b=y.T),
    lambda x, y: np.take(indices=[0, 1], a=x, axis=1),
    lambda x, y: np.add.reduce(array=x, axis=1),
    lambda x, y: x.sum(0, None, None, True),
    lambda x, y: np.var(x, 0, None, None, 1, True),
    lambda x, y: np.concatenate((x, y), 1, None),
    lambda x, y: np.reshape(x, shape=(3, 2), order="F"),
    lambda x, y: np.add.accumulate(x, 1, "f4"),
    lambda x, y: np.ndarray.max(x, 1),
    lambda x, y: np.divmod(x, y, None, None)[1],
]


@pytest.mark.parametrize("number", range(len(NAMED)))
def test_by_name_or_by_position_means_the_same(number):
    program = NAMED[number]
    want = program(X, Y)
    for transform in (jl.jit, jl.function):
        got = transform(program)(X, Y)
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize(
    "program",
    [lambda x: np.sum(x, nonsense=1), lambda x: np.clip(x, 1, 2, None, 5), lambda x: x.take(), lambda x: np.dot(x, a=x, b=x)],
    ids=["no such name", "too many", "too few", "twice"],
)
def test_what_fits_no_parameter_is_numpys_error(program):
    with pytest.raises(TypeError) as plain:
        program(X)
    for transform in (jl.jit, jl.function):
        with pytest.raises(TypeError) as mine:
            transform(program)(X)
        assert str(plain.value) in str(mine.value)


@pytest.mark.parametrize("make", [jl.jit, jl.function])
@pytest.mark.parametrize("function", [np.concatenate, np.stack])
def test_a_joined_result_takes_out_or_a_dtype(make, function):
    out = np.empty(6) if function is np.concatenate else np.empty((2, 3))
    with pytest.raises(TypeError, match="only takes `out` or `dtype`"):
        function([X[0], Y[0]], out=out, dtype=float)
    with pytest.raises(TypeError, match="only takes `out` or `dtype`"):
        make(lambda x, y, out: function([x, y], out=out, dtype=float))(X[0], Y[0], out)

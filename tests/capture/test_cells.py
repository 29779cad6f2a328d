"""A cell leaves the namespace that plain Python leaves."""

from __future__ import annotations

import contextlib
import io
import linecache
import traceback
import types

import numpy as np
import pytest
from cell_programs import CELLS, ERRORS, namespace
from same import assert_same, assert_same_sharing

import jitlab as jl
from jitlab import events
from jitlab.capture.drivers import cells
from jitlab.capture.drivers.pieces import CellCapture, Names
from jitlab.errors import CaptureError, InvalidArgumentError
from tests.cell_runs import CellResult, run_cell
from tests.left import assert_plain


def run_both(source: str, times: int = 1):
    """(namespace, result, output, error) of both ways, on equal inputs."""
    mine, theirs = namespace(), namespace()
    outputs, errors = [], []
    result = CellResult()
    plain = compile(source, "<cell>", "exec", dont_inherit=True)
    for run in (lambda: run_cell(source, mine, "<cell>", result=result), lambda: exec(plain, theirs)):
        np.random.seed(5)
        out = io.StringIO()
        error = None
        with contextlib.redirect_stdout(out):
            try:
                for _ in range(times):
                    run()
            except Exception as raised:
                error = raised
        outputs.append(out.getvalue())
        errors.append(error)
    assert outputs[0] == outputs[1]
    return mine, theirs, result, errors


def assert_same_namespace(mine, theirs):
    mine.pop("__builtins__", None), theirs.pop("__builtins__", None)
    assert list(mine) == list(theirs)
    assert_plain(mine)
    arrays = []
    for name, value in theirs.items():
        if isinstance(value, (types.FunctionType, types.ModuleType, type, types.GeneratorType)) or hasattr(value, "__next__"):
            assert type(mine[name]) is type(value)
        elif type(value) in (np.ndarray, np.matrix) or isinstance(value, (np.generic, int, float, str, list, tuple, dict, set)):
            assert_same(mine[name], value)
            if isinstance(value, np.ndarray):
                arrays.append((mine[name], value))
    assert_same_sharing([x for x, _ in arrays], [y for _, y in arrays])


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("times", [1, 2])
def test_cell_leaves_what_python_leaves(name, times):
    mine, theirs, _, errors = run_both(CELLS[name], times)
    assert type(errors[0]) is type(errors[1]), errors
    assert_same_namespace(mine, theirs)


@pytest.mark.parametrize("name", ERRORS)
def test_cell_that_raises_leaves_what_python_leaves(name):
    mine, theirs, _, (mine_error, error) = run_both(ERRORS[name])
    assert type(mine_error) is type(error) and str(mine_error).split("\n")[0] == str(error).split("\n")[0]
    assert _line(mine_error) == _line(error)
    assert_same_namespace(mine, theirs)


def _line(error):
    return [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == "<cell>"]


WHOLE = ["assign", "comprehension", "shape arithmetic", "np.where and clip", "method of an array", "mask"]


@pytest.mark.parametrize("name", WHOLE)
def test_captured_whole(name):
    *_, result, _ = run_both(CELLS[name])
    assert not result.statements and len(result.traces) == 1


HELPERS = """
def repeated(a):
    for i in range(3):
        a = 0.25 * a + i
    return a

def counted(a, n):
    for _ in range(n):
        a = a + 1
    return a

def added(arrays):
    total = 0
    for x, weight in arrays:
        total = total + weight * x
    return total

def first_large(rows):
    for row in rows:
        if row.shape[0] > 2:
            break
    else:
        return rows[0]
    return row * 2

def nested(a):
    for i in range(2):
        for j, w in enumerate([OUTER, 2 * OUTER]):
            a = a + w * j
    return a

def silent(a):
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(a > 0, 1 / a, a)
"""


CALLS = ["repeated(x)", "counted(x, 4)", "added([(x, 2.0), (OUTER, 3.0)])", "first_large([x, OUTER])", "nested(x)", "silent(x)"]


@pytest.mark.parametrize("call", CALLS)
def test_a_helper_of_another_cell_is_captured_whole(call):
    linecache.cache["<helpers>"] = (len(HELPERS), None, HELPERS.splitlines(True), "<helpers>")
    mine = {"np": np, "x": np.arange(5.0), "OUTER": np.linspace(0.0, 1.0, 5)}
    exec(compile(HELPERS, "<helpers>", "exec"), mine)
    theirs = dict(mine)
    source = f"result = {call}\ndouble = result * 2"
    exec(source, theirs)
    result = CellResult()
    run_cell(source, mine, "<cell>", result=result)
    assert not result.statements and len(result.traces) == 1
    assert_same(mine["result"], theirs["result"]), assert_same(mine["double"], theirs["double"])


@pytest.mark.parametrize("name", ["stencil", "window", "gradient descent", "recurrence", "rows by index"])
def test_body_of_a_loop_is_traced_once(name):
    *_, result, _ = run_both(CELLS[name])
    bodies = [trace for trace in result.traces if min(s.line for n in trace.graph.nodes for s in n.sources) >= 2]
    assert len(bodies) == 1 and result.runs >= 3


JUMPS = ["break", "continue", "if i == 1: break", "if i == 1: continue", "raise ValueError"]
FINALLY = ["out.append(x * 2)", "if i == 2: break", "if i == 0: continue", "pass"]


@pytest.mark.parametrize("final", FINALLY)
@pytest.mark.parametrize("jump", JUMPS)
@pytest.mark.parametrize("head", ["for i in range(4):", "while (i := i + 1) < 4:"])
@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_a_jump_out_of_a_try_goes_on_behind_its_finally(head, jump, final):
    source = f"""
out, i = [], -1
{head}
    with np.errstate(all="ignore"):
        try:
            out.append(x + i)
            {jump}
            out.append(i)
        except ValueError:
            if i == 3: break
            out.append("caught")
        else:
            out.append("else")
        finally:
            out.append("finally")
            {final}
    out.append("behind")
else:
    out.append("never left")
"""
    mine, theirs, _, errors = run_both(source)
    assert errors == [None, None]
    assert_same_namespace(mine, theirs)


SWAPPED = {
    "objects": "p, q = q, p", "lists": "l, m = m, l", "functions": "f, g = g, f", "three": "l, p, f = p, f, l",
    "twice": "p, q = q, p\nl, m = m, l", "with arrays": "x, p, v, q = v, q, x, p", "nested": "p, l = [l, q], (m, p)",
    "and back": "p, q = q, p\nr1 = q\np, q = q, p", "in a loop": "for i in range(3):\n    p, q = q, p\n    x = x + i",
}  # fmt: skip


@pytest.mark.parametrize("times", [1, 2, 3])
@pytest.mark.parametrize("swap", SWAPPED.values(), ids=SWAPPED)
def test_names_that_change_places_hold_each_others_objects(swap, times):
    names = {"np": np, "x": np.arange(3.0), "v": np.ones(3), "p": types.SimpleNamespace(n=1), "q": types.SimpleNamespace(n=2),
             "l": [1, 2], "m": [3], "f": np.sin, "g": np.cos}  # fmt: skip
    mine, theirs = dict(names), dict(names)
    source = f"{swap}\ny = x * 2"
    for _ in range(times):
        run_cell(source, mine, "<swap>")
        exec(source, theirs)
    for name in "pqlmfg":
        assert mine[name] is theirs[name] or repr(mine[name]) == repr(theirs[name]), name
    assert_same(mine["y"], theirs["y"])


def test_a_print_between_is_given_out_when_the_piece_around_it_has_run():
    *_, result, _ = run_both(CELLS["print between"])
    assert [trace.length for trace in result.traces] == [3] and not result.statements


def test_a_cell_run_again_is_not_traced_again():
    source = "w = x @ x.T\nw = w * r"
    names = namespace()
    assert len(run_cell(source, names, "<again>").traces) == 1
    names["r"] = 0.25
    again = run_cell(source, names, "<again>")
    assert not again.traces and again.runs == 1
    assert_same(names["w"], names["x"] @ names["x"].T * 0.25)


def test_another_shape_is_another_trace_with_its_cause():
    heard = []
    names = namespace()
    with events.listen(heard.append):
        run_cell("w = v * 2", names, "<shapes>")
        names["v"] = np.arange(7.0)
        run_cell("w = v * 2", names, "<shapes>")
    traced = [e for e in heard if isinstance(e, events.Traced)]
    assert [e.causes for e in traced] == [("first_call",), ("shape",)]
    assert (traced[1].argument, traced[1].before, traced[1].after) == ("v", "float64[5]", "float64[7]")


def test_value_to_display():
    names = namespace()
    result = run_cell("a = v + 1\na.sum()", names, "<display>")
    assert result.has_value and result.value == 15.0 and isinstance(result.value, np.float64)
    assert not run_cell("a = v + 1", names, "<display>").has_value
    assert run_cell("print(end='')\nnone", names, "<display>").value is None


def test_lines_are_those_of_the_cell():
    names = namespace()
    source = "a = v * 2\nb = (a +\n     1)\n"
    result = run_cell(source, names, "<lines>", first_line=2)
    spans = {node.op.name: sorted(node.sources) for node in result.traces[0].graph.nodes}
    assert [(s.line, s.column, s.end_line, s.end_column) for s in spans["Mul"]] == [(2, 4, 2, 9)]
    assert [(s.line, s.column, s.end_line, s.end_column) for s in spans["AddV2"]] == [(3, 5, 4, 6)]


def test_strict_cell_refuses_what_it_cannot_compile():
    names = namespace()
    source = "a = v * 2\nb = np.unique(a)\nc = 1"
    linecache.cache["<strict>"] = (len(source), None, source.splitlines(True), "<strict>")
    with pytest.raises(InvalidArgumentError) as error:
        run_cell(source, names, "<strict>", strict=True)
    text = str(error.value)
    assert text.startswith("unique (line 2) can't be compiled, and this cell is --strict.") and "_Xla" not in text
    assert "where: <strict>, line 2: b = np.unique(a)" in text
    assert "--strict leaves nothing to NumPy" in text and "this cell" in text and "jit_compile=" not in text
    assert "c" not in names and "a" in names
    with pytest.raises(CaptureError, match="--strict"):
        run_cell("a = complex(v.sum())", names, "<strict2>", strict=True)


def test_statement_that_python_ran_says_why():
    heard = []
    names = namespace()
    with events.listen(heard.append):
        run_cell("a = matrix * 2\nb = v * 2\nc = complex(b.sum())", names, "<why>")
    ran = [e for e in heard if isinstance(e, events.StatementRan)]
    assert [e.reason for e in ran] == ["foreign_type", "value"]
    assert ran[0].text == "matrix is a numpy.matrix" and ran[0].lines[0][:2] == ("<why>", 1)


def test_piece_that_never_fits_is_given_up():
    names = namespace()
    result = run_cell("for n in range(1, 40):\n    a = np.ones(n) * 2", names, "<growing>")
    assert len(result.traces) <= 17
    assert_same(names["a"], np.ones(39) * 2)


def test_overlapping_arrays_are_left_to_python():
    names = namespace()
    names["u"], names["w"] = names["v"][1:], names["v"][:-1]
    result = run_cell("u += w\nu += w", names, "<overlap>")
    expected = np.arange(5.0)
    expected[1:] += expected[:-1]
    expected[1:] += expected[:-1]
    assert_same(names["v"], expected)
    assert [code for code, _, _ in result.statements] == ["aliasing", "aliasing"]


def test_scope_in_a_cell_marks_its_operations():
    names = namespace() | {"jl": jl}
    result = run_cell("a = v + 1\nwith jl.jit_scope(True):\n    b = a * 2\n    c = b - 1\nd = c + a", names, "<scope>")
    (trace,) = result.traces
    marks = {node.op.name: node.attrs.get("_XlaScope") for node in trace.graph.nodes if node.op.name in ("Mul", "Sub")}
    assert marks == {"Mul": "jit_scope_0", "Sub": "jit_scope_0"}
    assert all("_XlaScope" not in n.attrs for n in trace.graph.nodes if n.op.name == "AddV2")
    assert not result.statements


def test_scope_with_an_effect_inside_is_cut_into_pieces_that_keep_it():
    names = namespace() | {"jl": jl, "out": []}
    result = run_cell("with jl.jit_scope(True):\n    b = v * 2\n    out.__iadd__([1])\n    c = b - 1", names, "<scope2>")
    nodes = [node for trace in result.traces for node in trace.graph.nodes if node.op.name in ("Mul", "Sub")]
    assert [node.attrs["_XlaScope"] for node in nodes] == ["jit_scope_0", "jit_scope_0"]
    assert names["c"].tolist() == [-1, 1, 3, 5, 7] and [code for code, _, _ in result.statements] == ["effect"]


def test_function_called_in_a_cell_keeps_its_own_traces():
    names = namespace() | {"step": jl.function(lambda x, k: x * k)}
    result = run_cell("for i in range(3):\n    w = step(v, 2)\n    w += 1", names, "<own>")
    assert names["step"].experimental_get_tracing_count() == 1
    assert {code for code, _, _ in result.statements} == {"compiled_function"} and len(result.traces) == 1
    assert_same(names["w"], names["v"] * 2 + 1)


def test_gradient_in_a_cell_is_part_of_the_piece():
    names = namespace() | {"jl": jl, "w": np.ones(4)}
    source = "def loss(w):\n    return ((x @ w - 1) ** 2).mean()\n"
    source += "for i in range(4):\n    value, g = jl.value_and_grad(loss)(w)\n    w -= 0.001 * g"
    result = run_cell(source, names, "<grad>")
    x, w = names["x"], np.ones(4)
    for _ in range(4):
        w -= 0.001 * 2 / 3 * x.T @ (x @ w - 1)
    np.testing.assert_allclose(names["w"], w)
    assert len(result.traces) == 1 and result.runs == 4


def test_variable_in_a_cell():
    names = namespace() | {"jl": jl, "w": jl.Variable(np.zeros(5))}
    result = run_cell("for i in range(3):\n    w.assign_add(v * i)\n    t = np.sum(w) + w[1]", names, "<variable>")
    assert_same(names["w"].numpy(), np.arange(5.0) * 3)
    assert names["t"] == 33 and len(result.traces) == 1


def test_keyboard_interrupt_leaves_the_statement_before():
    names = namespace() | {"stop": np.array([1.0])}

    def interrupted(trace):
        def run(inputs):
            raise KeyboardInterrupt

        return run

    with pytest.raises(KeyboardInterrupt):
        run_cell("a = 1\nprint(end='')\nv += 1\nb = v * 2", names, "<interrupt>", executor=interrupted)
    assert names["a"] == 1 and "b" not in names and names["v"].tolist() == [0, 1, 2, 3, 4]


def test_names_of_a_failed_statement_are_a_mapping():
    names = Names(CellCapture("cell", namespace(), strict=False, static=False))
    assert "nothing" not in names and names.get("nothing") is None
    with pytest.raises(KeyError):
        names["nothing"]
    with pytest.raises(NameError, match="name 'nothing' is not defined"):
        run_cell("a = v * nothing", namespace(), "<undefined>")


def test_refusal_of_strict_stands_at_the_statement():
    with pytest.raises(CaptureError) as error:
        run_cell("a = v * 2\nb = complex(a.sum())", namespace(), "<strict3>", strict=True)
    assert [f.lineno for f in traceback.extract_tb(error.value.__traceback__) if f.filename == "<strict3>"] == [2]


def test_error_of_compiled_code_is_numpys_own():
    heard = []
    names = namespace() | {"far": np.array([1, 9])}
    program = "a = v * 2\nb = a[far] + 1\nc = b * 2"

    def failing(trace):
        def run(inputs):
            raise IndexError("found by compiled code")

        return run

    with events.listen(heard.append), pytest.raises(IndexError, match="index 9 is out of bounds for axis 0") as error:
        run_cell(program, names, "<far>", executor=failing)
    assert error.value.__context__ is None and error.value.__cause__ is None
    ran = [e for e in heard if isinstance(e, events.StatementRan)]
    assert [e.lines[0][1] for e in ran] == [2] and "index 9" in ran[0].text
    assert names["a"].tolist() == [0, 2, 4, 6, 8] and "b" not in names


def test_a_statement_that_failed_is_told_in_one_line():
    heard = []
    with events.listen(heard.append), pytest.raises(IndexError):
        run_cell("a = np.zeros(3)\na[7] = 2", namespace(), "<one>")
    (ran,) = [e for e in heard if isinstance(e, events.StatementRan)]
    assert ran.text == "IndexError: index 7 is out of bounds for axis 0 with size 3"


def test_files_and_settings_of_numpy_are_read_and_changed_where_they_stand(tmp_path):
    names = namespace() | {"path": str(tmp_path / "a.npy")}
    np.save(names["path"], np.ones(5))
    source = "a = np.load(path) + v\nold = np.seterr(divide='ignore')\nnew = np.geterr()['divide']\n"
    source += "np.seterr(**old)\nnp.save(path, a)"
    with np.errstate(divide="warn"):
        for _ in range(2):
            run_cell(source, names, "<world>")
    assert names["a"].tolist() == [1, 3, 5, 7, 9] and np.load(names["path"]).tolist() == [1, 3, 5, 7, 9]
    assert names["old"]["divide"] == "warn" and names["new"] == "ignore"


SPLIT = {
    "out.append(np.tanh(v).sum())": ["effect"],
    "state['w'] = state['w'] * 2 + 1": ["effect"],
    "state['w'] += v[:3]": ["effect"],
    "print(np.tanh(v).sum(), end='')": ["effect"],
    "a = float(v.sum()) * 2": [],
    "a = complex(v.sum()) * 2": ["value"],
    "a = f'{v.mean():.2f}'": ["value"],
    "assert (v * 2).sum() > 3": ["statement"],
    "if (v * 2).sum() > 3:\n    a = v + 1": [],
    "while (v * 2).sum() < 3:\n    v += 1": [],
    "for row in x * 2:\n    pass": ["statement"] * 3,
    "with np.errstate(all='ignore'):\n    a = v / 2": [],
    "try:\n    a = v / 2\nfinally:\n    b = 1": [],
    "(a := v * 2) + 1": [],
}


@pytest.mark.parametrize("source", SPLIT)
def test_numpy_in_a_statement_is_captured_though_python_runs_the_rest(source):
    names = namespace() | {"out": []}
    result = CellResult()
    with contextlib.redirect_stdout(io.StringIO()):
        run_cell(source, names, "<split>", result=result)
    assert result.traces and [code for code, _, _ in result.statements] == SPLIT[source]
    assert not [name for name in names if name.startswith("__jl")]


def test_work_before_a_store_is_one_piece_with_what_is_stored():
    names = namespace() | {"out": []}
    result = run_cell("a = v * 2\nout.__iadd__([np.tanh(a).sum()])\nb = a + 1", names, "<joined>")
    first, second = result.traces
    assert [node.op.name for node in first.graph.nodes if node.op.name in ("Mul", "Tanh", "Sum")] == ["Mul", "Tanh", "Sum"]
    assert [node.op.name for node in second.graph.nodes if node.op.name == "AddV2"] == ["AddV2"]


def test_blocks_under_errstate_that_raises_run_on_numpy():
    names = namespace()
    result = CellResult()
    with pytest.raises(FloatingPointError):
        run_cell("with np.errstate(divide='raise'):\n    a = v + 1\n    b = a / (v * 0)", names, "<raise>", result=result)
    assert not result.traces and {code for code, _, _ in result.statements} == {"errstate"} and "a" in names


def test_a_cell_with_an_expression_of_many_terms_has_room():
    namespace = {"x": np.ones(3)}
    run_cell("y = " + " + ".join(["x"] * 700), namespace, "<cell of 700 terms>")
    assert namespace["y"].tolist() == [700, 700, 700]


def test_a_cell_that_another_thread_forgets_meanwhile_still_runs(monkeypatch):
    """A thread that runs newer sources of the same cell drops the older ones while they are made ready."""
    def forgotten():
        cells._programs.clear()

    monkeypatch.setattr(cells, "current_cell", forgotten)
    space = {"np": np}
    run_cell("made_ready = np.arange(3) * 2", space, "<cell>")
    assert space["made_ready"].tolist() == [0, 2, 4]

"""`%jit expression`, `%jit on` and `%jit off` in a real shell, with the real compiler."""

from __future__ import annotations

import ast

import numpy as np
import pytest
from shells import run_cells

from jitlab.errors import OptionError
from jitlab.notebook.extension import session_of
from jitlab.report import MIME


@pytest.fixture
def shell(ip):
    run_cells(ip, [], {"np": np, "x": np.arange(12.0).reshape(3, 4), "v": np.arange(5.0)})
    yield ip
    ip.run_cell("%jit off").raise_error()
    session_of(ip).clear()


def run(shell, source, fine=True):
    shell.display_pub.outputs.clear()
    result = shell.run_cell(source, store_history=True)
    if fine:
        result.raise_error()
    return result


def reports(shell):
    return [output["data"][MIME] for output in shell.display_pub.outputs if MIME in output["data"]]


def test_an_expression_is_captured_and_its_value_displayed(shell, capsys):
    result = run(shell, "a = 1\n%jit np.tanh(x).sum() * 2")
    assert result.result == pytest.approx(np.tanh(shell.user_ns["x"]).sum() * 2) and "Out[1]" in capsys.readouterr().out
    (report,) = reports(shell)
    assert report["verdict"]["compiled"] == report["verdict"]["operations"] > 0 and report["cell"]["running"] is False
    spans = {(op["op"], *span) for op in report["ops"] for span in op["lines"]}
    assert {(file, line) for _, file, line, *_ in spans} == {("In [ ]", 2)}  # what is saved has no number: it stays the same
    (tanh,) = [span for span in spans if span[0] == "Tanh"]
    assert "%jit np.tanh(x).sum() * 2"[tanh[3] : tanh[5]] == "np.tanh(x)"
    assert "k0 np.tanh(x).sum() * 2" in shell.display_pub.outputs[-1]["data"]["text/plain"]


def test_an_expression_gives_its_value_to_a_name_and_is_silent_behind_a_semicolon(shell, capsys):
    run(shell, "b = %jit v * 2\nc = b + 1")
    np.testing.assert_array_equal(shell.user_ns["c"], np.arange(5.0) * 2 + 1)
    assert len(reports(shell)) == 1
    capsys.readouterr()
    assert run(shell, "%jit v * 2;").result is None and "Out" not in capsys.readouterr().out
    assert run(shell, "%jit {k: v * k for k in (1, 2)}[2][1]").result == 2


def test_several_expressions_of_a_cell_share_its_report(shell):
    run(shell, "%jit v + 1\n%jit np.exp(v)")
    (report,) = reports(shell)
    assert {span[1] for op in report["ops"] for span in op["lines"]} == {1, 2}


def test_options_of_an_expression_stand_before_it(shell):
    run(shell, "%jit --level O0 np.tanh(x) * 2 + 1")
    (report,) = reports(shell)
    assert report["verdict"]["kernels"] == 3
    error = run(shell, "%jit --strict np.unique(x)", fine=False).error_in_exec
    assert "unique (line 1) can't be compiled" in str(error)


def test_an_error_of_an_expression_is_numpys_at_its_line(shell, capsys):
    result = run(shell, "a = 1\n%jit x + v", fine=False)
    assert isinstance(result.error_in_exec, ValueError)
    printed = capsys.readouterr().out
    assert "----> 2" in printed and "jitlab/" not in printed and "%jit x + v" in printed.split("ValueError")[1]


@pytest.mark.parametrize("line", ["a = 1", "", "--level O9 v", "on -o name", "v +", "on --nope", "--strict", "expression v"])
def test_what_is_no_expression_is_refused_with_what_to_do(shell, line):
    error = run(shell, f"%jit {line}", fine=False).error_in_exec
    assert isinstance(error, OptionError) and "where: In [1], line 1" in str(error)
    assert "%jit (x * 2).sum(), %jit on" in str(error)


def test_jit_on_captures_every_later_cell(shell, capsys):
    run(shell, "%jit on")
    assert not reports(shell)
    run(shell, "a = np.tanh(x)\na.sum()")
    (report,) = reports(shell)
    assert report["verdict"]["clusters"] == 1 and report["clusters"][0]["lines"] == [1, 2]
    assert "Out[2]" in capsys.readouterr().out
    run(shell, "import math\ndef f(u):\n    return u * 2\nprint('word')")
    assert not reports(shell) and "word" in capsys.readouterr().out
    run(shell, "%jitlab status")
    assert "%jit is on" in capsys.readouterr().out
    run(shell, "%jit off")
    assert not reports(shell)
    run(shell, "%jitlab status")
    assert "%jit is on" not in capsys.readouterr().out
    run(shell, "b = np.tanh(x)")
    assert not reports(shell)


@pytest.mark.parametrize(("line", "meant"), [("onn", "on"), ("of", "off"), ("ON", "on"), ("onn --level O0", "on")])
def test_a_misspelt_switch_is_told_the_one_that_is_meant(shell, line, meant):
    error = run(shell, f"%jit {line}", fine=False).error_in_exec
    assert isinstance(error, OptionError) and f"Did you mean {meant}?" in str(error)


def test_what_is_like_a_switch_and_a_name_is_an_expression(shell):
    run(shell, "onn = 3")
    assert run(shell, "%jit onn").result == 3 and run(shell, "%jit onn -1").result == 2
    assert isinstance(run(shell, "%jit nothing_like_it", fine=False).error_in_exec, NameError)


def test_jit_on_takes_options_and_leaves_other_magics_and_silent_requests_alone(shell, capsys):
    run(shell, "%jit on --level O0")
    run(shell, "a = np.tanh(x) * 2 + 1")
    assert reports(shell)[0]["verdict"]["kernels"] == 3
    run(shell, "%%capture out\nprint(np.tanh(x).sum())")
    assert not reports(shell) and shell.user_ns["out"].stdout
    shell.display_pub.outputs.clear()
    shell.run_cell("b = np.tanh(x)", store_history=False).raise_error()
    shell.run_cell("b = np.tanh(x)", silent=True).raise_error()
    assert not reports(shell)
    run(shell, "%%jit\na = np.tanh(x) * 2 + 1")
    assert reports(shell)[0]["verdict"]["kernels"] == 1
    run(shell, "%%time\nc = 1")
    run(shell, "%jit on --strict")
    assert "leaves nothing to NumPy" in str(run(shell, "complex(np.tanh(x).sum())", fine=False).error_in_exec)
    assert "c" in shell.user_ns


def test_a_cell_that_another_magic_reads_is_a_magic_in_it(shell):
    run(shell, "%%capture\n%%jit\nb = np.tanh(x)\n")
    assert "b" in shell.user_ns
    session = session_of(shell)
    assert session.report_of(session.cells[next(reversed(session.cells))]).verdict["clusters"] == 1


@pytest.mark.parametrize("interactivity", ["all", "last", "last_expr", "none", "last_expr_or_assign"])
def test_what_is_displayed_is_what_ipython_displays(ip, interactivity):
    cells = [
        "v + 1\na = v * 2\na.sum()\nfor i in range(2):\n    v[i] + 7\nb = a + 1",
        "v * 2\nif True:\n    v[3]\n    x.sum()",
        "a = 1\nv[0];",
    ]
    names = {"np": np, "x": np.arange(12.0), "v": np.arange(5.0)}
    before, ip.ast_node_interactivity = ip.ast_node_interactivity, interactivity
    try:
        plain, captured = run_cells(ip, cells, names), run_cells(ip, cells, names, "%%jit\n")
    finally:
        ip.ast_node_interactivity = before
    assert captured.printed == plain.printed and repr(captured.values) == repr(plain.values)
    assert [kind for kind, *_ in captured.errors] == [None] * 3


def test_transformers_of_ipython_do_their_work(shell):
    class Twice(ast.NodeTransformer):
        def visit_Constant(self, node):
            return ast.copy_location(ast.Constant(node.value * 2), node) if node.value == 21 else node

    def shout(lines):
        return [line.replace("vee", "v") for line in lines]

    shell.ast_transformers.append(Twice())
    shell.input_transformers_cleanup.append(shout)
    try:
        run(shell, "%%jit\na = vee * 21")
        np.testing.assert_array_equal(shell.user_ns["a"], np.arange(5.0) * 42)
        run(shell, "%jit on")
        run(shell, "b = vee + 21")
        assert shell.user_ns["b"][0] == 42
    finally:
        shell.ast_transformers.pop()
        shell.input_transformers_cleanup.remove(shout)


def test_a_cell_waits_also_where_a_transformer_makes_it(shell):
    class Awaits(ast.NodeTransformer):
        def visit_Call(self, node):
            asked = isinstance(node.func, ast.Name) and node.func.id == "given"
            return ast.copy_location(ast.Await(node), node) if asked else node

    run(shell, "async def given():\n    return v * 3")
    shell.ast_transformers.append(Awaits())
    try:
        for _ in range(2):
            run(shell, "%%jit\na = given()\nb = a + 1")
            np.testing.assert_array_equal(shell.user_ns["b"], np.arange(5.0) * 3 + 1)
    finally:
        shell.ast_transformers.pop()


def test_what_somebody_notes_at_statements_is_no_part_of_a_cell(shell):
    noted = []

    class Notes(ast.NodeTransformer):
        def visit(self, node):
            noted.append(node)
            node.seen, node.parent = len(noted), noted[0]
            return self.generic_visit(node)

    shell.ast_transformers.append(Notes())
    try:
        for _ in range(3):
            run(shell, "%%jit\na = v * 2 + np.exp(v)")
            (report,) = reports(shell)
            traced = report["retraces"]
    finally:
        shell.ast_transformers.pop()
    assert noted and traced == []


def test_cells_that_differ_in_the_kind_of_a_number_alone_are_different_cells(shell):
    for text in ("1", "True", "1.0", "1j", "0.0", "-0.0", "0"):
        for _ in range(2):
            run(shell, f"%%jit\na = {text}\nb = v * a")
            expected = eval(text)
            assert repr(shell.user_ns["a"]) == repr(expected)
            assert repr(shell.user_ns["b"]) == repr(np.arange(5.0) * expected)


def test_no_name_of_ours_stays_also_beside_names_that_are_no_text(shell):
    shell.user_ns[7] = "mine"
    try:
        run(shell, "%%jit\nfor k in range(3):\n    print(k, v.sum())\nv + 1")
        assert shell.user_ns.pop(7) == "mine"
    finally:
        shell.user_ns.pop(7, None)
    assert not [name for name in shell.user_ns if name.startswith("__jl_")]


def test_lines_above_the_magic_keep_their_numbers(shell, capsys):
    run(shell, "\n\n%%jit\na = v * 2\nb = a + nothing", fine=False)
    assert "----> 5 b = a + nothing" in capsys.readouterr().out
    (report,) = reports(shell)
    assert {span[1] for op in report["ops"] for span in op["lines"]} == {4}


def test_a_syntax_error_is_shown_alone(shell, capsys):
    for source in ("%%jit\na = v *\nb = 1", "%%jit\na = 1\nreturn a"):
        run(shell, source, fine=False)
        captured = capsys.readouterr()
        printed = captured.out + captured.err
        assert "SyntaxError" in printed and "jitlab/" not in printed and "interactiveshell" not in printed
        assert "line 2" in printed or "line 3" in printed


def test_a_cell_commented_out_is_no_jit_cell(shell):
    run(shell, "# %%jit\na = np.tanh(x)")
    assert not reports(shell)

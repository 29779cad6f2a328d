"""The same program gives the same lines from a script, IPython, a kernel and `exec`."""

from __future__ import annotations

import ast
import json
import linecache
import subprocess
import sys
from pathlib import Path

import line_facts
import pytest

import jitlab as jl

HERE = Path(__file__).parent
PARTS = [(HERE / f"lines_{n}.txt").read_text(encoding="utf-8") for n in (1, 2)]
ENVIRONMENT = {"PYTHONPATH": f"{Path(jl.__file__).parent.parent}:{HERE}"}


@pytest.fixture(scope="module")
def of_a_script(tmp_path_factory):
    """The facts from `python first.py`, which runs the second part as a script of its own."""
    folder = tmp_path_factory.mktemp("script")
    for n, text in enumerate(PARTS, 1):
        (folder / f"part_{n}.py").write_text(text, encoding="utf-8")
    more = "import runpy; runpy.run_path('part_2.py', globals()); import line_facts; print(line_facts.taken())\n"
    with open(folder / "part_1.py", "a") as file:
        file.write(more)
    run = subprocess.run(
        [sys.executable, "part_1.py"], cwd=folder, capture_output=True, text=True, env=ENVIRONMENT, check=False, timeout=300
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout.splitlines()[-1])


def assert_same(mine, theirs):
    assert len(mine) == len(theirs)
    for number, (x, y) in enumerate(zip(mine, theirs, strict=True)):
        assert x == y, f"call {number}"


def test_a_script_tells_lines_of_every_kind(of_a_script):
    assert {fact[0] for facts, _ in of_a_script for fact in facts} == {"traced", "plan", "statement"}
    ended = [end[0] for _, end in of_a_script if end != "fine"]
    assert {"ShapeError", "KeyError", "InvalidArgumentError", "UnsupportedError"} <= set(ended)


def test_each_operation_stands_on_a_whole_expression(of_a_script):
    whole = set()
    for number, text in enumerate(PARTS, 1):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.expr, ast.stmt)):
                whole.add((number, node.lineno, node.col_offset, node.end_lineno, node.end_col_offset))
    spans = {
        tuple(span)
        for facts, _ in of_a_script
        for fact in facts
        if fact[0] == "plan"
        for _, spans, _ in fact[2]
        for span in spans
    }
    assert len(spans) > 20 and {span for span in spans if span[0] in (1, 2)} <= whole


@pytest.mark.parametrize("name", ["<string>", "<exec {}>", "/nowhere/part_{}.py", "part_{}"])
def test_exec_with_its_source_registered(of_a_script, name):
    namespace: dict = {"__name__": "__main__"}
    for n, text in enumerate(PARTS, 1):
        file = name.format(n) if "{" in name else f"{name[:-1]} {n}>"
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        exec(compile(text, file, "exec", dont_inherit=True), namespace)
    assert_same(json.loads(line_facts.taken()), of_a_script)


@pytest.mark.filterwarnings("ignore:AutoGraph could not")
def test_exec_without_source(of_a_script):
    """What needs the source says so; everything else stands where it stands with it."""
    namespace: dict = {"__name__": "__main__"}
    for n, text in enumerate(PARTS, 1):
        exec(compile(text, f"<nowhere {n}>", "exec", dont_inherit=True), namespace)
    found = json.loads(line_facts.taken())
    told = 0
    for (facts, ended), (expected, expected_end) in zip(found, of_a_script, strict=True):
        plans, expected_plans = ([fact for fact in x if fact[0] == "plan"] for x in (facts, expected))
        assert plans == expected_plans or ["statement", "source"] in [fact[:2] for fact in facts]
        assert (ended == "fine") == (expected_end == "fine")
        if ended != "fine":
            assert ended[2] == expected_end[2]
        told += plans == expected_plans != []
    assert told >= 13


def test_ipython(of_a_script, ip):
    for text in PARTS:
        ip.run_cell(text, store_history=True).raise_error()
    assert_same(json.loads(line_facts.taken()), of_a_script)


def test_a_kernel(of_a_script, monkeypatch):
    from jupyter_client.manager import start_new_kernel

    monkeypatch.setenv("PYTHONPATH", ENVIRONMENT["PYTHONPATH"])
    manager, client = start_new_kernel()
    printed = []

    def heard(message):
        if message["msg_type"] == "stream":
            printed.append(message["content"]["text"])
        assert message["msg_type"] != "error", message["content"]["traceback"]

    try:
        for text in ("%load_ext jitlab", *PARTS, "import line_facts\nprint(line_facts.taken())"):
            printed.clear()
            client.execute_interactive(text, output_hook=heard, timeout=300)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    assert_same(json.loads("".join(printed)), of_a_script)

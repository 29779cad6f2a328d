"""report.code: each line of each stage with the lines of the program it came from, and nothing lost on the way."""

import gc
import json
import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from code_functions import FUNCTIONS

import jitlab as jl
from jitlab.errors import OptionError
from jitlab.report.build.code import known_stages
from jitlab.report.report import Report
from jitlab.targets.cpu_llvm import machine
from jitlab.targets.cpu_llvm.cpu_schedule import scheduled
from jitlab.targets.cpu_llvm.emit import codegen
from jitlab.targets.cpu_llvm.listing import listing
from jitlab.targets.devices import OF_GPUS

HERE = __file__.replace("test_code", "code_functions")


@pytest.fixture(scope="module")
def reports():
    """Of each function, made when it is asked for."""
    made = {}

    def report(name):
        if name not in made:
            function, arguments = FUNCTIONS[name]
            made[name] = jl.explain(jl.jit(function), *arguments())
        return made[name]

    return report


def lines_of(name):
    """The lines of a function that compute something: all but its head."""
    code = FUNCTIONS[name][0].__code__
    return {line for _, _, line in code.co_lines() if line is not None and line != code.co_firstlineno}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_nearly_every_instruction_says_which_lines_it_came_from(reports, name):
    """Of the assembly without boilerplate: labels, directives and constant pools; the function that hands out chunks; saved
    registers, the stack frame and the returned status; spills; care for signals. Our own polynomials are the work of the line
    that called for them."""
    report = reports(name)
    for cluster in report.clusters:
        code = report.code(cluster.name, "asm")
        assert sum(not line.noise for line in code.lines) > 50
        assert code.share >= 0.95, repr(code)
        assert {file for line in code.lines for file, _ in line.at} == {HERE}
        assert {line for entry in code.lines for _, line in entry.at} <= lines_of(name)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("stage", ["program", "llvm", "llvm-optimized", "asm"])
def test_every_operation_has_a_line_or_says_who_does_its_work(reports, name, stage):
    report = reports(name)
    for cluster in report.clusters:
        code = report.code(cluster.name, stage)
        alive = {op for line in code.lines for op in line.ops}
        absorbed = {entry.op: entry.into for entry in code.absorbed}
        mine = {op.name for op in report.ops if op.cluster == cluster.name}
        assert mine <= alive | set(absorbed)
        assert all(into for into in absorbed.values()), code.absorbed
        assert set().union(*absorbed.values()) <= alive


@pytest.mark.parametrize("name", ["elementwise", "loop", "whole_numbers"])
def test_locations_change_no_instruction(reports, name):
    report = reports(name)
    program = report._codes[report.clusters[0].name].program
    kept = listing(program)
    assert "".join(f"{text}\n" for text, _ in kept.module.lines) == codegen.module_for(scheduled(program))

    def instructions(text):
        names = {}
        lines = [line for line in text.splitlines() if re.match(r"\t[^.#]", line)]
        return [re.sub(r"\.L\w+", lambda found: names.setdefault(found[0], f"L{len(names)}"), line) for line in lines]

    for tier in ("quick", "good"):
        plain, located = (machine.asm(text, tier) for text in (codegen.module_for(scheduled(program)), kept.module.debug))
        assert instructions(plain) == instructions(located)
    assert kept.asm and kept.strays == 0


def test_an_ordinary_compilation_writes_no_locations(monkeypatch):
    """Its cost is nothing: the writer that notes places is another class."""

    def never(*args, **kwargs):
        raise AssertionError("locations were written")

    monkeypatch.setattr("jitlab.targets.cpu_llvm.located.LocatedText.__init__", never)
    report = jl.explain(jl.jit(lambda x: np.sinh(x * 3.25) + 1), np.ones(7))
    with pytest.raises(AssertionError, match="locations"):
        report.code(report.clusters[0].name, "asm")


def test_two_additions_in_a_row_show_both_their_lines():
    def f(x):
        y = x + 1
        return y + 2

    first = f.__code__.co_firstlineno
    for values in (np.ones(300), np.arange(300)):
        report = jl.explain(jl.jit(f), values)
        for stage in (stage for stage in known_stages() if stage not in OF_GPUS):
            found = {line for entry in report.code(report.clusters[0].name, stage).lines for _, line in entry.at}
            assert found == {first + 1, first + 2}, (stage, values.dtype)


def test_an_instruction_of_a_fused_kernel_belongs_to_its_line_not_to_the_kernel(reports):
    report = reports("elementwise")
    code = report.code(report.clusters[0].name, "asm")
    roots = [line for line in code.lines if "sqrt" in line.text]
    assert roots and all(line.ops == ("sqrt",) and line.kernel == "k0" for line in roots)
    divisions = [line for line in code.lines if line.text.startswith("\tvdiv")]
    assert all(line.at for line in divisions)


def test_names_in_the_code_are_those_of_the_user(reports):
    report = reports("matmul")
    name = report.clusters[0].name
    for stage in ("program", "llvm", "llvm-optimized", "asm"):
        text = "\n".join(line.text for line in report.code(name, stage).lines)
        assert "matmul.k0" in text and "phase0" not in text and "!dbg" not in text and ".loc" not in text
    assert {line.kernel for line in report.code(name, "asm").lines if not line.noise} == {k.name for k in report.kernels}
    assert any("gemm x[" in line.text for line in report.code(name, "program").lines)


def test_the_text_has_line_numbers_beside_it_and_folds_noise():
    def softmax(x):
        e = np.exp(x - x.max())
        return e / e.sum()

    first = softmax.__code__.co_firstlineno
    report = jl.explain(jl.jit(softmax), np.ones(100, "f4"))
    text = str(report.code(report.clusters[0].name, "program"))
    assert re.search(rf"^ *{first + 1} │ .* = exp\(", text, re.M)
    assert re.search(rf"^ *{first + 2} │ .* = sum\(", text, re.M)
    assert re.search(r"┊ \d+ lines folded", text)


def test_the_plain_text_of_the_assembly_is_the_same(reports):
    report = reports("loop")
    name = report.clusters[0].name
    assert report.ir(name, stage="asm").split("\n") == [line.text for line in report.code(name, "asm").lines]


@pytest.mark.parametrize("stage", OF_GPUS)
def test_a_stage_of_gpus_is_not_there_and_the_answer_says_so(reports, stage):
    report = reports("loop")
    code = report.code(report.clusters[0].name, stage)
    assert code.lines == () and "runs on the processor" in code.note


def test_what_is_asked_wrongly_is_refused(reports):
    report = reports("loop")
    with pytest.raises(OptionError, match="there is no stage 'elf'"):
        report.code(report.clusters[0].name, "elf")
    with pytest.raises(OptionError, match="has no cluster 'cluster_x'"):
        report.code("cluster_x")
    saved = report.to_json()
    saved["clusters"][0]["name"] = "cluster_of_another_day"
    with pytest.raises(OptionError, match="is not kept"):
        Report(saved).code("cluster_of_another_day")


def test_the_code_is_there_after_the_function_is_gone():
    def gone(x):
        return np.cbrt(x) + 7

    f = jl.jit(gone)
    report = jl.explain(f, np.ones(64))
    del f, gone
    gc.collect()
    code = report.code(report.clusters[0].name, "asm").to_json()
    assert code["share"] == 1.0 and code["stage"] == "asm" and code["note"] is None
    assert all(set(line) == {"text", "at", "ops", "kernel", "noise"} for line in code["lines"])


def test_a_plan_tells_two_clusters_of_one_name_apart():
    def one(x):
        return np.cbrt(x) + 7

    def two(x):
        return np.sqrt(x) * 3 - x

    compiled = [jl.jit(f) for f in (one, two)]
    first, second = (jl.explain(f, np.ones(64)) for f in compiled)
    name = first.clusters[0].name
    renamed = json.loads(json.dumps(second.data).replace(f'"{second.clusters[0].name}"', f'"{name}"'))
    both = Report({**first.data, **{key: [*renamed[key], *first.data[key]] for key in ("plans", "ops", "clusters", "kernels")}})
    found = both.code(name, "program", plan=first.clusters[0].plan)
    assert found.lines == first.code(name, "program").lines
    with pytest.raises(OptionError, match="is not kept"):
        both.code(name, "program", plan=second.clusters[0].plan)  # that plan knows its cluster by another name
    with pytest.raises(OptionError, match="the plan 'nobody' has no cluster"):
        both.code(name, plan="nobody")


def test_code_is_shown_while_other_threads_run_and_ask(reports):
    report = reports("turns")
    name = report.clusters[0].name
    function, arguments = FUNCTIONS["turns"]
    running = jl.jit(function)
    stages = ["program", "llvm", "llvm-optimized", "asm"]
    with ThreadPoolExecutor(6) as pool:
        asked = [pool.submit(report.code, name, stage) for stage in stages * 2]
        ran = [pool.submit(running, *arguments()) for _ in range(4)]
        answers = [future.result() for future in asked]
        assert all(len(future.result()) == 3 for future in ran)
    assert answers[:4] == answers[4:]

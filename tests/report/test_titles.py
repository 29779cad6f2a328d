"""Two functions of one name: each has its own calls, times and retraces in a report."""

import types

import numpy as np

import jitlab as jl

SOURCE = "def step(x, k):\n    return (x * k).sum()\n"


def module(name, place):
    """A module of that name with a function `step`, and where its source is said to be."""
    made = types.ModuleType(name)
    place.write_text(SOURCE)
    exec(compile(SOURCE, str(place), "exec"), made.__dict__)
    return made


def plans(report):
    return {plan["name"]: (plan["function"], plan["calls"]) for plan in report.data["plans"]}


def test_functions_of_two_modules_are_told_apart_by_their_order(tmp_path):
    first = jl.function(module("first", tmp_path / "first.py").step)
    second = jl.jit(module("second", tmp_path / "second.py").step)
    x = np.ones(3)
    with jl.record() as recording:
        for _ in range(4):
            first(x, 1)
        for k in (1, 2, 2):
            second(np.ones(4), k)
    report = recording.report()
    assert plans(report) == {"step #1": ("step", 4), "step (2) #1": ("step (2)", 1), "step (2) #2": ("step (2)", 2)}
    rows = [(row.function, row.trace, row.calls) for row in report.retraces]
    assert ("step (2)", 2, 2) in rows
    spans = [span for lane in report.data["timeline"]["lanes"] for span in lane["spans"]]
    assert {span["plan"] for span in spans if span["kind"] == "launch"} == set(plans(report))
    assert {span["name"] for span in spans if span["kind"] == "capture"} == set(plans(report))
    with jl.record() as recording:
        second(x, 1)
    assert {function for function, _ in plans(recording.report()).values()} == {"step"}


def test_functions_made_of_one_definition_keep_its_name_and_their_own_calls():
    def make(scale):
        return jl.jit(lambda x: x * scale)

    functions = [make(scale) for scale in (1.0, 2.0, 3.0)]
    with jl.record() as recording:
        for times, f in enumerate(functions, 1):
            for _ in range(times):
                f(np.ones(3))
    report = recording.report()
    assert sorted(plans(report).values()) == [("<lambda>", 1), ("<lambda>", 2), ("<lambda>", 3)]
    assert report.data["verdict"]["clusters"] == 1 and "6 calls of 3 traces of 3 functions." in str(report)


def test_a_function_that_is_defined_again_keeps_its_name_and_its_own_calls(tmp_path):
    place = tmp_path / "again.py"
    made = module("again", place)
    with jl.record() as recording:
        for calls in (1, 3):
            f = jl.function(made.step)
            for _ in range(calls):
                f(np.ones(3), 2)
            exec(compile(SOURCE, str(place), "exec"), made.__dict__)
    assert plans(recording.report()) == {"step #1": ("step", 1), "step #1 (2)": ("step", 3)}

"""The lines that keep a what-if are pasted into the program, which runs again and has the plan that was asked for."""

import linecache
import textwrap

import numpy as np
import pytest

import jitlab as jl
from jitlab.api.whatif.experiments import Experiment
from jitlab.api.whatif.keeping import shape_of

pytestmark = pytest.mark.usefixtures("compiled")
X = np.random.default_rng(7).random((300, 40))
QUICK = 0.01

SOFTMAX = """
    def program(x):
        m = x.max(axis=1, keepdims=True)
        e = np.exp(x - m)
        s = e.sum(axis=1, keepdims=True)
        return e / s
    """
CHAIN = '''
    def program(x):
        """With a docstring."""
        a = np.exp(x)

        b = a * 2  # a comment
        c = (b
             + 1)
        return np.sqrt(c)
    '''
PYTHON_BRANCH = """
    def program(x, scale=2.0):
        y = np.tanh(x) * scale
        if scale > 3:
            z = y - 1
        elif scale > 1:
            z = y + 1
        return z / 3
    """
ONE_LINE = "def program(x): return np.exp(x) * 2"
IN_HELPER = """
    def shifted(x):
        return np.exp(x - x.max(axis=1, keepdims=True))
    ####
    def program(x):
        e = shifted(x)
        r = e * 2 + e * e
        return r / r.sum(axis=1, keepdims=True)
    """
HELPERS_HELPER = """
    def inner(x):
        a = np.exp(x)
        return a - 1
    ####
    def middle(x):
        return inner(x) * 2
    ####
    def program(x):
        y = np.sqrt(x)
        return middle(y) + 1, y.sum(axis=1)
    """
TWICE = """
    def shifted(x):
        e = np.exp(x)
        return e + 1
    ####
    def program(x):
        return shifted(x) * shifted(x * 0.5)
    """
LOOP = """
    def program(x):
        y = x * 1.5
        for i in range(1, 60):
            a = np.exp(-y[i - 1])
            y[i] = a / (1 + np.sqrt(y[i]))
        return y + 1
    """
LOOP_CALLS = """
    def step(a, b):
        return np.exp(-a) / (1 + np.sqrt(b))
    ####
    def program(x):
        y = x * 1.5
        for i in range(1, 60):
            y[i] = step(y[i - 1], y[i])
        return y + 1
    """
NESTED_LOOP = """
    def program(x):
        y = x * 1.5
        for t in range(30):
            for i in range(1, 50):
                if i % 2:
                    continue
                y[i] = np.exp(-y[i - 1]) / (1 + np.sqrt(y[i]))
        return y
    """
UNROLLED = """
    def program(x):
        for k in range(3):
            x = np.exp(-x) * 2
        return x
    """
WHILE = """
    def program(x):
        n = x.sum() * 0
        while n < 5:
            x = np.sqrt(np.exp(-x) + n)
            n = n + 1
        return x
    """
STAGED_BRANCH = """
    def program(x):
        if x.sum() > 0:
            y = np.exp(x)
            z = y.sum(axis=1)
        else:
            z = x[:, 0] * 2
        return z + 1
    """
SCOPES = """
    def program(x):
        with jl.jit_scope(strict=True):
            e = np.exp(x)
            f = e + 1
        with jl.jit_scope(strict=True):
            return f * 2
    """
GRAM = """
    def program(x):
        e = np.exp(x)
        g = e.T @ e
        return g, e.sum(axis=0)
    """
KEPT = """
    def program(x):
        with jl.jit_scope(compile_ops=False):
            e = np.exp(x)
        return e * 2
    """
STRINGS = '''
    def program(x, note="""two
    lines"""):
        e = np.exp(x); f = e * len("""more
    lines""")
        return f + 1
    '''
CASES = [
    (SOFTMAX, {"cut": ("Exp", "Sum")}), (SOFTMAX, {"keep_out": "Exp"}), (SOFTMAX, {"keep_out": "Sub"}),
    (SOFTMAX, {"cut": ("ExpandDims", "Sub")}), (SOFTMAX, {"cut": [("Sub", "Exp"), ("Exp", "Sum")]}),
    (CHAIN, {"cut": ("Exp", "Mul")}), (CHAIN, {"cut": ("Mul", "AddV2")}), (CHAIN, {"cut": ("AddV2", "Sqrt")}),
    (CHAIN, {"keep_out": "Mul"}), (CHAIN, {"keep_out": ["Exp", "Mul"]}), (CHAIN, {"keep_out": "AddV2"}),
    (PYTHON_BRANCH, {"cut": ("Mul", "AddV2")}), (PYTHON_BRANCH, {"cut": ("AddV2", "RealDiv")}),
    (PYTHON_BRANCH, {"keep_out": "AddV2"}), (PYTHON_BRANCH, {"keep_out": "Tanh"}),
    (IN_HELPER, {"cut": ("Sub", "Exp")}), (IN_HELPER, {"keep_out": "Exp"}), (IN_HELPER, {"cut": ("exp", "mul")}),
    (IN_HELPER, {"cut": ("AddV2", "Sum")}),
    (HELPERS_HELPER, {"cut": ("Exp", "Sub")}), (HELPERS_HELPER, {"cut": ("Sub", "Mul")}),
    (HELPERS_HELPER, {"cut": ("Sqrt", "Exp")}), (HELPERS_HELPER, {"keep_out": "Sub"}),
    (TWICE, {"cut": ("exp", "add")}), (TWICE, {"cut": ("exp_1", "add_1")}), (TWICE, {"keep_out": "exp_1"}),
    (LOOP, {"cut": ("Exp", "RealDiv")}), (LOOP, {"cut": ("Sqrt", "loop/add")}), (LOOP, {"cut": ("Neg", "Exp")}),
    (LOOP_CALLS, {"cut": ("Exp", "RealDiv")}), (NESTED_LOOP, {"cut": ("Exp", "RealDiv")}),
    (UNROLLED, {"cut": ("exp_1", "mul_1")}),
    (UNROLLED, {"keep_out": "exp_1"}), (WHILE, {"cut": ("Exp", "AddV2")}), (STAGED_BRANCH, {"cut": ("Exp", "Sum")}),
    (SCOPES, {"fuse": ("AddV2", "Mul")}), (SCOPES, {"cut": ("Exp", "AddV2")}), (SCOPES, {"keep_out": "Exp"}),
    (GRAM, {"fuse": ("Exp", "Sum")}), (KEPT, {"fuse": ("Exp", "Mul")}), (STRINGS, {"cut": ("Mul", "AddV2")}),
]  # fmt: skip


def made(texts, about):
    """The function of some texts, each as if it stood in a file of its own, and the names of the files."""
    names, files = {"np": np, "jl": jl}, []
    for number, text in enumerate(texts):
        files.append(f"<{about}, {number}>")
        linecache.cache[files[-1]] = (len(text), None, text.splitlines(keepends=True), files[-1])
        exec(compile(text, files[-1], "exec"), names)
    return names["program"], files


def parts(program):
    return [f"{part.strip(chr(10))}\n" for part in textwrap.dedent(program).split("####\n")]


def plan_of(function, *args):
    executable = function._replayable(args, {})[0].executable
    executable.prepare([np.array(a) for a in function._replayable(args, {})[1]])
    return executable


IN_JIT = [CASES[k] for k in (0, 15, 17, 24, 26, 29, 38)]


@pytest.mark.parametrize(
    ("form", "program", "question"), [*((jl.function, *case) for case in CASES), *((jl.jit, *case) for case in IN_JIT)],
    ids=lambda value: value.__name__ if callable(value) else str(value)[:60].strip(),
)  # fmt: skip
def test_the_lines_that_keep_a_change_give_the_changed_plan(form, program, question):
    texts = parts(program)
    function, files = made(texts, f"as it was {id(question)}")
    f = form(function)
    expected = f(X)
    answer = f.whatif(X, seconds=QUICK, **question)
    assert answer.keep is not None, answer.keep_text
    assert answer.keep_text == ""
    number = files.index(answer.keep.file)
    lines = texts[number].splitlines()
    lines[answer.keep.first - 1 : answer.keep.last] = answer.keep.lines
    texts[number] = "\n".join(lines) + "\n"
    edited = form(made(texts, f"edited {id(question)}")[0])
    for mine, theirs in zip(*(r if isinstance(r, tuple) else (r,) for r in (edited(X), expected)), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-11)
    trace, inputs = f._replayable((X,), {})
    experiment = Experiment(trace.executable, inputs, answer.question)
    experiment.build()
    assert shape_of(plan_of(edited, X)) == shape_of(experiment.after.executable) != shape_of(plan_of(f, X))


def test_lines_of_a_helper_stand_in_its_own_file():
    texts = parts(IN_HELPER)
    function, files = made(texts, "helper of another file")
    keep = jl.function(function).whatif(X, cut=("Sub", "Exp"), seconds=QUICK).keep
    assert (keep.file, keep.first, keep.last) == (files[0], 2, 2)
    assert keep.lines[0] == '    with jl.jit_scope(cut=("-", "exp")):'
    across = jl.function(function).whatif(X, cut=("exp", "mul"), seconds=QUICK).keep
    assert (across.file, across.first, across.last) == (files[1], 2, 3)


@pytest.mark.parametrize(
    ("program", "question", "words"),
    [
        (ONE_LINE, {"cut": ("Exp", "Mul")}, "lines of their own"),
        ("program = lambda x: np.exp(x) * 2", {"cut": ("Exp", "Mul")}, "write it as a def"),
        (SOFTMAX, {"cut": ("Exp", "Sum"), "keep_out": "Sub"}, "ask for what is kept out apart"),
    ],
)
def test_where_no_line_can_stand_the_answer_says_why(program, question, words):
    answer = jl.function(made(parts(program), f"none {words}")[0]).whatif(X, seconds=QUICK, **question)
    assert answer.keep is None and words in answer.keep_text and words.split()[-1] in str(answer)


def test_a_function_that_compiles_as_a_whole_is_cut_inside_too():
    f = jl.function(made(parts(SOFTMAX), "must compile")[0], jit_compile=True)
    assert f.whatif(X, cut=("Exp", "Sum"), seconds=QUICK).keep.lines[0].endswith('jit_scope(cut=("exp", "sum")):')


def test_a_part_of_a_line_is_kept_out_by_its_kind():
    f = jl.function(made(["def program(x):\n    return np.exp(x) * 2\n"], "by its kind")[0])
    keep = f.whatif(X, keep_out="Exp", seconds=QUICK).keep
    assert keep.lines == ("    with jl.jit_scope(lambda op: op.word != 'exp'):", "        return np.exp(x) * 2")

"""`jit_scope(cut=..., fuse=...)`: edges between operations made inside are cut or fused, and nothing else changes."""

import warnings

import numpy as np
import pytest

import jitlab as jl
from jitlab.cluster import unmet

pytestmark = pytest.mark.usefixtures("compiled")
X = np.random.default_rng(3).random((60, 20))


def kernels(function, *args):
    """Which operations share a kernel; of a loop's, which share a nest."""
    executable = function._replayable(args, {})[0].executable
    executable.run([np.array(a) for a in args])
    found = []
    for kernel in executable.plan.kernels:
        found.append({node.name for node in kernel.nodes})
        found += [{origin.name for origin in nest.origins} for nest in kernel.nests]
    return found


def apart(found, a, b):
    assert any(a in kernel for kernel in found) and any(b in kernel for kernel in found)
    return not any({a, b} <= kernel for kernel in found)


@pytest.mark.parametrize("form", [jl.function, jl.jit])
def test_a_cut_is_of_what_is_made_inside_alone(form):
    @form
    def both(x):
        with jl.jit_scope(cut=("Exp", "Mul")):
            a = np.exp(x) * 2
        b = np.exp(a) * 3
        return b

    found = kernels(both, X)
    assert apart(found, "exp", "mul") and not apart(found, "exp_1", "mul_1")
    np.testing.assert_allclose(both(X), np.exp(np.exp(X) * 2) * 3, rtol=1e-13)


@pytest.mark.filterwarnings("ignore:jit_scope")
def test_both_ends_of_a_cut_are_made_inside():
    @jl.function
    def one_end(x):
        e = np.exp(x)
        with jl.jit_scope(cut=("Exp", "Mul")):
            return e * 2

    assert not apart(kernels(one_end, X), "exp", "mul")


def helper(x):
    e = np.exp(x)
    return e / e.sum(axis=1, keepdims=True)


def test_what_a_helper_makes_is_made_inside():
    @jl.function
    def calling(x):
        with jl.jit_scope(cut=[("Exp", "Sum"), ("Mul", "Exp")]):
            return helper(x * 2)

    found = kernels(calling, X)
    assert apart(found, "exp", "sum") and apart(found, "mul", "exp")


def turned(x):
    return np.sqrt(x)[::-1]


@pytest.mark.parametrize("form", [jl.function, jl.jit])
def test_a_view_is_made_where_the_program_makes_it_not_where_it_is_read(form):
    @form
    def views(x):
        with jl.jit_scope(cut=("Sqrt", "StridedSlice")):
            a = np.sqrt(x)
            b = a[::-1]
            c = turned(x * 3)
        return b * 2, a.reshape(-1)[::2] * 3, c + 1

    found = kernels(views, X)
    assert apart(found, "sqrt", "mul_1") and apart(found, "sqrt", "stridedslice") and apart(found, "sqrt_1", "stridedslice_2")
    x = np.sqrt(X)
    for mine, theirs in zip(views(X), (x[::-1] * 2, x.reshape(-1)[::2] * 3, np.sqrt(X * 3)[::-1] + 1), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-13)


def test_operations_are_named_where_kinds_say_too_much():
    @jl.function
    def named(x):
        with jl.jit_scope(cut=("exp_1", "mul_1")):
            return np.exp(x) * 2 + np.exp(x + 1) * 3

    found = kernels(named, X)
    assert apart(found, "exp_1", "mul_1") and not apart(found, "exp", "mul")


@pytest.mark.parametrize("form", [jl.function, jl.jit])
@pytest.mark.parametrize("inside", [True, False])
def test_a_loop_with_a_cut_in_it_is_rolled_and_cut_in_each_turn(form, inside):
    @form
    def steps(x):
        y = x * 1.5
        for i in range(1, 40):
            with jl.jit_scope(cut=("Exp", "RealDiv")):
                y[i] = np.exp(-y[i - 1]) / (1 + np.sqrt(y[i]))
        return y

    @form
    def around(x):
        y = x * 1.5
        with jl.jit_scope(cut=("Exp", "RealDiv")):
            for i in range(1, 40):
                y[i] = np.exp(-y[i - 1]) / (1 + np.sqrt(y[i]))
        return y

    f = steps if inside else around
    found = kernels(f, X)
    assert any("loop" in kernel for kernel in found) and apart(found, "exp", "realdiv")
    y = X * 1.5
    for i in range(1, 40):
        y[i] = np.exp(-y[i - 1]) / (1 + np.sqrt(y[i]))
    np.testing.assert_allclose(f(X), y, rtol=1e-12)


def test_a_scope_that_only_decides_is_known_by_itself_not_by_its_name():
    around = []

    def jit_scope(**options):  # the user's own, which has an effect in each turn
        around.append(options)
        return np.errstate()

    def steps(x, scope):
        for _ in range(40):
            with scope(cut=("Exp", "Mul")):
                x = np.exp(-x) * 2
        return x

    assert jl.jit_scope.__jitlab_no_effect__(cut=("Exp", "Mul")) and jl.jit_scope.__jitlab_no_effect__(fuse=[("Exp", "Mul")])
    for marks in ({}, {"strict": True}, {"cut": ("Exp", "Mul"), "strict": True}, {"compile_ops": True}):
        assert not jl.jit_scope.__jitlab_no_effect__(**marks)
    assert not jl.jit_scope.__jitlab_no_effect__(True)

    @jl.function
    def mine(x):
        return steps(x, jl.jit_scope)

    @jl.jit
    def theirs(x):
        return steps(x, jit_scope)

    wanted = X
    for _ in range(40):
        wanted = np.exp(-wanted) * 2
    assert any("while" in kernel or "loop" in kernel for kernel in kernels(mine, X))
    np.testing.assert_allclose(theirs(X), wanted, rtol=1e-12)
    assert len(around) == 40


def test_a_branch_is_cut_inside():
    @jl.function
    def branch(x):
        if x.sum() > 0:
            with jl.jit_scope(cut=("Exp", "Sum")):
                y = np.exp(x).sum(axis=1)
        else:
            y = x[:, 0] * 1
        return y

    found = kernels(branch, X)
    assert apart(found, "exp", "sum")
    np.testing.assert_allclose(branch(X), np.exp(X).sum(axis=1), rtol=1e-13)


def test_fusing_computes_a_value_again_that_others_read():
    @jl.function
    def gram(x):
        with jl.jit_scope(fuse=("Exp", "Sum")):
            e = np.exp(x)
            return e.T @ e, e.sum(axis=0)

    assert {"exp", "sum"} in kernels(gram, X)
    e = np.exp(X)
    for mine, theirs in zip(gram(X), (e.T @ e, e.sum(axis=0)), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)
    again = gram.whatif(X, cut=("exp", "sum"), seconds=0.01)
    assert again.before.kernels == 3 and again.before.fingerprint != again.after.fingerprint
    assert "Exp" not in str(again.keep) or "cut" in str(again.keep)


def test_fusing_joins_scopes_that_compile_apart():
    @jl.function
    def two(x):
        with jl.jit_scope(fuse=("Exp", "Mul")):
            with jl.jit_scope(strict=True):
                e = np.exp(x)
            with jl.jit_scope(strict=True):
                return e * 2

    assert {"exp", "mul"} in kernels(two, X)


def test_a_plan_asked_of_such_a_program_keeps_what_its_scopes_decide():
    @jl.function
    def chain(x):
        with jl.jit_scope(cut=("Exp", "Mul")):
            e = np.exp(x) * 2
        return np.sqrt(e) + 1

    answer = chain.whatif(X, cut=("Sqrt", "AddV2"), seconds=0.01)
    assert (answer.before.kernels, answer.after.kernels) == (2, 3)
    assert chain.whatif(X, fuse=("Exp", "Mul"), seconds=0.01).after.kernels == 1


def test_a_call_in_pieces_decides_in_each_piece():
    kept = []

    @jl.jit
    def pieces(x):
        with jl.jit_scope(cut=("Exp", "Mul")):
            y = np.exp(x) * 2
            kept.__iadd__([1])
            z = np.exp(y) * 3
        return z

    with jl.record() as recording:
        np.testing.assert_allclose(pieces(X), np.exp(np.exp(X) * 2) * 3, rtol=1e-13)
    report = recording.report()
    assert len(report.kernels) == 4 and kept == [1]
    assert all(edge.reason.code == "cut" for edge in report.boundaries if edge.producer.startswith("exp"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"cut": ("Exp", "Mul"), "strict": True}, "two scopes, one inside the other"),
        ({"cut": "Exp"}, "no pair"),
        ({"fuse": [("Exp", 3)]}, "no pair"),
    ],
)
def test_what_a_scope_cannot_decide_is_said(options, words):
    @jl.function
    def wrong(x):
        with jl.jit_scope(**options):
            return np.exp(x) * 2

    with pytest.raises(jl.errors.OptionError, match=words):
        wrong(X)


def test_a_contract_sees_no_attribute_of_ours():
    seen = []

    @jl.function
    def asked(x):
        with jl.jit_scope(cut=("Exp", "Sum")), jl.jit_scope(lambda op: bool(seen.append(dict(op.attr))) or True):
            return helper(x)

    asked(X)
    assert seen and not any(name.startswith("_Jl") for attr in seen for name in attr)


@pytest.fixture
def afresh(monkeypatch):
    """Nothing was said yet."""
    monkeypatch.setattr(unmet, "_known", set())


def told(function, *args):
    """What a call of two shapes, and one more call, warn of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for x in (X, X[:50], X):
            function(x, *args)
    assert all(warning.filename == __file__ for warning in caught)
    return [str(warning.message) for warning in caught]


def scoped(body, **options):
    @jl.function
    def function(x):
        e = np.log(x + 2)
        with jl.jit_scope(**options):
            return body(x, e)

    return function


@pytest.mark.parametrize(
    ("option", "pair", "body", "why", "hint"),
    [
        ("cut", ("Exp", "Sum"), lambda x, e: np.sqrt(x) * 2, "kind or the name Exp", '"Sqrt", "Mul"'),
        ("cut", ("Exps", "Sum"), lambda x, e: np.exp(x * 2).sum(), "kind or the name Exps", '"Exp"'),
        ("fuse", ("Sum", "Exp"), lambda x, e: np.exp(x).sum(), "goes from `np.exp(x)` to", 'fuse=("Exp", "Sum")'),
        ("cut", ("Exp", "Sum"), lambda x, e: (np.exp(x) * x).sum(), "no Sum reads", '("Exp", "Mul"), ("Mul", "Sum")'),
        ("cut", ("Log", "Sum"), lambda x, e: e.sum(axis=0), "`e` (line", "a larger block"),
        ("cut", ("Neg", "Neg"), lambda x, e: np.negative(-x) * 3, "simplifying the program left no edge", "leave the pair out"),
        ("cut", ("Exp", "Sum"), lambda x, e: x, "nothing made inside is traced", "into the block"),
    ],
)
def test_a_scope_that_meets_no_edge_says_so_once(afresh, option, pair, body, why, hint):
    (text,) = told(scoped(body, **{option: pair}))
    head, where, because, instead = text.split("\n")
    assert head.startswith(f'jit_scope({option}=("{pair[0]}", "{pair[1]}")) meets no edge from {pair[0]} to {pair[1]}')
    assert "with jl.jit_scope(**options):" in where and why in because and hint in instead


def partly(x, whole):
    with jl.jit_scope(cut=("Exp", "Sum")):
        return np.exp(x).sum(axis=1) if whole else np.exp(x)[:, 0]


def in_turns(x):
    for i in range(1, 40):
        with jl.jit_scope(cut=("Exp", "RealDiv")):
            x = np.exp(-x) / (1 + np.sqrt(x) * i)
    return x


def on_one_side(x):
    with jl.jit_scope(cut=("Exp", "Sum")):
        y = np.exp(x).sum(axis=0) if x.sum() > 0 else x[0] * 1
    return y


def merged(x):
    e = np.exp(x)
    with jl.jit_scope(cut=("Exp", "Sum")):
        return np.exp(x).sum(axis=1), e


def differentiated(x):
    with jl.jit_scope(cut=("Exp", "Mul")):
        return jl.grad(lambda t: np.exp(t * 2).sum())(x)


def in_two_calls(x):
    return partly(x, False) + partly(x, True)


@pytest.mark.parametrize("body", [in_two_calls, in_turns, on_one_side, merged, differentiated])
@pytest.mark.parametrize("form", [jl.function, jl.jit])
def test_a_scope_that_meets_an_edge_somewhere_is_not_warned_of(afresh, form, body):
    assert told(form(body)) == []


def test_a_scope_in_pieces_is_not_warned_of():
    @jl.jit
    def pieces(x, kept):
        with jl.jit_scope(cut=("Exp", "Mul")):
            y = np.exp(x) * 2
            kept.__iadd__([1])
            z = np.sqrt(y) + 3
        return z

    assert told(pieces, []) == []


def test_a_statement_that_is_captured_anew_warns_once_for_what_it_is_in_the_end():
    @jl.jit
    def broken(x, kept):
        y = x * 2
        kept.append(1)
        with jl.jit_scope(cut=("Exp", "Sum")):
            z = np.sqrt(y) + 3
        return z

    (text,) = told(broken, [])
    assert '"Sqrt", "AddV2"' in text


def gram(x):
    e = np.exp(x)
    return e.T @ e, e.sum(axis=0)


def picked(x):
    e = np.exp(x)
    return np.linalg.inv(e[:20]), e[np.arange(5)] * 2


def changed_between(x):
    u = x * 2
    e = np.exp(u)
    g = e.T @ e
    u[0] = 7
    return g, e.sum(axis=0), u


def through_views(x):
    e = np.exp(x)
    return e.T @ e, np.sqrt(e.T[::-1]).sum(axis=1)


def both_read_it_again(x):
    e = np.exp(x)
    return e.T @ e, e.sum(axis=0), e.max(axis=0)


@pytest.mark.parametrize("form", [jl.function, jl.jit])
@pytest.mark.parametrize(
    ("body", "pair", "together"),
    [
        (gram, ("Exp", "Sum"), {"exp", "sum"}), (picked, ("Exp", "GatherV2"), None),
        (changed_between, ("Exp", "Sum"), {"exp", "sum"}), (through_views, ("Exp", "Sqrt"), {"exp", "sqrt"}),
        (both_read_it_again, ("Exp", "Max"), {"exp", "max"}), (gram, ("Exp", "MatMul"), None),
    ],
    ids=["sum", "picked", "changed between", "through views", "two readers", "library"],
)  # fmt: skip
def test_a_wish_of_a_scope_changes_one_nest_and_where_it_cannot_nothing(form, body, pair, together):
    @form
    def wished(x):
        with jl.jit_scope(fuse=pair):
            return body(x)

    plain = form(body)
    for mine, theirs in zip(wished(X.copy()), plain(X.copy()), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-13)
    found, without = kernels(wished, X), kernels(plain, X)
    assert [name for kernel in found for name in kernel if name.endswith("_again")] == []
    if together is None:
        assert found == without
    else:
        assert any(together <= kernel for kernel in found) and not any(together <= kernel for kernel in without)


def test_a_wish_is_met_by_one_clustering_and_the_graph_stays_as_it_is():
    @jl.function
    def wished(x):
        with jl.jit_scope(fuse=("Exp", "Sum")):
            return gram(x)

    executable = wished._replayable((X,), {})[0].executable
    executable.run([X])
    assert [node.name for node in executable.clustering.graph.nodes] == ["exp", "transpose", "matmul", "sum"]
    assert executable.clustering.overrides.again == ()

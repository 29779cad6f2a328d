"""The arguments of `jit` are checked when it decorates, in the contract's order and with its words."""

import inspect
import sys
import warnings

import numpy as np
import pytest

import jitlab as jl
from jitlab.api.functions.jit_options import ARGUMENTS
from jitlab.compat import mindspore
from jitlab.errors import OptionError


def add(x, y):
    """Adds."""
    return x + y


WRONG = [
    (dict(capture_mode="eager"), ValueError, "the 'capture_mode' must be str and must be in"),
    (dict(capture_mode=None), ValueError, "the 'capture_mode' must be str and must be in"),
    (dict(capture_mode=1), ValueError, "the 'capture_mode' must be str and must be in"),
    (dict(jit_level="O2"), ValueError, "the 'jit_level' must be str and must be in"),
    (dict(jit_level=0), ValueError, "the 'jit_level' must be str and must be in"),
    (dict(dynamic=1), TypeError, "the 'dynamic' must be"),
    (dict(dynamic="False"), TypeError, "the 'dynamic' must be"),
    (dict(fullgraph=1), TypeError, "the 'fullgraph' must be a bool, but got int."),
    (dict(exec_order=1), TypeError, "must be str"),
    (dict(exec_order="dff"), ValueError, "must be one of ['bfs', 'dfs']"),
    (dict(infer_boost=True), TypeError, "must be str"),
    (dict(infer_boost="yes"), ValueError, "must be one of ['on', 'off']"),
    (dict(disable_format_transform=1), TypeError, "must be bool"),
    (dict(ge_options="global"), TypeError, "must be dict"),
    (dict(ge_options={"local": {}}), ValueError, "must be one of ['global', 'session']"),
    (dict(ge_options={"global": 1}), TypeError, "must be dict"),
    (dict(ge_options={"global": {"a": 1}}), TypeError, "must map str to str"),
    (dict(ge_options={"session": {1: "a"}}), TypeError, "must map str to str"),
    (dict(exec_order=...), TypeError, "the option 'exec_order'|'exec_order' must be"),
    (dict(anything=...), TypeError, "'anything' must be made of str"),
]


@pytest.mark.parametrize("options, kind, words", WRONG, ids=[str(options) for options, _, _ in WRONG])
def test_a_wrong_argument_is_refused_at_decoration(options, kind, words):
    with pytest.raises(kind) as caught:
        jl.jit(**options)
    assert any(part in str(caught.value) for part in words.split("|"))
    assert str(caught.value).startswith(("For 'jit'", "For 'jit(options)'"))


IN_ORDER = ["capture_mode", "jit_level", "dynamic", "fullgraph", "exec_order"]


@pytest.mark.parametrize("first", range(len(IN_ORDER)), ids=IN_ORDER)
def test_the_first_wrong_argument_is_the_one_told_of(first):
    """Checks come in this order, options last."""
    with pytest.raises((TypeError, ValueError), match=IN_ORDER[first]):
        jl.jit(**{name: 7 for name in IN_ORDER[first:]})


def test_only_the_function_may_be_positional():
    with pytest.raises(TypeError):
        jl.jit(add, "ast")


def test_every_form_of_decoration_gives_the_same_function():
    x = np.arange(4.0)
    for jitted in (jl.jit(add), jl.jit(function=add), jl.jit()(add), jl.jit(fullgraph=True)(add), mindspore.jit(add)):
        np.testing.assert_array_equal(jitted(x, x), x + x)
        assert (jitted.__name__, jitted.__doc__, jitted.__wrapped__) == ("add", "Adds.", add)


def test_what_is_no_function_is_returned_unchanged_with_a_warning():
    with pytest.warns(UserWarning, match="is returned unchanged"):
        assert jl.jit(3) == 3


def test_an_unknown_option_is_ignored_with_a_warning():
    with pytest.warns(UserWarning, match="is not recognized"):
        jitted = jl.jit(add, faster=True)
    assert jitted(1.0, 2.0) == 3.0


@pytest.mark.parametrize("decorator", [jl.jit, mindspore.jit], ids=["jitlab", "mindspore"])
@pytest.mark.parametrize("wrong, near", [("fullgrpah", "fullgraph"), ("exec_ordr", "exec_order"), ("devcie", "device")])
def test_a_misspelt_option_is_told_at_the_users_line_with_the_one_that_is_near(decorator, wrong, near):
    line = sys._getframe().f_lineno + 2
    with pytest.warns(UserWarning, match=f"'{wrong}' is not recognized: did you mean {near}") as told:
        decorator(**{wrong: True})(add)
    assert [(warning.filename, warning.lineno) for warning in told] == [(__file__, line)]


def test_what_is_like_no_option_gets_no_guess():
    with pytest.warns(UserWarning, match="'zzz' is not recognized: it has no effect"):
        jl.jit(add, zzz=1)


def test_every_argument_of_jit_may_be_meant():
    own = [p.name for p in inspect.signature(jl.jit).parameters.values() if p.kind is p.KEYWORD_ONLY and p.name[0] != "_"]
    assert list(ARGUMENTS) == own


@pytest.mark.parametrize("name", ["mode", "input_signature", "jit_config", "compile_once"])
def test_an_old_name_is_dropped_with_a_warning(name):
    with pytest.warns(UserWarning, match="has been deprecated"):
        jl.jit(add, **{name: object()})


def test_an_option_of_another_backend_is_ignored_with_a_warning():
    with pytest.warns(UserWarning, match="is only support backend"):
        jl.jit(add, backend="ms_backend", ge_options={"global": {"a": "b"}})


def test_valid_options_say_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jl.jit(
            add, exec_order="dfs", infer_boost="on", disable_format_transform=True, dynamic=True, backend="ms_backend",
        )  # fmt: skip
        jl.jit(add, backend="GE", ge_options={"global": {"a": "b"}, "session": {}})


def test_an_unknown_backend_is_refused_at_the_first_call():
    jitted = jl.jit(add, backend="foo")
    with pytest.raises(RuntimeError, match="Invalid backend name: foo"):
        jitted(np.ones(2), np.ones(2))


@pytest.mark.parametrize("backend", ["", "ms_backend", "GE"])
def test_every_backend_runs_here(backend):
    assert jl.jit(add, backend=backend)(np.ones(2), 1.0).tolist() == [2.0, 2.0]


def with_default(x, y, z=1):
    return x + y + z


def test_too_few_arguments_are_counted():
    with pytest.raises(TypeError, match="Function add needs 2 positional argument, but got 1."):
        jl.jit(add)(1)


def test_too_many_arguments_are_counted():
    with pytest.raises(TypeError, match="and 0 default argument, total 2, but got 3."):
        jl.jit(add)(1, 2, 3)
    with pytest.raises(TypeError, match="needs 2 positional argument and 1 default argument, total 3, but got 4."):
        jl.jit(with_default)(1, 2, 3, 4)


def test_a_wrong_keyword_is_told_in_pythons_words():
    with pytest.raises(TypeError, match="missing a required argument: 'y'"):
        jl.jit(add)(x=1)
    with pytest.raises(TypeError, match="unexpected keyword argument 'w'"):
        jl.jit(add)(1, 2, w=3)


def test_jit_of_a_jitted_function_warns_and_works():
    with pytest.warns(UserWarning, match="is jitted already"):
        twice = jl.jit(jl.jit(add))
    assert twice(np.ones(2), 1.0).tolist() == [2.0, 2.0]


def test_levels_differ_in_fusion_alone():
    x = np.linspace(-1, 1, 1000)

    def program(x):
        return np.tanh(x * 2 + 1) / (1 + x * x)

    found = {}
    for level in ("O0", "O1"):
        with jl.record() as recording:
            found[level] = jl.jit(program, jit_level=level)(x)
        kernels = recording.report().kernels
        assert len(kernels) == (1 if level == "O1" else 6)
    np.testing.assert_allclose(found["O0"], found["O1"], rtol=1e-12)
    np.testing.assert_allclose(found["O1"], program(x), rtol=1e-12)


def test_the_default_level_fuses_and_that_of_mindspore_does_not():
    """The seed's default is O0."""
    assert jl.jit(add).options.jit_level == "O1"
    assert mindspore.jit(add).options.jit_level == "O0"


@pytest.mark.parametrize("decorator", [jl.jit, jl.function], ids=["jit", "function"])
def test_a_device_that_there_is_not_is_told_with_the_one_that_is_near_and_no_frames_of_jitlabs(decorator):
    with pytest.raises(OptionError, match="try: \"gpu\"") as caught:
        decorator(add, device="gpuu")
    files = [entry.path for entry in caught.traceback if not entry.frame.f_locals.get("__tracebackhide__")]
    assert {str(file) for file in files} == {__file__}
    with pytest.raises(OptionError, match="leave it away"):
        decorator(add, device="tpx")

"""What a panel may ask: whatever comes over the wire, there is an answer, and nothing of it is ever run."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitlab.errors import OptionError
from jitlab.notebook.cell_session import Session
from jitlab.notebook.rpc import requests
from jitlab.notebook.rpc.requests import Many, Maybe, Only, Pair, Text, Whole, answer, request

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


class Shell:
    """As much of a shell as a session needs before it starts."""


@pytest.fixture(scope="module")
def session():
    return Session(Shell())


def bodies():
    """Messages that name a real request, with fields of any shape."""
    fields = sorted({name for entry in requests.listed().values() for name in entry.fields})
    return st.dictionaries(st.sampled_from(["want", *fields]), JSON, max_size=6).flatmap(
        lambda body: st.sampled_from(sorted(requests.listed())).map(lambda want: {**body, "want": want})
    )


@given(st.one_of(JSON, bodies()))
def test_a_message_of_any_shape_gets_an_answer(session, body):
    reply = answer(session, body)
    assert isinstance(reply, dict)
    if "error" in reply:
        assert isinstance(reply["error"], str) and reply["error"].endswith(".") and len(reply["error"]) < 1500
    json.dumps(reply)


def test_what_is_not_on_the_list_is_named_no_further(session):
    for body in (None, [], 3, {}, {"want": ["report"]}, {"want": "exec", "code": "1/0"}, {"want": "__class__"}):
        error = answer(session, body)["error"]
        assert "does not know" in error and "exec" not in error


@pytest.fixture
def probe(session):
    """A request of each kind of field."""
    request(
        "probe", name=str, number=Whole(1, 9), stage=("graph", "asm"), edges=Many(Pair(str, str), most=2), extra=Maybe(Text(3)),
        against=Only({"baseline": str, "run": Whole()}),
    )(lambda session, **fields: {"got": fields})  # fmt: skip
    yield lambda **fields: answer(session, {"want": "probe", **GOOD, **fields})
    del requests.REQUESTS["probe"]


GOOD = {"name": "a", "number": 3, "stage": "asm", "edges": [["a", "b"]], "against": {"run": 5}}


def test_fields_are_checked(probe):
    assert probe()["got"] == {**GOOD, "edges": [("a", "b")], "extra": None}
    assert probe(unknown=1)["got"]["number"] == 3  # of a newer panel


@pytest.mark.parametrize(
    "field, value, says",
    [
        ("name", 3, "name has to be a text"),
        ("name", "x" * 501, "0 to 500 characters"),
        ("number", True, "a whole number"),
        ("number", 2.0, "a whole number"),
        ("number", 10, "from 1 to 9"),
        ("stage", "python", "one of graph, asm"),
        ("stage", {}, "one of graph, asm"),
        ("edges", [["a"]], "a list of two"),
        ("edges", [["a", "b"]] * 3, "a list of at most 2"),
        ("edges", "ab", "a list"),
        ("extra", "long", "0 to 3 characters"),
        ("against", {"run": 1, "baseline": "x"}, "an object with baseline or run"),
        ("against", {"run": -1}, "from 0"),
        ("against", [], "an object"),
    ],
)  # fmt: skip
def test_a_field_that_does_not_fit_is_named(probe, field, value, says):
    error = probe(**{field: value})["error"]
    assert says in error and error.startswith("jitlab can't answer probe")


def test_a_missing_field_is_named(session):
    assert answer(session, {"want": "report"})["error"] == "jitlab can't answer report: cell is missing."


def test_errors_of_who_answers_are_sentences(session):
    def ours(session):
        raise OptionError("no such plan", hint="step #1")

    def broken(session):
        raise KeyError("secret")

    try:
        request("ours")(ours)
        request("broken")(broken)
        assert answer(session, {"want": "ours"}) == {"error": "no such plan. Try: step #1."}
        assert answer(session, {"want": "broken"})["error"].startswith("jitlab could not answer: KeyError")
    finally:
        del requests.REQUESTS["ours"], requests.REQUESTS["broken"]

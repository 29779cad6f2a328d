"""The message table: closed lists of codes, each with a text that its arguments fill; the panel reads the same file."""

import ast
import json
import re
from pathlib import Path

import pytest

import jitlab
from jitlab import messages
from jitlab.capture.changes import CAUSES
from jitlab.messages import Message, units

PACKAGE = Path(jitlab.__file__).parent
TABLE = json.loads((PACKAGE / "messages/table.json").read_text(encoding="utf-8"))
CODES = {f"{group}.{name}" for group, entries in TABLE.items() for name in entries}


def literal_codes():
    """What the sources name: the first argument of Message and messages.text, where it is written out."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(func=ast.Name("Message"), args=[ast.Constant(str() as code), *_]):
                    yield code
                case ast.Call(func=ast.Attribute(ast.Name("messages"), "text"), args=[ast.Constant(str() as code), *_]):
                    yield code


@pytest.mark.parametrize("group", ["cause", "rule", "retrace"])
def test_each_cause_of_a_retrace_has_its_words(group):
    assert set(map(str, CAUSES)) <= messages.codes(group)


def test_each_code_that_the_sources_name_is_in_the_table():
    named = set(literal_codes())
    assert len(named) > 10 and named <= CODES


def test_a_text_is_filled_with_names_numbers_and_units():
    assert str(Message("fix.same_rank", {"path": "x{y}"})) == "Give x{y} the same number of axes each time."
    said = messages.text("next.host_share", op="ArgSort", seconds=0.0021, share=0.25)
    assert said == f"ArgSort on the host, {units.duration(0.0021)} (25 % of the run)"
    done = Message("done.array", {"names": "`k`"})
    text = "Once: `k` was a number before, an array from now on. Nothing to fix."
    assert done.to_json() == {"code": "array", "args": {"names": "`k`"}, "text": text}
    with pytest.raises(KeyError):
        messages.text("fix.of_another_kind")


@pytest.mark.parametrize("code", sorted(CODES))
def test_a_text_has_no_place_that_cannot_be_filled(code):
    group, name = code.split(".")
    template = TABLE[group][name]
    places = re.findall(r"\{[^}]*\}", template)
    assert all(re.fullmatch(r"\{\w+(:(size|duration|percent)|:counted \w+)?\}", place) for place in places)
    assert template == template.strip() and template

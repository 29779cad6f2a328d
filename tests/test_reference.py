"""The reference is whole: each public name stands on one page, and its docstring says what it is, names each parameter, the
result and the errors, and has an example, which is run."""

import builtins
import doctest
import inspect
import re
from collections import Counter
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

import jitlab as jl
from jitlab import autograph, datasets, errors, nn
from jitlab.compat import mindspore
from jitlab.config import Config

PAGES = sorted((Path(__file__).parent.parent / "docs" / "reference").glob("*.md"))
DIRECTIVE = re.compile(r"^\.\. auto(?:function|class):: (\S+)\n(?:   :members: (.*)\n)?", re.MULTILINE)
SECTION = re.compile(r"^(Args|Attributes|Returns|Raises|Example):\n((?:(?: +.*)?\n?)*)", re.MULTILINE)
ENTRY = re.compile(r"^    (\*{0,2}\w+): ", re.MULTILINE)

NAMES = {
    **{f"jitlab.{name}": getattr(jl, name) for name in jl.__all__ if name not in ("config", "errors")},
    **{f"jitlab.nn.{name}": getattr(nn, name) for name in nn.__all__},
    **{f"jitlab.compat.mindspore.{name}": getattr(mindspore, name) for name in ("jit", "Tensor")},
    **{f"jitlab.autograph.{name}": getattr(autograph, name) for name in ("do_not_convert", "set_loop_options")},
    **{f"jitlab.datasets.{n}": getattr(datasets, n) for n in ("Digits", "digits", "drawn_digits", "mnist", "read_idx")},
    "jitlab.config.Config": Config,
}
#: They check nothing and compute nothing that could fail; what NumPy raises for their arguments is NumPy's.
RAISE_NOTHING = {
    "jitlab.DeviceArray",
    "jitlab.functions_run_eagerly", "jitlab.global_variables_initializer", "jitlab.ledger", "jitlab.name_scope",
    "jitlab.record", "jitlab.run_functions_eagerly", "jitlab.stop_gradient", "jitlab.trim", "jitlab.nn.relu",
    "jitlab.autograph.do_not_convert", "jitlab.autograph.set_loop_options", "jitlab.datasets.Digits",
    "jitlab.datasets.drawn_digits", "jitlab.nn.sigmoid", "jitlab.nn.gelu", "jitlab.nn.one_hot",
    "jitlab.nn.softmax_cross_entropy",
}  # fmt: skip
#: What users meet: what one part tells another by raising it is none of it.
ERRORS = {n: e for n, e in vars(errors).items() if isinstance(e, type) and issubclass(e, errors.JitlabError)}


def documented():
    """(page, name, its members) of each directive on the pages of the reference."""
    for page in PAGES:
        for name, members in DIRECTIVE.findall(page.read_text(encoding="utf-8")):
            yield page.stem, name, [member.strip() for member in members.split(",") if member]


def sections(value):
    text = inspect.getdoc(value)
    return text, {name: inspect.cleandoc("x\n" + body)[2:] for name, body in SECTION.findall(text)}


def parameters(value):
    """As a docstring names them, stars included; private ones are nobody's."""
    if value is mindspore.Tensor:
        value = type(value).__call__.__get__(value)
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    found = inspect.signature(value).parameters.values()
    return [stars.get(p.kind, "") + p.name for p in found if not p.name.startswith("_") and p.name != "self"]


@pytest.mark.skipif(not PAGES, reason="the documentation is not part of this copy")
def test_each_public_name_stands_on_one_page():
    assert Counter(name for _, name, _ in documented()) == Counter(list(NAMES))


@pytest.mark.parametrize("name", NAMES)
def test_a_docstring_says_what_it_is_and_names_parameters_result_errors(name):
    value = NAMES[name]
    text, parts = sections(value)
    first = text.split("\n\n")[0]
    assert len(first) > 20 and first.endswith((".", ":")) and not first.startswith("`")
    named = ENTRY.findall("\n" + "\n".join("    " + line for line in parts.get("Args", "").splitlines()))
    assert named == ([] if value is Config else parameters(value))
    assert "Returns" in parts or isinstance(value, type)
    assert ("Raises" in parts) != (name in RAISE_NOTHING)


@pytest.mark.parametrize("name", sorted(set(NAMES) - RAISE_NOTHING))
def test_the_errors_of_a_docstring_exist(name):
    _, parts = sections(NAMES[name])
    named = re.findall(r"^(\w+): \S", parts["Raises"], re.MULTILINE)
    assert named and [error for error in named if error not in ERRORS and not hasattr(builtins, error)] == []


def examples():
    yield "jitlab.errors.JitlabError", errors.JitlabError
    for name, value in NAMES.items():
        yield name, value
        for method in next((members for _, page_name, members in documented() if page_name == name), []):
            if "Example:" in (inspect.getdoc(getattr(value, method)) or ""):
                yield f"{name}.{method}", getattr(value, method)


@pytest.mark.parametrize(("name", "value"), [pytest.param(*found, id=found[0]) for found in examples()])
def test_the_example_of_a_docstring_prints_what_it_says(name, value):
    for needing, library in (("jitlab.explorer", "ipywidgets"), ("jitlab.datasets.digits", "sklearn")):
        if name == needing:
            pytest.importorskip(library)
    said = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    test = doctest.DocTestParser().get_doctest(inspect.getdoc(value), {"np": np, "jl": jl}, name, name, 0)
    assert test.examples
    runner.run(test, out=said.append)
    vars(builtins).pop("_", None)  # doctest's display leaves it
    assert not runner.failures, "".join(said)


@pytest.mark.parametrize("name", [name for _, name, members in documented() if members])
def test_methods_on_a_page_have_a_docstring_that_names_their_parameters(name):
    members = next(members for _, page_name, members in documented() if page_name == name)
    for method in members:
        value = inspect.getattr_static(NAMES[name], method)
        text = inspect.getdoc(getattr(NAMES[name], method))
        assert text, method
        if callable(value) or isinstance(value, classmethod):
            names = [p for p in inspect.signature(getattr(NAMES[name], method)).parameters if p not in ("self", "name")]
            assert [p for p in names if not re.search(rf"\b{p}\b", text)] == [], method


def test_each_setting_is_told():
    _, parts = sections(Config)
    told = re.findall(r"^(\w+): ", parts["Attributes"], re.MULTILINE)
    assert told == [field.name for field in fields(Config)]


@pytest.mark.parametrize("name", ERRORS)
def test_each_error_says_what_it_is_and_stands_in_the_tree(name):
    value = ERRORS[name]
    assert len(inspect.getdoc(value)) > 20
    built_in = [base for base in value.__mro__ if base.__module__ == "builtins"]
    line = re.search(rf"^ +{name}\b(\((.*?)\))?", errors.__doc__, re.MULTILINE)
    assert line
    for base in (line[2] or "").split(", "):
        assert not base or getattr(builtins, base) in built_in

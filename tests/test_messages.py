"""The message table: closed lists of codes, each with a text that its arguments fill; the panel reads the same file."""

import ast
import json
import re
from pathlib import Path

import pytest

import jitlab
from jitlab import messages
from jitlab.capture.guards.changes import CAUSES
from jitlab.events import VariantCause
from jitlab.messages import Message, units

PACKAGE = Path(jitlab.__file__).parent
ROOT = Path(__file__).parents[1]
TABLE = json.loads((PACKAGE / "messages/table.json").read_text(encoding="utf-8"))
CODES = {f"{group}.{name}" for group, entries in TABLE.items() for name in entries}


#: What others write or hand out, and names that are no text: file -> constants.
NOT_OURS = {
    "api/check/check_text.py": {"complex"},  # of a dtype
    "api/retraces/fixes.py": {"closure "},  # marks a path of the replay
    "capture/drivers/function_body.py": {"cannot access free variable"},  # Python's
    "capture/control/conditions.py": {"cannot access free variable"},
    "notebook/history.py": {"cell "},  # an id
    "notebook/magics/magics.py": {"argument "},  # argparse's
    "ops/numpy_api/rules_creation.py": {"operands could not be broadcast together"},  # NumPy's
    "report/store/settled.py": {"cell "},  # the name of a source
    "report/origin.py": {"model name"},  # the system's
    "report/render/svg.py": {"op by op"},  # a lane
    "targets/cpu_llvm/listing.py": {"define ", "target "},  # LLVM's
    "targets/gpu_cuda/kernel_listing.py": {"define "},
    "targets/gpu_cuda/kernels/kernel_writer.py": {"declare "},
    "targets/gpu_cuda/simulation/processor_text.py": {"align ", "attributes ", "declare ", "define ", "target "},
    "targets/llvm/located_text.py": {"define "},
}
LOOKS = {
    "startswith", "endswith", "removeprefix", "removesuffix", "partition", "rpartition", "split", "rsplit", "find", "index",
    "count", "match", "search", "fullmatch", "sub", "findall",
}  # fmt: skip
PHRASE = re.compile(r"[A-Za-z]{2,} [a-z]|^[A-Z]?[a-z]{2,}[:,]? $")
TEXTS = [text for entries in TABLE.values() for text in entries.values()]


def looked_for(source):
    """The words that a source looks for in texts: in `startswith` and its like, in regular expressions, and by `in`."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Attribute(attr=name), args=args) if name in LOOKS:
                found = args
            case ast.Compare(left=ast.Constant() as left, ops=ops) if any(isinstance(op, (ast.In, ast.NotIn)) for op in ops):
                found = [left]
            case _:
                continue
        for part in (part for arg in found for part in ast.walk(arg)):
            if isinstance(part, ast.Constant) and isinstance(part.value, str) and is_message(part.value):
                yield part.value


def is_message(words):
    """It reads like a phrase, or begins or ends a text of the table."""
    edges = len(words) > 4 and words.isascii() and any(t.startswith(words) or t.endswith(words) for t in TEXTS)
    return bool(PHRASE.search(words)) or edges


#: What makes a message of the group `refused`, of a code and a row.
REFUSING = {"EndPiece", "StoresOutside", "NotReplayable", "NotRolled", "refusal", "error", "refuse"}
OTHERS = {"source", "met"}  # of their arguments, those that fill no place


def literal_messages():
    """What the sources name: the code of each message that is written out, and the names of its arguments, or None."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(func=ast.Name("Message"), args=[ast.Constant(str() as code), *rest]):
                    filled = rest[0].keys if rest and isinstance(rest[0], ast.Dict) else [None] * len(rest)
                    yield code, None if None in filled else {key.value for key in filled}
                case ast.Call(func=ast.Attribute(ast.Name("messages"), "text"), args=[ast.Constant(str() as code), *_]):
                    yield code, None
                case ast.Call(func=ast.Name("Unsupported"), args=[ast.Constant(str() as row), *_]):
                    yield f"stays.{row}", {keyword.arg for keyword in node.keywords}
                case ast.Call(func=ast.Name(name) | ast.Attribute(attr=name), args=args) if name in REFUSING:
                    rows = [arg.value for arg in args[1:3] if isinstance(arg, ast.Constant) and arg.value in TABLE["refused"]]
                    filled = {keyword.arg for keyword in node.keywords}
                    yield from ((f"refused.{row}", None if None in filled else filled - OTHERS) for row in rows)


def places_of(code):
    group, _, name = code.partition(".")
    return set(re.findall(r"\{(\w+)", TABLE[group][name]))


@pytest.mark.parametrize("group", ["cause", "rule", "retrace"])
def test_each_cause_of_a_retrace_has_its_words(group):
    assert set(map(str, CAUSES)) <= messages.codes(group)


def test_each_cause_of_a_variant_has_its_words():
    assert set(map(str, VariantCause)) == messages.codes("variant")


def test_each_code_that_the_sources_name_is_in_the_table():
    named = {code for code, _ in literal_messages()}
    assert len(named) > 10 and named <= CODES


def test_each_message_that_is_written_out_has_the_arguments_that_its_text_wants():
    wrong = {code: places_of(code) ^ filled for code, filled in literal_messages() if filled is not None}
    assert len(wrong) > 50 and not {code: names for code, names in wrong.items() if names}


@pytest.mark.parametrize("group", ["refused", "notfused", "stored", "blocker"])
def test_each_message_of_the_table_is_made_somewhere(group):
    sources = "".join(path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))
    assert not [row for row in TABLE[group] if f'"{row}"' not in sources and f'"{group}.{row}"' not in sources]


def test_a_text_is_filled_with_names_numbers_and_units():
    assert str(Message("fix.same_rank", {"path": "x{y}"})) == "Give x{y} the same number of axes each time."
    said = messages.text("next.host_share", op="ArgSort", seconds=0.0021, share=0.25)
    assert said == f"ArgSort is left to NumPy, {units.duration(0.0021)} (25 % of the work)"
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


@pytest.mark.parametrize(
    "source", ['fix.startswith("Pass ")', '"Nothing to fix" in fix', 're.match(r"its body (needs|asks)", why)',
               'why.removeprefix("Not fused: ")', 'proof.endswith("from now on. Nothing to fix.")', 't.startswith("Once: ")'],
)  # fmt: skip
def test_a_look_into_a_text_is_found(source):
    assert list(looked_for(source))


def test_nothing_decides_on_the_text_of_a_message():
    """A text may be said in another way tomorrow. What was decided is a code, a class or a count."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        name = path.relative_to(PACKAGE).as_posix()
        wrong = set(looked_for(path.read_text(encoding="utf-8"))) - NOT_OURS.get(name, set())
        if wrong and name != "report/store/older.py":  # reads what an earlier version wrote, whose texts stay
            found[name] = wrong
    assert not found


#: Whose names are for who comes from them: `jitlab.compat`, which has their names, and XLA's dumps and flags.
FOREIGN = re.compile(r"TensorFlow|[Mm]ind[Ss]pore|\btf\.[A-Za-z]|xla\.experimental")


def docstrings(tree):
    """The docstrings of a module, which are for who works on it, unless it is a public name's."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            if node.body and isinstance(node.body[0], ast.Expr) and isinstance(node.body[0].value, ast.Constant):
                yield node.body[0].value


def foreign_texts(source):
    """The texts of a source that name another library, unless they are said by the contract (`by_contract`)."""
    tree = ast.parse(source)
    named = {target.id: node.value for node in tree.body if isinstance(node, ast.Assign) for target in node.targets
             if isinstance(target, ast.Name)}  # fmt: skip
    told = {id(text) for text in docstrings(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "by_contract":
            given = [named.get(arg.id, arg) if isinstance(arg, ast.Name) else arg for arg in node.args]
            told |= {id(part) for arg in given for part in ast.walk(arg)}
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told
        if is_text and FOREIGN.search(node.value):
            yield node.value


def test_other_libraries_are_named_to_who_uses_their_names_alone():
    assert [text for text in TEXTS if FOREIGN.search(text)] == []
    found = {
        str(path.relative_to(PACKAGE)): texts
        for path in PACKAGE.rglob("*.py")
        if path.relative_to(PACKAGE).parts[0] != "compat" and (texts := list(foreign_texts(path.read_text(encoding="utf-8"))))
    }
    assert found == {"capture/tracers/arrays.py": ["a symbolic `tf.Tensor`"]}  # a field, which by_contract is given
    public = {name: getattr(jitlab, name).__doc__ or "" for name in jitlab.__all__}
    assert [name for name, text in public.items() if FOREIGN.search(text)] == []
    pages = [*ROOT.glob("extension/src/**/*.ts"), *ROOT.glob("docs/tutorial/*.md"), *ROOT.glob("docs/howto/*.md")]
    pages += [ROOT / "README.md", *ROOT.glob("notebooks/*.ipynb")]
    lines = [f"{page.name}: {line}" for page in pages for line in page.read_text(encoding="utf-8").splitlines()]
    assert [line for line in lines if FOREIGN.search(line) and "compat" not in line] == []


def test_a_text_that_names_another_library_is_found():
    assert list(foreign_texts('raise ValueError("tf.function takes none")')) == ["tf.function takes none"]
    assert list(foreign_texts('A = "tf.Tensor"\nraise ValueError(by_contract(A), by_contract(f"tf.function {x}"))')) == []
    assert list(foreign_texts('def f():\n    """As TensorFlow."""\n    return "as TensorFlow"')) == ["as TensorFlow"]


@pytest.mark.parametrize(
    ("said", "own"),
    [
        ("inputs to tf.function and tf.Variables", "inputs to jl.function and jl.Variables"),
        ("a `tf.bool` scalar, dtype=tf.float32", "a `bool` scalar, dtype=float32"),
        ("xla.experimental.jit_scope", "jl.jit_scope"),
        ("<tf.Tensor 'x:0'>", "<jl.Tensor 'x:0'>"),
    ],
)
def test_the_contracts_names_are_for_who_uses_them(said, own, monkeypatch):
    assert messages.by_contract(said) == own
    monkeypatch.setattr(messages.message, "_CONTRACT", "jitlab.messages")  # a module that is loaded
    assert messages.by_contract(said) == said


@pytest.mark.parametrize("keyword", ["assert", "import", "with"])
def test_a_statement_is_named_without_an_article_that_would_have_to_fit_it(keyword):
    assert messages.text("refused.keyword", keyword=keyword) == f"the statement `{keyword}` cannot be compiled"

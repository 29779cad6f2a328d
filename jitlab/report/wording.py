"""How the report says numbers, lines and causes: one wording for text, picture, HTML and panel data."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from types import FunctionType
from typing import Any

from jitlab import trees
from jitlab.costs import short_numbers
from jitlab.ir import cell_names, told
from jitlab.ir.dot import line_text as line_text
from jitlab.legible import clean
from jitlab.messages import units

#: What a cause of a retrace is called in a sentence.
CAUSES = {
    "python_value": "a Python value",
    "shape": "a shape",
    "rank": "a number of axes",
    "dtype": "a dtype",
    "structure": "a structure",
    "argument_type": "another type",
    "global": "a global name",
    "closure": "a closure variable",
    "aliasing": "arguments that are one array",
    "options": "other options",
    "redefined_function": "a function that was defined again",
    "cache_evicted": "a trace that had made room",
    "first_call": "the first call",
    "unknown": "something that nobody knows",
}

#: What a cause of a kernel's variant is called.
VARIANTS = {
    "layout": "a memory layout",
    "alignment": "an alignment",
    "overlap": "arguments that overlap",
    "small_extent": "a small size, part of the kernel",
    "target": "another target",
}

#: Why Python or NumPy ran something, where whoever captured it gave a code alone.
REASONS = {
    "aliasing": "what it reads and writes shares memory otherwise than when it was captured",
    "data_dependent_shape": "the shape of its result depends on values",
    "compiled_function": "it calls a compiled function",
    "retraced": "it was captured several times and never fitted again",
    "internal": "jitlab made a mistake, and saw it before anything was changed",
    "error": "it ended with an error when it was captured",
    "effect": "it does more than give a result",
    "check": "it checks a value that is known only when it runs, and raises",
    "value": "it asks for a value that is known only when it runs",
    "statement": "such a statement is not captured",
    "too_long": "it is too many operations for one program",
    "no_loop_body": "jitlab has no loop for it, so NumPy runs it",
    "dtype": "jitlab has no loop for this dtype, so NumPy runs it",
    "foreign_type": "it works on something other than plain arrays of numbers",
    "stateful_random": "it draws from a random generator, whose order is NumPy's",
}


#: Why a loop was not rolled into one loop of the graph: a clause for each code of LoopKept.
LOOPS = {
    "effect": "its body has an effect",
    "index_value": "its body needs the loop's index as a number",
    "extents": "the shapes in its body depend on the iteration",
    "shape": "an array gets another shape in it",
    "kind": "a variable becomes another kind of value in it",
    "type": "a variable becomes another type in it",
    "zero_division": "it may divide by 0, which is an error in Python",
    "host_operation": "NumPy runs an operation of its body",
    "internal": "jitlab made a mistake when it rolled it",
    "check": "its body checks a value that only a run knows, and an error has to come from the right iteration",
    "aliasing": "two names that are one array in an iteration are two in the next",
    "value": "its body asks for a value that only a run knows",
    "test": "its body asks for a value that only a run knows",
    "data_dependent_shape": "a shape in its body depends on values",
    "foreign_type": "its body works on something other than arrays of numbers",
    "too_long": "its iterations are too many operations for one program",
    "error": "an iteration of it ends with an error",
}


def loop_reason(code: str, text: str) -> str:
    """Why a loop was not rolled: the rule, then what broke it."""
    rule = LOOPS.get(code, "")
    detail = clean(text).strip().removesuffix(".")
    return ": ".join(filter(None, (rule, detail))) or code.replace("_", " ")


def unmarked(text: str) -> str:
    """Without the marks that a text has around the program's words, for what shows them in another way or not at all."""
    return text.replace("`", "")


def names_size(text: str) -> bool:
    """The text says a number of bytes."""
    return re.search(r"\d (B|kB|MB|GB)\b", text) is not None


def first_sentence(text: str) -> tuple[str, str]:
    """The first sentence or clause, and what follows it."""
    end = re.search(r"[.:;] (?=[A-Za-z`])", text)
    return (text[: end.start()], text[end.end() :]) if end else (text.removesuffix("."), "")


#: Beside a ratio of two single measurements.
ONE_RUN_EACH = "one run each"


def own_run(seconds: float | None) -> str:
    """What the run took whose code was timed afterwards; "" where nobody knows."""
    return "" if seconds is None else f"The run of the cell itself took {units.duration(seconds)}."


def one_of(name: str, names: Iterable[str]) -> str:
    """What an error advises where nothing is called `name`: the names that are nearest, else the first."""
    known = list(names)
    near = difflib.get_close_matches(name, known, 3, 0.5) or known[:8]
    return f"one of {', '.join(near)}" if near else ""


def operations(data: Mapping[str, Any]) -> dict[tuple[str, str], Mapping[str, Any]]:
    """The operations of a report by plan and name."""
    return {(op["plan"], op["name"]): op for op in data["ops"]}


def operation_text(op: Mapping[str, Any] | None, name: str, lines: str = "") -> str:
    """An operation as the program calls it: "`inv6` (realdiv_1, line 7)"; by its name where the report has no more of it."""
    op = op or {}
    return told(name, str(op.get("called") or ""), str(op.get("within") or ""), lines=lines)


def numbers_of(spans: Iterable[Sequence[Any]]) -> list[int]:
    """The line numbers of a list of spans."""
    return sorted({int(span[1]) for span in spans})


def short_file(file: str) -> str:
    """The name of a file without its folders, or what a person calls a cell: "In [3]"."""
    cell = re.fullmatch(r"<cell (\d+)>", file)
    return cell_names.get(file) or (f"In [{cell[1]}]" if cell else "") or file.replace("\\", "/").rsplit("/", 1)[-1]


def with_values(text: str, values: Sequence[str], more: bool) -> str:
    """What is another each time, with the first of its values: "has another length each time: 6479, 6502, …"."""
    if not values:
        return text
    return f"{text}: {', '.join(values)}{', …' if more else ''}"


def cause_text(cause: str, before: str = "") -> str:
    """What changed, with an article: "a Python number", "a shape"."""
    if cause == "python_value" and before:
        return "a Python number" if _is_number(before) else "a Python string" if before[0] in "'\"" else "a Python value"
    return CAUSES.get(cause) or cause.replace("_", " ")


def short_type(text: str) -> str:
    """ "float32[60000, 784]" -> "f32[60000,784]", wherever it stands in a text."""
    kinds = {"float": "f", "int": "i", "uint": "u", "complex": "c"}
    return re.sub(
        r"\b(float|int|uint|complex)(\d+)\[([\d, ]*)\]",
        lambda found: f"{kinds[found[1]]}{found[2]}[{found[3].replace(' ', '')}]",
        text,
    )


def short_change(before: str, after: str) -> tuple[str, str]:
    """Both sides in short: types, and numbers of very many digits, unless that makes the two look alike."""
    before, after = short_type(before), short_type(after)
    return short_numbers(before, after)


def retrace_text(cause: str, argument: str, before: str, after: str) -> str:
    """The sentence of one retrace: subject, what it was and is, then the rule."""
    before, after = short_change(before, after)
    if cause == "first_call":
        return "first call"
    name = argument or "an argument"
    change = f"{name} was {before}, then {after}" if before or after else f"{name} changed"
    rules = {
        "unknown": after,
        "layout": f"{change}: how the array lies in memory decides what shares memory",
        "options": f"{change}: other options are other traces",
        "redefined_function": f"{name} was {after or 'defined again'}: it starts without traces",
        "cache_evicted": "its trace had made room for newer ones" + (f": {after.split(': ', 1)[1]}" if ": " in after else ""),
        "aliasing": f"{change}: which arguments are one array is part of a trace",
        "python_value": f"{change}: {cause_text(cause, before)} is part of a trace"
        if not after.startswith("another ")
        else f"{change}: each object is a trace of its own",
        "shape": f"{name}: {before} → {after}, captured again",
        "rank": f"{name}: {before} → {after}, another number of axes",
        "dtype": f"{name}: {before} → {after}, another dtype is another trace",
        "argument_type": f"{change}: another type is another trace",
        "structure": f"{change}: the structure of an argument is part of a trace",
        "global": f"{change}: what a global name holds is part of a trace",
        "closure": f"{change}: what a closure holds is part of a trace",
    }
    return rules.get(cause, f"{change}: {cause_text(cause, before)}")


def next_for_retraces(cause: str, argument: str, times: int, fix: str) -> str:
    """The headline of the suggestion: what to do, then how often it happened."""
    often = "once" if times == 1 else f"{times} times"
    name = argument or "the argument"
    if is_code(fix):
        if "asarray(" in fix:
            return f"Make {name} an array: it retraced {often}"
        if cause == "dtype":
            return f"Keep the dtype of {name}: it retraced {often}"
    return f"{name} retraced {often}"


def is_code(fix: str) -> bool:
    """A fix that can be copied into the program, not a sentence. A decorator is one."""
    try:
        body = trees.parse(fix.removeprefix("@")).body
        return bool(body) and not (isinstance(body[0], ast.Expr) and not isinstance(body[0].value, ast.Call))
    except (SyntaxError, ValueError):
        return False


def is_call(fix: str) -> bool:
    """A fix that is the call as it is to be written, not a line before it."""
    return is_code(fix) and isinstance(trees.parse(fix).body[0], ast.Expr)


LOW = 0.25  # of a peak: what reaches less is bound by something else


def bound_text(kernel: Mapping[str, Any]) -> str:
    """ "memory-bound, 93 % of peak", "5 % of the memory's peak", "in cache"; "" while nothing was measured."""
    if not kernel.get("bound"):
        return ""
    if kernel["bound"] == "cache":
        return "in cache"
    of_peak = kernel.get("of_peak")
    if of_peak is not None and of_peak < LOW:
        return f"{units.percent(of_peak)} of {'the memory' if kernel['bound'] == 'memory' else 'arithmetic'}'s peak"
    return f"{kernel['bound']}-bound" + (f", {units.percent(of_peak)} of peak" if of_peak is not None else "")


def moved_text(bytes_read: int, bytes_written: int, per_turn: bool = False) -> str:
    """ "reads 191 MB, writes 2.6 MB". `per_turn`: of a loop whose turns nobody counted, one turn is."""
    parts = [f"reads {units.size(bytes_read)}"] if bytes_read else []
    parts += [f"writes {units.size(bytes_written)}"] if bytes_written else []
    return ", ".join(parts) + (" with one turn of its loop" if per_turn and parts else "")


def flip_text(would_fuse_if: str) -> str:
    """What would change a decision, as a sentence."""
    text = would_fuse_if if would_fuse_if.startswith("Would") else f"Would fuse if {would_fuse_if}"
    return text if text.endswith(".") else text + "."


#: Behind a reason that nothing is known to change.
NO_FLIP = "No change that would fuse them is known."
#: Behind one that nothing can change.
NEVER = {
    "whole_reduction": "No change of the program fuses them: every element is read before the first result is known.",
    "library_call": "No change of the program fuses them: a library takes its operand and gives its result as a whole.",
}


def no_flip(code: str, kinds: Iterable[str]) -> str:
    """What is said behind a reason without a flip, of an edge between operations of these kinds."""
    if code == "library_call" and "MatMul" in kinds:
        return "A sum of products would be loops that fuse; a product of this size is a library's work."
    return NEVER.get(code, NO_FLIP)


def not_compiled(function: Any) -> str:
    """Of a function that is neither a jl.function nor a jl.jit, and called none: that, and what would compile it."""
    name = clean(function.__name__)
    if not isinstance(getattr(function, "__func__", function), FunctionType):
        return f"{name} is not compiled by itself: call it in a function under @jl.jit, and explain that one"
    if not name.isidentifier():
        return "This function is plain Python, so nothing is compiled: hand jl.jit(function) to jl.explain"
    return f"{name} is plain Python, so nothing is compiled: put @jl.jit above it, or ask jl.explain(jl.jit({name}), ...)"


def calls_text(calls: int, seconds: float | None) -> str:
    """ "6 calls of 5.5 ms"; "" for one, where the time is that of the call."""
    if calls <= 1:
        return ""
    return units.counted(calls, "call") + (f" of {units.duration(seconds / calls)}" if seconds is not None else "")


def _is_number(text: str) -> bool:
    try:
        complex(text)
    except ValueError:
        return text in ("True", "False")
    return True

"""How the report says numbers, lines and causes: one wording for text, picture, HTML and panel data."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from types import FunctionType
from typing import Any

from jitlab import messages
from jitlab.costs import short_numbers
from jitlab.ir import cell_names, told
from jitlab.ir.graphs.dot import line_text as line_text
from jitlab.messages import Message, units
from jitlab.messages.escape import clean


def loop_reason(code: str, said: Message) -> str:
    """Why a loop was not rolled: the rule, then what broke it; what it does to the world says all."""
    detail = clean(said).strip().removesuffix(".")
    rule = messages.text(f"loop.{code}") if code in messages.codes("loop") and not (code == "effect" and detail) else ""
    return ": ".join(filter(None, (rule, detail))) or code.replace("_", " ")


def unmarked(text: str) -> str:
    """Without the marks that a text has around the program's words, for what shows them in another way or not at all."""
    return text.replace("`", "")


def clause_of(reason: Mapping[str, Any]) -> str:
    """What a reason says first."""
    return str(reason.get("clause") or reason["text"])


def clause_says_size(reason: Mapping[str, Any]) -> bool:
    """Its first clause says how many bytes the value has."""
    return reason.get("size_in") == "clause"


def one_of(name: str, names: Iterable[str]) -> str:
    """What an error advises where nothing is called `name`: the names that are nearest, else the first."""
    known = list(names)
    near = difflib.get_close_matches(name, known, 3, 0.5) or known[:8]
    return f"one of {', '.join(near)}" if near else ""


def operations(data: Mapping[str, Any]) -> dict[tuple[str, str], Mapping[str, Any]]:
    """The operations of a report by plan and name."""
    return {(op["plan"], op["name"]): op for op in data["ops"]}


def outermost(name: str, around: Callable[[str], str | None]) -> str:
    """The loop or branch around an operation, and around that; itself where there is none. `around`: the nearest one."""
    seen = {name}
    while (outer := around(name)) is not None and outer not in seen:  # a saved report may say anything
        seen.add(outer)
        name = outer
    return name


def operation_text(op: Mapping[str, Any] | None, name: str, lines: str = "") -> str:
    """An operation as the program calls it: "`inv6` (line 7)"; by its name where the report has no more of it."""
    op = op or {}
    return told(str(op.get("word") or name), str(op.get("called") or ""), str(op.get("within") or ""), lines=lines)


def written(op: Mapping[str, Any]) -> str:
    """How the program writes an operation; in reports that do not say it the operation's kind."""
    return str(op.get("written") or op["op"])


def numbers_of(spans: Iterable[Sequence[Any]]) -> list[int]:
    """The line numbers of a list of spans."""
    return sorted({int(span[1]) for span in spans})


def short_file(file: str) -> str:
    """The name of a file without its folders, or what a user calls a cell: "In [3]"."""
    cell = re.fullmatch(r"<cell (\d+)>", file)
    return cell_names.get(file) or (f"In [{cell[1]}]" if cell else "") or file.replace("\\", "/").rsplit("/", 1)[-1]


def with_values(text: str, values: Sequence[str], more: bool) -> str:
    """What is another each time, with the first of its values: "the length changes from run to run: 6479, 6502, …"."""
    if not values:
        return text
    return f"{text}: {', '.join(values)}{', …' if more else ''}"


def _kind_of(cause: str, before: str) -> str:
    """The code of a cause, of a Python value the one that says of which kind."""
    if cause != "python_value" or not before:
        return cause
    return "python_number" if _is_number(before) else "python_string" if before[0] in "'\"" else cause


def cause_text(cause: str, before: str = "") -> str:
    """What changed, with an article: "a Python number", "a shape"."""
    code = _kind_of(cause, before)
    return messages.text(f"cause.{code}") if code in messages.codes("cause") else cause.replace("_", " ")


def statement_reason(code: str) -> str:
    """Why Python ran a statement, where capture gave a code alone."""
    return messages.text(f"statement.{code}") if code in messages.codes("statement") else code


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


def change_text(argument: str, before: str, after: str) -> str:
    """The subject, and what it was and is."""
    name = argument or "an argument"
    return f"{name} was {before}, then {after}" if before or after else f"{name} changed"


def retrace_text(cause: str, argument: str, before: str, after: str, rule: str = "") -> str:
    """The sentence of one retrace: subject, what it was and is, then the rule."""
    before, after = short_change(before, after)
    name, change = argument or "an argument", change_text(argument, before, after)
    code = rule or _kind_of(cause, before)
    if code not in messages.codes("retrace"):
        return f"{change}: {cause_text(cause, before)}"
    if cause == "redefined_function":
        after = after or "defined again"
    return messages.text(f"retrace.{code}", name=name, change=change, before=before, after=after)


LOW = 0.25  # of a peak: what reaches less is bound by something else


def bound_text(kernel: Mapping[str, Any]) -> str:
    """ "memory-bound, 93 % of peak", "in cache"; "" while nothing was measured, and of what is far from both peaks."""
    if not kernel.get("bound"):
        return ""
    if kernel["bound"] == "cache":
        return "in cache"
    of_peak = kernel.get("of_peak")
    if of_peak is not None and of_peak < LOW:
        return ""
    return f"{kernel['bound']}-bound" + (f", {units.percent(of_peak)} of peak" if of_peak is not None else "")


def moved_text(bytes_read: int, bytes_written: int, per_turn: bool = False, calls: int = 1) -> str:
    """ "reads 191 MB, writes 2.6 MB a call"; of one call no more. `per_turn`: of a loop whose iterations nobody counted, one
    is."""
    parts = [f"reads {units.size(bytes_read)}"] if bytes_read else []
    parts += [f"writes {units.size(bytes_written)}"] if bytes_written else []
    each = " for one iteration of its loop" if per_turn else " a call" if calls > 1 else ""
    return ", ".join(parts) + (each if parts else "")


FOR_NOTHING = "twice_for_nothing"


def flip_text(would_fuse_if: str) -> str:
    """What would change a decision, as a sentence."""
    return f"Would fuse if {would_fuse_if.removesuffix('.')}."


def flips_for_nothing(edge: Mapping[str, Any]) -> bool:
    """The change that would join the two ends of an edge saves no memory traffic."""
    return bool(edge["flip"]) and edge["flip"].get("code") == FOR_NOTHING


def no_flip(code: str, kinds: Iterable[str]) -> str:
    """What is said behind a reason without a flip, of an edge between operations of these kinds."""
    name = "library_product" if code == "library_call" and "MatMul" in kinds else code
    return messages.text(f"unfused.{name if name in messages.codes('unfused') else 'unknown'}")


def not_compiled(function: Any) -> str:
    """Of a function that is neither a jl.function nor a jl.jit, and called none: that, and what would compile it."""
    name = clean(function.__name__)
    if not isinstance(getattr(function, "__func__", function), FunctionType):
        return f"{name} is not compiled by itself: call it in a function under @jl.jit, and explain that one"
    if not name.isidentifier():
        return "This function is plain Python, so nothing is compiled: hand jl.jit(function) to jl.explain"
    return f"{name} is plain Python, so nothing is compiled: put @jl.jit above it, or ask jl.explain(jl.jit({name}), ...)"


def launches_text(launches: Sequence[Mapping[str, Any]]) -> str:
    """What a kernel's parts on a GPU were launched with: the largest one, and how many there are."""
    if not launches:
        return ""
    largest = max(launches, key=lambda launch: launch["grid"][0] * launch["grid"][1] * launch["threads"])
    grid = "×".join(str(n) for n in largest["grid"] if n != 1) or "1"
    said = ["simulated", f"{grid} blocks of {largest['threads']}"][not largest.get("simulated") :]
    if largest["registers"] is not None:
        said.append(f"{largest['registers']} registers")
    if largest["shared_bytes"]:
        said.append(f"{units.size(largest['shared_bytes'])} shared")
    if largest["spilled_bytes"]:
        said.append(f"{units.size(largest['spilled_bytes'])} spilled")
    if largest["occupancy"] is not None:
        said.append(f"{units.percent(largest['occupancy'])} occupied (by {largest['limited_by']})")
    if len(launches) > 1:
        said.append(f"{len(launches)} launches")
    return ", ".join(said)


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


def nbytes(op: Mapping[str, Any]) -> int:
    """The bytes of an operation's value, from its type; 0 of what is no NumPy array."""
    import numpy as np

    try:
        return int(prod(op["shape"]) * np.dtype(op["dtype"]).itemsize)
    except TypeError:
        return 0


def as_python(entry: Mapping[str, Any]) -> str:
    """This run: of a plan that is compiled Python ran the calls."""
    took = f"{units.counted(entry['calls'], 'call')}, {units.duration(entry['seconds'])}"
    return f"This run: {entry['function']} ({took}) {entry['text']}"

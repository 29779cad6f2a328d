"""What `f.check` found, in words of at most 100 columns."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from jitlab.ir import told
from jitlab.ir.graphs.dot import line_text
from jitlab.messages import units
from jitlab.messages.escape import clean

if TYPE_CHECKING:
    from .check import Check, OutputCheck

COLUMNS = 100


def check_text(check: Check) -> str:
    """The verdict, then each output with its error and what is allowed."""
    if check.refusal:
        return _wrapped(f"{check.function}: nothing was checked. {check.refusal}", "")
    beside = [] if check.python is None else [_wrapped(f"{'■' if check.python.ok else '✗'} {check.python}", "      ")]
    if not check.outputs:
        return "\n".join([f"{clean(check.function)}: nothing is compiled, so NumPy itself made every value.", *beside])
    wrong = sum(not output.ok for output in check.outputs)
    head = verdict(len(check.outputs), wrong, sum(output.bound_ulp is None for output in check.outputs))
    parts = [_wrapped(f"{check.function}: {head}, compared with NumPy on these arguments", "")]
    parts += beside
    parts += [output_text(output) for output in check.outputs]
    return "\n".join(parts)


def verdict(count: int, wrong: int, unbounded: int) -> str:
    """ "all 9 outputs within their bounds", "2 of 9 outputs outside their bounds", "8 outputs within their bounds, 1 without a
    stated bound"."""
    if wrong:
        return f"{wrong} of {units.counted(count, 'output')} outside {'its bound' if count == 1 else 'their bounds'}"
    if count == unbounded:
        return f"{units.counted(count, 'output')} compared, no bound is stated for {'it' if count == 1 else 'them'}"
    held = count - unbounded
    head = f"{units.counted(held, 'output')} within {'its bound' if held == 1 else 'their bounds'}"
    return f"{head}, {unbounded:,} without a stated bound" if unbounded else f"{'all ' if count > 1 else ''}{head}"


def output_text(output: OutputCheck) -> str:
    """One output: what it is, how far it is off, what is allowed (docs/reference/numerics.md), who is guilty."""
    lines = [f"{'■' if output.ok else '✗'} {_head(output)}", f"    {_error(output)}"]
    lines += [f"    {text}" for text in _elsewhere(output)]
    if output.numpy_ulp is not None and (output.max_ulp or output.numpy_ulp):
        off = units.ulps(output.numpy_ulp)
        lines.append(f"    the bound is checked against {output.reference}; NumPy itself is off by {off}")
    if output.differing and output.worst is not None and not output.ok:
        index, theirs, ours = output.worst
        place = f"[{', '.join(map(str, index))}]" if index else ""
        lines.append(f"    {output.called or output.word or output.output}{place}: NumPy {theirs}, compiled {ours}")
    lines += [f"    {text}" for text in (output.note, *(output.rewrites if not output.guilty else ())) if text]
    if output.guilty is not None:
        lines.append(f"    {output.guilty.text}")
    return "\n".join(_wrapped(line, "      ") for line in lines)


def _head(output: OutputCheck) -> str:
    shape = f"[{', '.join(map(str, output.shape))}]" if output.shape else ""
    where = ", ".join(filter(None, (output.cluster or "the graph", line_text(output.lines))))
    name = told(output.word or output.op, output.called, output.within)
    return f"{name} {output.dtype}{shape}, {where}"


def _error(output: OutputCheck) -> str:
    if not output.differing:
        return "the same bits as NumPy"
    parts = []
    near = output.nearest
    floats = output.dtype.startswith(("float", "complex"))
    if near is not None and floats and near.abs and near.bound_abs:
        parts.append(f"{units.ulps(near.ulp)} of {units.ulps(near.bound_ulp)} allowed, where it comes nearest to its bound")
    elif near is not None and floats and near.abs:
        parts.append(f"{units.ulps(near.ulp)}, where none is allowed")
    elif output.max_abs:
        parts.append(f"off by {_at_most(output)}{f', {units.ulps(output.max_ulp)}' if floats else ''}")
    if output.nan:
        parts.append(f"{units.counted(output.nan, 'element')} NaN on one side alone")
    if output.inf:
        parts.append(f"{units.counted(output.inf, 'element')} infinite on one side alone")
    if not parts:
        parts.append("the signs of zeros differ")
    if near is not None and floats and near.abs:
        differ = "differs" if output.differing == 1 else "differ"
        return "; ".join([*parts, f"{units.counted(output.differing, 'element')} {differ}"])
    return "; ".join([*parts, f"in {units.counted(output.differing, 'element')}"]) + f" ({_allowed(output)})"


def _at_most(output: OutputCheck) -> str:
    relative = f", {units.figure(output.max_rel, 2)} relative" if output.max_rel else ""
    return f"{units.figure(output.max_abs, 2)} at most{relative}"


def _elsewhere(output: OutputCheck) -> list[str]:
    """The largest errors of all elements, which need not be those nearest to their bounds."""
    if output.nearest is None or not output.nearest.abs or not output.max_abs or output.dtype[0] not in "fc":
        return []
    text = f"from NumPy {_at_most(output)}, {units.ulps(output.max_ulp)}"
    if not output.cancels:
        return [text]
    return [f"{text}: there the terms nearly cancel, so ULP of what is left mean little; the bound goes with the terms"]


def _allowed(output: OutputCheck) -> str:
    if output.bound_ulp is None:
        return "no bound is stated"
    return f"allowed there: {units.ulps(output.bound_ulp)}" if output.bound_ulp else "allowed: none"



def _wrapped(text: str, indent: str) -> str:
    text = clean(text)
    own = text[: len(text) - len(text.lstrip())]
    return textwrap.fill(
        text, COLUMNS, initial_indent="", subsequent_indent=own + "  " if not indent else indent, break_on_hyphens=False,
        drop_whitespace=True,
    )  # fmt: skip

"""Reports that an earlier jitlab wrote, as they are written now. What they have no code for is read off its text, here alone:
the texts of a version that is closed stay as they are."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from typing import Any

from jitlab.report.schema import VERSION
from jitlab.support import trees

Json = dict[str, Any]


def upgraded(data: Json) -> Json:
    """The report as of the newest version; what is not as it should be stays so, for the check of types to find."""
    if data["version"] >= VERSION:
        return data
    result = {**data, "version": VERSION}
    steps: dict[str, Callable[[Mapping[str, Any]], Mapping[str, Any]]] = {"ops": _with_flip, "boundaries": _with_flip}
    if data["version"] < 3:
        steps |= {"boundaries": lambda edge: _with_flip(_with_parts(edge)), "temporaries": _with_parts}
    if data["version"] < 2:
        steps["retraces"] = _retrace
    timeline = data.get("timeline")
    if isinstance(timeline, Mapping) and isinstance(lanes := timeline.get("lanes"), list):
        made = [_lane(lane) if isinstance(lane, Mapping) else lane for lane in lanes]
        result["timeline"] = {**timeline, "lanes": made}
    for key, step in steps.items():
        if isinstance(entries := data.get(key), list):
            result[key] = [step(entry) if isinstance(entry, Mapping) else entry for entry in entries]
    return result


def _lane(lane: Mapping[str, Any]) -> Mapping[str, Any]:
    """Version 3 called what was compiled the first call, and had a lane for each of its stages."""
    return {**lane, "group": "compiling"} if lane.get("group") == "first call" else lane


def _with_flip(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """Version 3 had what would change a decision as text."""
    known = next((key for key in ("would_compile_if", "would_fuse_if") if key in entry), None)
    if known is None:
        return entry
    text = entry[known]
    flip = {"code": "", "args": {}, "text": text} if isinstance(text, str) and text else text or None
    return {**{key: value for key, value in entry.items() if key != known}, "flip": flip}


def _with_parts(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """Version 2 had the reason of an edge or a value as one text."""
    reason = entry.get("reason")
    if not isinstance(reason, Mapping) or not isinstance(text := reason.get("text"), str):
        return entry
    end = re.search(r"[.:;] (?=[A-Za-z`(\[])", text)
    parts = {"clause": text[: end.start()], "rest": text[end.end() :]} if end else {}
    said = [part for part, words in (parts or {"clause": text}).items() if SIZE.search(words)]
    return {**entry, "reason": {**reason, **parts, **({"size_in": said[0]} if said else {})}}


SIZE = re.compile(r"\d (B|kB|MB|GB)\b")


def _retrace(entry: Mapping[str, Any]) -> Json:
    """Version 1 had the fix as text, and without one `proof` said that it is done."""
    fix, proof = entry.get("fix"), entry.get("proof")
    if isinstance(fix, str) and fix:
        code = "as_array" if "asarray(" in fix else "cast" if ".astype(" in fix else ""
        made = {"code": code, "args": {"form": _form(fix, str(entry.get("argument")))}, "text": fix}
        return {**entry, "fix": made, "done": None}
    is_done = isinstance(proof, str) and proof.endswith("Nothing to fix.")
    return {**entry, "done": {"code": "", "args": {}, "text": proof} if is_done else None, "proof": ""}


def _form(fix: str, argument: str) -> str:
    """Where code goes, or that it is a sentence."""
    try:
        body = trees.parse(fix.removeprefix("@")).body
    except (SyntaxError, ValueError):
        return "words"
    if not body or (isinstance(body[0], ast.Expr) and not isinstance(body[0].value, ast.Call)):
        return "words"
    if fix.startswith("@"):
        return "decorator"
    if fix.startswith(("reduce_retracing", "input_signature")):
        return "option"
    return "call" if isinstance(body[0], ast.Expr) else "line" if fix.startswith(f"{argument} = ") else "several"

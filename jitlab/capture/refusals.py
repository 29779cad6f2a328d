"""Why something cannot be traced, and what fullgraph=True answers to it: what, where, why, and what to try."""

from __future__ import annotations

from types import TracebackType
from typing import Any, NamedTuple

from jitlab import errors
from jitlab.ir import Source
from jitlab.messages import Message

from .drivers.piece_traces import EndPiece, StoresOutside
from .effort import Stopped
from .guards.signature import Foreign
from .numpy_calls.explanations import said_of
from .numpy_calls.host_fallback import NotReplayable
from .positions import describe, entries, is_added, is_converted
from .tracers.tensor import Tensor


class Cut(NamedTuple):
    """A call of Python's that is not captured, and NumPy's function that is, by their names, and where the call stands."""

    called: str
    instead: str
    source: Source | None


class Refusal(NamedTuple):
    """Why something has to run as Python: a code, what it is in words, and where what cannot be traced stands."""

    code: str
    said: Message
    source: Source | None = None
    met: tuple[str, ...] = ()  # values of what is another each time
    made: tuple[Any, ...] = ()  # calls of the user's functions that were made before it
    cut: Cut | None = None  # what else would be captured
    fell_back: bool = False  # compiled code had begun to run
    again: bool = False  # the next run is recorded anew


#: Of a call or piece that fits, and no more when its arrays are fetched.
CHANGES = Message("refused.changes")


def reason_of_run(error: Exception) -> Refusal:
    """Why what was captured has to run as Python after all."""
    made = getattr(error, "_jitlab_made", ())
    if isinstance(error, (errors.Unfit, Foreign)):
        return Refusal(error.code, error.said, error.source, error.met, made)
    if isinstance(error, errors.InternalError):
        return Refusal("internal", said_of(error), made=made)
    return Refusal("error", said_of(error), made=made)


def reason_of(error: Exception) -> Refusal:
    """Why what was being captured has to run as Python."""
    return _reason_of(error)._replace(made=getattr(error, "_jitlab_made", ()), cut=getattr(error, "_jitlab_cut", None))


def _reason_of(error: Exception) -> Refusal:
    if isinstance(error, EndPiece):
        return Refusal(error.code, error.said, error.source)
    if isinstance(error, (NotReplayable, Stopped)):
        return reason_of_run(error)
    if isinstance(error, errors.InvalidArgumentError):
        return Refusal("no_loop_body", said_of(error))
    if isinstance(error, errors.JitlabError):
        return Refusal("internal" if isinstance(error, errors.InternalError) else "value", said_of(error))
    if isinstance(error, RecursionError):
        return Refusal("value", Message("refused.recursion"), _recursive_call(error))
    return Refusal("error", said_of(error))


def refusal_error(name: str, mode: str, refusal: Exception, definition: Source | None) -> Exception:
    """The error for a function that fullgraph=True cannot capture whole; `refusal` is what ended the recording."""
    prefix = f"Unsupported function {name}: " if mode == "bytecode" else ""
    if isinstance(refusal, RecursionError):
        refusal = EndPiece("recursion", "recursion", _recursive_call(refusal))
    elif isinstance(refusal, errors.Signal) and not isinstance(refusal, EndPiece):
        refusal = EndPiece(getattr(refusal, "code", "internal"), said_of(refusal), line_of(refusal))
    if isinstance(refusal, EndPiece):
        source = refusal.source or definition
        kind = errors.StoreInGraphError if isinstance(refusal, StoresOutside) else errors.UnsupportedError
        return kind(
            f"{prefix}{name} cannot be traced whole: {refusal.said}.",
            where=describe(source),
            why=f"fullgraph=True leaves nothing to Python, and {_WHY.get(refusal.code, 'this has to run as Python')}",
            hint=_TRY.get(refusal.code, "fullgraph=False runs this statement as Python between compiled pieces"),
        )
    if isinstance(refusal, errors.ValueOfTracedArrayError):
        return errors.ValueInGraphError(
            f"{prefix}In JIT strict mode (fullgraph=True), {refusal.what}",
            where=refusal.where, why=refusal.why, hint=refusal.hint,
        )
    if isinstance(refusal, AttributeError) and isinstance(refusal.obj, Tensor):
        return AttributeError(f"{prefix}In JIT strict mode (fullgraph=True), {refusal}", name=refusal.name)
    if isinstance(refusal, errors.ControlFlowError):
        if refusal.undefined is not None:
            undefined, branch = refusal.undefined
            sides = ("false", "true") if branch == "else" else ("true", "false")
            what = f"{prefix}{undefined!r} is not defined in {sides[0]} branch, but defined in {sides[1]} branch"
            return errors.UndefinedInBranchError(what, where=refusal.where, why=refusal.why, hint=refusal.hint)
        if isinstance(refusal, errors.ControlFlowTypeError):
            what = f"{prefix}Type Join Failed: {refusal.what}"
            return errors.ControlFlowTypeError(what, where=refusal.where, why=refusal.why, hint=refusal.hint)
    if isinstance(refusal, errors.JitlabError) and prefix:
        return errors.UnsupportedError(f"{prefix}{refusal.what}", where=refusal.where, why=refusal.why, hint=refusal.hint)
    return refusal


def line_of(error: Exception) -> Source | None:
    """The user's line that ended a recording."""
    lines = [_line(entry) for entry in entries(error.__traceback__) if is_converted(entry.tb_frame.f_code)]
    return lines[-1] if lines else None


def _line(entry: TracebackType) -> Source:
    return Source(entry.tb_frame.f_code.co_filename, entry.tb_lineno, -1, entry.tb_lineno, -1)


def _recursive_call(error: RecursionError) -> Source | None:
    """The user's line that called the function again, well inside the recursion."""
    calls: list[Source] = []
    last: Source | None = None
    for entry in entries(error.__traceback__):
        code = entry.tb_frame.f_code
        if is_converted(code) and len(calls) < 4:
            if last is not None and not is_added(code):  # a function of the user's begins
                calls.append(last)
            last = _line(entry)
    return calls[-1] if calls else last


_WHY = {
    "recursion": "a function that calls itself until a value says stop has no end that could be recorded",
    "effect": "what it does to Python objects or to the world cannot be part of a graph of operations on arrays",
    "statement": "such a statement is not an operation on arrays",
    "too_long": "to compile it would take longer than the loop takes in Python",
    "foreign_type": "only plain arrays of numbers are traced",
    "dtype": "arrays of this dtype are not traced",
    "value": "the graph has no place for it",
    "source": "what is traced is the function's source",
    "retraced": "each of its calls would be another program",
}
_TRY = {
    "recursion": "a loop (`while`), which is traced as one; or fullgraph=False",
    "effect": "do it outside the function, or fullgraph=False: it then runs as Python between compiled pieces",
    "foreign_type": "np.asarray(x) outside the function, or fullgraph=False",
    "dtype": "x.astype(np.float64) outside the function, or fullgraph=False",
    "source": 'capture_mode="bytecode", or a function whose source can be read',
}

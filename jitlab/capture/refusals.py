"""Why something cannot be captured, and what fullgraph=True answers to it: what, where, why, and what to try."""

from __future__ import annotations

from typing import NamedTuple

from jitlab import errors
from jitlab.ir import Source

from .pieces import EndPiece
from .positions import describe


class Refusal(NamedTuple):
    """Why something has to run as Python: a code, a sentence, and where what cannot be captured stands."""

    code: str
    text: str
    source: Source | None = None


def reason_of(error: Exception) -> Refusal:
    """Why what was being captured has to run as Python."""
    if isinstance(error, EndPiece):
        return Refusal(error.code, error.text, error.source)
    if isinstance(error, errors.InvalidArgumentError):
        return Refusal("no_loop_body", error.what)
    if isinstance(error, errors.JitlabError):
        return Refusal("value", error.what)
    return Refusal("error", f"{type(error).__name__}: {error}")


def refusal_error(name: str, mode: str, refusal: Exception, definition: Source | None) -> Exception:
    """The error for a function that fullgraph=True cannot capture whole; `refusal` is what ended the recording."""
    prefix = f"Unsupported function {name}: " if mode == "bytecode" else ""
    if isinstance(refusal, EndPiece):
        source = refusal.source or definition
        kind = errors.StoreInGraphError if refusal.text.startswith("it stores into") else errors.UnsupportedError
        return kind(
            f"{prefix}{name} cannot be captured whole: {refusal.text}.",
            where=describe(source),
            why=f"fullgraph=True leaves nothing to Python, and {_WHY.get(refusal.code, 'this has to run as Python')}",
            hint=_TRY.get(refusal.code, "fullgraph=False runs this statement as Python between captured pieces"),
        )
    if isinstance(refusal, errors.ValueOfTracedArrayError):
        return errors.ValueInGraphError(
            f"{prefix}In JIT strict mode (fullgraph=True), {refusal.what}",
            where=refusal.where, why=refusal.why, hint=refusal.hint,
        )
    if isinstance(refusal, errors.JitlabError) and prefix:
        return errors.UnsupportedError(f"{prefix}{refusal.what}", where=refusal.where, why=refusal.why, hint=refusal.hint)
    return refusal


_WHY = {
    "effect": "what it does to Python objects or to the world cannot be part of a graph of operations on arrays",
    "statement": "such a statement is not an operation on arrays",
    "foreign_type": "only plain arrays of numbers are captured",
    "dtype": "arrays of this dtype are not captured",
    "value": "the graph has no place for it",
    "source": "what is captured is the function's source",
    "retraced": "each of its calls would be another program",
}
_TRY = {
    "effect": "do it outside the function, or fullgraph=False: it then runs as Python between captured pieces",
    "foreign_type": "np.asarray(x) outside the function, or fullgraph=False",
    "dtype": "x.astype(np.float64) outside the function, or fullgraph=False",
    "source": 'capture_mode="bytecode", or a function whose source can be read',
}

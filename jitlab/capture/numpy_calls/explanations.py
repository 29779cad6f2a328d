"""Errors in calls of NumPy say what was called, on which arrays, and where; their types are NumPy's."""

from __future__ import annotations

import dis
import os
import re
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import numpy as np

from jitlab.capture.positions import PACKAGE, describe, entries, here
from jitlab.capture.tracers.tensor import Tensor
from jitlab.errors import JitlabError, ShapeError, Signal, Unfit
from jitlab.messages import Message
from jitlab.support.containers import leaves
from jitlab.support.transactions import contextmanager

if TYPE_CHECKING:
    from jitlab.capture.tracers.arrays import Arrays

_EXPLAINED = (ValueError, TypeError, IndexError, OverflowError, ZeroDivisionError)
_PUBLIC = frozenset({"builtins", "numpy.exceptions", "numpy.linalg"})
_MOST = 6  # arrays that a message names

#: What was last explained: the type of an error, and the lines that say more than NumPy does.
_last: ContextVar[tuple[type[BaseException], str] | None] = ContextVar("jitlab_explanation", default=None)


def explained(error: Exception, function: Any, operands: Sequence[Any]) -> Exception | None:
    """The error with operation, shapes and line in its message; None for what is not NumPy's, or says so already."""
    if not isinstance(error, _EXPLAINED) or isinstance(error, (JitlabError, UnicodeError)) or hasattr(error, "_jitlab_said"):
        return None
    name = function if isinstance(function, str) else _name(function)
    shapes = _shapes(operands)
    why = f"{name} of {shapes}" if shapes else name
    source = here()
    if type(error) is ValueError and _is_about_shapes(str(error)):
        new: Exception = ShapeError(
            str(error), where=describe(source), why=why,
            hint="look at the shapes of these arrays: x.shape prints while the function is traced",
        )  # fmt: skip
    else:
        new = _made_again(error, "\n".join([str(error).rstrip(), f"  where: {describe(source)}", f"  why: {why}"]))
    new._jitlab_said = True  # type: ignore[attr-defined]
    _last.set((type(error), f"  why: {why}\n  where: {describe(source)}"))
    return new


@contextmanager
def explaining(capture: Arrays, function: Any, operands: Sequence[Any]) -> Iterator[None]:
    """An error of NumPy's says what, where and why; its type stays."""
    try:
        yield
    except Exception as error:
        new = None if capture.in_numpy else explained(error, function, operands)
        if new is None:
            raise
        raise new from None


def forget() -> None:
    """What comes next has nothing to do with what was explained before."""
    _last.set(None)


def add_note(error: BaseException) -> None:
    """The same for an error that NumPy itself raises when a statement that could not be captured runs as Python."""
    last = _last.get()
    _last.set(None)
    if last is None or isinstance(error, JitlabError):
        return
    if any(isinstance(error, kind) and issubclass(last[0], kind) for kind in _EXPLAINED):
        error.add_note(last[1])


#: What stands for a value of the user's while it is recorded -> the class that the user knows.
_STANDS_FOR = {
    "Tensor": "numpy.ndarray", "Selection": "numpy.ndarray", "Number": "float", "Extent": "int", "Moving": "int",
    "LoopIndex": "int", "SymbolicRange": "range", "TracedRange": "range", "Counted": "enumerate", "Counting": "enumerate",
    "Combined": "itertools.product", "Stores": "object",
}  # fmt: skip
_NAMES = rf"'(?:jitlab\.[\w.]+\.)?({'|'.join(_STANDS_FOR)})'"
#: Where operations of the user's own run in a frame of ours: what they raise is the user's.
_FOR_THE_USER = frozenset({"hooks.py", "state.py", "pieces.py", "iterables.py", "conditions.py", "number.py"})


def said_of(error: Exception) -> Message:
    """Why something could not be recorded."""
    return error.said if isinstance(error, Unfit) else Message("refused.raised", {"text": _clause(error)})


def _clause(error: Exception) -> str:
    """The same of other errors, as a clause for people: no class of ours is named."""
    if isinstance(error, Signal):
        text = str(error) or "recording it ended before its end"
    elif isinstance(error, JitlabError) and not isinstance(error, ShapeError):
        text = error.what
    elif is_our_fault(error):
        text = "recording it ends with an error inside jitlab; please report it"
    else:
        try:
            said = str(error.what if isinstance(error, ShapeError) else error)
        except Exception:  # it speaks of an array, which has no text while it is recorded
            said = ""
        kind = "ValueError" if isinstance(error, ShapeError) else type(error).__name__
        text = f"{kind}: {said}" if said else kind
    return re.sub(_NAMES, lambda found: f"'{_STANDS_FOR[found[1]]}'", (text.splitlines() or [""])[0])


def is_our_fault(error: Exception) -> bool:
    """Was it raised by an operation in a frame of ours that works for nobody?"""
    if hasattr(error, "_jitlab_said") or isinstance(error, (RecursionError, MemoryError)):
        return False
    found = entries(error.__traceback__)
    if not found:
        return False
    code = found[-1].tb_frame.f_code
    if not code.co_filename.startswith(PACKAGE) or os.path.basename(code.co_filename) in _FOR_THE_USER:
        return False
    said = code.co_code[found[-1].tb_lasti] == dis.opmap["RAISE_VARARGS"]  # in NumPy's words
    return isinstance(error, AssertionError) or not said


def _name(function: Any) -> str:
    """`np.sum`, `np.add.reduce`, `np.linalg.inv`, `ndarray.astype`."""
    name = getattr(function, "__name__", "function")
    owner = getattr(function, "__self__", None)
    if owner is np.r_ or owner is np.c_:
        return "np.r_" if owner is np.r_ else "np.c_"
    if isinstance(owner, np.ufunc):
        return f"np.{owner.__name__}.{name}"
    if getattr(function, "__objclass__", None) is np.ndarray:
        return f"ndarray.{name}"
    module = getattr(function, "__module__", None) or "numpy"
    return name if module == "builtins" else f"{module.replace('numpy', 'np', 1)}.{name}"


def _shapes(operands: Sequence[Any]) -> str:
    types = [x.type.describe() for x in leaves(operands) if isinstance(x, Tensor)]
    more = [f"{len(types) - _MOST} more"] if len(types) > _MOST else []
    return " and ".join([*types[:_MOST], *more])


def _is_about_shapes(message: str) -> bool:
    return any(word in message for word in ("broadcast", "shape", "dimension", "matmul", "size", "axes don't match"))


def _made_again(error: Exception, text: str) -> Exception:
    """An exception of the same type with another text."""
    kind = type(error)
    if kind.__module__ in _PUBLIC:
        new: Exception = kind(text)
        if str(new) == text:
            return new
    shown: Any = type(kind.__name__, (kind,), {"__str__": lambda _: text, "__module__": kind.__module__})
    same: Exception = shown.__new__(shown, *error.args)  # NumPy's own of private types are not made of a text
    same.__dict__.update(vars(error))
    return same


__all__ = ["add_note", "explained", "explaining", "forget", "is_our_fault", "said_of"]

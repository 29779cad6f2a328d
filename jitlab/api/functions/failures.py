"""Exceptions of the user's code while it is recorded: the same type, and the lines of the user's that led there."""

from __future__ import annotations

import builtins
import inspect
import linecache
from types import FunctionType, TracebackType
from typing import Any

from jitlab.capture.positions import entries, is_added, is_converted, is_user_file
from jitlab.errors import JitlabError, StagingError

_HEAD = "in user code:"


class _KeyError(KeyError):
    """A KeyError whose text is shown as it is: Python's shows its repr, on one line."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


_KeyError.__name__ = _KeyError.__qualname__ = "KeyError"
_KeyError.__module__ = "builtins"


def in_user_code(error: Exception) -> Exception:
    """What to raise instead of `error`: an exception of its type whose message has the user's lines. Errors of ours name
    their line already and stay; so does one that has been through here."""
    if isinstance(error, JitlabError) or getattr(error, "_jitlab_in_user_code", False):
        return error
    lines = _frames(error.__traceback__)
    if not lines:
        return error
    name = "KeyError" if type(error) is _KeyError else type(error).__name__
    told = str(error.args[0]) if type(error) is KeyError and len(error.args) == 1 else str(error)
    text = "\n".join([_HEAD, "", *lines, "", f"    {name}: {told}", ""])
    new = _made_again(error, text)
    new.__dict__.update(vars(error))
    new.__cause__, new.__context__, new.__suppress_context__ = error.__cause__, None, True
    new.__traceback__ = error.__traceback__
    new._jitlab_in_user_code = True  # type: ignore[attr-defined]
    return new


def _frames(traceback: TracebackType | None) -> list[str]:
    """The user's frames: `*` for converted ones, `**` for the first one that is not."""
    found: list[list[str]] = []
    was_converted = False
    for entry in entries(traceback):
        code, line = entry.tb_frame.f_code, entry.tb_lineno
        if is_converted(code):
            mark, was_converted = "*", True
        elif was_converted and is_user_file(code.co_filename):
            mark = "**"
        else:
            continue
        if is_added(code) and found:
            found.pop()  # the head of the `if` or the loop that this is the body of
        found.append([f'    File "{code.co_filename}", line {line}, in {code.co_name}  {mark}'])
        text = linecache.getline(code.co_filename, line).strip()
        if text:
            found[-1].append(f"        {text}")
        if mark == "**":
            break
    return [line for lines in found for line in lines]


def _made_again(error: Exception, text: str) -> Exception:
    kind = type(error)
    if kind is KeyError:
        return _KeyError(text)
    if isinstance(error, OSError) and len(error.args) > 1:
        shown: Any = type(kind.__name__, (kind,), {"__str__": lambda _: text, "__module__": kind.__module__})
        same: Exception = shown(*error.args)
        for name in ("filename", "filename2"):  # they are not among the args
            setattr(same, name, getattr(error, name, None))
        return same
    if _takes_one_text(kind):
        try:
            new = kind(text)
            if str(new) == text:
                return new
        except Exception:  # its constructor wants something else: a StagingError says what it was
            pass
    both: Any = type("StagingError", (StagingError, kind), {"__str__": lambda _: text, "__module__": StagingError.__module__})
    made: Exception = both.__new__(both, text)  # `except` clauses for its own type still catch it
    return made


def _takes_one_text(kind: type[Exception]) -> bool:
    """An exception that is made of its message alone."""
    if getattr(builtins, kind.__name__, None) is kind:
        return not issubclass(kind, (UnicodeError, SyntaxError))
    own = kind.__init__
    if not isinstance(own, FunctionType):
        return True
    parameters = list(inspect.signature(own).parameters.values())[1:]
    needed = [p for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
    return len(needed) == 1 or any(p.kind is p.VAR_POSITIONAL for p in parameters)

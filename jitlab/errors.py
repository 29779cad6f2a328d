"""The errors a user can meet, as a tree; each is a JitlabError and a Python built-in too::

    JitlabError
      CaptureError(TypeError)               the program does something that cannot be traced
        OperatorNotAllowedInGraphError      the truth of a traced array, or iteration over one, is asked for
          BranchOnTracedArrayError          `if`, `while`, `and`, `bool()` on a traced array
        ValueOfTracedArrayError             `int()`, `float()`, `.item()`: a Python value of a traced array
      OutOfScopeError(TypeError)            a tensor of a finished trace is used
      InaccessibleTensorError(ValueError)   a tensor of a loop's or branch's body is used outside it, in the same trace
      BindingError(TypeError, ValueError)   a call's arguments do not fit the function's parameters or its input_signature
      UnexpectedOptionError(TypeError)      a keyword that a decorator does not know
      AutoGraphError                        something went wrong in converted code
        StagingError(RuntimeError)          an exception in the user's code that cannot be made again with its lines
      UnsupportedError(RuntimeError)        fullgraph=True met Python that cannot be traced
        StoreInGraphError(ValueError)       a store into a Python object
        ValueInGraphError(AttributeError)   a Python value of a traced array
        UndefinedInBranchError(UnboundLocalError)  a name that only one branch of a traced condition binds
      ControlFlowError                      the branches of an `if`, or the iterations of a loop, do not fit together
        ControlFlowValueError(ValueError)   a name that one of them does not give, or gives None; a shape that changes
        ControlFlowTypeError(TypeError)     a dtype or a structure that changes
      InvalidArgumentError(ValueError)      jit_compile=True, fullgraph=True or --strict met what cannot be compiled
        AssertionFailedError(AssertionError)  an `assert` on a traced value did not hold
      FailedPreconditionError(RuntimeError)   a Variable of a graph is read before its initializer has run
      ShapeError(ValueError)                shapes that do not fit, found at capture
      EagerScopeError(RuntimeError)         jit_scope where nothing is captured
      NoGradientError(LookupError)          a gradient through an operation that has none
      InternalError(RuntimeError)           a mistake of jitlab's own, seen before anything was changed; the call runs as Python
      OptionError(ValueError)               an unknown or impossible option
      ImpossiblePlanError(ValueError)       a what-if asks for a plan that something forbids: a cycle, a type, a library call
      ForeignFileError(OSError)             a file that jitlab did not write stands where a dump should go
      DatasetError(OSError)                 a data set that is not there, or whose files are damaged
      DeviceError(RuntimeError)             a GPU is asked for and cannot be used: the one sentence says why, and what to do
        DeviceLost                          a GPU has failed and does nothing more for this process, which goes on without it

Every message says what, where, why and what to try, on four lines. User text in it can't act in a terminal.
"""

from __future__ import annotations

from typing import Any

from jitlab.messages import Message
from jitlab.messages.escape import clean_lines


class Signal(Exception):
    """The base of what one part of jitlab tells another by raising it: never a user's to see."""


class Unfit(Signal):
    """Something cannot be recorded, or not in this form: `code` is the kind of reason, by which others decide, and `said` is it
    in words: a row of a group of the message table with its arguments, or a message that there is already."""

    source: Any = None  # where it stands in the program
    met: tuple[str, ...] = ()  # values of what is another each time

    def __init__(self, code: str, row: str | Message, /, group: str = "refused", **args: Any) -> None:
        self.code = code
        self.said = row if isinstance(row, Message) else Message(f"{group}.{row}", {k: _plain(v) for k, v in args.items()})
        super().__init__(self.said)


def _plain(value: Any) -> Any:
    return value if type(value) in (int, str, Message) else str(value)


class JitlabError(Exception):
    """The base of jitlab's errors: a first line, and below it, named, what else there is to say.

    Args:
        what: what happened, the first line.
        where: the file and line.
        why: the reason.
        hint: what to try.

    Example:
        >>> try:
        ...     jl.function(lambda x: x, input_signature=5)
        ... except TypeError as error:
        ...     print(error)
        input_signature must be either a tuple or a list, got int
        >>> try:
        ...     jl.config.history_runs = 0
        ... except jl.errors.JitlabError as error:
        ...     print(error.what, "·", error.why)
        jl.config.history_runs = 0 · the least value is 1
    """

    def __init__(self, what: str = "", *, where: str = "", why: str = "", hint: str = "") -> None:
        what, where, why, hint = map(clean_lines, (what, where, why, hint))
        self.what, self.where, self.why, self.hint = what, where, why, hint
        lines = [what, *(f"  {name}: {text}" for name, text in (("where", where), ("why", why), ("try", hint)) if text)]
        super().__init__("\n".join(lines))


class CaptureError(JitlabError, TypeError):
    """The program does something that cannot be traced."""


class OperatorNotAllowedInGraphError(CaptureError):
    """Python wants the truth or the items of an array that has no value while the function is captured."""


class BranchOnTracedArrayError(OperatorNotAllowedInGraphError):
    """Python wants the truth of an array that has no value while the function is captured."""


class ValueOfTracedArrayError(CaptureError):
    """Python wants the value of an array that has none while the function is captured."""


class OutOfScopeError(JitlabError, TypeError):
    """A tensor was kept after its trace had ended."""


class InaccessibleTensorError(JitlabError, ValueError):
    """A tensor is used outside the body of the loop or branch that it belongs to."""


class BindingError(JitlabError, TypeError, ValueError):
    """The arguments of a call do not fit the function. (A TypeError as Python's own; a ValueError as it was for long.)"""


class UnexpectedOptionError(JitlabError, TypeError):
    """A keyword argument that does not exist."""


class AutoGraphError(JitlabError):
    """Something went wrong in converted code."""


class StagingError(AutoGraphError, RuntimeError):
    """An exception of the user's code whose type cannot be made anew with a longer message."""


class UnsupportedError(JitlabError, RuntimeError):
    """Something that only Python can do stands where everything had to be captured."""


class StoreInGraphError(UnsupportedError, ValueError):
    """A store into a Python object stands where everything had to be captured."""


class ValueInGraphError(UnsupportedError, AttributeError):
    """A Python value of an array is asked for where everything had to be captured."""


class UndefinedInBranchError(UnsupportedError, UnboundLocalError):
    """A name is used after a branch that may not have bound it."""


class ControlFlowError(JitlabError):
    """A traced value decides, and what the branches or the iterations give does not fit together. `undefined`: the name that
    has no value in one of the branches, and which branch that is."""

    undefined: tuple[str, str] | None = None


class ControlFlowValueError(ControlFlowError, ValueError):
    """A name is not given on every way, or its shape changes."""


class ControlFlowTypeError(ControlFlowError, TypeError):
    """The dtype or the structure of a name is not the same on every way."""


class InvalidArgumentError(JitlabError, ValueError):
    """What had to be compiled cannot be."""


class AssertionFailedError(InvalidArgumentError, AssertionError):
    """An `assert` on a traced value did not hold in this run."""


class FailedPreconditionError(JitlabError, RuntimeError):
    """Something has to run first: the initializer of a Variable, as a rule."""


class ShapeError(JitlabError, ValueError):
    """Shapes that do not fit."""


class EagerScopeError(JitlabError, RuntimeError):
    """A jit_scope was entered where NumPy runs as it stands."""


class NoGradientError(JitlabError, LookupError):
    """A gradient was asked for through an operation that has none."""


class InternalError(JitlabError, RuntimeError):
    """A mistake of jitlab's own, seen before anything was changed."""


class OptionError(JitlabError, ValueError):
    """An option that does not exist, or a value it cannot have."""


class ImpossiblePlanError(JitlabError, ValueError):
    """A what-if asks for a plan that cannot be. `code` says what forbids it, `path` the operations that show it: each with
    `name`, `op`, `lines`, `cluster` and `kernel`."""

    code: str = ""
    path: tuple[dict[str, object], ...] = ()


class ForeignFileError(JitlabError, OSError):
    """A file that jitlab did not write stands in the way."""


class DatasetError(JitlabError, OSError):
    """A data set that is not there, or whose files are damaged."""


class DeviceError(JitlabError, RuntimeError):
    """A GPU is asked for and cannot be used."""


class DeviceLost(DeviceError):
    """A GPU has failed, in a kernel as a rule, and does nothing more for this process. NumPy's arrays, and what runs on the
    CPU, are as they were."""

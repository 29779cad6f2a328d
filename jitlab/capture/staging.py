"""Control flow on traced values: `if` becomes a Branch, `while` and `for` become Loops (semantics §4.3, §4.4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .outcomes import BREAK, CONTINUE, Mixed, Outcome, Returned
from .positions import is_added
from .tensor import Tensor

if TYPE_CHECKING:
    from .hooks import Hooks

Body = Callable[[], Outcome]


@dataclass(frozen=True)
class Names:
    """The names of a loop: what it assigns, and which of those are wanted after it, at its head, and by an iteration."""

    assigned: tuple[str, ...]
    after: tuple[str, ...]
    head: tuple[str, ...]
    reads: tuple[str, ...]
    targets: tuple[str, ...] = ()


def run(body: Callable[..., Any], *args: Any) -> Any:
    """Call an added function. A name of the user's that has no value is Python's UnboundLocalError, as without us."""
    try:
        return body(*args)
    except NameError as error:
        text = str(error)
        if type(error) is not NameError or not text.startswith("cannot access free variable"):
            raise
        traceback = error.__traceback__
        while traceback is not None and traceback.tb_next is not None:
            traceback = traceback.tb_next
        if traceback is None or not is_added(traceback.tb_frame.f_code):
            raise
        name = error.name
        found = UnboundLocalError(f"cannot access local variable {name!r} where it is not associated with a value")
        found.name = name
        raise found.with_traceback(error.__traceback__) from None


def is_traced(value: Any) -> bool:
    return isinstance(value, Tensor)


def while_(test: Callable[[], Any], body: Body, orelse: Body | None, names: Names) -> Outcome:
    while run(test):
        outcome = run(body)
        if outcome is not None and outcome is not CONTINUE:
            if outcome is BREAK:
                return None
            return outcome
    return None if orelse is None else run(orelse)


def for_(hooks: Hooks, iterable: Any, body: Callable[[Any], Outcome], orelse: Body | None, names: Names) -> Outcome:
    for item in hooks.iterate(iterable):
        outcome = run(body, item)
        if outcome is not None and outcome is not CONTINUE:
            if outcome is BREAK:
                return None
            return outcome
    return None if orelse is None else run(orelse)


def _stage(*args: Any) -> Any:
    return bool(args[0]) or None


returned_value = refuse_mixed = follow = if_ = if_jump = choose = both = either = negated = contains = check = _stage

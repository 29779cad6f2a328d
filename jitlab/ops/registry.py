"""Where a rule is written down beside the operation it builds: `@rule(np.cumsum, method="cumsum")`.

`table` reads these together with the tables of the `rules_*` modules. The ufunc of an `Elementwise` class needs no rule.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

Rule = TypeVar("Rule", bound=Callable[..., Any])

#: Of a ufunc that is an operation, its class.
FUNCTIONS: dict[Any, Callable[..., Any]] = {}
METHODS: dict[str, Callable[..., Any]] = {}
#: What writes into its first argument; the rule gives its new value.
UPDATES: dict[Any, Callable[..., Any]] = {}
UPDATE_METHODS: dict[str, Callable[..., Any]] = {}
#: By dotted name, of modules that `import jitlab` does not load ("scipy.special.gammaln").
LATE: dict[str, Callable[..., Any]] = {}

_ufuncs = dict.fromkeys(u for u in vars(np).values() if isinstance(u, np.ufunc))
#: NumPy's functions of two elements, those with one result, and its functions of one.
PAIRWISE = tuple(u for u in _ufuncs if u.nin == 2 and u.signature is None)
BINARY = tuple(u for u in PAIRWISE if u.nout == 1)
UNARY = tuple(u for u in _ufuncs if (u.nin, u.nout) == (1, 1))


def rule(*callees: Any, method: str | None = None) -> Callable[[Rule], Rule]:
    """The decorated function builds the nodes of calls to `callees` (a string: a dotted name of a module that the program may
    import later; None: what this NumPy does not have) and of the method of that name."""

    def register(function: Rule) -> Rule:
        for callee in filter(None, callees):
            table: dict[Any, Callable[..., Any]] = LATE if isinstance(callee, str) else FUNCTIONS
            _put(table, callee, function)
        if method is not None:
            _put(METHODS, method, function)
        return function

    return register


def operation(ufunc: np.ufunc, kind: type[Any]) -> None:
    """The class of a ufunc that is an operation; the first one counts."""
    if FUNCTIONS.get(ufunc, kind).__module__ == kind.__module__:
        FUNCTIONS[ufunc] = kind


def update(*callees: Any, method: str | None = None) -> Callable[[Rule], Rule]:
    """As `rule`, for what writes into its first argument (`np.put_along_axis`, `x.sort()`): the rule gives its new value."""

    def register(function: Rule) -> Rule:
        for callee in callees:
            _put(UPDATES, callee, function)
        if method is not None:
            _put(UPDATE_METHODS, method, function)
        return function

    return register


def _put(table: dict[Any, Callable[..., Any]], key: Any, function: Callable[..., Any]) -> None:
    """A module may begin anew: an interrupt can end its loading."""
    known = table.setdefault(key, function)
    assert known.__module__ == function.__module__, f"{key} has two rules, of {known.__module__} and {function.__module__}"
    table[key] = function

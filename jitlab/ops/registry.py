"""Where a rule is written down beside the operation it builds: `@rule(np.cumsum, method="cumsum")`.

`table` reads these together with the tables of the `rules_*` modules. The ufunc of an `Elementwise` class needs no rule.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Rule = TypeVar("Rule", bound=Callable[..., Any])

FUNCTIONS: dict[Any, Callable[..., Any]] = {}
METHODS: dict[str, Callable[..., Any]] = {}
#: What writes into its first argument; the rule gives its new value.
UPDATES: dict[Any, Callable[..., Any]] = {}
UPDATE_METHODS: dict[str, Callable[..., Any]] = {}
#: By dotted name, of modules that `import jitlab` does not load ("scipy.special.gammaln").
LATE: dict[str, Callable[..., Any]] = {}


def rule(*callees: Any, method: str | None = None) -> Callable[[Rule], Rule]:
    """The decorated function builds the nodes of calls to `callees` (a string: a dotted name of a module that the program may
    import later; None: what this NumPy does not have) and of the method of that name."""

    def register(function: Rule) -> Rule:
        for callee in filter(None, callees):
            table: dict[Any, Callable[..., Any]] = LATE if isinstance(callee, str) else FUNCTIONS
            assert callee not in table, f"{callee} has two rules, of {table[callee].__module__} and {function.__module__}"
            table[callee] = function
        if method is not None:
            assert method not in METHODS, f"the method {method} has two rules"
            METHODS[method] = function
        return function

    return register


def update(*callees: Any, method: str | None = None) -> Callable[[Rule], Rule]:
    """As `rule`, for what writes into its first argument (`np.put_along_axis`, `x.sort()`): the rule gives its new value."""

    def register(function: Rule) -> Rule:
        for callee in callees:
            assert callee not in UPDATES, f"{callee} has two rules"
            UPDATES[callee] = function
        if method is not None:
            assert method not in UPDATE_METHODS, f"the method {method} has two rules"
            UPDATE_METHODS[method] = function
        return function

    return register

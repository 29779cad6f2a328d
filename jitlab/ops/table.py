"""The table that capture asks: what a callee, a method, an attribute or an operator means in a graph.

A call is looked up by the callee's identity. `VIEWS`, `VIEW_METHODS` and `VIEW_ATTRIBUTES` come first: what they give shares
memory with its base. Everything else gives values, which share memory with nothing: `x.copy()` may be x's own node. Rules
take NumPy's own arguments with nodes among them, and return a Node or a tuple of Nodes. They raise what NumPy raises for
wrong arguments, and `Unsupported` for what is left to NumPy; either way the graph is as it was before.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from jitlab.ir import current_graph

from . import registry
from .base import Unsupported
from .numpy_api import rules_arrays, rules_elementwise, rules_views
from .numpy_api.rules_views import ViewRule

Rule = Callable[..., Any]


def checked(rule: Rule) -> Rule:
    """The rule, leaving no node behind when it raises; arguments that it does not know are Unsupported."""

    @wraps(rule)
    def call(*args: Any, **options: Any) -> Any:
        graph = current_graph()
        count = len(graph.nodes) if graph is not None else 0
        try:
            return rule(*args, **options)
        except BaseException as error:
            if graph is not None:
                del graph.nodes[count:]
            if isinstance(error, TypeError) and not _fits(rule, args, options):
                raise Unsupported("arguments that jitlab does not know") from error
            raise

    return call


def _fits(rule: Rule, args: tuple[Any, ...], options: dict[str, Any]) -> bool:
    try:
        inspect.signature(rule).bind(*args, **options)
    except TypeError:
        return False
    return True


def _checked(*tables: dict[Any, Rule]) -> dict[Any, Rule]:
    return {key: checked(rule) for table in tables for key, rule in table.items()}


#: NumPy's functions and ufuncs, their `reduce` and `outer`, scalar types, and Python's abs, max, min, sum, round, divmod.
FUNCTIONS: dict[Any, Rule] = _checked(rules_elementwise.ufuncs(), rules_elementwise.FUNCTIONS, registry.FUNCTIONS)
_PAIRWISE = [f for f in FUNCTIONS if isinstance(f, np.ufunc) and f.nin == 2 and f.signature is None]
FUNCTIONS.update({f.outer: checked(rules_arrays.outer_rule(FUNCTIONS[f])) for f in _PAIRWISE})
#: Methods of ndarray, the array first; `__getitem__` reads any subscript that a graph can.
METHODS: dict[str, Rule] = _checked(rules_elementwise.METHODS, registry.METHODS)
#: Attributes that are values.
ATTRIBUTES: dict[str, Rule] = _checked(rules_elementwise.ATTRIBUTES)
#: Python's operators by dunder name; of a reflected one the array is the first argument.
OPERATORS: dict[str, Rule] = _checked(rules_elementwise.OPERATORS)
#: What writes into its first argument: the rule gives its new value.
UPDATES: dict[Any, Rule] = _checked(registry.UPDATES)
UPDATE_METHODS: dict[str, Rule] = _checked(registry.UPDATE_METHODS)
#: What gives views: rule(type of the base, the other arguments) -> steps (see `rules_views.ViewRule`).
VIEWS: dict[Any, ViewRule] = _checked(rules_views.VIEWS)
VIEW_METHODS: dict[str, ViewRule] = _checked(rules_views.VIEW_METHODS)
VIEW_ATTRIBUTES: dict[str, ViewRule] = _checked(rules_views.VIEW_ATTRIBUTES)


def function_rule(function: Any) -> Rule | None:
    """The rule of a callee; also of modules that the program has imported meanwhile (scipy.special)."""
    found = FUNCTIONS.get(function)
    if found is None and (getattr(function, "__name__", None) in _late_names):
        for name, rule in _LATE.items():
            module, _, attribute = name.rpartition(".")
            if getattr(sys.modules.get(module), attribute, None) is function:
                found = FUNCTIONS[function] = checked(rule)
    return found


_LATE: dict[str, Rule] = registry.LATE
_late_names = frozenset(name.rpartition(".")[2] for name in _LATE)

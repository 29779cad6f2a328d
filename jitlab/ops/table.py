"""The table that capture asks: what a callee, a method, an attribute or an operator means in a graph.

A call is looked up by the callee's identity. `VIEWS`, `VIEW_METHODS` and `VIEW_ATTRIBUTES` come first: what they give shares
memory with its base. Everything else gives values, which share memory with nothing: `x.copy()` may be x's own node. Rules
take NumPy's own arguments with nodes among them, and return a Node or a tuple of Nodes. They raise what NumPy raises for
wrong arguments, and `Unsupported` for what is left to NumPy; either way the graph is as it was before.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

from jitlab.ir import current_graph
from jitlab.support.later import load

from . import load_all, registry, rule_index
from .base import Unsupported
from .numpy_api import rules_elementwise, rules_views
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
                raise Unsupported("unknown_arguments") from error
            raise

    return call


def _fits(rule: Rule, args: tuple[Any, ...], options: dict[str, Any]) -> bool:
    try:
        inspect.signature(rule).bind(*args, **options)
    except TypeError:
        return False
    return True


class Rules(dict[Any, Rule]):
    """Rules by what they are of. The module of one is loaded when it is looked up, all are by who goes through them."""

    def __init__(self, kind: str, more: dict[Any, Rule]) -> None:
        super().__init__()
        self._written: dict[Any, Rule] = getattr(registry, kind)  # by the modules that are loaded
        self._written.update(more)
        self._where: dict[Any, str] = dict.fromkeys(_ufunc_methods(kind), "numpy_api.ufunc_methods")  # the module of each
        self._late: dict[str, dict[str, str]] = {}  # last part -> dotted name of what the program may load later -> its module
        for module, names in getattr(rule_index, kind).items():
            for name in names.split():
                package, _, last = name.rpartition(".")
                key = name if not package else callee(name) if name.startswith(("numpy.", "builtins.")) else None
                if key is None:
                    self._late.setdefault(last, {})[name] = module
                else:
                    self._where[key] = module

    def __contains__(self, key: object) -> bool:
        return super().__contains__(key) or key in self._written or key in self._where or self._is_late(key)

    def __missing__(self, key: Any) -> Rule:
        if key not in self._written and (key in self._where or self._is_late(key)):
            load(f"{__package__}.{self._where[key]}")
        rule = self._written[key]
        made = self[key] = checked(rules_elementwise.ufunc_rule(rule()) if isinstance(rule, type) else rule)
        return made

    def _is_late(self, key: Any) -> bool:
        """Is it of a module that the program has loaded meanwhile (scipy.special)?"""
        for name, module in self._late.get(getattr(key, "__name__", ""), {}).items():
            if callee(name) is key:
                self._where[key] = module
                load(f"{__package__}.{module}")
                if name in registry.LATE:
                    self._written[key] = registry.LATE[name]
                return True
        return False

    def module_of(self, key: Any) -> str | None:
        """Where the index says that the rule stands."""
        return self._where[key] if key in self._where or self._is_late(key) else None

    def get(self, key: Any, default: Any = None) -> Any:
        return self[key] if key in self else default

    def known(self) -> set[Any]:
        """What has a rule, whether it is loaded or not."""
        return {*self._written, *self._where}

    def _all(self) -> dict[Any, Rule]:
        load_all()
        for key in self._written:
            self[key]
        return self

    def __iter__(self) -> Iterator[Any]:
        return dict.__iter__(self._all())

    def __len__(self) -> int:
        return dict.__len__(self._all())

    def keys(self) -> Any:
        return dict.keys(self._all())

    def items(self) -> Any:
        return dict.items(self._all())

    def values(self) -> Any:
        return dict.values(self._all())


def callee(name: str) -> Any:
    """What a dotted name means in the modules that are loaded; None: nothing (yet)."""
    owner, _, last = name.rpartition(".")
    above, _, attribute = owner.rpartition(".")
    found = sys.modules.get(owner) or vars(sys.modules.get(above, object)).get(attribute)
    return getattr(found, last, None)


def _ufunc_methods(kind: str) -> Iterator[Any]:
    """`np.add.reduce` and its like."""
    if kind == "FUNCTIONS":
        yield from (method for u in registry.BINARY for method in (u.reduce, u.accumulate, u.reduceat))
        yield from (u.outer for u in registry.PAIRWISE)
    if kind == "UPDATES":
        yield from (u.at for u in (*registry.BINARY, *registry.UNARY))


def _checked(table: dict[Any, Rule]) -> dict[Any, Rule]:
    return {key: checked(rule) for key, rule in table.items()}


#: NumPy's functions and ufuncs, their `reduce` and `outer`, scalar types, and Python's abs, max, min, sum, round, divmod.
FUNCTIONS = Rules("FUNCTIONS", rules_elementwise.FUNCTIONS)
#: Methods of ndarray, the array first; `__getitem__` reads any subscript that a graph can.
METHODS = Rules("METHODS", rules_elementwise.METHODS)
#: Attributes that are values.
ATTRIBUTES: dict[str, Rule] = _checked(rules_elementwise.ATTRIBUTES)
#: Python's operators by dunder name; of a reflected one the array is the first argument.
OPERATORS: dict[str, Rule] = _checked(rules_elementwise.OPERATORS)
#: What writes into its first argument: the rule gives its new value.
UPDATES = Rules("UPDATES", {})
UPDATE_METHODS = Rules("UPDATE_METHODS", {})
#: What gives views: rule(type of the base, the other arguments) -> steps (see `rules_views.ViewRule`).
VIEWS: dict[Any, ViewRule] = _checked(rules_views.VIEWS)
VIEW_METHODS: dict[str, ViewRule] = _checked(rules_views.VIEW_METHODS)
VIEW_ATTRIBUTES: dict[str, ViewRule] = _checked(rules_views.VIEW_ATTRIBUTES)

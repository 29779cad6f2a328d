"""A miss: a call that no trace of a function fitted, kept as what it was called with, and the words for what had changed."""

from __future__ import annotations

import weakref
from collections.abc import Container, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from jitlab import messages
from jitlab.capture import Change, Leaf
from jitlab.costs import Costs, short_numbers
from jitlab.events import Cause, VariantCause
from jitlab.ir import Source

from .definitions import Site, calling_site

if TYPE_CHECKING:
    from .ledger import Ledger

#: The number of a trace that a lookup came upon -> the guard that kept the call from it.
Failed = dict[int, Change]

#: What a leaf of the same path says nothing of.
BESIDE = {Cause.ALIASING, VariantCause.LAYOUT, Cause.UNKNOWN}


#: Nothing of a sort: one object for all misses.
NONE: Any = MappingProxyType({})


class Miss:
    """A call that no trace fitted, and the trace made for it."""

    __slots__ = (
        "captured", "closure", "costs", "definition", "evicted_by", "failed", "found", "function", "is_method", "keys",
        "leaves", "ledger", "made", "number", "operations", "options", "owner", "parts", "paths", "pattern", "powers",
        "program", "site", "uses",
    )  # fmt: skip

    def __init__(
        self, ledger: Ledger, number: int, leaves: tuple[Leaf, ...], failed: Failed | None = None, costs: Costs | None = None
    ) -> None:
        self.function, self.owner, self.definition = str(ledger.name), ledger.number, ledger.definition
        self.is_method, self.ledger = ledger.is_method, weakref.ref(ledger)
        self.number = number  # of the trace
        self.leaves = leaves
        self.failed = failed or NONE
        self.options, self.made = ledger.options, ledger.made
        self.closure: tuple[Leaf, ...] = ledger.closure()
        self.site: Site = calling_site()
        self.costs = costs or Costs()
        self.uses: Mapping[str, Source] = NONE  # path of an argument -> where it was first used
        self.captured: Mapping[str, Any] = NONE  # name -> reference to the very array that it keeps, come what may
        self.operations = 0
        self.pattern = self.program = 0  # what it computes, without and with the numbers written in it
        self.powers: tuple[str, ...] = ()  # what computes the powers whose exponent is a number of the call
        self.evicted_by: Miss | None = None
        self.paths = tuple((leaf.path, leaf.kind) for leaf in leaves)
        self.keys = tuple(leaf.identity for leaf in leaves)
        self.parts: dict[Any, Any] | None = None  # of its key, for replays
        self.found: tuple[list[Change], Miss | None] | None = None

    @property
    def misfit(self) -> Change | None:
        """What no leaf tells, and kept the newest trace that was looked at from fitting."""
        change = next(reversed(self.failed.values()), None)
        told = change is not None and change.cause not in BESIDE and any(leaf.path == change.path for leaf in self.leaves)
        return None if told else change

    def share(self, other: Miss) -> None:
        """Keep what is equal to another's as one object: a function that is defined again is called as it was before."""
        if self.paths == other.paths:
            self.paths = other.paths
            self.leaves = tuple(old if old == new else new for old, new in zip(other.leaves, self.leaves, strict=True))
            self.keys = tuple(old if old == new else new for old, new in zip(other.keys, self.keys, strict=True))
        if self.closure == other.closure:
            self.closure = other.closure
        if self.site == other.site:
            self.site = other.site
        if self.uses == other.uses:
            self.uses = other.uses

    @property
    def causes(self) -> tuple[str, ...]:
        """Of the closed lists Cause and, when a variant was made, VariantCause; never empty."""
        return tuple(dict.fromkeys(str(change.cause) for change in self.changes))

    @property
    def changes(self) -> list[Change]:
        """What differed from the nearest trace, the weightiest first."""
        return self.known[0]

    @property
    def nearest(self) -> Miss | None:
        """The trace it is compared with; None for a first call."""
        return self.known[1]

    @property
    def known(self) -> tuple[list[Change], Miss | None]:
        assert self.found is not None, "a ledger looks for the causes of its misses"
        return self.found

    @property
    def renews(self) -> bool:
        """The first trace of a Function that was made before, of the same code, and traced then."""
        nearest = self.nearest
        return nearest is not None and nearest.owner != self.owner and nearest.definition.code == self.definition.code

    @property
    def same(self) -> list[Leaf]:
        """The arguments that are as they were in the nearest trace."""
        before = {(leaf.path, leaf.identity) for leaf in self.nearest.leaves} if self.nearest is not None else set()
        return [leaf for leaf in self.leaves if leaf.kind in ("array", "value") and (leaf.path, leaf.identity) in before]

    def passes_number(self, paths: Container[str]) -> bool:
        """One of these arguments is a Python number."""
        leaves = (leaf for leaf in (*self.leaves, *self.closure) if leaf.path in paths and leaf.kind == "value")
        return any(type(leaf.value) in (int, float, complex) for leaf in leaves)

    def told(self, change: Change) -> str:
        """ "`k` was 3 and is now 4 (each new Python value is traced again)"."""
        if change.cause in (Cause.REDEFINED_FUNCTION, Cause.FIRST_CALL):
            return f"{change.after or 'called first'} ({rule_text(change)})"
        return change_text(change)

    @property
    def where(self) -> str:
        """ ", In[3], line 4": where the changed argument is used."""
        source = self.source
        return f", {Site(source.file, source.line)}" if source is not None else ""

    @property
    def is_retrace(self) -> bool:
        """Not the first trace, and more than another layout."""
        if self.found is None:  # nobody asked why, and it is not the first
            return self.misfit is None or self.misfit.cause != VariantCause.LAYOUT
        return not {Cause.FIRST_CALL, VariantCause.LAYOUT} & set(self.causes)

    @property
    def seconds(self) -> float:
        """What calls waited for it; what was traced meanwhile for other functions is theirs."""
        return self.costs.seconds

    @property
    def source(self) -> Source | None:
        """Where the changed argument was first used in the nearest trace, else where it stands."""
        change, nearest = self.changes[0], self.nearest
        if nearest is None:
            return self.definition.source
        return nearest.uses.get(change.path) or self.definition.argument(change.path) or self.definition.source


def rule_text(change: Change) -> str:
    """The rule behind a change, in a few words."""
    return messages.text(f"rule.{change.code}")


def change_text(change: Change, becomes: str = "is now") -> str:
    """ "`k` was 3 and is now 4 (each new Python value is traced again)"."""
    if change.cause == Cause.UNKNOWN:
        return change.after
    if change.cause == Cause.CACHE_EVICTED:
        return f"{change.before} {change.after} ({rule_text(change)})"
    name = f"`{change.path}`" if change.path else "it"
    before, after = short_numbers(change.before, change.after)
    return f"{name} was {before} and {becomes} {after} ({rule_text(change)})"

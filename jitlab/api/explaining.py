"""`f.would_hit(...)` and `f.explain_key(...)`: what a call would meet in the cache, without making it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import field
from typing import TYPE_CHECKING, Any

from jitlab.capture import Change, Leaf, says_where
from jitlab.costs import Costs, short_numbers
from jitlab.messages.escape import clean
from jitlab.support.lazy_dataclass import dataclass

from .functions.pickling import Picklable
from .retraces.definitions import Site
from .retraces.ledger import Ledger
from .retraces.misses import Failed, Miss, change_text, rule_text

if TYPE_CHECKING:
    from .check.check import Check
    from .retraces.fixes import Fix


@dataclass(frozen=True)
class Found:
    """What the cache has for a call: the account of the trace that would serve it, or what keeps all from it."""

    leaves: tuple[Leaf, ...] = ()
    costs: Costs | None = None
    failed: Failed = field(default_factory=dict)
    refusal: str = ""  # why the call would run as Python


@dataclass(frozen=True)
class KeyLeaf:
    """One leaf of the key of a call, beside what it is in the trace it is compared with ("" where that has none)."""

    path: str
    text: str
    traced: str
    is_same: bool


@dataclass(frozen=True)
class Explanation:
    """The key of a call, leaf by leaf, and what it meets: a hit, or a miss with its causes against the nearest trace."""

    function: str
    hit: bool
    trace: int | None  # the one that is hit, or the nearest
    leaves: tuple[KeyLeaf, ...]
    changes: tuple[Change, ...]  # of a miss: what differs, the weightiest first
    where: Site | None  # the line that made the first of them matter
    fix: Fix | None
    refusal: str = ""

    @property
    def causes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(str(change.cause) for change in self.changes))

    def __str__(self) -> str:
        if self.refusal:
            head = f"{self.function}: runs as Python: {self.refusal}"
        elif self.hit:
            head = f"{self.function}: a hit, trace {self.trace}"
        elif self.trace is None:
            head = f"{self.function}: a miss, {rule_text(self.changes[0])}"
        else:
            head = f"{self.function}: a miss; the nearest is trace {self.trace}"
        lines = [head]
        wide = max((len(clean(leaf.path)) for leaf in self.leaves), default=0)
        for leaf in self.leaves:
            text, traced = (leaf.text, "") if leaf.is_same else short_numbers(leaf.text, leaf.traced)
            other = "" if leaf.is_same else f"   ({traced or 'absent'} in trace {self.trace})"
            lines.append(f"  {clean(leaf.path):<{wide}}  {text}{other}")
        if not self.hit and self.trace is not None:
            where = f", {self.where}" if self.where is not None else ""
            for number, change in enumerate(self.changes):
                text = change_text(change, "would be")
                lines.append(f"  {change.cause}: {text}{where if number == 0 else ''}")
        if self.fix is not None:
            lines += [f"  try: {self.fix}", *(f"       {line}" for line in (self.fix.code or self.fix.words).splitlines())]
        return "\n".join(map(clean, lines))

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))


@dataclass(frozen=True)
class Ways:
    """`python()` runs a call as Python; `formed(outputs, inputs)` makes its result of graph outputs and writes into the inputs.
    `roots`: what such a call begins with, by name. Inside `as_traced()` names have the values that the trace keeps; it gives
    those that have others by now."""

    python: Callable[[], Any]
    formed: Callable[[list[Any], list[Any]], Any]
    roots: dict[str, Any]
    as_traced: Callable[[], AbstractContextManager[Sequence[str]]] = lambda: nullcontext(())


class Explained(Picklable):
    """A function with a ledger that says beforehand what a call would meet."""

    name: str
    ledger: Ledger

    def _look(self, args: tuple[Any, ...], kwargs: dict[str, Any], *, why: bool) -> Found:
        """What the cache has for a call; changes nothing. `why`: the leaves of a miss are wanted, too."""
        raise NotImplementedError

    def _replayable(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, list[Any]] | str:
        """The trace of a call and what it reads, without the call; captured where it was not. Or why there is none."""
        raise NotImplementedError

    def _both_ways(self, args: tuple[Any, ...], kwargs: dict[str, Any], trace: Any) -> Ways:
        """A call as the Python it is, and what makes its result of a trace's graph outputs."""
        raise NotImplementedError

    def __repr__(self) -> str:
        count = len(self.ledger) + self.ledger.dropped
        return f"<jl.{self.ledger.kind} {clean(self.name)}: {count} {'trace' if count == 1 else 'traces'}>"

    @says_where
    def check(self, /, *args: Any, **kwargs: Any) -> Check:
        """How far compiled code is from NumPy, on these arguments.

        Every operation runs on NumPy, and every cluster compiled beside it, on copies. A bound that is broken is traced to the
        fusion, operation or pass that broke it. Then the function runs once as Python, to see whether what was captured is
        what it says; all that it changes is put back. No effect of the function happens (but those of its first capture).

        Args:
            *args: a call's arguments.
            **kwargs: a call's keyword arguments.

        Returns:
            A Check, which prints a line for each output: its error in units in the last place, the bound it has to keep,
            whether it does. `.ok` is True where all do; `.refusal` says why nothing was compared, where the call cannot be
            captured, acts on the world outside or needs more bytes than `jl.config.copy_limit_bytes`.

        Raises:
            BindingError: the arguments do not fit the parameters.
            OptionError: the call's trace compiled nothing.

        Example:
            >>> jl.jit(lambda x: np.exp(x) * 2).check(np.ones(5)).ok
            True
        """
        from .check.check import checked_function

        return checked_function(self, args, kwargs)

    @says_where
    def whatif(
        self, /, *args: Any, cut: Any = (), fuse: Any = (), keep_out: Any = (), target: str | None = None, sweep: bool = False,
        seconds: float | None = None, **kwargs: Any,
    ) -> Any:  # fmt: skip
        """A decision of the compiler taken the other way, for a call with these arguments, and what that is worth, measured.

        Operations are named as in `jl.explain(f, x)`: by name, or by kind where there is one of it. Both plans are built
        beside this function, which stays as it is, and run in turns on copies.

        Args:
            *args: a call's arguments.
            cut: a pair of operations or a list of pairs: the first is stored, and the second reads it in another kernel.
            fuse: a pair of operations or a list of pairs: they share a kernel.
            keep_out: an operation or a list of them: NumPy runs it.
            target: the device to compile for, "cpu" or "gpu", copies there and back included; None: the one that it is
                compiled for. Without a GPU the refusal has the model's numbers, a prediction.
            sweep: True: every single cut is tried, and ranked by what it costs.
            seconds: about how long to measure; None: a second, and 20 seconds of a sweep.
            **kwargs: a call's keyword arguments.

        Returns:
            A WhatIf (of a sweep, a Sweep), which prints as text: times in seconds with their interval, bytes, what moved
            where, and the lines that would keep the change.

        Raises:
            OptionError: the plan has no such operation or several, or the call is not captured whole.
            ImpossiblePlanError: a cycle, a type or a library call forbids the plan; `path` are the operations that show it.

        Example:
            >>> def total(x):
            ...     return np.exp(x).sum()
            >>> answer = jl.jit(total).whatif(np.ones(1000), cut=("Exp", "Sum"), seconds=0.01)
            >>> answer.before.kernels, answer.after.kernels
            (1, 2)
        """
        from .whatif.whatif import asked_of_function

        options = {"cut": cut, "fuse": fuse, "keep_out": keep_out, "target": target, "sweep": sweep, "seconds": seconds}
        return asked_of_function(self, args, kwargs, options)

    @says_where
    def would_hit(self, /, *args: Any, **kwargs: Any) -> bool:
        """Whether a call with these arguments would find its trace. Nothing is traced and nothing runs.

        Args:
            *args: a call's arguments.
            **kwargs: a call's keyword arguments.

        Returns:
            True or False.

        Raises:
            BindingError: the arguments do not fit the parameters.

        Example:
            >>> jl.jit(lambda x: x + 1).would_hit(np.ones(3))
            False
        """
        return self._look(args, kwargs, why=False).costs is not None

    @says_where
    def explain_key(self, /, *args: Any, **kwargs: Any) -> Explanation:
        """The key of a call with these arguments, leaf by leaf: which trace it hits, or what keeps the nearest from it.

        Args:
            *args: a call's arguments.
            **kwargs: a call's keyword arguments.

        Returns:
            An Explanation, which prints as text; `.hit` says whether the call has a trace.

        Raises:
            BindingError: the arguments do not fit the parameters.

        Example:
            >>> f = jl.function(lambda x: x + 1)
            >>> y = f(np.ones(3))
            >>> print(f.explain_key(np.ones(3, np.float32)))
            <lambda>: a miss; the nearest is trace 1
              x  float32[3]   (float64[3] in trace 1)
            ...
        """
        found = self._look(args, kwargs, why=True)
        if found.refusal:
            leaves = tuple(KeyLeaf(leaf.path, leaf.text, "", True) for leaf in found.leaves)
            return Explanation(self.name, False, None, leaves, (), None, None, found.refusal)
        if found.costs is not None:
            hit = next((miss for miss in self.ledger.misses if miss.costs is found.costs), None)
            leaves = _beside(found.leaves, hit)
            return Explanation(self.name, True, hit.number if hit is not None else None, leaves, (), None, None)
        ledger = self.ledger
        miss = ledger.explained(Miss(ledger, ledger.next_number, found.leaves, found.failed))
        nearest, source = miss.nearest, miss.source
        other = nearest is not None and nearest.owner != miss.owner
        fix = None if other else ledger.fix_for(miss, is_planned=True)
        return Explanation(
            self.name, False, nearest.number if nearest is not None else None, _beside(found.leaves, nearest),
            tuple(miss.changes), Site(source.file, source.line) if source is not None else None,
            fix.at(miss, is_planned=True) if fix is not None else None,
        )  # fmt: skip


def _beside(leaves: Sequence[Leaf], known: Miss | None) -> tuple[KeyLeaf, ...]:
    before = {(leaf.path, leaf.kind == "aliasing"): leaf for leaf in known.leaves} if known is not None else {}
    result = []
    for leaf in leaves:
        old = before.get((leaf.path, leaf.kind == "aliasing"))
        same = known is None or (old is not None and old.kind == leaf.kind and old.identity == leaf.identity)
        result.append(KeyLeaf(leaf.path, leaf.text, old.text if old is not None else "", same))
    return tuple(result)

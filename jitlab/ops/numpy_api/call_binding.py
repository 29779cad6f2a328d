"""How a call's arguments meet the parameters of NumPy's functions: by position or by name, they mean the same.

before: np.clip(x, 1, 3, o)    np.dot(b=y, a=x)
after:  np.clip(x, a_min=1, a_max=3, out=o)    np.dot(x, y)
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from jitlab.support.lazy_dataclass import dataclass

from . import signatures


@dataclass(frozen=True)
class Parameters:
    """Of one function or method."""

    places: tuple[str, ...]  # what may be given by position, in order
    only: int  # how many of them by position alone
    optional: frozenset[str]  # have a default
    named: frozenset[str]  # by name alone
    open: bool  # other names are for the function to judge

    def bound(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]] | None:
        """What has no default by position, everything else by name; None for a call that NumPy refuses."""
        if len(args) > len(self.places):
            return None
        given = dict(zip(self.places, args, strict=False))
        for name, value in kwargs.items():
            if name in given or (not self.open and name not in self.named and name not in self.places[self.only :]):
                return None
            given[name] = value
        count = sum(name not in self.optional for name in self.places)
        count = max(count, min(self.only, len(args)))
        if any(name not in given for name in self.places[:count]):
            return None
        return [given.pop(name) for name in self.places[:count]], given


def bound(function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Sequence[Any], dict[str, Any]]:
    """The arguments of a call of NumPy's as each rule reads them. What fits no parameter stays as it is: NumPy refuses it."""
    if isinstance(function, np.ufunc):
        return _of_ufunc(function, args, kwargs)
    parameters = parameters_of(function)
    found = None if parameters is None else parameters.bound(args, kwargs)
    return (args, kwargs) if found is None else found


def _of_ufunc(function: np.ufunc, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Sequence[Any], dict[str, Any]]:
    """Behind its operands stand its results."""
    if not function.nin < len(args) <= function.nargs or "out" in kwargs:
        return args, kwargs
    args, outs = args[: function.nin], tuple(args[function.nin :])
    outs += (None,) * (function.nout - len(outs))
    return args, {**kwargs, "out": outs[0] if len(outs) == 1 else outs}


def parameters_of(function: Any) -> Parameters | None:
    """Those of a function or method of NumPy's; None where it finds its arguments by their number (`np.meshgrid(*xi)`)."""
    name = f"ufunc.{function.__name__}" if isinstance(getattr(function, "__self__", None), np.ufunc) else None
    try:
        name = name or _names("fft" in vars(np)).get(function)
    except TypeError:  # no hash: nothing of NumPy's
        return None
    return None if name is None else _parsed(name)


@cache
def _names(with_fft: bool) -> dict[Any, str]:
    """Function -> its name in the table; of several names the first. (np.fft is loaded by programs that use it.)"""
    found: dict[Any, str] = {}
    for name in signatures.FUNCTIONS:
        if name.startswith("ufunc.") or (name.startswith("fft.") and not with_fft):
            continue
        owner: Any = np
        for part in name.split("."):
            owner = getattr(owner, part, None)
        if owner is not None:
            found.setdefault(owner, name)
    return found


@cache
def _parsed(name: str) -> Parameters | None:
    parts = signatures.FUNCTIONS[name].split()
    is_open = bool(parts) and parts[-1].startswith("**")
    parts = parts[:-1] if is_open else parts
    if any(part.startswith("*") and part != "*" for part in parts):
        return None
    only = parts.index("/") if "/" in parts else 0
    parts = [part for part in parts if part != "/"]
    at = parts.index("*") if "*" in parts else len(parts)
    return Parameters(
        tuple(part.rstrip("=") for part in parts[:at]), only,
        frozenset(part.rstrip("=") for part in parts if part.endswith("=")),
        frozenset(part.rstrip("=") for part in parts[at + 1 :]), is_open,
    )  # fmt: skip

"""What keeps statements that Python runs from being run once more: they reach something whose changes nobody can take back."""

from __future__ import annotations

import builtins
import datetime
import dis
import re
import sys
import types
from collections.abc import Iterable, Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePath
from typing import Any

import numpy as np

from jitlab.api.check.world import World
from jitlab.capture.drivers.driver import is_user_class
from jitlab.capture.positions import codes
from jitlab.messages import text

#: Modules whose functions change what they are given, and the state of random generators, at the most. What acts on files is
#: refused when it runs.
KNOWN = frozenset(
    "abc bisect builtins cmath collections contextlib copy dataclasses datetime decimal enum fractions functools heapq"
    " itertools jitlab json math numbers numpy operator random re scipy statistics string textwrap time types typing"
    " warnings".split()
)
#: What cannot change.
FIXED = (
    np.generic, np.dtype, np.ufunc, np.finfo, np.iinfo, Decimal, Fraction, PurePath, re.Pattern, datetime.date, datetime.time,
    datetime.timedelta, datetime.tzinfo,
)  # fmt: skip
#: Python's own functions that reach every name, show something, or end the kernel.
REACHING = frozenset("breakpoint display eval exec exit get_ipython globals input locals quit vars __import__".split())
_FUNCTIONS = types.FunctionType, types.BuiltinFunctionType, type(np.dot), type


def not_put_back(code: types.CodeType, *worlds: World) -> str:
    """A clause that names the first such thing; "" for none. `worlds`: all that the code reaches, at the moments before and
    after it ran."""
    every = [inner for one in (code, *(of for world in worlds for of in world.codes)) for inner in codes(one)]
    for name in _reaching(every):
        return text("speed.reaches", name=name)
    found = (pair for world in worlds for pair in (*world.others, *((name, array) for name, array, _ in world.arrays)))
    return next((text("speed.stays", name=name, what=_called(value)) for name, value in found if not _is_known(value)), "")


def _reaching(every: Iterable[types.CodeType]) -> Iterator[str]:
    """Names of functions that reach everything, and of modules that are imported and may do anything."""
    for code in every:
        yield from (name for name in code.co_names if name in REACHING)
        steps = dis.get_instructions(code) if dis.opmap["IMPORT_NAME"] in code.co_code[::2] else ()
        yield from (step.argval for step in steps if step.opname == "IMPORT_NAME" and not _is_of_known(step.argval))


def _is_known(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return type(value) is np.ndarray
    if isinstance(value, types.ModuleType):
        return _is_of_known(value.__name__)
    if isinstance(value, types.BuiltinFunctionType) and not isinstance(value.__self__, (types.ModuleType, type(None))):
        return False  # a method, of something that may change
    if isinstance(value, type) and is_user_class(value):  # not one written in C, whose state nobody sees
        file = getattr(sys.modules.get(value.__module__), "__file__", None) or ""
        return value.__module__ == "__main__" or file.endswith(".py")
    if getattr(value, "__wrapped__", None) is open:  # IPython's own
        return True
    return isinstance(value, FIXED) or (isinstance(value, _FUNCTIONS) and _is_of_known(value.__module__ or builtins.__name__))


def _is_of_known(module: str) -> bool:
    return module.partition(".")[0] in KNOWN


def _called(value: Any) -> str:
    """ "the module matplotlib.pyplot", "matplotlib.figure.Figure"."""
    if isinstance(value, types.ModuleType):
        return text("speed.module", name=value.__name__)
    kind = value if isinstance(value, type) else type(value)
    return kind.__qualname__ if kind.__module__ == builtins.__name__ else f"{kind.__module__}.{kind.__qualname__}"


__all__ = ["not_put_back"]

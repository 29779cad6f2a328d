"""Makes jitlab/ops/numpy_api/signatures.py: how NumPy's functions and ndarray's methods take their arguments, as the NumPy
that runs it says. Run it with the newest one: what NumPy before 2.4 implements in C cannot be asked there.

    python scripts/signatures.py                writes the file; tests/ops/test_signatures.py compares the two
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

FILE = Path(__file__).parent.parent / "jitlab" / "ops" / "numpy_api" / "signatures.py"
HEAD = '''"""How NumPy's functions and ndarray's methods take their arguments; made by `scripts/signatures.py`.

Function -> its parameters in order. `=` stands behind a parameter that has a default; what stands before `/` is given by
position alone, what comes after `*` by name alone. Of a method the array itself is left out; `ufunc.reduce` is that of every
ufunc.
"""

# ruff: noqa: E501

'''
MODULES = (np, np.linalg, np.fft, np.lib.stride_tricks)

#: C takes more by position than `inspect` is told, or by other names: read off its argument parsers.
IN_C = {
    "ndarray.reshape": "*shape order= copy=",
    "ndarray.transpose": "*axes",
    "ndarray.choose": "*choices out= mode=",
    "ndarray.dot": "b out=",
    "ndarray.take": "indices axis= out= mode=",
    "ndarray.repeat": "repeats axis=",
    "ndarray.compress": "condition axis= out=",
    "ndarray.partition": "kth axis= kind= order=",
    "ndarray.argpartition": "kth axis= kind= order=",
    "ndarray.searchsorted": "v side= sorter=",
    "ndarray.put": "indices values mode=",
    "ndarray.resize": "*new_shape refcheck=",
    "ufunc.reduce": "array axis= dtype= out= keepdims= initial= where=",
    "ufunc.accumulate": "array axis= dtype= out=",
    "ufunc.reduceat": "array indices axis= dtype= out=",
}
#: What finds its arguments by their number: no parameter has one place.
BY_NUMBER = ("arange", "ndarray.item", "ndarray.view")


def text_of(signature: inspect.Signature, skip: int = 0) -> str:
    """ "a / axis= *": names, `=` behind those with a default, "/" and "*" as in Python."""
    parts: list[str] = []
    kinds = inspect.Parameter
    for p in list(signature.parameters.values())[skip:]:
        if p.kind is kinds.KEYWORD_ONLY and not any(part.startswith("*") for part in parts):
            parts.append("*")
        if p.kind is not kinds.POSITIONAL_ONLY and _only(signature, skip) and "/" not in parts:
            parts.insert(_only(signature, skip), "/")
        stars = {kinds.VAR_POSITIONAL: "*", kinds.VAR_KEYWORD: "**"}.get(p.kind, "")
        parts.append(stars + p.name + ("" if stars or p.default is p.empty else "="))
    if _only(signature, skip) and "/" not in parts:
        parts.append("/")
    return " ".join(parts)


def _only(signature: inspect.Signature, skip: int) -> int:
    """How many parameters are given by position alone."""
    return sum(p.kind is p.POSITIONAL_ONLY for p in list(signature.parameters.values())[skip:])


def functions(module: ModuleType) -> Iterator[tuple[str, Callable[..., Any]]]:
    prefix = module.__name__.partition(".")[2]
    for name in sorted(dir(module)):
        function = getattr(module, name)
        if callable(function) and not isinstance(function, (type, np.ufunc)) and not name.startswith("_"):
            yield f"{prefix}.{name}".lstrip("."), function


def methods() -> Iterator[tuple[str, inspect.Signature]]:
    """Methods whose arguments C hands on to Python functions take what those take."""
    from numpy._core import _methods

    for name in sorted(dir(np.ndarray)):
        method = getattr(np.ndarray, name)
        if name.startswith("_") or not callable(method):
            continue
        behind = getattr(_methods, {"max": "_amax", "min": "_amin"}.get(name, f"_{name}"), None)
        yield f"ndarray.{name}", inspect.signature(behind if callable(behind) else method)


def table() -> dict[str, str]:
    found: dict[str, str] = {}
    for module in MODULES:
        for name, function in functions(module):
            try:
                found[name] = text_of(inspect.signature(function))
            except ValueError:
                continue  # `np.fromstring`, which no array goes through
    found.update({name: text_of(signature, 1) for name, signature in methods()})
    for name in ("outer", "at"):
        found[f"ufunc.{name}"] = text_of(inspect.signature(getattr(np.add, name)))
    found.update(IN_C)
    return {name: text for name, text in found.items() if name not in BY_NUMBER}


def content() -> str:
    lines = [f'    "{name}": "{text}",\n' for name, text in sorted(table().items())]
    return f'{HEAD}VERSION = "{np.__version__}"\nFUNCTIONS: dict[str, str] = {{\n{"".join(lines)}}}\n'


if __name__ == "__main__":
    FILE.write_text(content(), encoding="utf-8")
    print(f"{FILE}: {len(table())} functions and methods of NumPy {np.__version__}")

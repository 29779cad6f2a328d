"""Makes jitlab/ops/rule_index.py: in which module the rule of each of NumPy's functions stands, so that it is loaded when a
program calls the function. A name that only older NumPys have stays while its module's text has it.

    python scripts/rule_index.py          writes the file; tests/ops/test_rule_index.py compares the two
"""

from __future__ import annotations

import builtins
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from jitlab.ops import load_all, registry, rule_index, table

FILE = Path(registry.__file__).with_name("rule_index.py")
SPACES: tuple[ModuleType, ...] = (np, np.linalg, np.fft, np.lib.stride_tricks, builtins)
#: Modules that are loaded with the table, or whose functions it knows without their names.
LEFT_OUT = ("numpy_api.rules_elementwise", "numpy_api.ufunc_methods")
KINDS = {
    "FUNCTIONS": "Functions and ufuncs, by dotted names.",
    "METHODS": "Methods of ndarray.",
    "UPDATES": "Functions that write into their first argument.",
    "UPDATE_METHODS": "Methods of ndarray that write into the array.",
}


def names_of(callee: Any) -> Iterator[str]:
    """Each dotted name of a callee; what has a dotted name or is a method has that one."""
    if isinstance(callee, str):
        yield callee
        return
    for owner in (np.r_, np.c_):
        if callee == owner.__getitem__:
            yield f"numpy.{'r_' if owner is np.r_ else 'c_'}.__getitem__"
    for space in SPACES:
        yield from (f"{space.__name__}.{name}" for name in dir(space) if name[0] != "_" and getattr(space, name) is callee)


def found(kind: str) -> dict[str, list[str]]:
    """Module -> the names of what it has rules for."""
    load_all()
    rules = dict(getattr(registry, kind))
    if kind == "FUNCTIONS":
        rules |= registry.LATE
    modules: dict[str, set[str]] = {}
    for callee, rule in rules.items():
        module = rule.__module__.removeprefix("jitlab.ops.")
        if module not in LEFT_OUT:
            modules.setdefault(module, set()).update(names_of(callee))
    for module, names in getattr(rule_index, kind).items():
        text = FILE.parent.joinpath(*module.split(".")).with_suffix(".py")
        for name in names.split() if text.exists() else ():
            if kind in ("FUNCTIONS", "UPDATES") and table.callee(name) is None and _word(name) in _words(text):
                modules.setdefault(module, set()).add(name)
    return {module: sorted(names) for module, names in sorted(modules.items())}


def _word(name: str) -> str:
    return name.rpartition(".")[2]


def _words(file: Path) -> set[str]:
    return set(re.findall(r"\w+", file.read_text(encoding="utf-8")))


def page() -> str:
    """The text of the file."""
    lines = ['"""In which module the rule of each function stands; made by `scripts/rule_index.py`."""', ""]
    for kind, what in KINDS.items():
        lines += [f"#: {what}", f"{kind}: dict[str, str] = {{"]
        for module, names in found(kind).items():
            text = textwrap.wrap(" ".join(names), 110, break_on_hyphens=False)
            if len(text) == 1 and len(text[0]) + len(module) < 115:
                lines.append(f'    "{module}": "{text[0]}",')
            else:
                text = [*(f"{line} " for line in text[:-1]), text[-1]]
                lines += [f'    "{module}": (', *(f'        "{line}"' for line in text), "    ),"]
        lines += ["}", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    FILE.write_text(page(), encoding="utf-8")

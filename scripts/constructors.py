"""Makes jitlab/support/constructors.py: the code of the constructors of jitlab's dataclasses, one of each shape.

    python scripts/constructors.py          writes the file; tests/test_lazy_dataclass.py compares the two
"""

from __future__ import annotations

import dataclasses
import gc
import pkgutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import jitlab
from jitlab.support.lazy_dataclass import kind_of, shape_of, source_of

FILE = Path(jitlab.__file__).parent / "support" / "constructors.py"
HEAD = '''"""The code of constructors, one of each shape (`lazy_dataclass.shape_of`); made by `scripts/constructors.py`."""

# ruff: noqa
# mypy: ignore-errors
'''
#: Not part of the package that runs.
LEFT_OUT = ("jitlab.labextension", "jitlab.__main__", "jitlab.targets.llvm.math.fit")


def classes() -> Iterator[type[Any]]:
    """The dataclasses of the package."""
    for module in pkgutil.walk_packages(jitlab.__path__, "jitlab."):
        if not module.name.startswith(LEFT_OUT):
            import_module(module.name)
    for kind in gc.get_objects():
        if isinstance(kind, type) and str(kind.__module__).startswith("jitlab.") and "__dataclass_fields__" in vars(kind):
            yield kind


def shapes() -> list[str]:
    """Those that the package has."""
    found = set()
    for kind in classes():
        kinds = "".join(map(kind_of, dataclasses.fields(kind)))
        frozen = getattr(vars(kind).get("__setattr__"), "__qualname__", "").startswith("_frozen.")
        found.add(shape_of(kind, kinds, frozen))
    return sorted(found)


def page() -> str:
    """The text of the file."""
    return HEAD + "".join(["\n", *map(source_of, shapes())])


if __name__ == "__main__":
    FILE.write_text(page(), encoding="utf-8")

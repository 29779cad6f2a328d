"""Writes docs/reference/magics.md, commands.md and compat.md, of what magics, commands and the other frameworks' names say of
themselves: `python scripts/reference_pages.py`. A test compares the pages with what is there now."""

from __future__ import annotations

import inspect
import textwrap
from argparse import ArgumentParser
from collections.abc import Iterator
from enum import EnumType
from pathlib import Path
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from jitlab import __main__ as cli
from jitlab.compat import mindspore, tensorflow
from jitlab.compat.aliases import Name
from jitlab.notebook.magics.magics import JitMagics
from jitlab.notebook.magics.run_commands import BASELINE, COMPARE

REFERENCE = Path(__file__).parent.parent / "docs" / "reference"


def magics() -> str:
    """The magics with each option, from their own parsers."""
    parser, written = JitMagics.jit.parser, inspect.getdoc(JitMagics.jitlab)
    usual = parser.description.strip("\n")  # what IPython wraps in the usage and a list of the options
    first, _, about = inspect.cleandoc(usual).partition("\n\nExamples\n--------\n")
    examples, _, rest = about.partition("\n\nA cell runs once.")
    parts = [
        "# The magics", "`%load_ext jitlab` makes them known. `%%jit?` and `%jitlab help` say the same in a notebook, and"
        " the Tab key offers options, commands, baselines and numbers of cells.",
        "## %%jit and %jit", *first.split("\n\n"), options(parser), fenced(textwrap.dedent(examples)),
        *("A cell runs once." + rest).split("\n\n"), "An option that is unknown, or a value that it does not take, is an"
        " `OptionError` before anything runs.", "## %jitlab", fenced(written), "### %jitlab baseline", options(BASELINE),
        "### %jitlab compare", options(COMPARE),
    ]  # fmt: skip
    return "\n\n".join(parts) + "\n"


def commands() -> str:
    """The commands of a terminal, from their own parsers, and what pytest takes."""
    _, parsers = cli.parsers()
    parts = [
        "# The jitlab command", "`jitlab lab` opens JupyterLab on the first lesson, and hands on what follows to it. The others"
        " report on a program, and check it in a build. `python -m jitlab` is the same command.",
    ]  # fmt: skip
    for name, parser in parsers.items():
        parts += [f"## jitlab {name}", fenced(parser.usage), options(parser)]
    parts += [
        f"`jitlab check` ends with {cli.GOOD} where all is as well as it was, {cli.WORSE} where something is worse, and"
        f" {cli.NOT_CHECKED} where nothing could be checked.",
        "## pytest", "jitlab is a plugin of pytest: `@pytest.mark.jitlab(...)` for a test and the fixture `jitlab_expect` for a"
        " part of one take the words of [`jl.expect`](reports.md); `--jitlab-max-retraces N` holds every test to it."
        " Which calls run as Python is decided by counts in it, as in `jitlab check`, where `JITLAB_SETTLE` says nothing else.",
        "## Environment", "| variable | what it does |\n|---|---|\n| `JITLAB_CACHE=0` | nothing is kept on disk (machine code,"
        " plans, which calls run as Python):"
        " `jl.config.cache` begins as False |\n| `JITLAB_CACHE_DIR` | the folder in which it is kept |\n"
        "| `JITLAB_NUM_THREADS` | on how many threads a kernel may run: as `jl.config.threads` where that is 0 |\n"
        "| `JITLAB_SETTLE` | `measure`, `model` or `off`: as `jl.config.settle` begins |\n| `TF_XLA_FLAGS`,"
        " `XLA_FLAGS` | [flags](flags.md) |",
    ]  # fmt: skip
    return "\n\n".join(parts) + "\n"


def fenced(text: str) -> str:
    return f"```text\n{text}\n```"


def options(parser: ArgumentParser) -> str:
    """A table row for each option: how it is written, what it does."""
    lines = ["| option | what it does |", "|---|---|"]
    for action in parser._actions:
        if action.help not in (None, "show this help message and exit"):
            name = ", ".join(action.option_strings) or action.dest.upper()
            value = f" {action.metavar}" if action.metavar else ""
            lines.append(f"| `{name}{value}` | {cell(action.help.rstrip('.'))} |")
    return "\n".join(lines)


def compat() -> str:
    """The names of the compat modules."""
    parts = [
        "# Other frameworks' names", "A program runs with its import changed. The modules hold names and no engine: what they"
        " give is NumPy's, and what is captured is what [`jl.function`](functions.md) and [`jl.jit`](functions.md) capture."
        " Wrong arguments raise what NumPy's function raises; names that are jitlab's own are documented there.",
        "## jitlab.compat.tensorflow", fenced_python(
            ">>> from jitlab.compat import tensorflow as tf\n>>> tf.reduce_sum(tf.constant([[1, 2], [3, 4]]), axis=0)\n"
            "array([4, 6], dtype=int32)"
        ), f"Dtypes: {', '.join(f'`tf.{name}`' for name in dtypes(tensorflow))}.", table(names(tensorflow, "tf")),
        "## jitlab.compat.mindspore", fenced_python(
            ">>> from jitlab.compat import mindspore as ms\n>>> ms.ops.reduce_sum(ms.Tensor([1.0, 2.0])).asnumpy()\n"
            "array(3., dtype=float32)"
        ), f"Dtypes: {', '.join(f'`ms.{name}`' for name in dtypes(mindspore))}.", table(names(mindspore, "ms")),
        "```{eval-rst}\n.. autofunction:: jitlab.compat.mindspore.jit\n```",
        "```{eval-rst}\n.. autoclass:: jitlab.compat.mindspore.Tensor\n```",
    ]  # fmt: skip
    return "\n\n".join(parts) + "\n"


def fenced_python(text: str) -> str:
    return f"```pycon\n{text}\n```"


def public(module: Any) -> list[str]:
    """The names that a module hands out: those of `__all__`, else what it defines or takes from NumPy."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    imported = {"Callable", "SimpleNamespace", "Any", "Jit", "current_capture", "Name", "annotations", "np"}
    return sorted(name for name in vars(module) if not name.startswith(("_", "@")) and name not in imported)


def dtypes(module: Any) -> list[str]:
    return [name for name in public(module) if is_dtype(getattr(module, name))]


def is_dtype(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, np.generic)


def names(module: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    """Each name below a module and what it stands for."""
    for name in public(module):
        value = getattr(module, name)
        if isinstance(value, (ModuleType, SimpleNamespace)):
            if name not in ("v1", "compat"):  # the same once more
                yield from names(value, f"{prefix}.{name}")
        elif value is not None and not is_dtype(value):
            yield f"{prefix}.{name}", value


def table(found: Iterator[tuple[str, Any]]) -> str:
    """A row for each thing, with all its names."""
    things: dict[int, tuple[list[str], Any]] = {}
    for name, value in found:
        things.setdefault(id(value), ([], value))[0].append(name)
    lines = ["| name | parameters | what it is |", "|---|---|---|"]
    for called, value in sorted(things.values(), key=lambda thing: thing[0][0].lower()):
        text = f"NumPy's `{value.__name__}`." if is_numpys(value) else first_paragraph(value)
        shown = ", ".join(f"`{name}`" for name in sorted(called, key=lambda name: (name.count("."), name)))
        lines.append(f"| {shown} | {parameters(value)} | {cell(text)} |")
    return "\n".join(lines)


def first_paragraph(value: Any) -> str:
    return " ".join((inspect.getdoc(value) or "").split("\n\n")[0].split())


def is_numpys(value: Any) -> bool:
    """A function of NumPy's as it is: what it says of itself differs between NumPy's releases."""
    return isinstance(value, np.ufunc) or getattr(value, "__module__", "").startswith("numpy")


def parameters(value: Any) -> str:
    """The parameters with their default values; of a name for a function of NumPy those that it takes."""
    if isinstance(value, EnumType):
        return ", ".join(f"`{member}`" for member in value.__members__)
    if is_numpys(value):
        return f"as `numpy.{value.__name__}`"
    if isinstance(value, Name) and not is_ours(value._target):
        signature = signature_of(value._adapt)
        if signature is None or only_stars(signature):
            return f"as `numpy.{value._target.__name__}`"
    else:
        signature = signature_of(value._target if isinstance(value, Name) else value)
    if signature is None:
        return ""
    kept = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values() if not p.name.startswith("_")]
    return f"`{cell(', '.join(map(shown, kept)))}`" if kept else ""


def is_ours(function: Any) -> bool:
    return getattr(function, "__module__", "").startswith("jitlab")


def shown(parameter: inspect.Parameter) -> str:
    default = parameter.default
    if default is not parameter.empty and isinstance(default, (type, FunctionType)):
        return f"{parameter.name}={default.__name__}"
    return str(parameter)


def signature_of(value: Any) -> inspect.Signature | None:
    try:
        return inspect.signature(value)
    except (TypeError, ValueError):
        return None


def only_stars(signature: inspect.Signature) -> bool:
    return all(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in signature.parameters.values())


def cell(text: str) -> str:
    return text.replace("|", "\\|")


PAGES = {"magics.md": magics, "commands.md": commands, "compat.md": compat}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (REFERENCE / name).write_text(page(), encoding="utf-8")

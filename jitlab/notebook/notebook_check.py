"""A notebook executed from its first cell to its last in a new kernel, and the facts of each cell."""

# nbclient and nbformat have no types:
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from jitlab.errors import OptionError
from jitlab.support.lazy_dataclass import dataclass

Json = dict[str, Any]

MOST_SAID = 200  # characters of an exception's text
LOAD = "get_ipython().run_line_magic('load_ext', 'jitlab')"
TELL = "__import__('jitlab.notebook.notebook_check', fromlist=['write_facts']).write_facts(get_ipython(), {path!r})"


class Stopped(Exception):
    """The notebook could not be executed to its end: the title of the cell, and why."""

    def __init__(self, title: str, why: str) -> None:
        super().__init__(title)
        self.title, self.why = title, why


@dataclass(frozen=True)
class Executed:
    """A notebook that was executed: the facts of the cells in which something was compiled; the cells that raised and are not
    tagged `raises-exception`, as baselines keep them, and the tracebacks that the notebook would show."""

    cells: tuple[Json, ...]
    raised: tuple[Json, ...]
    tracebacks: tuple[str, ...]


#: What notebooks call the language.
PYTHON = ("python", "python3", "ipython")


def executed(path: str | Path, timeout: int = 600) -> Executed:
    """Execute a notebook to its end, whichever cells raise; the file stays as it is.

    `timeout`: seconds a cell may take. Stopped: a cell took longer, or the kernel died. OptionError: nbclient is not
    installed, or the file is no notebook of Python.
    """
    try:
        import nbformat
        from nbclient import NotebookClient
        from nbclient.exceptions import CellTimeoutError, DeadKernelError
    except ImportError:
        what = "Notebooks are executed by nbclient, which is not installed."
        raise OptionError(what, hint='pip install "jitlab[check]"') from None
    source = Path(path)
    try:
        notebook = nbformat.read(str(source), as_version=4)
    except OSError as error:
        raise OptionError(f"{source} can't be read.", why=error.strerror or type(error).__name__) from None
    except Exception as error:  # whatever nbformat says of a file that is no notebook
        raise OptionError(f"{source} is no notebook.", why=str(error).split("\n")[0][:200]) from None
    language = notebook.metadata.get("kernelspec", {}).get("language") or notebook.metadata.get("language_info", {}).get("name")
    if language and str(language).lower() not in PYTHON:
        raise OptionError(f"{source} is a notebook of {language}.", why="jitlab compiles what Python and NumPy run")
    client = NotebookClient(
        notebook, timeout=timeout, kernel_name="python3", allow_errors=True,
        resources={"metadata": {"path": str(source.resolve().parent)}},
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder, client.setup_kernel():
        told = Path(folder) / "facts.json"
        own = [nbformat.v4.new_code_cell(code) for code in (LOAD, TELL.format(path=str(told)))]
        notebook.cells = [own[0], *notebook.cells, own[1]]
        try:
            for index, cell in enumerate(notebook.cells):
                client.execute_cell(cell, index, store_history=cell not in own)
        except CellTimeoutError:
            raise Stopped(_title(cell), f"ran longer than {timeout} s (--timeout)") from None
        except DeadKernelError:
            raise Stopped(_title(cell), "ended the kernel") from None
        if not told.is_file():
            raise OptionError("The kernel told nothing of what was compiled.", why="it may be of another Python without jitlab")
        facts: list[Json] = json.loads(told.read_text(encoding="utf-8"))
    run = [cell for cell in notebook.cells[1:-1] if cell.cell_type == "code"]
    ids = {cell.get("execution_count"): cell.get("id", "") for cell in run}
    expected = {cell.get("id", "") for cell in run if "raises-exception" in cell.metadata.get("tags", ())}
    cells = [{**cell, "cell": ids.get(cell.pop("count"), cell["cell"])} for cell in facts]
    cells = [{**cell, "error": None} if cell["cell"] in expected else cell for cell in cells]
    errors = [
        (cell, output)
        for cell in run if cell.get("id", "") not in expected
        for output in cell.outputs if output.output_type == "error"
    ]  # fmt: skip
    raised = [{"cell": cell.get("id", ""), "title": _title(cell), "error": _error(output)} for cell, output in errors]
    return Executed(tuple(cells), tuple(raised), tuple("\n".join(output.traceback) for _, output in errors))


def _error(output: Any) -> str:
    """The type and the first line of what it says."""
    said = str(output.evalue).split("\n")[0][:MOST_SAID]
    return f"{output.ename}: {said}" if said else str(output.ename)


def write_facts(shell: Any, path: str) -> None:
    """Called in the kernel: the facts of all cells that were recorded, in the order in which they ran."""
    from .extension import session_of

    session = session_of(shell)
    cells = []
    runs = list(session.cells.values()) if session is not None else []
    for run in runs:
        report = session.report_of(run) if session is not None and run is not session.running else None
        if report is not None:
            cells.append({**report.facts, "count": run.count})
    Path(path).write_text(json.dumps(sorted(cells, key=lambda facts: facts["count"])), encoding="utf-8")


def _title(cell: Any) -> str:
    return f"In [{cell.get('execution_count') or ' '}]"

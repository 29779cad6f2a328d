"""A notebook executed from its first cell to its last in a new kernel, and the facts of each cell."""

# nbclient and nbformat have no types:
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from jitlab.errors import OptionError

Json = dict[str, Any]

LOAD = "get_ipython().run_line_magic('load_ext', 'jitlab')"
TELL = "__import__('jitlab.notebook.checking', fromlist=['write_facts']).write_facts(get_ipython(), {path!r})"


class CellFailed(Exception):
    """A cell raised: its title, and the traceback that the notebook would show."""

    def __init__(self, title: str, traceback: str) -> None:
        super().__init__(title)
        self.title, self.traceback = title, traceback


def notebook_facts(path: str | Path, timeout: int = 600) -> list[Json]:
    """Execute a notebook (the file stays as it is) and return the facts of the cells in which something was compiled.

    `timeout`: seconds a cell may take. CellFailed: a cell raised, and is not tagged `raises-exception`. OptionError: nbclient
    is not installed, or the file is no notebook.
    """
    try:
        import nbformat
        from nbclient import NotebookClient
        from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
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
    client = NotebookClient(
        notebook, timeout=timeout, kernel_name="python3", resources={"metadata": {"path": str(source.resolve().parent)}}
    )
    with tempfile.TemporaryDirectory() as folder, client.setup_kernel():
        told = Path(folder) / "facts.json"
        own = [nbformat.v4.new_code_cell(code) for code in (LOAD, TELL.format(path=str(told)))]
        notebook.cells = [own[0], *notebook.cells, own[1]]
        try:
            for index, cell in enumerate(notebook.cells):
                client.execute_cell(cell, index, store_history=cell not in own)
        except CellExecutionError as error:
            raise CellFailed(_title(cell), error.traceback) from None
        except CellTimeoutError:
            raise CellFailed(_title(cell), f"It ran longer than {timeout} s.") from None
        except DeadKernelError:
            raise CellFailed(_title(cell), "The kernel died.") from None
        if not told.is_file():
            raise OptionError("The kernel told nothing of what was compiled.", why="it may be of another Python without jitlab")
        facts: list[Json] = json.loads(told.read_text(encoding="utf-8"))
    ids = {cell.get("execution_count"): cell.get("id", "") for cell in notebook.cells[1:-1] if cell.cell_type == "code"}
    return [{**cell, "cell": ids.get(cell.pop("count"), cell["cell"])} for cell in facts]


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

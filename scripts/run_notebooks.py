"""Runs the lessons from top to bottom and saves their outputs: `make notebooks`, or `python scripts/run_notebooks.py FILE...`.

Each is run twice, by a kernel of its own in an empty folder: what is saved is the second run, which finds optimised code, as it
is when the lesson is opened again. Of the notebooks only outputs and their numbers change.
"""

from __future__ import annotations

import os
from argparse import ArgumentParser
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbclient import NotebookClient

LESSONS = Path(__file__).parent.parent / "notebooks"
MOST_SECONDS = 600  # of a cell
#: The last cell of the first run.
UNTIL_OPTIMISED = """
import time
from jitlab.targets.cpu_llvm.compiling import background

background().hurry()
while background().is_busy:
    time.sleep(0.05)
"""


def run(path: Path) -> None:
    """Run a notebook and save it in its place. Raises nbclient's CellExecutionError where a cell fails that has no
    `raises-exception` tag; nothing is saved then."""
    notebook = nbformat.read(path, as_version=4)
    about = dict(notebook.metadata)
    with TemporaryDirectory() as cache:
        os.environ["JITLAB_CACHE_DIR"] = cache
        for is_first in (True, False):
            if is_first:
                notebook.cells.append(nbformat.v4.new_code_cell(UNTIL_OPTIMISED))
            with TemporaryDirectory() as folder:
                client = NotebookClient(
                    notebook, timeout=MOST_SECONDS, kernel_name="python3", record_timing=False, coalesce_streams=True,
                    resources={"metadata": {"path": folder}},
                )  # fmt: skip
                client.execute()
            if is_first:
                notebook.cells.pop()
    notebook.metadata.clear()
    notebook.metadata.update(about)
    nbformat.write(notebook, path)


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("notebooks", nargs="*", type=Path, metavar="FILE", default=sorted(LESSONS.glob("[0-9]*.ipynb")))
    for path in parser.parse_args().notebooks:
        print(path.name, flush=True)
        run(path)


if __name__ == "__main__":
    main()

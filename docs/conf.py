"""How `make docs` builds the pages: MyST Markdown as it is, and the lessons with the outputs that were saved in them."""

import shutil
from importlib.metadata import version as version_of
from pathlib import Path

HERE = Path(__file__).parent

project = "jitlab"
author = "The jitlab developers"
project_copyright = author
version = release = version_of("jitlab")

extensions = ["myst_nb"]
nb_execution_mode = "off"  # pytest runs the lessons; here they are shown as they were saved
nb_mime_priority_overrides = [("html", "application/vnd.jitlab.report+json", None), ("html", "text/html", 10)]
myst_heading_anchors = 3
suppress_warnings = ["mystnb.unknown_mime_type"]

html_theme = "furo"
html_title = "jitlab"
exclude_patterns = ["lessons/README.md"]


def setup(app):
    """The lessons stand beside docs/ and are pages of it: they are copied for the build."""
    lessons = HERE / "lessons"
    lessons.mkdir(exist_ok=True)
    for notebook in sorted((HERE.parent / "notebooks").glob("[0-9]*.ipynb")):
        shutil.copyfile(notebook, lessons / notebook.name)

"""How `make docs` builds the pages: MyST Markdown as it is, the reference from docstrings, and the lessons with the outputs
that were saved in them."""

import re
import shutil
from importlib.metadata import version as version_of
from pathlib import Path

HERE = Path(__file__).parent

project = "jitlab"
author = "The jitlab developers"
project_copyright = author
version = release = version_of("jitlab")

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
autodoc_typehints = "none"  # the docstrings say in words what an argument is
autodoc_member_order = "bysource"
default_role = "code"  # `x` in a docstring is code, as it is in Markdown
napoleon_numpy_docstring = False
smartquotes = False
nb_execution_mode = "off"  # pytest runs the lessons; here they are shown as they were saved
nb_mime_priority_overrides = [("html", "application/vnd.jitlab.report+json", None), ("html", "text/html", 10)]
myst_heading_anchors = 3
suppress_warnings = ["mystnb.unknown_mime_type", "misc.highlighting_failure"]  # the latter: an error's text below a traceback

html_theme = "furo"
html_title = "jitlab"
exclude_patterns = ["lessons/README.md"]


def public_parameters(app, what, name, obj, options, signature, returns):
    """A signature without the parameters that begin with "_"."""
    return re.sub(r", _\w+=(<[^>]*>|[^,)]*)", "", signature) if signature else signature, returns


def setup(app):
    """The lessons stand beside docs/ and are pages of it: they are copied for the build."""
    app.connect("autodoc-process-signature", public_parameters)
    lessons = HERE / "lessons"
    lessons.mkdir(exist_ok=True)
    for notebook in sorted((HERE.parent / "notebooks").glob("[0-9]*.ipynb")):
        shutil.copyfile(notebook, lessons / notebook.name)

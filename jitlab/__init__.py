"""Compiles the NumPy of a notebook cell and shows what happened."""

from . import errors
from .api import Function, function
from .config import config

__version__ = "0.1.0"

__all__ = ["Function", "config", "errors", "function"]


def _jupyter_labextension_paths() -> list[dict[str, str]]:
    """Where `jupyter-builder develop` finds the extension of an editable install."""
    return [{"src": "labextension", "dest": "jitlab"}]

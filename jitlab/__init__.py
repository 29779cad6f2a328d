"""Compiles the NumPy of a notebook cell and shows what happened."""

__version__ = "0.1.0"


def _jupyter_labextension_paths() -> list[dict[str, str]]:
    """Where `jupyter-builder develop` finds the extension of an editable install."""
    return [{"src": "labextension", "dest": "jitlab"}]

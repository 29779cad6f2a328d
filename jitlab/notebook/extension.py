"""`%load_ext jitlab`: hooks, magics and the link to the panel; once a shell."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from .cell_session import Session
from .magics.magics import JitMagics


def load_ipython_extension(shell: Any) -> None:
    """Called by `%load_ext jitlab`; loading again changes nothing."""
    if shell in _sessions:
        return
    session = Session(shell)
    session.start()
    _sessions[shell] = session
    magics = JitMagics(shell, session)
    shell.register_magics(magics)
    _magics[shell] = magics


def unload_ipython_extension(shell: Any) -> None:
    """Called by `%unload_ext jitlab`: the shell is as before."""
    session = _sessions.pop(shell, None)
    if session is None:
        return
    session.stop()
    _magics.pop(shell).detach()
    for kind, name in (("cell", "jit"), ("line", "jit"), ("line", "jitlab")):
        shell.magics_manager.magics[kind].pop(name, None)


def session_of(shell: Any) -> Session | None:
    """The session of a shell that loaded the extension."""
    return _sessions.get(shell)


_sessions: WeakKeyDictionary[Any, Session] = WeakKeyDictionary()
_magics: WeakKeyDictionary[Any, JitMagics] = WeakKeyDictionary()

"""The arguments of `jit`: what they may be, in the order in which they are checked."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import field
from typing import Any

from jitlab.capture.positions import PACKAGE
from jitlab.support.later import Later
from jitlab.support.lazy import lazy
from jitlab.support.lazy_dataclass import dataclass
from jitlab.targets.devices import placement

difflib = Later("difflib")
json = Later("json")

CAPTURE_MODES = ("ast", "bytecode", "trace")
JIT_LEVELS = ("O0", "O1")
ARGUMENTS = ("capture_mode", "jit_level", "dynamic", "fullgraph", "backend", "device")
BACKENDS = ("", "ms_backend", "GE")

#: Options that are accepted and checked, and select nothing here.
NO_EFFECT = {
    "disable_format_transform": "arrays have no hidden formats that could be transformed",
    "ge_options": "there is no GE backend",
    "infer_boost": "there is no separate mode for inference",
}
_DEPRECATED = ("mode", "input_signature", "jit_config", "compile_once")
_BACKEND_OF = {
    "disable_format_transform": "ms_backend", "exec_order": "ms_backend", "infer_boost": "ms_backend", "ge_options": "GE"
}  # fmt: skip


@dataclass(frozen=True)
class JitOptions:
    """How a function is captured and compiled. `exec_order`: "" leaves the order of operations to the compiler; `device`: where
    its operations are placed, "" for the default."""

    capture_mode: str = "ast"
    jit_level: str = "O1"
    dynamic: bool = False
    fullgraph: bool = False
    backend: str = ""
    exec_order: str = ""
    device: str = ""
    others: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.text

    @lazy
    def text(self) -> str:
        all_of_them = {**vars(self), **self.others, "others": {}}
        given = {name: value for name, value in all_of_them.items() if value != getattr(PLAIN, name, None)}
        return ", ".join(f"{name}={value!r}" for name, value in given.items()) or "no options"


PLAIN = JitOptions()


def checked(
    capture_mode: Any, jit_level: Any, dynamic: Any, fullgraph: Any, backend: Any, device: Any, options: dict[str, Any]
) -> JitOptions:
    """The options, or the error that the first wrong one is. Those of functions that ask for nothing are one object."""
    _one_of("capture_mode", capture_mode, CAPTURE_MODES)
    _one_of("jit_level", jit_level, JIT_LEVELS)
    if type(dynamic) is not bool:
        raise TypeError(f"For 'jit', the 'dynamic' must be a bool, but got {_kind(dynamic)}.")
    if type(fullgraph) is not bool:
        raise TypeError(f"For 'jit', the 'fullgraph' must be a bool, but got {_kind(fullgraph)}.")
    if not isinstance(backend, str):
        raise TypeError(f"For 'jit', the 'backend' must be str, but got {_kind(backend)}.")
    placed = placement(device)
    taken = {}
    for name, value in options.items():
        if name in _DEPRECATED:
            warn(f"For 'jit', the argument '{name}' has been deprecated: it has no effect.")
            continue
        _json(name, value)
        check = _CHECKS.get(name)
        if check is None:
            warn(f"For 'jit(options)', the option '{name}' is not recognized: {_meant(name)}it has no effect.")
            continue
        check(name, value)
        if backend and backend in BACKENDS and backend != _BACKEND_OF[name]:
            warn(
                f"For 'jit(options)', the option '{name}' is only support backend '{_BACKEND_OF[name]}', but the backend is"
                f" '{backend}': it has no effect."
            )
            continue
        taken[name] = value
    made = JitOptions(capture_mode, jit_level, dynamic, fullgraph, backend, taken.pop("exec_order", ""), placed, taken)
    return PLAIN if made == PLAIN else made


def warn(text: str) -> None:
    """A warning at the user's line, whichever decorator it is that has asked."""
    frame, level = sys._getframe(), 1
    while frame.f_code.co_filename.startswith(PACKAGE) and frame.f_back is not None:
        frame, level = frame.f_back, level + 1
    warnings.warn(text, stacklevel=level)


def _meant(name: str) -> str:
    near = difflib.get_close_matches(name, [*ARGUMENTS, *_CHECKS], 1)
    return f"did you mean {near[0]}? As it stands, " if near else ""


def check_backend(name: str) -> None:
    """At the first call: the backend has to be one of ours."""
    if name not in BACKENDS:
        raise RuntimeError(f"Invalid backend name: {name}. It is one of 'ms_backend', 'GE', or '' for the default.")


def _one_of(name: str, value: Any, values: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in values:
        raise ValueError(f"For 'jit', the '{name}' must be str and must be in {list(values)}, but got {value!r}.")


def _json(name: str, value: Any) -> None:
    try:
        json.dumps(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"For 'jit(options)', '{name}' must be made of str, numbers, lists and dicts: {error}") from None


def _choice(*values: str) -> Callable[[str, Any], None]:
    def check(name: str, value: Any) -> None:
        if not isinstance(value, str):
            raise TypeError(f"For 'jit(options)', the '{name}' must be str, but got {_kind(value)}.")
        if value not in values:
            raise ValueError(f"For 'jit(options)', the '{name}' must be one of {list(values)}, but got '{value}'.")

    return check


def _bool(name: str, value: Any) -> None:
    if type(value) is not bool:
        raise TypeError(f"For 'jit(options)', the '{name}' must be bool, but got {_kind(value)}.")


def _ge_options(name: str, value: Any) -> None:
    if not isinstance(value, dict):
        raise TypeError(f"For 'jit(options)', the '{name}' must be dict, but got {_kind(value)}.")
    for key, inner in value.items():
        if key not in ("global", "session"):
            raise ValueError(f"For 'jit(options)', the keys of '{name}' must be one of ['global', 'session'], but got {key!r}.")
        if not isinstance(inner, dict):
            raise TypeError(f"For 'jit(options)', {name}[{key!r}] must be dict, but got {_kind(inner)}.")
        for option, setting in inner.items():
            if not isinstance(option, str) or not isinstance(setting, str):
                raise TypeError(f"For 'jit(options)', {name}[{key!r}] must map str to str, but got {option!r}: {setting!r}.")


def _kind(value: Any) -> str:
    return type(value).__name__


_CHECKS: dict[str, Callable[[str, Any], None]] = {
    "exec_order": _choice("bfs", "dfs"), "infer_boost": _choice("on", "off"), "disable_format_transform": _bool,
    "ge_options": _ge_options,
}  # fmt: skip

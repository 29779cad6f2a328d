"""The flags of `TF_XLA_FLAGS` and `XLA_FLAGS`: read anew where they matter, checked, never fatal.

Both variables accept every flag. A flag is `--name=value`; a yes-or-no flag may stand alone. They are read once for each
session, each cell and each capture of a function, so a change of the environment counts from the next one on.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import field, fields
from typing import Any

from jitlab.errors import OptionError
from jitlab.support.later import Later
from jitlab.support.lazy_dataclass import dataclass

difflib = Later("difflib")

VARIABLES = ("TF_XLA_FLAGS", "XLA_FLAGS")
SHARED = "XLA_FLAGS"  # other programs read it, too
INT32, INT64 = 2**31 - 1, 2**63 - 1


@dataclass(frozen=True)
class AutoJit:
    """`tf_xla_auto_jit`: 0 leaves the level to the configuration, -1 is OFF, 1 and 2 are ON; each wins over the configuration.

    `single_gpu`: for graphs on one GPU only. `fusible`: level 1, and only operations that share loops are compiled.
    """

    level: int = 0
    single_gpu: bool = False
    fusible: bool = False


def _setting(default: Any, read: Callable[[str], Any], effect: str = "", *, nothing: str = "") -> Any:
    """A flag. `effect`: what it does; else `nothing`: why it selects nothing here."""
    return field(default=default, metadata={"read": read, "effect": effect, "nothing": nothing})


def _truth(text: str) -> bool:
    known = {"": True, "true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    if text.lower() not in known:
        raise ValueError("it is true or false")
    return known[text.lower()]


def _number(least: int, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise ValueError("it is a whole number") from None
        if not least <= value <= most:
            raise ValueError(f"it is a number from {least} to {most}")
        return value

    return read


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for name in text.split(",") if name)


def _pattern(text: str) -> re.Pattern[str] | None:
    try:
        return re.compile(text) if text else None
    except re.error as error:
        raise ValueError(f"it is not a regular expression: {error}") from None


def _auto_jit(text: str) -> AutoJit:
    if text == "fusible":
        return AutoJit(1, fusible=True)
    single = re.fullmatch(r"single-gpu\((-?\d+)\)", text)
    try:
        level = int(single[1] if single else text)
    except ValueError:
        raise ValueError("it is -1, 0, 1, 2, fusible or single-gpu(N)") from None
    if not -1 <= level <= 2:
        raise ValueError("the levels are -1, 0, 1 and 2")
    return AutoJit(level, single_gpu=single is not None)


_NO_PREDICATES = "operations of one graph are run together: what depends on a condition is in a graph of its own"
_ONE_ENGINE = "there is one compiler and one way of running here"


@dataclass(frozen=True)
class Flags:
    """The values of all flags; `given` names those that the environment sets."""

    tf_xla_auto_jit: AutoJit = _setting(AutoJit(), _auto_jit, "the level, instead of the configuration's")
    tf_xla_min_cluster_size: int = _setting(
        2, _number(1, INT32), "operations a cluster has at least; functions and cells take 1 where it is not set"
    )
    tf_xla_max_cluster_size: int = _setting(INT32, _number(1, INT32), "operations and constants a cluster has at most")
    tf_xla_clustering_debug: bool = _setting(False, _truth, "writes the graph before and after clustering, and annotated")
    tf_xla_clustering_fuel: int = _setting(INT64, _number(0, INT64), "operations that may be put into clusters")
    tf_xla_ops_to_cluster: tuple[str, ...] = _setting(
        (), _names, "only these operations and groups (PW, RED, PWRED, REDUCEWINDOW, REDUCEWINDOWPW, BN, SORT, SMALL, FUSIBLE)"
    )
    tf_xla_cluster_exclude_ops: tuple[str, ...] = _setting((), _names, "these operations are never put into clusters")
    tf_xla_fusion_only: bool = _setting(False, _truth, "only operations that share loops, as the group FUSIBLE")
    tf_xla_disable_resource_variable_safety_checks_for_debugging: bool = _setting(
        False, _truth, "a variable may be read in the cluster that has assigned it"
    )
    xla_generate_hlo_graph: re.Pattern[str] | None = _setting(
        None, _pattern, "writes the graphs of clusters whose name the regular expression finds"
    )
    xla_hlo_graph_path: str = _setting("", str, "the folder of these files; the system's temporary folder where not set")
    xla_log_hlo_text: re.Pattern[str] | None = _setting(None, _pattern, nothing="the text of a plan is in its report")
    xla_hlo_dump_as_graphdef: bool = _setting(False, _truth, nothing="dumps are DOT files")
    xla_dump_to: str = _setting("", str, "the folder for the first and the last stage of each cluster, as text")
    xla_dump_hlo_as_text: bool = _setting(False, _truth, "these files are texts: what they are where nothing is said")
    xla_dump_hlo_as_dot: bool = _setting(False, _truth, "these files are DOT files")
    tf_xla_cpu_global_jit: bool = _setting(False, _truth, nothing="the level counts on the CPU, too")
    tf_xla_disable_deadness_safety_checks_for_debugging: bool = _setting(False, _truth, nothing=_NO_PREDICATES)
    tf_xla_deterministic_cluster_names: bool = _setting(False, _truth, nothing="names are given in program order anyway")
    tf_xla_enable_lazy_compilation: bool = _setting(True, _truth, nothing="a cluster is compiled when it first runs")
    tf_xla_always_defer_compilation: bool = _setting(False, _truth, nothing="the first run waits for the quick tier only")
    tf_xla_async_compilation: bool = _setting(False, _truth, nothing="the better tier is compiled beside the run anyway")
    tf_xla_enable_xla_devices: bool = _setting(True, _truth, nothing="the XLA devices are there anyway")
    tf_xla_compile_on_demand: bool = _setting(False, _truth, nothing=_ONE_ENGINE)
    tf_xla_persistent_cache_directory: str = _setting("", str, nothing="JITLAB_CACHE_DIR is the folder of compiled code")
    xla_force_host_platform_device_count: int = _setting(1, _number(1, INT32), nothing="one device is one processor or GPU")
    xla_backend_optimization_level: int = _setting(3, _number(0, 3), nothing="both tiers have a level of their own")
    xla_cpu_multi_thread_eigen: bool = _setting(True, _truth, nothing="JITLAB_NUM_THREADS sets the threads")
    xla_cpu_enable_fast_math: bool = _setting(False, _truth, nothing="results are NumPy's, whatever is asked for")
    xla_gpu_cuda_data_dir: str = _setting("", str, nothing="kernels for GPUs need no files of the toolkit")
    xla_gpu_autotune_level: int = _setting(4, _number(0, 5), nothing=_ONE_ENGINE)
    xla_disable_hlo_passes: tuple[str, ...] = _setting((), _names, nothing=_ONE_ENGINE)
    xla_hlo_profile: bool = _setting(False, _truth, nothing="a recording has the time of each kernel")

    given: frozenset[str] = frozenset()

    def or_given(self, name: str, otherwise: Any) -> Any:
        """The value of a flag that the environment sets, else `otherwise`."""
        return getattr(self, name) if name in self.given else otherwise


KNOWN = {f.name: f for f in fields(Flags) if f.metadata}


def read_flags(environ: Mapping[str, str] | None = None) -> Flags:
    """The flags of the environment now. A flag that is unknown, or has a value it cannot have, is an OptionError; in XLA_FLAGS,
    which other libraries read too, it is a warning, unless its name begins with `tf_` or it has an effect here."""
    environ = os.environ if environ is None else environ
    text = tuple(environ.get(variable, "") for variable in VARIABLES)
    known = _last[0]
    if known[0] != text:
        known = _last[0] = text, _parsed(text)
    return known[1]


def _parsed(text: tuple[str, ...]) -> Flags:
    values: dict[str, Any] = {}
    for variable, flags in zip(VARIABLES, text, strict=True):
        for flag in flags.split():
            name, equals, value = flag.lstrip("-").partition("=")
            is_known = flag.startswith("-") and name in KNOWN
            try:
                if not is_known:
                    near = difflib.get_close_matches(name, KNOWN, 3, 0.5)
                    raise OptionError(
                        f"unknown flag {flag!r}", where=f"environment variable {variable}",
                        hint=" or ".join(f"--{other}" for other in near) or "docs/reference/flags.md lists the flags",
                    )  # fmt: skip
                values[name] = _value(name, equals, value, flag, variable)
            except OptionError as error:  # JAX and others read XLA_FLAGS, too: what does nothing here is theirs
                if variable != SHARED or name.startswith("tf_") or (is_known and KNOWN[name].metadata["effect"]):
                    raise
                warnings.warn(f"{error.what} (environment variable {variable}): jitlab ignores it; {error.hint}", stacklevel=2)
    return Flags(**values, given=frozenset(values))


def _value(name: str, equals: str, value: str, flag: str, variable: str) -> Any:
    read = KNOWN[name].metadata["read"]
    try:
        if not equals and read is not _truth:
            raise ValueError("it has a value")
        return read(value)
    except ValueError as error:
        raise OptionError(
            f"{flag} cannot be", where=f"environment variable {variable}", why=str(error),
            hint=f"--{name}={_shown(KNOWN[name].default)}",
        ) from None  # fmt: skip


def table() -> str:
    """The flags as a table in Markdown: those that do something, then those that select nothing here."""
    lines = ["| flag | default | effect |", "|---|---|---|"]
    for name, f in KNOWN.items():
        if f.metadata["effect"]:
            lines.append(f"| `{name}` | {_cell(f.default)} | {f.metadata['effect']} |")
    lines += ["", "| no effect | because |", "|---|---|"]
    for name, f in KNOWN.items():
        if not f.metadata["effect"]:
            lines.append(f"| `{name}` | {f.metadata['nothing']} |")
    return "\n".join(lines) + "\n"


def _cell(default: Any) -> str:
    return f"`{_shown(default)}`" if _shown(default) else ""


def _shown(default: Any) -> str:
    match default:
        case AutoJit():
            return str(default.level)
        case bool():
            return str(default).lower()
        case tuple():
            return ",".join(default)
        case None:
            return ""
    return str(default)


_last: list[tuple[tuple[str, ...], Flags]] = [(("", ""), Flags())]

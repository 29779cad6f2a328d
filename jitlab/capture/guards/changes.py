"""What a call depends on, leaf by leaf, and what changed when no trace fits it: causes of a closed list, each with its path."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from jitlab.capture.numpy_calls.layouts import Layout
from jitlab.events import Cause, VariantCause
from jitlab.messages import Message
from jitlab.specs import TensorSpec
from jitlab.support.containers import CONTAINERS
from jitlab.support.lazy_dataclass import dataclass

from .signature import items_at, key_of

#: Every cause that a new capture can have; layout makes a variant, and is never called a retrace.
CAUSES = (*Cause, VariantCause.LAYOUT)


@dataclass(frozen=True, slots=True)
class Leaf:
    """One thing that a signature depends on, by its path: an array, a Python value, an object, a container's form, a container
    that is another argument, too ("shared"), or which arrays are one ("aliasing"). Two leaves are the same for the cache when
    their `key` is."""

    path: str
    kind: str  # "array", "value", "object", "container", "shared", "aliasing"
    text: str
    dtype: np.dtype[Any] | None = None
    shape: tuple[int, ...] = ()
    value: Any = None
    key: Any = None  # the part of the cache's key that is this leaf's own
    origin: str = ""  # "global" or "closure" when a name was read and guarded; "" for arguments

    def of_value(self, value: Any) -> Leaf:
        """The same, of another object."""
        return Leaf(self.path, self.kind, self.text, self.dtype, self.shape, value, self.key, self.origin)

    @property
    def identity(self) -> Any:
        """What tells it from other leaves of its path: hashable."""
        if self.key is not None:
            return self.key
        return self.text, self.value if self.kind == "object" else None


@dataclass(frozen=True, slots=True)
class Change:
    """Why a call needed a new trace: one of CAUSES, where, what it was and is, and what to do. `rule`: the code of its rule,
    where the cause has several: "object" of a Python value, "trace_limit" of a trace that had made room."""

    cause: str
    path: str = ""
    before: str = ""
    after: str = ""
    fix: Message | None = None
    rule: str = ""

    def __post_init__(self) -> None:
        assert self.cause in CAUSES, self.cause

    @property
    def code(self) -> str:
        """Of its rule and its sentence in the message table."""
        return self.rule or str(self.cause)


def leaves_of(names: Sequence[str], values: Sequence[Any]) -> tuple[Leaf, ...]:
    """All leaves of bound values, each with its path: `x`, `params[0]`, `opts["lr"]`; last, which arrays are one."""
    result: list[Leaf] = []
    arrays: dict[int, list[str]] = {}
    for name, value in zip(names, values, strict=True):
        _collect(name, value, result, arrays)
    for paths in arrays.values():
        if len(paths) > 1:
            text = f"the array that {' and '.join(f'`{path}`' for path in paths[:-1])} is, too"
            result.append(Leaf(paths[-1], "aliasing", text, key=tuple(paths)))
    return tuple(result)


def _collect(path: str, value: Any, result: list[Leaf], arrays: dict[int, list[str]]) -> None:
    if getattr(type(value), "__jitlab_variable__", False):
        result.append(Leaf(path, "variable", f"Variable of {_typed(value.dtype, value.shape)}", key=(value.dtype, value.shape)))
        arrays.setdefault(id(value), []).append(path)
    elif isinstance(value, TensorSpec):
        dims = value.shape.dims
        text = f"{value.dtype}[...]" if dims is None else _typed(value.dtype, dims)
        key = (value.dtype, dims, value.name) if value.name else (value.dtype, dims)
        result.append(Leaf(path, "array", text, value.dtype, dims or (), key=key))  # type: ignore[arg-type]
    elif isinstance(value, (np.ndarray, np.generic)):
        shape = tuple(value.shape)
        text = array_text(value)
        result.append(Leaf(path, "array", text, value.dtype, shape, key=(value.dtype, shape)))
        if type(value) is np.ndarray:
            arrays.setdefault(id(value), []).append(path)
    elif isinstance(value, CONTAINERS):
        kind, order = type(value), sorted(value, key=repr) if isinstance(value, dict) else None
        text = f"of {len(value)}" if order is None else f"with keys {', '.join(map(repr, order))}"
        form = len(value) if order is None else tuple(order)
        result.append(Leaf(path, "container", f"{kind.__name__} {text}", key=(kind, form)))
        for place, item in items_at(path, value):
            _collect(place, item, result, arrays)
    elif isinstance(value, set):
        result.append(Leaf(path, "container", f"{type(value).__name__} of {len(value)}", key=(type(value), frozenset(value))))
    elif isinstance(value, (int, float, complex, str, bytes, type(None))):
        result.append(Leaf(path, "value", repr(value), value=value, key=key_of([value])[0]))
    else:
        result.append(Leaf(path, "object", f"{type(value).__name__} object", value=number_of(value), key=key_of([value])[0]))


def array_text(value: Any) -> str:
    """An array, or a NumPy scalar: dtype and shape; of a subclass its name, too."""
    text = _typed(value.dtype, value.shape) if isinstance(value, np.ndarray) else str(value.dtype)
    return text if isinstance(value, np.generic) or type(value) is np.ndarray else f"{type(value).__name__} of {text}"


def number_of(value: Any) -> int:
    """A number that no other object ever has: an address is given again as soon as its object is gone."""
    key = id(value)
    known = _numbers.get(key)
    if known is not None and known[0]() is value:
        return known[1]
    try:
        reference = weakref.ref(value, lambda _: _numbers.pop(key, None))
    except TypeError:
        return key
    _numbers[key] = reference, -next(_next)
    return _numbers[key][1]


_numbers: dict[int, tuple[weakref.ref[Any], int]] = {}
_next = itertools.count(1)


def _typed(dtype: Any, shape: Sequence[int | None]) -> str:
    return f"{dtype}[{', '.join(map(str, shape))}]"


def changes(before: Sequence[Leaf], after: Sequence[Leaf]) -> list[Change]:
    """What differs between the leaves of two calls, the weightiest first. Empty when the cache cannot tell them apart."""
    old = {(leaf.path, leaf.kind == "aliasing"): leaf for leaf in before}
    new = {(leaf.path, leaf.kind == "aliasing"): leaf for leaf in after}
    result: list[Change] = []
    for place, leaf in new.items():
        known = old.get(place)
        if known is not None and not is_same(known, leaf):
            change = change_of(known, leaf, after)
            result.append(replace(change, cause=leaf.origin) if leaf.origin in CAUSES else change)
    other = [c.path for c in result if c.cause == "structure" and c.before.partition(" ")[0] != c.after.partition(" ")[0]]
    result = [c for c in result if not any(_is_in(c.path, above) for above in other)]  # `[0]` of a list, and of a dict
    covered = [change.path for change in result if change.cause in ("structure", "argument_type")]
    for place in [p for p in new if p not in old] + [p for p in old if p not in new]:
        path, is_aliasing = place
        texts = [leaves[place].text if place in leaves else "" for leaves in (old, new)]
        if is_aliasing:
            old_text, new_text = (text or "an array of its own" for text in texts)
            result.append(Change("aliasing", path, old_text, new_text))
        elif not any(_is_in(path, above) for above in covered):
            fix = Message("fix.same_structure")
            result.append(Change("structure", path, texts[0] or "absent", texts[1] or "absent", fix))
    return sorted(result, key=lambda change: _WEIGHTS.index(change.cause))


def _is_in(path: str, above: str) -> bool:
    """Is it a part of what stands there?"""
    return path.startswith(above) and path[len(above) : len(above) + 1] in ("[", ".")


def fix_of_name(change: Change) -> Message | None:
    """The fix of a name that a cell, or a piece of a function, reads: nobody passes it, a statement binds it."""
    fix, path = change.fix, change.path
    if fix is None or fix.code not in ("fix.same_kind", "fix.same_structure", "fix.same_order"):
        return fix
    if "absent" in (change.before, change.after):
        return None  # the next run finds what this one leaves
    if fix.code == "fix.same_structure":
        return Message("fix.same_structure_of_name", {"path": path})
    kinds = [text.partition("[")[0] for text in (change.before, change.after)]
    scalar = next((kind for kind in kinds if kind in np.sctypeDict and kind not in ("int", "float", "complex", "bool")), "")
    if scalar:
        return Message("fix.same_dtype_of_name", {"path": path, "dtype": scalar})
    return Message("fix.same_kind_of_name", {"path": path})


def written(code: str, path: str, line: str) -> Message:
    """A fix that is a line of the program, to be copied before the call."""
    return Message(f"fix.{code}", {"paths": [path], "written": line, "form": "line"})


def is_same(old: Leaf, new: Leaf) -> bool:
    """The cache can't tell them apart."""
    return old.kind == new.kind and bool(old.identity == new.identity)


#: The weightiest cause first; of two traces that differ in as much, the lighter cause is nearer.
_WEIGHTS = (
    "structure", "argument_type", "rank", "dtype", "global", "closure", "python_value", "shape", "aliasing", "layout",
    "first_call", "unknown",
)  # fmt: skip


def with_guard(found: list[Change], failed: Change | None) -> list[Change]:
    """What differs, where the lookup itself says which of its guards `failed`: that one, then the rest. What one of the two
    traces reads and the other does not is what came of it."""
    if failed is None:
        return found
    rest = [change for change in found if "absent" not in (change.before, change.after)]
    if all(change.path != failed.path for change in rest):
        return [failed, *rest]
    return [replace(c, before=failed.before, after=failed.after) if c.path == failed.path else c for c in rest]


def distance(found: Sequence[Change]) -> tuple[int, int]:
    """How far away a trace is, given what differs from it."""
    return len(found), -_WEIGHTS.index(found[0].cause) if found else 0


def layout_change(layout: Layout, path: str, array: np.ndarray[Any, Any]) -> Change:
    """An array lies in memory as a trace did not find it."""
    before, after = (f"strides {', '.join(map(str, known))}" for known in (layout.strides, array.strides))
    return Change("layout", path, before, after, written("contiguous", path, f"{path} = np.ascontiguousarray({path})"))


def change_of(old: Leaf, new: Leaf, others: Sequence[Leaf] = ()) -> Change:
    """What happened to one leaf."""
    path = new.path
    same_kind = Message("fix.same_kind", {"path": path})
    if old.kind != new.kind:
        if "shared" in (old.kind, new.kind):
            return Change("aliasing", path, old.text, new.text)
        if "container" in (old.kind, new.kind):
            return Change("structure", path, old.text, new.text, same_kind)
        fix = _as_array(path, new.value, others) if new.kind == "value" else same_kind
        return Change("argument_type", path, old.text, new.text, fix)
    if new.kind == "array":
        if old.dtype != new.dtype:
            return Change("dtype", path, old.text, new.text, written("cast", path, f"{path} = {path}.astype(np.{old.dtype})"))
        if len(old.shape) != len(new.shape):
            return Change("rank", path, old.text, new.text, Message("fix.same_rank", {"path": path}))
        if old.shape == new.shape:  # a scalar, or a subclass
            return Change("argument_type", path, old.text, new.text, same_kind)
        return Change("shape", path, old.text, new.text)
    if new.kind == "container":
        return Change("structure", path, old.text, new.text, Message("fix.same_structure"))
    if new.kind == "aliasing":
        return Change("aliasing", path, old.text, new.text)
    if new.kind == "object":
        fix = Message("fix.same_object", {"path": path})
        return Change("python_value", path, old.text, f"another {new.text}", fix, "object")
    if old.value is None or new.value is None or type(old.value) is not type(new.value) or isinstance(new.value, type):
        return Change("argument_type", path, old.text, new.text, same_kind)
    return Change("python_value", path, old.text, new.text, _as_array(path, new.value, others))


def _as_array(path: str, value: Any, others: Sequence[Leaf]) -> Message:
    if isinstance(value, bool) or not isinstance(value, (int, float, complex)):
        return Message("fix.few_values", {"path": path})
    dtypes = [leaf.dtype for leaf in others if leaf.dtype is not None and leaf.dtype.kind == "f"]
    dtype = f", np.{dtypes[0]}" if dtypes and isinstance(value, float) else ""
    return written("as_array", path, f"{path} = np.asarray({path}{dtype})")

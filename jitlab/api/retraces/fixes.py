"""What would have avoided traces: changes of the program that were replayed on the recorded calls before they are proposed.

A replay gives each recorded call the key it would have had under the change, and counts the traces that are left. It needs no
arrays. Nothing is proposed that leaves as many traces as there were, or that a value rules out: one that decides what the
program does (an axis, a branch) cannot come as an array.
"""

from __future__ import annotations

import linecache
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import combinations
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from jitlab.capture import Leaf
from jitlab.config import config
from jitlab.events import Cause, VariantCause
from jitlab.ir import Source
from jitlab.messages import Message, capital, units
from jitlab.support.lazy_dataclass import dataclass

from .callsite import at_call, with_option
from .in_pieces import MANY_SHAPES
from .patterns import listed, told_powers

if TYPE_CHECKING:
    from .misses import Miss

#: Of more recorded calls the newest are replayed; of more things to change, those of the newest calls are tried.
MOST_CALLS, MOST_STEPS = 1000, 8

REDUCE = "reduce_retracing=True"

#: Code of a fix that is an option of the decorator, or of the call that makes the function.
OPTIONS = (REDUCE, "input_signature=")
SETTING = "jl.config."

#: What defining a function once, and keeping more traces, are about.
MADE_AGAIN, MADE_ROOM = {Cause.CLOSURE, Cause.GLOBAL, Cause.REDEFINED_FUNCTION}, {Cause.CACHE_EVICTED}

Parts = dict[tuple[str, bool], Any]  # (path, is closure) -> that part of the key


@dataclass(frozen=True)
class Fix:
    """A change of the program, and what it would have done to the recorded calls."""

    what: str  # "pass `k` as an array"
    code: str  # to copy, "" where a sentence has to do
    before: int  # traces of the recorded calls
    after: int
    seconds: float  # saved
    cost: int  # how much there is to change
    paths: frozenset[str]
    kinds: frozenset[str]
    spared: frozenset[tuple[int, int]]  # the calls that would have found a trace: their function's number, and their own
    words: str = ""  # what stands in the place of the code where the call cannot be written out
    form: str = ""  # of its code: "line" before the call, "call", "option" or "decorator" of what makes it, "setting"; "words"
    note: str = ""  # what is computed otherwise then
    option: str = ""  # of the code the decorator, or the call that makes the function, with its new option
    made: Source | None = None  # where that is

    @property
    def count(self) -> str:
        """ "make axis 0 of `x` dynamic: 9 traces become 2"."""
        return f"{self.what}: {self.before} traces become {self.after}{self.note and f', {self.note}'}"

    def avoids(self, miss: Miss) -> bool:
        """With it this call would have found a trace, and it is about what changed."""
        if (miss.owner, miss.number) not in self.spared:
            return False
        causes = set(miss.causes)
        if "hoist" in self.kinds or "keep" in self.kinds:
            return bool(causes & (MADE_AGAIN if "hoist" in self.kinds else MADE_ROOM))
        return any(change.path in self.paths for change in miss.changes)

    @property
    def text(self) -> str:
        """The code to copy, else what to do in words."""
        return self.code or self.words or self.what

    def at(self, miss: Miss, *, is_planned: bool = False) -> Fix:
        """With its code as that call is written. Of a planned call nobody knows the line."""
        codes = self.code.split("; ") if self.code else []
        options = [code for code in codes if _is_elsewhere(code)]
        lines = [code for code in codes if code not in options]
        wanted = next((code for code in options if code.startswith(OPTIONS)), "")
        option = with_option(miss.made, wanted) if wanted else ""
        fix = replace(self, option=option, made=miss.made) if option else self
        if option:
            options = [option if code == wanted else code for code in options]
        if not lines:
            return replace(fix, code="; ".join(options), form=_form_of(options))
        if miss.nearest is not None and not self.passes_number(miss) and self.passes_number(miss.nearest):
            miss = miss.nearest  # this call passes an array, as it should; the one before did not
        site = None if is_planned else miss.site
        text, form = at_call(lines, miss.function, miss.definition.code, site, is_method=miss.is_method)
        if form != "words":
            return replace(fix, code="; ".join([text, *options]), form="several" if options else form)
        return replace(fix, code="", words=" and ".join([text, *map(fix._elsewhere, options)]), form="words")

    def passes_number(self, miss: Miss) -> bool:
        """A Python number comes where the fix wants an array."""
        return miss.passes_number(self.paths)

    @property
    def message(self) -> Message:
        """As a report has it; of a fix that was placed by `at`."""
        kind = next(iter(self.kinds)) if len(self.kinds) == 1 else "several"
        code = {"array": "as_array"}.get(kind, kind)
        told = {"path": "` and `".join(sorted(self.paths))} if kind == "one_length" else {}
        return Message(f"fix.{code}", {"paths": sorted(self.paths), "written": self.text, "form": self.form or "words", **told})

    def done(self, miss: Miss) -> Message | None:
        """That it is done: this call has arrays, those before had not and stand in a line that is another now; else None."""
        nearest = miss.nearest
        if self.kinds != {"array"} or nearest is None or self.passes_number(miss) or not self.passes_number(nearest):
            return None
        here, there = miss.site, nearest.site
        if here.file == there.file and (here != there or "asarray(" not in linecache.getline(here.file, here.line)):
            return None  # the call that passed a number still stands
        names = listed([f"`{path}`" for path in sorted(self.paths)])
        return Message(f"done.{'array' if len(self.paths) == 1 else 'arrays'}", {"names": names})

    def where_to_write(self, function: str) -> list[str]:
        """A sentence for each piece of the code, with the place where it goes: the call, or where the function is made."""
        codes = self.code.split("; ") if self.code else []
        options = [code for code in codes if _is_elsewhere(code) or code == self.option]
        lines = "; ".join(code for code in codes if code not in options)
        return [
            *([f"At the call, not inside of {function}: `{lines}`."] if lines else []),
            *([capital(f"{self.words}.")] if self.words else []),
            *(capital(f"{self._elsewhere(code)}.") for code in options),
        ]

    def _elsewhere(self, code: str) -> str:
        if code == self.option and self.made is not None:
            return f"write `{code}` in {self.made.place}"
        return f"write `@jl.function({code})`" if code.startswith(OPTIONS) else f"set `{code}`"

    def __str__(self) -> str:
        return self.count + (f", saves {units.duration(self.seconds)}" if self.seconds >= 1e-6 else "")


def _form_of(options: Sequence[str]) -> str:
    """Of code that does not stand at the call: where it stands."""
    if len(options) != 1:
        return "several" if options else "words"
    (code,) = options
    if code.startswith(SETTING):
        return "setting"
    return "option" if code.startswith(OPTIONS) else "decorator" if code.startswith("@") else "maker"


def _is_elsewhere(code: str) -> bool:
    return code.startswith((*OPTIONS, SETTING))


@dataclass(frozen=True)
class Step:
    """One thing to change. `apply` gives the parts of a call's key as they would be."""

    kind: str
    path: str
    what: str
    code: str
    cost: int = 1

    def apply(self, parts: Parts, miss: Miss) -> None:
        raise NotImplementedError


@dataclass(frozen=True)
class Dynamic(Step):
    """The length of an axis is left open. Each length is still recorded, so no time is saved."""

    axis: int = 0

    def apply(self, parts: Parts, miss: Miss) -> None:
        match parts.get((self.path, False)):
            case ("array", dtype, shape) if len(shape) > self.axis:
                parts[self.path, False] = "array", dtype, (*shape[: self.axis], None, *shape[self.axis + 1 :])


@dataclass(frozen=True)
class OneLength(Step):
    """An array has one shape each time."""

    def apply(self, parts: Parts, miss: Miss) -> None:
        match parts.get((self.path, False)):
            case ("array", dtype, shape):
                parts[self.path, False] = "array", dtype, (None,) * len(shape)


@dataclass(frozen=True)
class AsArray(Step):
    """A Python number comes as a 0-d array."""

    dtype: Any = None
    is_closure: bool = False

    def apply(self, parts: Parts, miss: Miss) -> None:
        match parts.get((self.path, self.is_closure)):
            case ("number", value):
                parts[self.path, self.is_closure] = "array", self.dtype or np.asarray(value).dtype, ()


@dataclass(frozen=True)
class Cast(Step):
    """An array always has one dtype."""

    dtype: Any = None

    def apply(self, parts: Parts, miss: Miss) -> None:
        match parts.get((self.path, False)):
            case ("array", _, shape):
                parts[self.path, False] = "array", self.dtype, shape


@dataclass(frozen=True)
class Contiguous(Step):
    """An array always lies row by row."""

    def apply(self, parts: Parts, miss: Miss) -> None:
        if miss.misfit is not None and (miss.misfit.cause, miss.misfit.path) == (VariantCause.LAYOUT, self.path):
            parts.pop(("", True), None)


@dataclass(frozen=True)
class Hoist(Step):
    """The function is made once."""

    def apply(self, parts: Parts, miss: Miss) -> None:
        parts.pop(("", False), None)


@dataclass(frozen=True)
class PassArray(Step):
    """An array that a name outside gave, another one for each of the functions made, comes as an argument."""

    def apply(self, parts: Parts, miss: Miss) -> None:
        parts.pop((f"array {self.path}", True), None)


@dataclass(frozen=True)
class KeepMore(Step):
    """More traces are kept."""

    def apply(self, parts: Parts, miss: Miss) -> None:
        pass


def fixes(misses: Sequence[Miss], kind: str = "function") -> list[Fix]:
    """The changes that would have left fewer traces, the cheapest first, and of those the one that leaves fewest."""
    calls = list(misses)[-MOST_CALLS:]
    if len(calls) < 2:
        return []
    steps = _steps(calls, kind)
    found: list[Fix] = []
    done: list[tuple[frozenset[Step], int]] = []
    for chosen in _choices(steps, calls):
        groups = _replay(calls, chosen)
        signature = _signature_code(chosen, calls, len(groups)) if any(isinstance(step, Dynamic) for step in chosen) else ""
        if signature == REDUCE:
            if any(isinstance(step, Dynamic) and step not in chosen for step in steps):
                continue  # it leaves every axis open that differs
            groups = _generalised(calls, chosen)
        after = len(groups)
        if after >= len(calls) or any(less <= chosen and count <= after for less, count in done):
            continue
        if not all(_may_merge(group, chosen) for group in groups):
            continue
        done.append((chosen, after))
        found.append(_fix(chosen, calls, groups, signature))
    return sorted(found, key=lambda fix: (fix.cost, fix.after, -fix.seconds))


def _parts(miss: Miss) -> Parts:
    """The key of a call as it was, part by part; ("", False) is the function object, ("", True) what the leaves don't tell."""
    if miss.parts is not None:
        return dict(miss.parts)
    parts: Parts = {(leaf.path, leaf.kind == "aliasing"): _part(leaf) for leaf in miss.leaves}
    parts.update(((f"closure {leaf.path}", True), _part(leaf)) for leaf in miss.closure)
    parts.update(((f"array {name}", True), ("which", id(known))) for name, known in miss.captured.items())
    parts["", False] = "function", miss.owner
    parts["options", True] = "options", miss.options, miss.definition.code
    if miss.misfit is not None:
        parts["", True] = miss.misfit.cause, miss.misfit.path, miss.misfit.after
    miss.parts = parts
    return dict(parts)


def _part(leaf: Leaf) -> Any:
    if leaf.kind == "array":
        return "array", leaf.dtype, leaf.shape
    if leaf.kind == "value" and type(leaf.value) in (int, float, complex):
        return "number", leaf.value
    return leaf.kind, leaf.identity


def _replay(calls: Sequence[Miss], chosen: Iterable[Step]) -> list[list[Miss]]:
    """The calls that each trace would have served."""
    limit = 10**9 if any(isinstance(step, KeepMore) for step in chosen) else config.max_traces
    kept: OrderedDict[Any, list[Miss]] = OrderedDict()
    groups: list[list[Miss]] = []
    for miss in calls:
        parts = _parts(miss)
        for step in chosen:
            step.apply(parts, miss)
        key = frozenset((place, repr(part) if part[0] == "number" else part) for place, part in parts.items())
        group = kept.get(key)
        if group is None:
            group = kept[key] = []
            groups.append(group)
            if len(kept) > limit:
                kept.popitem(last=False)
        kept.move_to_end(key)
        group.append(miss)
    return groups


def _generalised(calls: Sequence[Miss], chosen: Iterable[Step]) -> list[list[Miss]]:
    """The calls that each trace would have served with reduce_retracing=True: the first is exact, a later one is as wide as
    it and those before it have in common."""
    types: list[Parts] = []
    groups: list[list[Miss]] = []
    others = [step for step in chosen if not isinstance(step, Dynamic)]
    for miss in calls:
        parts = _parts(miss)
        for step in others:
            step.apply(parts, miss)
        at = next((n for n, known in enumerate(types) if _contains(known, parts)), None)
        if at is None:
            for known in types:
                parts = _common(parts, known) or parts
            at = len(types)
            types.append(parts)
            groups.append([])
        groups[at].append(miss)
    return groups


def _contains(known: Parts, parts: Parts) -> bool:
    """A trace of this type serves a call of that type."""
    return known.keys() == parts.keys() and all(_part_contains(part, parts[place]) for place, part in known.items())


def _part_contains(known: Any, part: Any) -> bool:
    match known, part:
        case ("array", dtype, shape), ("array", other, sizes):
            if dtype != other or (shape is not None and len(shape) != len(sizes)):
                return False
            return shape is None or all(a is None or a == b for a, b in zip(shape, sizes, strict=True))
    return bool(repr(known) == repr(part) if known[0] == "number" else known == part)


def _common(parts: Parts, known: Parts) -> Parts | None:
    """The narrowest type that both are of; None when there is none."""
    if parts.keys() != known.keys():
        return None
    result: Parts = {}
    for place, part in parts.items():
        match part, known[place]:
            case ("array", dtype, shape), ("array", other, sizes) if dtype == other:
                same_rank = shape is not None and sizes is not None and len(shape) == len(sizes)
                shape = tuple(a if a == b else None for a, b in zip(shape, sizes, strict=True)) if same_rank else None
                result[place] = "array", dtype, shape
            case _:
                if not _part_contains(part, known[place]):
                    return None
                result[place] = part
    return result


def _may_merge(group: Sequence[Miss], chosen: Iterable[Step]) -> bool:
    """What one trace would stand for did the same: but for a number, where numbers become arrays."""
    kinds = {type(step) for step in chosen}
    if not kinds & {AsArray, Hoist}:
        return True
    programs: dict[Any, set[int]] = {}
    for miss in group:
        shapes = tuple((leaf.path, leaf.kind, *((leaf.dtype, leaf.shape) if leaf.shape else ())) for leaf in miss.leaves)
        programs.setdefault(shapes, set()).add(miss.pattern if AsArray in kinds else miss.program)
    return all(len(found) == 1 for found in programs.values())


def _fix(chosen: frozenset[Step], calls: Sequence[Miss], groups: Sequence[Sequence[Miss]], signature: str) -> Fix:
    steps = sorted(chosen, key=lambda step: (step.cost, step.kind, step.path, getattr(step, "axis", 0)))
    saving = [step for step in steps if not isinstance(step, Dynamic)]
    seconds = sum(miss.seconds for group in (_replay(calls, saving) if saving else []) for miss in group[1:])
    by_kind = [[step for step in steps if step.kind == kind] for kind in dict.fromkeys(step.kind for step in steps)]
    cost = sum(1 if same[0].kind == "dynamic" else sum(step.cost for step in same) for same in by_kind)
    what = " and ".join(_together(same) for same in by_kind)
    code = _joined_code(saving)
    if signature and (code or not saving):
        code = f"{code}; {signature}" if code else signature
    return Fix(
        what, code, len(calls), len(groups), seconds, cost, _named(steps), frozenset(step.kind for step in steps),
        frozenset((miss.owner, miss.number) for group in groups for miss in group[1:]), note=_computed_otherwise(steps, groups),
    )  # fmt: skip


def _computed_otherwise(steps: Sequence[Step], groups: Sequence[Sequence[Miss]]) -> str:
    """A power by a Python number may be a root or a square; by an array it is one operation for every exponent."""
    paths = {step.path.removeprefix("closure ") for step in steps if isinstance(step, AsArray)}
    for group in groups if paths else ():
        said = [
            (" and ".join(leaf.text for leaf in (*miss.leaves, *miss.closure) if leaf.path in paths), miss.powers)
            for miss in group
            if miss.passes_number(paths)
        ]
        if told := told_powers(said):
            return told
    return ""


def _named(steps: Sequence[Step]) -> frozenset[str]:
    return frozenset(step.path.removeprefix("closure ") for step in steps)


def _together(steps: Sequence[Step]) -> str:
    """Steps of one kind as a phrase."""
    if len(steps) == 1:
        return steps[0].what
    names = [f"`{step.path}`" for step in steps]
    if isinstance(steps[0], Dynamic):
        of_path: dict[str, list[int]] = {}
        for step in steps:
            of_path.setdefault(step.path, []).append(getattr(step, "axis", 0))
        return f"make {listed([f'{_axes(axes)} of `{path}`' for path, axes in of_path.items()])} dynamic"
    if isinstance(steps[0], AsArray) and not steps[0].is_closure:
        return f"pass {listed(names)} as arrays"
    return " and ".join(step.what for step in steps)


def _axes(axes: Sequence[int]) -> str:
    return f"axis {axes[0]}" if len(axes) == 1 else f"axes {listed([str(axis) for axis in axes])}"


def _joined_code(steps: Sequence[Step]) -> str:
    """Code of all the steps, "" when one is a matter for a sentence."""
    codes = [step.code for step in steps]
    return "; ".join(codes) if all(codes) else ""


def _signature_code(steps: Iterable[Step], calls: Sequence[Miss], after: int) -> str:
    """The argument of `function` that leaves these axes open: specs where one trace serves all."""
    leaves = calls[-1].leaves
    open_ = {(step.path, getattr(step, "axis", -1)) for step in steps}
    if after > 1 or any(leaf.kind != "array" or not leaf.path.isidentifier() or leaf.origin for leaf in leaves):
        return REDUCE
    specs = []
    for leaf in leaves:
        sizes = ["None" if (leaf.path, axis) in open_ else str(n) for axis, n in enumerate(leaf.shape)]
        specs.append(f"jl.TensorSpec([{', '.join(sizes)}], np.{leaf.dtype})")
    return f"input_signature=[{', '.join(specs)}]"


def _choices(steps: Sequence[Step], calls: Sequence[Miss]) -> list[frozenset[Step]]:
    """Sets of steps to try, the smaller first: each alone, those of one kind, those of one argument, pairs, all."""
    if not steps:
        return []
    groups: list[frozenset[Step]] = [frozenset([step]) for step in steps]
    for of in (attrgetter("kind"), attrgetter("path")):
        groups += [frozenset(step for step in steps if of(step) == name) for name in dict.fromkeys(map(of, steps))]
    pairs = [a | b for a, b in combinations(dict.fromkeys(groups), 2)] if len(steps) <= MOST_STEPS else []
    every = dict.fromkeys([*groups, *pairs, frozenset(steps)])
    return sorted(every, key=len)


def _steps(calls: Sequence[Miss], kind: str) -> list[Step]:
    """What differs between calls and can be changed."""
    leaves: dict[str, list[Leaf]] = {}
    for miss in calls:
        for leaf in miss.leaves:
            if leaf.kind != "aliasing":
                leaves.setdefault(leaf.path, []).append(leaf)
    steps: list[Step] = []
    for path, found in leaves.items():
        arrays = [leaf for leaf in found if leaf.kind == "array"]
        numbers = [leaf for leaf in found if _part(leaf)[0] == "number"]
        dtypes = list(dict.fromkeys(leaf.dtype for leaf in arrays))
        if len(dtypes) > 1:
            code = f"{path} = {path}.astype(np.{dtypes[0]})" 
            steps.append(Cast("cast", path, f"cast `{path}` to {dtypes[0]}", code, 1, dtypes[0]))
        if kind == "function":
            steps += _dynamic(path, arrays)
        elif len({leaf.shape for leaf in arrays}) >= MANY_SHAPES:
            what = f"give `{path}` one length each time, and leave what is not needed of it unused"
            steps.append(OneLength("one_length", path, what, "", 2))
        if numbers and len({leaf.identity for leaf in found}) > 1:
            steps.append(_as_array(path, numbers, arrays, calls))
    for name in {miss.misfit.path: None for miss in calls if miss.misfit and miss.misfit.cause == VariantCause.LAYOUT}:
        code = f"{name} = np.ascontiguousarray({name})"
        steps.append(Contiguous("contiguous", name, f"pass contiguous copies of `{name}`", code))
    if any(Cause.CACHE_EVICTED in miss.causes for miss in calls if miss.found is not None):
        wanted = 1 << len(calls).bit_length()
        wanted = max(wanted, 2 * config.max_traces)
        steps.append(KeepMore("keep", "", "keep more traces", f"jl.config.max_traces = {wanted}"))
    return [*_of_closure(calls), *steps]


def _dynamic(path: str, arrays: Sequence[Leaf]) -> list[Step]:
    found: list[Step] = []
    for rank in dict.fromkeys(len(leaf.shape) for leaf in arrays):
        shapes = [leaf.shape for leaf in arrays if len(leaf.shape) == rank]
        for axis in range(rank):
            if len({shape[axis] for shape in shapes}) > 1 and all(step.axis != axis for step in found):  # type: ignore[attr-defined]
                found.append(Dynamic("dynamic", path, f"make axis {axis} of `{path}` dynamic", "", 1, axis))
    return found


def _as_array(path: str, numbers: Sequence[Leaf], arrays: Sequence[Leaf], calls: Sequence[Miss]) -> Step:
    dtype = arrays[0].dtype if arrays else _common_dtype(numbers, calls)
    shown = f", np.{dtype}" if dtype is not None else ""
    origin = numbers[0].origin
    if origin:
        return AsArray("bind", path, f"bind the {origin} `{path}` as an argument that is an array", "", 2, dtype)
    if "." in path:  # a field cannot be assigned
        return AsArray("array", path, f"pass `{path}` as an array", "", 1, dtype)
    return AsArray("array", path, f"pass `{path}` as an array", f"{path} = np.asarray({path}{shown})", 1, dtype)


def _common_dtype(numbers: Sequence[Leaf], calls: Sequence[Miss]) -> Any:
    """The dtype that the arrays of the calls share, when the numbers fit in it: results keep the dtype they have."""
    dtypes = {leaf.dtype for miss in calls for leaf in miss.leaves if leaf.kind == "array" and leaf.shape}
    dtype = dtypes.pop() if len(dtypes) == 1 else None
    if dtype is None:
        return None
    kinds = {int: "iufc", float: "fc", complex: "c"}
    return dtype if all(dtype.kind in kinds[type(leaf.value)] for leaf in numbers) else None


def _of_closure(calls: Sequence[Miss]) -> list[Step]:
    """What helps when a function is made again and again. What it computes may depend on more than arguments then."""
    name = calls[-1].function
    if len({miss.owner for miss in calls}) < 2:
        return []
    steps: list[Step] = [Hoist("hoist", "", f"define `{name}` once, before the loop", "", 2)]
    values: dict[str, list[Leaf]] = {}
    for miss in calls:
        for leaf in miss.closure:
            values.setdefault(leaf.path, []).append(leaf)
    for path, found in values.items():
        if len({leaf.identity for leaf in found}) > 1 and all(_part(leaf)[0] == "number" for leaf in found):
            dtype = _common_dtype(found, calls)
            what = f"pass `{path}` to it as an argument that is an array"
            steps.append(AsArray("pass", f"closure {path}", what, "", 2, dtype, True))
    for array in dict.fromkeys(array for miss in calls for array in miss.captured):
        if len({id(miss.captured.get(array)) for miss in calls}) > 1:
            steps.append(PassArray("pass", array, f"pass `{array}` to it as an argument", "", 2))
    return steps

"""Statements that only give something out: what of them is captured, and what Python does later, as it was written.

before: print(f"{x.sum():.2f}", end="")
after:  __jl_given__ = __jl__.gives_out("print", ("print",), (__jl__.name(print, "print"),), None, None)
        if __jl_given__ is not None:
            def __jl_effect__(__jl_0): print(f"{__jl_0:.2f}", end="")
            __jl__.put_off(__jl_given__, __jl_effect__, x.sum())    # captured
        else:
            ...                                                     # as any statement

What stands for a value in the later part is a parameter of it. Python evaluates such values one after the other, so a text may
be made of some of them later only where nothing behind it could change what it shows.
"""

from __future__ import annotations

import ast
import builtins
import copy
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from jitlab.support import trees
from jitlab.support.lazy_dataclass import dataclass

from .flow_rewrite import EFFECT, GIVEN, function_node, parameters, placed

#: What stands for the container that gets something, or the object.
RECEIVER = "__jl_receiver__"
#: Methods of containers that only take what they are given, with the number of their arguments; and how many of those, from the
#: first one on, are looked up.
TAKING = {
    "append": 1, "add": 1, "insert": 2, "extend": 1, "update": 1, "setdefault": 2, "discard": 1, "clear": 0, "appendleft": 1,
}  # fmt: skip
_LOOKED_UP = {"add": 1, "discard": 1, "setdefault": 1}
_TEXTS = frozenset({"str", "repr", "format"})
_OPTIONS = frozenset({"sep", "end", "flush"})
_NEVER = (
    ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom, ast.Starred, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp,
    ast.GeneratorExp,
)  # fmt: skip


@dataclass
class Giving:
    """A statement in its two parts. `kind`: "print", "attribute", "item", or the method's name. `root`: the name of the
    receiver, and `attribute` of it that is it. `later`: the statement over names of `values`, in order."""

    kind: str
    builtins: tuple[str, ...]
    root: ast.Name | None
    attribute: str | None
    keys: tuple[Any, ...]  # by which the receiver is found in a dict or list, one in the other
    values: list[ast.expr]
    later: ast.stmt
    is_text: bool  # a text is made of values
    hashed: tuple[int, ...] = ()  # which of the values are keys
    is_filled: bool = False  # the items of its value are given
    own: OwnList | None = None  # it appends to a list of which `own_lists` knows
    slot: Any = None  # of an "item" and a step: the key, where that is a constant, in a tuple
    step: str = ""  # what has to stand there already, or nothing: "numbers", "list", "set"
    times: int = 1  # how often the receiver is read by its name
    rebinds: bool = False  # `items += [x]` also stores what is there already


class Told(NamedTuple):
    """What converted code says of such a statement: as Giving has it."""

    kind: str
    attribute: str | None
    keys: tuple[Any, ...]
    builtins: tuple[str, ...]
    is_text: bool
    own: tuple[bool, bool] | OwnList | None
    hashed: tuple[int, ...]
    is_filled: bool
    slot: tuple[Any, ...] | None
    step: str
    rebinds: bool


class Augmented(ast.expr):
    """`loaded op= operand` as a value: what is stored. `given`: the name of what puts the statement off."""

    _fields = ("loaded", "operand")

    def __init__(self, op: str, loaded: ast.expr, operand: ast.expr) -> None:
        super().__init__()
        self.op, self.loaded, self.operand = op, loaded, operand


def giving(node: ast.stmt) -> Giving | None:
    """The two parts of a statement that only gives something out; None for any other."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        call = node.value
        if isinstance(call.func, ast.Name) and call.func.id == "print":
            return _printing(node, call)
        if isinstance(call.func, ast.Attribute) and _takes(call.func.attr, call):
            return _taking(node, call, call.func)
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        return _storing(node, node.targets[0])
    if isinstance(node, ast.AugAssign):
        if adds_items(node):
            return _adding_items(node)
        if isinstance(node.target, ast.Attribute):
            return _augmenting(node, node.target)
        if isinstance(node.target, ast.Subscript):
            return _stepping(node, node.target)
    return None


def adds_items(node: ast.AST) -> bool:
    """`items += [x, y]`?"""
    return isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add) and isinstance(node.value, ast.List)


def _printing(node: ast.Expr, call: ast.Call) -> Giving | None:
    if any(keyword.arg not in _OPTIONS for keyword in call.keywords):
        return None
    parts = _Parts({"print"})
    args = [parts.of(arg) for arg in call.args]
    keywords = [ast.copy_location(ast.keyword(k.arg, parts.of(k.value)), k) for k in call.keywords]
    later = ast.copy_location(ast.Expr(ast.copy_location(ast.Call(call.func, args, keywords), call)), node)
    return parts.giving("print", None, later, is_text=True)


def _takes(name: str, call: ast.Call) -> bool:
    if name == "update" and call.keywords:
        return not call.args and all(keyword.arg for keyword in call.keywords)
    return TAKING.get(name) == len(call.args) and not call.keywords


def _taking(node: ast.Expr, call: ast.Call, function: ast.Attribute) -> Giving | None:
    parts, args, name = _Parts(), list[ast.expr](), function.attr
    found, step, slot = _receiver(function.value), "", None
    if found is None and isinstance(function.value, ast.Call):
        if (chained := _found_or_made(function.value, name, parts)) is None:
            return None
        found, step, slot = chained
    if found is None:
        return None
    ends = [len(parts.values)]
    for arg in call.args:
        args.append(parts.items(arg) if name in ("extend", "update") else parts.of(arg))
        ends.append(len(parts.values))
    keywords = [ast.copy_location(ast.keyword(k.arg, parts.of(k.value)), k) for k in call.keywords]
    func = ast.copy_location(ast.Attribute(found[3], name, ast.Load()), function)
    later = ast.copy_location(ast.Expr(ast.copy_location(ast.Call(func, args, keywords), call)), node)
    made = parts.giving("setdefault" if step else name, found, later)
    if made is not None:
        made.hashed = (*range(ends[0 if step else _LOOKED_UP.get(name, 0)]),)
        made.step, made.slot = step, slot
    return made


def _found_or_made(call: ast.Call, name: str, parts: _Parts) -> tuple[_Found, str, Any] | None:
    """The receiver of `table.setdefault(key, []).append(x)`, with what stands under the key, and that as a slot."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "setdefault" or len(call.args) != 2 or call.keywords:
        return None
    found, (key, first) = _receiver(call.func.value), call.args
    kind = ""
    if isinstance(first, ast.List) and not first.elts and name in ("append", "extend", "insert"):
        kind = "list"
    elif isinstance(first, ast.Call) and isinstance(first.func, ast.Name) and first.func.id == "set" and name == "add":
        kind = "" if first.args or first.keywords else "set"
        parts.builtins.add("set")
    if found is None or not kind:
        return None
    func = ast.copy_location(ast.Attribute(found[3], "setdefault", ast.Load()), call.func)
    there = ast.copy_location(ast.Call(func, [parts.of(key), first], []), call)
    return (*found[:3], there), kind, _slot(key)


def _adding_items(node: ast.AugAssign) -> Giving | None:
    """`items += [x]`: the list is the one that it was."""
    found, parts = _receiver(node.target), _Parts()
    if found is None:
        return None
    place: Any = copy.copy(found[3])
    place.ctx = ast.Store()
    later = ast.copy_location(ast.AugAssign(place, node.op, parts.items(node.value)), node)
    made = parts.giving("append" if len(node.value.elts) == 1 else "extend", found, later)  # type: ignore[attr-defined]
    if made is not None:
        made.times = 0 if isinstance(node.target, ast.Name) else 1
        made.rebinds = True
    return made


def _stepping(node: ast.AugAssign, target: ast.Subscript) -> Giving | None:
    """`table[key] += v`: what a number there becomes."""
    found, parts = _receiver(target.value), _Parts()
    if found is None or _has(target.slice, ast.Slice):
        return None
    key = parts.of(target.slice)
    keys = len(parts.values)
    place = ast.copy_location(ast.Subscript(found[3], key, ast.Store()), target)
    later = ast.copy_location(ast.AugAssign(place, node.op, parts.of(node.value)), node)
    made = parts.giving("item", found, later)
    if made is not None:
        made.hashed, made.slot, made.step = (*range(keys),), _slot(target.slice), "numbers"
    return made


def _slot(key: ast.expr) -> tuple[Any, ...] | None:
    return (key.value,) if isinstance(key, ast.Constant) else None


def _storing(node: ast.Assign, target: ast.expr) -> Giving | None:
    if isinstance(target, ast.Subscript) and (stepped := _step_of(node, target)) is not None:
        return stepped
    parts, made = _Parts(), ast.copy_location(ast.Name(RECEIVER, ast.Load()), target)
    is_attribute = isinstance(target, ast.Attribute)
    value = parts.value(node.value) if is_attribute and not _is_text(node.value) else parts.of(node.value)
    keys_from = len(parts.values)
    found: _Found
    if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
        found = (target.value, None, (), made)
        place: ast.expr = ast.copy_location(ast.Attribute(made, target.attr, ast.Store()), target)
        kind = "attribute"
    elif isinstance(target, ast.Subscript) and not _has(target.slice, ast.Slice):
        receiver = _receiver(target.value)
        if receiver is None:
            return None
        found, kind = receiver, "item"
        place = ast.copy_location(ast.Subscript(found[3], parts.of(target.slice), ast.Store()), target)
    else:
        return None
    made_of = parts.giving(kind, found, ast.copy_location(ast.Assign([place], value), node))
    if made_of is not None and isinstance(target, ast.Subscript):
        made_of.hashed, made_of.slot = (*range(keys_from, len(parts.values)),), _slot(target.slice)
    return made_of


def _step_of(node: ast.Assign, target: ast.Subscript) -> Giving | None:
    """`table[key] = table[key] + v`, also of `table.get(key, 0)`, and `max(table[key], v)`: what a number there becomes."""
    found, parts = _receiver(target.value), _Parts()
    if found is None or _has(target.slice, ast.Slice):
        return None
    match node.value:
        case ast.BinOp(left=one, right=other):
            operands = [one, other]
        case ast.Call(func=ast.Name(id=("max" | "min") as name), args=[one, other], keywords=[]):
            operands = [one, other]
            parts.builtins.add(name)
        case _:
            return None
    keys = [_read_key(operand, target) for operand in operands]
    if (keys[0] is None) is (keys[1] is None) or any(key is not None and _slot(key) != _slot(target.slice) for key in keys):
        return None
    hashed: list[int] = []
    made: list[ast.expr] = []
    for operand, key in zip(operands, keys, strict=True):
        made.append(parts.of(operand) if key is None else _read_there(operand, key, found, parts, hashed))
    at = len(parts.values)
    place = ast.copy_location(ast.Subscript(found[3], parts.of(target.slice), ast.Store()), target)
    if isinstance(node.value, ast.BinOp):
        value: ast.expr = ast.BinOp(made[0], node.value.op, made[1])
    else:
        assert isinstance(node.value, ast.Call)
        value = ast.Call(node.value.func, made, [])
    later = ast.copy_location(ast.Assign([place], ast.copy_location(value, node.value)), node)
    giving_of = parts.giving("item", found, later)
    if giving_of is not None:
        giving_of.hashed = *hashed, *range(at, len(parts.values))
        giving_of.slot, giving_of.step, giving_of.times = _slot(target.slice), "numbers", 2
    return giving_of


def _read_key(node: ast.expr, target: ast.Subscript) -> ast.expr | None:
    """The key of `table[key]` and `table.get(key, number)`, where `table` is the target's."""
    match node:
        case ast.Subscript(value=owner, slice=key):
            pass
        case ast.Call(func=ast.Attribute(value=owner, attr="get"), args=[key, ast.Constant(value=int() | float())]):
            if node.keywords:
                return None
        case _:
            return None
    return key if ast.dump(owner) == ast.dump(target.value) else None


def _read_there(node: ast.expr, key: ast.expr, found: _Found, parts: _Parts, hashed: list[int]) -> ast.expr:
    """The same, of the receiver. `hashed` gets which of the values are its key."""
    at = len(parts.values)
    made = parts.of(key)
    hashed += range(at, len(parts.values))
    if isinstance(node, ast.Subscript):
        return ast.copy_location(ast.Subscript(found[3], made, ast.Load()), node)
    assert isinstance(node, ast.Call)
    func = ast.copy_location(ast.Attribute(found[3], "get", ast.Load()), node.func)
    return ast.copy_location(ast.Call(func, [made, node.args[1]], []), node)


def _augmenting(node: ast.AugAssign, target: ast.Attribute) -> Giving | None:
    """`a.b op= v` stores what `a.b`, changed so, is."""
    if not isinstance(target.value, ast.Name):
        return None
    parts, loaded = _Parts(), copy.copy(target)
    loaded.ctx = ast.Load()
    stored = parts.value(ast.copy_location(Augmented(type(node.op).__name__, loaded, node.value), node))
    made = ast.copy_location(ast.Name(RECEIVER, ast.Load()), target)
    place = ast.copy_location(ast.Attribute(made, target.attr, ast.Store()), target)
    later = ast.copy_location(ast.Assign([place], stored), node)
    return parts.giving("attribute", (target.value, None, (), made), later)


def stores_of_values(node: ast.Assign) -> list[tuple[ast.expr, ast.expr]] | None:
    """The targets of `a.b, c = v, w`, each with its value, where one of them is an attribute; None for anything else."""
    (target, *others), value = node.targets, node.value
    if others or not isinstance(target, ast.Tuple) or not isinstance(value, ast.Tuple) or len(target.elts) != len(value.elts):
        return None
    if not all(isinstance(part, (ast.Name, ast.Attribute, ast.Subscript)) for part in target.elts):
        return None
    is_plain = not any(isinstance(part, ast.Starred) for part in value.elts)
    has_attribute = any(isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) for part in target.elts)
    return list(zip(target.elts, value.elts, strict=True)) if is_plain and has_attribute else None


#: The name of a receiver, an attribute, keys, and the expression over RECEIVER.
_Found = tuple[ast.Name, str | None, tuple[Any, ...], ast.expr]


def _receiver(node: ast.expr) -> _Found | None:
    """`a`, `a.b`, and both with subscripts that are constants."""
    if isinstance(node, ast.Subscript):
        key = node.slice.value if isinstance(node.slice, ast.Constant) else None
        found = _receiver(node.value)
        if found is None or type(key) not in (str, int):
            return None
        root, attribute, keys, owner = found
        return root, attribute, (*keys, key), ast.copy_location(ast.Subscript(owner, node.slice, ast.Load()), node)
    made = ast.copy_location(ast.Name(RECEIVER, ast.Load()), node)
    if isinstance(node, ast.Name):
        return node, None, (), made
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return node.value, node.attr, (), made
    return None


class _Parts:
    """Takes the values out of a statement that is done later."""

    def __init__(self, names: Collection[str] = ()) -> None:
        self.builtins = set(names)
        self.values: list[ast.expr] = []
        self.is_text = self.is_unfit = False
        self.is_filled = False  # what a value holds is given, not the value

    def giving(self, kind: str, found: _Found | None, later: ast.stmt, *, is_text: bool = False) -> Giving | None:
        if self.is_unfit or any(_has(value, *_NEVER) for value in self.values):
            return None
        root, attribute, keys, _ = found or (None, None, (), None)
        return Giving(
            kind, tuple(sorted(self.builtins)), root, attribute, keys, self.values, later, is_text or self.is_text,
            is_filled=self.is_filled,
        )  # fmt: skip

    def of(self, node: ast.expr) -> ast.expr:
        """The expression with names in the place of its values."""
        match node:
            case ast.Constant():
                return node
            case ast.Tuple() if not self.is_text:  # each time another one
                return ast.copy_location(ast.Tuple([self.of(item) for item in node.elts], ast.Load()), node)
            case ast.JoinedStr():
                self.is_text = True
                return ast.copy_location(ast.JoinedStr([self.of(part) for part in node.values]), node)
            case ast.FormattedValue():
                spec = None if node.format_spec is None else self.of(node.format_spec)
                return ast.copy_location(ast.FormattedValue(self.of(node.value), node.conversion, spec), node)
            case ast.Call(func=ast.Name(id=name), args=[*args], keywords=[]) if name in _TEXTS:
                self.is_text = True
                self.builtins.add(name)
                return ast.copy_location(ast.Call(node.func, [self.of(arg) for arg in args], []), node)
            case ast.Call(func=ast.Attribute(value=ast.Constant(value=str()), attr="format")):
                self.is_text = True
                keywords = [ast.copy_location(ast.keyword(k.arg, self.of(k.value)), k) for k in node.keywords]
                self.is_unfit |= any(keyword.arg is None for keyword in keywords)
                return ast.copy_location(ast.Call(node.func, [self.of(arg) for arg in node.args], keywords), node)
            case ast.BinOp(left=ast.Constant(value=str()), op=ast.Mod()):
                self.is_text = True
                right = node.right
                made = ast.Tuple([self.of(x) for x in right.elts], ast.Load()) if isinstance(right, ast.Tuple) else None
                right = self.of(right) if made is None else ast.copy_location(made, right)
                return ast.copy_location(ast.BinOp(node.left, node.op, right), node)
            case ast.BinOp(op=ast.Add()) if _is_text(node.left) or _is_text(node.right):
                return ast.copy_location(ast.BinOp(self.of(node.left), node.op, self.of(node.right)), node)
        self.is_unfit |= self.is_text and not _changes_nothing(node)
        return self.value(node)

    def items(self, node: ast.expr) -> ast.expr:
        """What gives its items: a list, tuple or dict that is written there is made later."""
        match node:
            case ast.List(elts=items) | ast.Tuple(elts=items):
                return ast.copy_location(ast.List([self.of(item) for item in items], ast.Load()), node)
            case ast.Dict() if all(isinstance(key, ast.Constant) for key in node.keys):
                return ast.copy_location(ast.Dict(node.keys, [self.of(value) for value in node.values]), node)
        self.is_filled = True
        return self.value(node)

    def value(self, node: ast.expr) -> ast.expr:
        """A value as a whole."""
        self.values.append(node)
        return ast.copy_location(ast.Name(f"__jl_{len(self.values) - 1}", ast.Load()), node)


def _is_text(node: ast.expr) -> bool:
    """Is it known to be a text?"""
    match node:
        case ast.Constant(value=str()) | ast.JoinedStr() | ast.BinOp(left=ast.Constant(value=str()), op=ast.Mod()):
            return True
        case ast.Call(func=ast.Name(id=name)):
            return name in _TEXTS
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str()), attr="format")):
            return True
        case ast.BinOp(op=ast.Add()):
            return _is_text(node.left) or _is_text(node.right)
    return False


def _changes_nothing(node: ast.expr) -> bool:
    """It calls builtins and functions of a module like `np.mean` alone: none of them changes what it is given."""
    for part in trees.walk(node):
        if isinstance(part, ast.Call):
            named = isinstance(part.func, ast.Name) and hasattr(builtins, part.func.id)
            if not named and not (isinstance(part.func, ast.Attribute) and part.func.attr in _LOOKING):
                return False
    return True


#: Functions and methods that change nothing of what they are given, by their names.
_LOOKING = frozenset({"mean", "sum", "std", "var", "min", "max", "item", "norm", "sqrt", "abs", "argmax", "argmin", "prod"})


def _has(node: ast.AST, *kinds: type[ast.AST]) -> bool:
    return any(isinstance(part, kinds) for part in trees.walk(node))


#: By the names of receivers that are only that: the keys by which each statement goes on from there, and what it does.
Received = Mapping[str, Sequence[tuple[tuple[Any, ...], str]]]


#: The names that a call passes to a function which only gives them something, and what that does with each.
PassedOn = Callable[[ast.Call], Iterable[tuple[str, Sequence[tuple[tuple[Any, ...], str]]]]]


def only_received(nodes: Sequence[ast.AST], passed_on: PassedOn = lambda call: ()) -> Received:
    """The names that are read in these statements as receivers alone: what stands under them only gets something."""
    reads: Counter[str] = Counter()
    uses_of: Counter[str] = Counter()
    received: dict[str, list[tuple[tuple[Any, ...], str]]] = {}
    for node in nodes:
        for part in trees.walk(node):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
                reads[part.id] += 1
            elif isinstance(part, (ast.Expr, ast.Assign, ast.AugAssign)):
                found = giving(part)
                is_container = found is not None and found.attribute is None and found.kind != "attribute"
                if found is not None and found.root is not None and is_container:
                    received.setdefault(found.root.id, []).append((found.keys, found.kind))
                    uses_of[found.root.id] += found.times
                elif isinstance(part, ast.AugAssign) and isinstance(part.target, ast.Name):
                    reads[part.target.id] += 1
            elif isinstance(part, ast.Call):
                for name, uses in passed_on(part):
                    received.setdefault(name, []).extend(uses)
                    uses_of[name] += 1
    return {name: uses for name, uses in received.items() if uses_of[name] == reads[name]}


#: What the names of lists are marked with where a function returns them or appends to them.
AS_IT_IS = "_jl_as_it_is"


class OwnList(NamedTuple):
    """What a function does with a list of its own, beside appending to it."""

    is_returned: bool
    is_read: bool


def own_lists(function: ast.FunctionDef, made: Mapping[str, ast.expr]) -> dict[str, OwnList]:
    """Those local names that stand for a list or dict which the function makes (as `made` says), gives something to, returns,
    and (a list) looks into where no loop around appends to it: nothing else reads or binds them, so that nobody can tell when
    it gets something. `items += [x]` of such a list becomes the call of its method."""
    stores: Counter[str] = Counter(argument.arg for argument in ast.walk(function.args) if isinstance(argument, ast.arg))
    reads: Counter[str] = Counter()
    uses: Counter[str] = Counter()
    given: dict[str, list[Giving]] = {}
    returned: set[str] = set()
    looked_into: set[str] = set()
    for part in [part for statement in function.body for part in trees.walk(statement)]:
        if isinstance(part, ast.Name):
            (reads if isinstance(part.ctx, ast.Load) else stores)[part.id] += 1
        elif isinstance(part, (*_SCOPES, ast.Global, ast.Nonlocal, ast.ExceptHandler, ast.alias, ast.MatchAs, ast.MatchStar)):
            stores.update({name: 2 for name in _names_in(part)})  # what others bind or read is nobody's own
        elif isinstance(part, (ast.For, ast.While)):
            within = list(trees.walk(part))
            filled = {root.id for x in within if (root := _filled(x)) is not None}
            both = {name for x in within for name in _looked_into(x) if name in filled}
            stores.update(dict.fromkeys(both, 2))
        elif isinstance(part, ast.Return) and part.value is not None:
            names = [item for item in _elements(part.value) if isinstance(item, ast.Name)]
            for item in names:
                setattr(item, AS_IT_IS, True)
            uses.update(item.id for item in names)
            returned.update(item.id for item in names)
        elif (root := _filled(part)) is not None:
            found = giving(part)  # type: ignore[arg-type]
            assert found is not None
            setattr(root, AS_IT_IS, True)
            stores[root.id] -= isinstance(root.ctx, ast.Store)
            uses[root.id] += found.times
            given.setdefault(root.id, []).append(found)
        else:
            names_in = _looked_into(part)
            uses.update(names_in)
            looked_into.update(names_in)
    own = {
        name: OwnList(name in returned, name in looked_into)
        for name, display in made.items()
        if stores[name] == 1 and uses[name] == reads[name]
        and _is_only_filled(display, given.get(name, ()), name in returned, name in looked_into)
    }  # fmt: skip
    if any(found.rebinds for name in own for found in given.get(name, ())):
        _AsMethods(own).visit(function)
    return own


def _filled(node: ast.AST) -> ast.Name | None:
    """The container in `items.append(x)`, `table["a"].append(x)`, `table[k] = v`."""
    if not isinstance(node, (ast.Expr, ast.Assign, ast.AugAssign)):
        return None
    found = giving(node)
    return None if found is None or found.attribute or found.kind == "attribute" else found.root


def _is_only_filled(display: ast.expr, given: Sequence[Giving], is_returned: bool, is_read: bool) -> bool:
    """Do these statements give something to what the display makes, and to nothing that others may have?"""
    if is_read or not is_returned:
        return isinstance(display, ast.List) and all(map(_appends_value if is_read else _appends, given))
    if isinstance(display, ast.List):
        return all(not found.keys and not found.step for found in given)
    assert isinstance(display, ast.Dict)
    inner = {key.value: value for key, value in zip(display.keys, display.values, strict=True) if isinstance(key, ast.Constant)}
    steps = {found.step for found in given}
    if steps & {"list", "set"}:  # what stands there was made by such a statement
        return len(steps) == 1 and not display.keys and all(not found.keys for found in given)
    deep = {found.keys[0] for found in given if found.keys}
    if any(not isinstance(inner.get(key), ast.List) for key in deep) or any(len(found.keys) > 1 for found in given):
        return False
    over = [found for found in given if not found.keys]
    return not deep or all(found.kind == "item" and found.slot is not None and found.slot[0] not in deep for found in over)


def _appends(found: Giving) -> bool:
    return found.kind == "append" and not found.keys and not found.step


def _appends_value(found: Giving) -> bool:
    """Is it one value that is appended, and not what is made of several?"""
    call = found.later.value  # type: ignore[attr-defined]
    items = call.elts if isinstance(call, ast.List) else call.args
    return _appends(found) and isinstance(items[0], ast.Name)


class _AsMethods(ast.NodeTransformer):
    """`items += [x]` becomes `items.append(x)`, and `items += [x, y]` `items.extend([x, y])`: nothing is bound."""

    def __init__(self, names: Collection[str]) -> None:
        self.names = names

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        if not adds_items(node) or not isinstance(node.target, ast.Name) or node.target.id not in self.names:
            return node
        assert isinstance(node.value, ast.List)
        is_one = len(node.value.elts) == 1
        name = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
        setattr(name, AS_IT_IS, True)
        func = ast.Attribute(name, "append" if is_one else "extend", ast.Load())
        call = ast.Call(func, node.value.elts if is_one else [node.value], [])
        return placed(ast.Expr(call), node)


def _looked_into(node: ast.AST) -> list[str]:
    """The names of lists in `np.mean(items)`, `np.mean(items[-9:])`, `len(items)` and `items[-1]`."""
    if isinstance(node, ast.Subscript):
        return [node.value.id] if isinstance(node.value, ast.Name) and _is_number(node.slice) else []
    if not isinstance(node, ast.Call):
        return []
    if isinstance(node.func, ast.Name):
        if node.func.id not in _OF_ITEMS or len(node.args) != 1 or node.keywords:
            return []
    elif not (isinstance(node.func, ast.Attribute) and isinstance(node.func.value, (ast.Name, ast.Attribute))):
        return []
    parts = [part.value if isinstance(part, ast.Subscript) and _is_part(part.slice) else part for part in node.args]
    return [part.id for part in parts if isinstance(part, ast.Name)]


#: The builtins that may be asked of a list of numbers.
_OF_ITEMS = frozenset({"len", "sum", "min", "max"})


def _is_number(node: ast.expr | None) -> bool:
    node = node.operand if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else node
    return isinstance(node, ast.Constant) and type(node.value) is int


def _is_part(node: ast.expr) -> bool:
    """`a:b:c` of numbers?"""
    return isinstance(node, ast.Slice) and all(x is None or _is_number(x) for x in (node.lower, node.upper, node.step))


_SCOPES = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
)  # fmt: skip


def _names_in(node: ast.AST) -> set[str]:
    """All names and other words in it."""
    found: set[str] = set()
    for part in ast.walk(node):
        for _, value in ast.iter_fields(part):
            found.update(word for word in (value if isinstance(value, list) else [value]) if isinstance(word, str))
    return found


def _elements(node: ast.expr) -> list[ast.expr]:
    """What a tuple, list or dict that is written out holds; the expression itself where it is none."""
    if isinstance(node, (ast.Tuple, ast.List)):
        return [item for element in node.elts for item in _elements(element)]
    if isinstance(node, ast.Dict):
        return [item for element in node.values for item in _elements(element)]
    return [node]


def with_later(
    found: Giving, at: ast.stmt, hook: Callable[..., ast.Call], visited: Callable[[ast.expr], Any],
    root: Callable[[ast.Name], ast.expr], mangled: Callable[[str], str], otherwise: list[ast.stmt],
) -> list[ast.stmt]:  # fmt: skip
    """The statement, converted: put off where that may be, else as `otherwise` has it."""
    names = [ast.copy_location(ast.Name(name, ast.Load()), at) for name in found.builtins]
    loads = ast.Tuple([visited(name) for name in names], ast.Load())
    attribute = found.attribute and mangled(found.attribute)
    if found.kind == "attribute":
        assert isinstance(found.later, ast.Assign) and isinstance(found.later.targets[0], ast.Attribute)
        attribute = found.later.targets[0].attr = mangled(found.later.targets[0].attr)
    told = Told(
        found.kind, attribute, found.keys, found.builtins, found.is_text, found.own, found.hashed,
        found.is_filled, found.slot, found.step, found.rebinds,
    )  # fmt: skip
    what = ast.Constant(_plain(told))
    is_container = found.attribute is None and found.kind != "attribute"
    receiver = ast.Constant(None) if found.root is None else (root if is_container else visited)(found.root)
    asked = hook("gives_out", at, what, loads, receiver)
    given = [f"__jl_{n}" for n in range(len(found.values))]
    effect = function_node(EFFECT, parameters(RECEIVER, *given), [found.later])
    loaded = ast.Name(GIVEN, ast.Load())
    call = ast.Expr(hook("put_off", at, loaded, ast.Name(EFFECT, ast.Load()), *map(visited, found.values)))
    test = ast.Compare(ast.Name(GIVEN, ast.Load()), [ast.IsNot()], [ast.Constant(None)])
    made: list[ast.stmt] = [ast.Assign([ast.Name(GIVEN, ast.Store())], asked), ast.If(test, [effect, call], otherwise)]
    return [placed(statement, at) for statement in made]


def _plain(x: Any) -> Any:
    """Tuples of their own kind, as tuples that code may hold."""
    return tuple(map(_plain, x)) if isinstance(x, tuple) else x


__all__ = [
    "Giving", "OwnList", "Received", "Told", "adds_items", "giving", "only_received", "own_lists", "stores_of_values",
    "with_later",
]  # fmt: skip

"""What a piece gives out when it has run: what it prints, and puts into lists, dicts, sets and objects of the user's.

What stands in loops and branches is logged by the run (turns.py). Nobody can tell as long as nothing behind it reads the
receiver, runs unknown code, writes into an array that others have, draws a random number or takes long: where something does,
the piece ends before it. A run that raises has given out nothing, and Python does all of it in order.
"""

from __future__ import annotations

import math
import types
from collections.abc import Iterator, Sequence
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from jitlab.capture.control.blocks import Again
from jitlab.capture.control.purity import is_plain_key
from jitlab.capture.guards.changes import Leaf
from jitlab.capture.guards.gathering import held_by, holds, holds_only
from jitlab.capture.guards.leaves import LeafType, Mismatch, is_leaf, joined, leaf_type
from jitlab.capture.numpy_calls.host_fallback import effect_of
from jitlab.capture.numpy_calls.numpy_traits import a_kind
from jitlab.capture.positions import here
from jitlab.capture.rewrite.effect_statements import Told
from jitlab.capture.state import NOTHING_STORED
from jitlab.capture.tracers.arrays import Place
from jitlab.capture.tracers.number import Number
from jitlab.capture.tracers.tensor import Cell, Tensor
from jitlab.ir import Extent, Node, Source, Symbolic
from jitlab.ops.base import Elementwise
from jitlab.ops.control_flow import Loop
from jitlab.ops.host_operations import HostCall, Item
from jitlab.ops.leaf_operations import Parameter
from jitlab.ops.runtime_checks import Check
from jitlab.support.lazy_dataclass import dataclass

from .piece_traces import RECEIVERS, RECEIVING, EndPiece, Given, Namespace, Receiver, StoresOutside, under
from .trace import Build, Structure
from .turns import (
    Field,
    Made,
    Same,
    Together,
    Turns,
    Unlogged,
    at_root,
    blocks_of_turn,
    in_loop,
    is_field,
    is_handed_on,
    may_log,
    started_as,
)

if TYPE_CHECKING:
    from .pieces import CellCapture

#: What an attribute will hold: a text that is made later.
UNKNOWN: Any = type("Unknown", (), {})()
#: What is printed is not put off for longer.
MOST_NS = 100_000_000
#: What NumPy takes for an element of most operations; others may take so much for each pair of an element and a row.
_ELEMENT_NS, _OF_ROW_NS = 2, 2
#: What it takes to call a function of Python's from a loop, with the operations around it that are done one by one.
_HOST_NS = 20_000


@dataclass(eq=False)
class Effect:
    """Something that is given out: a function of values, the names that are assigned by then, and where it stands."""

    function: types.FunctionType
    values: tuple[Any, ...]
    names: Namespace
    kind: str
    source: Source | None


@dataclass
class Token:
    """A statement that may be put off. `receiver`: the container or object that gets something."""

    putting: PutOff
    kind: str
    is_text: bool
    receiver: Any = None
    attribute: str = ""
    hashed: tuple[int, ...] = ()  # which of the values are keys
    slot: tuple[Any, ...] | None = None  # the key under which something is put, where that is a constant
    step: str = ""  # what has to stand there
    is_filled: bool = False  # what the value holds is given
    is_own: bool = False  # the receiver is a list that the call makes, and gives or looks into: nobody can tell
    is_read: bool = False  # the call looks into it
    container: Any = None  # what gets something: the receiver, or what is found in it
    loaded: Any = None  # of `owner.name op= v`: what stood there

    @property
    def is_shown(self) -> bool:
        """Are the values looked at when they are given out, and not kept?"""
        return self.is_text or self.is_filled or self.kind == "print"

    @property
    def is_sure(self) -> bool:
        """It does not raise."""
        return not self.step and self.kind != "insert" and (self.kind != "item" or type(self.container) is dict)

    def put_off(self, effect: types.FunctionType, values: Sequence[Any], around: types.CodeType) -> None:
        self.putting.add(self, effect, values, around)


@dataclass
class PutOff:
    """What a recording has put off so far."""

    capture: CellCapture
    effects: list[Effect | Turns] = field(default_factory=list)
    changed: dict[int, Receiver] = field(default_factory=dict)  # by their ids, containers that got something
    stored: dict[tuple[int, str], Any] = field(default_factory=dict)  # by object and name, what attributes will hold
    owners: dict[int, Any] = field(default_factory=dict)  # those objects
    values_before: dict[int, Node] = field(default_factory=dict)  # by the ids of inputs, their values before the first
    given: list[tuple[Cell, Node]] = field(default_factory=list)  # arrays that were given, and what they held
    containers: list[tuple[Any, tuple[Any, ...]]] = field(default_factory=list)  # the program's own that were given, with items
    first_node: int = 0
    found: set[Any] = field(default_factory=set)  # what receivers were found by: attributes, containers that hold them, keys
    of_turns: dict[int, Any] = field(default_factory=dict)  # by their ids, what turns made and gave: nobody else may get it
    filled: dict[int, list[Any]] = field(default_factory=dict)  # by their ids, lists of the call's own that got something
    inside: dict[int, list[Any]] = field(default_factory=dict)  # those of them that nobody gets
    copied: dict[int, Cell] = field(default_factory=dict)  # by their ids, arrays that stand in lists as they were
    copied_from: int = 0  # where in the graph the first of these was
    is_seen: bool = False  # something is given out that somebody may look at
    #: By the ids of containers, what was put into them: under which constant key, what has to be there, and is it a number?
    puts: dict[int, list[tuple[tuple[Any, ...] | None, str, bool]]] = field(default_factory=dict)
    holders: dict[int, Receiver] = field(default_factory=dict)  # by their ids, dicts whose lists or sets got something
    field_reads: dict[int, Cell] = field(default_factory=dict)  # by their ids, what stands for arrays that attributes held
    nodes: dict[tuple[int, str], Node] = field(default_factory=dict)  # of numbers stored outside of all blocks
    #: By object and name, attributes that loops store and read, which a turn takes from the one before, and of which type they
    #: have to be. What is learnt of them stays when a body is traced again.
    carried: dict[tuple[int, str], LeafType | None] = field(default_factory=dict)

    def mark(self) -> Any:
        turns = self.effects[-1] if self.effects else None
        return (
            list(self.effects), dict(self.changed), dict(self.stored), dict(self.owners), dict(self.values_before),
            list(self.given), list(self.containers), self.first_node, set(self.found), dict(self.of_turns),
            dict(self.filled), dict(self.inside), dict(self.copied), self.copied_from, self.is_seen, dict(self.nodes),
            {number: list(puts) for number, puts in self.puts.items()}, dict(self.holders),
            turns.state() if isinstance(turns, Turns) else None,
        )  # fmt: skip

    def rollback(self, mark: Any) -> None:
        """Forget what was put off since `mark`; all of it where that was before the first."""
        (
            self.effects, self.changed, self.stored, self.owners, self.values_before, self.given, self.containers,
            self.first_node, self.found, self.of_turns, self.filled, self.inside, self.copied, self.copied_from, self.is_seen,
            self.nodes, self.puts, self.holders, state,
        ) = mark or ([], {}, {}, {}, {}, [], [], 0, set(), {}, {}, {}, {}, 0, False, {}, {}, {}, None)  # fmt: skip
        if state is not None:
            self.effects[-1].restore(state)

    # ---- may it be put off?
    def token(self, told: Told, receiver: Any) -> Token | None:
        if self.capture.blocks and not may_log(self.capture):
            return None
        if told.kind == "print":
            return Token(self, told.kind, told.is_text)
        if told.kind == "attribute":
            takes = told.attribute is not None and self._takes(receiver, told.attribute)
            return Token(self, told.kind, told.is_text, receiver, told.attribute or "") if takes else None
        if told.rebinds and told.attribute and not told.keys and not self._takes(receiver, told.attribute):
            return None
        first = receiver
        if not isinstance(receiver, Receiver):
            first = self._held(receiver, told.attribute) if told.attribute else None
        if first is None or (container := self._receives(first, told)) is None:
            return None
        if told.step and not self._steps(container, told):
            return None
        return Token(
            self, told.kind, told.is_text, first, hashed=told.hashed, is_filled=told.is_filled, slot=told.slot, step=told.step,
            container=container.value,
        )  # fmt: skip

    def of_own_list(self, told: Told, receiver: Any) -> Token | None:
        """The same for a list or dict that the call makes, and gives or looks into."""
        assert told.own is not None
        found, (is_returned, is_read) = under(receiver, told.keys), told.own
        if (self.capture.blocks and not may_log(self.capture)) or type(found) not in RECEIVERS[told.kind]:
            return None
        if told.step == "numbers" and not all(map(is_number, held_by(found, told.slot))):
            return None
        if not is_returned:
            self.inside[id(receiver)] = receiver
        return Token(
            self, told.kind, told.is_text, receiver, is_own=True, is_read=is_read, hashed=told.hashed, is_filled=told.is_filled,
            slot=told.slot, step=told.step, container=found,
        )  # fmt: skip

    def rows_of(self, x: list[Any]) -> list[Any]:
        """What a list of the call's own got, in order: values, and what turns appended (None where that is not known)."""
        found: list[Any] = []
        for effect in self.effects if id(x) in self.filled else ():
            if isinstance(effect, Turns):
                found += effect.rows_of(x)
            elif effect.values[0] is x:
                found.append(effect.values[1] if len(effect.values) == 2 else None)
        return found

    def _takes(self, owner: Any, name: str) -> bool:
        """A store under this name runs no code of anybody's, and is seen by who reads the attribute."""
        kind = type(owner)
        if isinstance(owner, (type, types.ModuleType, Tensor, Receiver, np.ndarray, np.generic)) or is_plain_key(owner):
            return False
        if id(owner) not in self.capture.places or getattr(kind, "__jitlab_variable__", False):
            return False
        if not isinstance(getattr(owner, "__dict__", None), dict) or not _looks_up_plainly(kind):
            return False
        found, sets = _in_class(kind, name), _in_class(kind, "__setattr__")
        stores_plainly = any(sets is _in_class(base, "__setattr__") for base in _PLAIN)
        return stores_plainly and (found is None or not hasattr(type(found), "__set__"))

    def _check_carried(self, owner: Any, name: str) -> None:
        """A turn that reads what the one before has stored takes it from there, where it is a number."""
        key, looked_at = (id(owner), name), self._looked_at()
        if key in self.carried or {key, (id(owner), "__dict__")}.isdisjoint(looked_at):
            return
        if key in looked_at:
            now = self.stored.get(key, NOTHING_STORED)
            now = getattr(owner, name, None) if now is NOTHING_STORED else now
            if is_number(now) or is_field(now) or type(now) is np.ndarray:
                self.carry(key)
        raise self._refusal("attribute", owner)

    def carry(self, key: tuple[int, str], kind: LeafType | None = None) -> None:
        """The outermost loop is traced again, which carries it."""
        self.carried[key] = kind
        raise Again(self.capture.tracers[0])

    def _store_field(self, owner: Any, name: str, value: Any) -> None:
        """A number, or in a loop an array, is stored under an attribute. Raises Unlogged where it cannot be carried."""
        key, field = (id(owner), name), self.stored.get((id(owner), name))
        mine = self._field_type(value)
        try:
            if not isinstance(field, Field):
                field = self._begun(owner, name, None if in_loop(self.capture) else mine)
            both = joined(field.kind, mine, kinds=True)
        except Mismatch:
            raise Unlogged from None
        if both != field.kind:
            if not mine.is_scalar:
                raise Unlogged
            if not in_loop(self.capture):
                raise Unlogged
            self.carry(key, both)
        field.write(value)

    def _begun(self, owner: Any, name: str, other: LeafType | None = None) -> Field:
        """What stands for an attribute in blocks from now on. `other`: of a value that it has to hold, too."""
        capture, key = self.capture, (id(owner), name)
        capture.effects.undo.append(partial(self.rollback, self.mark()))
        first = self.stored.get(key, NOTHING_STORED)
        if first is NOTHING_STORED:
            if not hasattr(owner, name):
                raise Unlogged
            first = capture.load_attribute(getattr(owner, name), owner, name)
        kind = self.carried.get(key) or self._field_type(first)
        made = Field(capture, first, self.nodes.get(key), kind if other is None else joined(kind, other, kinds=True))
        self.stored[key], self.owners[id(owner)] = made, owner
        return made

    def _field_type(self, x: Any) -> LeafType:
        """The type of what an attribute holds in blocks. Raises Unlogged."""
        if in_loop(self.capture) and is_field(x):
            return leaf_type(x)
        return number_type(x)

    def _read_field(self, key: tuple[int, str], field: Field) -> Any:
        """What an attribute holds. Of an array the values: it is nobody's to keep or to write into, unless it is the one that
        a loop stored last, behind it."""
        found = field.read()
        if field.kind.is_scalar:
            return found
        if not self.capture.blocks and self._is_stored_by_each_turn(*key):
            owner, name = self.owners[key[0]], key[1]
            self.effects.append(Effect(_storing(name), (owner, found), dict(self.capture.assigned), "attribute", None))
            self.stored[key] = found
            return found
        self.field_reads[id(found._cell)] = found._cell
        return found

    def _is_stored_by_each_turn(self, number: int, name: str) -> bool:
        """Has each turn of the loop that ended last stored something under the attribute?"""
        turns = self.effects[-1] if self.effects else None
        if not isinstance(turns, Turns) or not turns.goes_on():
            return False
        logs = [
            log for log in turns.logs for function, given, kind, _ in log.given
            if kind == "attribute" and name in function.__code__.co_names
            and isinstance(given[0], Same) and id(given[0].value) == number
        ]  # fmt: skip
        return bool(logs) and all(log.is_full and type(log.capacity) is int and log.capacity > 0 for log in logs)

    def is_of_field(self, x: Any) -> bool:
        """Is it, or may it be, an array that an attribute held in a loop?"""
        if not self.field_reads or not isinstance(x, (Tensor, Cell)):
            return False
        cell = x._cell if isinstance(x, Tensor) else x
        whole = cell.parts_of() if cell.parts_of is not None else None
        return cell.memory is not None or any(id(found) in self.field_reads for found in (cell, whole))

    def _looked_at(self) -> set[Any]:
        """Attributes that were read, or hold what got something, and containers that hold what did."""
        return {*self.capture.found, *self.found}

    def _held(self, owner: Any, name: str) -> Receiver | None:
        """The container that is an attribute of an object."""
        place = self.capture.places.get(id(owner))
        fields = getattr(owner, "__dict__", None)
        if place is None or type(fields) is not dict or name not in fields or (id(owner), name) in self.stored:
            return None
        if not _looks_up_plainly(type(owner)) or _in_class(type(owner), name) is not None:
            return None
        value = fields[name]
        if type(value) not in RECEIVING:
            return None
        self.found.add((id(owner), name))
        return Receiver(value, Place(f"{place.code}.{name}", lambda: value, "attribute"), f"{type(owner).__name__}.{name}")

    def _receives(self, first: Receiver, told: Told) -> Receiver | None:
        """A container that is found by keys, one in the other, if it may get something; what it is becomes guards."""
        found, levels = first, [first]
        for key in told.keys:
            value, is_dict = found.value, type(found.value) is dict
            is_there = key in value if is_dict else type(value) is list and _is_index(key, value)
            if self._may_replace(value, key) or not is_there:
                return None
            place = found.place.item(key, self.capture.constants.text(key))
            found = Receiver(value[key], place, f"{found.text}[{key!r}]")
            levels.append(found)
        if any(type(level.value) not in RECEIVING or self._is_read(level.value) for level in levels):
            return None
        if type(found.value) not in RECEIVERS[told.kind]:
            return None
        if in_loop(self.capture) and id(found.value) in self.found:  # the next turn finds other containers in it
            if told.slot is None or (id(found.value), told.slot) in self.found:
                return None
        self.found.update(id(level.value) for level in levels[:-1])
        self.found.update((id(level.value), (key,)) for level, key in zip(levels, told.keys, strict=False))
        for n, level in enumerate(levels):
            self.capture.received_under((id(level.value), f"receiver {n} {level.place.code}"), level)
        self.capture.keep.append(found.value)
        self.changed[id(found.value)] = found
        return found

    def _may_replace(self, container: Any, key: Any) -> bool:
        """May something else stand under this key, by what was put into the container?"""
        puts = self.puts.get(id(container), [(None, "", False)])
        return id(container) in self.changed and any(slot is None or slot[0] == key for slot, _, _ in puts)

    def _steps(self, found: Receiver, told: Told) -> bool:
        """What stands in a container, or under the constant key, is such that nobody's code runs when it changes."""
        number, value = id(found.value), found.value
        key = (number, f"step {told.step} {told.slot!r} {found.place.code}")
        held = () if told.step == "numbers" else held_by(value, told.slot)
        if not holds_only(value, told.step, told.slot) or any(map(self._is_read, held)) or np.geterr() != self.capture.errors:
            return False
        leaf = Leaf(found.text, "object", f"{type(value).__name__} of {told.step}", value=told.step)
        self.capture._depend(key, leaf, found.place, "steps", (type(value), told.step, told.slot))
        if told.step != "numbers":
            self.holders[number] = found
        return True

    def _is_read(self, container: Any) -> bool:
        capture = self.capture
        known = capture.mirrors.get(capture.copy_of.get(id(container), 0))
        is_namespace = type(container) is dict and "__builtins__" in container
        return is_namespace or id(container) in capture.tables or (known is not None and known[1] is container)

    # ---- it is
    def add(self, token: Token, effect: types.FunctionType, values: Sequence[Any], around: types.CodeType) -> None:
        capture = self.capture
        if token.loaded is not None and token.loaded is values[0] and self._is_in_place(token, values[0]):
            return
        if token.kind == "attribute" and in_loop(capture):
            self._check_carried(token.receiver, token.attribute)
        if capture.blocks:
            capture.effects.undo.append(partial(self.rollback, self.mark()))
        if token.is_filled and not _gives_items(token.kind, values[0]):
            raise self._refusal(token.kind, token.receiver)
        shown = token.is_shown
        structure = capture.structure()
        if token.is_own:
            self.filled[id(token.receiver)] = token.receiver
        if not self.is_seen and not (token.is_own and token.is_sure):
            self.is_seen = True
            self.first_node = len(capture.root.nodes)
            self.values_before = {id(input): at_root(capture, input.tensor._cell) for input in capture.inputs}
        code = effect.__code__.replace(co_name=around.co_name, co_qualname=around.co_qualname)
        function = types.FunctionType(code, effect.__globals__, around.co_name)
        receiver = token.receiver
        hashed = [n in token.hashed for n in range(len(values))]
        if token.container is not None:
            self._check_step(token, [value for value, is_key in zip(values, hashed, strict=True) if not is_key])
        if capture.blocks:
            self._log(token, function, values, hashed, structure)
        else:
            for value, is_hashed in zip(values, hashed, strict=True):
                self._check(token, value, shown=shown, hashed=is_hashed)
                structure.of(value)  # what can't be given ends the piece before it
            self.effects.append(Effect(function, (receiver, *values), dict(capture.assigned), token.kind, here()))
        if token.kind == "attribute":
            self._is_stored(receiver, token.attribute, UNKNOWN if token.is_text else values[0])

    def _check_step(self, token: Token, values: list[Any]) -> None:
        """What stands where a number is added to is a number still, and a list that gets something is nobody else's."""
        is_number_put = token.is_text or all(map(is_number, values))
        puts = self.puts.setdefault(id(token.container), [])
        if token.step == "numbers" and not is_number_put:
            raise self._refusal(token.kind, token.receiver)
        for slot, step, was_number in puts:
            if None not in (slot, token.slot) and slot != token.slot:
                continue
            are_numbers = is_number_put and was_number and {step, token.step} <= {"", "numbers"}
            if (step or token.step) and not (are_numbers or step == token.step):
                raise self._refusal(token.kind, token.receiver)
        puts.append((token.slot, token.step, is_number_put))

    def _is_stored(self, owner: Any, name: str, value: Any) -> None:
        """An attribute will hold a value from here on."""
        key = id(owner), name
        self.nodes.pop(key, None)
        if not self.capture.blocks:
            self.stored[key] = value
            if isinstance(value, Tensor) and value.is_scalar:
                self.nodes[key] = value.node()
        elif in_loop(self.capture):
            if key in self.carried:
                try:
                    self._store_field(owner, name, value)
                except Unlogged:
                    raise self._refusal("attribute", owner) from None
            else:
                self.stored[key] = UNKNOWN
        else:
            try:
                self._store_field(owner, name, value)
            except Unlogged:
                self.stored[key] = UNKNOWN
        self.owners[id(owner)] = owner

    def _is_in_place(self, token: Token, x: Any) -> bool:
        """`owner.name op= v` has changed an array, and stores the array that is there: nothing else is left to do."""
        owner, name = token.receiver, token.attribute
        if not isinstance(x, Tensor) or x.is_scalar or name not in vars(owner) or (id(owner), name) in self.stored:
            return False
        for kind in type(owner).__mro__[:-1]:
            self.capture.inherits(kind, name)
        return True

    def _log(
        self, token: Token, function: types.FunctionType, values: Sequence[Any], hashed: Sequence[bool], structure: Structure
    ) -> None:
        """What stands in a loop or a branch: the run logs its values."""
        loop = None if len(self.capture.functions) > self.capture.own_functions else self.capture.loop
        turns = self.effects[-1] if self.effects else None
        if not isinstance(turns, Turns) or not turns.goes_on():
            turns = Turns(self.capture, dict(self.capture.assigned), loop)
            self.effects.append(turns)
        elif turns.loop is not loop:
            raise self._refusal(token.kind, token.receiver)
        log = turns.log()
        shown = token.is_shown

        def made(value: Any, is_hashed: bool) -> Made:
            if token.is_read and is_leaf(value):
                if isinstance(value, Tensor) and not value.is_scalar:
                    self._copy(token, value)
                return turns.logged(log, value)
            if isinstance(value, (Tensor, Symbolic)):
                if isinstance(value, Symbolic) or value.is_scalar or (shown and not is_hashed) or self._is_of_turn(value):
                    return turns.logged(log, value)
                if is_hashed:
                    raise Unlogged
            elif type(value) is tuple and not (shown or is_hashed or is_plain_key(value)):
                raise Unlogged  # it may be another turn's, or be kept elsewhere
            elif (type(value) is tuple and not is_plain_key(value)) or (not is_hashed and self._is_made_in_turn(value, shown)):
                keys = list(value) if isinstance(value, dict) else ()
                if not all(map(is_plain_key, keys)):
                    raise Unlogged
                items = value.values() if isinstance(value, dict) else value
                return Together(type(value), [made(item, is_hashed) for item in items], keys)
            self._check(token, value, shown=shown, hashed=is_hashed)
            structure.of(value)
            return Same(value)

        try:
            given = tuple(made(value, is_hashed) for value, is_hashed in zip(values, hashed, strict=True))
        except Unlogged:
            raise self._refusal(token.kind, token.receiver) from None
        log.given.append((function, (Same(token.receiver), *given), token.kind, here()))

    def _is_of_turn(self, x: Tensor) -> bool:
        """Has each turn an array of its own here? Then what is given is a copy, and nobody else may have it. Raises Unlogged
        where it is none of all turns either."""
        cell = x._cell
        if cell.home is self.capture.root:
            return False
        is_new = any(cell.home is made.graph for made in blocks_of_turn(self.capture)) and not is_handed_on(self.capture, cell)
        is_plain = all(found is None for found in (cell.memory, cell.kinds, cell.strides, cell.parts_of))
        if not (is_new and is_plain) or x._path or cell.readonly or id(cell) in self.of_turns or self.is_of_field(x):
            raise Unlogged
        self.of_turns[id(cell)] = cell
        self.given.append((cell, at_root(self.capture, cell)))
        return True

    def _is_made_in_turn(self, x: Any, shown: bool) -> bool:
        """The same of a list or a dict."""
        if type(x) not in (list, dict):
            return False
        if shown and self.capture.place_of(x) is None:
            return True
        if any(id(x) in made.made for made in blocks_of_turn(self.capture)) and id(x) not in self.of_turns:
            self.of_turns[id(x)] = x
            self.containers.append((x, tuple(_items_of(x))))
            return True
        if id(x) in self.of_turns or any(id(x) in made.made for made in self.capture.blocks):
            raise Unlogged
        return False

    def _copy(self, token: Token, x: Tensor) -> None:
        """An array stands in a list that the call looks into. Raises Unlogged where it may get another value."""
        if id(token.receiver) not in self.inside:  # who gets the list gets the array, too
            if not self._is_of_turn(x):
                raise Unlogged
            return
        capture, cells = self.capture, [x._cell]
        self.copied_from = self.copied_from if self.copied else len(capture.root.nodes)
        while cells:
            cell = cells.pop()
            is_new = any(cell.home is made.graph for made in blocks_of_turn(capture))
            if any(found is not None for found in (cell.memory, cell.kinds, cell.parts_of)) or (cell.written and not is_new):
                raise Unlogged
            self.copied[id(cell)] = cell
            cells += [start._cell for start in started_as(capture, cell) if id(start._cell) not in self.copied]

    def before_write(self, cell: Cell) -> None:
        """Nothing is written into an array that stands in a list, nor into what may be one: what a loop or a branch gave."""
        after = self.capture.root.nodes[self.copied_from :]
        value = at_root(self.capture, cell)
        may_be = isinstance(value.op, Item) and not cell.written and any(value is node for node in after)
        is_copied = self.copied and (id(cell) in self.copied or may_be or cell.memory is not None or cell.parts_of is not None)
        if is_copied or self.is_of_field(cell):
            raise EndPiece("effect", "writes_after")

    def before_leaving(self, x: Any) -> None:
        """A block gives x, which is what an iteration takes from the one before, or what follows."""
        cell = x._cell if isinstance(x, Tensor) else None
        whole = cell.parts_of() if cell is not None and cell.parts_of is not None else None
        if any(id(found) in self.of_turns for found in (x, cell, whole)) or id(x) in self.filled or self.is_of_field(x):
            raise EndPiece("effect", "keeps_given")
        if isinstance(x, (list, tuple, dict)):
            for item in x.values() if isinstance(x, dict) else x:
                self.before_leaving(item)

    def _check(self, token: Token, value: Any, *, shown: bool, hashed: bool) -> None:
        """A value may be given out later: it is what it is now. `shown`: as a text; `hashed`: it is a key."""
        if isinstance(value, Tensor):
            cell = value._cell
            if cell.memory is not None or cell.kinds is not None or cell.detached or (hashed and not value.is_scalar):
                raise self._refusal(token.kind, token.receiver)
            if shown or not token.is_own:
                self.given.append((cell, at_root(self.capture, cell)))
        elif isinstance(value, (Number, Extent, np.dtype)) or (is_plain_key(value) and type(value) is not tuple):
            return
        elif type(value) is tuple:
            for item in value:
                self._check(token, item, shown=shown, hashed=hashed)
        elif hashed or (shown and type(value) not in (list, dict)):
            raise self._refusal(token.kind, token.receiver)
        elif type(value) in (list, dict):
            if self.capture.place_of(value) is None and (shown or not token.is_own):
                self.containers.append((value, tuple(_items_of(value))))
            for item in value.values() if isinstance(value, dict) else value:
                self._check(token, item, shown=shown, hashed=False)
            if shown and isinstance(value, dict) and not all(map(is_plain_key, value)):
                raise self._refusal(token.kind, token.receiver)
        elif isinstance(value, (set, types.GeneratorType)) or hasattr(type(value), "__next__"):
            raise self._refusal(token.kind, token.receiver)

    # ---- could anybody tell?
    def check(self) -> None:
        """A statement has been captured. Raises where what was put off before it has to be given out first."""
        if not self.effects:
            return
        if not self.capture.root.nodes:  # nothing else is captured
            raise self.refusal()
        before = self.values_before
        for input in self.capture.inputs if self.is_seen else ():
            if input.tensor._cell.node is not before.get(id(input), input.node):
                raise EndPiece("effect", "writes_after")
        if any(cell.node is not node for cell, node in self.given):
            raise EndPiece("effect", "writes_after")
        if any(len(now := _items_of(x)) != len(items) or any(a is not b for a, b in zip(now, items, strict=True))
               for x, items in self.containers):  # fmt: skip
            raise EndPiece("effect", "writes_after")
        takes = 0.0
        for node in self.capture.root.nodes[self.first_node :] if self.is_seen else ():
            takes += _estimate(node)
            if _acts(node.op) or takes > MOST_NS:
                raise EndPiece("effect", "does_not_wait")

    def value_of(self, owner: Any, name: str) -> Any:
        """What an attribute will hold, NOTHING_STORED where nothing is put into it."""
        key, is_turn = (id(owner), name), in_loop(self.capture)
        if is_turn and key in self.carried and not isinstance(self.stored.get(key), Field):
            try:
                self._begun(owner, name)
            except Unlogged:
                raise EndPiece("effect", "reads_given", owner=a_kind(owner)) from None
        if id(owner) not in self.owners:
            return NOTHING_STORED
        value = self.stored.get(key, NOTHING_STORED)
        if value is UNKNOWN and is_turn and key not in self.carried:
            self.carry(key)
        if value is UNKNOWN or name == "__dict__":
            raise EndPiece("effect", "reads_given", owner=a_kind(owner))
        if is_turn and value is not NOTHING_STORED:
            self.found.add(key)
        return self._read_field(key, value) if isinstance(value, Field) else value

    def before_reading(self, container: Any) -> None:
        if id(container) in self.changed or any(holds(found.value, container) for found in self.holders.values()):
            raise EndPiece("effect", "reads_given", owner=a_kind(container))

    def refusal(self) -> EndPiece:
        """Why a program that does nothing else is Python's."""
        effect = self.effects[0]
        if isinstance(effect, Turns):
            _, (receiver, *_), kind, source = effect.logs[0].given[0]
            return self._refusal(kind, receiver.value if isinstance(receiver, Same) else None, source)
        return self._refusal(effect.kind, effect.values[0], effect.source)

    def _refusal(self, kind: str, owner: Any, source: Source | None = None) -> EndPiece:
        if kind in ("attribute", "item"):
            owner = owner.value if isinstance(owner, Receiver) else owner
            return StoresOutside("effect", "stores", source, owner=a_kind(owner))
        name = "print" if kind == "print" else f"{RECEIVERS[kind][0].__name__}.{kind}"
        return EndPiece("effect", effect_of(name), source)

    # ---- the trace
    def builds(self, structure: Structure) -> list[Given]:
        """What a run gives out, in order: each with the names that it assigns before."""
        made: list[Given] = []
        known: Namespace = {}
        for effect in self.effects:
            if isinstance(effect, Turns):
                effect.kept_inside = list(self.inside.values())
            if not effect.is_given if isinstance(effect, Turns) else id(effect.values[0]) in self.inside:
                continue
            names: list[tuple[str, Build]] = []
            for name, value in effect.names.items():
                if name not in known or known[name] is not value:
                    known[name] = value
                    names.append((name, structure.of(value)))
            if isinstance(effect, Turns):
                prints = effect.kinds & {"print"}
                kind = "print" if prints else "turns"
                made.append(Given(names, *effect.builds(structure), kind, effect.sources, effect.loop))
                continue
            builds = [structure.of(value) for value in effect.values]
            sources = [] if effect.source is None else [effect.source]
            made.append(Given(names, effect.function, builds, effect.kind, sources))
        return made

    def apart(self) -> Iterator[tuple[str, str]]:
        """Conditions, each with a place that it is about, under which one object stands at two places: what is given to one is
        read as the other."""
        capture, dicts = self.capture, [r.place.code for r in self.changed.values() if type(r.value) is dict]
        for receiver in self.changed.values():
            for _, original, place, _ in capture.mirrors.values():
                if type(original) is type(receiver.value):
                    yield f"{receiver.place.code} is {place.code}", place.code
        for holder in self.holders.values():
            for _, original, place, _ in capture.mirrors.values():
                if type(original) in (list, set):
                    yield f"{capture.constants.name(holds)}({holder.place.code}, {place.code})", place.code
        for number in self.puts if any(step for puts in self.puts.values() for _, step, _ in puts) else ():
            for other in self.puts:
                one, two = self.changed.get(number), self.changed.get(other)
                if one is not None and two is not None and number < other and type(one.value) is type(two.value):
                    yield f"{one.place.code} is {two.place.code}", two.place.code
        read = {owner for owner, _ in capture.found if owner in capture.places} if dicts else set()
        for owner in capture.keep if read else ():
            if id(owner) in read and type(getattr(owner, "__dict__", None)) is dict and type(owner) is not types.ModuleType:
                for code in dicts:
                    yield f"{code} is {capture.places[id(owner)].code}.__dict__", code
        for number in self.owners:
            for _, original, place, _ in capture.mirrors.values():
                if type(original) is dict:
                    yield f"{place.code} is {capture.places[number].code}.__dict__", place.code


def is_number(x: Any) -> bool:
    """A Python number or a NumPy scalar, of a known or an unknown value."""
    return is_leaf(x) and leaf_type(x).is_scalar


def number_type(x: Any) -> LeafType:
    if not is_number(x):
        raise Unlogged
    return leaf_type(x)


def _storing(name: str) -> types.FunctionType:
    def store(owner: Any, value: Any) -> None:
        setattr(owner, name, value)

    assert isinstance(store, types.FunctionType)
    return store


def _gives_items(kind: str, x: Any) -> bool:
    """Does it give its items without code of anybody's, and no views of itself?"""
    if isinstance(x, Tensor):
        return kind == "extend" and x.ndim == 1
    return type(x) is dict if kind == "update" else type(x) in (list, tuple, str)


def _looks_up_plainly(kind: type) -> bool:
    return any(_in_class(kind, "__getattribute__") is _in_class(base, "__getattribute__") for base in _PLAIN)


#: Classes whose own ways of finding and storing attributes do that and nothing else.
_PLAIN = (object, types.SimpleNamespace)


def _in_class(kind: type, name: str) -> Any:
    return next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)


def _is_index(key: Any, x: list[Any]) -> bool:
    return type(key) is int and -len(x) <= key < len(x)


def _items_of(container: Any) -> list[Any]:
    if isinstance(container, dict):
        return [part for item in container.items() for part in item]
    return list(container)


def _acts(op: Any) -> bool:
    """Does it draw a random number, or call a function of the user's? (A check that fails has Python do it all.)"""
    if isinstance(op, HostCall):
        return op.effects and op.code != "check"
    if isinstance(op, Check):
        return False
    inside = [part.op for graph in getattr(op, "graphs", ()) for part in graph.nodes]
    return any(map(_acts, inside)) if inside else bool(op.has_effects)


def _estimate(node: Node) -> float:
    """What an operation takes at the most, about, in ns."""
    op = node.op
    if hasattr(op, "graphs"):
        times = 1 if not isinstance(op, Loop) else float("inf") if op.count is None else max(int(op.count), 1)
        return times * sum(_estimate(part) for graph in op.graphs for part in graph.nodes)
    if isinstance(op, (Item, Parameter)):
        return 0
    if hasattr(op, "map"):  # what is seen or written of an array
        return _ELEMENT_NS * float(math.prod(map(int, op.shape)))
    sizes = [int(node.type.size), *(int(source.type.size) for source in node.inputs)]
    if isinstance(op, Elementwise):
        return _ELEMENT_NS * float(sizes[0])
    host = _HOST_NS if isinstance(op, HostCall) else 0
    return host + _OF_ROW_NS * float(max(sizes)) ** (1.5 if max(sizes) > 10_000 else 1)


__all__ = ["Effect", "PutOff", "Token", "Told"]

"""Graph: operations on arrays, in order, each node one value. Plain data, printed as text, checked by `verify`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from dataclasses import field
from typing import Any, Protocol

import numpy as np

from jitlab.errors import Signal
from jitlab.ir.extents import Moving, bare, bind_extents, poly, symbols_in
from jitlab.ir.plans.decisions import DECISIONS, Decision, absorbed, made_now
from jitlab.ir.types import NOWHERE, ArrayType, Origin, Origins, Source, Sources
from jitlab.support.lazy_dataclass import dataclass
from jitlab.support.transactions import contextmanager, keep, quietly, variable

from .operation import CONTROL, NodeDef, OperationView, Output, node_def, operations


class Op(Protocol):
    """What a Graph asks of an operation; `jitlab.ops.Operation` is the real thing."""

    @property
    def name(self) -> str: ...
    @property
    def stem(self) -> str: ...
    def result(self, *types: ArrayType) -> ArrayType: ...
    def numpy(self, *arrays: Any) -> Any: ...


class ValueWanted(Signal):
    """A rule asked a traced value for its Python number."""


class Node:
    """One value: an operation applied to other nodes of the same graph.

    `attrs` holds the attributes that scopes put on operations (`_XlaCompile`, `_XlaScope`, ...); `sources` the spans of the
    user's program that this node stands for. Passes union sources, never drop them. `weak` is the Python type
    (int, float, complex, bool) of a 0-d value that is a Python number in the program, not a NumPy scalar: such a value gives
    way in NumPy's promotion (NEP 50). Capture alone asks for it: in the graphs it makes every cast is written down.
    `called` is what the program calls the value, `within` the helper in which it is made, "" where nobody knows (called.py).
    """

    __slots__ = ("attrs", "called", "inputs", "name", "op", "sources", "type", "weak", "within")

    def __init__(
        self,
        op: Any,
        inputs: Sequence[Node],
        type: ArrayType,
        *,
        name: str = "",
        sources: Sources = NOWHERE,
        attrs: Mapping[str, Any] | None = None,
    ) -> None:
        self.op = op
        self.inputs = tuple(inputs)
        self.type = type
        self.name = name
        self.sources = sources
        self.attrs: dict[str, Any] = dict(attrs or {})
        self.weak: Any = None
        self.called = self.within = ""

    __match_args__ = ("op", "inputs")

    def __index__(self) -> int:
        """For `operator.index`, `int` and `float`, by which rules take numbers.

        Raises:
            ValueWanted: always; a node stands for a value of each run.
        """
        raise ValueWanted(self.name)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.type.shape

    @property
    def dtype(self) -> np.dtype:
        return self.type.dtype

    @property
    def ndim(self) -> int:
        return len(self.type.shape)

    @property
    def origins(self) -> Origins:
        """What is made of this node alone came from it."""
        return frozenset((Origin(self.name, self.sources),))

    def __repr__(self) -> str:
        return f"%{self.name}: {self.type}"


@dataclass
class Scope:
    """One entry of a graph's scope stack: the attributes `jit_scope` puts on the operations made inside it."""

    name: str  # "jit_scope_<n>", given by the outermost scope
    compile_ops: bool | Callable[[NodeDef], Any]
    separate_gradients: bool


@dataclass
class Graph:
    """Nodes in program order. Parameters come first in `parameters`; `outputs` are nodes of the graph, repeats allowed."""

    name: str = "graph"
    parameters: list[Node] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    outputs: list[Node] = field(default_factory=list)
    scopes: list[Scope] = field(default_factory=list)  # the stack; empty outside every jit_scope
    scope_count: int = 0  # entries at depth 0 so far: the number of the next scope
    marked_only: bool = False  # a jit_scope(strict=True) was entered: what no scope marks stays out of clusters
    gradient_names: dict[str, int] = field(default_factory=dict)
    overrides: list[Mapping[str, Any]] = field(default_factory=list)  # attributes that win over the scope's (gradients)
    deciding: list[Decision] = field(default_factory=list)  # the scopes that decide of edges, as the recording entered them
    sizes: dict[str, int] = field(default_factory=dict)  # of a body: the values of the shape symbols of the graphs around it
    _names: dict[str, int] = field(default_factory=dict)
    _sized: dict[Node, tuple[Any, bool]] = field(default_factory=dict, repr=False, compare=False)  # has the operation extents?

    def add(self, op: Any, *inputs: Node, sources: Sources | None = None, name: str | None = None) -> Node:
        """Append `op(*inputs)` and return its node; the type follows from the operation, the attributes from the scopes."""
        type = op.result(*[node.type for node in inputs])
        if sources is None:
            sources = self.position()
        return self.append(Node(op, inputs, type, name=name or op.stem, sources=sources))

    def append(self, node: Node) -> Node:
        """Append a ready node: it gets a unique name and, unless it has them, the scope's attributes."""
        node.name = self.unique_name(node.name)
        if self.overrides or self.scopes:
            for key, value in self._scope_attrs(node).items():
                node.attrs.setdefault(key, value)
        for key, value in made_now().items():
            node.attrs.setdefault(key, value)
        (self.parameters if getattr(node.op, "is_parameter", False) else self.nodes).append(node)
        return node

    def unique_name(self, stem: str) -> str:
        """`stem`, then `stem_1`, `stem_2`, ... as the contract numbers names."""
        n = self._names.get(stem)
        if n is None:
            self._names[stem] = 0
            return stem
        while True:
            n += 1
            if f"{stem}_{n}" not in self._names:
                break
        self._names[stem] = n
        self._names[f"{stem}_{n}"] = 0
        return f"{stem}_{n}"

    def gradient_names_of(self, node: Node) -> AbstractContextManager[Any]:
        """Inside, names of operations may say that they are of this node's gradient."""
        return nullcontext()

    def position(self) -> Sources:
        """The user's position now, as the innermost `positions` block says."""
        locate = _locate.get()
        source = locate() if locate is not None else None
        return source if isinstance(source, frozenset) else frozenset({source}) if source else NOWHERE

    def users(self) -> dict[Node, list[Node]]:
        """For each node the nodes that read it, in order; outputs are not listed."""
        result: dict[Node, list[Node]] = {node: [] for node in (*self.parameters, *self.nodes)}
        for node in self.nodes:
            for source in dict.fromkeys(node.inputs):
                result[source].append(node)
        return result

    def rewrite(self, rule: Callable[[Node], Node | None]) -> Graph:
        """A new graph in which `rule(node)`, made there of new inputs, stands for each node, or a copy for None.

        A replacement takes over the sources of what it replaces; an existing node that absorbs another unions them.
        """
        new = Graph(self.name)
        new.gradient_names, new.marked_only, new.sizes = dict(self.gradient_names), self.marked_only, self.sizes
        new._names = {}
        old_to_new: dict[Node, Node] = {}
        for node in self.parameters:
            old_to_new[node] = new.append(_copy(node, ()))
        copy: Node
        with new.building(), positions(lambda: copy.sources):
            for node in self.nodes:
                copy = _copy(node, [old_to_new[source] for source in node.inputs])
                before = len(new.nodes)
                replacement = rule(copy)
                if replacement is None:
                    old_to_new[node] = new.append(copy)
                    continue
                for made in new.nodes[before:]:
                    made.attrs = {**copy.attrs, **made.attrs}
                replacement.sources |= node.sources
                if DECISIONS in node.attrs:
                    absorbed(replacement.attrs, node.attrs[DECISIONS])
                old_to_new[node] = replacement
        new.outputs = [old_to_new[node] for node in self.outputs]
        return new

    def without_dead(self) -> Graph:
        """The same graph without the nodes that no output needs or waits for; nodes whose operation has effects, or may raise
        for the values that it is given, stay."""
        live = set(self.outputs)
        named: set[str] = set()  # the symbols in the extents of what is live: what defines them is, too
        defining = any(is_definition(node.op) for node in self.nodes)
        awaited: set[str] = set()  # the names of what has to run before what is live
        for node in reversed(self.nodes):
            wanted = node in live or node.name in awaited or must_run(node.op)
            if wanted or (is_definition(node.op) and node.op.symbol in named):
                live.add(node)
                live.update(node.inputs)
                awaited.update(node.attrs.get(CONTROL, ()))
                if defining:
                    named.update(symbols_of(node))
        new = Graph(self.name, list(self.parameters), [n for n in self.nodes if n in live], list(self.outputs))
        new._names, new.scope_count, new.deciding = self._names, self.scope_count, self.deciding
        new.gradient_names, new.marked_only, new.sizes = self.gradient_names, self.marked_only, self.sizes
        return new

    @property
    def has_effects(self) -> bool:
        """Does running it do more than give its outputs?"""
        return any(getattr(node.op, "has_effects", False) for node in self.nodes)

    @property
    def must_run(self) -> bool:
        """Does it have to run although nobody reads its outputs?"""
        return any(must_run(node.op) for node in self.nodes)

    @contextmanager
    def building(self) -> Iterator[Graph]:
        """Make this the graph that operations are added to."""
        token = _current.set(self)
        try:
            yield self
        finally:
            _current.reset(token)

    @contextmanager
    def with_attrs(self, attrs: Mapping[str, Any]) -> Iterator[None]:
        """Operations made inside get `attrs`, which win over those of the scope."""
        self.overrides.append(attrs)
        try:
            yield
        finally:
            self.overrides.pop()

    def _scope_attrs(self, node: Node) -> dict[str, Any]:
        attrs: dict[str, Any] = {}
        for override in self.overrides:
            attrs.update(override)
        if self.scopes and "_XlaCompile" not in node.attrs:
            scope = self.scopes[-1]
            compile_ops = scope.compile_ops
            if "_XlaCompile" not in attrs:
                attrs["_XlaCompile"] = compile_ops if isinstance(compile_ops, bool) else _ask(compile_ops, node)
            attrs.setdefault("_XlaSeparateCompiledGradients", scope.separate_gradients)
            attrs.setdefault("_XlaScope", scope.name)
        return attrs

    # ---- the contract's view
    def in_order(self) -> Sequence[Node]:
        """Everything in it, arguments first, then in program order."""
        return (*self.parameters, *self.nodes)

    def get_operations(self) -> list[OperationView]:
        """Its operations, arguments first, then in program order."""
        return [OperationView(self, node) for node in operations(iter(self.in_order()))]

    def get_operation_by_name(self, name: str) -> OperationView:
        """The operation of that name; KeyError when there is none."""
        for node in operations(iter(self.in_order())):
            if node.name == name:
                return OperationView(self, node)
        raise KeyError(f"The name {name!r} refers to an Operation not in the graph.")

    def get_tensor_by_name(self, name: str) -> Any:
        """The value called `operation:number`; KeyError when there is none."""
        stem, colon, number = name.rpartition(":")
        if not colon or not number.isdecimal():
            raise ValueError(f"The name {name!r} looks like an (invalid) Operation name, not a Tensor: Tensor names are op:0")
        outputs = self.get_operation_by_name(stem).outputs
        if int(number) >= len(outputs):
            raise KeyError(f"The name {name!r} refers to a Tensor which does not exist: {stem} has {len(outputs)} outputs.")
        return outputs[int(number)]

    def output(self, node: Node) -> Any:
        """A value as a user holds it."""
        return Output(self, node)

    def session(self, given: Any) -> Any:
        """What runs operations of this graph: nothing runs those of a function's alone."""
        raise ValueError(f"{self.name} is the graph of a traced function: call the function to run it")

    def __str__(self) -> str:
        """The graph as text that can be read aloud: parameters with their sizes, one line a node."""
        return "\n".join(text for text, _ in self.lines())

    def lines(self) -> list[tuple[str, Node | None]]:
        """Its text line by line, each with the node that stands there."""
        bound = []
        for node in self.parameters:
            bound.append(f"{node.name}: {node.type}")
        lines: list[tuple[str, Node | None]] = [(f"graph {self.name}({', '.join(bound)}):", None)]
        sizes = self.symbol_values()
        if sizes:
            lines.append(("  where " + ", ".join(f"{name} = {value}" for name, value in sizes.items()), None))
        for node in self.nodes:
            arguments = ", ".join("%" + source.name for source in node.inputs)
            detail = str(node.op)
            detail = detail[len(node.op.name) :] if detail.startswith(node.op.name) else detail
            scope = f" in {node.attrs['_XlaScope']}" if "_XlaScope" in node.attrs else ""
            at = sorted({source.line for source in node.sources})
            where = f"   # line {', '.join(map(str, at))}" if at else ""
            text = f"  %{node.name} = {node.op.name}{detail} {arguments}".rstrip() + f" : {node.type}{scope}{where}"
            lines.append((text, node))
            for body in getattr(node.op, "graphs", ()):
                lines.extend(("    " + line, inner) for line, inner in body.lines() if not line.startswith("  where "))
        lines.append((f"  return {', '.join('%' + node.name for node in self.outputs)}", None))
        return lines

    def is_sized(self, node: Node) -> bool:
        """Do sizes with a symbol stand in the node's operation? Kept, for a loop asks it of each node in each iteration."""
        op, found = self._sized.get(node, (None, False))
        if op is not node.op:
            found = bool(symbols_in(node.op))
            self._sized[node] = node.op, found
        return found

    def symbol_values(self) -> dict[str, int]:
        """The value of each shape symbol in this trace."""
        values: dict[str, int] = dict(self.sizes)
        for node in self.parameters:
            for extent in node.shape:
                expr = poly(extent)
                if isinstance(extent, Moving):
                    continue  # its symbol has no fixed value
                if len(expr.terms) == 1 and len(expr.terms[0][0]) == 1 and expr.terms[0][1] == 1:
                    values[expr.terms[0][0][0]] = bare(extent)
        return values


def decided_by(op: Any, value: Any) -> dict[str, int]:
    """The symbols to which a value of an operation gives theirs."""
    if hasattr(op, "symbol") and not hasattr(op, "graphs"):
        return {op.symbol: int(value)}
    return op.lengths(op.found(value)) if getattr(op, "by_data", ()) else {}


@quietly
def interpret(
    graph: Graph,
    arguments: Sequence[Any],
    observe: Callable[[Node, Any], None] | None = None,
    symbols: Mapping[str, int] | None = None,
) -> list[Any]:
    """Run a graph op by op on NumPy: the meaning that every compiled form is compared with.

    `observe(node, value)` is called after each operation; `symbols` are the values of the loops around a body. Inputs are
    never written into.
    """
    values: dict[Node, Any] = dict(zip(graph.parameters, arguments, strict=True))
    known = {**graph.symbol_values(), **(symbols or {})}
    moving = bool(symbols)  # some extents differ from the sample that capture took
    for node in graph.nodes:
        op, inputs = node.op, [values[source] for source in node.inputs]
        if hasattr(op, "graphs"):
            value = op.run(known, tuple(inputs))
        else:
            value = (bind_extents(op, known) if moving and graph.is_sized(node) else op).numpy(*inputs)
            if hasattr(op, "symbol"):
                known[op.symbol], moving = int(value), True
            elif any(known[name] != n for name, n in decided_by(op, value).items()):
                raise op.another(op.found(value))
        values[node] = value
        if observe is not None:
            observe(node, value)
    return [values[node] for node in graph.outputs]


def must_run(op: Any) -> bool:
    """Does an operation count although nobody reads its result?"""
    return getattr(op, "has_effects", False) or getattr(op, "may_raise", False)


def is_definition(op: Any) -> bool:
    """Does the operation name a symbol that extents after it may contain?"""
    return hasattr(op, "symbol") and not hasattr(op, "graphs")


def symbols_of(node: Node) -> set[str]:
    """The symbols in the extents of an operation, of its type, and of the graphs in it."""
    found = {name for n in node.shape for name in poly(n).symbols}
    found.update(symbols_in(node.op))
    for graph in getattr(node.op, "graphs", ()):
        for inner in (*graph.parameters, *graph.nodes):
            found.update(symbols_of(inner))
    return found


def current_graph() -> Graph | None:
    """The graph being built by this thread (or task); None in eager code."""
    return _current.get()


@contextmanager
def building_nothing() -> Iterator[None]:
    """What runs inside is part of no graph."""
    token = _current.set(None)
    try:
        yield
    finally:
        _current.reset(token)


class _Outside(threading.local):
    """`graph`: what a thread puts together outside of every block, if it does; None: NumPy runs each operation at once.
    `is_python`: compiled functions run as the Python they are, for a comparison with it. `unmarked`: scopes mark nothing, as
    what a compiled function or cell could not record runs as Python."""

    graph: Any = None
    is_python: bool = False
    unmarked: bool = False

    def put_back(self, before: tuple[Any, bool, bool]) -> None:
        self.graph, self.is_python, self.unmarked = before


outside = _Outside()
keep(lambda: (outside.graph, outside.is_python, outside.unmarked), outside.put_back)


@contextmanager
def positions(locate: Callable[[], Source | Sources | None]) -> Iterator[None]:
    """Nodes made inside take the position that `locate` tells."""
    token = _locate.set(locate)
    try:
        yield
    finally:
        _locate.reset(token)


def located() -> Source | Sources | None:
    """The position that a node made now takes."""
    locate = _locate.get()
    return None if locate is None else locate()


_current: ContextVar[Graph | None] = variable("jitlab_graph", None)
_locate: ContextVar[Callable[[], Source | Sources | None] | None] = variable("jitlab_locate", None)


def _copy(node: Node, inputs: Sequence[Node]) -> Node:
    return Node(node.op, inputs, node.type, name=node.name, sources=node.sources, attrs=node.attrs)


def _ask(compile_ops: Callable[[NodeDef], Any], node: Node) -> bool:
    answer = compile_ops(node_def(node))
    if not isinstance(answer, (bool, int, np.bool_)):
        raise TypeError(
            f"compile_ops returned {answer!r} for operation {node.name!r} ({node.op.name}): {type(answer).__name__!r} object"
            " cannot be interpreted as an integer; return True or False"
        )
    return bool(answer)

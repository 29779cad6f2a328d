"""Trace: one captured graph, what its inputs are bound to, how its outputs become the caller's objects, what it guards."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from jitlab.capture.control.chosen_memory import Chosen
from jitlab.capture.guards.changes import Change, layout_change
from jitlab.capture.guards.described_calls import Undescribed
from jitlab.capture.guards.leaves import ARRAY, PYTHON_KINDS
from jitlab.capture.numpy_calls.host_fallback import NotReplayable
from jitlab.capture.numpy_calls.layouts import Layout, is_writeable, order_of
from jitlab.capture.state import Capture, Input
from jitlab.capture.tracers.symbolic import has_symbolic
from jitlab.capture.tracers.tensor import Cell, Lock, Path, Tensor
from jitlab.costs import Costs
from jitlab.errors import CaptureError
from jitlab.ir import Graph, Moving, Node, Poly, Source, Symbolic, bind_extents, plain, symbol_of
from jitlab.ir.extents import symbols_in
from jitlab.ir.graphs.graph import must_run
from jitlab.ir.plans.call_forms import Argument, Fixed, GivingOut, Output, Packed, ViewOf
from jitlab.ir.size_facts import VALUE, SizeFacts, noted
from jitlab.messages import Message
from jitlab.ops.host_operations import HostCall, Item
from jitlab.ops.layout.views import Reshape, View, transpose_view
from jitlab.ops.layout.windows import Windows
from jitlab.ops.leaf_operations import Constant, Parameter
from jitlab.ops.random_draws import Address, States, generators_of, random_states
from jitlab.support.containers import like
from jitlab.support.lazy_dataclass import dataclass

from .leaving import keeps_a_recording, plain_value

if TYPE_CHECKING:
    from jitlab.capture.refusals import Refusal

    from .passed import Changes

NOTHING: Mapping[int, Any] = MappingProxyType({})
Run = Callable[[Sequence[Any]], list[Any]]  # real inputs -> graph outputs
Build = Callable[[Sequence[Any], Sequence[Any]], Any]  # (graph outputs, real inputs) -> the caller's object


class Compiled(Protocol):
    """What runs a trace, as far as it is known here: the stages stand above (`compile.py`)."""

    costs: Costs

    def may_end_early(self, arguments: Sequence[Any]) -> bool: ...


#: A form of call that came so often gets a C function of its own.
FIRST_ENTRY = 5


@dataclass
class Trace:
    """A graph and its bindings. `run` is set when it is compiled: real inputs -> graph outputs."""

    name: str
    number: int
    graph: Graph
    inputs: list[Input]
    build: Build
    writes: list[tuple[int, int]]  # (input, graph output): what has to be copied into the caller's arrays
    shared: list[tuple[int, tuple[int, ...]]]  # outputs that an op-by-op run may give as views of inputs, constants, others
    guards: list[Any]
    slots: int = 0
    uses: dict[str, Source] = field(default_factory=dict)  # path of an input -> where it was first used
    generators: list[Any] = field(default_factory=list)  # random generators that it holds, and draws from
    draws: bool = False  # from those, or from generators among its inputs
    calls_back: bool = False  # functions of the user's are operations of it
    rows: list[int] = field(default_factory=list)  # outputs that have to lie row by row
    leaves: list[int] = field(default_factory=list)  # argument leaf of each of the first inputs; the others are captured
    layouts: list[Layout] = field(default_factory=list)  # of inputs: results and views depend on them
    lasting: dict[str, list[tuple[int, int]]] = field(default_factory=dict)  # operation that may raise -> (input, graph output)
    # for each Variable that has been assigned before it: what it holds when that operation has raised
    same: list[tuple[int, Any]] = field(default_factory=list)  # (argument leaf, object that a name gave, too)
    run: Run | None = None
    costs: Costs = field(default_factory=Costs)
    is_warm: bool = False  # C runs the plan
    next_entry: int = FIRST_ENTRY  # calls through Python, after which a C function is thought of
    near: Sequence[Any] = ()  # executables of other sizes, of which one may serve it; until it is compiled
    executable: Compiled | None = None  # what the stages made of the graph, for reports and replays
    effects: Sequence[Any] = ()  # what it gives out when it has run
    asked: SizeFacts | None = None  # what was asked of sizes while it was recorded
    is_outgrown: bool = False  # the data decided on sizes for which the next call that it fits is recorded anew
    outgrown_by: Change | None = None  # which size that was
    changes: Changes | None = None  # what a call changes of the lists, dicts and objects that it is passed

    def __call__(self, inputs: Sequence[Any]) -> Any:
        """Run on real inputs, write what NumPy would have written, and give the results their form."""
        return self.answer((), inputs, ())

    def states(self, inputs: Sequence[Any]) -> States:
        """The random generators that a run with these inputs draws from, each with its state."""
        return random_states((*self.generators, *generators_of(inputs))) if self.draws else ()

    def formed(self, outputs: list[Any], inputs: Sequence[Any]) -> Any:
        """What a call gives, of the graph's outputs; the inputs that it changes are written."""
        if self.shared or self.rows or self.writes:
            self.store(inputs, (), outputs)
        made = self.made(outputs, inputs)
        return made if self.changes is None else made[0]

    def made(self, outputs: list[Any], inputs: Sequence[Any]) -> Any:
        """The caller's objects; where a call changes what it is passed, a pair: its result, and what it puts there."""
        return self.build([*outputs, [None] * self.slots] if self.slots else outputs, inputs)

    def store(self, inputs: Sequence[Any], numbers: tuple[Any, ...], outputs: list[Any]) -> None:
        """Write into the user's arrays; what is left over in `outputs` owns its memory."""
        if self.shared or self.rows:
            self.separate(outputs, inputs)
        for number, output in self.writes:
            np.copyto(inputs[number], outputs[output])

    def gives(self, leaf_of: Callable[[Any], int]) -> Any:
        """What a call gives, told for machine code. `leaf_of`: the leaf of an input, by its number or its place."""
        if self.changes is not None:
            raise Undescribed("machine code changes no containers")
        result = _told(self.build, leaf_of)
        if not self.effects:
            return result
        given = (Packed(tuple, tuple(_told(build, leaf_of) for build in effect.values)) for effect in self.effects)
        functions, said = (tuple(getattr(effect, what) for effect in self.effects) for what in ("function", "said"))
        return GivingOut(tuple, (result, *given), functions, said)

    def told_of(self, build: Build, leaf_of: Callable[[Any], int]) -> Any:
        """What a part of a result is, told for machine code."""
        return _told(build, leaf_of)

    def fits(self, leaves: Sequence[Any]) -> bool:
        """The guards beyond the signature hold for these argument leaves."""
        for guard in self.guards:
            input = guard.input
            position = self.inputs.index(input)
            value = leaves[self.leaves[position]] if position < len(self.leaves) else input.value
            if guard.now(value) != guard.value:
                return False
        if not all(layout.fits(leaves[self.leaves[layout.input]]) for layout in self.layouts):
            return False
        return all(leaves[n] is found for n, found in self.same)

    def misfit(self, leaves: Sequence[Any]) -> Change | None:
        """What keeps `fits` from holding for leaves of the trace's own signature."""
        for guard in self.guards:
            position = self.inputs.index(guard.input)
            value = leaves[self.leaves[position]] if position < len(self.leaves) else guard.input.value
            if guard.now(value) != guard.value:
                return Change("python_value", guard.input.path, str(guard.value), str(guard.now(value)))
        for layout in self.layouts:
            array, path = leaves[self.leaves[layout.input]], self.inputs[layout.input].path
            if not layout.fits(array):
                return layout_change(layout, path, array)
        for n, found in self.same:
            if leaves[n] is not found:
                at = self.leaves.index(n) if n in self.leaves else 0
                fix = Message("fix.copy_of_name")
                return Change("aliasing", self.inputs[at].path, "also the array of a name", "no array of a name", fix)
        return None

    def collect(self, leaves: Sequence[Any]) -> list[Any]:
        """The real inputs of a call: its argument leaves, then the captured arrays."""
        return [*(leaves[n] for n in self.leaves), *(input.value for input in self.inputs[len(self.leaves) :])]

    def gather(self, at: Sequence[Any]) -> tuple[list[Any], tuple[Any, ...]] | None:
        """The real inputs of a call with these argument leaves, and the numbers it reads; None where the trace does not fit."""
        return (self.collect(at), ()) if self.fits(at) else None

    def renewed(self, at: Any, exchange: Mapping[int, Any] = NOTHING) -> Trace | None:
        """This trace for functions of equal code in the place of those that it met; None where it does not fit either."""
        return None

    def answer(self, args: Sequence[Any], inputs: Sequence[Any], numbers: tuple[Any, ...]) -> Any:
        """The same for a call with these arguments, of what was gathered for it."""
        assert self.run is not None
        if self.writes:
            self.check_writable(inputs)
        if self.changes is None or not args:
            return self.formed(self.run(inputs), inputs)
        containers = self.changes.containers(args)
        outputs = self.changes.run(self.run, inputs)
        if self.shared or self.rows or self.writes:
            self.store(inputs, (), outputs)
        result, values = self.made(outputs, inputs)
        self.changes.make(containers, values)
        return result

    def check_writable(self, inputs: Sequence[Any]) -> None:
        """Written arrays can be written, and overlap no other input (their order of writes would show)."""
        for number, _ in self.writes:
            target = inputs[number]
            if not (target.flags.forc and target.flags.writeable):
                check_target(target, self.inputs[number].path)
            for other, array in enumerate(inputs):
                if other != number and isinstance(array, np.ndarray) and _overlap(target, array):
                    raise NotReplayable("aliasing", "overlap", one=self.inputs[number].path, other=self.inputs[other].path)

    def separate(self, outputs: list[Any], inputs: Sequence[Any]) -> None:
        """Results own their memory: what an op-by-op run left as a view of an input or a constant is copied. What a kernel
        has stored into the argument that it is a new version of stays there."""
        stored = {output for number, output in self.writes if outputs[output] is inputs[number]}
        for n, apart in self.shared:
            if n in stored:
                continue
            value = outputs[n]
            others = (*inputs, *(outputs[m] for m in apart))
            if isinstance(value, np.ndarray) and (
                not value.flags.writeable
                or any(x is value or (isinstance(x, np.ndarray) and np.may_share_memory(value, x)) for x in others)
            ):
                outputs[n] = np.array(value, order="C")
        for n in self.rows:
            if isinstance(outputs[n], np.ndarray):
                outputs[n] = np.ascontiguousarray(outputs[n])


AnyTrace = TypeVar("AnyTrace", bound=Trace)
#: The kind of reason for which a run is given up: the data have decided on other sizes.
BY_DATA = "data_dependent_shape"
#: Traces of one kind of calls that are recorded because the data decide on other sizes.
MOST_OF_SIZES = 4


def usable(known: Sequence[AnyTrace]) -> Sequence[AnyTrace]:
    """The traces that a call may run by; none where it is to be recorded anew."""
    return () if known and known[-1].is_outgrown else known


def outgrow(known: list[AnyTrace], trace: AnyTrace, reason: Refusal) -> None:
    """A run of one of these traces was given up. Where the data have decided on sizes that it is not for, the others come
    before it, and the next call is recorded anew, some times."""
    at = next((n for n, other in enumerate(known) if other is trace), None)
    if reason.code == BY_DATA and at is not None:
        known.append(known.pop(at))
        trace.is_outgrown = len(known) < MOST_OF_SIZES
        what = str(reason.said.args.get("what", "shape"))
        before, after = (f"{what} {met}" for met in reason.met[:2]) if len(reason.met) > 1 else ("", "")
        trace.outgrown_by = Change("shape", str(reason.said.args.get("name", "")).strip("`"), before, after)


def recorded_anew(known: list[AnyTrace], trace: AnyTrace) -> None:
    """Another trace of such calls, which is tried first."""
    if known:
        known[-1].is_outgrown, known[-1].outgrown_by = False, None
    known.insert(0, trace)


def check_target(target: np.ndarray[Any, Any], path: str) -> None:
    """An array that is written can be written, and none of its elements lies where another does: what is written is copied
    into it whole."""
    if not is_writeable(target):
        raise ValueError("assignment destination is read-only")
    if target.size > 1:
        reach = target.itemsize
        for by, n in sorted((abs(by), n) for by, n in zip(target.strides, target.shape, strict=True) if n > 1):
            if by < reach:
                raise NotReplayable("aliasing", "elements_overlap", path=path)
            reach += by * (n - 1)


def _overlap(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> bool:
    if not np.may_share_memory(x, y):
        return False
    try:
        return bool(np.shares_memory(x, y, max_work=1000))  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True


def for_calls(trace: Trace, capture: Capture, positions: list[int]) -> Trace:
    """The trace with its first inputs bound to these argument leaves, whose arrays it lets go."""
    arguments = capture.inputs[: len(positions)]
    trace.leaves = positions
    trace.same = [(positions[n], input.value) for n, input in enumerate(arguments) if input in capture.met_again]
    for input in arguments:
        input.value = None
    return trace


def finish(capture: Capture, result: Any, number: int, *, numbers_become_scalars: bool = True) -> Trace:
    """The trace of a capture whose program gave `result`."""
    structure = Structure(capture, numbers_become_scalars)
    build = structure.of(result)
    structure.settle()
    trace = structure.trace(Trace, number, build, lasting=_lasting(capture, structure))
    trace.layouts = [layout for layout in trace.layouts if not capture.inputs[layout.input].captured]
    return trace


def _lasting(capture: Capture, structure: Structure) -> dict[str, list[tuple[int, int]]]:
    """What Variables hold at each operation that may raise, where they have been assigned before it."""
    found: dict[str, list[tuple[int, int]]] = {}
    numbers = {id(input): n for n, input in enumerate(capture.inputs)}
    for cell in dict.fromkeys(cell for cell, _, _ in capture.assigned_at):
        assert cell.input is not None
        writes = [(at, until) for other, at, until in capture.assigned_at if other is cell]
        for n, node in enumerate(capture.graph.nodes):
            if n >= writes[0][0] and must_run(node.op):
                held = next((until for at, until in writes if at > n), cell.node)
                if held is not cell.input.node:
                    found.setdefault(node.name, []).append((numbers[id(cell.input)], structure.output(held)))
    return found


def shared_outputs(outputs: Sequence[Node]) -> list[tuple[int, tuple[int, ...]]]:
    """Outputs that are, through views only, an input, a constant, a host operation's result, or another output's memory; and
    the ones before each that it must not share memory with. What NumPy gives in one call may: `np.nonzero` does."""
    roots = [_root(node) for node in outputs]
    sources = (Parameter, Constant, HostCall)
    found = [n for n, root in enumerate(roots) if isinstance(root.op, sources) or roots.count(root) > 1]
    return [(n, tuple(m for m in found if m < n and not _one_call(outputs[m], outputs[n]))) for n in found]


def _one_call(a: Node, b: Node) -> bool:
    """Two results of one host operation."""
    return a is not b and isinstance(a.op, Item) and isinstance(b.op, Item) and a.inputs == b.inputs


def _root(node: Node) -> Node:
    while isinstance(node.op, (View, Reshape, Item)):
        node = node.inputs[0]
    return node


class Stored:
    """A value that a function has put into a container of the caller's: its numbers stay Python's."""

    def __init__(self, value: Any) -> None:
        self.value = value


class Structure:
    """The form of a result: containers, and at the leaves tensors, NumPy scalars, Python values, and the caller's own objects.

    Arrays that alias one another in the program alias one another in the result.
    """

    def __init__(self, capture: Capture, numbers_become_scalars: bool) -> None:
        self.capture = capture
        self.numbers_become_scalars = numbers_become_scalars
        self.nodes: list[Node] = []
        self.leaves: list[tuple[Tensor, _Leaf]] = []
        self.by_tensor: dict[tuple[int, bool], _Leaf] = {}
        self.containers: dict[tuple[int, bool], _Container] = {}
        self.slots = 0  # room behind the outputs for objects that stand at several places
        self.writes: list[tuple[int, int]] = []

    def output(self, node: Node) -> int:
        self.nodes.append(node)
        return len(self.nodes) - 1

    def of(self, x: Any) -> Build:
        """A function that builds x from graph outputs and real inputs."""
        if isinstance(x, Tensor):
            x._cell.capture.check_open()
            check_known(x)
            key = id(x), self.numbers_become_scalars or x.weak is None
            leaf = self.by_tensor.get(key)
            if leaf is None:
                leaf = self.by_tensor[key] = _Leaf(x.is_scalar, None if self.numbers_become_scalars else x.weak)
                self.leaves.append((x, leaf))
                if x._cell.kinds is not None:
                    leaf.kind = self.output(x._cell.kinds.which)
            else:
                self._stands_again(leaf)
            return leaf
        if isinstance(x, np.ndarray) and type(x) is np.ndarray:
            value = self.capture.value(x)
            return self.of(value) if isinstance(value, Tensor) else _constant(x)
        if getattr(type(x), "__jitlab_variable__", False) is True:
            return self.of(x.read_value())
        if isinstance(x, Symbolic):
            raise self.capture.cannot_keep("the index of a loop")
        if isinstance(x, Stored):
            before, self.numbers_become_scalars = self.numbers_become_scalars, False
            made = self.of(x.value)
            self.numbers_become_scalars = before
            return made
        if isinstance(x, (list, tuple, dict)) or (not self.numbers_become_scalars and isinstance(x, (set, frozenset, slice))):
            return self._container(x)
        x = plain_value(x)
        self.capture.check_plain(x)
        if self.numbers_become_scalars:
            if isinstance(x, (bool, int, float, complex)) and not isinstance(x, np.generic):
                return _constant(np.asarray(x)[()])
            if not isinstance(x, (str, bytes, np.generic, type(None))):
                raise CaptureError(
                    f"{self.capture.name} returned a {type(x).__name__}: a traced function must return zero or more Tensors",
                    why="what a call gives back is made from the recorded operations' results",
                    hint="return arrays, numbers, None, and tuples, lists or dicts of them",
                )  # fmt: skip
        kept = keeps_a_recording(x)
        if kept:
            raise self.capture.cannot_keep(kept)
        return _constant(x)

    def _stands_again(self, part: _Leaf | _Container) -> None:
        """It is made once, and has room for that."""
        if part.slot is None:
            part.slot = self.slots
            self.slots += 1

    def _container(self, x: Any) -> _Container:
        """A container is one object wherever it stands."""
        key = id(x), self.numbers_become_scalars
        known = self.containers.get(key)
        if known is None:
            known = self.containers[key] = _Container(_kind(x))
            known.items = self._items(x, known)
            known.is_whole = True
        elif not known.is_whole:
            raise self.capture.cannot_keep(f"a {type(x).__name__} that holds itself")
        else:
            self._stands_again(known)
        return known

    def _items(self, x: Any, made: _Container) -> list[Build]:
        if isinstance(x, (list, tuple)):
            return [self.of(item) for item in x]
        if type(x) is slice:
            return [self.of(part) for part in (x.start, x.stop, x.step)]
        x = plain_value(x)
        self.capture.check_plain(x)
        if not isinstance(x, dict):
            return [self.of(item) for item in x]
        made.keys = [self._key(key) for key in x]
        return [self.of(item) for item in x.values()]

    def _key(self, x: Any) -> Any:
        """A key of a dict of the result."""
        if has_symbolic(x) or isinstance(x, Tensor) or (isinstance(x, tuple) and any(isinstance(part, Tensor) for part in x)):
            raise self.capture.cannot_keep("a dict whose key only a run knows")
        return plain_value(x)

    def settle(self) -> None:
        """Decide what each leaf takes from where: an input's memory, a base that several share, or a value of its own."""
        self.choose()
        bases: dict[Cell, tuple[int, Path]] = {}
        positions = {id(input): n for n, input in enumerate(self.capture.inputs)}
        for tensor, leaf in self.leaves:
            cell, leaf.lock = tensor._cell, tensor._locked
            if cell.input is not None and not tensor.is_scalar:
                leaf.input, leaf.path = positions[id(cell.input)], tensor._path
                leaf.is_another = tensor is not cell.input.tensor
            elif leaf.picked is not None:
                leaf.path = tensor._path
                leaf.is_another = cell.memory is not None and tensor is not cell.memory.array
            elif not tensor.is_scalar:
                leaf.is_another = cell in bases
                if leaf.others and isinstance(cell.memory, Chosen):
                    leaf.which = self.output(cell.memory.which)
                    leaf.is_another = tensor is not cell.memory.array
                if cell not in bases:
                    bases[cell] = self._base(cell)
                leaf.output, lies = bases[cell]
                if leaf.others:
                    leaf.lies, leaf.path = lies, tensor._path
                else:
                    leaf.path = (*lies, *tensor._path)
            else:
                leaf.output = self.output(tensor.node())
            if self.capture.root.sizes and leaf.path:
                leaf.sizes = self.sizes_in(leaf)
        written = ((n, x) for n, x in enumerate(self.capture.inputs) if x.tensor._cell.written and type(x.value) is not Address)
        self.writes = [(n, self.output(x.tensor._cell.node)) for n, x in written]

    def sizes_in(self, leaf: _Leaf) -> tuple[Mapping[str, int], tuple[int, ...]]:
        """What tells the sizes in the view that a leaf is, where the data decide them: those that are known, and the shape of
        the array that it is a view of. Where that does not tell, the recording is for these sizes."""
        by_data, wanted = self.capture.root.sizes, symbols_in(leaf.path)
        shape = self.nodes[leaf.output].shape if leaf.output >= 0 else ()
        if not wanted & by_data.keys() <= {name for n in shape if (name := symbol_of(n)) is not None}:
            for name in wanted & by_data.keys():
                noted(VALUE, Poly.symbol(name), 0, by_data[name])
            return {}, ()
        return (dict(self.capture.bounds.sizes), tuple(shape)) if wanted & by_data.keys() else ({}, ())

    def trace(self, kind: Callable[..., AnyTrace], number: int, build: Build, **more: Any) -> AnyTrace:
        """The trace of what was recorded, when each leaf is settled."""
        capture, graph = self.capture, self.capture.graph
        graph.outputs = list(self.nodes)
        generators = [generator for generator, _ in capture.generators.values() if not capture.has_input(generator)]
        return kind(
            capture.name, number, graph.without_dead(), list(capture.inputs), build, self.writes,
            shared_outputs(graph.outputs), list(capture.guards), self.slots,
            uses={input.path: capture.used[id(input)] for input in capture.inputs if id(input) in capture.used},
            generators=generators, draws=bool(generators) or any(type(x.value) is Address for x in capture.inputs),
            calls_back=capture.calls_back, rows=self.rows(), layouts=self.layouts(), asked=capture.asked, **more,
        )  # fmt: skip

    def _base(self, cell: Cell) -> tuple[int, Path]:
        """The output whose memory an array is, row by row, and the view of it that has the array's own order of axes."""
        is_laid = cell.memory is None or (cell.memory.is_choice and not self.capture.root.sizes)
        lies = cell.strides if is_laid else None
        order = [axis for axis in order_of(lies, plain(cell.node.shape)) if axis >= 0] if lies else []
        if order == sorted(order):
            return self.output(cell.read(())), ()
        axes = (*(axis for axis in range(cell.node.ndim) if axis not in order), *order)
        laid = self.capture.graph.add(transpose_view(cell.node.type, axes), cell.read(()))
        return self.output(laid), (transpose_view(laid.type, [axes.index(axis) for axis in range(len(axes))]),)

    def rows(self) -> list[int]:
        """The outputs of arrays that NumPy, where it makes them, may not have laid row by row."""
        strided = any(cell.strides is not None for cell in {tensor._cell for tensor, _ in self.leaves})
        strided = strided or any(x.is_array and not x.value.flags.c_contiguous for x in self.capture.inputs)
        return [n for n, node in enumerate(self.nodes) if node.ndim > 1] if strided else []

    def layouts(self) -> list[Layout]:
        """What the trace needs of its inputs' layouts."""
        capture, layout = self.capture, self.capture.layout
        fresh = [tensor for tensor, _ in self.leaves if not tensor.is_scalar]
        exact = layout.views and bool(layout.values or fresh or any(entry[0] is Cell.put_back for entry in capture.journal))
        ordered = layout.orders and any(tensor._cell.node.ndim > 1 and tensor._cell.input is None for tensor in fresh)
        if not (exact or ordered or layout.values):
            return []
        least = 1 if exact and layout.vectors else 2
        inputs = enumerate(capture.inputs)
        return [Layout.of(n, x.value, exact) for n, x in inputs if x.is_array and x.node.ndim >= least]


    def choose(self) -> None:
        """Find the arrays that a leaf may be, where that can be seen: the caller has them, or gets them by another leaf."""
        reached: dict[Cell, set[int]] = {}
        for number, (tensor, _) in enumerate(self.leaves):
            for cell in tensor._cell.reaches():
                reached.setdefault(cell, set()).add(number)
        for tensor, leaf in self.leaves:  # it grows
            memory = tensor._cell.memory
            seen = {} if memory is None or tensor.is_scalar else {
                id(other): self.of(other)
                for other in memory.arrays()
                if any(cell.input is not None or len(reached[cell]) > 1 for cell in other._cell.owners())
            }  # fmt: skip
            if isinstance(memory, Chosen):
                leaf.others = {n: seen[id(other)] for n, other in memory.among.items() if id(other) in seen}
            elif memory is not None and seen:
                leaf.picked = self.picked(seen[id(memory.base)], memory.lowered())
            elif not tensor.is_scalar:
                leaf.picked = self.part(tensor._cell, reached)

    def part(self, cell: Cell, reached: Mapping[Cell, Any]) -> Build | None:
        """What NumPy gives as a view of an array that the caller has, or gets, is that view: made of the real array."""
        whole = cell.parts_of() if cell.parts_of is not None else None
        if whole is None or (whole.input is None and whole not in reached):
            return None
        if cell.part is None:
            raise NotReplayable("aliasing", "numpys_view")
        base, name = self.of(cell.part[0]), cell.part[1]
        return lambda outputs, inputs: getattr(base(outputs, inputs), name)

    def picked(self, base: Build, index: Any) -> Build:
        """The view `base[index]` of a real array; nodes of the index are outputs."""
        parts = [self.output(part) if isinstance(part, Node) else _constant(plain_index(part)) for part in index]

        def build(outputs: Sequence[Any], inputs: Sequence[Any]) -> Any:
            at = tuple(int(outputs[part]) if isinstance(part, int) else part(outputs, inputs) for part in parts)
            return base(outputs, inputs)[at]

        return build


def plain_index(part: Any) -> Any:
    """A part of a subscript as NumPy takes it."""
    if isinstance(part, slice):
        return slice(*(None if n is None else int(n) for n in (part.start, part.stop, part.step)))
    return int(part) if isinstance(part, int) else part


def check_known(x: Tensor) -> None:
    """Raises where only a run knows of which array a result is a part."""
    cell = x._cell
    if cell.by_data and cell.parts_of is not None and cell.parts_of() is not None and not x.is_scalar:
        raise NotReplayable("aliasing", "view_of_chosen")


class _Leaf:
    """A tensor of the result."""

    __slots__ = (
        "input", "is_another", "is_scalar", "kind", "lies", "lock", "number", "others", "output", "path", "picked", "sizes",
        "slot", "which",
    )  # fmt: skip

    def __init__(self, is_scalar: bool, number: type | None = None) -> None:
        self.is_scalar = is_scalar
        self.number = number  # int, float, ...: a number of Python's own
        self.kind = -1  # the output that says which kind of number it is, where only a run knows
        self.lock = Lock.NONE
        self.is_another = False  # not the array that owns the memory, even when it sees all of it
        self.input = -1
        self.output = -1
        self.path: Path = ()
        self.sizes: tuple[Mapping[str, int], tuple[int, ...]] = {}, ()  # known ones, and where the array tells the others
        self.slot: int | None = None
        self.which = -1  # the output that says which of `others` it is, if it is one of them
        self.others: dict[int, Build] = {}
        self.lies: Path = ()  # the view that has its own order of axes, where it is none of them
        self.picked: Build | None = None  # makes the view that it is

    @property
    def is_plain(self) -> bool:
        """A graph output or an input as it is, or a Python number of one."""
        is_itself = not (self.path or self.is_another or self.lock or self.others) and self.picked is None
        is_number = self.number is None or (self.is_scalar and self.number in (float, int, bool))
        return is_itself and self.slot is None and is_number and self.kind < 0

    @property
    def is_known_view(self) -> bool:
        """A view of a graph output that is nothing but that, and of which each size is a number."""
        if self.is_scalar or self.lock or self.others or self.sizes[1]:
            return False
        is_of_output = self.output >= 0 > self.input and self.kind < 0
        is_that = self.number is None and self.picked is None and self.slot is None
        return bool(self.path) and is_of_output and is_that and all(map(_is_known, self.path))

    def __call__(self, outputs: Sequence[Any], inputs: Sequence[Any]) -> Any:
        if self.slot is None:
            return self.made(outputs, inputs)
        known = outputs[-1][self.slot]
        if known is None:
            known = outputs[-1][self.slot] = self.made(outputs, inputs)
        return known

    def _path_of(self, array: np.ndarray[Any, Any]) -> Path:
        """The view of an array of which the data have decided how long it is."""
        known, shape = self.sizes
        found = {name: n for extent, n in zip(shape, array.shape, strict=True) if (name := symbol_of(extent)) is not None}
        return bind_extents(self.path, {**known, **found})  # type: ignore[no-any-return]

    def made(self, outputs: Sequence[Any], inputs: Sequence[Any]) -> Any:
        if self.picked is not None:
            value = self.picked(outputs, inputs)
        else:
            value = inputs[self.input] if self.input >= 0 else outputs[self.output]
        if self.others:
            other = self.others.get(int(outputs[self.which]))
            value = view_of(value, self.lies) if other is None else other(outputs, inputs)
        if self.kind >= 0 and (kind := int(outputs[self.kind])) != ARRAY:
            value = value[()] if isinstance(value, np.ndarray) else value
            return PYTHON_KINDS[kind](value) if kind in PYTHON_KINDS else value
        if self.is_scalar:
            value = value[()] if isinstance(value, np.ndarray) else value
            return value if self.number is None else self.number(value)
        if not isinstance(value, np.ndarray):
            value = np.asarray(value)
            if self.input < 0:  # the others that are views of this output share it
                outputs[self.output] = value  # type: ignore[index]
        if self.path:
            value = view_of(value, self._path_of(value) if self.sizes[1] else self.path)
        elif self.is_another:
            value = value.view()
        if self.lock:
            value = value.view()  # not the caller's own
            value.flags.writeable = warns = self.lock is Lock.WARNS and hasattr(type(value.flags), "_warn_on_write")
            if warns:
                value.flags._warn_on_write = True
        return value


def _is_known(step: Any) -> bool:
    """Has a view sizes that no run decides, and sees each element once at most?"""
    if type(step) not in (View, Reshape) or any(isinstance(n, Moving) for n in step.shape) or 0 in plain(step.shape):
        return False
    if type(step) is Reshape:
        return True
    axes = [axis for _, _, axis in step.map if axis is not None]
    rest = [n for axis, n in enumerate(step.shape) if axis not in axes]
    numbers = (n for offset, by, _ in step.map for n in (offset, by))
    return len(set(axes)) == len(axes) and not any(isinstance(n, Moving) for n in numbers) and all(n == 1 for n in rest)


def view_of(array: np.ndarray[Any, Any], path: Path) -> np.ndarray[Any, Any]:
    """The real view of a real array, made by NumPy's own subscripts and transposes (its `.base` is what NumPy's would be)."""
    for step in path:
        match step:
            case Reshape():
                array = array.reshape(plain(step.shape))
            case Windows():
                array = step.view(array)
            case View():
                array = _real_view(step, array)
    return array


def _real_view(view: View, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    shape = plain(view.shape)
    axes = [axis for _, _, axis in view.map if axis is not None]
    if len(set(axes)) < len(axes) or 0 in shape:  # a diagonal, or nothing
        result = np.asarray(view.numpy(array))
        result.flags.writeable = array.flags.writeable
        return result
    parts: list[Any] = []
    for offset, step, axis in view.map:
        first, by = int(offset), int(step)
        if axis is None:
            parts.append(first)
        else:
            stop = first + shape[axis] * by
            parts.append(slice(first, stop if stop >= 0 else None, by))
    array = array[(*parts, ...)].transpose(sorted(range(len(axes)), key=axes.__getitem__))
    missing = tuple(axis for axis in range(len(shape)) if axis not in axes)
    if missing:
        array = np.expand_dims(array, missing)
    return array if array.shape == shape else np.broadcast_to(array, shape)


class _Same:
    """The same object each time."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self, outputs: Sequence[Any], inputs: Sequence[Any]) -> Any:
        return self.value


_constant = _Same


class _Container:
    """A list, tuple, dict, set or slice of the result. `kind` makes it of its items, or of keys and items."""

    __slots__ = ("is_whole", "items", "keys", "kind", "slot")

    def __init__(self, kind: Callable[[Any], Any]) -> None:
        self.kind = kind
        self.items: Sequence[Build] = ()
        self.keys: list[Any] | None = None
        self.is_whole = False  # its items are known
        self.slot: int | None = None

    def __call__(self, outputs: Sequence[Any], inputs: Sequence[Any]) -> Any:
        if self.slot is None:
            items = [item(outputs, inputs) for item in self.items]
            return self.kind(items if self.keys is None else zip(self.keys, items, strict=True))
        known = outputs[-1][self.slot]
        if known is None:
            items = [item(outputs, inputs) for item in self.items]
            known = outputs[-1][self.slot] = self.kind(items if self.keys is None else zip(self.keys, items, strict=True))
        return known


def _told(build: Build, leaf_of: Callable[[Any], int]) -> Any:
    """What a part of a result is, for machine code."""
    if isinstance(build, _Same):
        return Fixed(build.value)
    if isinstance(build, Found):
        return Argument(leaf_of(build.code))
    if isinstance(build, _Leaf) and build.is_plain:
        return Argument(leaf_of(build.input)) if build.input >= 0 else Output(build.output, build.is_scalar, build.number)
    if isinstance(build, _Leaf) and build.is_known_view:
        return ViewOf(build.output, tuple(build.path))
    if isinstance(build, _Container) and build.slot is None:
        is_named = isinstance(build.kind, functools.partial) and build.kind.func is like
        kind: Any = build.kind.args[0] if isinstance(build.kind, functools.partial) else build.kind
        if is_named or kind in (tuple, list, dict):
            return Packed(kind, tuple(_told(item, leaf_of) for item in build.items), tuple(build.keys or ()))
    raise Undescribed("machine code does not make such a result")


class Found:
    """An object of the user's, which stays that object: `code` says where it stands."""

    __slots__ = ("code", "function")

    def __init__(self, code: str, function: Callable[[Sequence[Any]], Any]) -> None:
        self.code, self.function = code, function

    def __call__(self, outputs: Sequence[Any], inputs: Sequence[Any]) -> Any:
        return self.function(outputs[-3])


def _kind(x: Any) -> Callable[[Any], Any]:
    """What makes a container like `x`."""
    kind = type(x)
    if kind is slice:
        return lambda items: slice(*items)
    if hasattr(kind, "_fields"):
        return functools.partial(like, kind)
    if isinstance(x, dict) and kind is not dict:
        return functools.partial(_mapping, kind, x.default_factory if hasattr(x, "default_factory") else None)
    return kind


def _mapping(kind: Any, factory: Any, items: Any) -> Any:
    result = kind() if factory is None else kind(factory)
    for key, item in items:
        result[key] = item
    return result

"""What fusion found in the way is all that was in the way, and no more: with every obstacle of an edge undone on the input of
the decision, the same decision fuses it; with any one of them left, it does not."""

import contextlib
import copy
import io
import json
import random
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell

import jitlab as jl
from jitlab.ir import ArrayType, Cluster, Graph, Joined, NestLimits, Node, NotFused, Overrides, Reason
from jitlab.ir.programs.program import Expr, Index, Load, Store, expressions
from jitlab.lower import lower, memory
from jitlab.lower.fusion import fusion
from jitlab.lower.fusion.cuts import NO_CUTS
from jitlab.lower.fusion.obstacles import FINAL, Case, undone, without
from jitlab.lower.schedule import loop_fusion
from jitlab.lower.schedule.schedule import replaced, substitute
from jitlab.ops.build_nodes import apply
from jitlab.ops.elementwise.arithmetic import Add, Mul
from jitlab.ops.elementwise.math_functions import Exp, Sqrt
from jitlab.ops.layout.concatenation import Concatenate
from jitlab.ops.layout.indexing import Take
from jitlab.ops.layout.views import Reshape, View, expand_dims, identity_map, transpose
from jitlab.ops.leaf_operations import Parameter
from jitlab.ops.linear_algebra.matrix_products import MatMul
from jitlab.ops.reducing.axis_reductions import Max, Sum
from jitlab.ops.reducing.scans import CumSum
from jitlab.targets.devices import default_target
from tests.lower import test_programs

ROOT = Path(__file__).parents[2]
LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))
sys.path.insert(0, str(ROOT / "tests" / "programs"))
from loops import PROGRAMS as LOOPS  # noqa: E402

NOTE, JOINT = fusion.Grouping._note, loop_fusion._joint
X = np.linspace(0.1, 1, 240).reshape(12, 20)
MOST_STAGES = default_target().shape.nests.stages


# ---- the decision, asked again


def takes(grouping, stage, number, undo):
    """Is the stage put into that group once these obstacles are undone?"""
    case, cuts, gone = Case(stage, grouping.groups[number], grouping.limits), grouping.cuts, set()
    for obstacle in undo:
        if obstacle.code is NotFused.WAITS:
            case = replace(case, stage=without(case.stage, {obstacle.node}))
        elif obstacle.code is NotFused.CUT:
            cuts = NO_CUTS
        elif obstacle.code is NotFused.LATER_NEST:
            gone.add(grouping.where[obstacle.node])
        else:
            case = undone(case, obstacle)
    groups = [case.group if n == number else group for n, group in enumerate(grouping.groups) if n not in gone]
    made_later = dict.fromkeys(grouping.where, len(groups))
    where = made_later | {node: n for n, group in enumerate(groups) for node in group.nodes}
    return fusion.Grouping(case.limits, cuts, True, groups, where).taken_by(case.stage) == number


class Watch:
    """Asks each decision that was taken again, and counts what was in the way. `wrong`: what does not hold, kept here since a
    cell that cannot be compiled is run by Python."""

    def __init__(self):
        self.codes, self.edges, self.several, self.asked, self.wrong = Counter(), 0, 0, 0, []

    def __call__(self, grouping, stage, at):
        NOTE(grouping, stage, at)
        for number in {grouping.where[node] for node, _ in stage.refs if node in grouping.where} - {at}:
            found = grouping.rejected(stage, number)
            self.codes.update(obstacle.code for obstacle in found)
            self.edges += 1
            if found and {obstacle.code for obstacle in found} <= FINAL:
                continue
            self.several += len(found) > 1
            if not found or not takes(grouping, stage, number, found):
                self.wrong.append(("does not suffice", stage.node, found))
            for left in found:
                if takes(grouping, stage, number, [o for o in found if o is not left]):
                    self.wrong.append(("is not needed", stage.node, found, left))


    def stored(self, cluster, values, layouts, shape, **options):
        """Lowers, and once more with the limit raised for which a value was stored: what reads it then computes it, or that is
        too expensive, and with that limit raised, too, it does."""
        made = lower(cluster, values, layouts, shape, **options)
        edges = [edge for edge in made.boundaries if edge.stored and not together(made, edge)]  # nor computed twice already
        self.codes.update(("stored for", edge.stored.code) for edge in edges)
        for first in {edge.stored.code for edge in edges}:
            other = raised({first}, cluster, values, layouts, shape, **options)
            all_raised = raised(STORED, cluster, values, layouts, shape, **options)
            for edge in (edge for edge in edges if edge.stored.code is first):
                left = [e.stored and e.stored.code for e in other.boundaries if e.producer is edge.producer]
                is_next = first is NotFused.TOO_LONG and set(left) == {NotFused.RECOMPUTE_IS_EXPENSIVE}
                if not together(other, edge) and not (is_next and together(all_raised, edge)):
                    self.wrong.append(("is stored all the same", edge))
                counted, limit = edge.stored.evidence[-2:]
                if counted < limit or edge.stored.flip.value != limit:
                    self.wrong.append(("does not pass its limit", edge))
        return made

    def joint(self, first, second, shared):
        """Two nests of a body that are not joined are, with all of what was found undone, and are not with one of it left."""
        made = JOINT(first, second, shared)
        found = made[0]
        self.codes.update(("nests", code) for code in found)
        if found and not set(found) & FINAL and len(first[0]) == len(second[0]):
            self.asked += 1
            everything = JOINT(first, like(first, second, found), shared)
            if everything[0] or (everything[1] is None and shares(first, second)):
                self.wrong.append(("nests stay apart", found, everything[0]))
            for left in found:
                if JOINT(first, like(first, second, [code for code in found if code is not left]), shared)[0] != [left]:
                    self.wrong.append(("nests need not", found, left))
        return made


def like(first, second, codes):
    """The second nest without what was found: it has the loops of the first, and reads each element where that writes it."""
    (loops, body, _), (theirs, after, kind) = first, second
    extents = loops if NotFused.DIFFERENT_SPACE in codes else theirs
    after = substitute(after, {v: Index.var(w) for (v, _), (w, _) in zip(theirs, loops, strict=True)}, positions=True)
    if NotFused.READ_AGAIN in codes:
        stores = {s.buffer: s for s in body if isinstance(s, Store)}
        every = [x for s in after for e in expressions(s) for x in loop_fusion._loads(e) if x.buffer in stores]
        moved = {id(x): replace_position(x, stores[x.buffer]) for x in every}
        after = [type(s)(*(replaced(v, moved) if isinstance(v, Expr) else v for v in vars(s).values())) for s in after]
    return [(w, n) for (w, _), (_, n) in zip(loops, extents, strict=True)], after, kind


def replace_position(load, store):
    return Load(load.buffer, store.offset, (), origins=load.origins, position=store.position)


def shares(first, second):
    return {b.name for b, _, _ in loop_fusion._accesses(first[1])} & {b.name for b, _, _ in loop_fusion._accesses(second[1])}


def raised(codes, cluster, values, layouts, shape, **options):
    """The cluster lowered as if no value had to be stored for these."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fusion.Grouping, "_note", NOTE)
        if NotFused.TOO_LONG in codes:
            patch.setattr(memory, "long_values", lambda *args: {})
        if NotFused.RECOMPUTE_IS_EXPENSIVE in codes:
            shape = replace(shape, nests=replace(shape.nests, again=1e9), recompute_operations=1e9)
        return lower(cluster, values, layouts, shape, **options)


def together(made, edge):
    """Does a kernel compute both ends?"""
    return any({edge.producer, edge.consumer} <= set(kernel.nodes) for kernel in made.kernels)


@pytest.fixture
def watch(monkeypatch):
    made = Watch()
    monkeypatch.setattr(fusion.Grouping, "_note", lambda *args: made(*args))
    monkeypatch.setattr(jl.compile, "lower", made.stored)
    monkeypatch.setattr(loop_fusion, "_joint", made.joint)
    return made


# ---- random graphs


def random_graph(rng):
    """Up to two dozen operations over a few arrays, of shapes that meet."""
    graph = Graph("random")
    shapes = rng.choice([((6, 4), (4,), (6,), (4, 6)), ((3, 6, 4), (6, 4), (3, 6)), ((24,), (6, 4)), ((1, 8), (8,), ())])
    with graph.building():
        values = [parameter(graph, shape, "f8", f"x{n}") for n, shape in enumerate(shapes)]
        rows = parameter(graph, (3,), "i8", "rows")
        for _ in range(rng.randint(3, 22)):
            made = operation(rng, values, rows)
            if made is not None and made.type.count <= 4000:
                values.append(made)
    nodes = list(graph.nodes)
    graph.outputs = [node for node in nodes if rng.random() < 0.4 or node is nodes[-1]]
    return graph


def parameter(graph, shape, dtype, name):
    kind = ArrayType(shape, np.dtype(dtype))
    return graph.append(Node(Parameter(kind), (), kind, name=name))


def operation(rng, values, rows):
    x = rng.choice(values[-6:])
    axes = tuple(sorted(rng.sample(range(x.ndim), rng.randint(1, x.ndim)))) if x.ndim else ()
    kind = rng.randrange(13)
    if kind < 3:
        others = [y for y in values if shapes_meet(x.shape, y.shape)]
        return apply(rng.choice((Add(), Mul())), x, rng.choice(others))
    if kind < 5:
        return apply(rng.choice((Exp(), Sqrt())), x)
    if kind < 8:
        if not axes:
            return None
        total = apply(rng.choice((Sum, Max))(axes), x)
        return expand_dims(total, axes) if rng.random() < 0.5 else total
    if not axes:
        return None
    if kind == 8:
        return apply(CumSum(axes[0], rng.random() < 0.3), x)
    if kind == 9:
        return transpose(x) if rng.random() < 0.5 else apply(Reshape((int(np.prod(x.shape)),)), x)
    if kind == 10:
        shape = tuple(map(int, x.shape))
        return apply(View(((shape[0] - 1, -1, 0), *identity_map(x.ndim)[1:]), shape), x)  # turned round
    if kind == 11:
        return apply(Take(0), x, rows) if int(x.shape[0]) > 3 else None
    if x.ndim == 2 and rng.random() < 0.3:
        return apply(MatMul(), x, transpose(x))
    return apply(Concatenate(0), x, x) if rng.random() < 0.3 else None


def shapes_meet(a, b):
    return len(b) <= len(a) and all(int(n) == int(m) or int(m) == 1 for n, m in zip(a[::-1], b[::-1], strict=False))


def lowered(graph, lower=lower, shape=None, **options):
    cluster = Cluster("c", list(graph.nodes), list(graph.parameters), list(graph.outputs), Reason(Joined.AUTO, ""))
    return lower(cluster, {}, ["C"] * len(graph.parameters), shape or default_target().shape, **options)


#: For what a value is stored that could be computed by what reads it.
STORED = {NotFused.RECOMPUTE_IS_EXPENSIVE, NotFused.TOO_LONG}

SMALL = NestLimits(stages=3, operations=7, deep=4, again=40)


@pytest.mark.long
@pytest.mark.parametrize("hundred", range(20))
def test_undoing_all_that_was_in_the_way_fuses_an_edge_of_a_random_graph_and_nothing_less_does(hundred, watch):
    for seed in range(100 * hundred, 100 * hundred + 100):
        rng = random.Random(seed)
        graph = random_graph(rng)
        shape, cut = default_target().shape, ()
        if seed % 4 == 3:
            shape = replace(shape, nests=SMALL)
        elif seed % 4 == 2:
            pairs = [(a.name, b.name) for b in graph.nodes for a in b.inputs if not a.op.is_parameter]
            cut = tuple(rng.sample(pairs, min(2, len(pairs))))
        lowered(graph, watch.stored, shape, overrides=Overrides(cut=cut))
    assert not watch.wrong and watch.edges > 100 and watch.several > 10


@pytest.mark.long
@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.stem)
def test_the_same_holds_in_the_lessons(lesson, watch, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shell = InteractiveShell()
    shell.run_line_magic("load_ext", "jitlab")
    for cell in json.loads(lesson.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                shell.run_cell("".join(cell["source"]))
    shell.run_line_magic("unload_ext", "jitlab")
    assert not watch.wrong


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_the_same_holds_in_programs_with_and_without_loops(watch):
    for program, arguments in test_programs.PROGRAMS:
        jl.jit(program)(*arguments)
    for program, make in list(LOOPS.items())[::4]:
        jl.jit(program)(*copy.deepcopy(make()))
    jl.jit(stencils)(X.copy())
    assert not watch.wrong and watch.edges > 30
    nests = {code for name, code in (key for key in watch.codes if isinstance(key, tuple)) if name == "nests"}
    assert watch.asked > 3 and nests >= {NotFused.DIFFERENT_SPACE, NotFused.READ_AGAIN, NotFused.OVERLAP, NotFused.UPDATED}


def stencils(x):
    x = x.copy()
    for _ in range(20):
        n = x[:-2] - x[1:-1]
        x[1:-1] += np.exp(n) * n
        m = np.concatenate([x, x * 2])
        x[:, 1:] = m[:12, 1:] * 0.5 + m[12:, :-1]
        x[:5] = x[3:8]
        x[3:9] *= 2
    return x, n, m


# ---- the codes, planted


def kept(*values):
    return values


def numbers(x):
    y = np.exp(x)
    for _ in range(60):
        y = np.tanh(y * 0.5)
        y = y + y[0, 0] * y[1, 1]
    return y


def in_a_loop(x):
    x = x.copy()
    for _ in range(20):
        n = x[:-2] - x[1:-1]
        x[1:-1] += np.exp(n) * n
    return x, n


def cut(x):
    with jl.jit_scope(cut=[("Exp", "Mul")]):
        return np.exp(x) * 2


def shares_a_later_nest(x):
    e = np.exp(x)
    return e, np.sqrt(e[::-1]) + x, e * x


def chain(x):
    for _ in list(range(150)):
        x = np.sin(x)
    return x


def looped(x):
    e = np.exp(x)
    while e.max() > 0.5:
        e = e * 0.5
    return e + 1


UNDOABLE = {
    NotFused.WHOLE_REDUCTION: lambda x: x / x.sum(),
    NotFused.REDUCED_OUTER_AXIS: lambda x: x / x.sum(axis=0),
    NotFused.GATHERED: lambda x: kept(e := np.exp(x), e[np.array([3, 1])] + 1),
    NotFused.RESHAPED: lambda x: kept(e := np.exp(x), e.reshape(20, 12) * 2),
    NotFused.DIFFERENT_SPACE: lambda x: kept(e := np.exp(x), e[:5] * 2),
    NotFused.READ_AGAIN: lambda x: kept(e := np.exp(x), e[::-1] + x),
    NotFused.SCAN: lambda x: x.cumsum(0).cumsum(1),
    NotFused.WAITS: lambda x: kept(e := np.exp(x), e - e.sum(axis=0)),
    NotFused.OTHER_AXES: lambda x: kept(e := np.exp(x), e.sum(axis=0)),
    NotFused.ORDER: lambda x: kept(e := np.exp(x), e.sum(), e * 2),
    NotFused.CUT: cut,
    NotFused.LATER_NEST: shares_a_later_nest,
    NotFused.AFTER_LOOPS: lambda x: kept(c := x.sum(axis=0), t := np.exp(c), x * t),
    NotFused.CLOSED: lambda x: kept((y := x * 2).max(), e := y + 1, e * 3),
    NotFused.TOO_MANY_VALUES: lambda x: kept(y := np.exp(x), *[y := y * 1.5 for _ in range(MOST_STAGES)]),
    NotFused.TOO_LONG: chain,
    NotFused.RECOMPUTE_IS_EXPENSIVE: lambda x: (e := np.exp(x))[:-4] + e[1:-3] + e[2:-2] + e[3:-1] + e[4:],
}


@pytest.mark.parametrize("code", UNDOABLE, ids=lambda code: code.value)
def test_a_reason_that_another_program_undoes_is_told_with_all_that_was_in_the_way(code, watch):
    edges = boundaries_of(UNDOABLE[code])
    asked_of = {NotFused.DIFFERENT_SPACE} if code is NotFused.RESHAPED else {code, ("stored for", code)}
    assert not watch.wrong and asked_of & watch.codes.keys()
    found = [edge for edge in edges if edge.reason.code is code]
    assert found, [edge.reason for edge in edges]
    for edge in found:
        told = next(r for r in (edge.rejections[0], edge.stored) if r is not None and r.code is code)
        assert told.bytes == edge.bytes
        assert all(rejection.operands and rejection.flip for rejection in (told, *edge.rejections))


FINALS = {
    NotFused.LIBRARY_CALL: lambda x: np.sort(np.exp(x), axis=1) * 2,
    NotFused.LOOP: looped,
    NotFused.UPDATED: lambda x: np.concatenate([np.exp(x), x]) * 2,
    NotFused.NUMBER: numbers,
    NotFused.OVERLAP: in_a_loop,
    NotFused.LEVEL: lambda x: np.exp(x) * 2,
}


def machine(monkeypatch, **changes):
    """Lowering for a machine of another shape."""
    shape = replace(default_target().shape, **changes)
    monkeypatch.setattr(type(default_target()), "shape", shape)


def boundaries_of(program, level="O1", argument=X):
    found = []
    real = jl.compile.lower

    def spy(*args, **named):
        made = real(*args, **named)
        found.extend(made.boundaries)
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jl.compile, "lower", spy)
        jl.jit(program, jit_level=level)(argument.copy())
    return found


def test_what_nothing_undoes_is_a_closed_list_of_six_and_each_other_code_is_undone_in_a_program_of_its_own():
    assert set(FINALS) == FINAL and len(FINAL) <= 6
    assert UNDOABLE.keys() | FINAL == set(NotFused) and not UNDOABLE.keys() & FINAL


@pytest.mark.parametrize("code", FINALS, ids=lambda code: code.value)
def test_what_no_change_of_the_other_operation_undoes_is_the_only_reason_told(code):
    edges = boundaries_of(FINALS[code], "O0" if code is NotFused.LEVEL else "O1")
    found = [edge for edge in edges if edge.reason.code is code]
    assert found, [edge.reason for edge in edges]
    assert all({rejection.code for rejection in edge.rejections} <= FINAL for edge in found)


def stored_twice(x):
    e = np.exp(x)
    return e / e.sum(axis=0)


def test_the_edge_of_a_value_that_several_kernels_would_compute_has_both_decisions():
    edges = [edge for edge in boundaries_of(stored_twice) if edge.producer.name == "exp"]
    assert {edge.reason.code for edge in edges} == {NotFused.WAITS, NotFused.OTHER_AXES}
    for edge in edges:
        assert edge.rejections[0].code is edge.reason.code
        assert edge.stored.code is NotFused.RECOMPUTE_IS_EXPENSIVE and edge.stored.evidence == (2, 20, 16)
        assert edge.stored.operands == ("exp",) and edge.stored.flip.value == 16
        assert edge.would_fuse_if.args["operations"] == 20


def powers(x):
    y = np.exp(x)
    for _ in range(60):
        y = (y @ y) * 0.5
    return y


def test_a_product_in_a_loop_that_is_large_enough_for_a_library_says_the_limit(monkeypatch):
    square = np.linspace(0.1, 1, 64 * 64).reshape(64, 64)

    def rejections():
        found = boundaries_of(powers, argument=square)
        return [r for edge in found for r in edge.rejections if r.code is NotFused.LIBRARY_CALL]

    assert rejections()
    for rejection in rejections():
        assert rejection.evidence == (64**3, 1 << 17) and rejection.flip.value == 1 << 17
    machine(monkeypatch, gemm_multiplications=1 << 60)
    assert not rejections()


def test_a_value_that_is_expensive_to_compute_again_is_not_stored_once_that_is_allowed(monkeypatch):
    code = NotFused.RECOMPUTE_IS_EXPENSIVE
    assert {edge.reason.code for edge in boundaries_of(UNDOABLE[code])} == {code}
    machine(monkeypatch, nests=replace(default_target().shape.nests, again=1e9))
    assert not boundaries_of(lambda x: (e := np.exp(x))[:-4] + e[1:-3] + e[2:-2] + e[3:-1] + e[4:])


# ---- what it costs


COLLECTING = {code.__code__ for code in (NOTE, fusion.note_moves, memory._note_why_stored, loop_fusion._note)}


def calls_of(make):
    """All calls of Python functions, and those made to collect what was in the way."""
    every, inside, depth = 0, 0, 0

    def count(frame, event, _):
        nonlocal every, inside, depth
        if event == "call":
            depth += frame.f_code in COLLECTING
            every, inside = every + 1, inside + (depth > 0)
        elif event == "return":
            depth -= frame.f_code in COLLECTING

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        made = make()
    finally:
        sys.setprofile(before)
    return made, every, inside


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_was_in_the_way_is_collected_in_a_fiftieth_of_the_calls_of_lowering(monkeypatch):
    counted = Counter()
    real = jl.compile.lower

    def spy(*args, **named):
        made, every, inside = calls_of(lambda: real(*args, **named))
        counted.update(every=every, inside=inside, edges=len(made.boundaries))
        return made

    monkeypatch.setattr(jl.compile, "lower", spy)
    for program, arguments in test_programs.PROGRAMS:
        jl.jit(program)(*arguments)
    for program, make in list(LOOPS.items())[::2]:
        jl.jit(program)(*copy.deepcopy(make()))
    assert counted["edges"] > 10 and 0 < counted["inside"] <= counted["every"] / 50

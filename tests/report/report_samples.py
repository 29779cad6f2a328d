"""Hand-made plans and events: one step of softmax regression on the hardest half of the digits, as in the design's mock."""

from dataclasses import dataclass

import numpy as np

from jitlab import events
from jitlab.ir import (
    Apart,
    ArrayType,
    Cluster,
    Clustering,
    Edge,
    Graph,
    Joined,
    KernelInfo,
    Node,
    NotFused,
    Plan,
    Reason,
    Source,
    Stays,
)
from jitlab.messages import Message
from jitlab.report import Recording

MS = 1_000_000
CELL = "<cell 7>"
SOURCE = [
    "%%jit", "with jl.jit_scope():", "    z = X @ W + b", "    z = z - z.max(axis=1, keepdims=True)", "    p = np.exp(z)",
    "    p = p / p.sum(axis=1, keepdims=True)", "loss = -np.log(p[rows, y])", "hard = np.argpartition(loss, -k)[-k:]",
    "d = (p - Y)[hard] / k", "W -= lr * (X[hard].T @ d)", "b -= lr * d.sum(axis=0)",
]  # fmt: skip


@dataclass(frozen=True)
class FakeOp:
    name: str
    is_parameter: bool = False

    @property
    def stem(self):
        return self.name.lower()

    @property
    def word(self):
        return self.name


def node(name, op, inputs=(), shape=(60000, 10), dtype="float32", line=None, scope=None):
    sources = frozenset({Source(CELL, line, 4, line, 20)}) if line else frozenset()
    attrs = {"_XlaScope": scope} if scope else {}
    parameter = op == "Placeholder"
    return Node(FakeOp(op, parameter), inputs, ArrayType(shape, np.dtype(dtype)), name=name, sources=sources, attrs=attrs)


def plan_of(graph_nodes, clusters, stays, kernels=(), boundaries=(), apart=(), function="In [7]", trace=1, parameters=()):
    graph = Graph("g", parameters=list(parameters), nodes=list(graph_nodes))
    clustering = Clustering(graph, [*clusters, *stays], dict(stays), list(apart))
    return Plan(function, trace, clustering, list(kernels), list(boundaries))


def softmax_plan(trace=1, first_cluster=0, function="In [7]"):
    x, w, b = (node(n, "Placeholder", shape=s) for n, s in (("X", (60000, 784)), ("W", (784, 10)), ("b", (10,))))
    rows, y, big = node("rows", "Placeholder", dtype="int64"), node("y", "Placeholder"), node("Y", "Placeholder")
    scope = b"jit_scope_0"
    n = {}

    def add(name, op, *inputs, line, shape=(60000, 10), marked=False):
        n[name] = node(name, op, [n.get(i, i) for i in inputs], shape, line=line, scope=scope if marked else None)
        return n[name]

    k0 = [
        add("matmul", "MatMul", x, w, line=3, marked=True),
        add("add", "AddV2", "matmul", b, line=3, marked=True),
        add("max", "Max", "add", line=4, shape=(60000, 1), marked=True),
        add("sub", "Sub", "add", "max", line=4, marked=True),
        add("exp", "Exp", "sub", line=5, marked=True),
        add("sum", "Sum", "exp", line=6, shape=(60000, 1), marked=True),
        add("div", "RealDiv", "exp", "sum", line=6, marked=True),
    ]
    k1 = [
        add("take", "Take", "div", rows, y, line=7, shape=(60000,)),
        add("log", "Log", "take", line=7, shape=(60000,)),
        add("neg", "Neg", "log", line=7, shape=(60000,)),
    ]
    host = add("argpartition", "ArgPartition", "neg", line=8, shape=(60000,))
    k2 = [
        add("slice", "StridedSlice", "argpartition", line=8, shape=(30000,)),
        add("sub_1", "Sub", "div", big, line=9),
        add("take_1", "Take", "sub_1", "slice", line=9, shape=(30000, 10)),
        add("div_1", "RealDiv", "take_1", line=9, shape=(30000, 10)),
        add("sum_1", "Sum", "div_1", line=11, shape=(10,)),
        add("mul", "Mul", "sum_1", line=11, shape=(10,)),
        add("sub_2", "Sub", b, "mul", line=11, shape=(10,)),
    ]
    k3 = [
        add("take_2", "Take", x, "slice", line=10, shape=(30000, 784)),
        add("matmul_1", "MatMul", "take_2", "div_1", line=10, shape=(784, 10)),
        add("mul_1", "Mul", "matmul_1", line=10, shape=(784, 10)),
        add("sub_3", "Sub", w, "mul_1", line=10, shape=(784, 10)),
    ]
    c0, c1 = f"cluster_{first_cluster}", f"cluster_{first_cluster + 1}"
    auto = Reason(Joined.AUTO, "they can be compiled together")
    clusters = [
        Cluster(c0, k0 + k1, [x, w, b, rows, y], [n["div"], n["neg"]], auto, "jit_scope_0"),
        Cluster(c1, k2 + k3, [n["argpartition"], n["div"]], [n["sub_2"], n["sub_3"]], auto),
    ]
    mb = 1_000_000
    kernels = [
        KernelInfo("k0", c0, tuple(k0), "nest", 188 * mb, 2400_000, 940 * mb),
        KernelInfo("k1", c0, tuple(k1), "nest", 3 * mb, 240_000, mb),
        KernelInfo("k2", c1, tuple(k2), "nest", 3 * mb, 1200_000, mb),
        KernelInfo("k3", c1, tuple(k3), "nest", 95 * mb, 31_360, 470 * mb),
    ]
    boundaries = [
        Edge(n["div"], n["take"], Reason(NotFused.READ_AGAIN, "p is stored, 2.4 MB", size_in="clause"), 2_400_000,
             Message("flip.read_where_made")),
        Edge(n["div_1"], n["matmul_1"], Reason(NotFused.LIBRARY_CALL, "d is written and read"), 1_200_000),
    ]  # fmt: skip
    apart = [
        Edge(n["div"], n["sub_1"], Reason(Apart.CYCLE, "joining them would make a cycle through ArgPartition"), 2_400_000),
        Edge(n["neg"], host, Reason(Apart.NOT_COMPILED, "one end is not compiled"), 240_000),
    ]
    stays = {host: Reason(Stays.NO_LOOP_BODY, "jitlab cannot compile it")}
    return plan_of(
        [*k0, *k1, host, *k2, *k3], clusters, stays, kernels, boundaries, apart, function, trace, (x, w, b, rows, y, big)
    )


class Clock:
    """Gives events times one after the other."""

    def __init__(self, start=1_000_000_000):
        self.now = start

    def take(self, ms):
        start = self.now
        self.now += int(ms * MS)
        return {"start_ns": start, "duration_ns": int(ms * MS)}


def said(text):
    """Why Python ran something, in other words than jitlab's."""
    return Message("refused.raised", {"text": text})


def written(code, text, form="line"):
    """A fix that is code of the program."""
    return Message(f"fix.{code}", {"paths": [], "written": text, "form": form})


def softmax_events(retraces=5, compare=True, function="In [7]", rounds=9, others=0.0):
    """Six runs: the first call, then five with another learning rate; then the same op by op."""
    clock = Clock()
    rates = ["0.1", "0.095", "0.09025", "0.0857", "0.0815", "0.0774", *(f"0.0{n}" for n in range(6, retraces + 1))]
    for i in range(retraces + 1):
        first = i == 0
        plan = softmax_plan(i + 1, 2 * i, function)
        where = ((CELL, 10, 5, 10, 7), (CELL, 11, 5, 11, 7))
        yield events.Traced(
            function=function, trace=i + 1, causes=("first_call" if first else "python_value",),
            argument="" if first else "lr", before="" if first else rates[i - 1], after="" if first else rates[i],
            lines=() if first else where, operations=22,
            fix=None if first else written("as_array", "lr = np.asarray(lr, np.float32)"),
            **clock.take(0.9),
        )  # fmt: skip
        yield events.PassRan(
            function=function, trace=i + 1, name="simplify", nodes_before=25, nodes_after=22, **clock.take(0.4)
        )
        yield events.PlanMade(function=function, trace=i + 1, plan=plan.to_json(), **clock.take(1.0))
        for cluster in plan.clustering.clusters:
            yield events.ProgramCompiled(
                function=function, trace=i + 1, cluster=cluster.name, program="abc", tier="quick",
                origin="compiled" if first else "memory", **clock.take(2.9 if first else 0.1),
            )  # fmt: skip
        yield from softmax_run(clock, plan, function, i + 1)
    if compare:
        for i in range(retraces + 1):
            for name, op, ms in REPLAY:
                yield events.OperationRan(function=function, trace=i + 1, operation=name, op=op, **clock.take(ms))
        runs = retraces + 1
        sides = ((int(ms * MS) * runs,) * rounds for ms in (47.9, 9.76))
        yield events.Compared(numpy_ns=next(sides), compiled_ns=next(sides), largest_error=2e-7, others=others)


REPLAY = [
    ("matmul", "MatMul", 6.9), ("add", "AddV2", 0.6), ("max", "Max", 3.1), ("sub", "Sub", 0.7), ("exp", "Exp", 2.4),
    ("sum", "Sum", 2.6), ("div", "RealDiv", 0.7), ("take", "Take", 0.5), ("log", "Log", 0.2), ("neg", "Neg", 0.1),
    ("argpartition", "ArgPartition", 0.94), ("slice", "StridedSlice", 0.01), ("sub_1", "Sub", 0.5), ("take_1", "Take", 0.4),
    ("div_1", "RealDiv", 0.2), ("sum_1", "Sum", 0.3), ("mul", "Mul", 0.01), ("sub_2", "Sub", 0.01), ("take_2", "Take", 24.0),
    ("matmul_1", "MatMul", 3.9), ("mul_1", "Mul", 0.02), ("sub_3", "Sub", 0.02),
]  # fmt: skip


def softmax_run(clock, plan, function, trace):
    c0, c1 = (cluster.name for cluster in plan.clustering.clusters)
    yield events.ClusterRan(function=function, trace=trace, cluster=c0, kernels_ns=(5_280_000, 200_000), **clock.take(5.48))
    yield events.HostOperationRan(
        function=function, trace=trace, operation="argpartition", op="ArgPartition", **clock.take(0.94)
    )
    yield events.ClusterRan(function=function, trace=trace, cluster=c1, kernels_ns=(140_000, 3_200_000), **clock.take(3.34))


def cell(error=None):
    return {"id": "a1b2", "execution_count": 7, "title": "In [7]", "source": SOURCE, "running": False, "error": error}


def recorded(happened, about=None):
    recording = Recording(about)
    recording.start_ns, recording.began = 1_000_000_000, 1_790_000_000.0  # the same in each report
    for event in happened:
        recording.listen(event)
    return recording


def softmax_report(**options):
    recording = recorded(softmax_events(**options), cell())
    recording.run_ns = 100_000_000
    return recording.report()

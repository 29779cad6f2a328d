"""The lines that keep a what-if: `with jl.jit_scope(...)` around statements, tried on the captured graph before they are told.

A scope says something of the operations made inside. Here the same is put onto a copy of the captured graph, which then goes
through the stages as it would have; only lines whose plan has just the kernels of the changed one are told.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from jitlab import events
from jitlab.compile import compiled_anew
from jitlab.ir import CALLS, DECISIONS, Decision, Graph, Node, Source, inner_nodes, is_operation
from jitlab.ops.control_flow import Branch, Loop
from jitlab.runtime import Executable
from jitlab.support.lazy_dataclass import dataclass

from .plan_questions import Pair, Question
from .textblocks import TextBlock, Unsplit, block_around

#: What a scope would put on a node.
Marks = Callable[[Node], "dict[str, Any] | None"]


@dataclass(frozen=True)
class Keep:
    """`lines` stand for lines `first` to `last` of `file`."""

    file: str
    first: int
    last: int
    lines: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join(self.lines)


def keep(
    executable: Executable, changed: Executable, question: Question, names: Mapping[str, Any] | None = None
) -> tuple[Keep | None, str]:
    """The lines that keep a change, and else why there are none. `names`: those of the program, where jitlab has a name."""
    if question.target is not None:
        return None, f'Where all of it runs its definition says: @jl.jit(device="{question.target.lower()}").'
    if (question.cut or question.fuse) and question.keep_out:
        return None, "No one scope says both: ask for what is kept out apart from the rest."
    if executable.captured is None or executable.options is None:
        return None, "The traced graph is not kept, so no lines can be tried."
    writer = _Writer(executable, executable.captured, changed, question, names or {})
    try:
        return writer.lines(), ""
    except Unsplit as unsplit:
        return None, str(unsplit)


class _Writer:
    """Writes scopes, and tries each."""

    def __init__(
        self, executable: Executable, captured: Graph, changed: Executable, question: Question, names: Mapping[str, Any]
    ) -> None:
        self.executable, self.graph, self.question, self.names = executable, captured, question, names
        self.wanted = shape_of(changed)
        self.named = named(executable.graph)
        self.made = named(captured)  # before the passes: where each operation was made

    def lines(self) -> Keep:
        """The scope whose plan is the changed one; Unsplit where none is."""
        question = self.question
        block = self._block([*question.keep_out, *(name for pair in (*question.cut, *question.fuse) for name in pair)])
        for argument, marks in self._kept_out(block) if question.keep_out else self._decided(block):
            if self._holds(marks):
                head = f"with {self._jitlab(block.file)}.jit_scope({argument}):"
                return Keep(block.file, block.first, block.last, block.under(head))
        at = f"line {block.first}" if block.first == block.last else f"lines {block.first} to {block.last}"
        raise Unsplit(f"No scope keeps just this: around {at} it would change other operations, too.")

    def _block(self, ends: Sequence[str]) -> TextBlock:
        """Statements that make all of these, in the innermost call that led to all of them."""
        levels = [levels_of(self.made.get(name) or self.named[name]) for name in dict.fromkeys(ends)]
        if not all(levels):
            raise Unsplit("Where these operations are made is not known, so no lines can be given.")
        depth = 0
        while all(len(level) > depth + 1 for level in levels) and len({level[depth] for level in levels}) == 1:
            depth += 1
        places = [level[depth] for level in levels]
        if len({place.file for place in places}) > 1:
            raise Unsplit("They are made in different files, and nothing that is traced calls both.")
        return block_around(places)

    # ---- cut and fuse
    def _decided(self, block: TextBlock) -> Iterator[tuple[str, Marks]]:
        """By NumPy's words, where they say too much by kinds, and then by names."""
        for way in (self._word, self._kind, lambda name: name):
            cut, fuse = (
                tuple(dict.fromkeys((way(a), way(b)) for a, b in pairs)) for pairs in (self.question.cut, self.question.fuse)
            )
            entries: dict[tuple[Source, ...], Decision] = {}

            def marks(
                node: Node, cut: tuple[Pair, ...] = cut, fuse: tuple[Pair, ...] = fuse,
                entries: dict[tuple[Source, ...], Decision] = entries,
            ) -> dict[str, Any] | None:  # fmt: skip
                levels = levels_of(node)
                at = next((n for n, level in enumerate(levels) if block.holds(level)), None)
                if at is None:
                    return None
                decision = entries.setdefault(levels[:at], Decision(cut, fuse))  # an entry for each call that leads there
                return {DECISIONS: (*node.attrs.get(DECISIONS, ()), decision)}

            told = [f"{option}={_pairs_text(pairs)}" for option, pairs in (("cut", cut), ("fuse", fuse)) if pairs]
            yield ", ".join(told), marks

    def _word(self, name: str) -> str:
        return str(self.named[name].op.word)

    def _kind(self, name: str) -> str:
        return str(self.named[name].op.name)

    # ---- kept out
    def _kept_out(self, block: TextBlock) -> Iterator[tuple[str, Marks]]:
        """compile_ops=False where all that is made there is kept out, else a function of NumPy's name, or the operation's."""
        kept = set(self.question.keep_out)
        words = sorted({self._word(name) for name in kept})
        ways: list[tuple[str, Callable[[Node], bool]]] = [
            ("compile_ops=False", lambda node: False),
            (f"lambda op: op.word {_unequal(words)}", lambda node: str(node.op.word) not in words),
            (f"lambda op: op.name {_unequal(sorted(kept))}", lambda node: node.name not in kept),
        ]
        for argument, compiles in ways:

            def marks(node: Node, compiles: Callable[[Node], bool] = compiles) -> dict[str, Any] | None:
                if not any(block.holds(level) for level in levels_of(node)):
                    return None
                scope = node.attrs.get("_XlaScope", b"jit_scope_of_what_if")
                return {"_XlaCompile": compiles(node), "_XlaScope": scope, "_XlaSeparateCompiledGradients": False}

            yield argument, marks

    # ---- trying
    def _holds(self, marks: Marks) -> bool:
        """Do these marks give the plan that is wanted?"""
        with events.muted():
            made = compiled_anew(self.executable, marked(self.graph, marks, deep=not self.question.keep_out))
            made.prepare()
        return shape_of(made) == self.wanted

    def _jitlab(self, file: str) -> str:
        """What the module jitlab is called where the lines stand."""
        module = next((m for m in list(sys.modules.values()) if getattr(m, "__file__", None) == file), None)
        return module_name(vars(module) if module is not None else self.names)


def module_name(names: Mapping[str, Any]) -> str:
    """What the module jitlab is called among these names."""
    return next((name for name, value in list(names.items()) if getattr(value, "__name__", "") == "jitlab"), "jl")


def levels_of(node: Node) -> tuple[Source, ...]:
    """The calls that led to a node, outermost first, and its own place; () where nothing is known."""
    own = min(node.sources, default=None)
    return () if own is None else (*node.attrs.get(CALLS, ()), own)


def named(graph: Graph) -> dict[str, Node]:
    """All operations of a graph, those inside loops and branches under the names that reports have."""
    found = {node.name: node for node in graph.nodes}
    found.update((name, inner) for node in graph.nodes for inner, name, _ in inner_nodes(node))
    return {name: node for name, node in found.items() if is_operation(node)}


def marked(graph: Graph, marks: Marks, *, deep: bool, renewed: dict[int, Any] | None = None) -> Graph:
    """The graph as capture would have made it inside scopes. `deep`: what is in bodies, too."""
    made = {} if renewed is None else renewed  # loops and branches by the id of what they were

    def renew(op: Any) -> Any:
        bodies = {
            name: marked(body, marks, deep=True, renewed=made) for name in ("body", "test", "then", "orelse")
            if (body := getattr(op, name, None)) is not None
        }  # fmt: skip
        return replace(op, **bodies, replays=made.get(id(op.replays), op.replays))

    for node in graph.nodes if deep else ():
        if isinstance(node.op, (Loop, Branch)):
            made[id(node.op)] = renew(node.op)

    def rule(node: Node) -> None:
        found = marks(node)
        if found is not None:
            node.attrs.update(found)
        node.op = made.get(id(node.op), node.op)

    new = graph.rewrite(rule)
    new.marked_only = graph.marked_only
    return new


def shape_of(executable: Executable) -> list[Any]:
    """Which operations share a kernel, and inside loops and branches a nest."""
    found = [
        (sorted(node.name for node in kernel.nodes), [sorted(o.name for o in nest.origins) for nest in kernel.nests])
        for kernel in executable.plan.kernels
    ]  # fmt: skip
    return sorted(found)


def kernels_of(executable: Executable) -> set[frozenset[str]]:
    """Which operations share a kernel."""
    return {frozenset(node.name for node in kernel.nodes) for kernel in executable.plan.kernels}


def _pairs_text(pairs: Sequence[Pair]) -> str:
    told = [f'("{a}", "{b}")' for a, b in pairs]
    return told[0] if len(told) == 1 else f"[{', '.join(told)}]"


def _unequal(names: Sequence[str]) -> str:
    return f"!= {names[0]!r}" if len(names) == 1 else f"not in {tuple(names)!r}"


__all__ = ["Keep", "keep", "kernels_of", "module_name", "shape_of"]

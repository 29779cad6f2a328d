"""A function in pieces written again as one Python function: its own statements in line, each piece a call.

before: y = x * 2 + 1
        print(len(y))
        return y * 3 - 1
after:  if (made := piece_0(x)) is not NONE: y = made
        else: y = x * 2 + 1
        print(len(y))
        if (state() is QUIET or is_quiet()) and (made := piece_1(y)) is not NONE: return made
        else: return y * 3 - 1

Where somebody is told of runs, a statement of Python's is
        started = clock()
        try: print(len(y))
        finally: noted(0, started)

So what a piece does not serve Python runs as it stands. A piece is called where all that it reads is bound for certain, and,
after anything of Python's, where NumPy is asked to be quiet about floating-point errors.
"""

from __future__ import annotations

import ast
import copy
import types
from collections.abc import Callable, Sequence

from jitlab.capture.drivers.piece_traces import PieceTrace
from jitlab.errors import Signal
from jitlab.support import trees
from jitlab.support.lazy_dataclass import dataclass

from .body_code import Body
from .flow_rewrite import function_node
from .liveness import bound_by, bound_for_certain, read_before_bound
from .piece_statements import RESULT, RETURN, Condition, Loop, Parts, Segment, Statement, Wrapped

Names = frozenset[str]

#: Names of the written function: what a piece gave, what none gives, NumPy's state for errors, the quiet one, and what looks at
#: another; when a statement began, the clock, and what notes it.
MADE, NONE, STATE, QUIET, IS_QUIET, STARTED, CLOCK, NOTED = (
    f"__jl_{name}__" for name in ("made", "none", "state", "quiet", "is_quiet", "started", "clock", "noted")
)

#: The number that notes of a statement go by, which stands there in its segment, and whose blocks are written out (True), or
#: which Python runs whole; None: nothing is said of it.
Number = Callable[[Segment, int, bool], "int | None"]


class Unwritten(Signal):
    """Such a function is not written again."""


@dataclass
class PieceAt:
    """A piece of the written function, which calls it by `name`: with these names of its own, for these."""

    name: str
    traces: list[PieceTrace]
    arguments: tuple[str, ...]
    outputs: tuple[str, ...]


def written(body: Body, number: Number = lambda here, at, in_parts: None) -> tuple[types.CodeType, list[PieceAt]]:
    """The code of the function, whose free names are those of the pieces, those above and the user's; and the pieces."""
    writer = _Writer(body, number)
    given = copy.deepcopy(body.arguments)
    given.defaults, given.kw_defaults = [], [None for _ in given.kwonlyargs]
    for argument in trees.walk(given):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    names = [argument.arg for argument in trees.walk(given) if isinstance(argument, ast.arg)]
    statements = writer.segment(body.segment, frozenset(names), after_python=False)
    if not writer.pieces:
        raise Unwritten
    line = body.function.__code__.co_firstlineno
    first = ast.Pass(lineno=line, col_offset=0, end_lineno=line, end_col_offset=0)
    outer: list[ast.stmt] = [ast.Global(sorted(body.globals))] if body.globals else []
    outer += [ast.Nonlocal(sorted(body.nonlocals))] if body.nonlocals else []
    definition = ast.copy_location(function_node(body.inner_name, given, [*outer, *statements]), first)
    around = (*(piece.name for piece in writer.pieces), NONE, STATE, QUIET, IS_QUIET, CLOCK, NOTED)
    return body.inner_code(definition, frozenset(), around), writer.pieces


class _Writer:
    def __init__(self, body: Body, number: Number) -> None:
        self.body, self.number, self.pieces = body, number, list[PieceAt]()
        self.outputs: list[str] = []  # of the pieces

    def segment(self, segment: Segment, bound: Names, *, after_python: bool) -> list[ast.stmt]:
        """The statements of a block, before which these names are bound for certain."""
        here = segment.newest
        return self.statements(here, 0, len(here.statements), bound, after_python)

    def statements(self, here: Segment, at: int, end: int, bound: Names, after_python: bool) -> list[ast.stmt]:
        made = list[ast.stmt]()
        while at < end:
            statement = here.statements[at]
            if statement.asks:  # what it calls is another function at each run
                raise Unwritten
            piece = self.piece(here, at, end, bound, after_python)
            if piece is not None:
                own, length = piece
                made += own
            elif statement.step is not None and statement.step.exposed:
                made += self.noted(here, at, copy.deepcopy(statement.rest().node))
                after_python, length = True, _end_of_group(here, at) + 1 - at
            else:
                made += self.plain(here, at, bound)
                after_python, length = True, 1
            bound = self.bound_after(here.statements[at : at + length], bound, piece is not None)
            last, at = here.statements[at + length - 1], at + length
            if last.group is not None and last.step is None and not isinstance(last.node, ast.Return):
                made.append(_at(last.node, _assign(sorted(last.group.names), ast.Constant(None))))
        return made

    def bound_after(self, statements: Sequence[Statement], bound: Names, is_piece: bool) -> Names:
        nodes = [statement.node for statement in statements]
        new = bound_for_certain(nodes)
        if is_piece:
            new &= frozenset(self.outputs)
        return (bound | new) - _unbound(nodes)

    # ---- what is compiled
    def piece(self, here: Segment, at: int, end: int, bound: Names, after_python: bool) -> tuple[list[ast.stmt], int] | None:
        """The call of a piece, with its statements behind it, and how many they are; None: there is none."""
        known = [trace for trace in here.traces.get(at, ()) if not trace.is_silent and not trace.calls_back]
        if not known or at in here.retired or here.statements[at].plain_reason is not None:
            return None
        if any(trace.effects for trace in known):  # an error that giving something out raises is of its own line
            raise Unwritten
        first, length = known[0], known[0].length
        outputs, statements = _outputs(first), here.statements[at : at + length]
        nodes = [statement.node for statement in statements]
        alike = [t for t in known if (t.length, t.jump, _outputs(t)) == (length, first.jump, outputs)]
        read = self.body.own(read_before_bound(nodes))
        if not read <= bound or at + length > end:
            return None
        made = PieceAt(f"__jl_piece_{len(self.pieces)}__", alike, tuple(sorted(read)), outputs)
        self.pieces.append(made)
        self.outputs += outputs
        served, missed = self.given(made, first.jump), [copy.deepcopy(node) for node in nodes]
        exposed = next((n for n, each in enumerate(statements) if each.step is not None and each.step.exposed), None)
        if exposed is not None:  # Python evaluates that statement whole, in its own order
            last = _end_of_group(here, at + exposed) - at
            missed[exposed : last + 1] = [copy.deepcopy(statements[exposed].rest().node)]
            if last >= length:
                bound = self.bound_after(statements, bound, True)
                served += self.statements(here, at + length, at + last + 1, bound, False)
                length = last + 1
        call = ast.Call(_name(made.name), [_name(name) for name in made.arguments], [])
        test: ast.expr = ast.Compare(ast.NamedExpr(_name(MADE, ast.Store()), call), [ast.IsNot()], [_name(NONE)])
        if after_python:
            state = ast.Compare(ast.Call(_name(STATE), [], []), [ast.Is()], [_name(QUIET)])
            quiet = ast.BoolOp(ast.Or(), [state, ast.Call(_name(IS_QUIET), [], [])])
            test = ast.BoolOp(ast.And(), [quiet, test])
        return [_at(nodes[0], ast.If(test, served, missed))], length

    def given(self, piece: PieceAt, jump: str) -> list[ast.stmt]:
        """What it gives, under its names."""
        if jump == RETURN and len(piece.outputs) == 1:
            return [ast.Return(_name(MADE))]
        target: ast.expr = ast.Tuple([_name(name, ast.Store()) for name in piece.outputs], ast.Store())
        if len(piece.outputs) == 1:
            target = _name(piece.outputs[0], ast.Store())
        made: list[ast.stmt] = [ast.Assign([target], _name(MADE))] if piece.outputs else []
        if piece.outputs:
            made.append(_assign([MADE], ast.Constant(None)))  # it keeps nothing alive
        if jump == RETURN:
            made.append(ast.Return(_name(RESULT)))
        elif jump:
            made.append(ast.Break() if jump == "break" else ast.Continue())
        return made or [ast.Pass()]

    # ---- what is Python's
    def noted(self, here: Segment, at: int, node: ast.stmt) -> list[ast.stmt]:
        """A statement, and the note of it."""
        number = self.number(here, at, False)
        if number is None:
            return [node]
        started = _assign([STARTED], ast.Call(_name(CLOCK), [], []))
        return [_at(node, started), _at(node, ast.Try([node], [], [], [_note(number, _name(STARTED))]))]

    def plain(self, here: Segment, at: int, bound: Names) -> list[ast.stmt]:
        statement = here.statements[at]
        node, parts = statement.node, statement.known_parts
        if parts is None or not any(map(_has_pieces, parts.segments)):
            return self.noted(here, at, copy.deepcopy(node))
        before = self.segment(parts.before, bound, after_python=True)
        match node, parts:
            case ast.If(), Condition():
                body, orelse = self.blocks(parts.body, parts.orelse, bound=bound)
                made: ast.stmt = ast.If(_test(node.test, parts.test.header), body, orelse)
            case ast.While(), Loop():
                made = self.loop(node, parts, bound)
            case ast.For(), Wrapped():
                blocks = self.blocks(*parts.blocks, bound=bound | bound_by(node.target))
                header = parts.before.statements[-1].header if parts.before.statements else ""
                orelse = blocks[1] if len(blocks) > 1 else []
                made = ast.For(copy.deepcopy(node.target), _test(node.iter, header), blocks[0], orelse, None)
            case ast.With(), Wrapped():
                (body,) = self.blocks(*parts.blocks, bound=bound)
                made = ast.With(copy.deepcopy(node.items), body, None)
            case ast.Try(), Wrapped():
                made = self.tried(node, parts, bound)
            case _:
                raise Unwritten
        number = self.number(here, at, True)
        told = [] if number is None else [_at(node, _note(number, ast.Call(_name(CLOCK), [], [])))]
        return [*told, *before, _at(node, made)]

    def tried(self, node: ast.Try, parts: Wrapped, bound: Names) -> ast.stmt:
        left = list(parts.blocks)
        body, handlers = self.blocks(left.pop(0), bound=bound)[0], list[ast.ExceptHandler]()
        kept = bound - _unbound([node])
        for handler in node.handlers:
            made = copy.copy(handler)
            made.type = copy.deepcopy(handler.type)
            made.body = self.blocks(left.pop(0), bound=kept | ({handler.name} if handler.name else frozenset()))[0]
            handlers.append(made)
        orelse = self.blocks(left.pop(0), bound=bound)[0] if node.orelse else []
        final = self.blocks(left.pop(0), bound=kept)[0] if node.finalbody else []
        return ast.Try(body, handlers, orelse, final)

    def blocks(self, *blocks: Segment, bound: Names) -> list[list[ast.stmt]]:
        return [self.segment(block, bound, after_python=True) or [ast.Pass()] * (n == 0) for n, block in enumerate(blocks)]

    def loop(self, node: ast.While, parts: Loop, bound: Names) -> ast.stmt:
        if node.orelse:
            raise Unwritten
        turn = self.segment(parts.turn, bound, after_python=True)
        (body,) = self.blocks(parts.body, bound=bound)
        test = _test(node.test, parts.test.header)
        if not turn:
            return ast.While(test, body, [])
        return ast.While(ast.Constant(True), [*turn, ast.If(ast.UnaryOp(ast.Not(), test), [ast.Break()], []), *body], [])


def _end_of_group(here: Segment, at: int) -> int:
    """Where the statement stands whose step this is."""
    return next(n for n in range(at, len(here.statements)) if here.statements[n].step is None)


def _outputs(trace: PieceTrace) -> tuple[str, ...]:
    """The names that it gives, what it returns last."""
    return tuple(name for name, _ in trace.outputs)


def _has_pieces(segment: Segment) -> bool:
    here = segment.newest
    return bool(here.traces) or any(statement.asks or _in_parts(statement.known_parts) for statement in here.statements)


def _in_parts(parts: Parts | None) -> bool:
    return parts is not None and any(map(_has_pieces, parts.segments))


def _unbound(nodes: Sequence[ast.AST]) -> Names:
    """Names that statements may leave without a value."""
    found: set[str] = set()
    for part in (part for node in nodes for part in trees.walk(node)):
        if isinstance(part, ast.ExceptHandler) and part.name:
            found.add(part.name)
        elif isinstance(part, ast.Delete):
            raise Unwritten
    return frozenset(found)


def _test(node: ast.expr, header: str) -> ast.expr:
    return ast.copy_location(_name(header), node) if header else copy.deepcopy(node)


def _name(name: str, context: ast.expr_context | None = None) -> ast.Name:
    return ast.Name(name, context or ast.Load())


def _assign(names: Sequence[str], value: ast.expr) -> ast.stmt:
    return ast.Assign([_name(name, ast.Store()) for name in names], value)


def _note(number: int, started: ast.expr) -> ast.stmt:
    return ast.Expr(ast.Call(_name(NOTED), [ast.Constant(number), started], []))


def _at(place: ast.stmt, made: ast.stmt) -> ast.stmt:
    """What was written, where a statement stands; the user's own parts of it stay where they are."""
    for part in ast.walk(made):
        if "lineno" in part._attributes and not hasattr(part, "lineno"):
            ast.copy_location(part, place)
            part.end_lineno, part.end_col_offset = place.lineno, place.col_offset  # type: ignore[attr-defined]
    return made


__all__ = ["CLOCK", "IS_QUIET", "NONE", "NOTED", "QUIET", "STATE", "PieceAt", "Unwritten", "written"]

"""A function without readable source, read from its bytecode: statements one after the other and `if`, no loops.

The instructions are run on a stack of expressions; what comes out is a definition like one that was parsed, for the same
conversion. Anything else (loops, `with`, `try`, functions inside) is left to Python.
"""

from __future__ import annotations

import ast
import dis
import inspect
import types
from typing import Any

from jitlab.errors import Signal

from .convert import adopt, find_definition
from .flow_rewrite import function_node

#: Instructions in a definition at most; what follows an `if` is read once for each side.
MOST = 2000


class Unreadable(Signal):
    """An instruction that is not read."""


def read_definition(function: types.FunctionType) -> ast.FunctionDef | None:
    """The definition of a function from its bytecode; None when it has more than is read."""
    code = function.__code__
    if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR) or code.co_cellvars:
        return None
    try:
        body = _Reader(code).block(0, [])
    except (Unreadable, IndexError, RecursionError):
        return None
    names = list(code.co_varnames)
    count, keywords = code.co_argcount, code.co_kwonlyargcount
    args = [ast.arg(arg=name) for name in names[: count + keywords]]
    rest = iter(names[count + keywords :])
    arguments = ast.arguments(
        posonlyargs=args[: code.co_posonlyargcount], args=args[code.co_posonlyargcount : count],
        vararg=ast.arg(arg=next(rest)) if code.co_flags & inspect.CO_VARARGS else None, kwonlyargs=args[count:],
        kw_defaults=[None] * keywords, kwarg=ast.arg(arg=next(rest)) if code.co_flags & inspect.CO_VARKEYWORDS else None,
        defaults=[],
    )  # fmt: skip
    name = code.co_name if code.co_name.isidentifier() else "function"
    made = function_node(name, arguments, body)
    made.lineno = made.end_lineno = code.co_firstlineno
    made.col_offset = made.end_col_offset = 0
    return ast.fix_missing_locations(made)


def read_bytecode(function: Any) -> None:
    """Give a function whose source cannot be read the definition that its bytecode tells of, where it does."""
    if isinstance(function, types.FunctionType) and find_definition(function) is None:
        found = read_definition(function)
        if found is not None:
            adopt(function, found)


class _Null:
    """What a call finds below its function when it is no method."""


_NULL: Any = _Null()


class _Reader:
    def __init__(self, code: types.CodeType) -> None:
        self.steps = [step for step in dis.get_instructions(code) if step.opname not in _SKIPPED]
        self.at = {step.offset: n for n, step in enumerate(self.steps)}
        self.jumped: dict[int, int] = {}  # offset -> the first instruction that is read there or after it
        later = len(self.steps)
        for step in reversed(list(dis.get_instructions(code))):
            later = self.at.get(step.offset, later)
            self.jumped[step.offset] = later
        self.constants = code.co_consts
        self.read = self.temporaries = 0
        self.keywords: tuple[str, ...] = ()

    def block(self, n: int, stack: list[Any]) -> list[ast.stmt]:
        """The statements from instruction `n` to the return."""
        statements: list[ast.stmt] = []
        while True:
            step = self.steps[n]
            self.read += 1
            if self.read > MOST:
                raise Unreadable
            n += 1
            first = len(statements)
            name = step.opname
            if name in ("RETURN_VALUE", "RETURN_CONST"):
                value = stack.pop() if name == "RETURN_VALUE" else ast.Constant(step.argval)
                statements.append(ast.Return(value))
                return self._placed(statements, first, step)
            if name == "JUMP_FORWARD":
                n = self.jumped[step.argval]
            elif name.startswith("POP_JUMP_") and "BACKWARD" not in name:
                test = self._test(name, stack.pop())
                self._spill(stack, statements)
                then, orelse = self.block(n, list(stack)), self.block(self.jumped[step.argval], list(stack))
                statements.append(ast.If(test, then, orelse))
                return self._placed(statements, first, step)
            else:
                self.step(step, stack, statements)
            self._placed(statements, first, step)

    def _test(self, name: str, value: ast.expr) -> ast.expr:
        """The condition under which the jump is not taken."""
        if name.endswith("IF_FALSE"):
            return value
        if name.endswith("IF_TRUE"):
            return ast.UnaryOp(ast.Not(), value)
        none = ast.Constant(None)
        return ast.Compare(value, [ast.Is() if name.endswith("IF_NOT_NONE") else ast.IsNot()], [none])

    def step(self, step: dis.Instruction, stack: list[Any], statements: list[ast.stmt]) -> None:
        name, arg = step.opname, step.argval
        if name in _PAIRS:
            for half, variable in zip(_PAIRS[name], arg, strict=True):
                if half == "load":
                    stack.append(ast.Name(variable, ast.Load()))
                else:
                    self._store(ast.Name(variable, ast.Store()), stack.pop(), stack, statements)
        elif name in ("LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW", "LOAD_DEREF", "LOAD_GLOBAL"):
            if name == "LOAD_GLOBAL" and step.arg is not None and step.arg & 1:
                stack.append(_NULL)
                arg = str(arg).removeprefix("NULL + ")
            stack.append(ast.Name(arg, ast.Load()))
            if name == "LOAD_GLOBAL" and step.arg is not None and step.arg & 1 and _NULL_ABOVE:
                stack[-2:] = [stack[-1], _NULL]
        elif name in ("LOAD_CONST", "LOAD_SMALL_INT"):
            stack.append(_constant(arg))
        elif name == "PUSH_NULL":
            stack.append(_NULL)
        elif name in ("LOAD_ATTR", "LOAD_METHOD"):
            is_method = name == "LOAD_METHOD" or (_HAS_METHOD_BIT and bool((step.arg or 0) & 1))
            value = ast.Attribute(stack.pop(), str(arg).removeprefix("NULL|self + "), ast.Load())
            stack.extend(([value, _NULL] if _NULL_ABOVE else [_NULL, value]) if is_method else [value])
        elif name == "KW_NAMES":
            self.keywords = self.constants[step.arg or 0]
        elif name in ("CALL", "CALL_KW"):
            self._call(name, step.arg or 0, stack)
        elif name == "BINARY_OP":
            right, left = stack.pop(), stack.pop()
            sign = step.argrepr
            if sign == "[]":
                stack.append(ast.Subscript(left, right, ast.Load()))
            else:
                self._binary(sign, left, right, stack, statements)
        elif name == "BINARY_SUBSCR":
            index = stack.pop()
            stack.append(ast.Subscript(stack.pop(), index, ast.Load()))
        elif name == "BINARY_SLICE":
            stop, start = stack.pop(), stack.pop()
            stack.append(ast.Subscript(stack.pop(), ast.Slice(start, stop), ast.Load()))
        elif name == "STORE_SUBSCR":
            index, owner, value = stack.pop(), stack.pop(), stack.pop()
            self._store(ast.Subscript(owner, index, ast.Store()), value, stack, statements)
        elif name == "STORE_SLICE":
            stop, start, owner, value = (stack.pop() for _ in range(4))
            self._store(ast.Subscript(owner, ast.Slice(start, stop), ast.Store()), value, stack, statements)
        elif name == "STORE_ATTR":
            owner, value = stack.pop(), stack.pop()
            self._store(ast.Attribute(owner, arg, ast.Store()), value, stack, statements)
        elif name == "STORE_FAST":
            self._store(ast.Name(arg, ast.Store()), stack.pop(), stack, statements)
        elif name == "POP_TOP":
            value = stack.pop()
            self._spill(stack, statements)
            statements.append(ast.Expr(value))
        elif name in _UNARY:
            stack.append(ast.UnaryOp(_UNARY[name](), stack.pop()))
        elif name == "COMPARE_OP":
            right = stack.pop()
            sign = str(arg).removeprefix("bool(").removesuffix(")")
            stack.append(ast.Compare(stack.pop(), [_COMPARISONS[sign]()], [right]))
        elif name in ("IS_OP", "CONTAINS_OP"):
            right, kinds = stack.pop(), (ast.Is, ast.IsNot) if name == "IS_OP" else (ast.In, ast.NotIn)
            stack.append(ast.Compare(stack.pop(), [kinds[step.arg or 0]()], [right]))
        elif name == "BUILD_SLICE":
            parts = self._popped(stack, step.arg or 0)
            stack.append(ast.Slice(*parts))
        elif name in ("BUILD_TUPLE", "BUILD_LIST"):
            kind = ast.Tuple if name == "BUILD_TUPLE" else ast.List
            stack.append(kind(self._popped(stack, step.arg or 0), ast.Load()))
        elif name == "BUILD_MAP":
            parts = self._popped(stack, 2 * (step.arg or 0))
            stack.append(ast.Dict(parts[::2], parts[1::2]))
        elif name == "BUILD_CONST_KEY_MAP":
            keys = stack.pop()
            values = self._popped(stack, step.arg or 0)
            stack.append(ast.Dict([_constant(key) for key in keys.value], values))
        elif name == "SWAP":
            self._spill(stack, statements)
            depth = step.arg or 0
            stack[-1], stack[-depth] = stack[-depth], stack[-1]
        elif name == "COPY":
            self._spill(stack, statements)
            stack.append(stack[-(step.arg or 0)])
        elif name == "UNPACK_SEQUENCE":
            value = stack.pop()
            self._spill(stack, statements)
            made = [self._temporary() for _ in range(step.arg or 0)]
            target = ast.Tuple([ast.Name(temporary, ast.Store()) for temporary in made], ast.Store())
            statements.append(ast.Assign([target], value))
            stack.extend(ast.Name(temporary, ast.Load()) for temporary in reversed(made))
        else:
            raise Unreadable(name)

    def _call(self, name: str, count: int, stack: list[Any]) -> None:
        keywords = self.keywords
        self.keywords = ()
        if name == "CALL_KW":
            keywords = stack.pop().value
        args = self._popped(stack, count)
        top, below = stack.pop(), stack.pop()
        if _NULL not in (top, below):
            raise Unreadable
        named = [ast.keyword(key, value) for key, value in zip(keywords, args[len(args) - len(keywords) :], strict=True)]
        stack.append(ast.Call(below if top is _NULL else top, args[: len(args) - len(keywords)], named))

    def _binary(self, sign: str, left: Any, right: Any, stack: list[Any], statements: list[ast.stmt]) -> None:
        if not sign.endswith("=") or sign in _BINARY:
            stack.append(ast.BinOp(left, _BINARY[sign](), right))
            return
        self._spill(stack, statements)  # `x += y`: into x itself where that can be, and the result is bound next
        target = self._temporary()
        statements.append(ast.Assign([ast.Name(target, ast.Store())], left))
        statements.append(ast.AugAssign(ast.Name(target, ast.Store()), _BINARY[sign[:-1]](), right))
        stack.append(ast.Name(target, ast.Load()))

    def _store(self, target: Any, value: Any, stack: list[Any], statements: list[ast.stmt]) -> None:
        self._spill(stack, statements)
        statements.append(ast.Assign([target], value))

    def _spill(self, stack: list[Any], statements: list[ast.stmt]) -> None:
        """What is on the stack was computed before what comes now."""
        for n, value in enumerate(stack):
            if isinstance(value, (ast.Constant, _Null)) or (isinstance(value, ast.Name) and value.id.startswith(_TEMPORARY)):
                continue
            name = self._temporary()
            statements.append(ast.Assign([ast.Name(name, ast.Store())], value))
            stack[n] = ast.Name(name, ast.Load())

    def _temporary(self) -> str:
        self.temporaries += 1
        return f"{_TEMPORARY}{self.temporaries}"

    def _popped(self, stack: list[Any], count: int) -> list[Any]:
        if not count:
            return []
        found = stack[-count:]
        del stack[-count:]
        return found

    def _placed(self, statements: list[ast.stmt], first: int, step: dis.Instruction) -> list[ast.stmt]:
        line = step.positions.lineno if step.positions is not None and step.positions.lineno else 1
        for statement in statements[first:]:
            statement.lineno = statement.end_lineno = line
            statement.col_offset = statement.end_col_offset = 0
            ast.fix_missing_locations(statement)
        return statements


def _constant(value: Any) -> ast.expr:
    if isinstance(value, types.CodeType):
        raise Unreadable
    if isinstance(value, slice):
        return ast.Slice(*(None if part is None else _constant(part) for part in (value.start, value.stop, value.step)))
    return ast.Constant(value)


_TEMPORARY = "jl_stack_"
_SKIPPED = frozenset({"RESUME", "NOP", "CACHE", "PRECALL", "COPY_FREE_VARS", "TO_BOOL", "NOT_TAKEN", "EXTENDED_ARG"})
#: Since 3.13 the NULL of a call lies above the function; since 3.12 LOAD_ATTR loads methods, too.
_NULL_ABOVE = "CALL_KW" in dis.opmap
_HAS_METHOD_BIT = "LOAD_METHOD" not in dis.opmap
_PAIRS = {
    "LOAD_FAST_LOAD_FAST": ("load", "load"), "LOAD_FAST_BORROW_LOAD_FAST_BORROW": ("load", "load"),
    "STORE_FAST_LOAD_FAST": ("store", "load"), "STORE_FAST_STORE_FAST": ("store", "store"),
}  # fmt: skip
_UNARY = {"UNARY_NEGATIVE": ast.USub, "UNARY_NOT": ast.Not, "UNARY_INVERT": ast.Invert, "UNARY_POSITIVE": ast.UAdd}
_BINARY: dict[str, type[ast.operator]] = {
    "+": ast.Add, "-": ast.Sub, "*": ast.Mult, "/": ast.Div, "//": ast.FloorDiv, "%": ast.Mod, "**": ast.Pow, "@": ast.MatMult,
    "<<": ast.LShift, ">>": ast.RShift, "&": ast.BitAnd, "|": ast.BitOr, "^": ast.BitXor,
}  # fmt: skip
_COMPARISONS: dict[str, type[ast.cmpop]] = {
    "<": ast.Lt, "<=": ast.LtE, "==": ast.Eq, "!=": ast.NotEq, ">": ast.Gt, ">=": ast.GtE
}  # fmt: skip

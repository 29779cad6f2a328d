"""What a program may do while it is recorded for every call: which calls only give a result, and which do more."""

from __future__ import annotations

import dis
import enum
import functools
import itertools
import operator
import re
import sys
import types
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from jitlab.capture.positions import is_user_file
from jitlab.capture.tracers.tensor import Tensor
from jitlab.support.lazy import OfEach

#: What Python gives to iterate over its own containers.
_ITERATORS: tuple[type, ...] = (
    zip, enumerate, map, filter, reversed, types.GeneratorType, type({}.keys()), type({}.values()), type({}.items()),
    type(iter([])), type(iter(())), type(iter(range(0))), itertools.product, itertools.combinations, itertools.permutations,
    itertools.combinations_with_replacement, itertools.chain, itertools.islice, itertools.pairwise, itertools.zip_longest,
)  # fmt: skip
#: Objects that a builtin reads without running code of the user's.
PLAIN_OPERANDS: tuple[type, ...] = (
    bool, int, float, complex, str, bytes, type(None), list, tuple, dict, set, frozenset, range, slice, np.ndarray, np.generic,
    *_ITERATORS, type(iter({})), type(iter(set())), type(...), type, np.dtype, np.ufunc,
    types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType,
)  # fmt: skip
#: Objects whose hash tells their value.
BY_VALUE = (bool, int, float, complex, str, bytes, type(None), tuple, range, type)
#: Functions of NumPy that look at memory, write text or files, or call back into Python (facts.WORLD has the others).
HAS_EFFECTS = frozenset(
    {
        "tofile", "dump", "vectorize", "frompyfunc", "fromiter", "fromfunction", "apply_along_axis", "apply_over_axes",
        "piecewise", "nditer", "nested_iters", "get_state", "set_state", "set_bit_generator", "array2string", "array_repr",
        "array_str", "shares_memory", "may_share_memory", "byte_bounds",
    }
)  # fmt: skip

#: By these NumPy asks an operand's class what to do: the first two do anything, whoever wrote them; the others, of a library,
#: only give a result.
_OVERRIDES = ("__array_ufunc__", "__array_function__")
_PROTOCOLS = (*_OVERRIDES, "__array__", "__call__")


def calls_back(function: Any, operands: Iterable[Any]) -> bool:
    """May a function of NumPy's run the user's own Python, or look at more than its operands?"""
    return getattr(function, "__name__", "") in HAS_EFFECTS or runs_the_users(function, operands)


def runs_the_users(function: Any, operands: Iterable[Any]) -> bool:
    """May a function of NumPy's run the user's own Python?"""
    if isinstance(function, np.vectorize) or (isinstance(function, np.ufunc) and not _only_computes(function)):
        return True
    return any(map(_is_the_users, operands))


def _only_computes(ufunc: np.ufunc) -> bool:
    """NumPy's and SciPy's. Another may call back into Python (np.frompyfunc), and may write into its operands."""
    modules = ("numpy", "numpy.strings", "numpy.linalg._umath_linalg", "scipy.special")
    return any(getattr(sys.modules.get(module), ufunc.__name__, None) is ufunc for module in modules)


def _is_the_users(x: Any) -> bool:
    if isinstance(x, (list, tuple)):
        return any(map(_is_the_users, x))
    if isinstance(x, (types.FunctionType, types.MethodType, functools.partial)):
        return True
    if type(x).__module__.partition(".")[0] == "jitlab":
        return False
    found = ((name, getattr(type(x), name, None)) for name in _PROTOCOLS)
    return any(
        isinstance(f, types.FunctionType) and (name in _OVERRIDES or is_user_file(f.__code__.co_filename)) for name, f in found
    )


ITERABLES: tuple[type, ...] = (Tensor, list, tuple, dict, set, frozenset, range, str, bytes, *_ITERATORS)
_PURE_MODULES = frozenset({"math", "cmath", "operator", "itertools", "_operator", "jitlab.nn"})
_OF_NUMBERS = frozenset({"math", "cmath", "operator", "_operator"})
_OURS = frozenset({"jit_scope", "grad", "value_and_grad", "gradients"})
_WRITING = (operator.setitem, operator.delitem, operator.iconcat, operator.iadd, operator.isub, operator.imul, operator.iand,
            operator.ior, operator.ixor, operator.ipow, operator.imatmul, operator.itruediv, operator.ifloordiv, operator.imod,
            operator.ilshift, operator.irshift)  # fmt: skip
#: Builtin objects without methods that do more than give a result; and of others the methods that only read.
IMMUTABLE = (str, bytes, int, float, complex, tuple, range, frozenset)
READING = frozenset({"get", "items", "keys", "values", "index", "count", "copy"})


def is_pure(function: Any, owner: Any) -> bool:
    """No effect on Python objects: functions of mathematics, methods of immutable objects, reading methods of containers."""
    module = getattr(function, "__module__", None) or ""
    if any(function is writing for writing in _WRITING):
        return False
    if module in _PURE_MODULES or module.split(".")[0] == "scipy" or hasattr(owner, "__jitlab_tensor__"):
        return True
    if module.split(".")[0] == "jitlab":
        return getattr(function, "__name__", "") in _OURS
    if isinstance(owner, IMMUTABLE):
        return True
    if isinstance(owner, (list, dict, set)):
        return getattr(function, "__name__", "") in READING
    if isinstance(function, type):
        if issubclass(function, BaseException):  # of a constructor that is Python's own
            return not any(isinstance(made, types.FunctionType) for made in (function.__init__, function.__new__))
        return issubclass(function, tuple) or function in (slice, range, frozenset, complex, np.dtype)
    return isinstance(owner, types.ModuleType) and owner.__name__ in _PURE_MODULES


def is_of_state(function: Any, owner: Any) -> bool:
    """Does a call in SciPy make an object, or ask one that somebody made: what that gives hangs on what it holds then?"""
    if (getattr(function, "__module__", None) or "").split(".")[0] != "scipy":
        return False
    if isinstance(function, type):
        return not issubclass(function, BaseException)
    holder = function if owner is None and not isinstance(function, _FUNCTIONS) else owner
    if holder is None or isinstance(holder, (types.ModuleType, type)) or not hasattr(holder, "__dict__"):
        return False
    module = sys.modules.get(".".join(type(holder).__module__.split(".")[:2]))  # scipy.stats has its distributions
    return not any(holder is known for known in vars(module).values()) if module is not None else True


_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, np.ufunc)


def is_of_numbers(function: Any, args: Sequence[Any]) -> bool:
    """A function of mathematics that is given numbers alone: however often it is called, it only gives a result."""
    is_mathematics = (getattr(function, "__module__", None) or "") in _OF_NUMBERS
    return is_mathematics and not any(isinstance(x, (list, dict, set)) for x in args)


def is_of_objects(function: Any, owner: Any) -> bool:
    """A function that asks its arguments by their own methods: `math.sqrt`, `operator.attrgetter("x")`, `"{}".format`."""
    return isinstance(owner, str) or (getattr(function, "__module__", None) or type(function).__module__) in _PURE_MODULES


_outside: OfEach[tuple[str, int]] = OfEach()


def assigns_outside(code: types.CodeType) -> tuple[str, int]:
    """The first global or outer name that a function assigns, and the line; "" for none."""
    return _outside.of(code, _first_outside, code)


_STORES = frozenset(dis.opmap[name] for name in ("STORE_GLOBAL", "DELETE_GLOBAL"))
_STORE_OUTER = dis.opmap["STORE_DEREF"]


def _first_outside(code: types.CodeType) -> tuple[str, int]:
    free, line = set(code.co_freevars), 0
    if _STORES.isdisjoint(code.co_code[::2]) and not (free and _STORE_OUTER in code.co_code[::2]):
        return "", 0
    for step in dis.get_instructions(code):
        if step.starts_line is not None:
            line = step.positions.lineno if step.positions is not None and step.positions.lineno else line
        if step.opname in ("STORE_GLOBAL", "DELETE_GLOBAL") or (step.opname == "STORE_DEREF" and step.argval in free):
            return str(step.argval), line
    return "", line


_OPERATORS = frozenset(
    f"__{reflected}{name}__"
    for name in "add sub mul matmul truediv floordiv mod divmod pow lshift rshift and or xor".split()
    for reflected in ("", "r", "i")
) | {f"__{name}__" for name in "lt le gt ge neg pos abs invert bool".split()}
#: By these an object becomes a number, or says what is in it, wherever it stands.
_CONVERSIONS = frozenset(f"__{name}__" for name in "index int float complex round trunc floor ceil contains".split())
#: By these a class of the user's metaclass answers: a class is taken for itself everywhere else.
_OF_CLASSES = frozenset(
    f"__{name}__" for name in "len iter reversed getitem eq ne hash str repr format instancecheck subclasscheck".split()
)
_python_operators: OfEach[bool] = OfEach()


def has_python_operators(kind: type) -> bool:
    """The user's own Python runs when objects of this class meet an operator, or are taken for numbers."""
    return _python_operators.of(kind, _defines_operators, kind)


def _defines_operators(kind: type) -> bool:
    names = _OPERATORS | _CONVERSIONS | (_OF_CLASSES if issubclass(kind, type) else frozenset())
    found = (vars(base)[name] for base in kind.__mro__ for name in names & vars(base).keys())
    return any(map(_is_the_users_code, found))


#: By these a program reads what an object holds.
_OF_ITEMS = ("__getitem__", "__len__", "__contains__", "__iter__")
#: Objects that never hold anything else.
_FIXED = (
    str, bytes, int, float, complex, range, frozenset, tuple, type, types.ModuleType, types.GenericAlias, re.Match, enum.Enum,
    np.dtype, *map(type, (np.r_, np.c_, np.s_, np.index_exp, np.mgrid, np.ogrid)),
)  # fmt: skip
_items_of_others: OfEach[bool] = OfEach()


def holds_items(x: Any) -> bool:
    """A deque, a class made of list, ...: what it holds may be others tomorrow, and is read by code that is not recorded."""
    return not isinstance(x, _FIXED) and _items_of_others.of(type(x), _reads_items_unseen, type(x))


def _reads_items_unseen(kind: type) -> bool:
    if kind.__module__.partition(".")[0] == "jitlab":
        return False
    found = (getattr(kind, name, None) for name in _OF_ITEMS)
    return any(f is not None and not _is_the_users_code(f) for f in found)


def _is_the_users_code(f: Any) -> bool:
    return isinstance(f, types.FunctionType) and is_user_file(f.__code__.co_filename)


#: Methods of Python's containers that iterate over their arguments.
_FILLING = frozenset(
    """extend extendleft update union intersection difference symmetric_difference intersection_update difference_update
    symmetric_difference_update issubset issuperset isdisjoint fromkeys""".split()
)


def fills(function: Any, owner: Any) -> bool:
    """A method of a list, dict or set that iterates over what it is given."""
    return isinstance(owner, (list, dict, set, frozenset)) and getattr(function, "__name__", "") in _FILLING


#: What a class may define by itself when an object of it is made while a recording runs: nothing that Python asks unseen.
_PLAIN_PARTS = frozenset(
    f"__{name}__"
    for name in "module qualname doc dict weakref annotations annotate annotate_func init slots repr str call firstlineno"
    " static_attributes type_params match_args".split()
)
_OF_FUNCTIONS = (
    types.FunctionType, property, staticmethod, classmethod, types.MemberDescriptorType, types.GetSetDescriptorType
)  # fmt: skip
_plain_classes: OfEach[bool] = OfEach()


def is_plain_class(kind: type) -> bool:
    """Is an object of this class what its `__init__` puts into it, and is all that is asked of it in code that is recorded?"""
    return _plain_classes.of(kind, _has_plain_parts, kind)


def _has_plain_parts(kind: type) -> bool:
    new, init = (getattr(kind, name) for name in ("__new__", "__init__"))
    if type(kind) is not type or new is not object.__new__ or not _is_the_users_code(init):
        return False
    for base in kind.__mro__[:-1]:
        for name, value in vars(base).items():
            if name.startswith("__") and name.endswith("__") and name not in _PLAIN_PARTS:
                return False
            if hasattr(type(value), "__get__") and not isinstance(value, _OF_FUNCTIONS):
                return False
    return True


def is_iterable(kind: type) -> bool:
    """Does Python iterate over objects of this class, by itself or as a mapping?"""
    is_ours = kind.__module__.partition(".")[0] == "jitlab"
    return not is_ours and any(hasattr(kind, name) for name in ("__iter__", "__getitem__", "keys"))


def is_plain_key(x: Any) -> bool:
    """A number, a text, a tuple of them, ...: equal ones are told apart by type and bits."""
    return all(map(is_plain_key, x)) if type(x) is tuple else type(x) in (bool, int, float, complex, str, bytes, type(None))


def is_fixed(x: Any) -> bool:
    """It is itself for ever: a number or text, a function, a class, a module."""
    itself = type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType, np.ufunc, np.dtype
    return is_plain_key(x) or isinstance(x, itself)

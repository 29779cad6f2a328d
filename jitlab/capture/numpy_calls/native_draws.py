"""Draws that machine code makes itself, of a number or in loops and branches of an array of them: which calls of a generator's
methods are such draws, and of what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jitlab.capture.tracers.number import Number, as_known
from jitlab.capture.tracers.tensor import Tensor
from jitlab.ir import Extent, Node, Symbolic
from jitlab.ops.build_nodes import as_node, cast, constant, weak
from jitlab.ops.library_operations import call
from jitlab.ops.random_draws import METHODS, Draw, Method, c_function

if TYPE_CHECKING:
    from jitlab.capture.state import Capture

#: By the class of the generator and the name that is called: the method, the parameters before `size`, with their defaults.
_CALLS: Mapping[tuple[str, str], tuple[str, Mapping[str, Any]]] = {
    **{(kind, "uniform"): ("uniform", {"low": 0.0, "high": 1.0}) for kind in ("Generator", "RandomState")},
    ("Generator", "random"): ("random", {}),
    ("Generator", "standard_normal"): ("standard_normal", {}),
    ("Generator", "normal"): ("normal", {"loc": 0.0, "scale": 1.0}),
    ("Generator", "standard_exponential"): ("standard_exponential", {}),
    ("Generator", "exponential"): ("exponential", {"scale": 1.0}),
    ("Generator", "integers"): ("integers", {"low": None, "high": None}),
    ("RandomState", "random"): ("random_sample", {}),
    ("RandomState", "random_sample"): ("random_sample", {}),
    ("RandomState", "rand"): ("random_sample", {}),
    ("RandomState", "randint"): ("randint", {"low": None, "high": None}),
}

#: What these arguments are where the call might as well leave them away.
_ABSENT: Mapping[str, Any] = {"size": None, "out": None, "endpoint": False}

_MOST, _LEAST = (1 << 63) - 1, -(1 << 63)


def drawn_natively(
    capture: Capture, generator: Any, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Tensor | None:
    """The numbers that a call draws, as an operation of the graph; None where NumPy has to be called for them."""
    kind = type(generator).__name__
    if name == "choice":
        return _chosen(capture, generator, args, kwargs)
    if name == "rand" and args:
        args, kwargs = (), {**kwargs, "size": tuple(args)}
    method, defaults = _CALLS.get((kind, name), ("", {}))
    given = bound({**defaults, "size": None}, args, kwargs)
    how = METHODS.get((kind, method))
    if how is None or given is None:
        return None
    shape = shape_of(capture, given.pop("size"))
    if shape == () or not all(c_function(name) for name in (how.function, how.fill) if name):
        return None
    if how.refused == "empty" and given["high"] is None:
        given = {"low": 0, "high": given["low"]}
    if not all(_is_of(x, dtype) for x, dtype in zip(given.values(), how.operands, strict=True)):
        return None
    address = capture.address(generator)
    if address is None:
        return None
    operands = [_node(x, dtype) for x, dtype in zip(given.values(), how.operands, strict=True)]
    drawn = call(Draw(kind, method, _is_sure(generator, method, how, given.values()), shape), address.node(), *operands)
    assert isinstance(drawn, tuple)
    numbers, following = drawn
    address._cell.move_on((), following)
    if shape is None and (kind, method) != ("Generator", "integers"):
        weak(numbers)  # Python's own
    return capture.fresh(numbers, is_scalar=shape is None)


def bound(defaults: Mapping[str, Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any] | None:
    """A call's arguments by name; None where it has others than these."""
    named = {key: value for key, value in kwargs.items() if key not in _ABSENT or value is not _ABSENT[key]}
    given = dict(zip(defaults, args, strict=False))
    if len(args) > len(defaults) or given.keys() & named.keys() or not named.keys() <= defaults.keys():
        return None
    return {**defaults, **given, **named}


def shape_of(capture: Capture, size: Any) -> tuple[int, ...] | None:
    """The shape of an array that a body draws, or what has to be compiled; None for a number, () where NumPy draws it: outside
    of bodies it takes as long."""
    if size is None:
        return None
    sizes = tuple(map(as_known, size if type(size) in (tuple, list) else (size,)))
    is_wanted = capture.strict or bool(capture.blocks)
    return sizes if is_wanted and all(type(n) in (int, Extent) and n > 0 for n in sizes) else ()


def _chosen(capture: Capture, generator: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Tensor | None:
    """`rng.choice(x)`: elements of a vector, or numbers below x, each as likely as another, and any number of times."""
    given = bound({"a": None, "size": None, "replace": True, "p": None}, args, kwargs)
    if given is None or given["replace"] is not True or given["p"] is not None:
        return None
    items = given["a"]
    if type(items) in (list, tuple) and len({type(x) for x in items}) == 1 and type(items[0]) in (int, float):
        made = np.array(items)  # as NumPy makes it
        items = capture.fresh(constant(made), is_scalar=False) if made.dtype.kind in "if" else items
    items = capture.value(items) if type(items) is np.ndarray else items
    if isinstance(items, Tensor) and items.ndim == 1 and not items.is_scalar:
        count = items.type.shape[0]
    else:
        count, items = items, None
    if type(count) not in (int, Extent) or count < 1:
        return None
    method = "integers" if type(generator).__name__ == "Generator" else "randint"
    number = drawn_natively(capture, generator, method, (0, count), {"size": given["size"]})
    return number if items is None or number is None else items[number]


def _is_of(x: Any, dtype: np.dtype[Any]) -> bool:
    """Is it one number that NumPy takes for one of the dtype, as it is or, for a float, as C converts it?"""
    whole = dtype.kind == "i"
    if isinstance(x, Tensor):
        fits = x.dtype.kind == "i" if whole else x.dtype.kind in "iuf"
        return x.shape == () and fits and (x._cell.kinds is None or not whole)
    x = x.value if isinstance(x, Number) else x
    if isinstance(x, (Symbolic, Extent)):
        return True
    if isinstance(x, np.generic):
        return x.dtype.kind in ("i" if whole else "iuf") and x.itemsize <= 8
    if type(x) is int:
        return _LEAST <= x <= _MOST
    return type(x) is float and not whole


def _node(x: Any, dtype: np.dtype[Any]) -> Node:
    if isinstance(x, Number):
        return x.capture.number_node(x, dtype).node()
    if isinstance(x, Tensor):
        return cast(x.node(), dtype)
    return as_node(x, dtype) if isinstance(x, (Symbolic, Extent)) else constant(dtype.type(x))


def _is_sure(generator: Any, method: str, how: Method, values: Any) -> bool:
    """Are the operands written in the program, and does NumPy take them?"""
    if not how.refused or not all(type(x) in (int, float) for x in values):
        return not how.refused
    try:
        getattr(type(generator)(type(generator._bit_generator)(0)), method)(*values)
    except (ValueError, OverflowError):
        return False
    return True

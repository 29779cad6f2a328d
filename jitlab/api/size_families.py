"""Calls of other sizes than a trace was made for, which its machine code serves: all that was asked of its sizes has the same
answer for theirs, so a recording would be the same. No Python of the function runs, and no stage."""

from __future__ import annotations

import types
from collections import OrderedDict
from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np

from jitlab import events
from jitlab.capture import CallTrace
from jitlab.capture.guards.described_calls import Undescribed
from jitlab.capture.guards.equal_code import exchanged
from jitlab.capture.numpy_calls.layouts import Layout
from jitlab.costs import Costs
from jitlab.ir import Extent
from jitlab.ir.plans.call_forms import Output, Packed
from jitlab.ops.base import Elementwise, Reduction
from jitlab.ops.layout.views import Reshape, View
from jitlab.ops.leaf_operations import Constant, Length, Parameter
from jitlab.ops.linear_algebra.matrix_products import Product
from jitlab.runtime import Executable, is_watched
from jitlab.runtime.other_sizes import serve, varied

from .defined_again import Successor

#: Sizes served so that are remembered, traces of a family that are asked, and calls of one size after which it has its own.
MOST_SIZES, MOST_OF_FAMILY, OWN_AFTER = 256, 4, 4

#: Of what operations sizes are asked in a way that is noted.
_OPERATIONS = (Parameter, Constant, Length, Elementwise, Reduction, View, Reshape, Product)


class SizeFamilies(Successor):
    """A function whose traces serve other sizes."""

    _families: dict[Any, list[CallTrace]]
    _sizes: OrderedDict[Any, CallTrace]  # by the key of a call

    def _other_size(self, key: Any, at: Sequence[Any], *, serves: bool = True) -> CallTrace | None:
        """What serves a call for which there is no trace, if one does that was made for another size. `serves`: it is kept."""
        if events.active() or is_watched() or not all(map(_lies_in_rows, at)):  # who listens is told of a trace
            return None
        made = self._sizes.get(key)
        if made is not None and made.costs.calls >= OWN_AFTER:
            return None
        if made is not None and made.gather(at) is not None:
            return made
        known = self._families.get(_family(key), [])
        for trace in known:
            if isinstance(trace.executable, Executable) and varied(trace.executable, (other.executable for other in known)):
                made = _resized(trace, trace.executable, at)
            if made is not None and serves:
                self._sizes[key] = made
                while len(self._sizes) > MOST_SIZES:
                    self._sizes.popitem(last=False)
                self.ledger.resized(trace)
            if made is not None:
                return made
        return None

    def _in_family(self, key: Any, trace: Any) -> None:
        """A trace may serve other sizes, if its facts hold for them."""
        family = _family(key)
        if not isinstance(trace, CallTrace) or family == key:
            return
        if trace.is_regular is None:
            trace.is_regular = _is_regular(trace)
        if trace.is_regular:
            known = [other for other in self._families.get(family, ()) if other is not trace]
            self._families[family] = [trace, *known][:MOST_OF_FAMILY]
            self._sizes.pop(key, None)

    def _out_of_family(self, key: Any, trace: Any) -> None:
        """A trace has made room."""
        family = _family(key)
        left = [other for other in self._families.pop(family, ()) if other is not trace]
        if left:
            self._families[family] = left
        self._sizes.clear()


def _lies_in_rows(value: Any) -> bool:
    return type(value) is not np.ndarray or value.flags.c_contiguous


def _family(key: Any) -> Any:
    """What calls of other sizes have in common: of arrays the dtype and the number of axes."""
    return tuple((part[0], len(part[1])) if _is_array(part) else part for part in key)


def _is_array(part: Any) -> bool:
    return type(part) is tuple and isinstance(part[0], np.dtype)


def _is_regular(trace: CallTrace) -> bool:
    """It gives new arrays, made by operations of which each question about sizes is known."""
    others = (
        trace.writes, trace.shared, trace.guards, trace.same, trace.draws, trace.calls_back, trace.moving, trace.slots,
        trace.effects,
    )  # fmt: skip
    if any(others) or not _gives_new_arrays(trace) or not all(layout.is_rows for layout in trace.layouts):
        return False
    return all(isinstance(node.op, _OPERATIONS) and _is_small(node.op) for node in trace.graph.nodes)


def _gives_new_arrays(trace: CallTrace) -> bool:
    """Are its results those of the graph, in order, or a tuple or list of them?"""
    try:
        gives = trace.gives(lambda place: 0)
    except Undescribed:
        return False
    items = gives.items if isinstance(gives, Packed) and gives.kind in (tuple, list) else (gives,)
    if not all(isinstance(item, Output) and item.number is None for item in items):
        return False
    return [item.position for item in items] == list(range(len(trace.graph.outputs)))


def _is_small(op: Any) -> bool:
    return not isinstance(op, Constant) or not op.value.shape


def _resized(trace: CallTrace, executable: Executable, at: Sequence[Any]) -> CallTrace | None:
    """The trace for these arguments, which have other sizes."""
    values: dict[str, int] = dict(executable._values)
    exchange: dict[int, Any] = {}
    arrays = {f"a[{n}]": value for n, value in enumerate(at) if type(value) is np.ndarray}
    for number, place, shape in trace.lookup.arrays:
        array = arrays.get(place)
        if array is None:
            continue
        if not _put(executable.graph.parameters[number].shape, array.shape, values):
            return None
        exchange[id(shape)] = array.shape
        for layout in trace.layouts:
            if layout.input == number:
                new = Layout.of(number, array, layout.exact)
                exchange |= {id(layout): new, id(layout.strides): new.strides}
    served = serve(executable, values) if trace.asked is not None and trace.asked.hold(values) else None
    if served is None:
        return None
    made = copy(trace)
    names = {name: exchanged(value, exchange) for name, value in trace.lookup.constants.values.items()}
    made.gather = types.FunctionType(trace.gather.__code__, names, "gather", trace.gather.__defaults__)
    if made.gather(at) is None:
        return None
    made.run, made.is_warm, made.costs = served.run, True, Costs(trace.costs)
    made.stays_compiled, made.of_other_size = False, True
    return made


def _put(known: Sequence[int], shape: Sequence[int], values: dict[str, int]) -> bool:
    """Give symbols the sizes of an array, where it may have them: what was no symbol stays as it was."""
    if len(known) != len(shape):
        return False
    for extent, n in zip(known, shape, strict=True):
        if not isinstance(extent, Extent):
            if extent != n:
                return False
        elif n < 2:  # an empty axis, or one that is repeated, is no symbol
            return False
        else:
            values[extent.expr.symbols[0]] = n
    return True

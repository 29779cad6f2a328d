"""Controls for the arguments of a call: sliders and fields for numbers, sizes and dtypes for arrays, words for the rest."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import ipywidgets
import numpy as np

from jitlab.ir.types import TRACED_DTYPES
from jitlab.messages.escape import clean

#: An axis gets up to so many times its first size, and an array up to so many bytes.
LARGEST, MOST_BYTES = 1 << 24, 1 << 30
WIDE = {"description_width": "initial"}
NARROW = ipywidgets.Layout(width="110px")


class Sizes:
    """The sizes of all arrays: axes that are equally long belong together, because most programs need them to."""

    def __init__(self, arrays: Mapping[str, Any]) -> None:
        where: dict[int, list[str]] = {}
        for name, array in arrays.items():
            for axis, n in enumerate(array.shape):
                where.setdefault(n, []).append(f"{name} axis {axis}" if array.ndim > 1 else name)
        self.controls = {
            n: ipywidgets.BoundedIntText(
                value=n, min=1, max=LARGEST, layout=NARROW, tooltip=f"the size of {', '.join(places)}, {n} at first"
            )
            for n, places in where.items()
            if n > 1
        }
        self.places = {n: ", ".join(places) for n, places in where.items() if n > 1}

    def shape(self, array: Any) -> tuple[int, ...]:
        """The shape that an array has now."""
        return tuple(int(self.controls[n].value) if n in self.controls else n for n in array.shape)

    @property
    def box(self) -> ipywidgets.Widget:
        rows = [
            ipywidgets.HBox([ipywidgets.Label(clean(self.places[n])), control]) for n, control in self.controls.items()
        ]  # fmt: skip
        return ipywidgets.VBox(rows)


class Control:
    """One argument: its widget, and the value that a run gets."""

    def __init__(self, name: str, value: Any, widget: ipywidgets.Widget, read: Callable[[], Any]) -> None:
        self.name, self.first, self.widget, self.read = name, value, widget, read


def controls_for(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[dict[str, Control], Sizes, Any]:
    """A control for each argument, the sizes they share, and what makes the arguments of a call of the controls."""
    try:
        signature = inspect.signature(function)
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        values = dict(bound.arguments)
    except (TypeError, ValueError):
        signature, values = None, {f"argument {n}": value for n, value in enumerate(args)} | kwargs
    sizes = Sizes({name: value for name, value in values.items() if isinstance(value, np.ndarray)})
    controls = {name: control_for(name, value, sizes) for name, value in values.items()}

    def call() -> tuple[tuple[Any, ...], dict[str, Any]]:
        now = {name: control.read() for name, control in controls.items()}
        if signature is None:
            return tuple(list(now.values())[: len(args)]), {name: now[name] for name in kwargs}
        again = inspect.BoundArguments(signature, now)
        return again.args, again.kwargs

    return controls, sizes, call


def control_for(name: str, value: Any, sizes: Sizes) -> Control:
    """A number that is read again is of the type it was; an array is the first one, repeated or cut to its sizes."""
    label = clean(name)
    options = {"description": label, "style": WIDE}
    if isinstance(value, np.ndarray) and value.dtype in TRACED_DTYPES:
        return _array(label, value, sizes)
    widget: Any
    if isinstance(value, (bool, np.bool_)):
        widget = ipywidgets.Checkbox(value=bool(value), indent=False, **options)
    elif isinstance(value, (int, np.integer)) and abs(int(value)) > 10_000:
        widget = ipywidgets.IntText(value=int(value), **options)
    elif isinstance(value, (int, np.integer)):
        wide = max(10, 4 * abs(int(value)))
        least = -wide if value < 0 else 0
        widget = ipywidgets.IntSlider(value=int(value), min=least, max=wide, continuous_update=False, **options)
    elif isinstance(value, (float, np.floating)) and np.isfinite(value):
        most = 4 * abs(float(value)) or 1.0
        widget = ipywidgets.FloatSlider(
            value=float(value), min=-most if value < 0 else 0.0, max=most, step=most / 400, readout_format=".4g",
            continuous_update=False, **options,
        )  # fmt: skip
    elif isinstance(value, str):
        widget = ipywidgets.Text(value=value, continuous_update=False, **options)
        return Control(name, value, widget, lambda: widget.value)
    else:
        return Control(name, value, ipywidgets.Label(f"{label}: {_short(value)}"), lambda: value)
    return Control(name, value, widget, lambda: type(value)(widget.value))


def _array(label: str, array: Any, sizes: Sizes) -> Control:
    name = ipywidgets.Label(label)
    dtypes = sorted({str(d) for d in TRACED_DTYPES if d.kind == array.dtype.kind} | {str(array.dtype)})
    dtype = ipywidgets.Dropdown(options=dtypes, value=str(array.dtype), layout=NARROW)
    shown = ipywidgets.Label()

    def tell(_: Any = None) -> None:
        shape = sizes.shape(array)
        shown.value = f"[{', '.join(map(str, shape))}]" if shape else "a number"

    for control in sizes.controls.values():
        control.observe(tell, "value")
    tell()

    def read() -> Any:
        shape = sizes.shape(array)
        needed = int(np.prod(shape, dtype=np.float64)) * np.dtype(dtype.value).itemsize
        if needed > MOST_BYTES:
            raise ValueError(f"{label} would take {needed} bytes; the most here is {MOST_BYTES}")
        return np.array(np.resize(array, shape) if shape != array.shape else array, dtype=dtype.value, copy=True)

    control = Control(label, array, ipywidgets.HBox([name, dtype, shown]), read)
    control.dtype = dtype  # type: ignore[attr-defined]
    return control


def _short(value: Any) -> str:
    text = clean(repr(value))
    return text if len(text) <= 60 else text[:57] + "…"

"""A flip of a report, tried on the program that is still there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jitlab.api.whatif.flip_verification import edge_flip_holds, operation_flip_holds
from jitlab.errors import OptionError
from jitlab.runtime import executable_of


def flip_holds(data: Mapping[str, Any], about: tuple[str, str, str | None]) -> bool | None:
    """`about`: the plan, and an operation that is not compiled, or the two of an edge that is not fused. OptionError when the
    function is gone; None when the change can't be expressed by marks, options or another order."""
    name, producer, consumer = about
    plan = next(plan for plan in data["plans"] if plan["name"] == name)
    cluster = next((c["name"] for c in data["clusters"] if c["plan"] == name), None)
    executable = executable_of(plan["function"], plan["trace"], cluster)
    if executable is None:
        raise OptionError(f"the code of {name} is not there any more", hint="run the function again and take a new report")
    if consumer is None:
        return operation_flip_holds(executable, producer)
    return edge_flip_holds(executable, (producer, consumer))

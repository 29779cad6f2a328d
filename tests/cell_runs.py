"""The text of a cell run as the notebook runs its statements, and what was told of it."""

import ast
from dataclasses import dataclass, field
from typing import Any

from jitlab.capture.drivers.cells import CellObserver, run_nodes
from jitlab.capture.drivers.driver import interpreted
from jitlab.ir import display_name, outside
from jitlab.support import trees


@dataclass
class CellResult(CellObserver):
    """What a cell did: the value to display, the traces it made, how often pieces ran, and what Python ran."""

    value: Any = None
    has_value: bool = False
    traces: list[Any] = field(default_factory=list)
    runs: int = 0
    statements: list[tuple[str, str, Any]] = field(default_factory=list)  # run as Python: reason, text, where

    def display(self, value):
        self.value, self.has_value = value, True

    def ran(self, statement, reason, began, ended=None):
        self.statements.append((reason.code, str(reason.said), statement.source))
        super().ran(statement, reason, began, ended)

    def called(self, trace, started):
        self.runs += 1
        super().called(trace, started)

    def traced(self, trace, before, started):
        super().traced(trace, before, started)
        self.traces.append(trace)


def run_cell(
    source, namespace, filename, *, first_line=1, strict=False, executor=interpreted, title="", result=None
):
    """Run a cell in a namespace. `first_line` is the line of the file on which the source begins. `result` is filled also when
    the cell raises."""
    result = CellResult() if result is None else result
    tree = trees.parse(source, filename)
    ast.increment_lineno(tree, first_line - 1)
    before, outside.unmarked = outside.unmarked, True
    try:
        run_nodes(
            tree.body, namespace, filename, shown="last_expr", compiler=trees.code_of, display=result.display, strict=strict,
            executor=executor, title=title or display_name(filename), observer=result,
        ).send(None)  # fmt: skip
    except StopIteration:
        return result
    finally:
        outside.unmarked = before
    raise AssertionError("the cell waits")

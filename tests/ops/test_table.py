"""The table builds what NumPy computes: dtype, shape, values and errors of every entry."""


import pytest

from jitlab.ir import interpret, verify
from jitlab.ops import Unsupported
from tests.ops import programs
from tests.ops.programs import Program, same

FAMILIES = {
    "elementwise functions": programs.elementwise_programs,
    "operators": programs.operator_programs,
    "reductions": programs.reduction_programs,
    "creation": programs.creation_programs,
    "joining": programs.joining_programs,
    "linear algebra": programs.linear_programs,
    "views": programs.view_programs,
    "indexing": programs.index_programs,
}


def outcome(program: Program) -> str:
    """Run one program both ways; "" when they agree, else what differs."""
    try:
        want, error = program.expected(), None
    except Exception as raised:
        want, error = None, raised
    try:
        graph, arrays = program.graph()
        got = interpret(verify(graph), arrays)
    except Unsupported:
        return "unsupported"
    except Exception as raised:
        if error is not None and isinstance(error, type(raised)):
            return ""
        return f"{program}: {type(raised).__name__}: {raised}; NumPy {error!r}"
    if error is not None:
        return f"{program}: no error, NumPy raises {error!r}"
    wanted = list(want) if isinstance(want, (list, tuple)) else [want]
    if len(wanted) != len(got):
        return f"{program}: {len(got)} results, NumPy has {len(wanted)}"
    try:
        for mine, theirs, node in zip(got, wanted, graph.outputs, strict=True):
            same(mine, theirs, program.exact)
            assert node.dtype == theirs.dtype if hasattr(theirs, "dtype") else True
    except AssertionError as wrong:
        return f"{program}: {wrong}"
    return ""


@pytest.mark.parametrize("family", FAMILIES)
def test_the_table_computes_what_numpy_computes(family):
    found = [outcome(program) for program in FAMILIES[family]()]
    wrong = [text for text in found if text not in ("", "unsupported")]
    assert not wrong, f"{len(wrong)} of {len(found)} differ:\n" + "\n".join(wrong[:100])

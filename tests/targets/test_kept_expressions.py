"""What has been computed is known until a statement changes what it depends on; a change does not look at all the rest."""

from jitlab.ir.programs.program import Apply
from jitlab.targets.cpu_llvm.machine import features
from jitlab.targets.llvm.expressions import ExpressionWriter
from jitlab.targets.llvm.function_text import FunctionText


class _Counted(Apply):
    """An expression that counts how often it is asked what it depends on."""

    asked = 0

    @property
    def depends(self):
        type(self).asked += 1
        return frozenset({"=a"})


def test_a_change_looks_at_what_depends_on_it_alone():
    """Long bodies are written in a time that grows as they do."""
    writer = ExpressionWriter(FunctionText("f", []), features())
    writer._compute = lambda expr: "value"
    expressions = [_Counted(None, (), None) for _ in range(200)]
    for n, expression in enumerate(expressions):
        writer._eval(expression)
        writer._forget(frozenset({f"local{n}"}))
    assert _Counted.asked == len(expressions)
    assert all(writer.scopes[-1].get(id(expression)) == "value" for expression in expressions)
    writer._forget(frozenset({"=a"}))
    assert not any(id(expression) in writer.scopes[-1] for expression in expressions)
    assert not writer.volatile[-1]

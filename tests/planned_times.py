"""Times that a test plans: what a report says of a cell's time then does not depend on what else the machine does."""

from collections.abc import Callable
from itertools import count
from typing import Any

from jitlab.messages import Message
from jitlab.report.build import build_report

#: A hundredth of the whole, which tables show, and far below what counts as a change; in two digits they are all 1.1 ms.
SECONDS, STEP = 1.06e-3, 1e-5
PLANNED = {"code": "same", "args": {}, "text": str(Message("speed.same"))}


def plan_times(replace: Callable[[Any, str, Any], None] = setattr) -> None:
    """Reports say about 1.1 ms of good code, none quite the same as another, whatever the runs of this machine took."""
    measured, number = build_report.verdict, count()

    def verdict(*args: Any) -> build_report.Json:
        result, seconds = measured(*args), SECONDS + STEP * (next(number) % 8)
        result.pop("statement_seconds", None)
        if "speed" in result:
            result["speed"] |= {"ratio": 1.0, "low": 0.9, "high": 1.1, "note": ""} | PLANNED
        result |= {key: seconds for key in ("seconds", "numpy_seconds") if result[key] is not None}
        if "waited" in result:
            said = str(Message("waited.run", {"seconds": seconds}))
            parts = {"work": seconds, "compiling": 0.0, "python": 0.0, "overhead": 0.0}
            result["waited"] = {"seconds": seconds, **parts, "text": said}
        if "first_run" in result:
            result["first_run"]["quick_share"] = 0.0
        return result

    replace(build_report, "verdict", verdict)

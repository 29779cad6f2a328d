"""`tf.Session`, its options and its timeline: `jitlab.graph` under TensorFlow's names."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from jitlab import graph as _graph
from jitlab.report import Report, record
from jitlab.report.render.chrome import chrome_events


class Session(_graph.Session):
    """`jitlab.Session`. A run with `trace_level=FULL_TRACE` leaves its report in the RunMetadata."""

    def __init__(self, target: str = "", graph: Any = None, config: Any = None) -> None:
        super().__init__(graph, config, target)

    def run(self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
        if options is None or run_metadata is None or options.trace_level == 0:
            return super().run(fetches, feed_dict)
        with record() as recording:
            result = super().run(fetches, feed_dict)
        run_metadata.step_stats = recording.report()
        return result


class InteractiveSession(Session):
    """A Session that is the default one from the start."""

    def __init__(self, target: str = "", graph: Any = None, config: Any = None) -> None:
        super().__init__(target, graph, config)
        self._block = self.as_default()
        self._block.__enter__()

    def close(self) -> None:
        self._block.__exit__(None, None, None)
        super().close()


class Timeline:
    """The timeline of a run as a Chrome trace."""

    def __init__(self, step_stats: Any, graph: Any = None) -> None:
        if not isinstance(step_stats, Report):
            raise TypeError("step_stats is that of the RunMetadata of a run with RunOptions(trace_level=FULL_TRACE)")
        self._report = step_stats

    def generate_chrome_trace_format(self, show_dataflow: bool = True, show_memory: bool = False) -> str:
        """The text of `timeline.ctf.json`."""
        events = chrome_events(self._report.to_json())
        if not show_dataflow:
            events = [event for event in events if event.get("cat") != "DataFlow"]
        if not show_memory:
            events = [event for event in events if event.get("cat") != "Memory"]
        return json.dumps({"traceEvents": events}, separators=(",", ":"))


def placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> Any:
    """`jitlab.placeholder`."""
    return _graph.placeholder(np.dtype(dtype), shape, name)


__all__ = ["InteractiveSession", "Session", "Timeline", "placeholder"]

"""What the extension costs a notebook: cells with and without it, in two real kernels that take turns; events by the thousand.

    python -m benchmarks.cells [--cells 1000] [--events 100000]

1. *Latency.* Two kernels, one with `%load_ext jitlab`, one without. Each cell is sent to both, one after the other, the first
   of a pair in turn; a cell's time is from sending the request to the kernel's idle message. Beside it the processor time of
   the kernels, all threads, which other programs disturb less. Three kinds of cell: `x = 1`,
   plain NumPy of about 1 ms, and one that calls a function of `jl.function`. With the panel closed, then shown.
2. *Recording.* Compiled calls with and without `record()`, in blocks that take turns in one process.
3. *Events.* 10 000 events/s for 10 s through the session's way (recording and wire) with a panel shown: what it took of the
   time, what was recorded and told, messages and bytes a second.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import time
from pathlib import Path
from typing import Any

KINDS = {
    "x = 1": "x = 1",
    "NumPy, 1 ms": "y = np.sqrt(a * a + 1).sum()",
    "jl.function": "z = f(a)",
}
BEFORE = """\
import numpy as np, jitlab as jl
a = np.linspace(0, 1, 300_000)
@jl.function
def f(v):
    return np.sqrt(v * v + 1).sum()
f(a)"""


class Kernel:
    """A kernel and the way a notebook sends it cells."""

    def __init__(self, extension: bool) -> None:
        from jupyter_client.manager import start_new_kernel

        self.manager, self.client = start_new_kernel()
        self.run("%load_ext jitlab" if extension else "pass")
        self.run(BEFORE)

    def run(self, code: str) -> float:
        """Seconds from sending a cell to the kernel's idle message."""
        message = self.client.session.msg(
            "execute_request",
            {"code": code, "silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": False},
            metadata={"cellId": "cell"},
        )
        start = time.perf_counter()
        self.client.shell_channel.send(message)
        while True:
            heard = self.client.get_iopub_msg(timeout=60)
            if heard["msg_type"] == "error":
                raise RuntimeError("\n".join(heard["content"]["traceback"]))
            is_ours = heard["parent_header"].get("msg_id") == message["header"]["msg_id"]
            if is_ours and heard["msg_type"] == "status" and heard["content"]["execution_state"] == "idle":
                return time.perf_counter() - start

    def cpu(self) -> float:
        """Processor seconds of the kernel so far, of all its threads; 0 where the system does not say."""
        try:
            words = Path(f"/proc/{self.manager.provisioner.pid}/stat").read_text().rpartition(")")[2].split()
            return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
        except (OSError, AttributeError):
            return 0.0

    def show_panel(self) -> None:
        content = {"comm_id": "jitlab-v1", "data": {"op": "resume", "epoch": "", "since": 0}}
        self.client.shell_channel.send(self.client.session.msg("comm_msg", content))

    def stop(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


def latency(cells: int) -> None:
    """Added milliseconds a cell: the median of the pairs' differences, with its quartiles."""
    plain, loaded = Kernel(False), Kernel(True)
    try:
        for panel in ("closed", "shown"):
            if panel == "shown":
                loaded.show_panel()
            for kind, code in KINDS.items():
                for kernel in (plain, loaded):
                    for _ in range(20):
                        kernel.run(code)
                without, added = [], []
                spent = [kernel.cpu() for kernel in (plain, loaded)]
                for n in range(cells):
                    first, second = (plain, loaded) if n % 2 else (loaded, plain)
                    times = {first: first.run(code), second: second.run(code)}
                    without.append(times[plain])
                    added.append(times[loaded] - times[plain])
                of_plain, of_loaded = (k.cpu() - s for k, s in zip((plain, loaded), spent, strict=True))
                low, middle, high = statistics.quantiles(added, n=4)
                print(
                    f"panel {panel}, {kind:12}  {cells} cells  without {1e3 * statistics.median(without):6.2f} ms"
                    f"  added {1e3 * middle:+.3f} ms (quartiles {1e3 * low:+.3f} to {1e3 * high:+.3f});"
                    f" processor {1e3 * of_plain / cells:.2f} ms, added {1e3 * (of_loaded - of_plain) / cells:+.2f} ms"
                )
    finally:
        plain.stop()
        loaded.stop()


def recording(rounds: int = 40, calls: int = 50) -> None:
    """The share that `record()` takes of a call: blocks of calls with it and without in turn, the first of each apart, which
    is seen on the Python way."""
    import numpy as np

    import jitlab as jl

    @jl.function
    def total(v: Any) -> Any:
        return np.sqrt(v * v + 1).sum()

    @jl.function
    def array(v: Any) -> Any:
        return np.sqrt(v * v + 1)

    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    for name, f, size in (("scalar result", total, 1_000), ("scalar result", total, 600_000), ("array", array, 600_000)):
        a = np.linspace(0, 1, size)
        for _ in range(50):
            f(a)
        time.sleep(0.5)  # the better code is ready by then
        first: dict[bool, list[float]] = {False: [], True: []}
        later: dict[bool, list[float]] = {False: [], True: []}
        for n in range(2 * rounds):
            heard = n % 2 == 1
            with jl.record() if heard else contextlib.nullcontext():
                took = []
                for _ in range(calls):
                    start = time.process_time_ns()
                    f(a)
                    took.append((time.process_time_ns() - start) / 1e3)
            first[heard].append(took[0])
            later[heard].append(statistics.mean(took[1:]))
        plain, share = later[False], statistics.median(h / p - 1 for h, p in zip(later[True], later[False], strict=True))
        once = statistics.median(first[True]) - statistics.median(first[False])
        print(
            f"recording, {name} of {size:,} elements: {statistics.median(plain):.1f} µs a call, recorded {100 * share:+.1f} %"
            f" (median of {rounds} pairs of {calls - 1} calls); the first one {once:+.0f} µs"
        )


def flood(number: int, rate: int = 10_000) -> None:
    """Events at a rate, through a session with a panel that is shown."""
    from jitlab import events
    from jitlab.notebook.rpc.link import Link
    from jitlab.report import Recording

    sent: list[tuple[float, dict[str, Any]]] = []
    link = Link(lambda message: sent.append((time.perf_counter(), message)))
    link.receive({"op": "resume", "epoch": "", "since": 0})
    taken = Recording()
    busy, start = 0.0, time.perf_counter()
    for n in range(number):
        began = time.perf_counter()
        event = events.ClusterRan(function="f", trace=1, cluster="cluster_0", start_ns=n, duration_ns=1000)
        taken.listen(event)
        link.emit("cell", event)
        now = time.perf_counter()
        busy += now - began
        if n % 100 == 99:
            time.sleep(max(0.0, start + n / rate - now))
    seconds = time.perf_counter() - start
    time.sleep(1)
    batches = [message for _, message in sent if message["op"] == "batch"]
    told = sum(len(b["events"]) + sum(sum(k.values()) for k in b.get("counts", {}).values()) for b in batches)
    size = sum(len(json.dumps(message)) for _, message in sent)
    recorded = taken.clusters["f", 1, "cluster_0"].calls
    print(
        f"events: {number} in {seconds:.1f} s, {1e6 * busy / number:.1f} µs each; recorded {recorded}, told {told},"
        f" lost {number - told}; {len(sent)} messages, {len(sent) / seconds:.1f}/s, {size / seconds / 1e3:.0f} kB/s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=1000)
    parser.add_argument("--events", type=int, default=100_000)
    options = parser.parse_args()
    latency(options.cells)
    flood(options.events)
    recording()  # keeps to one core from here on


if __name__ == "__main__":
    main()

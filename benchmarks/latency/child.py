"""One process that measures one thing, and prints it as JSON: the processor time of its main thread and the time by the clock,
in milliseconds; of warm calls in microseconds.

    python -m benchmarks.latency.child first jit softmax 0.5
"""

from __future__ import annotations

import importlib
import json
import linecache
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.latency.functions import FIRST, WARM

#: A warm call: so many calls in a row, so often; the shortest counts.
CALLS, TIMES = 2000, 15
SIZES = 8  # other sizes that are tried, the median counts
LARGE = 20_000  # float64, over 64 kB


def timed(action: Callable[[], Any]) -> dict[str, float]:
    wall, cpu = time.perf_counter(), time.thread_time()
    action()
    return {"cpu": 1e3 * (time.thread_time() - cpu), "wall": 1e3 * (time.perf_counter() - wall)}


def defined(text: str, names: dict[str, Any] | None = None, name: str = "<cell>") -> dict[str, Any]:
    """Run the text of a cell; the names it leaves."""
    names = {"np": np} if names is None else names
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    exec(compile(text, name, "exec"), names)
    return names


def compiler(engine: str) -> Callable[[Any], Any]:
    if engine in ("jit", "function"):
        return getattr(importlib.import_module("jitlab"), engine)  # type: ignore[no-any-return]
    if engine == "jax":
        jax = importlib.import_module("jax")
        jax.config.update("jax_enable_x64", True)
        return lambda f: _waiting(jax, jax.jit(f))
    return importlib.import_module("numba").njit  # type: ignore[no-any-return]


def _waiting(jax: Any, f: Any) -> Any:
    return lambda *args: jax.block_until_ready(f(*args))


def function(engine: str, program: str, decorate: Callable[[Any], Any], text: str = "") -> Any:
    """The function of a program, decorated; in JAX's case with its own `np`."""
    source = text or FIRST[program][engine == "numba"]
    names = defined(source)
    if engine == "jax":
        names["np"] = importlib.import_module("jax.numpy")
    if engine == "numba" and "normal" in names:
        names["normal"] = decorate(names["normal"])
    return decorate(names["f"])


def arguments(program: str, more: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.uniform(1, 2, (shape[0] + more, *shape[1:])) for shape in FIRST[program][2]]


# ---- what is measured


def importing(engine: str) -> dict[str, float]:
    return timed(lambda: importlib.import_module({"jit": "jitlab"}.get(engine, engine)))


def extension(_: str) -> dict[str, float]:
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    return timed(lambda: shell.run_line_magic("load_ext", "jitlab"))


def first(engine: str, program: str, idle: str) -> dict[str, float]:
    """`idle`: so many seconds lie between decorator and call."""
    f, args = function(engine, program, compiler(engine)), arguments(program)
    time.sleep(float(idle))
    return timed(lambda: f(*args))


def right_after(engine: str) -> dict[str, float]:
    """The first call of softmax while what Black-Scholes has left to do goes on."""
    decorate = compiler(engine)
    f, args = function(engine, "Black-Scholes", decorate), arguments("Black-Scholes")
    then, others = function(engine, "softmax", decorate), arguments("softmax")
    f(*args)
    return timed(lambda: then(*others))


def same_again(engine: str, program: str) -> dict[str, float]:
    """The cell that defines the function, decorated, runs again, and calls it."""
    args = arguments(program)
    names = {"np": importlib.import_module("jax.numpy") if engine == "jax" else np, "decorate": compiler(engine)}
    heads = "\ndef " if engine == "numba" else "\ndef f("  # it compiles no function that is not decorated
    text = FIRST[program][engine == "numba"].replace(heads, f"\n@decorate{heads}")
    defined(text, names)["f"](*args)
    _quiet(engine)
    return timed(lambda: defined(text, names)["f"](*args))


def other_literal(engine: str) -> dict[str, float]:
    decorate, args = compiler(engine), arguments("one-liner")
    text = FIRST["one-liner"][0]
    function(engine, "one-liner", decorate)(*args)
    _quiet(engine)
    return timed(lambda: function(engine, "one-liner", decorate, text.replace("1", "3"))(*args))


def other_size(engine: str, program: str) -> dict[str, float]:
    f = function(engine, program, compiler(engine))
    given = [arguments(program, more) for more in range(2 + SIZES)]
    for args in given[:2]:
        f(*args)
    _quiet(engine)
    found = [timed(lambda args=args: f(*args)) for args in given[2:]]  # type: ignore[misc]
    return {kind: float(np.median([one[kind] for one in found])) for kind in ("cpu", "wall")}


def warm(engine: str) -> dict[str, float]:
    """Microseconds of each kind of warm call beyond those that calling an empty function takes."""
    import jitlab as jl

    if engine == "extension":
        from IPython.core.interactiveshell import InteractiveShell

        InteractiveShell.instance().run_line_magic("load_ext", "jitlab")
    names = defined(WARM)
    x, w = np.ones(10), np.ones(10)
    large = np.ones(LARGE)
    p = {"a": {"w": x.copy(), "b": x.copy()}, "c": {"w": x.copy(), "b": x.copy()}}
    log: list[int] = []

    def made(decorate: Any, name: str) -> Any:
        return decorate(names[name])

    function_, jit = jl.function, jl.jit
    kinds = ("plain", "keywords", "nested", "number", "in_place")
    plain, keywords, nested, number, in_place = (made(function_, name) for name in kinds)
    strided, over, whole, pieces, python = (made(d, n) for d, n in (
        (function_, "plain"), (function_, "plain"), (jit, "plain"), (jit, "pieces"), (jit, "python")
    ))  # fmt: skip
    reverse = np.ones(20)[::-2]
    calls: dict[str, Callable[[], Any]] = {
        "plain": lambda: plain(x, w), "keywords": lambda: keywords(x, w=w), "nested dict": lambda: nested(p, x),
        "Python number": lambda: number(x, 2.5), "in place": lambda: in_place(x), "strided": lambda: strided(reverse, w),
        "result over 64 kB": lambda: over(large, large), "jl.jit plain": lambda: whole(x, w),
        "jl.jit settled as Python": lambda: python(x), "jl.jit, two pieces": lambda: pieces(x, log),
    }  # fmt: skip
    beside: dict[str, Callable[[], Any]] = {
        "result over 64 kB": lambda: large * large + 1,
        "jl.jit settled as Python": lambda: names["python"](x),
        "jl.jit, two pieces": lambda: names["pieces"](x, log),
    }
    for call in calls.values():
        for _ in range(60):
            call()
    _quiet("jit")
    found = _shortest({**calls, **{f"NumPy: {name}": call for name, call in beside.items()}, "": lambda: None})
    return {name: found[name] - found[""] for name in found if name}


def _shortest(calls: dict[str, Callable[[], Any]]) -> dict[str, float]:
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(TIMES):
        for name, call in calls.items():
            started = time.thread_time()
            for _ in range(CALLS):
                call()
            best[name] = min(best[name], 1e6 * (time.thread_time() - started) / CALLS)
    return best


def _quiet(engine: str) -> None:
    """Wait until nothing is compiled in the background any more."""
    if engine in ("jit", "function"):
        from jitlab.targets.devices import default_target

        while default_target().is_improving:
            time.sleep(0.01)


MEASURED = {
    "import": importing, "extension": extension, "first": first, "right after": right_after, "same again": same_again,
    "literal": other_literal, "size": other_size, "warm": warm,
}  # fmt: skip

if __name__ == "__main__":
    print(json.dumps(MEASURED[sys.argv[1]](*sys.argv[2:])))

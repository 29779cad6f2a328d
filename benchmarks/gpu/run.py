"""jitlab on one NVIDIA GPU beside torch.compile, JAX and CuPy, where they can be imported: `python benchmarks/gpu/run.py`.

Every tool computes the same program on arrays that lie on the GPU, warmed, in turns: a sample is as many calls as take some
20 ms, with a wait at both ends; the figure is the median of the samples. Each result is compared with NumPy's on the first rows
before anything is timed. Rates are the bytes that a program has to read and write at least, over the time, as a share of what
the device copies in this run (`C`, read and written). `--json PATH` keeps all of it; `--only NAMES`.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np

import jitlab as jl
from benchmarks.gpu.gpu_programs import PROGRAMS, Program
from jitlab.targets import devices

SAMPLES = 7
SAMPLE_SECONDS = 20e-3


class Tool:
    """A way to run a program on the GPU: `compiled` makes a function of NumPy's one, or of the tool's own."""

    name = "jitlab"
    version = jl.__version__

    def array(self, x: np.ndarray) -> Any:
        return jl.to_device(x)

    def compiled(self, program: Program) -> Callable[..., Any] | None:
        return jl.function(program.numpy, device="gpu")

    def wait(self) -> None:
        target = devices.gpu()
        target.driver.wait()

    def numpy(self, x: Any) -> np.ndarray:
        return x.to_numpy() if isinstance(x, jl.DeviceArray) else np.asarray(x)

    def forget(self) -> None:
        jl.trim()


class Torch(Tool):
    name = "torch.compile"

    def __init__(self) -> None:
        self.torch = importlib.import_module("torch")
        self.version = self.torch.__version__
        self.torch._dynamo.config.cache_size_limit = 64
        self.torch.backends.cuda.matmul.allow_tf32 = False

    def array(self, x: np.ndarray) -> Any:
        return self.torch.from_numpy(x).cuda()

    def compiled(self, program: Program) -> Callable[..., Any] | None:
        own = program.torch and program.torch(self.torch)
        return own and self.torch.compile(own, dynamic=False)

    def wait(self) -> None:
        self.torch.cuda.synchronize()

    def numpy(self, x: Any) -> np.ndarray:
        return x.cpu().numpy()

    def forget(self) -> None:
        self.torch._dynamo.reset()
        self.torch.cuda.empty_cache()


class Jax(Tool):
    name = "JAX"

    def __init__(self) -> None:
        self.jax = importlib.import_module("jax")
        self.jax.config.update("jax_enable_x64", True)
        self.jax.config.update("jax_default_matmul_precision", "highest")
        self.version = self.jax.__version__
        assert any(device.platform == "gpu" for device in self.jax.devices()), "JAX sees no GPU"
        self.last: Any = None

    def array(self, x: np.ndarray) -> Any:
        return self.jax.device_put(x)

    def compiled(self, program: Program) -> Callable[..., Any] | None:
        if program.jax is None:
            return None
        function = self.jax.jit(program.jax(self.jax.numpy))

        def call(*args: Any) -> Any:
            self.last = function(*args)
            return self.last

        return call

    def wait(self) -> None:
        if self.last is not None:
            self.last.block_until_ready()

    def numpy(self, x: Any) -> np.ndarray:
        return np.asarray(x)

    def forget(self) -> None:
        self.last = None
        self.jax.clear_caches()


class CuPy(Tool):
    name = "cupy.fuse"

    def __init__(self) -> None:
        self.cupy = importlib.import_module("cupy")
        self.version = self.cupy.__version__

    def array(self, x: np.ndarray) -> Any:
        return self.cupy.asarray(x)

    def compiled(self, program: Program) -> Callable[..., Any] | None:
        own = program.cupy and program.cupy(self.cupy)
        if own:
            own.__name__ = "program"  # it becomes that of a function in C
        return own and (self.cupy.fuse(own) if program.fuses else own)

    def wait(self) -> None:
        self.cupy.cuda.Device().synchronize()

    def numpy(self, x: Any) -> np.ndarray:
        return self.cupy.asnumpy(x)

    def forget(self) -> None:
        self.cupy.get_default_memory_pool().free_all_blocks()


def tools() -> Iterator[Tool]:
    """jitlab, and those that can be imported and see the GPU."""
    yield Tool()
    for make in (Torch, Jax, CuPy):
        try:
            yield make()
        except Exception as error:
            print(f"without {make.name}: {type(error).__name__}: {str(error)[:100]}", flush=True)


def seconds(tool: Tool, call: Callable[[], Any], calls: int) -> float:
    """Of one call, over so many."""
    tool.wait()
    started = time.perf_counter()
    for _ in range(calls):
        call()
    tool.wait()
    return (time.perf_counter() - started) / calls


def copy_rate() -> float:
    """Bytes a second that the device copies, read and written."""
    driver, nbytes = devices.gpu().driver, 1 << 30
    a, b = driver.allocate(nbytes), driver.allocate(nbytes)
    times = []
    for _ in range(12):
        before = driver.mark()
        driver.copy_within(b, a, nbytes)
        after = driver.mark()
        driver.wait()
        times.append(driver.elapsed_ns(before, after))
    driver.free(a)
    driver.free(b)
    return 2 * nbytes / float(np.median(times)) * 1e9


def error_of(tool: Tool, program: Program, arrays: Sequence[np.ndarray], result: Any) -> float:
    """The largest error of a part of the result relative to its largest value: NumPy computes it in float64."""
    want = np.asarray(program.numpy(*[a.astype("f8") if a.dtype.kind == "f" else a for a in program.part(arrays)]))
    got = tool.numpy(result)[tuple(slice(0, n) for n in want.shape)]
    return float(np.max(np.abs(got - want)) / np.max(np.abs(want)))


def measured(program: Program, all_tools: Sequence[Tool], rate: float) -> dict[str, Any]:
    """A row: seconds of each tool, and the first call of jitlab."""
    arrays = program.inputs(np.random.default_rng(0))
    calls: dict[str, tuple[Tool, Callable[[], Any], int]] = {}
    row: dict[str, Any] = {"program": program.name, "bytes": program.nbytes, "goal": program.goal, "times": {}, "errors": {}}
    for tool in all_tools:
        function = tool.compiled(program)
        if function is None:
            continue
        try:
            given = [tool.array(a) for a in arrays]
            tool.wait()
            started = time.perf_counter()
            result = function(*given)
            tool.wait()
            row.setdefault("first", {})[tool.name] = time.perf_counter() - started
            row["errors"][tool.name] = error_of(tool, program, arrays, result)
            del result

            def call(function: Callable[..., Any] = function, given: list[Any] = given) -> Any:
                return function(*given)

            seconds(tool, call, 3)
            calls[tool.name] = tool, call, max(1, round(SAMPLE_SECONDS / seconds(tool, call, 3)))
        except Exception as error:
            row["errors"][tool.name] = f"{type(error).__name__}: {str(error)[:200]}"
    found: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(SAMPLES):
        for name, (tool, call, count) in calls.items():
            found[name].append(seconds(tool, call, count))
    row["times"] = {name: float(np.median(times)) for name, times in found.items()}
    row["share"] = {name: program.nbytes / t / rate for name, t in row["times"].items()}
    if program.flops:
        row["flops"] = {name: program.flops / t for name, t in row["times"].items()}
    calls.clear()
    for tool in all_tools:
        tool.forget()
    return row


def line(row: dict[str, Any]) -> str:
    """A row of the table."""
    own = row["times"].get("jitlab")
    text = f"{row['program']:<34}"
    if own is None:
        return text + f" failed: {row['errors'].get('jitlab')}"
    peers = "".join(
        f"  {name} {row['times'][name] / own:5.2f}" if name in row["times"] else f"  {name}     -"
        for name in ("torch.compile", "JAX", "cupy.fuse")
    )
    goal, share, error = row["goal"] or "-", row["share"]["jitlab"], row["errors"]["jitlab"]
    first = row["first"]["jitlab"] * 1e3
    return f"{text} {own * 1e6:9.1f} µs {share:5.2f} C (goal {goal}){peers}  first {first:4.0f} ms  error {error:.0e}"


def small(a: Any, b: Any) -> Any:
    return a * b + 1


def _small_of(_: Any) -> Callable[..., Any]:
    return lambda a, b: a * b + 1


def host_microseconds() -> dict[str, float]:
    """Of a warm call of a small program, until it is enqueued."""
    found: dict[str, float] = {}
    x = np.linspace(0, 1, 1024, dtype="f4")
    for tool in tools():
        program = Program("small", small, lambda _: [], 1, 0.0, *(3 * [_small_of]), fuses=True)
        function = tool.compiled(program)
        assert function is not None
        a, b = tool.array(x), tool.array(x)
        for _ in range(200):
            function(a, b)
        times = []
        for _ in range(20):
            tool.wait()
            started = time.perf_counter()
            for _ in range(100):
                function(a, b)
            times.append((time.perf_counter() - started) / 100)
        tool.wait()
        found[tool.name] = float(np.median(times)) * 1e6
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="programs whose names have one of these in them, comma separated")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    all_tools = list(tools())
    driver = devices.gpu().driver
    rate = copy_rate()
    versions = {tool.name: tool.version for tool in all_tools}
    versions |= {"numpy": np.__version__, "python": sys.version.split()[0]}
    about = {
        "date": datetime.date.today().isoformat(), "device": driver.name, "arch": driver.key, "copy_bytes_per_second": rate,
        "versions": versions,
    }  # fmt: skip
    print(f"{about['date']}  {driver.name} ({driver.key})  {about['versions']}  C = {rate / 1e9:.0f} GB/s", flush=True)
    rows = []
    for program in PROGRAMS:
        if options.only and not any(word in program.name for word in options.only.split(",")):
            continue
        rows.append(measured(program, all_tools, rate))
        print(line(rows[-1]), flush=True)
        for name, error in rows[-1]["errors"].items():
            if isinstance(error, str):
                print(f"    {name}: {error}", flush=True)
    host = host_microseconds()
    print("host time of a warm call, n = 1024, µs: " + ", ".join(f"{name} {t:.1f}" for name, t in host.items()), flush=True)
    if options.json:
        options.json.write_text(json.dumps({**about, "host_microseconds": host, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()

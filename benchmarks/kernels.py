"""Single kernels beside NumPy: processor time of warm calls on one core, `python -m benchmarks.kernels [group ...]`.

Each row is one expression, of one dtype and shape. Both ways are called in turns, and the ratio is the median over
neighbouring pairs: above 1 jitlab takes less time.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.pinning import pin

if __name__ == "__main__":
    pin()

import numpy as np  # noqa: E402

import jitlab as jl  # noqa: E402

#: Seconds of processor time of one way in one pair.
SPAN = 2e-3
PAIRS = 15
WARMING = 30

MATRICES = ((30, 40), (300, 400), (2000, 1500))

Row = tuple[str, Callable[..., Any], tuple[Any, ...]]


def numbers(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    rng = np.random.default_rng(1)
    if np.dtype(dtype).kind in "iu":
        return rng.integers(1, 1000, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def of_matrices(texts: list[str], dtypes: str, shapes: tuple[tuple[int, ...], ...] = MATRICES) -> Iterator[Row]:
    """Expressions of x, a matrix of each dtype and shape, and F, the same by columns."""
    for text in texts:
        function = eval(f"lambda x, F: {text}", {"np": np})  # written below
        for dtype in dtypes.split():
            for shape in shapes:
                x = numbers(shape, dtype)
                yield f"{text}, {dtype} {'×'.join(map(str, shape))}", function, (x, np.asfortranarray(x))


def of_vectors(texts: list[str], sizes: tuple[int, ...] = (16, 256, 4096)) -> Iterator[Row]:
    """Expressions of x, a vector of each size, and z, a complex one."""
    for text in texts:
        function = eval(f"lambda x, z: {text}", {"np": np})  # written below
        for n in sizes:
            x = numbers((n,), "f8")
            yield f"{text}, {n}", function, (x, x + 1j * x[::-1])


def of_systems(texts: list[str]) -> Iterator[Row]:
    """Expressions of a, positive definite matrices, and b, a vector for each."""
    for text in texts:
        function = eval(f"lambda a, b: {text}", {"np": np})  # written below
        for shape in ((4, 4), (16, 16), (64, 64), (16, 8, 8)):
            a = numbers(shape, "f8")
            a = a @ np.swapaxes(a, -1, -2) + shape[-1] * np.eye(shape[-1])
            yield f"{text}, {'×'.join(map(str, shape))}", function, (a, a[..., :1].copy())


def repeated(step: Callable[..., Any], x: Any) -> Any:
    """What a loop of 50 turns gives, each of which takes what the one before has made."""
    for _ in range(50):
        x = step(x)
    return x


def in_loops(steps: dict[str, Any]) -> Iterator[Row]:
    """Expressions of x in a loop that takes their result for the next x."""
    for text, x in steps.items():
        names = {"np": np, "repeated": repeated}
        yield f"50 × x = {text}", eval(f"lambda x: repeated(lambda x: {text}, x)", names), (x,)


GROUPS: dict[str, Callable[[], Iterator[Row]]] = {
    "positions": lambda: of_matrices(["x.argmax()", "x.argmax(1)", "x.argmin(0)"], "f8 f4 i8 i4"),
    "division": lambda: of_matrices(["x // 7", "x % 7", "x // 2"], "i8 i4 i2 u1 u4"),
    "columns": lambda: of_matrices(
        ["x.sum(0)", "x.T.sum(1)", "x.T.sum(0)", "F.sum(1)", "F.sum(0)", "F.sum()", "F.max(1)", "F.max(0)", "F.std(1)"], "f8 f4"
    ),
    "orders": lambda: of_vectors(
        ["np.sort(x)", "np.argsort(x)", "np.partition(x, 5)", "np.median(x)", "np.searchsorted(x, x)", "np.interp(x, x, x)"]
    ),
    "transforms": lambda: of_vectors(["np.fft.fft(z)", "np.fft.ifft(z)", "np.fft.rfft(x)", "np.fft.irfft(z)"]),
    "matrices": lambda: of_systems(
        [
            "np.linalg.solve(a, b)", "np.linalg.inv(a)", "np.linalg.det(a)", "np.linalg.cholesky(a)", "np.linalg.qr(a)",
            "np.linalg.eigh(a)", "np.linalg.eigvalsh(a)", "np.linalg.svd(a)", "np.linalg.svdvals(a)",
        ]  # fmt: skip
    ),
    "loops": lambda: in_loops(
        {
            "np.linalg.inv(x)": np.eye(4) + 1, "np.linalg.qr(x)[0] + x": np.eye(8) + 1, "np.sort(-x)": numbers((64,), "f8"),
            "np.linalg.solve(x + 1, x)": np.eye(8) + 1, "np.fft.fft(x).real": numbers((64,), "f8"),
        }
    ),
}


def seconds(function: Callable[..., Any], args: tuple[Any, ...], times: int) -> float:
    """Processor time of one call."""
    start = time.process_time_ns()
    for _ in range(times):
        function(*args)
    return (time.process_time_ns() - start) / times / 1e9


def measured(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[float, float, float]:
    """Seconds a call as NumPy and as machine code, and the median ratio."""
    compiled = jl.function(function)
    for _ in range(2):
        for _ in range(WARMING):
            compiled(*args)
        time.sleep(0.3)  # the good tier comes when nothing was compiled for a while
    times = max(1, math.ceil(SPAN / max(seconds(function, args, 3), 1e-8)))
    pairs = [(seconds(function, args, times), seconds(compiled, args, times)) for _ in range(PAIRS)]
    return min(a for a, _ in pairs), min(b for _, b in pairs), statistics.median(a / b for a, b in pairs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("groups", nargs="*", metavar="group", help=f"of {', '.join(GROUPS)}; all by default")
    chosen = parser.parse_args().groups or list(GROUPS)
    print("| expression | NumPy, µs | jitlab, µs | ratio |\n|---|---|---|---|")
    for name in chosen:
        for text, function, args in GROUPS[name]():
            slow, fast, ratio = measured(function, args)
            print(f"| `{text}` | {slow * 1e6:.2f} | {fast * 1e6:.2f} | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()

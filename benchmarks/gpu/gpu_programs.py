"""Programs for a GPU, each as NumPy has it, and as its peers write it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

f4 = np.float32
Arrays = list[np.ndarray]


@dataclass
class Program:
    """`numpy`: the program; the others make it of their module. `nbytes`: what has to be read and written at least; `goal`: the
    share of the copy rate that it should reach; `part`: inputs for which NumPy's result is the first part of the whole one."""

    name: str
    numpy: Callable[..., Any]
    inputs: Callable[[np.random.Generator], Arrays]
    nbytes: int
    goal: float = 0.0
    torch: Callable[[Any], Callable[..., Any]] | None = None
    jax: Callable[[Any], Callable[..., Any]] | None = None
    cupy: Callable[[Any], Callable[..., Any]] | None = None
    fuses: bool = False  # cupy.fuse takes it
    flops: float = 0.0
    part: Callable[[Sequence[np.ndarray]], Arrays] = lambda arrays: [a[:64] for a in arrays]


def random(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any = "f4") -> np.ndarray:
    """Numbers between 0.1 and 1.1, which repeat after some millions."""
    count = int(np.prod(shape))
    some = rng.random(min(count, 1 << 22), np.float32) + f4(0.1)
    return np.resize(some, count).reshape(shape).astype(dtype)


def gelu(x: Any, y: Any) -> Any:
    return f4(0.5) * x * (1 + np.tanh(f4(0.7978845608) * (x + f4(0.044715) * x * x * x))) + y


def _gelu_of(m: Any) -> Any:
    return lambda x, y: 0.5 * x * (1 + m.tanh(0.7978845608 * (x + 0.044715 * x * x * x))) + y


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def _softmax_of(m: Any) -> Any:
    def own(x: Any) -> Any:
        e = m.exp(x - x.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    return own


def layernorm(x: Any, gain: Any, bias: Any) -> Any:
    return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + f4(1e-5)) * gain + bias


def _layernorm_of(m: Any) -> Any:
    return lambda x, g, b: (x - x.mean(1, keepdims=True)) / m.sqrt(x.var(1, keepdims=True) + 1e-5) * g + b


def black_scholes(s: Any, k: Any, t: Any) -> Any:
    root = f4(0.2) * np.sqrt(t)
    d1 = (np.log(s / k) + f4(0.05) * t) / root
    d2 = d1 - root
    return s / (1 + np.exp(f4(-1.702) * d1)) - k * np.exp(f4(-0.03) * t) / (1 + np.exp(f4(-1.702) * d2))


def _black_scholes_of(m: Any) -> Any:
    def own(s: Any, k: Any, t: Any) -> Any:
        root = 0.2 * m.sqrt(t)
        d1 = (m.log(s / k) + 0.05 * t) / root
        d2 = d1 - root
        return s / (1 + m.exp(-1.702 * d1)) - k * m.exp(-0.03 * t) / (1 + m.exp(-1.702 * d2))

    return own


def _stencil(u: Any) -> Any:
    return 0.25 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]) - u[1:-1, 1:-1]


N = 1 << 28


def _vectors(count: int, size: int, dtype: Any = "f4") -> Callable[[np.random.Generator], Arrays]:
    return lambda rng: [random(rng, (size,), dtype) + np.asarray(k, dtype) for k in range(count)]


def _rows(shape: tuple[int, int], extra: int = 0) -> Callable[[np.random.Generator], Arrays]:
    return lambda rng: [random(rng, shape), *(random(rng, shape[1:]) for _ in range(extra))]


def _first_rows(arrays: Sequence[np.ndarray]) -> Arrays:
    return [arrays[0][:4], *arrays[1:]]


def _sixty_six(arrays: Sequence[np.ndarray]) -> Arrays:
    return [a[:66] for a in arrays]


def _all(arrays: Sequence[np.ndarray]) -> Arrays:
    return list(arrays)


def _sums() -> list[Program]:
    def own(axis: Any) -> Any:
        return lambda _: lambda x: x.sum() if axis is None else x.sum(axis)

    whole, first, second = own(None), own(0), own(1)
    rows = _rows((65536, 4096))
    return [
        Program("sum, 2^28", whole(None), _vectors(1, N), 4 * N, 0.0, whole, whole, whole, part=_all),
        Program("sum(0), 65536 x 4096", first(None), rows, 4 << 28, 0.8, first, first, first, part=_all),
        Program("sum(1), 65536 x 4096", second(None), rows, 4 << 28, 0.0, second, second, second),
    ]


SHAPES = ((65536, 1024, 0.88), (32768, 4096, 0.88), (8192, 16384, 0.88), (32768, 1000, 0.85), (1024, 131072, 0.75))


def _of_rows() -> list[Program]:
    found = []
    for rows, columns, goal in SHAPES:
        for name, own, torch, jax in (
            ("softmax", softmax, _softmax_torch, _softmax_of), ("layernorm", layernorm, _layernorm_torch, _layernorm_of),
        ):  # fmt: skip
            inputs = _rows((rows, columns), 0 if own is softmax else 2)
            nbytes = 8 * rows * columns
            found.append(Program(f"{name}, {rows} x {columns}", own, inputs, nbytes, goal, torch, jax, part=_first_rows))
    return found


def _softmax_torch(torch: Any) -> Any:
    return lambda x: torch.softmax(x, 1)


def _layernorm_torch(torch: Any) -> Any:
    return lambda x, g, b: torch.nn.functional.layer_norm(x, x.shape[1:], g, b, 1e-5)


def _product(size: int, dtype: str) -> Program:
    nbytes = 3 * size * size * np.dtype(dtype).itemsize
    return Program(
        f"x @ y, {size} {dtype}", lambda x, y: x @ y, lambda rng: [random(rng, (size, size), dtype) for _ in range(2)], nbytes,
        0.0, lambda _: lambda x, y: x @ y, lambda _: lambda x, y: x @ y, lambda _: lambda x, y: x @ y, flops=2.0 * size**3,
        part=lambda arrays: [arrays[0][:4], arrays[1]],
    )  # fmt: skip


def _product_and_sum(_: Any) -> Callable[..., Any]:
    return lambda x, y: x * y + x


def _outer(_: Any) -> Callable[..., Any]:
    return lambda x, columns, rows: x * columns + rows


def _turned(_: Any) -> Callable[..., Any]:
    return lambda x, y: x.T * 2 + y


def _stencil_of(_: Any) -> Callable[..., Any]:
    return _stencil


def _same(name: str, own: Callable[[Any], Any], inputs: Any, nbytes: int, goal: float, **more: Any) -> Program:
    """One that all write alike."""
    return Program(name, own(None), inputs, nbytes, goal, own, own, own, **more)


def _bytes_of(rng: np.random.Generator) -> Arrays:
    return [rng.integers(0, 256, N, np.uint8)]


def _outer_of(rng: np.random.Generator) -> Arrays:
    return [random(rng, (65536, 4096)), random(rng, (4096,)), random(rng, (65536, 1))]


def _squares(rng: np.random.Generator) -> Arrays:
    return [random(rng, (8192, 8192)), random(rng, (8192, 8192))]


PROGRAMS: list[Program] = [
    Program("gelu(x) + y, f32", gelu, _vectors(2, N), 12 * N, 0.92, _gelu_of, _gelu_of, _gelu_of, fuses=True),
    _same("x * y + x, f64", _product_and_sum, _vectors(2, N // 2, "f8"), 12 * N, 0.85, fuses=True),
    _same("x * y + x, f16", _product_and_sum, _vectors(2, N, "f2"), 6 * N, 0.85, fuses=True),
    Program(
        "u8 -> f32", lambda x: x.astype(np.float32) * f4(1 / 255), _bytes_of, 5 * N, 0.85,
        lambda torch: lambda x: x.to(torch.float32) * (1 / 255), lambda jnp: lambda x: x.astype(jnp.float32) * f4(1 / 255),
        lambda cupy: lambda x: x.astype(cupy.float32) * cupy.float32(1 / 255),
    ),
    _same(
        "x * columns + rows, 65536 x 4096", _outer, _outer_of, 8 << 28, 0.0, fuses=True,
        part=lambda a: [a[0][:4], a[1], a[2][:4]],
    ),
    *_of_rows(),
    *_sums(),
    Program(
        "Black-Scholes, 2^26", black_scholes, _vectors(3, 1 << 26), 16 << 26, 0.0, _black_scholes_of, _black_scholes_of,
        _black_scholes_of, fuses=True,
    ),
    _same("5-point stencil, 8192^2", _stencil_of, _rows((8192, 8192)), 8 << 26, 0.7, part=_sixty_six),
    _same("x.T * 2 + y, 8192^2", _turned, _squares, 12 << 26, 0.0, part=_all),
    _product(4096, "f4"),
    _product(4096, "f8"),
]  # fmt: skip

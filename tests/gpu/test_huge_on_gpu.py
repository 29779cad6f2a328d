"""What calls the C library on a processor runs as kernels on a GPU, which has none."""

import numpy as np
import pytest

import jitlab as jl
from jitlab.targets.gpu_cuda import gpu_target, ptx
from jitlab.targets.gpu_cuda.kernels.kernel_module import kernels_of
from tests.gpu.on_gpu import GPUS, on_gpu

RNG = np.random.default_rng(1)

#: Usual arguments and huge ones, infinite ones, NaN and denormals.
WIDE = np.concatenate([RNG.normal(size=40), RNG.normal(size=20) * 1e30, [np.inf, -np.inf, np.nan, 0.0, -0.0, 1e-42]])
DIVISORS = np.concatenate([RNG.normal(size=60) * 1e-7, [1.0, 2.0, 3.0, np.inf, 1e-42, 0.0]])
COMPLEX = RNG.normal(size=60) + 1j * RNG.normal(size=60) * np.repeat([1, 1e3, 1e7], 20)

CALLS = [
    *((name, [WIDE]) for name in ("sin", "cos", "tan")),
    *((name, [WIDE, DIVISORS]) for name in ("fmod", "remainder", "floor_divide", "divmod")),
    *((name, [COMPLEX]) for name in ("exp", "expm1", "sinh", "cosh", "tanh", "sin", "cos")),
    ("power", [COMPLEX, COMPLEX / 1e6]),
]


@pytest.mark.parametrize(("name", "arrays"), CALLS)
@pytest.mark.parametrize("itemsize", [8, 4, 2])
def test_it_is_a_kernel_and_its_values_are_numpys(name, arrays, itemsize):
    if arrays[0].dtype.kind == "c" and itemsize == 2:
        arrays, itemsize = [a[:33] for a in arrays], 4
    with np.errstate(all="ignore"):
        arrays = [a.astype(f"{a.dtype.kind}{itemsize * (2 if a.dtype.kind == 'c' else 1)}") for a in arrays]
        function = getattr(np, name)
        expected = function(*arrays)
        for gpu in GPUS:
            with on_gpu(*gpu) as driver:
                got = jl.function(lambda *xs: function(*xs))(*arrays)
                assert sum(driver.launched.values()) > 0
            for one, other in zip(*((v if name == "divmod" else (v,)) for v in (got, expected)), strict=True):
                assert one.dtype == other.dtype
                if len(arrays) == 2 and arrays[0].dtype.kind == "f":
                    assert np.array_equal(one, other, equal_nan=True) and (np.signbit(one) == np.signbit(other)).all()
                else:
                    eps = np.finfo(one.dtype).eps
                    assert np.allclose(one, other, rtol=8 * eps, atol=0 if one.dtype.kind == "f" else 1e3 * eps, equal_nan=True)


@pytest.mark.parametrize("name", ["sin", "cos", "tan", "fmod", "remainder", "floor_divide", "power"])
def test_float32_stays_float32_and_in_registers(name, monkeypatch):
    texts = []

    def kept(program):
        texts.append(kernels_of(program).text)
        return kernels_of(program)

    monkeypatch.setattr(gpu_target, "kernels_of", kept)
    x = WIDE.astype("f4")
    with on_gpu():
        jl.function(lambda *xs: getattr(np, name)(*xs))(*[x] * (1 if name in ("sin", "cos", "tan") else 2))
    (text,) = texts
    code = ptx.ptx_of(text, "sm_90")
    assert ".f64" not in code and ".local" not in code
    assert text.count("define internal") == (name != "power")  # what is rare needs no registers of the kernel

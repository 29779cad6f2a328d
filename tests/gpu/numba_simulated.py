"""Programs whose kernels run in numba's simulator of a GPU, which takes a process of its own: NUMBA_ENABLE_CUDASIM=1.

`python -m tests.gpu.numba_simulated launched` has jitlab launch them; `pasted FOLDER` runs modules as somebody pasted them, and
loads nothing of jitlab's.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

RANDOM = np.random.default_rng(3)


def normal(*shape, dtype="f4"):
    return RANDOM.normal(size=shape).astype(dtype)


def chain(a, b):
    return np.where(a > 0, np.floor(a * 3) % 2, np.sign(b)) + np.minimum(a, b) ** 2 - np.rint(b * 5)


def of_integers(a, b):
    return (a // b) * 3 + (a % b) - (a << 2) + (a ^ b), np.abs(a - b).max(0), (a > b).sum(1)


def statistics(x):
    return x.std(0), x.argmax(), x.argmin(1), (x > 0.5).any(), x.min(1), x.prod(1), x.sum(), x.mean()


def halved(x):
    turns = 0
    while np.abs(x).sum() > 10:
        x = x * 0.5
        turns = turns + 1
    return x, turns


def chosen(x, i):
    return x[i] * 2


def turned(x):
    return x.T[::-1] * 2 + 1


def of_complex(x):
    return x * x + 1  # not written for numba: LLVM's kernels run


def with_nan(x):
    return np.maximum(x, 0).max(1), np.fmin(x, 0), np.isnan(x)


def sums(x):
    return x.sum(), x.std(1)


def launched():
    """Values by kernels that jitlab has numba compile, beside NumPy's."""
    import jitlab as jl
    from jitlab.targets.gpu_cuda.numba_source.numba_launcher import NumbaLauncher
    from tests.gpu.listed_programs import LISTED, few

    counted, run = {"launches": 0}, NumbaLauncher.run

    def noted(self, *arguments):
        counted["launches"] += 1
        return run(self, *arguments)

    NumbaLauncher.run = noted
    jl.config.gpu_compiler = "numba"
    x, holes = normal(5, 70), normal(4, 9)
    holes[1, 3] = np.nan
    whole = RANDOM.integers(-50, 50, size=(6, 11))
    programs = [
        *((LISTED[name].function, few(LISTED[name])) for name in ("softmax", "layernorm", "black_scholes")),
        (chain, (x, x[::-1].copy())), (of_integers, (whole, np.where(whole == 0, 1, whole[::-1]))), (statistics, (x,)),
        (of_integers, (whole.astype("i4"), np.where(whole == 0, 1, whole[::-1]).astype("i4"))), (halved, (x,)),
        (chosen, (x, np.array([1, -1, 0]))), (turned, (x,)), (of_complex, (x + 1j,)), (with_nan, (holes,)),
        (sums, (normal(2, 9000, dtype="f8"),)), (turned, (x[:0],)),
    ]  # fmt: skip
    with jl.simulated_gpu() as gpu, np.errstate(all="ignore"):
        for function, arguments in programs:
            got = jl.jit(function, device="gpu")(*(a.copy() for a in arguments))
            want = function(*(a.copy() for a in arguments))
            for mine, theirs in zip(*(r if isinstance(r, tuple) else (r,) for r in (got, want)), strict=True):
                assert np.asarray(mine).dtype == np.asarray(theirs).dtype
                np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6, err_msg=function.__name__)
        counted["by_llvm"] = sum(gpu.launched.values())
        try:
            jl.jit(chosen, device="gpu")(x, np.array([1, 5]))
        except IndexError as error:
            counted["error"] = str(error).splitlines()[0]
    return counted


def pasted(folder):
    """How many modules ran as they were pasted, and gave what is wanted of them."""
    import importlib.util

    count = 0
    for file in sorted(Path(folder).glob("*.py")):
        spec = importlib.util.spec_from_file_location(file.stem, file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        given = np.load(file.with_suffix(".npz"))
        arrays = [given[f"a{k}"].ravel() for k in range(len(given) - 1)]
        numbers = json.loads(file.with_suffix(".json").read_text())
        out = np.zeros(given["want"].size, given["want"].dtype)
        module.run(*arrays, out, *(np.dtype(kind).type(value) for kind, value in numbers["scalars"]), *numbers["sizes"])
        np.testing.assert_allclose(out, given["want"].ravel(), rtol=1e-5, atol=1e-6, err_msg=file.stem)
        count += 1
    assert not any(name.partition(".")[0] == "jitlab" for name in sys.modules)
    return {"pasted": count}


if __name__ == "__main__":
    print(json.dumps({"launched": launched, "pasted": pasted}[sys.argv[1]](*sys.argv[2:])))

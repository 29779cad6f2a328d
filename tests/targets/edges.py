"""The emitter against NumPy on edge values, one line of JSON a case. A process of its own: a trap must not end pytest.

    python edges.py
"""

import json
import sys
import warnings

import numpy as np
from one_kernel import equal, run

BOOLS, INTEGERS, FLOATS, COMPLEX = "?", "bBhHiIqQ", "efd", "FD"
ALL = BOOLS + INTEGERS + FLOATS + COMPLEX
COUNT = 16  # whole vectors: NumPy's own last bits may differ in what is left over

UFUNCS = {
    "add": (np.add, ALL),
    "sub": (np.subtract, INTEGERS + FLOATS + COMPLEX),
    "mul": (np.multiply, ALL),
    "div": (np.divide, FLOATS + COMPLEX),
    "floor_divide": (np.floor_divide, INTEGERS + FLOATS),
    "remainder": (np.remainder, INTEGERS + FLOATS),
    "neg": (np.negative, INTEGERS + FLOATS + COMPLEX),
    "abs": (np.abs, BOOLS + INTEGERS + FLOATS),
    "sign": (np.sign, INTEGERS + FLOATS),
    "sqrt": (np.sqrt, FLOATS),
    "floor": (np.floor, BOOLS + INTEGERS + FLOATS),
    "ceil": (np.ceil, INTEGERS + FLOATS),
    "trunc": (np.trunc, INTEGERS + FLOATS),
    "rint": (np.rint, FLOATS),
    "copysign": (np.copysign, FLOATS),
    "minimum": (np.minimum, BOOLS + INTEGERS + FLOATS),
    "maximum": (np.maximum, BOOLS + INTEGERS + FLOATS),
    "fmin": (np.fmin, BOOLS + INTEGERS + FLOATS),
    "fmax": (np.fmax, BOOLS + INTEGERS + FLOATS),
    "lt": (np.less, BOOLS + INTEGERS + FLOATS),
    "le": (np.less_equal, BOOLS + INTEGERS + FLOATS),
    "gt": (np.greater, BOOLS + INTEGERS + FLOATS),
    "ge": (np.greater_equal, BOOLS + INTEGERS + FLOATS),
    "eq": (np.equal, ALL),
    "ne": (np.not_equal, ALL),
    "isnan": (np.isnan, ALL),
    "isinf": (np.isinf, ALL),
    "isfinite": (np.isfinite, ALL),
    "signbit": (np.signbit, FLOATS),
    "and_": (np.bitwise_and, BOOLS + INTEGERS),
    "or_": (np.bitwise_or, BOOLS + INTEGERS),
    "xor": (np.bitwise_xor, BOOLS + INTEGERS),
    "invert": (np.invert, BOOLS + INTEGERS),
    "shift_left": (np.left_shift, INTEGERS),
    "shift_right": (np.right_shift, INTEGERS),
    "pow": (np.power, INTEGERS),
}


def edge_values(dtype):
    """What breaks naive code, and some ordinary values."""
    rng = np.random.default_rng(3)
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        bits, low, high = info.bits, int(info.min), int(info.max)
        values = [0, 1, 2, 3, 5, 7, bits - 1, bits, bits + 1, 100, high, high - 1, high // 2, low, low + 1]
        values += [-1, -2, -7, -bits] if low else [high - 2, high // 3]
        return np.concatenate([np.array(values, dtype), rng.integers(low, high, 13, dtype, endpoint=True)])
    if dtype.kind == "f":
        info = np.finfo(dtype)
        values = [0.0, 0.5, 1.0, 1.5, 2.5, 3.0, 7.0, 127, 128, 129, 255.5, 256, 32768, 65504, 65519, 65520, 65535]
        values += [2.0**k for k in (31, 32, 53, 62, 63, 64, 70)] + [2.0**31 - 1, 2.0**31 + 1, 2.0**32 - 1, 2.0**53 + 2]
        values += [float(info.max), float(info.tiny), float(info.tiny) / 4, float(info.smallest_subnormal), 1e-7, 1e19]
        values += [1 + 2.0**-11, 1 + 2.0**-11 + 2.0**-40, 1 + 3 * 2.0**-11, 1 + 3 * 2.0**-11 - 2.0**-41, 0.1, 0.7]
        values += [2.98e-8, 2.9802322387695312e-08, 2.9802322387695316e-08, np.inf]
        values += [-value for value in values] + [np.nan]
        with np.errstate(over="ignore"):
            return np.array(values).astype(dtype)
    part = np.dtype(dtype.char.lower())
    values = rng.permutation(edge_values(part))[:24]
    real, imag = np.meshgrid(values, values)
    result = np.empty(real.size, dtype)
    result.real, result.imag = real.ravel(), imag.ravel()
    return result


def whole(x):
    return np.resize(x, -(-x.size // COUNT) * COUNT)


def cases():
    """(name, body, NumPy's function, arrays)"""
    for name, (ufunc, chars) in UFUNCS.items():
        for char in chars:
            dtype = np.dtype(char)
            x = edge_values(dtype)
            arrays = [x]
            if ufunc.nin == 2 and dtype.kind == "c":
                arrays = [x, np.random.default_rng(5).permutation(x)]
            elif ufunc.nin == 2:
                arrays = [a.ravel() for a in np.meshgrid(x, x)]
            if name == "pow":
                arrays[1] = np.where(arrays[1] < 0, 0, arrays[1]).astype(dtype)
            arrays = [whole(a) for a in arrays]
            yield f"{name} {dtype}", lambda e, *xs, name=name: getattr(e, name)(*xs), ufunc, arrays
    for source in ALL:
        for target in map(np.dtype, ALL):
            x = edge_values(np.dtype(source))
            if x.dtype.kind in "fc" and target == "uint32":  # out of range, NumPy's vectors and scalars disagree
                real = x.real.astype("f8")
                x = x[(real > -(2**31) - 1) & (real < 2**32)]
            x = whole(x)
            yield (
                f"cast {x.dtype} to {target}",
                lambda e, v, target=target: e.cast(v, target),
                lambda v, target=target: v.astype(target),
                [x],
            )


def compare(name, body, function, arrays):
    expected = function(*arrays)
    ties = name.split()[0] in ("fmin", "fmax")  # of zeros: NumPy itself is not of one mind
    for width, tier in ((1, "good"), (8, "good"), (8, "quick"), (32, "good")):
        got = run(body, *arrays, result=expected.dtype, width=width, tier=tier)
        same = equal(got, expected)
        if ties and got.dtype.kind == "f":
            same |= (got == 0) & (expected == 0)
        if not same.all():
            found = [*(a[~same][:3].tolist() for a in arrays), got[~same][:3].tolist(), expected[~same][:3].tolist()]
            return f"width {width}, {tier}: {np.count_nonzero(~same)} differ, inputs, got and expected: {found}"
    return None


def main():
    warnings.simplefilter("ignore")
    for case in cases():
        print(json.dumps([case[0], compare(*case)]), flush=True)


if __name__ == "__main__":
    sys.exit(main())

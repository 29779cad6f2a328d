"""Many functions called from many threads with many shapes.

A case is (functions, seed): of that many fresh functions each thread calls some, again and again, in an order of its own, with
one of several sizes; the first calls of most are made by several threads at once.
"""

import random
import sys
import threading
import traceback
import warnings

import numpy as np

from .programs import FUNCTION, JIT, Kind, namespace_of

PATIENCE, SHORT = 200, 2
THREADS, CALLS = 16, 250
SIZES = (3, 8, 17)
BODIES = (
    ("np.exp(x) * K + x.sum()", lambda x, k: np.exp(x) * k + x.sum()),
    ("np.where(x > 0, x * K, -x).cumsum()", lambda x, k: np.where(x > 0, x * k, -x).cumsum()),
    ("np.sqrt(x * x + K)[::-1] - x.mean()", lambda x, k: np.sqrt(x * x + k)[::-1] - x.mean()),
)


def draw(rng):
    return rng.choice([4, 8, 16]), rng.randrange(1 << 20)


def tried(functions, seed):
    rng = random.Random(seed)
    made, inputs = [], {size: np.random.default_rng(seed).standard_normal(size) for size in SIZES}
    for number in range(functions):
        text, plain = rng.choice(BODIES)
        how, k = rng.choice([FUNCTION, FUNCTION, JIT]), rng.randrange(2, 30)
        f = namespace_of(Kind(str(number), how, f"\n@HOW\ndef f(x):\n    return {text}\n", None, 0), k)["f"]
        made.append((f, {size: plain(x, k) for size, x in inputs.items()}))
    wrong, barrier = [], threading.Barrier(THREADS)

    def go(number):
        own = random.Random(f"{seed} {number}")
        barrier.wait()
        try:
            for _ in range(CALLS):
                at, size = own.randrange(functions), own.choice(SIZES)
                f, expected = made[at]
                found = f(inputs[size])
                if not np.allclose(found, expected[size], rtol=1e-12, atol=1e-12):
                    wrong.append(f"function {at}, size {size}: {found!r}, not {expected[size]!r}")
        except BaseException:
            wrong.append(traceback.format_exc())

    interval = sys.getswitchinterval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sys.setswitchinterval(rng.choice([1e-5, 1e-4, interval]))
        try:
            threads = [threading.Thread(target=go, args=(number,)) for number in range(THREADS)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            sys.setswitchinterval(interval)
    for at, (f, _) in enumerate(made):
        if f.experimental_get_tracing_count() > len(SIZES):
            wrong.append(f"function {at} was traced {f.experimental_get_tracing_count()} times for {len(SIZES)} sizes")
    return "\n".join(wrong[:3])

"""Calls from four threads that share the pool, beside forks, other numbers of threads, and indices out of range.

A case is (seed): each thread makes CALLS calls of functions whose loops are cut into small pieces, and compares bits with what
one thread gave; one of the four forks now and then, and the child calls, too.
"""

import os
import random
import threading
import traceback
import warnings

import numpy as np

import jitlab as jl
from jitlab.targets.cpu_llvm.emit import codegen
from jitlab.targets.cpu_llvm.threads import cut_phases, pool

PATIENCE, SHORT = 200, 3
USERS, CALLS, FORKS = 4, 1000, 0.004
FUNCTIONS = (
    lambda x: np.exp(x) * 2 + 1,
    lambda x: (x - x.mean()) / x.std(),
    lambda x: np.exp(x - x.max(axis=1, keepdims=True)) / np.exp(x - x.max(axis=1, keepdims=True)).sum(axis=1, keepdims=True),
    lambda x: (x.sum(axis=0), np.cumsum(x, axis=0), np.cumsum(x, axis=1), np.sin(x).max(axis=1)),
    lambda x: x[np.argsort(x[:, 0])] + 1,
)
_known = []


def draw(rng):
    return (rng.randrange(1 << 20),)


def row_of(x, i):
    return np.exp(x[i]).sum(axis=1)


def _prepare():
    """The calls, each with the bytes that it gives on one thread."""
    for name in ("LEAST_NS", "VECTORS"):
        setattr(cut_phases, name, 1)
    cut_phases.PIECE_NS, cut_phases.LONG_PIECE_NS, cut_phases.MOST_PIECES = 1, 2000, 16
    jl.config.threads, jl.config.cache = 1, False
    codegen.quick_module_for = codegen.module_for  # which has regions
    for function in map(jl.function, FUNCTIONS):
        for shape in ((3, 5), (40, 70), (301, 33), (2000, 90)):
            x = np.random.default_rng(len(_known)).standard_normal(shape)
            _known.append((function, x, _bytes(function(x))))


def _bytes(value):
    return [np.asarray(part).tobytes() for part in (value if isinstance(value, tuple) else (value,))]


def tried(seed):
    if not _known:
        _prepare()
    rng, wrong, fails = random.Random(seed), [], jl.function(row_of)
    jl.config.threads = rng.randrange(1, 6)

    def calls(own, count):
        for _ in range(count):
            function, x, wanted = own.choice(_known)
            if _bytes(function(x)) != wanted:
                wrong.append(f"other bits for {x.shape} with {jl.config.threads} threads")
            if own.random() < 0.02:
                jl.config.threads = own.randrange(1, 6)
            if own.random() < 0.01:
                i = np.arange(50) % 40
                i[own.randrange(50)] = 40
                try:
                    fails(_known[1][1], i)
                    wrong.append("no IndexError")
                except IndexError:
                    pass

    def go(number):
        own = random.Random(f"{seed} {number}")
        try:
            for _ in range(CALLS // 50):
                calls(own, 50)
                if number == 0 and own.random() < FORKS * 50:
                    _fork(own, calls, wrong)
        except BaseException:
            wrong.append(traceback.format_exc())

    users = [threading.Thread(target=go, args=(number,)) for number in range(USERS)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for user in users:
            user.start()
        for user in users:
            user.join()
    return "\n".join(wrong[:3])


def _fork(own, calls, wrong):
    child = os.fork()
    if child == 0:
        try:
            before = len(wrong)
            is_right = pool.helpers() == 0
            calls(own, 20)
            os._exit(0 if is_right and len(wrong) == before else 1)
        finally:
            os._exit(2)
    if status := os.waitpid(child, 0)[1]:
        wrong.append(f"a child ended with {status}")

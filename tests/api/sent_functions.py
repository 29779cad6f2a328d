"""Functions that tests send to other processes: from this module, as a script (`__main__`), or run as a cell."""

import numpy as np

import jitlab as jl
from jitlab.compat import tensorflow as tf

SCALE = 3.0


def scaled(x):
    return np.sqrt(x) * SCALE


@jl.jit
def jitted(x, more=1.0):
    return scaled(x) + more


@jl.function(reduce_retracing=True)
def traced(x, *, more=1.0):
    return scaled(x) + more


@tf.function(jit_compile=True)
def strict(x):
    return scaled(x) + 1.0


class Model:
    def __init__(self):
        self.more = 1.0

    @jl.function
    def step(self, x):
        return scaled(x) + self.more

    @jl.jit
    def jump(self, x):
        return scaled(x) + self.more


def made(more):
    @jl.jit(jit_level="O0")
    def inner(x):
        return scaled(x) + more

    return inner


def plain(x):
    return scaled(x) + 1.0


class Called:
    def __call__(self, x):
        return scaled(x) + 1.0


bare = jl.function(plain)
of_lambda = jl.jit(lambda x: scaled(x) + 1.0)
inner = made(1.0)
model = Model()
#: Named, so that any pickler can send them; the others need one that sends functions by value.
NAMED = {"jitted": jitted, "traced": traced, "strict": strict, "step": model.step, "jump": model.jump, "bare": bare}
OTHERS = {"inner": inner, "of_lambda": of_lambda, "called": jl.jit(Called())}

"""Methods: traces of their own for each instance, which is held weakly."""

from __future__ import annotations

import copy
import functools
import gc
import weakref

import numpy as np
import pytest

import jitlab as jl


class Model:
    def __init__(self, k):
        self.k = k
        self.w = np.full(2, float(k))

    @jl.function
    def scale(self, x):
        return x * self.k + self.w

    @staticmethod
    @jl.function
    def double(x):
        return x * 2


def test_methods_have_traces_for_each_instance():
    one, two, x = Model(1), Model(2), np.ones(2)
    assert one.scale is one.scale and one.scale is not two.scale
    assert one.scale(x).tolist() == [2, 2] and two.scale(x).tolist() == [4, 4]
    one.w[:] = 10  # contents are read at each call
    one.k = 100  # a Python value is part of the trace
    assert one.scale(x).tolist() == [11, 11]
    assert one.scale.experimental_get_tracing_count() == 1
    assert Model.scale(two, x).tolist() == [4, 4]
    assert Model.double(x).tolist() == [2, 2] == one.double(x).tolist()
    assert isinstance(Model.scale, jl.Function)


def test_instances_are_held_weakly():
    model = Model(1)
    model.scale(np.ones(2))
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None


def test_what_is_no_object_to_refer_to():
    class Unhashable(Model):
        __hash__ = None

    class Slots:
        __slots__ = ()

        @jl.function
        def f(self, x):
            return x

    with pytest.raises(TypeError, match="unhashable type"):
        Unhashable(1).scale(np.ones(2))
    with pytest.raises(TypeError, match="cannot create weak reference"):
        Slots().f(np.ones(2))


def test_options_hold_for_each_instance():
    class Options:
        @jl.function(input_signature=[jl.TensorSpec([None], np.float32)], jit_compile=False)
        def f(self, x):
            return x

    options = Options()
    assert options.f.input_signature == (jl.TensorSpec([None], np.float32),)
    assert options.f([1]).dtype == np.float32 and options.f.options.jit_compile is False


def passing_on(method):
    def wrapper(*args, **kwargs):
        return method(*args, **kwargs)

    return wrapper


@pytest.mark.parametrize("compiled", [jl.function, jl.jit])
def test_a_method_behind_a_decorator_that_passes_all_arguments_on(compiled):
    class Adds:
        @compiled
        @passing_on
        def add(self, x, y, z=1):
            return x + y + z

        @compiled
        def summed(*args):
            return args[1] + args[2]

    adds = Adds()
    assert adds.add(np.int64(2), np.int64(3)) == 6 and adds.add(np.int64(2), y=np.int64(3), z=2) == 7
    assert adds.summed(np.int64(2), np.int64(3)) == 5


def test_callable_objects_and_partials():
    class Scale:
        def __init__(self, k):
            self.k = k

        def __call__(self, x):
            return x * self.k

    assert jl.function(Scale(3))(np.ones(2)).tolist() == [3, 3]
    assert jl.function(functools.partial(lambda k, x: x * k, 4))(np.ones(2)).tolist() == [4, 4]
    with pytest.raises(TypeError, match="is not a callable object"):
        jl.function("text")


@pytest.mark.parametrize("compiled", [jl.function, jl.jit])
def test_a_method_of_an_object_without_another_name_is_called_as_in_python(compiled):
    class Scales:
        def __init__(self, k):
            self.k = k

        @compiled
        def scale(self, x):
            return x * self.k

        def also(self):
            return self.scale

    x = np.ones(2)
    for k in (2, 3):
        assert Scales(k).scale(x).tolist() == [k, k] == Scales(k).also()(x).tolist()
    kept = [Scales(k).scale for k in range(5)]
    gc.collect()
    assert [scale(x)[0] for scale in kept] == [0, 1, 2, 3, 4]
    assert [scale(x)[0] for scale in map(copy.copy, kept)] == [0, 1, 2, 3, 4]
    assert copy.deepcopy(Scales(6)).scale(x).tolist() == [6, 6]
    assert list(map(Scales(7).scale, [x]))[0].tolist() == [7, 7]


def test_a_method_that_is_kept_keeps_its_object_and_lets_it_go():
    model = Model(2)
    scale, gone = model.scale, weakref.ref(model)
    assert isinstance(scale, jl.Function) and model.scale is scale and callable(scale)
    assert scale(np.ones(2)).tolist() == [4, 4] and scale.experimental_get_tracing_count() == 1
    del model
    assert gone() is not None and scale(np.ones(2)).tolist() == [4, 4]
    assert gone().scale.experimental_get_tracing_count() == 1  # the traces are those of the object
    del scale
    assert gone() is None


def test_a_method_is_recorded_as_part_of_what_calls_it_and_not_again():
    model = Model(2)
    for compiled in (jl.function, jl.jit):
        outer = compiled(lambda x: model.scale(x) + 1)
        for _ in range(4):
            assert outer(np.ones(2)).tolist() == [5, 5]
        assert outer.experimental_get_tracing_count() == 1

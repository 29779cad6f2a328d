"""A module whose file is edited while its functions are used: what is compiled is what Python would run."""

import importlib
import os
import sys

import numpy as np
import pytest

import jitlab as jl

TEXT = """\
import jitlab as jl

def helper(v):
    return v + {0}

class Scaled:
    __by = {0}

    def times(self, v):
        return v * self.__by

@jl.jit
def compiled(v):
    return helper(v) * {0}

@jl.function
def traced(v):
    scale = lambda w: w * {0}
    return scale(v)
"""
x = np.arange(4.0)


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    path, times = tmp_path / "edited_module.py", iter(range(1, 100))

    def write(number, above=""):
        path.write_text(above + TEXT.format(number))
        later = os.stat(path).st_mtime + next(times)  # clocks of file systems are coarse
        os.utime(path, (later, later))

    yield write
    sys.modules.pop("edited_module", None)


def answers(module):
    scaled = module.Scaled()
    method = jl.jit(scaled.times)
    return [float(f(x)[1]) for f in (module.compiled, module.traced, jl.jit(module.helper), method)]


def test_a_module_that_is_loaded_again_is_compiled_as_it_is_now(write):
    write(2)
    module = importlib.import_module("edited_module")
    assert answers(module) == [6, 2, 3, 2]
    write(5)
    assert answers(importlib.reload(module)) == [30, 5, 6, 5]
    write(7, above="# a line more\n")
    assert answers(importlib.reload(module)) == [56, 7, 8, 7]


def test_a_file_that_was_edited_and_not_loaded_again_changes_nothing(write):
    write(2)
    module = importlib.import_module("edited_module")
    write(5)
    with pytest.warns(UserWarning, match="edited_module.py, line 16.* its file was edited since it was loaded"):
        assert answers(module) == [6, 2, 3, 2]


def test_compiled_code_sees_that_a_module_was_loaded_again(write):
    write(2)
    module = importlib.import_module("edited_module")
    held = module.helper
    through_the_module, through_a_name = jl.jit(lambda v: module.helper(v)), jl.jit(lambda v: held(v))
    assert [float(f(x)[1]) for f in (through_the_module, through_a_name)] == [3, 3]
    write(5)
    importlib.reload(module)  # another function stands under the name; who held the old one keeps it
    assert [float(f(x)[1]) for f in (through_the_module, through_a_name)] == [6, 3]
    held.__code__ = module.helper.__code__  # as %autoreload does
    assert [float(f(x)[1]) for f in (through_the_module, through_a_name)] == [6, 6]

"""Little memory: MemoryError that names the bytes, or the result; never the end of the process."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the limit of memory is set and read as on Linux")

PROGRAM = """
import resource
import numpy as np
import jitlab as jl

{how}
def f(x):
    return np.exp(x) * 3 + np.sin(x).sum()

@jl.function
def warm(x):
    return np.tanh(x)

if {is_warm}:
    warm(np.ones(3))
with open("/proc/self/statm") as file:
    now = int(file.read().split()[0]) * 4096
before = resource.getrlimit(resource.RLIMIT_AS)
resource.setrlimit(resource.RLIMIT_AS, (now + ({kib} << 10), before[1]))
x = np.zeros(1000)
try:
    print(f(x)[0])
except MemoryError as error:
    print(type(error).__name__, error)
resource.setrlimit(resource.RLIMIT_AS, before)
print(f(x)[0])
"""


def printed(**given):
    program = PROGRAM.format(**given)
    environment = {**os.environ, "JITLAB_CACHE": "0", "OPENBLAS_NUM_THREADS": "1"}
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=False)
    assert found.returncode == 0, found.stderr
    return found.stdout.splitlines()


@pytest.mark.parametrize("is_warm", [True, False])
@pytest.mark.parametrize("kib", [100, 1000, 8000, 20_000])
def test_a_first_call_without_memory_names_the_bytes_and_works_later(kib, is_warm):
    first, second = printed(how="@jl.function", kib=kib, is_warm=is_warm)
    assert second == "3.0"
    assert first == "3.0" or (first.startswith("MemoryError ") and " bytes" in first)


@pytest.mark.parametrize("kib", [1000, 20_000])
def test_under_jit_python_runs_what_cannot_be_compiled(kib):
    assert printed(how="@jl.jit", kib=kib, is_warm=True) == ["3.0", "3.0"]

"""Programs with a construct that no graph can hold, in the line marked `# <-`.

Each entry makes (function, arguments, what can be seen afterwards besides results): made anew for every run, so that effects
of one run are not seen by another. The NumPy around the construct is captured all the same.
"""

# ruff: noqa: B007, B018, C416, F841, PLW0603, S301, S307, UP031

import asyncio
import contextlib
import contextvars
import copy
import ctypes
import functools
import io
import logging
import os
import pickle
import random
import socket
import sys
import threading
import time
import warnings
import weakref
from dataclasses import dataclass

import numpy as np

PROGRAMS = {}
x = np.linspace(0.5, 2.5, 5)


def program(make):
    PROGRAMS[make.__name__] = make
    return make


class Box:
    """An object with attributes."""

    def __init__(self):
        self.n = 0
        self.value = 1.5


@program
def generator_function():
    def f(x):
        y = x * 2
        yield y.sum()  # <-
        yield y + 1

    return lambda *a: list(f(*a)), f, (x,), lambda: None


@program
def inner_generator():
    def f(x):
        def parts():
            yield x * 2  # <-
            yield x + 1

        return sum(parts()) * 3

    return f, f, (x,), lambda: None


@program
def delegating_generator():
    def f(x):
        def parts():
            yield from (x, x * 2)  # <-

        total = np.zeros_like(x)
        for part in parts():
            total = total + part
        return total

    return f, f, (x,), lambda: None


@program
def try_finally():
    log = []

    def f(x):
        y = np.tanh(x)
        try:
            z = y * 2
        finally:
            log.__iadd__(["left"])  # <-
        return z + 1

    return f, f, (x,), lambda: log


@program
def exception_as_control_flow():
    def f(x):
        y = x * 3
        try:
            y = y * int("three")  # <-
        except ValueError:
            y = y + 1
        return y

    return f, f, (x,), lambda: None


@program
def evaluated_text():
    def f(x):
        y = x + 1
        return eval("y * 2")  # <-

    return f, f, (x,), lambda: None


@program
def executed_text():
    box = Box()

    def f(x):
        exec("box.n += 1", {"box": box})  # <-
        return x * box.n

    return f, f, (x,), lambda: box.n


@program
def names_of_the_frame():
    def f(x):
        y = x * 2
        found = locals()  # <-
        return sorted(found), found["y"]

    return f, f, (x,), lambda: None


@program
def store_through_globals():
    def f(x):
        globals()["_stored"] = 3.5  # <-
        return x * _stored  # noqa: F821

    return f, f, (x,), lambda: globals().pop("_stored")


@program
def sockets():
    def f(x):
        left, right = socket.socketpair()  # <-
        left.sendall(b"12")
        y = x * int(right.recv(2))
        left.close()
        right.close()
        return y

    return f, f, (x,), lambda: None


@program
def file_in_memory():
    file = io.StringIO()

    def f(x):
        y = x * 2
        file.write("written")  # <-
        return y

    return f, f, (x,), lambda: file.getvalue()


@program
def pipes_of_the_system():
    def f(x):
        read, write = os.pipe()  # <-
        os.write(write, b"7")
        result = x + int(os.read(read, 1))
        os.close(read)
        os.close(write)
        return result

    return f, f, (x,), lambda: None


@program
def threads():
    log = []

    def f(x):
        y = np.exp(x)
        thread = threading.Thread(target=lambda: log.append(float(y.sum())))  # <-
        thread.start()
        thread.join()
        return y

    return f, f, (x,), lambda: log


@program
def coroutines():
    def f(x):
        async def twice(y):  # <-
            await asyncio.sleep(0)
            return y * 2

        return asyncio.run(twice(x)) + 1

    return f, f, (x,), lambda: None


@program
def class_definition():
    def f(x):
        class Scale:  # <-
            factor = 3.0

        return x * Scale.factor

    return f, f, (x,), lambda: None


@program
def global_store():
    globals()["_counter"] = 0

    def f(x):
        global _counter
        _counter = _counter + 1  # <-
        return x * _counter

    return f, f, (x,), lambda: _counter


@program
def nonlocal_store():
    count = 0

    def f(x):
        nonlocal count
        count += 1  # <-
        return x * count

    return f, f, (x,), lambda: count


@program
def deleted_item():
    d = {"a": 1.0, "b": 2.0}

    def f(x, d):
        y = x * d["a"]
        d.pop("b", None)  # <-
        return y

    return f, f, (x, d), lambda: d


@program
def context_manager():
    log = []

    @contextlib.contextmanager
    def logged():
        log.append("in")
        yield 2.0
        log.append("out")

    def f(x):
        y = x + 1
        with logged() as factor:  # <-
            y = y * factor
        return y - 1

    return f, f, (x,), lambda: log


@program
def list_kept_outside():
    kept = []

    def f(x):
        y = x * 2
        kept.__iadd__([y])  # <-
        return y + 1

    return f, f, (x,), lambda: kept


@program
def closure_that_mutates():
    log = []

    def note(value):
        log.__iadd__([value])  # <-
        return value

    def f(x):
        return note(x * 2) + 1

    return f, f, (x,), lambda: log


@program
def attribute_set_by_name():
    box = Box()

    def f(x):
        setattr(box, "value", 4.0)  # <-  # noqa: B010
        return x * getattr(box, "val" + "ue")

    return f, f, (x,), lambda: box.value


@program
def item_made_of_itself():
    counts = {"n": 0}

    def f(x):
        counts["n"] = counts["n"] // 2 + 1  # <-
        return x * 2

    return f, f, (x,), lambda: counts


@program
def match_statement():
    def f(x, shape):
        y = x * 2
        match shape:  # <-
            case (rows, cols):
                return y * (rows + cols)
            case _:
                return y

    return f, f, (x, (2, 3)), lambda: None


@program
def import_inside():
    def f(x):
        import math  # <-

        return x * math.pi

    return f, f, (x,), lambda: None


@program
def array_of_objects():
    def f(x):
        y = x + 1
        things = np.array([None, "a", 2.0], dtype=object)  # <-
        return y * things[2]

    return f, f, (x,), lambda: None


@program
def structured_array():
    records = np.array([(1.0, 2), (3.0, 4)], dtype=[("a", float), ("b", int)])

    def f(x):
        y = x * 2
        column = records["a"]  # <-
        return y + column[1]

    return f, f, (x,), lambda: None


@program
def masked_array():
    masked = np.ma.masked_less(x, 1.0)

    def f(x, m):
        y = x * 2
        z = m + y  # <-
        return z.sum(), y

    return f, f, (x, masked), lambda: None


class Loud(np.ndarray):
    pass


@program
def array_of_a_subclass():
    def f(x, loud):
        y = x * 2
        z = loud + 1  # <-
        return type(z).__name__, y

    return f, f, (x, x.view(Loud)), lambda: None


@program
def iterator_as_input():
    source = iter([1.0, 2.0, 3.0, 4.0])

    def f(x):
        y = x + 1
        factor = next(source)  # <-
        return y * factor

    return f, f, (x,), lambda: list(source)


@program
def dict_changed():
    d = {"a": 1.0}

    def f(x, d):
        y = np.sqrt(x)
        d["y"] = y  # <-
        return y * d["a"]

    return f, f, (x, d), lambda: d


@program
def arrays_sorted_by_key():
    def f(x):
        parts = [x * 3, x, x * 2]
        return sorted(parts, key=lambda part: part.sum())[0]  # <-

    return f, f, (x,), lambda: None


@program
def logging_call():
    stream = io.StringIO()
    logger = logging.Logger("program")
    logger.addHandler(logging.StreamHandler(stream))

    def f(x):
        y = x * 2
        logger.warning("sum %.1f", y.sum())  # <-
        return y

    return f, f, (x,), lambda: stream.getvalue()


@program
def clock():
    def f(x):
        started = time.perf_counter()  # <-
        y = np.tanh(x)
        return y, time.perf_counter() >= started

    return f, f, (x,), lambda: None


@program
def random_module():
    generator = random.Random(5)

    def f(x):
        return x * generator.random()  # <-

    return f, f, (x,), lambda: generator.random()


@program
def saved_array():
    file = io.BytesIO()

    def f(x):
        y = x * 2
        np.save(file, y)  # <-
        return y

    return f, f, (x,), lambda: file.getvalue()


@program
def comprehension_with_effects():
    log = []

    def f(x):
        [log.append(i) for i in range(3)]  # <-
        return x * 2

    return f, f, (x,), lambda: log


@program
def context_variable():
    variable = contextvars.ContextVar("variable", default=1.0)

    def f(x):
        token = variable.set(3.0)  # <-
        y = x * variable.get()
        variable.reset(token)
        return y

    return f, f, (x,), lambda: variable.get()


@program
def weak_reference():
    def f(x):
        y = x * 2
        reference = weakref.ref(y)  # <-
        return reference() is y, y

    return f, f, (x,), lambda: None


@program
def identity_number():
    def f(x):
        y = x * 2
        return id(y) == id(x), id(x) == id(x), y  # <-

    return f, f, (x,), lambda: None


@program
def text_of_an_array():
    def f(x):
        y = x * 2
        text = f"{y}"  # <-
        return text, y

    return f, f, (x,), lambda: None


@program
def text_by_format():
    def f(x):
        y = x * 2
        return "sum {:.2f}, {}".format(y.sum(), y), "%.3f" % y[0]  # <-  # noqa: UP032

    return f, f, (x,), lambda: None


@program
def pickled():
    def f(x):
        y = x * 2
        again = pickle.loads(pickle.dumps(y))  # <-
        return again + 1

    return f, f, (x,), lambda: None


@program
def warning():
    def f(x):
        y = x * 2
        with warnings.catch_warnings(record=True) as caught:  # <-
            warnings.simplefilter("always")
            warnings.warn("look", stacklevel=1)
        return y, len(caught)

    return f, f, (x,), lambda: None


@program
def printed():
    def f(x):
        y = x * 2
        print("sum", y.sum(), file=sys.stdout)  # <-
        return y

    return f, f, (x,), lambda: None


@program
def standard_output():
    def f(x):
        y = x * 2
        sys.stdout.write("written\n")  # <-
        return y

    return f, f, (x,), lambda: None


@program
def breakpoint_inside():
    hits = []

    def f(x):
        y = x * 2
        hook, sys.breakpointhook = sys.breakpointhook, lambda *a, **k: hits.append(1)
        breakpoint()  # <-  # noqa: T100
        sys.breakpointhook = hook
        return y

    return f, f, (x,), lambda: hits


@program
def python_complex_of_a_sum():
    def f(x):
        y = x * 2
        total = complex(y.sum())  # <-
        return y / total, total

    return f, f, (x,), lambda: None


@program
def list_of_an_array():
    def f(x):
        y = x * 2j
        return y.tolist()  # <-

    return f, f, (x,), lambda: None


@program
def bytes_of_an_array():
    def f(x):
        y = x * 2
        return y.tobytes()  # <-

    return f, f, (x,), lambda: None


@program
def environment_of_the_process():
    def f(x):
        os.environ["JITLAB_TEST_BREAK"] = "2"  # <-
        return x * float(os.environ.pop("JITLAB_TEST_BREAK"))

    return f, f, (x,), lambda: "JITLAB_TEST_BREAK" in os.environ


@program
def deep_copy_of_an_object():
    box = Box()

    def f(x):
        other = copy.deepcopy(box)  # <-
        return x * other.value, other is box

    return f, f, (x,), lambda: None


@program
def cached_function():
    calls = []

    @functools.lru_cache
    def table(n):
        calls.append(n)
        return np.arange(n, dtype=float)

    def f(x):
        return x + table(5)  # <-

    return f, f, (x,), lambda: calls


@program
def memory_as_ctypes():
    def f(x):
        y = x * 2
        pointer = y.ctypes.data_as(ctypes.POINTER(ctypes.c_double))  # <-
        return pointer[1], y

    return f, f, (x,), lambda: None


@dataclass
class Point:
    a: object
    b: object


@program
def object_made():
    def f(x):
        point = Point(x * 2, 3.0)  # <-
        return point.a + point.b

    return f, f, (x,), lambda: None


class Money:
    """Its operators keep count."""

    def __init__(self):
        self.count = 0

    def __mul__(self, other):
        self.count += 1
        return other * 2.0

    __rmul__ = __mul__


@program
def operator_of_a_class():
    money = Money()

    def f(x):
        y = x + 1
        return money * y  # <-

    return f, f, (x,), lambda: money.count


class Guessing:
    def __getattr__(self, name):
        return float(len(name))


@program
def attributes_made_up():
    guess = Guessing()

    def f(x):
        return x * guess.four  # <-

    return f, f, (x,), lambda: None


@program
def callback_of_numpy():
    log = []

    def f(x):
        y = x * 2
        return np.apply_along_axis(lambda row: log.append(1) or row.sum(), 0, y)  # <-

    return f, f, (x,), lambda: log


@program
def recursion_on_data():
    def halve(x, n):
        if x.sum() < 1:
            return n
        return halve(x / 2, n + 1)  # <-

    def f(x):
        return halve(x * 2, 0)

    return f, f, (x,), lambda: None


@program
def same_memory():
    def f(x):
        y = x[1:]
        return np.shares_memory(x, y), y * 2  # <-

    return f, f, (x,), lambda: None

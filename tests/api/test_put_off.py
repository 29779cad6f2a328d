"""What a call prints and stores is given out when its compiled part has run: in order, with the values of the moment."""

import contextlib
import copy
import io
import traceback
import types

import numpy as np
import pytest

import jitlab as jl
from jitlab.capture import CallCapture, EndPiece, record_call
from tests.cell_runs import run_cell
from tests.faults.events import at_event


class Model:
    def __init__(self):
        self.w, self.count, self.history, self.log = np.arange(4.0), 0, [], {"loss": [], "n": 0}


class Made:
    """Attributes that code of the user's looks after."""

    def __init__(self):
        object.__setattr__(self, "seen", [])

    def __setattr__(self, name, value):
        self.seen.append((name, float(value)))
        object.__setattr__(self, name, value)

    @property
    def half(self):
        return 0

    @half.setter
    def half(self, value):
        self.seen.append(("half", float(value) / 2))


class Sub(list):
    def append(self, x):
        print("appending", len(self))
        super().append(x)


HISTORY, TABLE = [], {}


def prints(x, out):
    y = x * 2
    print("sum", y.sum(), y[0], "x" * 2, sep="|", end=";\n")
    z = np.sqrt(y) + 1
    print(f"{z.mean():.3f} {z.max()!r:>10}", "%5.2f and %s" % (z.min(), "text"), str(y.shape))  # noqa: UP031
    print("a{}b{k}".format(y[1], k=z[0]), repr(z[0]) + "!")  # noqa: UP032
    return z


def appends(x, out):
    y = x * 2
    out.append(y)
    out.append((y.sum(), "a", 3, None))
    HISTORY.append(float(y[0]))
    return y + 1


def appended_is_the_result(x, out):
    y = x * 2
    out.append(y)
    z = y[1:]
    out.append(z)
    return y, z


def reads_what_it_got(x, out):
    y = x * 2
    out.append(y.sum())
    z = y + len(out)
    out.append(z)
    return z * out[0]


def stores_items(x, out):
    y = x * 2
    TABLE["y"] = y
    TABLE[int(len(x)), "b"] = y.sum()
    out.append(None)
    out[0] = y.max()
    TABLE["n"] = 3.5
    return y + 1


def stores_behind_the_end(x, out):
    y = x * 2
    print("before")
    out[100] = y.sum()
    print("never")
    return y


def writes_behind(x, out):
    y = x * 2
    print(x, y.sum())
    x[0] = 100.0
    print(x)
    y[1] = 5
    out.append(y)
    y[2] = 6
    print(y)
    return y.sum()


def writes_before(x, out):
    x[1:] += x[:-1]
    out.append(x)
    print(x, x[1])
    return x.sum()


def unrolled(x, out):
    for n in range(4):
        x = x * 0.5 + n
        print(n, x.sum())
        out.append(x.mean())
    return x


def rolled(x, out):
    s = 0.0
    for n in range(200):
        s += x[n % len(x)] * n
    print("s", s)
    for n in range(200):
        s += x[n % len(x)] * n
    return s


def chosen(x, out):
    y = x * x
    if y.sum() > 60:
        print("large", y.sum())
        out.append(1)
    return y * 2


def helper(y, what):
    print(what, y.sum())
    z = y * 3
    print(what, "then", z[0])
    return z


def helped(x, out):
    y = helper(x + 1, "first")
    z = helper(y, "second")
    out.append(z)
    return z - y


def raises_between(x, out):
    y = x * 2
    print("first", y.sum())
    out.append(y[0])
    z = y[out.__len__() + 100 :][0]
    print("never")
    return z


def raises_in_print(x, out):
    y = x * 2
    out.append(1)
    print(f"{y:.3f}")
    out.append(2)
    return y + 1


def draws(x, out):
    rng = np.random.default_rng(3)
    print("a", rng.random())
    y = x * rng.random()
    print(y)
    out.append(rng.random())
    return y + rng.random()


def printed_containers(x, out):
    y = x * 2
    pair = [y, y.sum()]
    print(pair, {"a": y}, (y[0], y[1:2]))
    pair.append(3)
    print(pair, out)
    out.append(pair)
    pair.append(4)
    return pair


def numbers(x, out):
    n = len(x)
    total = float(x.sum()) + n
    print(total, n, total > 3, x.shape, x.dtype)
    out.append(total)
    return x * total


def twice(x, out):
    out.append(out)
    y = x + 1
    out.append(y)
    return y


def tries(x, out):
    y = x * 2
    print("before")
    try:
        z = y + 1
        out[50] = z
        z = z + 1
    except IndexError as error:
        print("caught", error, z)
    finally:
        out.append(z)
    print("after")
    return z


def tries_a_helper(x, out):
    y = x * 2
    try:
        y = indexed(y, out)
    except IndexError:
        out.append("caught")
    try:
        y = y + 1
        out.append(y.sum())
    finally:
        print("at last", y)
    return y


def indexed(y, out):
    z = y * 3
    out[50] = z
    return z


def ends(x, out):
    y = x * 2
    try:
        y = y + 1
    except ValueError:
        y = None
    else:
        out[60] = y
    finally:
        print("finally", y.sum())
    return y


PROGRAMS = (
    prints, appends, appended_is_the_result, reads_what_it_got, stores_items, stores_behind_the_end, writes_behind,
    writes_before, unrolled, rolled, chosen, helped, raises_between, raises_in_print, draws, printed_containers, numbers, twice,
    tries, tries_a_helper, ends,
)  # fmt: skip


def outcome(function, *args):
    """What a call gives, prints, raises and leaves."""
    HISTORY.clear()
    TABLE.clear()
    text, result, raised = io.StringIO(), None, None
    with contextlib.redirect_stdout(text):
        try:
            result = function(*args)
        except Exception as error:
            entries = traceback.extract_tb(error.__traceback__)[1:]
            raised = type(error), str(error), [(entry.name, entry.lineno) for entry in entries if entry.filename == __file__]
    left = [vars(x) if hasattr(x, "__dict__") and not isinstance(x, list) else x for x in args]
    return repr((result, left, HISTORY, TABLE, raised)), text.getvalue(), result, args


def same_objects(found, wanted):
    """Do results and arguments hold the same objects at the same places?"""

    def places(x, at=()):
        yield at, id(x)
        if isinstance(x, (list, tuple)) and len(at) < 4:
            for n, item in enumerate(x):
                yield from places(item, (*at, n))

    def shared(x):
        known = list(places(x))
        return [(a, b) for a, one in known for b, other in known if a < b and one == other]

    return shared(found[2:]) == shared(wanted[2:])


def steps(model, x):
    model.count = model.count + 1
    y = x @ model.w
    model.w = model.w - 0.5 * x
    model.history.append(y)
    z = model.w * 2
    model.log["loss"].append(z.sum())
    model.log["n"] = len(x)
    model.text = f"{z[0]:.1f}"
    print(model.count, z)
    return y + model.w.sum()


def new_attribute(model, x):
    y = x * 2
    model.made = y
    print(hasattr(model, "made"), model.made is y)
    model.made = model.made + 1
    return model.made, y


def vars_after_a_store(model, x):
    model.count = x.sum()
    return sorted(vars(model)), model.__dict__["count"]


def text_is_read(model, x):
    y = x * 2
    model.text = f"{y.sum():.2f}"
    return y, model.text + "!"


def made_up(model, x):
    y = x * 2
    model.half = y.sum()
    z = y + 1
    model.whole = z.sum()
    return z, model.half


def replaced_list(model, x):
    y = x * 2
    model.history.append(y[0])
    model.history = []
    model.history.append(y[1])
    print(len(model.history), model.history)
    return y


def replaced_entry(model, x):
    y = x * 2
    model.log["loss"] = []
    model.log["loss"].append(y.sum())
    return y


@pytest.mark.parametrize("settle", ["off", "measure", "model"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_program_that_gives_something_out(monkeypatch, program, settle):
    monkeypatch.setattr(jl.config, "settle", settle)
    traced = jl.jit(program)
    for n in range(9):
        x = np.linspace(0.5, 2, 4 + n // 6) + n
        mine, theirs = (x.copy(), [[], [7.5]][n % 2]), (x.copy(), [[], [7.5]][n % 2])
        mine, theirs = copy.deepcopy(mine), copy.deepcopy(theirs)
        found, wanted = outcome(traced, *mine), outcome(program, *theirs)
        assert found[:2] == wanted[:2], n
        assert same_objects(found, wanted), n


METHODS = (
    (steps, Model), (new_attribute, Model), (vars_after_a_store, Model), (text_is_read, Model), (made_up, Made),
    (replaced_list, Model), (replaced_entry, Model),
)  # fmt: skip


@pytest.mark.parametrize("settle", ["off", "measure", "model"])
@pytest.mark.parametrize(("program", "kind"), METHODS, ids=lambda x: x.__name__)
def test_stores_into_an_object(monkeypatch, program, kind, settle):
    monkeypatch.setattr(jl.config, "settle", settle)
    traced = jl.jit(program)
    mine, theirs = kind(), kind()
    for n in range(9):
        x = np.linspace(0.5, 2, 4) + n
        if n == 7:
            mine, theirs = kind(), kind()
        found, wanted = outcome(traced, mine, x.copy()), outcome(program, theirs, x.copy())
        assert found[:2] == wanted[:2], n


def counts_of(traced, *args):
    """The traces of a function, and of its pieces."""
    outcome(traced, *args)
    return traced.experimental_get_tracing_count(), len(traced.ledger.pieces)


@pytest.mark.parametrize("program", [prints, appends, appended_is_the_result, stores_items, unrolled, helped, numbers])
def test_a_call_that_only_gives_something_out_is_one_trace(program):
    assert counts_of(jl.jit(program), np.arange(1.0, 9.0), []) == (1, 0)


def test_methods_that_store_are_one_trace():
    model, traced = Model(), jl.jit(new_attribute)
    for _ in range(6):
        assert counts_of(traced, model, np.arange(4.0)) == (1, 0)


def test_a_list_that_grows_is_no_reason_to_trace_again():
    traced, mine = jl.jit(appends), []
    for _ in range(20):
        traced(np.arange(3.0), mine)
    assert traced.experimental_get_tracing_count() == 1 and len(mine) == 40


def test_one_list_under_two_names():
    def program(x, a, b):
        y = x * 2
        a.append(y.sum())
        return y, len(b), b[-1:]

    traced = jl.jit(program)
    for same in (False, True, False, True, True):
        mine, theirs = [1.0], [1.0]
        others = ([2.0], [2.0])
        args = (mine, mine if same else others[0]), (theirs, theirs if same else others[1])
        assert repr(traced(np.arange(3.0), *args[0])) == repr(program(np.arange(3.0), *args[1]))
        assert repr(args[0]) == repr(args[1])


def test_a_dict_that_is_the_object_s_own():
    def program(x, model, table):
        y = x * 2
        model.count = 5
        table["w"] = y
        return model.w + table["count"] if "count" in table else model.w

    traced = jl.jit(program)
    for own in (False, True, False, True):
        mine, theirs = Model(), Model()
        found = traced(np.arange(4.0), mine, vars(mine) if own else {"count": 1})
        wanted = program(np.arange(4.0), theirs, vars(theirs) if own else {"count": 1})
        assert repr(found) == repr(wanted) and repr(vars(mine)) == repr(vars(theirs))


def test_a_class_of_the_user_s_gets_each_thing_at_once():
    def program(x, out):
        y = x * 2
        out.append(y.sum())
        print("then", y)
        return y + 1

    traced = jl.jit(program)
    for kind in (list, Sub, list, Sub):
        assert outcome(traced, np.arange(3.0), kind())[:2] == outcome(program, np.arange(3.0), kind())[:2]


class Stream(io.StringIO):
    """Looks at an array, and changes it, when something is written."""

    def __init__(self, x):
        super().__init__()
        self.x = x

    def write(self, text):
        self.x[...] = self.x + 1
        return super().write(text)


def test_a_stream_of_the_user_s_is_written_to_at_once():
    def program(x):
        y = x * 2
        print("now")
        return y + x

    traced, found = jl.jit(program), []
    for function in (program, traced, traced, traced):
        x = np.arange(3.0)
        with contextlib.redirect_stdout(Stream(x)):
            found.append(repr((function(x), x)))
        with contextlib.redirect_stdout(io.StringIO()):
            function(x)
    assert len(set(found)) == 1


def test_print_is_another_function():
    namespace = {"np": np}
    source = "def program(x):\n    y = x * 2\n    print(y.sum())\n    return y\n"
    import linecache

    linecache.cache["<another print>"] = len(source), None, source.splitlines(True), "<another print>"
    exec(compile(source, "<another print>", "exec"), namespace)
    traced, heard = jl.jit(namespace["program"]), []
    assert outcome(traced, np.arange(3.0))[1] == "6.0\n"
    namespace["print"] = heard.append
    assert outcome(traced, np.arange(3.0))[1] == "" and heard == [6.0]
    del namespace["print"]
    assert outcome(traced, np.arange(3.0))[1] == "6.0\n" and heard == [6.0]


class Broken(io.StringIO):
    """Fails at the n-th write."""

    def __init__(self, at):
        super().__init__()
        self.left = at


def test_an_error_of_the_third_print_leaves_what_came_before(monkeypatch):
    def program(x, out):
        y = x * 2
        out.append(1)
        print("a")
        out.append(y)
        print(y)
        out.append(2)
        return y

    class Writer:
        left = 3

        def write(self, text):
            Writer.left -= 1
            if Writer.left < 0:
                raise OSError("full")

    Writer.write.__code__ = Writer.write.__code__.replace(co_filename=io.__file__)  # as a library's, not the user's
    traced = jl.jit(program)
    traced(np.arange(3.0), [])
    found = []
    for function in (program, traced):
        Writer.left, out = 3, []
        with contextlib.redirect_stdout(Writer()), pytest.raises(OSError, match="full") as raised:
            function(np.arange(3.0), out)
        lines = [(e.name, e.lineno, e.line) for e in traceback.extract_tb(raised.value.__traceback__) if e.filename == __file__]
        found.append((repr(out), lines[1:]))
    assert found[0] == found[1] and found[0][0] == "[1, array([0., 2., 4.])]"


CELLS = (
    "y = x * 2\nprint(y.sum(), f'{y[0]:.1f}')\nout.append(y)\nz = y + 1\ntable['z'] = z\n"
    "model.count = z.sum()\nq = model.count + z",
    "y = x * 2\nprint('one')\ny = y + 1\nout.append(1)\nout[5] = y.sum()\ny = y + 1\nprint('never')",
    "for n in range(3):\n    x = x * 0.5 + n\n    print(n, x.sum())\n    out.append(x.mean())\nw = x + 1",
    "y = x * 2\nout.append(y)\ny += 1\nx[0] = 7\nprint(x, out)\nz = y.sum()",
    "y = x * 2\nout.append(y.sum())\nz = y + len(out) + out[-1]\nout.append(z)\nprint(out)\nq = z + 1",
    "with np.errstate(all='ignore'):\n    y = x * 2\n    print(y.sum())\n    z = y + 1\nout.append(z)\nr = z.sum()",
    "def f(a):\n    b = a * 2\n    print('in', b.sum())\n    out.append(b)\n    return b + 1\ny = f(x)\n"
    "z = f(y) + 1\nout[9] = z",
    "try:\n    y = x * 2\n    print('first')\n    y = y + 1\n    out[7] = y.sum()\n    y = y + 1\nexcept IndexError as e:\n"
    "    print('caught', e, y)\nz = y + 1",
    "a = x * 2\nprint(a, end='')\na, b = a + 1, a\nout[3] = b\na = None",
)  # fmt: skip


def after_cell(run, source):
    names = {"np": np, "x": np.linspace(0.5, 2, 4), "out": [], "table": {}, "model": Model(), "__name__": "__main__"}
    text, raised = io.StringIO(), None
    with contextlib.redirect_stdout(text):
        for _ in range(3):
            try:
                run(source, names)
            except Exception as error:
                lines = [entry.lineno for entry in traceback.extract_tb(error.__traceback__) if entry.filename == "<put off>"]
                raised = type(error), str(error), lines
    names["model"] = vars(names["model"])
    shown = {name: value for name, value in names.items() if name not in ("np", "f", "__builtins__")}
    return repr((shown, raised)), text.getvalue()


@pytest.mark.parametrize("source", CELLS)
def test_a_cell_that_gives_something_out(source):
    found = after_cell(lambda source, names: run_cell(source, names, "<put off>"), source)
    assert found == after_cell(lambda source, names: exec(compile(source, "<put off>", "exec"), names), source)


def test_an_error_in_a_cell_leaves_the_names_of_its_moment():
    names = {"np": np, "x": np.arange(3.0), "out": []}
    with pytest.raises(IndexError):
        run_cell("y = x * 2\ny = y + 1\nout[3] = y\ny = y + 1\nz = y", names, "<put off>")
    assert names["y"].tolist() == [1, 3, 5] and "z" not in names


def cut(x, out):
    """In pieces, as a list is extended."""
    y = x * 2
    print("one", y.sum())
    y = y + 1
    out.append(y)
    out.extend([2])
    z = y * 3
    model_log["z"] = z
    print("two", z[0], len(out))
    try:
        z = z + 1
        out[100] = z
        z = z + 1
    except IndexError as error:
        print("caught", error, z)
    for n in range(3):
        z = z * 0.5
        print(n, z.sum())
        out.append(z.mean())
    return z + 1


model_log = {}


@pytest.mark.parametrize("settle", ["off", "measure", "model"])
def test_pieces_that_give_something_out(monkeypatch, settle):
    monkeypatch.setattr(jl.config, "settle", settle)
    traced = jl.jit(cut)
    for n in range(9):
        found, wanted = [], []
        for function, kept in ((traced, found), (cut, wanted)):
            model_log.clear()
            kept.append((outcome(function, np.arange(4.0) + n, [])[:2], repr(model_log)))
        assert found == wanted


def given_so_far(model, log, table, text):
    """Which of the things that `all_kinds` gives out have been, in order."""
    return ["y" in table, len(log) > 0, bool(text), hasattr(model, "z"), len(log) > 1, len(log) > 2]


@pytest.mark.parametrize("settle", ["off", "model"])
@pytest.mark.parametrize("calls", [2, 12], ids=["traced", "answered by C"])
@pytest.mark.parametrize("cut", [False, True], ids=["whole", "pieces"])
def test_an_interrupt_at_any_moment_leaves_the_first_of_what_is_given_out(monkeypatch, settle, calls, cut):
    monkeypatch.setattr(jl.config, "settle", settle)
    log, table = [], {}
    model = type("Model", (), {})()

    def all_kinds(x):
        y = np.sqrt(x) * 3
        table["y"] = y[0]
        log.append(y.sum())
        print("text", y[0])
        z = y + 1
        if cut:
            sorted([], key=len)
        model.z = z.sum()
        log.append(z.sum())
        w = z * 2
        log.append(w)
        return w + 1

    def called():
        log.clear(), table.clear(), vars(model).clear()
        text = io.StringIO()
        try:
            with contextlib.redirect_stdout(text):
                return all_kinds_jitted(x)
        finally:
            given = given_so_far(model, log, table, text.getvalue())
            assert given == sorted(given, reverse=True)

    all_kinds_jitted, x = jl.jit(all_kinds), np.arange(1.0, 6.0)
    for _ in range(calls):
        called()
    with at_event(0) as counter:
        called()
    seen = set()
    for number in range(1, counter.seen.value + 1):
        try:
            with at_event(number):
                called()
        except KeyboardInterrupt:
            seen.add(sum(given_so_far(model, log, table, "" if not log else "text")))
        np.testing.assert_array_equal(called(), (np.sqrt(x) * 3 + 1) * 2 + 1)
        assert len(log) == 3
    assert len(seen) > 3


def test_what_takes_long_is_not_waited_for():
    """A print before a product of large matrices is out before that begins."""

    def program(x):
        y = x * 2
        print("before", y.sum())
        return y @ y.T

    def recorded(n):
        capture = CallCapture("program", strict=False)
        return record_call(capture, program, ["x"], [np.ones((n, n))], lambda values: (tuple(values), {}), 1)

    assert len(recorded(30).effects) == 1
    with pytest.raises(EndPiece) as raised:
        recorded(3000)
    assert "may take long" in str(raised.value.said)


def test_what_prints_once_a_trace_does_so_in_a_call_that_puts_off():
    """A `jl.function`, and what is differentiated."""
    heard = []

    @jl.function
    def once(x):
        print("traced")
        heard.append(1)
        return x * 2

    def loss(w):
        print("loss")
        heard.append(2)
        return (w * w).sum()

    def program(x):
        y = x + 1
        print("each time", y.sum())
        y = once(y) + jl.grad(loss)(y)
        heard.append(3)
        return y

    found = []
    for function in (program, jl.jit(program)):
        heard.clear()
        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            results = [repr(function(np.arange(size))) for size in (3.0, 3.0, 4.0, 3.0)]
        found.append((results, text.getvalue(), list(heard)))
        once = jl.function(once.python_function)
        loss = types.FunctionType(loss.__code__, loss.__globals__, "loss", None, loss.__closure__)
    assert found[0] == found[1]


class Private:
    def __init__(self):
        self.__count, self.__log = 0, []

    def step(self, x):
        y = x * 2
        self.__count = self.__count + 1
        self.__log.append(y.sum())
        __text = f"{y[0]:.1f}"
        print(self.__count, __text)
        return y + self.__count


def test_private_names_of_a_class():
    mine, theirs, traced = Private(), Private(), jl.jit(Private.step)
    for n in range(6):
        x = np.arange(4.0) + n
        assert outcome(traced, mine, x)[:2] == outcome(Private.step, theirs, x)[:2]
    assert traced.experimental_get_tracing_count() <= 1

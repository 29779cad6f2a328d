"""What loops and branches print and store is logged by the run, and given out turn by turn when it has run."""

import contextlib
import copy
import gc
import io
import weakref

import numpy as np
import pytest

import jitlab as jl
from tests.api.test_put_off import HISTORY, TABLE, Model, outcome
from tests.faults.events import at_event


def trains(x, out):
    w, lr = x * 0.0, 0.5
    for i in range(40):
        r = w - x
        w = w - lr * r
        loss = r.max()
        out.append(loss)
        if i % 10 == 0:
            print("step", i, loss)
            print(f"{i:3d} {loss:.4f}", end=";")
    return w


def prints_first_and_last(x, out):
    for i in range(30):
        print("begin", i)
        x = x * 0.5 + i
        out.append((i, x[0], "a", None, 2.5))
        print("end", x)
    print("after", x.sum())
    return x


def numbers_of_all_kinds(x, out):
    n, half, flag, z = 0, 0.0, False, 1j
    for i in range(20):
        n, half, flag, z = n + i, half + 0.5, x[i % 4] > 1.5, z * 1j
        out.append(n)
        out.append(half)
        out.append(bool(flag))
        out.append(flag)
        out.append(z)
        out.append(np.float32(half))
        out.append(i)
        out.append(float(x[i % 4]))
        out.append(-i // 2)
    return n


def kinds_that_change(x, out):
    best = 0
    for i in range(20):
        if x[i % 4] * i > best:
            best = x[i % 4] * i
        out.append(best)
        print(best, best * 2)
    return best


def stores_by_turn(x, out):
    for k in range(20):
        x = x * 0.5
        TABLE[k] = x[0]
        TABLE["last"] = k
        TABLE[k, "pair"] = (k, x[1])
        HISTORY.append({"k": k, "x": [x[0], k]})
    return x


def appends_arrays(x, out):
    for k in range(18):
        y = x * k
        out.append(y)
        out.append(x)
        z = y + 1
        out.append(z.reshape(2, -1).T.copy())
        out.append([y.copy(), k])
    return x


def appends_a_carried_array(x, out):
    for _ in range(18):
        out.append(x)
        x = x * 0.5
    out.append(x)
    return x


def appends_what_it_returns(x, out):
    y = x
    for k in range(18):
        y = x * k
        out.append(y)
    y[0] = 7
    return y


def appends_and_writes(x, out):
    for k in range(18):
        y = x * k
        out.append(y)
        y[0] = k
        print(y)
    return x


def appends_one_twice(x, out):
    for k in range(18):
        y = x * k
        out.append(y)
        out.append([y])
    return x


def appends_a_list_that_grows(x, out):
    rows = []
    for k in range(18):
        row = [x[0] * k]
        out.append(row)
        row.append(k)
    rows.append(row)
    return rows


def appends_a_view(x, out):
    for k in range(18):
        y = x * k
        v = y[1:]
        out.append(v)
        out.append(y)
    return x


def writes_into_its_argument(x, out):
    for k in range(18):
        x[k % 4] = k
        print(k, x)
    return x


def nested(x, out):
    for i in range(17):
        print("row", i)
        for j in range(3):
            if (i + j) % 2:
                out.append((i, j, x[j] * i))
            else:
                print(i, j, x[j])
        if x[0] * i > 5:
            print("large")
    return x


def triangle(x, out):
    for i in range(20):
        for j in range(i):
            out.append(x[j % 4] * i)
    return x


def ends_by_break(x, out):
    for i in range(50):
        x = x * 0.5
        out.append(x[0])
        if x[0] < 0.1:
            print("converged", i)
            break
        print("on", i)
    else:
        print("never")
    return x, i


def goes_on_with_continue(x, out):
    for i in range(30):
        if i % 3:
            continue
        out.append(i)
        if x[i % 4] > 1:
            continue
        print("kept", i)
    return x


def returns_from_inside(x, out):
    for i in range(50):
        x = x * 0.5
        print(i)
        if x.sum() < 0.5:
            out.append(i)
            return i, x
    return None, x


def while_it_is_large(x, out):
    n = 0
    while x.sum() > 0.01:
        x = x * 0.5
        n += 1
        out.append(x.sum())
        if n % 5 == 0:
            print(n, x)
    print("done", n)
    return x


def while_true(x, out):
    n = 0
    while True:
        n += 1
        x = x / 2
        print(n)
        if x[0] < 1e-3:
            break
    return n


def while_in_a_for(x, out):
    for i in range(20):
        t = x[0] + i
        while t > 0.5:
            t = t / 2
            out.append(t)
        print(i, t)
    return x


def branches(x, out):
    if x.sum() > 10:
        print("large", x.sum())
        out.append(x * 2)
    elif x.sum() > 3:
        out.append("middle")
    else:
        out.append(x)
    y = x + 1
    if y[0] > 2:
        print(y)
        TABLE["y"] = y
    print("end")
    return y


def an_early_return(x, out):
    if x.sum() > 10:
        out.append(1)
        return x
    print("small")
    if x[0] > 1:
        print("one")
        return x * 2
    out.append(2)
    return x * 3


def raises_in_a_turn(x, out):
    for i in range(30):
        out.append(i)
        print("turn", i)
        if x[0] + i > 20:
            raise ValueError("too much")
    return x


def raises_where_it_stores(x, out):
    for i in range(30):
        out.append(i)
        TABLE["n"] = i
        out[2 * i - 10 if i > 10 else 0] = x[0]
    return x


def raises_in_a_format(x, out):
    for i in range(20):
        out.append(i)
        print(f"{x:d}")
    return x


def raises_in_a_branch(x, out):
    if x[0] > 3:
        print("bad")
        out.append(0)
        raise KeyError("bad")
    print("good")
    return x


def draws_in_turns(x, out):
    rng = np.random.default_rng(5)
    for _ in range(20):
        out.append(rng.random())
    print(rng.random())
    return x


def looks_at_what_it_got(x, out):
    for i in range(20):
        if len(out) > 5:
            print("five", out[-1])
        out.append(x[i % 4])
    return len(out)


def looks_later(x, out):
    for i in range(20):
        out.append(x[i % 4] * i)
    return out[-1] + len(out)


def helper(x, i, out):
    if i % 7 == 0:
        print("seventh", i)
    HISTORY.append(x[0])
    return x * 0.5


def helped(x, out):
    for i in range(25):
        x = helper(x, i, out)
    return x


def asked_value(x):
    print("asked")
    return x.sum() > 0.3


def prints_in_its_test(x, out):
    while asked_value(x):
        x = x * 0.5
        print("body")
    return x


def prints_containers(x, out):
    pair = [x, 3]
    for i in range(20):
        made = {"i": i, "x": x[1:] * i}
        print(pair, made, (i, x[0]), [i, [made["x"]]])
    return x


def tries_in_turns(x, out):
    for i in range(20):
        try:
            out[i] = x[0]
        except IndexError:
            out.append(i)
    return x


def replaces_what_it_looks_up(x, out):
    TABLE["loss"] = []
    for i in range(20):
        TABLE["loss"].append(x[0] * i)
        if i == 10:
            TABLE["loss"] = []
    return x


def changes_the_list(x, out):
    mine = out
    for i in range(20):
        mine.append(i)
        mine = HISTORY
    return x


PROGRAMS = [
    trains, prints_first_and_last, numbers_of_all_kinds, kinds_that_change, stores_by_turn, appends_arrays,
    appends_a_carried_array, appends_what_it_returns, appends_and_writes, appends_one_twice, appends_a_list_that_grows,
    appends_a_view, writes_into_its_argument, nested, triangle, ends_by_break, goes_on_with_continue, returns_from_inside,
    while_it_is_large, while_true, while_in_a_for, branches, an_early_return, raises_in_a_turn, raises_where_it_stores,
    raises_in_a_format, raises_in_a_branch, draws_in_turns, looks_at_what_it_got, looks_later, helped, prints_in_its_test,
    prints_containers, tries_in_turns, replaces_what_it_looks_up, changes_the_list,
]  # fmt: skip
WHOLE = [
    trains, prints_first_and_last, numbers_of_all_kinds, kinds_that_change, stores_by_turn, nested, ends_by_break,
    goes_on_with_continue, while_it_is_large, while_true, while_in_a_for, branches, an_early_return,
    helped, prints_containers,
]  # fmt: skip


def arrays_and_lists(x, at=()):
    """Where which of them stand; NumPy's and Python's numbers are equal or not."""
    if isinstance(x, (np.ndarray, list, dict)):
        yield at, id(x)
    if isinstance(x, (list, tuple, dict)) and len(at) < 5:
        for n, item in enumerate(x.values() if isinstance(x, dict) else x):
            yield from arrays_and_lists(item, (*at, n))


def same_objects(found, wanted):
    """Do results and arguments hold the same arrays and containers at the same places?"""

    def shared(x):
        places = {}
        for at, number in arrays_and_lists(x):
            places.setdefault(number, []).append(at)
        return sorted(places.values())

    return shared(found) == shared(wanted)


@pytest.mark.parametrize("settle", ["off", "measure"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_program_with_loops_that_gives_something_out(monkeypatch, program, settle):
    monkeypatch.setattr(jl.config, "settle", settle)
    compare(program)


def compare(program):
    traced = jl.jit(program)
    for n in range(6):
        mine = np.linspace(0.5, 2, 4) + n % 4, [[], [7.5, 1, 2]][n % 2]
        theirs = copy.deepcopy(mine)
        found = outcome(traced, *mine)
        given = [*found[2:], *map(copy.copy, (HISTORY, TABLE))]
        wanted = outcome(program, *theirs)
        assert found[:2] == wanted[:2], n
        assert same_objects(given, [*wanted[2:], *map(copy.copy, (HISTORY, TABLE))]), n


@pytest.mark.parametrize("program", WHOLE, ids=lambda program: program.__name__)
def test_it_is_captured_whole(program):
    traced = jl.jit(program)
    for n in range(3):
        outcome(traced, np.linspace(0.5, 2, 4) + n % 2, [])
    assert (traced.experimental_get_tracing_count(), len(traced.ledger.pieces)) == (1, 0)


def fits(model, x):
    for epoch in range(30):
        r = x * model.w[0] - x
        model.history.append(r.sum())
        model.log["loss"].append(r[0])
        model.log["n"] = epoch
        model.loss = r.max()
        if epoch % 10 == 0:
            model.text = f"{epoch}"
    return r


def counts_itself(model, x):
    for _ in range(20):
        model.count = model.count + 1
        print(model.count)
    return x * model.count


def reads_before_it_stores(model, x):
    for i in range(20):
        print(model.count)
        model.count = x[i % 4]
    return x


def reads_after_the_loop(model, x):
    for i in range(20):
        model.count = x[i % 4] * i
    return model.count + 1


def stores_one_side(model, x):
    if x[0] > 2:
        model.count = x.sum()
        model.history.append(1)
    return x + model.w


def new_history_in_a_turn(model, x):
    for i in range(20):
        model.history.append(x[0] * i)
        if i == 12:
            model.history = []
    return x


METHODS = [fits, counts_itself, reads_before_it_stores, reads_after_the_loop, stores_one_side, new_history_in_a_turn]


@pytest.mark.parametrize("settle", ["off", "measure"])
@pytest.mark.parametrize("program", METHODS, ids=lambda program: program.__name__)
def test_stores_into_an_object(monkeypatch, program, settle):
    monkeypatch.setattr(jl.config, "settle", settle)
    traced = jl.jit(program)
    mine, theirs = Model(), Model()
    for n in range(6):
        x = np.linspace(0.5, 2, 4) + n % 4
        if n == 4:
            mine, theirs = Model(), Model()
        found, wanted = outcome(traced, mine, x.copy()), outcome(program, theirs, x.copy())
        assert found[:2] == wanted[:2], n


def test_a_loop_that_goes_on_longer_is_pythons():
    def program(x, out):
        n = 0
        while x.sum() > 0:
            x = x - 1
            n += 1
            out.append(n)
            if n % 500 == 0:
                print(n)
        return n

    traced = jl.jit(program)
    for times in (3, 2500, 5, 999, 1000, 1001):
        args = np.full(1, float(times)), []
        found, wanted = outcome(traced, *args), outcome(program, args[0], [])
        assert found[:2] == wanted[:2], times


@pytest.mark.parametrize("lines", [1, 7, 25, 41])
def test_an_error_of_a_print_leaves_what_came_before(lines):
    class Writer:
        left = lines

        def write(self, text):
            Writer.left -= text != "\n"
            if Writer.left < 0:
                raise OSError("full")

    Writer.write.__code__ = Writer.write.__code__.replace(co_filename=io.__file__)  # as a library's, not the user's

    def program(x, out):
        for i in range(40):
            x = x * 0.5
            out.append(i)
            print("x", x)
            TABLE["n"] = i
            if i % 3 == 0:
                HISTORY.append(x[0])
        print("end")
        return x

    traced, found = jl.jit(program), []
    traced(np.arange(3.0), [])
    for function in (program, traced, traced):
        HISTORY.clear()
        TABLE.clear()
        Writer.left, out = lines, []
        with contextlib.redirect_stdout(Writer()):
            try:
                function(np.arange(3.0), out)
            except OSError as error:
                out.append(str(error))
        found.append(repr((out, TABLE, HISTORY)))
    assert found[0] == found[1] == found[2]
    assert traced.experimental_get_tracing_count() == 1


def test_nothing_of_a_caller_s_stays_alive():
    traced, model = jl.jit(fits), Model()
    outcome(traced, model, np.arange(4.0))
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None


def test_the_report_names_each_statement_and_what_it_waits_for():
    with contextlib.redirect_stdout(io.StringIO()):
        report = jl.explain(jl.jit(trains), np.arange(3.0), [])
    first = trains.__code__.co_firstlineno
    (statement,) = report.statements
    assert statement.reason.code == "put_off" and statement.lines == tuple(first + n for n in (6, 8, 9))
    assert len(report.clusters) == 1


@pytest.mark.parametrize("calls", [2, 12], ids=["traced", "settled"])
def test_an_interrupt_at_any_moment_leaves_the_first_turns(monkeypatch, calls):
    monkeypatch.setattr(jl.config, "settle", "off")
    log, table, text = [], {}, io.StringIO()

    def program(x):
        for i in range(18):
            x = x * 0.5
            log.append(i)
            if i % 2 == 0:
                print(i)
            table[i] = x[0]
        if x[0] < 1:
            log.append("small")
        return x

    traced, seen = jl.jit(program), set()

    def called():
        log.clear(), table.clear(), text.seek(0), text.truncate()
        try:
            with contextlib.redirect_stdout(text):
                traced(np.arange(1.0, 6.0))
        finally:
            turns = log[:18]
            assert turns == list(range(len(turns))) and list(table) in (turns, turns[:-1])
            assert log[18:] in ([], ["small"]) and (len(log) == len(turns) or len(table) == 18)
            assert (len(table) + 1) // 2 <= text.getvalue().count("\n") <= len(text.getvalue().split()) <= (len(turns) + 1) // 2
            seen.add(len(turns))

    for _ in range(calls):
        called()
    with at_event(0) as counter:
        called()
    for number in range(1, counter.seen.value + 1):
        with contextlib.suppress(KeyboardInterrupt), at_event(number):
            called()
        called()
        assert len(log) == 19
    assert len(seen) > 10


def returns_its_losses(x, out):
    w, losses = x * 0.0, []
    for i in range(30):
        r = w - x
        w = w - 0.5 * r
        losses.append(r.max())
        if i % 10 == 0:
            print(i, r.max())
    return w, losses


def returns_a_dict_of_lists(x, out):
    ups, downs, n = [1.5], [], 0
    for i in range(30):
        if x[i % 4] * i > 20:
            ups.append((i, x[0]))
            continue
        downs.append(f"{x[i % 4] * i:.2f}")
        if i > 25:
            break
        n = n + i
    downs.append(x)
    downs.append(n)
    x[0] = 9
    return {"ups": ups, "down": [downs, 1, ups]}


def chain(x, out):
    rng, state, kept, taken = np.random.default_rng(5), x[0], [], 0
    while True:
        state = state + rng.random()
        kept.append(state)
        taken = taken + 1
        if state > 20:
            break
    return kept, taken


def keeps_arrays(x, out):
    rows, seen = [], []
    for k in range(18):
        y = x * k
        rows.append(y)
        seen.append(x)
    seen.append(y)
    return rows, seen


def returns_early(x, out):
    found = []
    if x[0] < 1:
        return found
    for i in range(20):
        found.append(i * x[0])
    return found


def returns_from_the_loop(x, out):
    found = []
    for i in range(30):
        found.append(x[i % 4] * i)
        if x[0] * i > 9:
            return found
    found.append("end")
    return found


def another_name_for_it(x, out):
    found = []
    same = found
    for i in range(20):
        found.append(i * x[0])
    return found, len(same)


def an_inner_function_reads_it(x, out):
    found = []

    def count():
        return len(found)

    for _ in range(20):
        found.append(count() + x[0])
    return found


def reads_its_own(x, out):
    found = [x[0]]
    for i in range(20):
        found.append(found[-1] + i)
    return found, sum(found)


def makes_it_in_a_loop(x, out):
    for _ in range(20):
        row = []
        for j in range(18):
            row.append(x[0] * j)
        out.append(row)
    return row


def appends_in_a_try(x, out):
    found = []
    for i in range(20):
        found.append(x[0] * i)
    try:
        found.append(out[50])
    except IndexError:
        found.append("none")
    return found


def makes_it_twice(x, out):
    found = []
    for i in range(20):
        found.append(x[0] * i)
    found = []
    return found


def makes_it_in_a_helper(x, out):
    first = helper_with_a_list(x)
    return len(first), first[-1], helper_with_a_list(x)


def helper_with_a_list(x):
    found = []
    for i in range(20):
        found.append(x[0] * i)
    return found


OWN = [
    returns_its_losses, returns_a_dict_of_lists, chain, keeps_arrays, returns_early, returns_from_the_loop, another_name_for_it,
    an_inner_function_reads_it, reads_its_own, makes_it_in_a_loop, appends_in_a_try, makes_it_twice, makes_it_in_a_helper,
]  # fmt: skip


@pytest.mark.parametrize("settle", ["off", "measure"])
@pytest.mark.parametrize("program", OWN, ids=lambda program: program.__name__)
def test_a_list_that_the_call_makes_and_gives(monkeypatch, program, settle):
    monkeypatch.setattr(jl.config, "settle", settle)
    compare(program)


@pytest.mark.parametrize("program", [returns_its_losses, returns_a_dict_of_lists, chain], ids=lambda program: program.__name__)
def test_a_call_with_lists_of_its_own_is_captured_whole(program):
    traced = jl.jit(program)
    for n in range(3):
        outcome(traced, np.linspace(0.5, 2, 4) + n % 2, [])
    assert (traced.experimental_get_tracing_count(), len(traced.ledger.pieces)) == (1, 0)

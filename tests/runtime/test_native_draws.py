"""Random numbers drawn by machine code: NumPy's, number by number, and the generator left as NumPy leaves it."""

import gc
import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import jitlab as jl
from jitlab.ops.random_draws import METHODS, c_function, has_address, random_state

BITS = (np.random.PCG64, np.random.PCG64DXSM, np.random.MT19937, np.random.SFC64, np.random.Philox)

pytestmark = pytest.mark.skipif(
    not has_address(np.random.default_rng()) or not all(c_function(m.function) for m in METHODS.values() if m.function),
    reason="this NumPy gives out no functions, or its locks are taken once: it draws the numbers itself",
)

#: Calls in a loop over i, of a Generator and of a RandomState.
GENERATOR = (
    "g.random()", "g.uniform()", "g.uniform(-2.0, 3.5)", "g.uniform(high=i)", "g.uniform(-i, scale)", "g.standard_normal()",
    "g.normal()", "g.normal(i, scale)", "g.normal(scale=i * 0.5)", "g.standard_exponential()", "g.exponential()",
    "g.exponential(scale)", "g.integers(7)", "g.integers(2)", "g.integers(1)", "g.integers(-5, i + 1)", "g.integers(0, 2**32)",
    "g.integers(2**32 - 1)", "g.integers(2**33)", "g.integers(-2**63, 2**63 - 1)", "g.integers(-2**62, 2**62 + i)",
    "g.integers(low=3, high=9)", "g.random() + g.integers(3) + g.normal()",
    "g.uniform(2.0, 3.0) if g.random() < 0.4 else g.normal()",
)  # fmt: skip
#: Arrays of numbers, and elements of x.
ARRAYS = (
    "g.random(5)[4]", "g.random((2, 3))[1].max()", "g.random(size=[2])[0]", "g.uniform(-1, i, size=(3,))[0]",
    "g.uniform(size=2)[1]", "g.normal(size=4)[2]", "g.normal(i, scale, 4)[2]", "g.standard_normal(7)[6]",
    "g.standard_exponential(3)[0]", "g.exponential(scale, 4)[3]", "g.integers(0, 10, 6).max()",
    "g.integers(i + 1, size=(2, 2))[1, 1]", "g.integers(2**40, size=3)[2]", "g.random(len(x)).max() + g.random()",
    "g.choice([-1, 1])", "g.choice((0.5, -2.0, 1.0), 4)[2]",
    "g.choice(5)", "g.choice(x)", "g.choice(x, 4)[3]", "g.choice(7, size=(2, 2))[1, 0]",
    "np.sort(g.choice(x, size=len(x), replace=True))[2]",
)  # fmt: skip
STATE_ARRAYS = (
    "g.rand(3)[0]", "g.rand(2, 3)[1, 2]", "g.random_sample(4)[1]", "g.random(size=(4,))[1]", "g.uniform(-1, 1, 5)[4]",
    "g.randint(0, 9, 4).max()", "g.randint(9, size=(2, 2))[0, 1]", "g.choice(x)", "g.choice(5)", "g.choice(x, 3)[2]",
    "g.choice([3, -1, 2])",
    "g.choice(4, size=2)[0]",
)  # fmt: skip
STATE = (
    "g.rand()", "g.random_sample()", "g.random()", "g.uniform(-1, i)", "g.uniform(2.0, -2.0)", "g.randint(4)", "g.randint(1)",
    "g.randint(-i - 1, i + 3)", "g.randint(0, 2**40)", "g.rand() + g.randint(10)",
)  # fmt: skip


def loop_of(text):
    """A function that draws `text` in each turn."""
    names = {"np": np, "X": np.linspace(1.0, 2.0, 11)}
    head = "def f(n, g, scale=2.5, x=X):\n    out = np.zeros(n)\n    for i in range(n):\n"
    body = f"{head}        out[i] = {text}\n    return out\n"
    return written(body, "f", names)


def written(text, name, names):
    """A function whose source is known to `inspect`, as jl.jit wants it."""
    import linecache

    file = f"<drawn {len(linecache.cache)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    exec(compile(text, file, "exec"), names)
    return names[name]


def same_state(mine, theirs):
    np.testing.assert_equal(random_state(mine), random_state(theirs))


CASES = [(np.random.Generator, text) for text in (*GENERATOR, *ARRAYS)]
CASES += [(np.random.RandomState, text) for text in (*STATE, *STATE_ARRAYS)]


@pytest.mark.parametrize(("kind", "text"), CASES, ids=lambda x: x if isinstance(x, str) else x.__name__)
def test_a_loop_draws_what_numpy_draws(kind, text):
    f = loop_of(text)
    ours = jl.jit(fullgraph=True)(f)  # all of it is compiled
    for bits in BITS if kind is np.random.Generator else (np.random.MT19937,):
        mine, theirs = kind(bits(5)), kind(bits(5))
        for n in (1, 3000, 20):
            np.testing.assert_array_equal(ours(n, mine), f(n, theirs))
            same_state(mine, theirs)


def test_what_a_number_is_in_the_program():
    def f(g, r, n):
        a, b, c, d = 0.0, np.int64(0), 0, 0.0
        for _ in range(n):
            a, b, c, d = g.random(), g.integers(9), r.randint(9), r.rand()
        return a, b, c, d

    ours = jl.jit(fullgraph=True)(f)
    for _ in range(2):
        got = ours(np.random.default_rng(1), np.random.RandomState(1), 20)
        want = f(np.random.default_rng(1), np.random.RandomState(1), 20)
        assert got == want
        assert [type(x) for x in got] == [type(x) for x in want]


def test_the_state_is_that_between_the_draws():
    def f(g, n):
        before, x = g.bit_generator.state, 0.0
        for _ in range(n):
            x += g.random()
        return before, x, g.bit_generator.state

    ours = jl.jit(f)
    mine, theirs = np.random.default_rng(1), np.random.default_rng(1)
    for _ in range(3):
        assert ours(mine, 30) == f(theirs, 30)


def test_what_nobody_reads_is_drawn_all_the_same():
    def f(g, n):
        x = 0.0
        for i in range(n):
            g.normal(size=3)
            if i % 4 == 1:
                g.random()
                g.integers(6, size=(2, 2))
            x += g.random()
        return x

    def g(g, n):
        for _ in range(n):
            g.standard_normal(5)
        return g.random()

    for plain in (f, g):
        ours = jl.jit(fullgraph=True)(plain)
        for n in (30, 40):
            mine, theirs = np.random.default_rng(1), np.random.default_rng(1)
            assert ours(mine, n) == plain(theirs, n)
            same_state(mine, theirs)


def test_code_that_is_kept_on_disk_has_no_addresses(tmp_path):
    """Another process, with its libraries elsewhere, draws with the code that the first one has left."""
    program = (
        "import numpy as np, jitlab as jl\n"
        "def f(g, n):\n    x = 0.0\n    for i in range(n):\n        x = x * 0.5 + g.normal() * g.integers(5)\n    return x\n"
        "print(repr(jl.jit(fullgraph=True)(f)(np.random.default_rng(1), 500)), repr(f(np.random.default_rng(1), 500)))\n"
    )
    path = tmp_path / "draws.py"
    path.write_text(program)
    environment = {**os.environ, "JITLAB_CACHE_DIR": str(tmp_path / "cache"), "JITLAB_CACHE": "1"}
    for _ in range(2):
        done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False, env=environment)
        assert not done.returncode, done.stderr
        mine, theirs = done.stdout.split()
        assert mine == theirs


def test_a_generator_is_found_anew_at_each_run():
    f = loop_of("g.random() * scale")
    ours = jl.jit(fullgraph=True)(f)
    for seed in range(6):
        mine, theirs = np.random.default_rng(seed), np.random.default_rng(seed)
        np.testing.assert_array_equal(ours(40, mine), f(40, theirs))
        same_state(mine, theirs)
    assert ours.experimental_get_tracing_count() == 1


class Walker:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.place = 0.0

    def far(self, n):
        place = 0.0
        for _ in range(n):
            place += self.rng.normal()
        return place


held = np.random.default_rng(4)
drawn_by = held.random


def from_a_global(n):
    x = 0.0
    for _ in range(n):
        x = x * 0.5 + held.random()
    return x


def by_a_bound_method(n):
    x = 0.0
    for _ in range(n):
        x = x * 0.5 + drawn_by()
    return x


def of_numpys_own(n):
    x = 0.0
    for _ in range(n):
        x = x * 0.5 + np.random.rand() + np.random.uniform(-1, 1) + np.random.randint(5)
    return x


def test_where_a_generator_is_found(monkeypatch):
    far = jl.jit(fullgraph=True)(Walker.far)
    assert [far(Walker(seed), 50) for seed in range(4)] == [Walker(seed).far(50) for seed in range(4)]
    for f in (from_a_global, by_a_bound_method):
        ours = jl.jit(fullgraph=True)(f)
        for seed in (8, 9):
            held.bit_generator.state = np.random.default_rng(seed).bit_generator.state
            want = f(50), random_state(held)
            held.bit_generator.state = np.random.default_rng(seed).bit_generator.state
            assert (ours(50), random_state(held)) == want
    ours = jl.jit(fullgraph=True)(from_a_global)
    for seed in range(3):
        monkeypatch.setattr(sys.modules[__name__], "held", np.random.default_rng(seed))
        want = np.random.default_rng(seed)
        x = 0.0
        for _ in range(30):
            x = x * 0.5 + want.random()
        assert ours(30) == x
    inside = jl.jit(fullgraph=True)(lambda box, n: sum(box["rng"].random() for _ in range(n)))
    for seed in range(3):
        want = np.random.default_rng(seed)
        assert inside({"rng": np.random.default_rng(seed)}, 40) == sum(want.random() for _ in range(40))


def test_numpys_own_generator_with_other_bits():
    before = np.random.get_bit_generator()
    ours = jl.jit(fullgraph=True)(of_numpys_own)
    try:
        for f, bits in ((ours, np.random.MT19937), (jl.jit(of_numpys_own), np.random.PCG64), (ours, np.random.MT19937)):
            np.random.set_bit_generator(bits(3))
            want = of_numpys_own(60), np.random.rand()
            np.random.set_bit_generator(bits(3))
            gc.collect()
            assert (f(60), np.random.rand()) == want
    finally:
        np.random.set_bit_generator(before)


def two(a, b, n):
    out = np.zeros(n)
    for i in range(n):
        out[i] = a.random() - b.random()
        if out[i] > 0:
            out[i] += a.normal() * b.integers(3)
    return out


def test_two_generators_and_one_twice():
    ours = jl.jit(fullgraph=True)(two)

    def check(make):
        mine, theirs = make(), make()
        np.testing.assert_array_equal(ours(*mine, 500), two(*theirs, 500))
        for one, other in zip(mine, theirs, strict=True):
            same_state(one, other)

    check(lambda: (np.random.default_rng(1), np.random.default_rng(2)))
    check(lambda: (np.random.default_rng(1),) * 2)  # not the trace of two
    check(lambda: (np.random.default_rng(3), np.random.default_rng(2)))
    check(lambda: (np.random.default_rng(3),) * 2)

    plain = jl.jit(two)
    for _ in range(2):  # two generators over one state: in pieces, or as Python
        bits, others = np.random.PCG64(1), np.random.PCG64(1)
        mine, theirs = [np.random.Generator(b) for b in (bits, bits)], [np.random.Generator(b) for b in (others, others)]
        np.testing.assert_array_equal(plain(*mine, 200), two(*theirs, 200))
        same_state(mine[0], theirs[0])
    check(lambda: (np.random.default_rng(3), np.random.default_rng(2)))
    mine = np.random.default_rng(4), np.random.default_rng(5)
    bits = np.random.PCG64(6)
    shared, others = [np.random.Generator(bits) for _ in "ab"], [np.random.Generator(b) for b in [np.random.PCG64(6)] * 2]
    np.testing.assert_array_equal(plain(*shared, 200), two(*others, 200))
    assert mine[0] is not mine[1]


@pytest.mark.parametrize(
    ("text", "error", "last"),
    [
        ("x[index[i]] + g.random()", IndexError, 37), ("g.random() + x[index[i]]", IndexError, 37),
        ("g.normal(0.0, x[i])", ValueError, 21), ("g.exponential(x[i])", ValueError, 21),
        ("g.random() + g.normal(0.0, x[i]) + g.random()", ValueError, 21),
        ("g.integers(0, index[i] + 1)", ValueError, 11), ("g.random() + g.integers(index[i], 60)", ValueError, 37),
        ("g.uniform(0.0, x[i])", ValueError, 21), ("g.uniform(x[i], 1e308)", OverflowError, 5),
        ("g.random() + g.uniform(-1e308, 3e307 * x[i])", OverflowError, 5),
    ],
)  # fmt: skip
def test_an_error_in_the_middle_leaves_what_python_leaves(text, error, last):
    body = f"def f(g, x, index, out):\n    for i in range(len(x)):\n        out[i] = {text}\n    return len(x)\n"
    f = written(body, "f", {})
    ours = jl.jit(fullgraph=True)(f)
    x, index = np.linspace(1.0, 2.0, 50), np.arange(50)
    arguments = x.copy(), index.copy()
    mine, theirs = np.random.default_rng(2), np.random.default_rng(2)
    for _ in range(2):
        assert ours(mine, *arguments, np.zeros(50)) == f(theirs, *arguments, np.zeros(50))
        same_state(mine, theirs)
    x[21], index[37], index[11], x[5] = -1.0, 99, -3, -1e308 if error is OverflowError else 1.0
    if error is OverflowError and "3e307" in text:
        x[5] = 1e308
    if error is IndexError:
        index[11] = 11
    if error is ValueError and "index[i], 60" in text:
        index[11] = 11
    for _ in range(2):
        outs = np.zeros(50), np.zeros(50)
        with pytest.raises(error) as want:
            f(theirs, x, index, outs[1])
        with pytest.raises(error) as got:
            ours(mine, x, index, outs[0])
        assert str(want.value) in str(got.value)
        same_state(mine, theirs)
        np.testing.assert_array_equal(outs[0], outs[1])
        assert np.flatnonzero(outs[1])[-1] == last - 1


def test_a_run_that_is_given_up_draws_once():
    def f(g, n, grows):
        product = 1
        total = 0.0
        for _ in range(n):
            product = product * grows
            total += g.random()
        return product, total

    ours = jl.jit(f)
    mine, theirs = np.random.default_rng(2), np.random.default_rng(2)
    for grows in (1, 3, 3, 1):  # 3**80 is beyond 64 bits: Python counts it
        assert ours(mine, 80, grows) == f(theirs, 80, grows)
        same_state(mine, theirs)


def test_draws_that_numpy_makes_keep_their_place_among_the_others():
    def f(g, x, n):
        a = g.random()
        order = g.permutation(4)
        total = 0.0
        for i in range(n):
            total += g.normal() * order[i % 4]
        g.shuffle(x)
        b = g.integers(100)
        return a + b + total, x * 1, g.choice(x, 2), g.random()

    ours = jl.jit(f)
    for seed in range(3):
        mine, theirs = np.random.default_rng(seed), np.random.default_rng(seed)
        for _ in range(2):
            for got, want in zip(ours(mine, np.arange(6.0), 40), f(theirs, np.arange(6.0), 40), strict=True):
                np.testing.assert_array_equal(got, want)
            same_state(mine, theirs)


def test_a_loop_with_both_kinds_of_draws():
    def f(g, n):
        out = np.zeros(n)
        for i in range(n):
            out[i] = g.random() + g.standard_gamma(2.0)
            if out[i] > 2:
                out[i] += g.integers(5)
        return out

    ours = jl.jit(f)
    for seed in range(3):
        mine, theirs = np.random.default_rng(seed), np.random.default_rng(seed)
        np.testing.assert_array_equal(ours(mine, 60), f(theirs, 60))
        same_state(mine, theirs)


def test_a_generator_that_the_function_makes():
    def f(n, seed):
        g = np.random.default_rng(seed)
        x = 0.0
        for _ in range(n):
            x = x * 0.5 + g.normal()
        return x, g.random()

    def same(n, g):
        return f(n, g)

    ours = jl.jit(f)
    for n in (30, 30, 40):
        assert ours(n, 3) == f(n, 3)
    given = jl.jit(same)
    mine, theirs = np.random.default_rng(7), np.random.default_rng(7)
    for _ in range(3):  # `default_rng` of a generator is that generator
        assert given(30, mine) == same(30, theirs)
        same_state(mine, theirs)


def test_seeding_in_the_function():
    def f(n, seed):
        np.random.seed(seed)
        x = 0
        for _ in range(n):
            x = x * 3 % 1001 + np.random.randint(10)
        return x, np.random.rand()

    before = np.random.get_state()
    ours = jl.jit(f)
    try:
        for seed in (1, 1, 2):
            assert ours(50, seed) == f(50, seed)
    finally:
        np.random.set_state(before)


class Tilted(np.random.Generator):
    def random(self):
        return 2.0 + super().random()


class Counting(np.random.PCG64):
    pass


@pytest.mark.parametrize("make", [lambda: Tilted(np.random.PCG64(1)), lambda: np.random.Generator(Counting(1))])
def test_generators_of_the_users_own(make):
    f = loop_of("g.random()")
    ours = jl.jit(f)
    mine, theirs = make(), make()
    for _ in range(3):
        np.testing.assert_array_equal(ours(40, mine), f(40, theirs))
        same_state(mine, theirs)


def test_threads_draw_one_after_the_other():
    f = loop_of("g.random()")
    ours = jl.jit(fullgraph=True)(f)
    g = np.random.default_rng(11)
    ours(10, np.random.default_rng(0))
    found = {}

    def draw(k):
        found[k] = [ours(1000, g) for _ in range(10)]

    threads = [threading.Thread(target=draw, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    want = {tuple(row) for row in np.random.default_rng(11).random((40, 1000))}  # each run's numbers follow each other
    assert {tuple(row) for rows in found.values() for row in rows} == want


@pytest.mark.skipif(not hasattr(signal, "raise_signal"), reason="this system has no signals to raise")
def test_a_handler_may_draw_and_end_the_loop():
    def f(g, end):
        x = 0.0
        while x < end:
            x = g.random()
        return x

    ours = jl.jit(fullgraph=True)(f)
    assert ours(np.random.default_rng(5), 0.5) == f(np.random.default_rng(5), 0.5)
    g, drawn = np.random.default_rng(5), []

    def handler(number, frame):
        drawn.append(g.random())
        if len(drawn) == 2:
            raise KeyboardInterrupt
        threading.Timer(0.05, signal.raise_signal, [signal.SIGINT]).start()

    before = signal.signal(signal.SIGINT, handler)
    try:
        threading.Timer(0.2, signal.raise_signal, [signal.SIGINT]).start()
        with pytest.raises(KeyboardInterrupt):
            ours(g, 2.0)  # for ever
    finally:
        signal.signal(signal.SIGINT, before)
    following = g.random()
    numbers = np.random.default_rng(5)
    rest = iter(numbers.random, None)
    for wanted in (*drawn, following):  # in their order, and the loop drew those between
        assert any(x == wanted for x in rest)
    assert g.random() == numbers.random()


def test_checks_and_questions_leave_the_generator():
    plain = loop_of("g.random() + g.integers(6)")
    f = jl.jit(plain)
    mine, theirs = np.random.default_rng(3), np.random.default_rng(3)
    for _ in range(2):
        answer = f.check(50, mine)
        assert answer.ok, answer
        same_state(mine, theirs)
        f.whatif(50, mine, keep_out="Fill", seconds=0.01)
        same_state(mine, theirs)
        np.testing.assert_array_equal(f(50, mine), plain(50, theirs))
    report = jl.explain(f, 50, mine)
    plain(50, theirs)
    same_state(mine, theirs)
    assert not report.fallbacks and "g.random()" in str(report)

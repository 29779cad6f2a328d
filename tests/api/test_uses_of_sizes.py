"""What a function makes of a size in Python is of the size of each call, also where the trace of another size serves it."""

import itertools
import linecache

import numpy as np
import pytest

import jitlab as jl

#: Of `n`, the length of `x`: by operators, by functions in C that look into the number, as a key, a count, an index, a text.
USES = """
2.0 * n
n * 2.0
n / 3
n // 2
-n
n % 3
divmod(n, 2)[0]
2 ** n
n ** 2
pow(2, n)
pow(n, 2, 5)
float(n)
int(n)
complex(n)
round(n)
abs(n)
math.sqrt(n)
math.log(n)
math.factorial(n)
math.comb(n, 2)
math.gcd(n, 4)
math.floor(n)
math.fsum([n, 1])
math.hypot(n, 1)
math.prod([n, 2])
math.copysign(2.0, n)
math.ldexp(1.0, n)
operator.index(n)
operator.add(n, 1)
operator.mul(1.5, n)
operator.lt(n, 7)
int(str(n))
len(str(n) * n)
len([0] * n)
len((0,) * n)
len("a" * n)
len(bytes(n))
len(bytearray(n))
sum(range(n))
sum([n, n])
list(range(n))[-1]
range(n)[2]
range(n)[-1]
len(range(n))
max(n, 6)
min(n, 6)
max([n, 6])
sorted([n, 6])[0]
{5: 1, 8: 2}.get(n, 7)
[1,2,3,4,5,6,7,8,9,10,11,12][n]
(1,2,3,4,5,6,7,8,9,10,11,12)[n]
"abcdefghijkl".index("abcdefghijkl"[n])
[*range(20)][n:][0]
[*range(20)][:n][-1]
[*range(20)][slice(n)][-1]
n in (5, 6)
n in {5, 6}
n in [5, 6]
n in {5: 1}
n in range(6)
[5, 6, 8].index(n) if n in (5,6,8) else 77
[5, 6, 5].count(n)
hash(n)
n.bit_length()
n.bit_count()
n.real
n.conjugate()
int(f"{n}")
int("%d" % n)
int("{}".format(n))
len(f"{n:>{n}}")
ord(chr(n + 60))
isinstance(n, int)
type(n) is int
n == 5
n != 5
n < 6
5 < n
bool(n)
not n
n and 3
n or 3
3 if n > 6 else 4
n is None
n == 5.0
n & 3
n | 3
n ^ 3
n << 1
1 << n
n >> 1
~n
list(enumerate([1,2], n))[1][0]
sum(itertools.repeat(2, n))
len(list(itertools.islice(itertools.count(), n)))
next(itertools.count(n))
sum(itertools.accumulate([n, 1]))
len(list(itertools.product(range(n), repeat=2)))
len(list(itertools.combinations(range(6), 2))) + n
sum(map(lambda q: q + n, [1,2]))
len(list(filter(lambda q: q < n, range(10))))
sum(1 for q in range(n))
any(q == n for q in (5, 6))
all(q < n for q in (5, 6))
sum(zip([n],[1]).__next__())
len(list(zip(range(n), range(7))))
np.float64(n) * 2
np.int64(n) + 1
np.float32(n)
np.sqrt(n)
np.zeros(n).size
np.arange(n)[-1]
np.arange(n).sum()
np.full(3, n)[0]
np.array(n)
np.array([n, 1]).sum()
np.linspace(0, 1, n)[1]
np.eye(n).sum()
np.ones((n, 2)).shape[0]
np.empty(n).nbytes
np.log2(n)
np.maximum(n, 6)
np.prod([n, 2])
np.sum(range(n))
np.hanning(n)[1]
np.tri(n).sum()
np.iinfo(np.int64).bits + n
np.binary_repr(n).count("1")
np.broadcast_to(1.0, (n,)).size
np.repeat(1, n).sum()
np.tile([1], n).size
np.random.RandomState(n).rand()
int.from_bytes(n.to_bytes(2, "big"), "big")
eval("n + 1")
(lambda q: q * 2)(n)
(lambda q=n: q)()
[q for q in [n]][0]
{n: 3}[n]
{n: 3}.get(5, 9)
list({n: 3})[0]
len({n, 5})
(n, 1) == (5, 1)
(n, 1) < (6, 0)
[n] == [5]
[n] + [1] == [5, 1]
{n} == {5}
{"a": n} == {"a": 5}
str((n, 1)).count("5")
repr([n]).count("5")
"5" in str(n)
sum(divmod(n, 3))
int(n.__add__(1))
int.__add__(n, 1)
float.__mul__(2.0, float(n))
int(np.ceil(n / 2))
int(np.log2(n))
math.isqrt(n)
int(math.log2(n))
int(n ** 0.5)
n.__index__()
round(n / 3, 1)
np.fft.fftfreq(n)[1]
np.unravel_index(4, (n, 2))[0]
np.ravel_multi_index((1, 1), (2, n))
x.size
x.nbytes
len(x)
x.shape == (5,)
x.shape + (1,)
str(x.shape).count("5")
x.shape[0] % 2
x.size // 2
tuple(x.shape)[0]
list(x.shape)[0]
max(x.shape)
sum(x.shape)
math.prod(x.shape)
{(5,): 1}.get(x.shape, 4)
np.size(x)
np.shape(x)[0]
x.strides[0] * n
bin(n).count("1")
hex(n)
ascii(n)
format(n, "03d")
n.as_integer_ratio()[0]
sum(([1] * n)[:3])
"".join(["a"] * n).count("a")
"a".ljust(n).count(" ")
"a".zfill(n)
" ".center(n).count(" ")
memoryview(bytes(n)).nbytes
int(bytes([n])[0])
range(0, 100, n)[2]
len(range(0, 100, n))
slice(n).stop
slice(None, n).indices(20)[1]
np.s_[:n].stop
complex(n, 1).real
frozenset([n]) == frozenset([5])
sorted({5: 1, n: 2})[0]
dict(a=n)["a"]
dict([(n, 1)]).get(5, 0)
vars(type("T", (), {"n": n}))["n"]
getattr(type("T", (), {"n": n}), "n")
operator.itemgetter(n)([*range(20)])
operator.eq(n, 5)
functools.reduce(operator.add, [n, 1])
functools.partial(max, n)(6)
fractions.Fraction(n, 3)
decimal.Decimal(n) / 2
statistics.mean([n, 1])
random.Random(n).random()
datetime.timedelta(n).days
struct.pack("i", n)[0]
array.array("d", [0.0]) * n
json.dumps(n)
copy.copy(n)
copy.deepcopy([n])[0]
pickle.loads(pickle.dumps(n))
collections.deque(range(20), n)[0]
collections.Counter([n])[5]
heapq.nsmallest(n, range(20))[-1]
bisect.bisect([5, 6, 7], n)
""".strip().splitlines()
HEAD = (
    "import array, bisect, collections, copy, datetime, decimal, fractions, functools, heapq, itertools, json, math, operator,"
    " pickle, random, statistics, struct\nimport numpy as np\n"
)
FORMS = {
    "given back": "def f(x):\n    n = x.shape[0]\n    y = x * 2\n    k = {use}\n    return y.sum(), k\n",
    "computed with": "def f(x):\n    n = len(x)\n    y = x * 2\n    k = {use}\n    return y * k + 1\n",
    "decided by": "def f(x):\n    n = x.shape[0]\n    if {use}:\n        y = x + 1\n    else:\n        y = -x\n    return y\n",
}
SIZES = (5, 8, 5, 6, 7, 9, 12, 4)
_numbers = itertools.count()


def defined(text):
    name = f"<uses of sizes {next(_numbers)}>"
    linecache.cache[name] = len(text), None, text.splitlines(True), name
    names = {}
    exec(compile(text, name, "exec"), names)
    return names["f"]


def outcome(f, size):
    try:
        return shown(f(np.arange(size) + 0.5))
    except Exception as error:
        return type(error).__name__, str(error)[:40]


def shown(value):
    if isinstance(value, tuple):
        return tuple(map(shown, value))
    if isinstance(value, np.ndarray):
        return value.dtype, value.shape, repr(value.tolist())
    return type(value), repr(value)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("use", USES)
def test_what_is_made_of_a_size_is_of_this_call(use, form):
    text = HEAD + FORMS[form].format(use=use)
    plain, compiled = defined(text), jl.jit(defined(text))
    for size in SIZES:
        assert outcome(compiled, size) == outcome(plain, size)

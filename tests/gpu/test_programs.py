"""Programs on the simulated GPU: random ones of loops, random NumPy ones, those of the lessons. They equal NumPy's."""

import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell

import jitlab as jl
from jitlab.cluster import cluster
from jitlab.compile import runnable
from jitlab.ir import interpret
from jitlab.notebook.extension import unload_ipython_extension
from tests.fuzz import fuzzing
from tests.gpu.listed_programs import normal
from tests.gpu.on_gpu import GPUS, bits, host_copies, on_gpu
from tests.lower.bodies import RandomProgram
from tests.notebook.shells import new_shell
from tests.notebooks.test_lessons import LESSONS, cells_of
from tests.numpy_target.test_lessons import left


@pytest.mark.long
@pytest.mark.parametrize("first", range(0, 200, 5))
def test_random_loops_are_numpys_with_the_same_bits_on_every_gpu(first, monkeypatch):
    for seed in range(first, first + 5):
        program, found = RandomProgram(seed), []
        for processors, order in GPUS:
            with on_gpu(processors, order) as gpu, host_copies(monkeypatch) as copies, np.errstate(all="ignore"):
                got = runnable(cluster(program.graph, jit_compile=True)).run([a.copy() for a in program.arrays])
            assert gpu.launched and not copies, f"seed {seed}"
            found.append(bits(got))
        for mine, theirs in zip(got, interpret(program.graph, program.arrays), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-9, err_msg=f"seed {seed}\n{program.graph}")
        assert found[0] == found[1] == found[2], f"seed {seed}\n{program.graph}"


@pytest.mark.long
@pytest.mark.parametrize("first", range(0, 300, 5))
def test_random_programs_give_what_numpy_gives(first):
    for seed in range(first, first + 5):
        program = fuzzing.make(seed)
        with on_gpu(*GPUS[seed % len(GPUS)]):
            text = fuzzing.failure(program)
        assert not text, f"{text}\n{program}"


@pytest.fixture
def shell(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("jitlab.notebook.saved_outputs.cache_folder", lambda: tmp_path)
    made = new_shell()
    yield made
    unload_ipython_extension(made)
    InteractiveShell.clear_instance()


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.stem)
def test_a_lesson_leaves_the_same_on_the_gpu(shell, lesson):
    want_errors, want = left(shell, lesson)
    with on_gpu() as gpu:
        errors, got = left(shell, lesson)
    assert gpu.launched
    meant = ["raises-exception" in cell["metadata"].get("tags", ()) for cell in cells_of(lesson)]
    assert [error is not None for error, _, _ in errors] == meant
    assert errors == want_errors
    assert got.keys() == want.keys()
    for name, values in want.items():
        for mine, theirs in zip(got[name], values, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-9, err_msg=name)


def softmax(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def logsumexp(x):
    top = x.max(1, keepdims=True)
    return (np.log(np.exp(x - top).sum(1, keepdims=True)) + top)[:, 0]


def from_the_largest(x):
    return x * x.argmax(1)[:, None] - x.min(1, keepdims=True)


def normalized(x):
    return (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True)


def normalized_again(x):
    for _ in range(3):
        x = (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True)
    return x


def less_than_largest(x):
    return (x < x.max(1, keepdims=True)) & (x.sum(1, keepdims=True) > 0)


LONG_ROWS = [
    (function, normal(*shape, dtype=dtype))
    for function in (softmax, logsumexp, from_the_largest, normalized, normalized_again, less_than_largest)
    for shape, dtype in (((5, 20000), "f4"), ((2, 131072), "f4"), ((3, 16388), "f8"), ((2, 40960), "f2"))
]


@pytest.mark.parametrize(("function", "x"), LONG_ROWS, ids=lambda a: getattr(a, "__name__", None) or f"{a.dtype}-{a.shape[1]}")
def test_rows_that_several_blocks_have_together_give_the_same_bits_on_every_gpu(function, x):
    """Whatever order blocks start in, and how many rows each has. Of float16 a block has longer rows for itself."""
    found = []
    want = function(x.astype("f8")) if x.dtype.itemsize > 2 else function(x)
    for processors, order in GPUS:
        with on_gpu(processors, order) as gpu:
            got = jl.jit(function)(x.copy())
        np.testing.assert_allclose(got, want, **({"rtol": 1e-4, "atol": 1e-5} if x.dtype.itemsize > 2 else {"rtol": 1e-2}))
        assert gpu.launched
        found.append(bits([got]))
    assert found[0] == found[1] == found[2]


TURNED = {
    "sum": (lambda x, y: x.T * 2 + y, ((100, 70), (70, 100)), "f4"),
    "two results": (lambda x, y: (x.T + y, y - x.T), ((33, 64), (64, 33)), "f8"),
    "two turned": (lambda x, y, z: x.T * y + z.T, ((65, 40), (40, 65), (65, 40)), "f2"),
    "in batches": (lambda x, y: x.transpose(0, 2, 1) * 2 + y, ((3, 65, 33), (3, 33, 65)), "f4"),
    "backwards": (lambda x, y: x[::-1].T + y, ((40, 50), (50, 40)), "i4"),
}


@pytest.mark.parametrize("name", TURNED)
def test_arrays_that_lie_the_other_way_are_read_through_tiles(name):
    """Each element once, by threads that are neighbours where it lies, into a tile of shared memory for each of them."""
    function, shapes, dtype = TURNED[name]
    arrays = [normal(*shape, dtype="f8").astype(dtype) for shape in shapes]
    want, found, texts = function(*arrays), [], []
    for processors, order in GPUS:
        with on_gpu(processors, order) as gpu:
            load = gpu.load
            gpu.load = lambda text, kernels, load=load: texts.append(text) or load(text, kernels)
            found.append(jl.jit(function)(*arrays))
        assert texts[-1].count("addrspace(3) global") == (2 if name == "two turned" else 1)
        assert gpu.read_bytes == sum(x.nbytes for x in arrays)
        np.testing.assert_array_equal(np.array(found[-1]), np.array(want))


def noted_grids(gpu, patch):
    """How many blocks each launch has, as they come."""
    found, launch = [], gpu.launch
    patch.setattr(gpu, "launch", lambda *given: found.append(given[1].x) or launch(*given))
    return found


def test_a_gpu_that_does_not_run_all_blocks_of_a_row_at_once_gives_each_block_rows_of_its_own(monkeypatch):
    x = normal(5, 131072)
    for processors, blocks in ((1, 2), (3, 5), (16, 40)):
        with on_gpu(processors) as gpu, monkeypatch.context() as patch:
            grids = noted_grids(gpu, patch)
            patch.setattr(gpu, "has_turns", False)
            np.testing.assert_allclose(jl.jit(softmax)(x), softmax(x), rtol=1e-5)
        assert grids[-1] == blocks


@pytest.mark.parametrize("function", [softmax, normalized])
def test_rows_in_parts_that_start_anywhere(function):
    """Code that was made for rows that start at multiples of 16 bytes takes others, too."""
    x = normal(3 * 20000 + 1)
    for processors, order in GPUS:
        with on_gpu(processors, order) as gpu:
            compiled, whole = jl.function(lambda x: function(x.reshape(3, 20000))), jl.to_device(x)
            for given in (whole[:-1], whole[1:]):
                want = function(given.to_numpy().reshape(3, 20000).astype("f8"))
                np.testing.assert_allclose(compiled(given).to_numpy(), want, rtol=1e-4, atol=1e-5)
        assert gpu.launched["phase1"] == 2


def test_an_index_out_of_range_is_numpys_error_whichever_thread_finds_it():
    given, places = np.arange(1000.0), np.arange(1000)
    wrong = np.where(places % 300 == 3, 1000, places)
    for processors, order in GPUS:
        with on_gpu(processors, order) as gpu, jl.Graph().as_default() as graph:
            x, i = jl.placeholder(np.float64, [None]), jl.placeholder(np.int64, [None])
            with jl.device("XLA_GPU:0"):
                y = x[i] * 2
            with jl.Session(graph=graph) as session:
                with pytest.raises(IndexError, match="index 1000 is out of bounds for axis 0 with size 1000"):
                    session.run(y, {x: given, i: wrong})
                np.testing.assert_array_equal(session.run(y, {x: given, i: places}), given * 2)
        assert gpu.launched

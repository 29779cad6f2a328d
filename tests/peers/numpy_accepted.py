"""Tests of NumPy that end otherwise under `jl.jit`, each with the reason why a NumPy user accepts that.

What is under `FAULTS` is not accepted: jitlab is wrong there, and the list says what is known to be wrong.
"""

COUNTS = "it counts the references to an object, and a trace holds some of those that its function names"
MEMORY = "it asks whether the memory of a result is its own, or whose it is; compiled code gives results memory of their own"
ROUNDING = "it allows less than one unit in the last place of float32, and sums of jitlab are added up in another order"

ACCEPTED: dict[str, tuple[str, ...]] = {
    COUNTS: (
        "numpy/_core/tests/test_indexing.py::TestIndexing::test_small_regressions",
        "numpy/_core/tests/test_numeric.py::TestCreationFuncs::test_for_reference_leak",
        "numpy/_core/tests/test_regression.py::TestRegression::test_take_refcount",
        "numpy/_core/tests/test_ufunc.py::test_reduction_no_reference_leak",
        "numpy/lib/tests/test_function_base.py::TestBincount::test_dtype_reference_leaks",
    ),
    MEMORY: (
        "numpy/_core/tests/test_multiarray.py::TestFlags::test_writeable_from_c_data",
        "numpy/_core/tests/test_einsum.py::TestEinsum::test_einsum_views",
        "numpy/_core/tests/test_einsum.py::TestEinsum::test_einsum_all_contig_non_contig_output",
    ),
    ROUNDING: ("numpy/linalg/tests/test_linalg.py::TestNormSingle::test_keepdims",),
}

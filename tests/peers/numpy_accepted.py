"""Tests of NumPy that end otherwise under `jl.jit`, each with the reason why a NumPy user accepts that."""

COUNTS = "it counts the references to an object, and a trace holds some of those that its function names"
MEMORY = "it asks whether the memory of a result is its own, or whose it is; compiled code gives results memory of their own"
ROUNDING = "it allows less than one unit in the last place of float32, and sums of jitlab are added up in another order"

ACCEPTED: dict[str, tuple[str, ...]] = {
    COUNTS: (
        "numpy/_core/tests/test_indexing.py::TestIndexing::test_small_regressions",
        "numpy/_core/tests/test_multiarray.py::TestPickling::test_roundtrip",
        "numpy/_core/tests/test_numeric.py::TestCreationFuncs::test_for_reference_leak",
        "numpy/_core/tests/test_regression.py::TestRegression::test_take_refcount",
        "numpy/_core/tests/test_ufunc.py::test_reduction_no_reference_leak",
        "numpy/lib/tests/test_function_base.py::TestBincount::test_dtype_reference_leaks",
    ),
    MEMORY: (
        "numpy/_core/tests/test_multiarray.py::TestFlags::test_writeable_from_c_data",
        "numpy/_core/tests/test_multiarray.py::TestFromBuffer::test_array_base[[]12345678]",
        "numpy/_core/tests/test_einsum.py::TestEinsum::test_einsum_views",
        "numpy/_core/tests/test_einsum.py::TestEinsum::test_einsum_all_contig_non_contig_output",
    ),
    ROUNDING: ("numpy/linalg/tests/test_linalg.py::TestNormSingle::test_keepdims",),
}

#: Not accepted: what is known to be wrong. Whoever mends one takes it off the list.
FAULTS: dict[str, tuple[str, ...]] = {
    "a result that NumPy lays out otherwise is one of C order": (
        "numpy/_core/tests/test_shape_base.py::TestBlock::test_block_memory_order[[]*",
        "numpy/_core/tests/test_indexing.py::TestIndexing::test_memory_order",
        "numpy/_core/tests/test_multiarray.py::TestMethods::test_round_copies[[]*",
        "numpy/_core/tests/test_multiarray.py::TestMethods::test_copy",
        "numpy/_core/tests/test_multiarray.py::TestMethods::test_ravel",
        "numpy/_core/tests/test_multiarray.py::TestPickling::test_non_contiguous_array",
        "numpy/_core/tests/test_einsum.py::TestEinsum::test_output_order",
        "numpy/_core/tests/test_regression.py::TestRegression::test_squeeze_contiguous",
        "numpy/_core/tests/test_regression.py::TestRegression::test_copymodule_preserves_f_contiguity",
        "numpy/lib/tests/test_arraypad.py::test_memory_layout_persistence[[]*",
        "numpy/lib/tests/test_function_base.py::TestCopy::test_order",
        "numpy/lib/tests/test_twodim_base.py::TestEye::test_order",
    ),
    "a result that shares memory with an argument does not": (
        "numpy/_core/tests/test_numeric.py::TestNonarrayArgs::test_reshape_copy_arg",
        "numpy/_core/tests/test_multiarray.py::TestArrayConstruction::test_array_copy_false",
        "numpy/_core/tests/test_multiarray.py::TestArrayConstruction::test_array_copy_if_needed",
        "numpy/lib/tests/test_stride_tricks.py::TestSlidingWindowView::test_writeable",
    ),
    "a flag of an array is another one": (
        "numpy/_core/tests/test_numeric.py::TestNonzero::test_count_nonzero_non_aligned_array",
        "numpy/_core/tests/test_multiarray.py::TestFlags::test_writeable_from_readonly",
        "numpy/_core/tests/test_multiarray.py::TestMethods::test_diagonal_view_notwriteable",
        "numpy/_core/tests/test_ufunc.py::TestUfunc::test_broadcast",
        "numpy/lib/tests/test_stride_tricks.py::test_writeable",
        "numpy/lib/tests/test_stride_tricks.py::test_writeable_memoryview",
    ),
    "an effect of a statement that runs as Python happens more than once": (
        "numpy/lib/tests/test_function_base.py::TestVectorize::test_cache",
        "numpy/_core/tests/test_umath.py::TestSpecialMethods::test_ufunc_override_mro",
    ),
    "the sum of negative zeros that starts with one is a positive zero": (
        "numpy/_core/tests/test_ufunc.py::test_addition_reduce_negative_zero[[]True-[efd]]",
    ),
    "a ufunc of somebody else's that writes into its operands is given copies": (
        "numpy/_core/tests/test_ufunc.py::TestUfunc::test_operand_flags",
    ),
    "weights of np.average whose axes come in another order are taken in theirs": (
        "numpy/lib/tests/test_function_base.py::TestAverage::test_weight_and_input_dims_different",
    ),
}

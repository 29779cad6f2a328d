"""Operations and calls of NumPy on the simulated GPU equal NumPy, in whatever order threads run."""

import pytest

from tests.gpu.on_gpu import GPUS, on_gpu
from tests.ops import test_table
from tests.runtime import test_compiled_operations, test_compiled_table


@pytest.mark.parametrize(("op", "arrays"), list(test_compiled_operations.samples()))
def test_an_operation_equals_numpy(op, arrays):
    with on_gpu():
        test_compiled_operations.test_compiled_equals_numpy(op, arrays)

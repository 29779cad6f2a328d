"""When two results of a program are alike: values up to rounding, with Python's types and NumPy's dtypes."""

import numpy as np
import pytest


def same(found, wanted):
    """The same structure, types, dtypes and shapes; floats differ by rounding."""
    assert type(found) is type(wanted), f"{type(found).__name__} for {type(wanted).__name__}"
    if isinstance(wanted, (tuple, list)):
        assert len(found) == len(wanted)
        for a, b in zip(found, wanted, strict=True):
            same(a, b)
    elif isinstance(wanted, (np.ndarray, np.generic)):
        assert found.dtype == wanted.dtype and found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, rtol=1e-9 if wanted.dtype.itemsize > 4 else 1e-4, atol=1e-10)
    elif isinstance(wanted, dict):
        assert list(found) == list(wanted)
        same(list(found.values()), list(wanted.values()))
    else:
        assert found == pytest.approx(wanted) if isinstance(wanted, float) else found == wanted

"""Operations and calls of NumPy, compiled for the second target, equal NumPy."""

import pytest

from tests.numpy_target.target import on_numpy
from tests.ops import test_table
from tests.runtime import test_compiled_operations, test_compiled_table


@pytest.fixture(autouse=True)
def numpy_target():
    with on_numpy():
        yield


@pytest.mark.parametrize(("op", "arrays"), list(test_compiled_operations.samples()))
def test_an_operation_equals_numpy(op, arrays):
    test_compiled_operations.test_compiled_equals_numpy(op, arrays)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", range(20))
@pytest.mark.parametrize("family", test_table.FAMILIES)
def test_sample_calls(family, first):
    found = [test_compiled_table.outcome(p) for p in list(test_table.FAMILIES[family]())[first::20]]
    wrong = [text for text in found if text not in ("", "refused")]
    assert not wrong, f"{len(wrong)} of {len(found)} differ:\n" + "\n".join(wrong[:30])


def test_they_ran_on_this_target(monkeypatch):
    monkeypatch.setattr("tests.numpy_target.target.Interpreted.run", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        test_compiled_operations.test_compiled_equals_numpy(*next(iter(test_compiled_operations.samples())).values)

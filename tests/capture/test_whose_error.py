"""An error that ends a recording is the user's where one of their operations runs in a frame of jitlab's, else jitlab's own."""

from pathlib import Path

import pytest

from jitlab.capture.numpy_calls import explanations

CAPTURE = Path(explanations.PACKAGE) / "capture"


def raised_in(file):
    """What a look-up raises in a file of the package."""
    names = {}
    exec(compile("def look_up(): return {}['key']", str(file), "exec"), names)
    with pytest.raises(KeyError) as caught:
        names["look_up"]()
    return caught.value


@pytest.mark.parametrize("name", sorted(explanations._FOR_THE_USER))
def test_it_is_the_users_where_their_operations_run(name):
    (file,) = CAPTURE.rglob(name)
    assert not explanations.is_our_fault(raised_in(file))


@pytest.mark.parametrize("name", ["looping.py", "tensor.py", "driver.py"])
def test_it_is_ours_elsewhere(name):
    (file,) = CAPTURE.rglob(name)
    assert explanations.is_our_fault(raised_in(file))


def test_outside_the_package_it_is_the_users():
    assert not explanations.is_our_fault(raised_in("a_program.py"))

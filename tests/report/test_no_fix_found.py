"""Where no fix was found, no surface says that there is nothing to fix: not the text, not the picture, not the page."""

import json
import re
import subprocess
import sys

import pytest

PROGRAM = """
import numpy as np
import jitlab as jl

@jl.function
def weights(x, k):
    y = np.exp({exponent})
    return y / y.sum(axis=1, keepdims=True)

x = np.random.default_rng(0).random((20, 10))
for k in (0.5, 0.7, 0.9, 1.1):
    weights(x, k)
"""


@pytest.fixture(scope="module", params=["-k * x**2", "k * x"])
def surfaces(request, tmp_path_factory):
    """The exponent, and what `jitlab report` writes of the program: the text of each format."""
    folder = tmp_path_factory.mktemp("reports")
    (folder / "program.py").write_text(PROGRAM.format(exponent=request.param))
    for ending in ("txt", "html", "svg", "json"):
        asked = [sys.executable, "-m", "jitlab", "report", "program.py", "-o", f"told.{ending}"]
        subprocess.run(asked, cwd=folder, check=True, capture_output=True)
    told = {ending: (folder / f"told.{ending}").read_text() for ending in ("txt", "html", "svg", "json")}
    told["html"] = re.sub(r"<script.*?</script>", "", told["html"], flags=re.DOTALL)  # what it shows without one
    return request.param, told


def test_no_surface_says_that_nothing_is_to_do(surfaces):
    exponent, told = surfaces
    assert not any(re.search("Nothing (to fix|to improve|left to do)", text) for text in told.values())
    data = json.loads(told["json"])
    assert all(retrace["done"] is None for retrace in data["retraces"])  # a tick is for what is done
    assert data["verdict"]["retraces"] == 3 and "bound" not in data["verdict"]
    has_fix = [retrace["fix"] is not None for retrace in data["retraces"]]
    if exponent == "k * x":
        assert has_fix == [False, True, True, True] and data["verdict"]["next"]["section"] == "retraces"
        shown = [re.sub(r"<[^>]*>", " ", told[ending]) for ending in ("txt", "svg")]
        assert all("Make k an array: it retraced 3 times" in " ".join(text.split()) for text in shown)
    else:
        assert not any(has_fix) and data["verdict"]["next"] is None
        assert "No fix found" in told["txt"] and "No fix found" in told["html"]

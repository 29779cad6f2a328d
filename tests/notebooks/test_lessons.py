"""The lessons as they are saved: run from top to bottom, with outputs that show without a kernel and name no machine.

That they run is checked by nbval (`make test-python`).
"""

import json
import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "notebooks"
LESSONS = sorted(FOLDER.glob("*.ipynb"))
REPORT = "application/vnd.jitlab.report+json"


def cells_of(lesson, kind="code"):
    return [cell for cell in json.loads(lesson.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == kind]


def source(cell):
    return "".join(cell["source"])


def texts(value):
    """Every string in an output."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from texts(item)


@pytest.fixture(params=LESSONS, ids=lambda lesson: lesson.stem)
def lesson(request):
    return request.param


def test_it_was_run_from_top_to_bottom(lesson):
    counts = [cell["execution_count"] for cell in cells_of(lesson)]
    assert counts == list(range(1, len(counts) + 1))


def test_only_cells_that_mean_to_fail_have_failed(lesson):
    for cell in cells_of(lesson):
        failed = [output["ename"] for output in cell["outputs"] if output["output_type"] == "error"]
        assert bool(failed) == ("raises-exception" in cell["metadata"].get("tags", ())), (source(cell), failed)


def test_a_compiled_cell_shows_its_report_without_a_kernel(lesson):
    for cell in cells_of(lesson):
        if source(cell).startswith("%%jit"):
            bundles = [output["data"] for output in cell["outputs"] if REPORT in output.get("data", {})]
            assert bundles, source(cell)
            for data in bundles:
                html, text = "".join(data["text/html"]), "".join(data["text/plain"])
                assert ("<svg" in html or "data:image/svg+xml;base64," in html) and "<script" not in html
                assert "operations compiled" in text or "operation compiled" in text
                assert data[REPORT]["cell"]["running"] is False


def test_what_varies_is_marked_for_nbval(lesson):
    times = re.compile(r"\d\s?(ms|µs|μs|ns|s)\b")
    for cell in cells_of(lesson):
        if "nbval-ignore-output" not in cell["metadata"].get("tags", ()):
            assert not times.search(" ".join(texts(cell["outputs"]))), source(cell)


def test_nothing_names_the_machine_it_was_run_on(lesson):
    for cell in cells_of(lesson):
        for text in texts(cell["outputs"]):
            found = re.search(r"/(home|root|tmp|work|opt|Users)/[\w.-]+", text)
            assert found is None, (source(cell), found and found[0])


def test_its_outputs_stay_small(lesson):
    assert lesson.stat().st_size < 1_000_000


def test_headings_and_code_take_turns(lesson):
    text = "\n".join(source(cell) for cell in cells_of(lesson, "markdown"))
    assert text.startswith("# ") and text.count("\n## ") >= 3

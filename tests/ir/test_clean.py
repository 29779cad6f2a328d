"""Text that can't act: what a person wrote is shown as it is, by Python and by the panel alike."""

import json
from pathlib import Path

import pytest

from jitlab.messages.escape import clean

ACTS = json.loads((Path(__file__).parents[2] / "extension/test/fixtures/acts.json").read_text())


@pytest.mark.parametrize(("raw", "shown"), ACTS, ids=[shown for _, shown in ACTS])
def test_what_would_act_is_the_escape_that_the_panel_shows(raw, shown):
    assert clean(raw) == shown
    assert shown.isprintable()


@pytest.mark.parametrize("plain", ["µ × Ω שלום 数", "👩\u200d🔬"])
def test_letters_and_emoji_stay_as_they_are(plain):
    assert clean(plain) == plain

import report_samples as samples


def test_text_of_six_runs_compared_with_numpy(golden):
    assert str(samples.softmax_report()) == golden


def test_text_of_one_run(golden):
    assert str(samples.softmax_report(retraces=0, compare=False)) == golden


def test_text_keeps_to_a_hundred_columns_without_colour_codes():
    for text in (str(samples.softmax_report()), str(samples.softmax_report(retraces=0))):
        assert max(map(len, text.splitlines())) <= 100
        assert "\x1b" not in text

"""Recording -> Report -> text, picture, HTML, JSON, traces and dumps. Reads events and plans, changes nothing compiled.

Parts, in the order of the data: origin, duration_samples, speed, recording, scripts, schema, answer_schema, shape,
equal_reasons, build, report, store, render, expect, flip_trial.
"""

from jitlab.targets.target import Peaks

from .expect import expect
from .recording import Recording, explain, record
from .report import MIME, Report
from .store.report_files import read_report

__all__ = ["MIME", "Peaks", "Recording", "Report", "expect", "explain", "read_report", "record"]
